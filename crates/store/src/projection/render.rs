//! Rendering: msgpack in, JSON text out, in one pass, by a descriptor.
//!
//! A value that fits its shape is rendered by it; one that does not is rendered as it is, with a
//! warning. The pass fails only if the bytes are no payload or the text would grow beyond
//! `RENDER_BYTES_MAX`.

use std::collections::HashSet;
use std::sync::Arc;

use super::ProjectionError;
use super::msgpack::{Reader, Token};
use super::options::{EnumRender, IncludeUnknown, Options, TimeRender, U64Format};
use super::resolve::Resolver;
use super::sink::{Object, Sink};
use super::text::{push_bytes, push_f32, push_f64, push_int, push_int_string, push_safe_int};
use super::time;
use super::warning::{Path, Step, Warnings, push_key};
use crate::registry::{
    Field, IntKind, Kind, MapShape, Registry, Semantic, Shape, TypeVersion, canonical_number,
    push_string,
};

/// The most text that one payload may become. Long names in a descriptor make a lot of few bytes.
pub(super) const RENDER_BYTES_MAX: usize = 128 << 20;

/// Renders one payload.
#[derive(Debug)]
pub(super) struct Renderer<'a> {
    pub(super) names: Resolver<'a>,
    pub(super) options: &'a Options,
    /// Where values are written now.
    pub(super) sink: Sink,
    /// What no descriptor names, if it is asked for: the text and its outermost object.
    unknown: Option<(Sink, Object)>,
    pub(super) path: Path<'a>,
    warnings: Warnings,
}

/// What a payload became.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) data: String,
    pub(super) unknown: Option<String>,
    pub(super) warnings: Vec<super::Warning>,
}

/// What each step of the pass returns.
type Pass = Result<(), ProjectionError>;

impl<'a> Renderer<'a> {
    pub(super) fn new(registry: &'a Registry, options: &'a Options) -> Self {
        let unknown = (options.include_unknown == IncludeUnknown::Yes).then(|| {
            let mut sink = Sink::default();
            let object = sink.open();
            (sink, object)
        });
        let (sink, path, warnings) = (Sink::default(), Path::default(), Warnings::default());
        Self {
            names: Resolver::new(registry),
            options,
            sink,
            unknown,
            path,
            warnings,
        }
    }

    /// Renders a whole payload by a descriptor.
    pub(super) fn payload(
        &mut self,
        bytes: &'a [u8],
        version: &'a TypeVersion,
        depth: usize,
    ) -> Pass {
        let mut reader = Reader::new(bytes);
        let count = reader.payload()?;
        self.sink.out.reserve(bytes.len() + bytes.len() / 4);
        self.object(&mut reader, count, version, depth)?;
        Ok(reader.finish()?)
    }

    pub(super) fn finish(self) -> Rendered {
        let unknown = self.unknown.map(|(mut sink, object)| {
            sink.close(&object);
            sink.finish()
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

    fn bounded(&self) -> Pass {
        if self.sink.out.len() > RENDER_BYTES_MAX {
            return Err(ProjectionError::TooLarge {
                max: RENDER_BYTES_MAX,
            });
        }
        Ok(())
    }

    /// Renders an object whose head was just read, inside a container at `depth`.
    fn object(
        &mut self,
        reader: &mut Reader<'a>,
        count: u32,
        version: &'a TypeVersion,
        depth: usize,
    ) -> Pass {
        let depth = depth + 1;
        reader.enter(depth)?;
        let mut object = self.sink.open();
        let mut unknown_tags = HashSet::new();
        for _ in 0..count {
            let key = reader.key(depth)?;
            let tag = tag_of(key);
            if let Some(field) = tag.and_then(|tag| version.field(tag)) {
                self.field(reader, &mut object, field, depth)?;
                continue;
            }
            let again = tag.is_some_and(|tag| !unknown_tags.insert(tag));
            self.unknown_entry(reader, (key, tag), again, depth)?;
        }
        self.sink.close(&object);
        Ok(())
    }

    fn field(
        &mut self,
        reader: &mut Reader<'a>,
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
        self.value(reader, &field.shape, depth)?;
        self.sink.end_entry();
        self.path.0.pop();
        self.bounded()
    }

    /// Shows an entry that no descriptor names, under its path, if that is asked for.
    pub(super) fn unknown_entry(
        &mut self,
        reader: &mut Reader<'a>,
        (key, tag): (Token<'a>, Option<u64>),
        again: bool,
        depth: usize,
    ) -> Pass {
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
        let Some((mut sink, mut object)) = self.unknown.take() else {
            return Ok(reader.skip(depth)?);
        };
        std::mem::swap(&mut self.sink, &mut sink);
        let start = self.sink.out.len();
        self.push_unknown_key(key);
        self.path.0.push(step);
        if self.sink.end_key(&mut object, start) && !again {
            self.warn(|| {
                "an unknown key occurs more than once; the last value is shown".to_owned()
            });
        }
        let token = reader.token()?;
        self.plain(reader, token, depth)?;
        self.path.0.pop();
        self.sink.end_entry();
        self.bounded()?;
        std::mem::swap(&mut self.sink, &mut sink);
        self.unknown = Some((sink, object));
        Ok(())
    }

    fn push_unknown_key(&mut self, key: Token<'a>) {
        if self.path.0.is_empty() {
            push_key(&mut self.sink.out, key, self.options.bytes_render);
        } else {
            let mut quoted = String::new();
            push_key(&mut quoted, key, self.options.bytes_render);
            push_string(&mut self.sink.out, &format!("{}.", self.path.text()));
            self.sink.out.pop();
            self.sink.out.push_str(quoted.get(1..).unwrap_or_default());
        }
        self.sink.out.push(':');
    }

    fn value(&mut self, reader: &mut Reader<'a>, shape: &'a Shape, depth: usize) -> Pass {
        let token = reader.token()?;
        match (&shape.kind, token) {
            (_, Token::Nil) => self.sink.out.push_str("null"),
            (Kind::Int(kind), Token::Int(number)) if kind.range().contains(&number) => {
                self.int(*kind, shape, number);
            }
            (Kind::F32, Token::F32(number)) => push_f32(&mut self.sink.out, number),
            (Kind::Any, _)
            | (Kind::Bool, Token::Bool(_))
            | (Kind::F32 | Kind::F64, Token::F32(_) | Token::F64(_) | Token::Int(_))
            | (Kind::String, Token::Str(_))
            | (Kind::Bytes, Token::Bin(_)) => self.plain(reader, token, depth)?,
            (Kind::Array(items), Token::Array(count)) => self.array(reader, count, items, depth)?,
            (Kind::Map(map), Token::Map(count)) => self.map(reader, count, map, depth)?,
            (Kind::TypedBlob, Token::Map(count)) => self.typed_blob(reader, count, depth)?,
            (Kind::Type(id), Token::Map(count)) => self.nested(reader, count, id, depth)?,
            (kind, token) => self.contradiction(reader, kind, token, depth)?,
        }
        Ok(())
    }

    pub(super) fn contradiction(
        &mut self,
        reader: &mut Reader<'a>,
        kind: &Kind,
        token: Token<'a>,
        depth: usize,
    ) -> Pass {
        self.warn(|| match token {
            Token::Int(number) if matches!(kind, Kind::Int(_)) => {
                format!(
                    "the descriptor says {}, the payload has {number}",
                    name(kind)
                )
            }
            _ => format!(
                "the descriptor says {}, the payload has {}",
                name(kind),
                token.kind()
            ),
        });
        self.plain(reader, token, depth)
    }

    fn nested(
        &mut self,
        reader: &mut Reader<'a>,
        count: u32,
        id: &'a Arc<str>,
        depth: usize,
    ) -> Pass {
        match self.names.latest(id) {
            Some(version) => self.object(reader, count, version, depth),
            None => self.plain(reader, Token::Map(count), depth),
        }
    }

    fn array(
        &mut self,
        reader: &mut Reader<'a>,
        count: u32,
        items: &'a Shape,
        depth: usize,
    ) -> Pass {
        reader.enter(depth + 1)?;
        self.sink.out.push('[');
        for index in 0..count {
            self.path.0.push(Step::Index(index));
            self.value(reader, items, depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
            self.bounded()?;
        }
        self.sink.close_with(']');
        Ok(())
    }

    fn map(
        &mut self,
        reader: &mut Reader<'a>,
        count: u32,
        map: &'a MapShape,
        depth: usize,
    ) -> Pass {
        reader.enter(depth + 1)?;
        let mut object = self.sink.open();
        for _ in 0..count {
            let key = reader.key(depth + 1)?;
            self.path.0.push(Step::Key(key));
            if !key_fits(&map.key.kind, key) {
                self.warn(|| format!("the descriptor says that keys are {}", name(&map.key.kind)));
            }
            self.entry_key(&mut object, key);
            self.value(reader, &map.value, depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
            self.bounded()?;
        }
        self.sink.close(&object);
        Ok(())
    }

    fn entry_key(&mut self, object: &mut Object, key: Token<'a>) {
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

    fn int(&mut self, kind: IntKind, shape: &'a Shape, number: i128) {
        if let Some(id) = &shape.enum_id {
            return self.enumerated(id, number);
        }
        match shape.semantic {
            Some(Semantic::UnixMs) => self.time(number),
            Some(Semantic::UnixS) => self.time(number * 1000),
            _ if kind.is_wide() && self.options.u64_format == U64Format::String => {
                push_int_string(&mut self.sink.out, number);
            }
            _ => push_int(&mut self.sink.out, number),
        }
    }

    fn enumerated(&mut self, id: &'a Arc<str>, number: i128) {
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

    fn time(&mut self, unix_ms: i128) {
        let text = match self.options.time_render {
            TimeRender::Iso => time::format(unix_ms),
            TimeRender::UnixMs => None,
        };
        match text {
            Some(text) => push_string(&mut self.sink.out, &text),
            None => push_int(&mut self.sink.out, unix_ms),
        }
    }

    /// Renders a token as it is, without a shape.
    pub(super) fn plain(
        &mut self,
        reader: &mut Reader<'a>,
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
            Token::Str(raw) => self.text(raw),
            Token::Bin(raw) => push_bytes(out, raw, self.options.bytes_render),
            Token::Ext(kind, raw) => self.ext(kind, raw),
            Token::Array(count) => self.plain_array(reader, count, depth)?,
            Token::Map(count) => self.plain_map(reader, count, depth)?,
        }
        Ok(())
    }

    fn text(&mut self, raw: &[u8]) {
        if let Ok(text) = std::str::from_utf8(raw) {
            return push_string(&mut self.sink.out, text);
        }
        self.warn(|| "the string is not UTF-8; its bytes are shown".to_owned());
        push_bytes(&mut self.sink.out, raw, self.options.bytes_render);
    }

    fn ext(&mut self, kind: i8, raw: &[u8]) {
        self.sink.out.push_str("{\"ext\":");
        push_int(&mut self.sink.out, kind.into());
        self.sink.out.push_str(",\"data\":");
        push_bytes(&mut self.sink.out, raw, self.options.bytes_render);
        self.sink.out.push('}');
    }

    fn plain_array(&mut self, reader: &mut Reader<'a>, count: u32, depth: usize) -> Pass {
        reader.enter(depth + 1)?;
        self.sink.out.push('[');
        for index in 0..count {
            self.path.0.push(Step::Index(index));
            let token = reader.token()?;
            self.plain(reader, token, depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
        }
        self.sink.close_with(']');
        self.bounded()
    }

    fn plain_map(&mut self, reader: &mut Reader<'a>, count: u32, depth: usize) -> Pass {
        reader.enter(depth + 1)?;
        let mut object = self.sink.open();
        for _ in 0..count {
            let key = reader.key(depth + 1)?;
            self.path.0.push(Step::Key(key));
            self.entry_key(&mut object, key);
            let token = reader.token()?;
            self.plain(reader, token, depth + 1)?;
            self.path.0.pop();
            self.sink.end_entry();
        }
        self.sink.close(&object);
        self.bounded()
    }
}

/// The tag that a key is: a non-negative integer, or one spelt in digits without leading zeros.
pub(super) fn tag_of(key: Token<'_>) -> Option<u64> {
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
pub(super) fn name(kind: &Kind) -> &str {
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
