//! Requests that a caller may repeat: the idempotency key, the fingerprint of the request, and the id
//! of the thing that it created.
//!
//! The key is part of the first event that a request caused, so it is kept as long as the run. A
//! request that changed nothing leaves an event for its key alone. Worked example: `POST …/nodes` with
//! the key `k` adds the node 7. After a restart the same request comes again: the archive knows `k`
//! with the same fingerprint, and the answer is node 7. Another body with `k` is refused.

use std::fmt;
use std::str::FromStr;

use turnkeep_types::BlobHash;

use crate::ids::{
    ArtifactId, EdgeId, EnvelopeId, MessageId, NodeId, ParseUuidError, VerificationId,
};

/// A caller's idempotency key, with a hash of the request that it was given for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub key: String,
    pub fingerprint: BlobHash,
}

/// What a request made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MadeId {
    /// The run itself.
    Run,
    /// A node.
    Node(NodeId),
    /// An edge, new or found.
    Edge(EdgeId),
    /// A message.
    Message(MessageId),
    /// An envelope.
    Envelope(EnvelopeId),
    /// A verification.
    Verification(VerificationId),
    /// A file that has the answer.
    Artifact(ArtifactId),
}

/// The text form: the kind, a colon and the UUID. The run has no UUID: it is the one that has the
/// event.
impl fmt::Display for MadeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Node(id) => write!(f, "node:{id}"),
            Self::Edge(id) => write!(f, "edge:{id}"),
            Self::Message(id) => write!(f, "message:{id}"),
            Self::Envelope(id) => write!(f, "envelope:{id}"),
            Self::Verification(id) => write!(f, "verification:{id}"),
            Self::Artifact(id) => write!(f, "artifact:{id}"),
        }
    }
}

impl FromStr for MadeId {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let unknown = || ParseUuidError(text.to_owned());
        if text == "run" {
            return Ok(Self::Run);
        }
        let (kind, id) = text.split_once(':').ok_or_else(unknown)?;
        match kind {
            "node" => id.parse().map(Self::Node),
            "edge" => id.parse().map(Self::Edge),
            "message" => id.parse().map(Self::Message),
            "envelope" => id.parse().map(Self::Envelope),
            "verification" => id.parse().map(Self::Verification),
            "artifact" => id.parse().map(Self::Artifact),
            _ => Err(unknown()),
        }
    }
}

/// A request that was carried out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The hash of the request.
    pub fingerprint: BlobHash,
    /// The first event that it caused.
    pub seq: u64,
    /// What it made, so that the answer can be given again.
    pub made: Option<MadeId>,
}

/// What an idempotency key says about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Nothing had this key: the request is carried out.
    New,
    /// The same request was carried out before. It is answered with what it made then.
    Repeated(KeyedRequest),
    /// A different request had the key, so this one is refused.
    Reused,
}
