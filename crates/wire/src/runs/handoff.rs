//! What nodes get and make: messages, envelopes and artifacts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{ArtifactKind, EnvelopeKind, Expectation, MessageRole, UuidText};
use crate::json::{Hash, Time};

shapes! {
    /// A handoff from one node to another.
    struct EnvelopeView {
        kind: EnvelopeKind,
        id: UuidText,
        from_node_id: UuidText,
        to_node_id: UuidText,
        created_at: Time,
        payload: EnvelopePayload,
    }
    optional {
        /// `contextpack://` and the id of the artifact that the receiver gets before its task.
        #[schema(example = "contextpack://0b5f1c9e-8a3d-4c55-9a67-0123456789ab")]
        context_ref: String,
        meta: EnvelopeMeta,
    }

    /// What an envelope says.
    struct EnvelopePayload {
        message: String,
        artifacts: Vec<ArtifactRef>,
        response: ResponseView,
    }
    optional {
        #[schema(value_type = Value)]
        structured: Value,
        status: EnvelopeStatusView,
    }

    /// A reference to an artifact.
    struct ArtifactRef {
        /// `artifact://` and the id.
        #[serde(rename = "ref")]
        #[schema(example = "artifact://0b5f1c9e-8a3d-4c55-9a67-0123456789ab")]
        target: String,
    }
    optional {
        #[serde(rename = "type")]
        kind: ArtifactKind,
    }

    /// Whether the work behind an envelope succeeded.
    struct EnvelopeStatusView {
        ok: bool,
    }
    optional {
        reason: String,
    }

    /// Whether the receiver owes a reply.
    struct ResponseView {
        expectation: Expectation,
    }
    optional {
        /// The envelope that this one answers.
        reply_to: UuidText,
    }

    /// What the daemon says about an envelope.
    struct EnvelopeMeta {
        /// Whether the daemon wrote it in the sender's place.
        synthesized: bool,
    }

    /// A message to a node.
    struct MessageView {
        id: UuidText,
        run_id: UuidText,
        node_id: UuidText,
        role: MessageRole,
        content: String,
        /// Whether it interrupts an open turn, and comes first in the next one.
        interrupt: bool,
        created_at: Time,
    }

    /// A file that a run made.
    struct ArtifactView {
        id: UuidText,
        run_id: UuidText,
        kind: ArtifactKind,
        name: String,
        /// Where the server keeps a copy.
        path: String,
        created_at: Time,
        content_hash: Hash,
        bytes: u64,
    }
    optional {
        node_id: UuidText,
        /// What a diff says about itself.
        metadata: DiffMetadata,
    }

    /// What a diff changes.
    struct DiffMetadata {
        files_changed: Vec<String>,
        summary: String,
        /// Lines.
        added: u64,
        /// Lines.
        removed: u64,
        /// The name of the tree before the turn.
        base_tree: String,
        /// The name of the tree after the turn.
        head_tree: String,
    }
    optional {
        turn_id: UuidText,
        /// Files that the node may not write.
        violation: Vec<String>,
        /// Files that another turn may have changed at the same time.
        shared: Vec<String>,
        /// Those of them that both nodes probably wrote.
        conflicts: Vec<WriteConflict>,
    }

    /// A file that the node of another turn probably wrote at the same time.
    struct WriteConflict {
        path: String,
        node_id: UuidText,
        turn_id: UuidText,
    }
}
