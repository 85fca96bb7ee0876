//! The JSON of the ledger: worlds, persons and tokens, envelopes and bundles, projections, tool
//! requests and packs.
//!
//! The server answers with these types about worlds, persons, tokens, views of the past and the
//! audit. The ledger itself makes projections, bundles and packs, because it records hashes of
//! them; for those, these types are the documentation and decode responses, and a test of the
//! server proves that both forms are equal. The ledger validates requests and reports the path of a
//! fault. Only envelopes may have further fields. Times are strings as the caller wrote them; ids
//! are opaque.

/// Declares shapes: structs whose fields are all public.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
            $(#[$doc])*
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
            }
        )*
    };
}

mod audit;
mod beat;
mod pack;
mod projection;
mod world;

pub use audit::*;
pub use beat::*;
pub use pack::*;
pub use projection::*;
pub use world::*;
