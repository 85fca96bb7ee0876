//! JSON Schemas (draft 2020-12) of the shapes, each complete in itself.
//!
//! A schema covers what can be checked without the world: acceptance rejects everything that a
//! schema rejects, and more. Shapes that go both ways have one schema for each direction.

macro_rules! schemas {
    ($($name:literal,)*) => {
        /// The names of the schemas.
        pub const NAMES: &[&str] = &[$($name,)*];

        /// The schema of this name.
        pub fn schema(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../schemas/", $name, ".json"))),)*
                _ => None,
            }
        }
    };
}

schemas! {
    "invocation_envelope",
    "write_bundle",
    "write_bundle_proposal",
    "write_entry",
    "write_entry_proposal",
    "projection_output",
    "tool_request",
    "retrieval_result_pack",
    "scene_anchor_pack",
    "rehydration_pack",
    "capsule_pack",
}
