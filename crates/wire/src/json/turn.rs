//! Turns: appending one, and the shapes of typed, raw and mixed pages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

use super::id::SentId;
use super::{Hash, Id, Time, strict};

/// A request to append a turn. It holds either `data` or `payload_b64`.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
// Errors name the shape as the API's document does, not as this crate does.
#[serde(deny_unknown_fields, expecting = "struct AppendTurn")]
#[schema(as = AppendTurn)]
pub struct AppendTurnBody {
    /// The declared type. Needed with `data`.
    #[serde(default)]
    pub type_id: String,
    /// The declared type's version. Needed with `data`.
    pub type_version: Option<u32>,
    /// The payload by field names; the registry's descriptor encodes it to tagged msgpack.
    #[serde(default, deserialize_with = "strict::read_optional_value")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
    /// The payload's msgpack bytes as base64.
    pub payload_b64: Option<String>,
    /// The turn to append to; none or `"0"` for the context's head.
    #[schema(value_type = Option<SentId>)]
    pub parent_turn_id: Option<Id>,
    /// The head that the context must have; `"0"` if it must be empty.
    #[schema(value_type = Option<SentId>)]
    pub expected_head_turn_id: Option<Id>,
    /// Makes a repeated request return the first answer. Its scope is the context.
    pub idempotency_key: Option<String>,
    /// The root of a filesystem tree; the blob must exist.
    pub fs_root_hash: Option<Hash>,
    /// Accepts `data` that lacks fields which its type does not mark optional.
    #[serde(default)]
    pub allow_missing: bool,
}

/// The response to an append: the turn is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TurnAck)]
pub struct AppendedTurn {
    /// The context.
    pub context_id: Id,
    /// The new turn.
    pub turn_id: Id,
    /// Its parent, `"0"` for none.
    pub parent_turn_id: Id,
    /// Its depth.
    pub depth: u32,
    /// The payload's hash.
    pub content_hash_b3: Hash,
    /// When it was appended.
    pub created_at: Time,
}

// Pages and turns are only read here: the server writes them straight into text, because a typed
// payload exists in no other form.

/// A page of turns, oldest first.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnPage {
    /// The source of the page.
    pub meta: PageMeta,
    /// The turns.
    pub turns: Vec<Turn>,
    /// The `before_turn_id` of the next older page; null on the last page.
    #[schema(required = true)]
    pub next_before_turn_id: Option<Id>,
}

/// The source of a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PageMeta {
    /// The context.
    pub context_id: Id,
    /// Its head when the page was read.
    pub head_turn_id: Id,
    /// The head's depth.
    pub head_depth: u32,
    /// The last bundle that the registry accepted; null before the first.
    #[schema(required = true)]
    pub registry_bundle_id: Option<String>,
}

/// A turn. Which of the optional fields it holds depends on `view`; a turn that could not be
/// projected has `error` and the fields of the raw view instead of `decoded_as` and `data`.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Its id.
    pub turn_id: Id,
    /// Its parent, `"0"` for none.
    pub parent_turn_id: Id,
    /// Its depth.
    pub depth: u32,
    /// The context that it was appended to.
    pub context_id: Id,
    /// When it was appended.
    // A text, because `Time` is only written.
    #[schema(value_type = Time)]
    pub created_at: String,
    /// The type that its writer declared.
    pub declared_type: TypeName,
    /// The root of its filesystem tree, if one is attached.
    #[schema(nullable = false)]
    pub fs_root_hash: Option<Hash>,
    /// The type by which `data` was made.
    #[schema(nullable = false)]
    pub decoded_as: Option<TypeName>,
    /// The payload by field names.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub data: Option<Map<String, Value>>,
    /// What the descriptor does not know, by tag; present exactly when asked for.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub unknown: Option<Map<String, Value>>,
    /// What was odd about the payload.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<Warning>>,
    /// Why the payload cannot be projected.
    #[schema(nullable = false)]
    pub error: Option<TurnError>,
    /// The payload's hash.
    #[schema(nullable = false)]
    pub content_hash_b3: Option<Hash>,
    /// The payload's encoding; 1 is msgpack.
    #[schema(nullable = false)]
    pub encoding: Option<u32>,
    /// Always 0: the bytes below are uncompressed.
    #[schema(nullable = false)]
    pub compression: Option<u32>,
    /// The payload's length.
    #[schema(nullable = false)]
    pub uncompressed_len: Option<u32>,
    /// The payload with `bytes_render=base64`.
    #[schema(nullable = false)]
    pub bytes_b64: Option<String>,
    /// The payload with `bytes_render=hex`.
    #[schema(nullable = false)]
    pub bytes_hex: Option<String>,
    /// The payload's length with `bytes_render=len_only`.
    #[schema(nullable = false)]
    pub bytes_len: Option<u32>,
}

/// A type id with a version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeName {
    /// The type id; empty if the writer declared nothing.
    pub type_id: String,
    /// The version.
    pub type_version: u32,
}

/// Something odd about a payload that did not stop its projection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
pub struct Warning {
    /// The tag at `path`; null under a key that is no tag, text beyond 2^53 - 1.
    #[schema(schema_with = tag_schema)]
    pub tag: Value,
    /// Where in the payload.
    pub path: String,
    /// What is odd.
    pub message: String,
}

fn tag_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([
            Type::Integer,
            Type::String,
            Type::Null,
        ]))
        .description(Some(
            "The tag at `path`; null under a key that is no tag, text beyond 2^53 - 1.",
        ))
        .build()
}

/// Why one turn of a page cannot be projected.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnError {
    /// The word that programs compare.
    pub code: String,
    /// The status of `GET /v1/turns/{turn_id}`.
    pub status: u16,
    /// The fault.
    pub message: String,
}
