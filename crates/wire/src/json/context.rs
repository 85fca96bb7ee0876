//! Contexts: creating, forking, listing, labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::SentId;
use super::{Id, Time, strict};

/// A context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Context {
    /// Its id.
    pub context_id: Id,
    /// The turn at its head, `"0"` for an empty context.
    pub head_turn_id: Id,
    /// The head's depth, 0 for an empty context.
    pub head_depth: u32,
    /// When it was created.
    pub created_at: Time,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the record that created it was lost to damage: then its labels, its time of creation
    /// and its base turn are not known, and its head only if a turn was appended since.
    // Both flags are absent in a store that never lost anything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub creation_lost: bool,
    /// Whether the turn at its head was lost to damage.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub head_lost: bool,
}

/// A request for a new context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "struct CreateContext")]
#[schema(as = CreateContext)]
pub struct CreateContextBody {
    /// The turn that it starts from; none or `"0"` for an empty context.
    #[schema(value_type = Option<SentId>)]
    pub base_turn_id: Option<Id>,
    /// Its labels.
    #[serde(default, deserialize_with = "strict::read_optional_labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Makes a repeated request return the first answer. Its scope is the store.
    pub idempotency_key: Option<String>,
}

/// A request for a new context that starts from a turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkContext {
    /// The turn that it starts from.
    #[schema(value_type = SentId)]
    pub base_turn_id: Id,
    /// Its labels.
    #[serde(default, deserialize_with = "strict::read_optional_labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Makes a repeated request return the first answer. Its scope is the store.
    pub idempotency_key: Option<String>,
}

impl From<ForkContext> for CreateContextBody {
    fn from(fork: ForkContext) -> Self {
        Self {
            base_turn_id: Some(fork.base_turn_id),
            labels: fork.labels,
            idempotency_key: fork.idempotency_key,
        }
    }
}

/// A change to a context.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchContext {
    /// All of its labels from now on.
    #[serde(deserialize_with = "strict::read_labels")]
    pub labels: BTreeMap<String, String>,
}

/// Contexts, newest created first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ContextPage {
    /// The contexts. A page may hold fewer than were asked for although more follow.
    pub contexts: Vec<Context>,
    /// The start of the next page; null at the end.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}
