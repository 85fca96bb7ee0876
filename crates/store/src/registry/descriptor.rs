//! Descriptors: the fields of one version of a type, by tag.
//!
//! A descriptor is immutable once published. Parsing fails with the part that is malformed. Whether
//! the names in a descriptor resolve is checked in `evolution`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::{Map, Value};
use turnkeep_types::TypeRef;

use super::ID_BYTES_MAX;
use super::canonical::{canonical, push_string};
use super::error::Malformed;
use super::spelling::Spellings;

/// One published version of a type.
#[derive(Debug, PartialEq)]
pub struct TypeVersion {
    /// The type and the version.
    pub type_ref: TypeRef,
    /// The bundle that published it first.
    pub bundle_id: Arc<str>,
    /// The live fields, by tag ascending.
    pub fields: Vec<Field>,
    /// Indexes into `fields`, by name ascending.
    by_name: Box<[usize]>,
    /// The `fields` object as published, with tombstones and unknown keys, as JSON text. A tree of
    /// small objects would take many times the memory.
    pub(super) published: Box<str>,
    /// The BLAKE3 of the whole version's canonical form.
    pub(super) digest: [u8; 32],
}

impl TypeVersion {
    /// A version whose fields are by tag ascending.
    pub(super) fn new(
        type_ref: TypeRef,
        bundle_id: Arc<str>,
        fields: Vec<Field>,
        published: Box<str>,
        digest: [u8; 32],
    ) -> Self {
        let mut by_name: Box<[usize]> = (0..fields.len()).collect();
        by_name.sort_by_key(|at| fields.get(*at).map(|field| &field.name));
        Self {
            type_ref,
            bundle_id,
            fields,
            by_name,
            published,
            digest,
        }
    }

    /// The live field with this tag.
    pub fn field(&self, tag: u64) -> Option<&Field> {
        let index = self
            .fields
            .binary_search_by_key(&tag, |field| field.tag)
            .ok()?;
        self.fields.get(index)
    }

    /// The live field with this name.
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        let field = |at: &usize| self.fields.get(*at);
        let place = self
            .by_name
            .binary_search_by(|at| field(at).map(|field| &*field.name).cmp(&Some(name)));
        self.by_name.get(place.ok()?).and_then(field)
    }
}

/// A live field.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// The tag by which payloads name it.
    pub tag: u64,
    /// The name by which JSON names it.
    pub name: Arc<str>,
    /// Whether writers may leave it out. Only encoding from JSON enforces this; payloads that
    /// arrive as bytes are not checked.
    pub optional: bool,
    /// The type of its values.
    pub shape: Shape,
    /// The name as a JSON key with its colon, ready to be copied.
    pub(crate) key_text: Box<str>,
    /// The canonical form of the parts that never change for a tag.
    pub(super) frozen: Arc<str>,
}

/// The type of a value and how to show it.
#[derive(Debug, PartialEq)]
pub struct Shape {
    /// The type.
    pub kind: Kind,
    /// The meaning beyond the type.
    pub semantic: Option<Semantic>,
    /// The enum that labels its numbers.
    pub enum_id: Option<Arc<str>>,
}

/// The type of a value.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A whole number.
    Int(IntKind),
    /// A single-precision number.
    F32,
    /// A double-precision number.
    F64,
    /// UTF-8 text.
    String,
    /// Bytes.
    Bytes,
    /// A list of one shape.
    Array(Box<Shape>),
    /// A map from scalars to one shape.
    Map(Box<MapShape>),
    /// A payload of any published type, with its type beside it.
    TypedBlob,
    /// Anything.
    Any,
    /// An object of another published type, by its latest version.
    Type(Arc<str>),
}

/// The shapes of a map.
#[derive(Debug, PartialEq)]
pub struct MapShape {
    /// Of its keys; always a scalar.
    pub key: Shape,
    /// Of its values.
    pub value: Shape,
}

/// The width and sign of a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum IntKind {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl IntKind {
    /// The range of its numbers.
    pub fn range(self) -> RangeInclusive<i128> {
        match self {
            Self::I8 => i8::MIN.into()..=i8::MAX.into(),
            Self::I16 => i16::MIN.into()..=i16::MAX.into(),
            Self::I32 => i32::MIN.into()..=i32::MAX.into(),
            Self::I64 => i64::MIN.into()..=i64::MAX.into(),
            Self::U8 => 0..=u8::MAX.into(),
            Self::U16 => 0..=u16::MAX.into(),
            Self::U32 => 0..=u32::MAX.into(),
            Self::U64 => 0..=u64::MAX.into(),
        }
    }

    /// Whether JavaScript rounds some of its numbers.
    pub fn is_wide(self) -> bool {
        matches!(self, Self::I64 | Self::U64)
    }
}

/// A meaning beyond the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantic {
    /// Milliseconds since the Unix epoch.
    UnixMs,
    /// Seconds since the Unix epoch.
    UnixS,
    /// A length of time in milliseconds.
    DurationMs,
    /// A URL.
    Url,
    /// Markdown.
    Markdown,
}

/// The keys of a field that are frozen with its tag.
const FROZEN_KEYS: [&str; 4] = ["type", "items", "key_type", "value_type"];

/// The location of a field in a bundle, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) type_id: &'a str,
    pub(super) version: u32,
    pub(super) tag: u64,
}

impl Site<'_> {
    fn malformed_part(self, key: &str, expected: &'static str) -> Malformed {
        let Self {
            type_id,
            version,
            tag,
        } = self;
        Malformed::Part {
            at: format!("type {type_id} version {version} tag {tag}: {key}"),
            expected,
        }
    }

    /// Reads a string of 1 to 512 bytes.
    fn read_text<'v>(
        self,
        fields: &'v Map<String, Value>,
        key: &'static str,
    ) -> Result<&'v str, Malformed> {
        match fields.get(key) {
            Some(Value::String(text)) if (1..=ID_BYTES_MAX).contains(&text.len()) => Ok(text),
            _ => Err(self.malformed_part(key, "a string of 1 to 512 bytes")),
        }
    }

    fn read_flag(self, fields: &Map<String, Value>, key: &'static str) -> Result<bool, Malformed> {
        match fields.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.malformed_part(key, "true or false")),
        }
    }
}

/// A field of a bundle.
#[derive(Debug)]
pub(super) enum ParsedField {
    Live(Field),
    /// A retired field. The frozen part is present if the tombstone repeats it.
    Tombstone {
        tag: u64,
        frozen: Option<Arc<str>>,
    },
}

/// Parses a field's descriptor.
pub(super) fn parse_field(
    site: Site<'_>,
    spellings: Spellings,
    value: &Value,
) -> Result<ParsedField, Malformed> {
    let Value::Object(published) = value else {
        return Err(site.malformed_part("descriptor", "an object"));
    };
    // From here on only the usual spelling exists.
    let members = &*spellings.rewrite(published);
    let optional = site.read_flag(members, "optional")?;
    // A tombstone needs no name or type, so it is recognized first.
    if site.read_flag(members, "tombstone")? {
        return parse_tombstone(site, members);
    }
    let name = site.read_text(members, "name")?;
    let shape = parse_shape(site, members)?;
    // Escaped once here instead of once per rendered value.
    let mut key_text = String::new();
    push_string(&mut key_text, name);
    key_text.push(':');
    Ok(ParsedField::Live(Field {
        tag: site.tag,
        name: name.into(),
        optional,
        shape,
        key_text: key_text.into(),
        frozen: freeze_members(members),
    }))
}

fn parse_tombstone(site: Site<'_>, members: &Map<String, Value>) -> Result<ParsedField, Malformed> {
    // Optional here, but malformed parts are rejected: a published bundle cannot be corrected.
    if members.contains_key("name") {
        site.read_text(members, "name")?;
    }
    let frozen = if members.contains_key("type") {
        parse_shape(site, members)?;
        Some(freeze_members(members))
    } else {
        None
    };
    Ok(ParsedField::Tombstone {
        tag: site.tag,
        frozen,
    })
}

/// The canonical form of the parts that never change for a tag.
fn freeze_members(members: &Map<String, Value>) -> Arc<str> {
    let parts = FROZEN_KEYS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), members.get(*key)?.clone())));
    canonical(&Value::Object(parts.collect())).into()
}

fn parse_shape(site: Site<'_>, members: &Map<String, Value>) -> Result<Shape, Malformed> {
    let name = site.read_text(members, "type")?;
    let semantic = parse_semantic(site, members.get("semantic"))?;
    let enum_id = match members.get("enum") {
        None => None,
        Some(_) => Some(site.read_text(members, "enum")?.into()),
    };
    let kind = match name {
        "array" => Kind::Array(Box::new(parse_items(
            site,
            members,
            semantic,
            enum_id.clone(),
        )?)),
        "map" => Kind::Map(Box::new(parse_map(site, members)?)),
        _ => named_kind(name),
    };
    Ok(Shape {
        kind,
        semantic,
        enum_id,
    })
}

/// Parses an array's items. Items that are a bare type name inherit the array's semantic and enum.
fn parse_items(
    site: Site<'_>,
    members: &Map<String, Value>,
    semantic: Option<Semantic>,
    enum_id: Option<Arc<str>>,
) -> Result<Shape, Malformed> {
    let items = parse_part(site, members, "items")?;
    match members.get("items") {
        Some(Value::String(_)) => Ok(Shape {
            semantic,
            enum_id,
            ..items
        }),
        _ => Ok(items),
    }
}

fn parse_map(site: Site<'_>, members: &Map<String, Value>) -> Result<MapShape, Malformed> {
    let key = parse_part(site, members, "key_type")?;
    // A JSON key is text, so only kinds with one text per value can be keys. Two floats may differ
    // and yet be equal, and arrays have no text.
    if !matches!(
        key.kind,
        Kind::Bool | Kind::Int(_) | Kind::String | Kind::Bytes | Kind::Any
    ) {
        return Err(site.malformed_part("key_type", "bool, an integer type, string, bytes or any"));
    }
    Ok(MapShape {
        key,
        value: parse_part(site, members, "value_type")?,
    })
}

/// Parses a part that is a type name or a whole descriptor.
fn parse_part(
    site: Site<'_>,
    members: &Map<String, Value>,
    key: &'static str,
) -> Result<Shape, Malformed> {
    match members.get(key) {
        Some(Value::Object(descriptor)) => parse_shape(site, descriptor),
        Some(Value::String(name)) if name == "array" || name == "map" => Err(site.malformed_part(
            key,
            "a descriptor, since arrays and maps have parts of their own",
        )),
        Some(Value::String(_)) => Ok(Shape {
            kind: named_kind(site.read_text(members, key)?),
            semantic: None,
            enum_id: None,
        }),
        _ => Err(site.malformed_part(key, "a type name or a descriptor")),
    }
}

fn named_kind(name: &str) -> Kind {
    builtin_kind(name).unwrap_or_else(|| Kind::Type(name.into()))
}

fn builtin_kind(name: &str) -> Option<Kind> {
    Some(match name {
        "bool" => Kind::Bool,
        "i8" => Kind::Int(IntKind::I8),
        "i16" => Kind::Int(IntKind::I16),
        "i32" => Kind::Int(IntKind::I32),
        "i64" => Kind::Int(IntKind::I64),
        "u8" => Kind::Int(IntKind::U8),
        "u16" => Kind::Int(IntKind::U16),
        "u32" => Kind::Int(IntKind::U32),
        "u64" => Kind::Int(IntKind::U64),
        "f32" => Kind::F32,
        "f64" => Kind::F64,
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "typed_blob" => Kind::TypedBlob,
        "any" => Kind::Any,
        _ => return None,
    })
}

/// Whether a name belongs to a built-in type and cannot be a type id.
pub(super) fn is_reserved(name: &str) -> bool {
    matches!(name, "array" | "map") || builtin_kind(name).is_some()
}

fn parse_semantic(site: Site<'_>, value: Option<&Value>) -> Result<Option<Semantic>, Malformed> {
    let Some(value) = value else { return Ok(None) };
    match value.as_str() {
        Some("unix_ms") => Ok(Some(Semantic::UnixMs)),
        Some("unix_s") => Ok(Some(Semantic::UnixS)),
        Some("duration_ms") => Ok(Some(Semantic::DurationMs)),
        Some("url") => Ok(Some(Semantic::Url)),
        Some("markdown") => Ok(Some(Semantic::Markdown)),
        _ => Err(site.malformed_part("semantic", "unix_ms, unix_s, duration_ms, url or markdown")),
    }
}

impl Shape {
    /// Calls `visit` with this shape and every shape inside it.
    pub(super) fn walk<'s>(&'s self, visit: &mut dyn FnMut(&'s Shape)) {
        visit(self);
        match &self.kind {
            Kind::Array(items) => items.walk(visit),
            Kind::Map(map) => {
                map.key.walk(visit);
                map.value.walk(visit);
            }
            _ => {}
        }
    }
}
