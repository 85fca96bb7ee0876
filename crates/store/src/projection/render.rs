//! Rendering: msgpack in, JSON text out, in one pass, by a descriptor.
//!
//! A value that fits its shape is rendered by the shape. Any other value is rendered without a
//! shape and adds a warning. The pass fails only if the bytes cannot be decoded, if the text would
//! exceed `RENDER_BYTES_MAX`, or if it would take more memory than the caller allows.
//!
//! Worked example: the descriptor has tag 1 `role` (u8, enum) and tag 2 `text` (string), and the
//! payload is `{1: 2, 2: "hi", 9: true}`. The pass reads key 1, writes `"role":` and the label of
//! 2, then `"text":"hi"`. Tag 9 is unknown: it is skipped or, if the reader wants it, written to a
//! second sink.

use std::collections::HashSet;
use std::sync::Arc;

use turnkeep_types::msgpack::Token;
use turnkeep_types::rfc3339::format_rfc3339;

use super::options::{EnumRender, IncludeUnknown, ProjectionOptions, TimeRender, U64Format};
use super::payload_reader::PayloadReader;
use super::resolve::Resolver;
use super::sink::{Object, Sink};
use super::text::{push_bytes, push_f32, push_f64, push_int, push_int_string, push_safe_int};
use super::warning::{Path, Step, Warnings, push_key};
use super::{ProjectionError, WriteError};
use crate::registry::{
    Field, IntKind, Kind, MapShape, Registry, Semantic, Shape, TypeVersion, canonical_number,
    push_string,
};

/// The longest text of one payload. Long field names can turn a short payload into a long text.
pub(super) const RENDER_BYTES_MAX: usize = 128 << 20;
/// What one tag in the set of unknown tags takes, about: 8 bytes, a control byte, and the free slots
/// of a hash set that just grew.
const UNKNOWN_TAG_BYTES: usize = 24;

/// Renders one payload.
#[derive(Debug)]
pub(super) struct Renderer<'a> {
    pub(super) names: Resolver<'a>,
    pub(super) options: &'a ProjectionOptions,
    pub(super) write_error: WriteError,
    /// The text that values are appended to.
    pub(super) sink: Sink,
    /// The text of entries that no descriptor names; `None` if the reader does not want them.
    unknown: Option<UnknownSink>,
    pub(super) path: Path<'a>,
    warnings: Warnings,
    /// Tags in the sets of unknown tags of all open objects.
    unknown_tags: usize,
    /// How much memory the texts and everything beside them may take together.
    memory_bytes_max: usize,
}

/// Entries without a descriptor, as one JSON object under construction.
#[derive(Debug)]
struct UnknownSink {
    sink: Sink,
    object: Object,
}

/// A rendered payload.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) data: String,
    pub(super) unknown: Option<String>,
    pub(super) warnings: Vec<super::Warning>,
}

/// The result of each step: the text goes to the sink.
type Pass = Result<(), ProjectionError>;

impl<'a> Renderer<'a> {
    pub(super) fn new(
        registry: &'a Registry,
        options: &'a ProjectionOptions,
        write_error: WriteError,
        memory_bytes_max: usize,
    ) -> Self {
        let unknown = (options.include_unknown == IncludeUnknown::Yes).then(|| {
            let mut sink = Sink::default();
            let object = sink.open();
            UnknownSink { sink, object }
        });
        Self {
            names: Resolver::new(registry),
            options,
            write_error,
            sink: Sink::default(),
            unknown,
            path: Path::default(),
            warnings: Warnings::default(),
            unknown_tags: 0,
            memory_bytes_max,
        }
    }

    /// Renders a whole payload by a descriptor.
    pub(super) fn render_payload(
        &mut self,
        bytes: &'a [u8],
        version: &'a TypeVersion,
        depth: usize,
    ) -> Pass {
        let mut reader = PayloadReader::new(bytes);
        let count = reader.read_payload_header()?;
        // JSON text is mostly a little longer than msgpack. One allocation then suffices.
        self.sink.out.reserve(bytes.len() + bytes.len() / 4);
        self.render_object(&mut reader, count, version, depth)?;
        Ok(reader.finish()?)
    }

    pub(super) fn finish(self) -> Rendered {
        let unknown = self.unknown.map(|mut unknown| {
            unknown.sink.close(&unknown.object);
            unknown.sink.finish()
        });
        Rendered {
            data: self.sink.finish(),
            unknown,
            warnings: self.warnings.finish(),
        }
    }

    pub(super) fn warn(&mut self, message: impl FnOnce() -> String) {
        self.warnings.add(&self.path, message);
    }

    fn check_length(&self) -> Pass {
        // Checked after each entry, so the text exceeds a limit by one value at most.
        if self.sink.out.len() > RENDER_BYTES_MAX {
            return Err(ProjectionError::TooLarge {
                max: RENDER_BYTES_MAX,
            });
        }
        if self.held_bytes() > self.memory_bytes_max {
            return Err(ProjectionError::TooLarge {
                max: self.memory_bytes_max,
            });
        }
        Ok(())
    }

    /// About how much memory the pass holds now.
    fn held_bytes(&self) -> usize {
        let unknown = self.unknown.as_ref();
        self.sink.held_bytes()
            + unknown.map_or(0, |unknown| unknown.sink.held_bytes())
            + self.unknown_tags * UNKNOWN_TAG_BYTES
    }

    /// Renders an object whose header was just read, inside a container at `depth`.
    fn render_object(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: u32,
        version: &'a TypeVersion,
        depth: usize,
    ) -> Pass {
        let depth = depth + 1;
        reader.check_depth(depth)?;
        let mut object = self.sink.open();
        let mut unknown_tags = HashSet::new();
        for _ in 0..count {
            let key = reader.read_key(depth)?;
            let tag = parse_tag(key);
            if let Some(field) = tag.and_then(|tag| version.field(tag)) {
                self.render_field(reader, &mut object, field, depth)?;
                continue;
            }
            // Known tags are compared in the sink; unknown ones need a set of their own.
            let again = tag.is_some_and(|tag| !unknown_tags.insert(tag));
            self.unknown_tags += usize::from(tag.is_some() && !again);
            self.render_unknown_entry(reader, key, again, depth)?;
        }
        self.unknown_tags -= unknown_tags.len();
        self.sink.close(&object);
        Ok(())
    }

    fn render_field(
        &mut self,
        reader: &mut PayloadReader<'a>,
        object: &mut Object,
        field: &'a Field,
        depth: usize,
    ) -> Pass {
        self.path.0.push(Step::Field(field));
        let start = self.sink.out.len();
        self.sink.out.push_str(&field.key_text);
        if self.sink.end_key(object, start) {
            self.warn(|| {
                format!(
                    "tag {} occurs more than once; the last value is shown",
                    field.tag
                )
            });
        }
        self.render_value(reader, &field.shape, depth)?;
        self.sink.end_entry();
        self.path.0.pop();
        self.check_length()
    }

    /// Renders an entry that no descriptor names into the second sink, or skips it.
    pub(super) fn render_unknown_entry(
        &mut self,
        reader: &mut PayloadReader<'a>,
        key: Token<'a>,
        again: bool,
        depth: usize,
    ) -> Pass {
        let tag = parse_tag(key);
        let step = tag.map_or(Step::Key(key), Step::Unknown);
        if again {
            self.path.0.push(step);
            self.warn(|| {
                format!(
                    "tag {} occurs more than once; the last value counts",
                    tag.unwrap_or(0)
                )
            });
            self.path.0.pop();
        }
        let Some(mut unknown) = self.unknown.take() else {
            reader.skip_value(depth)?;
            return self.check_length();
        };
        // All rendering appends to `self.sink`, so the two sinks trade places meanwhile.
        std::mem::swap(&mut self.sink, &mut unknown.sink);
        let start = self.sink.out.len();
        self.push_unknown_key(key);
        self.path.0.push(step);
        if self.sink.end_key(&mut unknown.object, start) && !again {
            self.warn(|| {
                "an unknown key occurs more than once; the last value is shown".to_owned()
            });
        }
        let token = reader.read_token()?;
        self.render_plain(reader, token, depth)?;
        self.path.0.pop();
        self.sink.end_entry();
        self.check_length()?;
        std::mem::swap(&mut self.sink, &mut unknown.sink);
        self.unknown = Some(unknown);
        Ok(())
    }

    fn push_unknown_key(&mut self, key: Token<'a>) {
        if self.path.0.is_empty() {
            push_key(&mut self.sink.out, key, self.options.bytes_render);
        } else {
            // The key of a nested entry is its whole path: `"author.9"`. Both parts are quoted
            // separately, then joined without the inner quotes.
            let mut quoted = String::new();
            push_key(&mut quoted, key, self.options.bytes_render);
            push_string(&mut self.sink.out, &format!("{}.", self.path.to_text()));
            self.sink.out.pop();
            self.sink.out.push_str(quoted.get(1..).unwrap_or_default());
        }
        self.sink.out.push(':');
    }

    fn render_value(
        &mut self,
        reader: &mut PayloadReader<'a>,
        shape: &'a Shape,
        depth: usize,
    ) -> Pass {
        let token = reader.read_token()?;
        match (&shape.kind, token) {
            // Any field may be nil, also one that is not optional.
            (_, Token::Nil) => self.sink.out.push_str("null"),
            (Kind::Int(kind), Token::Int(number)) if kind.range().contains(&number) => {
                self.render_int(*kind, shape, number);
            }
            // As the shortest text of an `f32`: 0.1, and not the 0.10000000149011612 of its `f64`.
            (Kind::F32, Token::F32(number)) => push_f32(&mut self.sink.out, number),
            (Kind::Any, _)
            | (Kind::Bool, Token::Bool(_))
            | (Kind::F32 | Kind::F64, Token::F32(_) | Token::F64(_) | Token::Int(_))
            | (Kind::String, Token::Str(_))
            | (Kind::Bytes, Token::Bin(_)) => self.render_plain(reader, token, depth)?,
            (Kind::Array(items), Token::Array(count)) => {
                self.render_array(reader, count, Some(items), depth)?;
            }
            (Kind::Map(map), Token::Map(count)) => {
                self.render_map(reader, count, Some(map), depth)?;
            }
            (Kind::TypedBlob, Token::Map(count)) => self.render_typed_blob(reader, count, depth)?,
            (Kind::Type(id), Token::Map(count)) => self.render_nested(reader, count, id, depth)?,
            (kind, token) => self.render_mismatch(reader, kind, token, depth)?,
        }
        Ok(())
    }

    pub(super) fn render_mismatch(
        &mut self,
        reader: &mut PayloadReader<'a>,
        kind: &Kind,
        token: Token<'a>,
        depth: usize,
    ) -> Pass {
        let expected = kind_name(kind);
        self.warn(|| match token {
            // Both are integers, so only the number itself shows that it is out of range.
            Token::Int(number) if matches!(kind, Kind::Int(_)) => {
                format!("the descriptor says {expected}, the payload has {number}")
            }
            _ => {
                let actual = token.kind();
                format!("the descriptor says {expected}, the payload has {actual}")
            }
        });
        self.render_plain(reader, token, depth)
    }

    fn render_nested(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: u32,
        id: &'a Arc<str>,
        depth: usize,
    ) -> Pass {
        match self.names.latest(id) {
            Some(version) => self.render_object(reader, count, version, depth),
            // Accepted bundles name only published types. If one is missing after all, a plain value
            // is better than an error.
            None => self.render_plain(reader, Token::Map(count), depth),
        }
    }

    /// Renders an array whose header was just read. Without `items`, its values have no shape.
    fn render_array(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: u32,
        items: Option<&'a Shape>,
        depth: usize,
    ) -> Pass {
        reader.check_depth(depth + 1)?;
        self.sink.out.push('[');
        for index in 0..count {
            self.path.0.push(Step::Index(index));
            self.render_item(reader, items, depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
            self.check_length()?;
        }
        self.sink.close_with(']');
        Ok(())
    }

    /// Renders a map whose header was just read. Without `map`, its entries have no shape.
    fn render_map(
        &mut self,
        reader: &mut PayloadReader<'a>,
        count: u32,
        map: Option<&'a MapShape>,
        depth: usize,
    ) -> Pass {
        reader.check_depth(depth + 1)?;
        let mut object = self.sink.open();
        for _ in 0..count {
            let key = reader.read_key(depth + 1)?;
            self.path.0.push(Step::Key(key));
            // A key of the wrong type is shown all the same: JSON turns every key into a string.
            if let Some(map) = map
                && !key_fits(&map.key.kind, key)
            {
                let expected = kind_name(&map.key.kind);
                self.warn(|| format!("the descriptor says that keys are {expected}"));
            }
            self.push_entry_key(&mut object, key);
            self.render_item(reader, map.map(|map| &map.value), depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
            self.check_length()?;
        }
        self.sink.close(&object);
        Ok(())
    }

    /// Renders the next value by its shape, if it has one.
    fn render_item(
        &mut self,
        reader: &mut PayloadReader<'a>,
        shape: Option<&'a Shape>,
        depth: usize,
    ) -> Pass {
        if let Some(shape) = shape {
            return self.render_value(reader, shape, depth);
        }
        let token = reader.read_token()?;
        self.render_plain(reader, token, depth)
    }

    fn push_entry_key(&mut self, object: &mut Object, key: Token<'a>) {
        let start = self.sink.out.len();
        push_key(&mut self.sink.out, key, self.options.bytes_render);
        self.sink.out.push(':');
        if self.sink.end_key(object, start) {
            self.warn(|| "a key occurs more than once; the last value is shown".to_owned());
        }
        if matches!(key, Token::Str(text) if std::str::from_utf8(text).is_err()) {
            self.warn(|| "a key is not UTF-8; its bytes are shown".to_owned());
        }
    }

    fn render_int(&mut self, kind: IntKind, shape: &'a Shape, number: i128) {
        if let Some(id) = &shape.enum_id {
            return self.render_enum(id, number);
        }
        match shape.semantic {
            Some(Semantic::UnixMs) => self.render_time(number),
            // No overflow: the number has at most 64 bits.
            Some(Semantic::UnixS) => self.render_time(number * 1000),
            // JavaScript reads JSON numbers as doubles, which are exact only up to 2^53.
            _ if kind.is_wide() && self.options.u64_format == U64Format::String => {
                push_int_string(&mut self.sink.out, number);
            }
            _ => push_int(&mut self.sink.out, number),
        }
    }

    fn render_enum(&mut self, id: &'a Arc<str>, number: i128) {
        let label = self
            .names
            .enum_table(id)
            .and_then(|table| table.label(number));
        let out = &mut self.sink.out;
        match (self.options.enum_render, label) {
            (EnumRender::Label, Some(label)) => push_string(out, label),
            (EnumRender::Label, None) | (EnumRender::Number, _) => push_safe_int(out, number),
            (EnumRender::Both, label) => {
                out.push_str("{\"label\":");
                match label {
                    Some(label) => push_string(out, label),
                    None => out.push_str("null"),
                }
                out.push_str(",\"value\":");
                push_safe_int(out, number);
                out.push('}');
            }
        }
    }

    fn render_time(&mut self, unix_ms: i128) {
        let text = match self.options.time_render {
            TimeRender::Iso => format_rfc3339(unix_ms),
            TimeRender::UnixMs => None,
        };
        match text {
            Some(text) => push_string(&mut self.sink.out, &text),
            None => push_int(&mut self.sink.out, unix_ms),
        }
    }

    /// Renders a token without a shape.
    pub(super) fn render_plain(
        &mut self,
        reader: &mut PayloadReader<'a>,
        token: Token<'a>,
        depth: usize,
    ) -> Pass {
        let out = &mut self.sink.out;
        match token {
            Token::Nil => out.push_str("null"),
            Token::Bool(flag) => out.push_str(if flag { "true" } else { "false" }),
            Token::Int(number) => push_safe_int(out, number),
            Token::F32(number) => push_f64(out, number.into()),
            Token::F64(number) => push_f64(out, number),
            Token::Str(raw) => self.render_text(raw),
            Token::Bin(raw) => push_bytes(out, raw, self.options.bytes_render),
            Token::Ext(kind, raw) => self.render_ext(kind, raw),
            Token::Array(count) => self.render_array(reader, count, None, depth)?,
            Token::Map(count) => self.render_map(reader, count, None, depth)?,
        }
        Ok(())
    }

    fn render_text(&mut self, raw: &[u8]) {
        if let Ok(text) = std::str::from_utf8(raw) {
            return push_string(&mut self.sink.out, text);
        }
        self.warn(|| "the string is not UTF-8; its bytes are shown".to_owned());
        push_bytes(&mut self.sink.out, raw, self.options.bytes_render);
    }

    fn render_ext(&mut self, kind: i8, raw: &[u8]) {
        self.sink.out.push_str("{\"ext\":");
        push_int(&mut self.sink.out, kind.into());
        self.sink.out.push_str(",\"data\":");
        push_bytes(&mut self.sink.out, raw, self.options.bytes_render);
        self.sink.out.push('}');
    }
}

/// The tag of a key: a non-negative integer, or a string of digits without leading zeros.
pub(super) fn parse_tag(key: Token<'_>) -> Option<u64> {
    match key {
        Token::Int(number) => u64::try_from(number).ok(),
        Token::Str(text) => canonical_number(std::str::from_utf8(text).ok()?),
        _ => None,
    }
}

fn key_fits(kind: &Kind, key: Token<'_>) -> bool {
    match (kind, key) {
        (Kind::Int(kind), Token::Int(number)) => kind.range().contains(&number),
        (Kind::Bool, Token::Bool(_))
        | (Kind::String, Token::Str(_))
        | (Kind::Bytes, Token::Bin(_))
        | (Kind::Any, _) => true,
        _ => false,
    }
}

/// A type's name, for messages.
pub(super) fn kind_name(kind: &Kind) -> &str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int(IntKind::I8) => "i8",
        Kind::Int(IntKind::I16) => "i16",
        Kind::Int(IntKind::I32) => "i32",
        Kind::Int(IntKind::I64) => "i64",
        Kind::Int(IntKind::U8) => "u8",
        Kind::Int(IntKind::U16) => "u16",
        Kind::Int(IntKind::U32) => "u32",
        Kind::Int(IntKind::U64) => "u64",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Array(_) => "array",
        Kind::Map(_) => "map",
        Kind::TypedBlob => "typed_blob",
        Kind::Any => "any",
        Kind::Type(id) => id,
    }
}
