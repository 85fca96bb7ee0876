//! The JSON of runs: snapshots, events, requests and responses under `/api` and `/ws`.
//!
//! Names are camelCase. Ids are UUIDs as text, times are RFC 3339 in UTC. A field without a value is
//! left out, except in patches, where null says that a field lost its value. A request ignores
//! fields that it does not know. The server validates requests; these types only describe them.
//!
//! [`schemas`] makes one JSON Schema for each event, request and response from these types, so a
//! schema can never differ from what the server reads and writes.
//!
//! The doc comments of these types are the descriptions in the schemas.

#![expect(
    missing_docs,
    reason = "a field whose name says everything has no comment"
)]

/// Declares shapes in camelCase: structs whose fields are all public.
///
/// A field under `optional` may be left out. A field under `clearable` belongs to a change: it may
/// be left out, and null removes the value.
macro_rules! shapes {
    ($(
        $(#[$doc:meta])*
        struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }
        $(optional { $($(#[$optional_doc:meta])* $optional:ident: $optional_kind:ty,)* })?
        $(clearable { $($(#[$clearable_doc:meta])* $clearable:ident: $clearable_kind:ty,)* })?
    )*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
            #[serde(rename_all = "camelCase")]
            $(#[$doc])*
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
                $($(
                    $(#[$optional_doc])*
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    pub $optional: Option<$optional_kind>,
                )*)?
                $($(
                    $(#[$clearable_doc])*
                    #[serde(
                        default,
                        deserialize_with = "crate::runs::scalar::read_clearable",
                        skip_serializing_if = "Option::is_none"
                    )]
                    #[schema(value_type = Option<$clearable_kind>)]
                    pub $clearable: Option<Option<$clearable_kind>>,
                )*)?
            }
        )*
    };
}

mod answer;
mod approval;
mod event;
#[cfg(any(test, feature = "dev"))]
pub mod exchange_check;
mod graph_file;
mod handoff;
mod node;
mod request;
mod run;
mod scalar;
#[cfg(any(test, feature = "dev"))]
pub mod schema_check;
mod schemas;
mod tool_args;
mod words;

pub use answer::*;
pub use approval::*;
pub use event::*;
pub use graph_file::*;
pub use handoff::*;
pub use node::*;
pub use request::*;
pub use run::*;
pub use scalar::UuidText;
pub use schemas::{SchemaKind, schemas};
pub use tool_args::*;
pub use words::*;
