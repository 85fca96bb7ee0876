//! Typed blobs: a payload inside a payload, `{1: type id, 2: version, 3: bytes}`.
//!
//! The inner payload is validated before it is rendered, so that a bad one is shown as bytes with
//! an error and nothing half-written is left; validation does not look into blobs inside the blob.

use turnkeep_types::TypeRef;

use super::ProjectionError;
use super::msgpack::{Reader, Token, validate};
use super::render::{Renderer, tag_of};
use super::text::{push_bytes, push_int};
use super::warning::Step;
use crate::registry::{Kind, TypeVersion, push_string};

/// The three parts of a typed blob, as far as they were found.
#[derive(Default)]
struct Parts<'a> {
    type_id: Option<&'a str>,
    version: Option<u32>,
    bytes: Option<&'a [u8]>,
}

impl<'a> Renderer<'a> {
    /// Renders a typed blob whose map's head was just read.
    pub(super) fn typed_blob(
        &mut self,
        reader: &mut Reader<'a>,
        count: u32,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        let begun = reader.clone();
        let parts = read_parts(reader, count, depth + 1)?;
        let Parts {
            type_id: Some(type_id),
            version: Some(version),
            bytes: Some(bytes),
        } = parts
        else {
            *reader = begun;
            return self.contradiction(reader, &Kind::TypedBlob, Token::Map(count), depth);
        };
        self.extra_parts(begun, count, depth + 1)?;
        self.sink.out.push_str("{\"type_id\":");
        push_string(&mut self.sink.out, type_id);
        self.sink.out.push_str(",\"type_version\":");
        push_int(&mut self.sink.out, version.into());
        match self.inner(type_id, version, bytes, depth + 1) {
            Ok(descriptor) => self.inner_data(bytes, descriptor, depth + 1)?,
            Err(error) => self.inner_error(&error, bytes),
        }
        self.sink.out.push('}');
        Ok(())
    }

    /// Shows what is beside the three parts as unknown.
    fn extra_parts(
        &mut self,
        mut reader: Reader<'a>,
        count: u32,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        for _ in 0..count {
            let key = reader.key(depth)?;
            match tag_of(key) {
                Some(1..=3) => reader.skip(depth)?,
                _ => self.unknown_entry(&mut reader, (key, tag_of(key)), false, depth)?,
            }
        }
        Ok(())
    }

    /// The descriptor of an inner payload that can be rendered.
    fn inner(
        &self,
        type_id: &str,
        version: u32,
        bytes: &[u8],
        depth: usize,
    ) -> Result<&'a TypeVersion, ProjectionError> {
        if type_id.is_empty() {
            return Err(ProjectionError::MissingTypeHint);
        }
        let registry = self.names.registry;
        let descriptor = registry.descriptor(type_id, version);
        let missing = || ProjectionError::FailedDependency(TypeRef::new(type_id, version));
        let descriptor = descriptor.ok_or_else(missing)?;
        validate(bytes, depth)?;
        Ok(descriptor)
    }

    fn inner_data(
        &mut self,
        bytes: &'a [u8],
        descriptor: &'a TypeVersion,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        self.sink.out.push_str(",\"data\":");
        self.path.0.push(Step::Data);
        self.payload(bytes, descriptor, depth)?;
        self.path.0.pop();
        Ok(())
    }

    fn inner_error(&mut self, error: &ProjectionError, bytes: &[u8]) {
        self.sink.out.push_str(",\"error\":");
        error.push_json(&mut self.sink.out);
        self.sink.out.push_str(",\"bytes\":");
        push_bytes(&mut self.sink.out, bytes, self.options.bytes_render);
    }
}

/// Reads the map of a typed blob; the last of each part counts, as everywhere.
fn read_parts<'a>(
    reader: &mut Reader<'a>,
    count: u32,
    depth: usize,
) -> Result<Parts<'a>, ProjectionError> {
    reader.enter(depth)?;
    let mut parts = Parts::default();
    for _ in 0..count {
        let tag = tag_of(reader.key(depth)?);
        let token = reader.token()?;
        match (tag, token) {
            (Some(1), Token::Str(text)) => parts.type_id = std::str::from_utf8(text).ok(),
            (Some(2), Token::Int(number)) => parts.version = u32::try_from(number).ok(),
            (Some(3), Token::Bin(bytes)) => parts.bytes = Some(bytes),
            (Some(1), _) => parts.type_id = None,
            (Some(2), _) => parts.version = None,
            (Some(3), _) => parts.bytes = None,
            _ => {}
        }
        reader.skip_parts(token, depth)?;
    }
    Ok(parts)
}
