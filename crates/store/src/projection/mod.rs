//! Projection: turns a payload's msgpack into JSON with field names, by a published descriptor.
//!
//! Everything here is a pure function. A payload is read and written in one pass, without a tree,
//! so hostile bytes cost time and memory in proportion to their length. A failure is a
//! [`ProjectionError`] of one payload: a bad turn never hides the other turns of a page.

mod encode;
#[cfg(any(test, feature = "dev"))]
pub mod fuzz;
mod options;
mod payload_reader;
mod render;
mod resolve;
mod sink;
#[cfg(test)]
mod tests;
mod text;
mod typed_blob;
mod warning;

use std::sync::Arc;

use turnkeep_types::TypeRef;

pub use encode::{EncodeError, MissingFields, encode};
pub use options::{
    BytesRender, EnumRender, HintError, HintMode, IncludeUnknown, ProjectionOptions, TimeRender,
    TypeHint, U64Format, UnknownValue,
};
pub use payload_reader::DecodeFault;
pub use warning::Warning;

use crate::registry::{Registry, TypeVersion, push_string};
use render::Renderer;
use text::push_int;

/// The encoding that can be projected: msgpack.
pub const ENCODING_MSGPACK: u32 = 1;

/// A payload as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projected {
    /// The descriptor that was used.
    pub decoded_as: TypeRef,
    /// The payload as the text of a JSON object with field names.
    pub data: String,
    /// Entries that no descriptor names, as the text of a JSON object, if the options include them.
    pub unknown: Option<String>,
    /// Where the payload contradicts its descriptor.
    pub warnings: Vec<Warning>,
}

impl Projected {
    /// Appends the members `"decoded_as":…,"data":…` and, if present, `"unknown":…` and
    /// `"warnings":…`, without the braces around them.
    pub fn push_members(&self, out: &mut String) {
        out.push_str("\"decoded_as\":{\"type_id\":");
        push_string(out, &self.decoded_as.id);
        out.push_str(",\"type_version\":");
        push_int(out, self.decoded_as.version.into());
        out.push_str("},\"data\":");
        out.push_str(&self.data);
        if let Some(unknown) = &self.unknown {
            out.push_str(",\"unknown\":");
            out.push_str(unknown);
        }
        self.push_warnings(out);
    }

    fn push_warnings(&self, out: &mut String) {
        for (index, warning) in self.warnings.iter().enumerate() {
            out.push_str(if index == 0 { ",\"warnings\":[" } else { "," });
            warning.push_json(out);
        }
        if !self.warnings.is_empty() {
            out.push(']');
        }
    }
}

/// Why a payload cannot be projected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// The reader named another type than the turn's.
    #[error("the turn is declared as {declared} and cannot be read as {requested}")]
    Conflict {
        /// The type that the writer declared.
        declared: TypeRef,
        /// The type that the reader named.
        requested: TypeRef,
    },
    /// Neither the writer nor the reader named a type.
    #[error("the turn has no declared type: name one with type_hint_mode=explicit")]
    MissingTypeHint,
    /// The descriptor is not published.
    #[error("type {0} is not published")]
    FailedDependency(TypeRef),
    /// The bytes cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeFault),
    /// The JSON text would exceed the limit of one payload.
    #[error("the payload becomes more than {max} bytes of JSON")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
}

/// Appends an error as a JSON value. The caller supplies it, because the codes of errors belong to
/// the interface that shows them.
pub type WriteError = fn(&mut String, &ProjectionError);

/// Projects a payload that was declared as `declared` and is encoded as `encoding`. The failure of
/// a payload inside this payload is shown in its place, by `write_error`.
pub fn project(
    registry: &Registry,
    declared: &TypeRef,
    encoding: u32,
    payload: &[u8],
    options: &ProjectionOptions,
    write_error: WriteError,
) -> Result<Projected, ProjectionError> {
    project_within(
        registry,
        declared,
        encoding,
        payload,
        options,
        write_error,
        usize::MAX,
    )
}

/// Does the same, but fails with [`ProjectionError::TooLarge`] once the text and everything beside
/// it take more than about `memory_bytes_max`: a label can be hundreds of times as long as the
/// number that stands for it.
pub fn project_within(
    registry: &Registry,
    declared: &TypeRef,
    encoding: u32,
    payload: &[u8],
    options: &ProjectionOptions,
    write_error: WriteError,
    memory_bytes_max: usize,
) -> Result<Projected, ProjectionError> {
    let version = choose_descriptor(registry, declared, &options.hint)?;
    if encoding != ENCODING_MSGPACK {
        return Err(DecodeFault::Encoding(encoding).into());
    }
    let mut renderer = Renderer::new(registry, options, write_error, memory_bytes_max);
    renderer.render_payload(payload, version, 0)?;
    let rendered = renderer.finish();
    Ok(Projected {
        decoded_as: version.type_ref.clone(),
        data: rendered.data,
        unknown: rendered.unknown,
        warnings: rendered.warnings,
    })
}

/// Chooses the descriptor for a payload that was declared as `declared`.
fn choose_descriptor<'r>(
    registry: &'r Registry,
    declared: &TypeRef,
    hint: &TypeHint,
) -> Result<&'r Arc<TypeVersion>, ProjectionError> {
    let (found, wanted) = match hint {
        TypeHint::Explicit(requested) if declared.is_declared() && declared.id != requested.id => {
            let (declared, requested) = (declared.clone(), requested.clone());
            return Err(ProjectionError::Conflict {
                declared,
                requested,
            });
        }
        TypeHint::Explicit(requested) => (
            registry.descriptor(&requested.id, requested.version),
            requested,
        ),
        _ if !declared.is_declared() => return Err(ProjectionError::MissingTypeHint),
        TypeHint::Inherit => (
            registry.descriptor(&declared.id, declared.version),
            declared,
        ),
        TypeHint::Latest => (registry.latest(&declared.id), declared),
    };
    found.ok_or_else(|| ProjectionError::FailedDependency(wanted.clone()))
}
