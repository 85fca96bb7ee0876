//! The ledger's shapes as the gateway describes them: worlds, people and tokens, envelopes and
//! bundles, projections, tool requests and packs.
//!
//! These describe and read back what the ledger says; what may come in is judged by the ledger
//! itself, which says where a fault is. Only envelopes may hold more than these fields. Times are
//! texts as they were given, ids are opaque.

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
