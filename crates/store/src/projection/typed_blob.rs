//! Typed blobs: a payload inside a payload, `{1: type id, 2: version, 3: bytes}`.
//!
//! The inner payload is validated before it is rendered. An invalid one is shown as bytes with an
//! error, so no half-rendered text remains. Validation does not look into typed blobs inside it.

use turnkeep_types::TypeRef;
use turnkeep_types::msgpack::Token;

use super::ProjectionError;
use super::payload_reader::{PayloadReader, validate};
use super::render::{Renderer, parse_tag};
use super::text::{push_bytes, push_int};
use super::warning::Step;
use crate::registry::{Kind, TypeVersion, push_string};

/// The parts of a typed blob that were found.
#[derive(Default)]
struct TypedBlobParts<'a> {
    type_id: Option<&'a str>,
    version: Option<u32>,
    bytes: Option<&'a [u8]>,
}

impl<'a> Renderer<'a> {
    /// Renders a typed blob whose map's head was just read.
    pub(super) fn render_typed_blob(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: u32,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        let contents = reader.clone();
        let parts = read_parts(reader, count, depth + 1)?;
        let TypedBlobParts {
            type_id: Some(type_id),
            version: Some(version),
            bytes: Some(bytes),
        } = parts
        else {
            // Not a typed blob: render the map again from its first entry, without a shape.
            *reader = contents;
            return self.render_mismatch(reader, &Kind::TypedBlob, Token::Map(count), depth);
        };
        self.render_extra_parts(contents, count, depth + 1)?;
        self.sink.out.push_str("{\"type_id\":");
        push_string(&mut self.sink.out, type_id);
        self.sink.out.push_str(",\"type_version\":");
        push_int(&mut self.sink.out, version.into());
        match self.find_inner_descriptor(type_id, version, bytes, depth + 1) {
            Ok(descriptor) => self.render_inner_data(bytes, descriptor, depth + 1)?,
            Err(error) => self.render_inner_error(&error, bytes),
        }
        self.sink.out.push('}');
        Ok(())
    }

    /// Renders entries other than the three parts as unknown.
    fn render_extra_parts(
        &mut self,
        mut reader: PayloadReader<'a>,
        count: u32,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        for _ in 0..count {
            let key = reader.read_key(depth)?;
            match parse_tag(key) {
                Some(1..=3) => reader.skip_value(depth)?,
                _ => self.render_unknown_entry(&mut reader, key, false, depth)?,
            }
        }
        Ok(())
    }

    /// Finds the descriptor of the inner payload and validates the payload.
    fn find_inner_descriptor(
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
        // Last, because it reads the whole payload.
        validate(bytes, depth)?;
        Ok(descriptor)
    }

    fn render_inner_data(
        &mut self,
        bytes: &'a [u8],
        descriptor: &'a TypeVersion,
        depth: usize,
    ) -> Result<(), ProjectionError> {
        self.sink.out.push_str(",\"data\":");
        self.path.0.push(Step::Data);
        self.render_payload(bytes, descriptor, depth)?;
        self.path.0.pop();
        Ok(())
    }

    fn render_inner_error(&mut self, error: &ProjectionError, bytes: &[u8]) {
        self.sink.out.push_str(",\"error\":");
        (self.write_error)(&mut self.sink.out, error);
        self.sink.out.push_str(",\"bytes\":");
        push_bytes(&mut self.sink.out, bytes, self.options.bytes_render);
    }
}

/// Reads the map of a typed blob. If a part occurs twice, the last one counts, as in every map.
fn read_parts<'a>(
    reader: &mut PayloadReader<'a>,
    count: u32,
    depth: usize,
) -> Result<TypedBlobParts<'a>, ProjectionError> {
    reader.check_depth(depth)?;
    let mut parts = TypedBlobParts::default();
    for _ in 0..count {
        let tag = parse_tag(reader.read_key(depth)?);
        let token = reader.read_token()?;
        match (tag, token) {
            (Some(1), Token::Str(text)) => parts.type_id = std::str::from_utf8(text).ok(),
            (Some(2), Token::Int(number)) => parts.version = u32::try_from(number).ok(),
            (Some(3), Token::Bin(bytes)) => parts.bytes = Some(bytes),
            // A later part of the wrong kind replaces an earlier one: the last one counts.
            (Some(1), _) => parts.type_id = None,
            (Some(2), _) => parts.version = None,
            (Some(3), _) => parts.bytes = None,
            _ => {}
        }
        reader.skip_contents(token, depth)?;
    }
    Ok(parts)
}
