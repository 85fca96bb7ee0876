//! The `data:` of server-sent events, one line each. Clients ignore unknown kinds of events.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Hash, Id, Time, TypeName};

/// `turn.appended`: a turn, without its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TurnAppended {
    /// The context that it was appended to.
    pub context_id: Id,
    /// The turn.
    pub turn_id: Id,
    /// Its parent, `"0"` for none.
    pub parent_turn_id: Id,
    /// Its depth.
    pub depth: u32,
    /// The type that its writer declared.
    pub declared_type: TypeName,
    /// The payload's encoding.
    pub encoding: u32,
    /// The payload's hash.
    pub content_hash_b3: Hash,
    /// The payload's length.
    pub uncompressed_len: u32,
    /// The root of its filesystem tree, if it had one when the event was read; one that is attached
    /// later comes as `fs.attached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fs_root_hash: Option<Hash>,
    /// When it was appended.
    pub created_at: Time,
}

/// `context.created`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ContextCreated {
    /// The context.
    pub context_id: Id,
    /// When it was created.
    pub created_at: Time,
}

/// `turn.lost`: a turn that was lost to damage. Its context is not known, so every feed has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TurnLost {
    /// The turn.
    pub turn_id: Id,
}

/// `context.lost`: a context whose creation was lost to damage, and with it its labels and base
/// turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ContextLost {
    /// The context.
    pub context_id: Id,
}

/// `fs.attached`: a turn got its filesystem root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FsAttached {
    /// The context that the turn was appended to.
    pub context_id: Id,
    /// The turn.
    pub turn_id: Id,
    /// The root.
    pub fs_root_hash: Hash,
}

/// `registry.put`: a bundle was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RegistryPut {
    /// The bundle.
    pub bundle_id: String,
}

/// `world.changed`: something was recorded in a world. It has no id and is never replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorldChanged {
    /// `world:` and the name of the world.
    pub r#ref: String,
}

/// `session.changed`: a session is new, gone, in another state, or its captured turns changed. It has
/// no id and is never replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SessionChanged {
    /// `session:` and the id of the session.
    pub r#ref: String,
}

/// `run.changed`: a run has new events. It has no id and is never replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunChanged {
    /// `run:` and the id of the run.
    pub r#ref: String,
}

/// `attention.changed`: other things wait for a person than before. It has no id and is never
/// replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttentionChanged {
    /// How many wait now, in all runs.
    pub count: u64,
}
