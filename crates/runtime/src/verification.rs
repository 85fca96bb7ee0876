//! What the server verifies: a claim that the run has reached its goal, the run on request, or the
//! work behind an envelope at the gate of an edge.
//!
//! At most one verification of the run is under way; it is the phase VERIFY. Any number of envelopes
//! may be held at gates. Each has an id that its result must name: a result without an open
//! verification belongs to one that was cancelled, and is ignored.

use turnkeep_types::Timestamp;

use crate::ids::{AgentTurnId, EnvelopeId, NodeId, ToolId, VerificationId};
use crate::input::Envelope;

/// A call of a node's agent, in the turn that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPlace {
    pub node: NodeId,
    pub turn: AgentTurnId,
    pub tool: ToolId,
}

/// A verification of the run that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    pub id: VerificationId,
    pub since: Timestamp,
    /// The `complete_run` that waits for it; `None` if a person asked for it.
    pub claim: Option<CallPlace>,
}

/// An envelope that waits at a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldEnvelope {
    pub envelope: Envelope,
    pub since: Timestamp,
    /// The turn in which it was made.
    pub turn: Option<AgentTurnId>,
    /// The call that waits for it; `None` if the server or a person sent it.
    pub call: Option<CallPlace>,
}

/// What a result belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerificationTarget {
    /// The run, in the integration tree.
    Run(VerificationId),
    /// The sender's work behind this envelope, in the sender's workspace.
    Gate(EnvelopeId),
}
