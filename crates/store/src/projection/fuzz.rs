//! Projection of arbitrary bytes. The fuzz target and a short test call it.

use std::sync::OnceLock;

use turnkeep_types::TypeRef;

use super::payload_reader::NESTING_MAX;
use super::{
    BytesRender, ENCODING_MSGPACK, EnumRender, IncludeUnknown, Projected, ProjectionError,
    ProjectionOptions, TimeRender, TypeHint, U64Format, project,
};
use crate::registry::{Registry, parse_json, push_string};

/// A bundle with a field of every kind.
const SAMPLE: &str = include_str!("../../../../testdata/payloads/sample-bundle.json");

/// A registry with a field of every kind; [`sample_type`] is the type to begin with.
///
/// # Panics
/// If the sample bundle is not legal, which a test excludes.
pub fn sample_registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::default();
        registry
            .put("sample", SAMPLE.as_bytes())
            .expect("the sample bundle is legal");
        registry
    })
}

/// The type of [`sample_registry`] that has a field of every kind.
pub fn sample_type() -> TypeRef {
    TypeRef::new("test.Everything", 2)
}

/// Projects arbitrary bytes with the sample type in two opposite ways, and asserts what holds for
/// every input: the result is JSON, and both ways fail or succeed together.
pub fn project_any(bytes: &[u8]) {
    let browser = ProjectionOptions::default();
    let debugger = ProjectionOptions {
        hint: TypeHint::Latest,
        include_unknown: IncludeUnknown::Yes,
        bytes_render: BytesRender::Hex,
        u64_format: U64Format::Number,
        enum_render: EnumRender::Both,
        time_render: TimeRender::UnixMs,
    };
    let answers = [&browser, &debugger].map(|options| {
        project(
            sample_registry(),
            &sample_type(),
            ENCODING_MSGPACK,
            bytes,
            options,
            write_message,
        )
        .inspect(assert_json)
    });
    assert_eq!(answers[0].as_ref().err(), answers[1].as_ref().err());
}

/// Shows an inner error by its message alone.
pub(super) fn write_message(out: &mut String, error: &ProjectionError) {
    push_string(out, &error.to_string());
}

fn assert_json(projected: &Projected) {
    let mut text = String::from("{");
    projected.push_members(&mut text);
    text.push('}');
    // The strict reader also rejects a key that occurs twice.
    let read = parse_json(text.as_bytes(), 2 * NESTING_MAX);
    assert!(read.is_ok(), "a projection is JSON: {read:?}");
}
