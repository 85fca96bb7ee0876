//! A bundle's document: parses the JSON and every descriptor in it.
//!
//! Parsing does not depend on earlier bundles, except for type ids that look like alternative
//! spellings (see `spelling`). It fails with the first part that is malformed, named by its path.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use turnkeep_types::TypeRef;

use super::canonical::canonical;
use super::descriptor::{Field, ParsedField, Site, TypeVersion, is_reserved, parse_field};
use super::error::{BundleError, Conflict, Malformed};
use super::json::{self, JsonFault};
use super::spelling::Spellings;
use super::{ID_BYTES_MAX, NESTING_MAX};

/// A bundle that is well-formed by itself.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) bundle_id: Arc<str>,
    /// The BLAKE3 of the canonical form.
    pub(super) digest: blake3::Hash,
    pub(super) types: Vec<ParsedType>,
    pub(super) enums: BTreeMap<Arc<str>, BTreeMap<i128, Arc<str>>>,
    /// Whether a descriptor uses an alternative spelling.
    pub(super) has_other_spellings: bool,
}

/// A type that the bundle names.
#[derive(Debug)]
pub(super) struct ParsedType {
    pub(super) id: Arc<str>,
    /// By version ascending.
    pub(super) versions: BTreeMap<u32, ParsedVersion>,
}

/// One version of a type.
#[derive(Debug)]
pub(super) struct ParsedVersion {
    pub(super) described: Arc<TypeVersion>,
    /// Retired tags, each with its frozen part if the bundle repeats it.
    pub(super) tombstones: Vec<(u64, Option<Arc<str>>)>,
    has_other_spellings: bool,
}

impl ParsedType {
    fn has_other_spellings(&self) -> bool {
        self.versions
            .values()
            .any(|version| version.has_other_spellings)
    }
}

/// Parses a bundle that is addressed as `addressed`. `is_known_type` tells which type ids earlier
/// bundles published.
pub(super) fn parse(
    addressed: &str,
    bytes: &[u8],
    is_known_type: impl Fn(&str) -> bool,
) -> Result<Document, BundleError> {
    let value = json::parse(bytes, NESTING_MAX).map_err(bundle_error)?;
    let bundle = expect_object(&value, || "the bundle".to_owned())?;
    let bundle_id = parse_id(addressed, bundle)?;
    // Compared in canonical form, so `1.0` is 1 as well.
    if bundle.get("registry_version").map(canonical).as_deref() != Some("1") {
        return Err(malformed_part("registry_version", "1").into());
    }
    // Over the canonical form: a bundle that differs in white space or key order is the same one.
    let digest = blake3::hash(canonical(&value).as_bytes());
    // A type of this very bundle may have the name of an alternative spelling.
    let own_types = bundle.get("types").and_then(Value::as_object);
    let is_own_type = |name: &str| own_types.is_some_and(|types| types.contains_key(name));
    let spellings = Spellings::unless_types(|name| is_own_type(name) || is_known_type(name));
    let mut types = Vec::new();
    for named in members_of_section(bundle, "types")? {
        types.push(parse_type(&bundle_id, spellings, named)?);
    }
    let has_other_spellings = types.iter().any(ParsedType::has_other_spellings);
    let enums = members_of_section(bundle, "enums")?
        .map(parse_enum)
        .collect::<Result<_, _>>()?;
    Ok(Document {
        bundle_id,
        digest,
        types,
        enums,
        has_other_spellings,
    })
}

fn bundle_error(fault: JsonFault) -> BundleError {
    match fault {
        JsonFault::Syntax { offset, what } => Malformed::Json { offset, what }.into(),
        JsonFault::TooDeep { offset } => BundleError::TooDeep { offset },
        JsonFault::DuplicateKey { offset, key } => Conflict::DuplicateKey {
            key: key.into(),
            offset,
        }
        .into(),
    }
}

fn malformed_part(at: impl Into<String>, expected: &'static str) -> Malformed {
    Malformed::Part {
        at: at.into(),
        expected,
    }
}

fn expect_object(
    value: &Value,
    at: impl FnOnce() -> String,
) -> Result<&Map<String, Value>, Malformed> {
    value
        .as_object()
        .ok_or_else(|| malformed_part(at(), "an object"))
}

/// The members of an optional object of the bundle.
fn members_of_section<'v>(
    bundle: &'v Map<String, Value>,
    key: &'static str,
) -> Result<impl Iterator<Item = (&'v String, &'v Value)>, Malformed> {
    let members = match bundle.get(key) {
        None => None,
        Some(value) => Some(expect_object(value, || key.to_owned())?),
    };
    Ok(members.into_iter().flatten())
}

fn parse_id(addressed: &str, bundle: &Map<String, Value>) -> Result<Arc<str>, Malformed> {
    let contained = bundle
        .get("bundle_id")
        .and_then(Value::as_str)
        .ok_or_else(|| malformed_part("bundle_id", "a string"))?;
    // A bundle sent to the wrong address is a mistake, and it could never be corrected.
    if contained != addressed {
        return Err(Malformed::IdMismatch {
            addressed: addressed.into(),
            contained: contained.into(),
        });
    }
    check_id(contained, || "bundle_id".to_owned())
}

fn check_id(text: &str, at: impl FnOnce() -> String) -> Result<Arc<str>, Malformed> {
    if (1..=ID_BYTES_MAX).contains(&text.len()) {
        return Ok(text.into());
    }
    Err(Malformed::Length {
        at: at(),
        bytes: text.len(),
    })
}

fn parse_type(
    bundle_id: &Arc<str>,
    spellings: Spellings,
    (type_id, value): (&String, &Value),
) -> Result<ParsedType, BundleError> {
    let id = check_id(type_id, || "a type id".to_owned())?;
    if is_reserved(type_id) {
        return Err(malformed_part(
            format!("the type id `{type_id}`"),
            "a name that is no built-in type",
        )
        .into());
    }
    let at = || format!("type {type_id}");
    let versions = expect_object(value, at)?.get("versions");
    let versions = versions
        .and_then(Value::as_object)
        .filter(|versions| !versions.is_empty());
    let versions = versions.ok_or_else(|| {
        malformed_part(at() + ": versions", "an object with at least one version")
    })?;
    let versions = versions
        .iter()
        .map(|(key, value)| {
            let version = parse_version_number(type_id, key)?;
            let type_ref = TypeRef {
                id: Arc::clone(&id),
                version,
            };
            Ok((
                version,
                parse_version(bundle_id, spellings, type_ref, value)?,
            ))
        })
        .collect::<Result<_, BundleError>>()?;
    Ok(ParsedType { id, versions })
}

fn parse_version_number(type_id: &str, key: &str) -> Result<u32, Malformed> {
    let version = canonical_number(key).and_then(|number| u32::try_from(number).ok());
    version
        .filter(|version| *version > 0)
        .ok_or_else(|| Malformed::Version {
            type_id: type_id.to_owned(),
            version: key.to_owned(),
        })
}

/// Parses a decimal number without sign or leading zeros.
pub(crate) fn canonical_number(text: &str) -> Option<u64> {
    let canonical =
        text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    if canonical { text.parse().ok() } else { None }
}

fn parse_version(
    bundle_id: &Arc<str>,
    spellings: Spellings,
    type_ref: TypeRef,
    value: &Value,
) -> Result<ParsedVersion, BundleError> {
    let (type_id, version) = (&*type_ref.id, type_ref.version);
    let at = || format!("type {type_id} version {version}");
    let published = expect_object(value, at)?
        .get("fields")
        .filter(|fields| fields.is_object());
    let published = published.ok_or_else(|| malformed_part(at() + ": fields", "an object"))?;
    let ParsedFields {
        live: fields,
        tombstones,
        has_other_spellings,
    } = parse_fields(&type_ref, spellings, published)?;
    // JSON names fields by name, so two fields of one name could not both be shown.
    reject_name_twice(type_id, version, &fields)?;
    let digest = *blake3::hash(canonical(value).as_bytes()).as_bytes();
    let published = published.to_string().into();
    let described = TypeVersion::new(type_ref, Arc::clone(bundle_id), fields, published, digest);
    Ok(ParsedVersion {
        described: Arc::new(described),
        tombstones,
        has_other_spellings,
    })
}

/// The fields of a version.
#[derive(Default)]
struct ParsedFields {
    live: Vec<Field>,
    tombstones: Vec<(u64, Option<Arc<str>>)>,
    has_other_spellings: bool,
}

fn parse_fields(
    type_ref: &TypeRef,
    spellings: Spellings,
    published: &Value,
) -> Result<ParsedFields, BundleError> {
    let (type_id, version) = (&*type_ref.id, type_ref.version);
    let mut parsed = ParsedFields::default();
    for (key, descriptor) in published.as_object().into_iter().flatten() {
        let site = Site {
            type_id,
            version,
            tag: parse_tag(type_id, version, key)?,
        };
        let members = descriptor.as_object();
        parsed.has_other_spellings |= members.is_some_and(|members| spellings.occur_in(members));
        match parse_field(site, spellings, descriptor)? {
            ParsedField::Live(field) => parsed.live.push(field),
            ParsedField::Tombstone { tag, frozen } => parsed.tombstones.push((tag, frozen)),
        }
    }
    // `TypeVersion::field` searches by tag.
    parsed.live.sort_by_key(|field| field.tag);
    Ok(parsed)
}

fn parse_tag(type_id: &str, version: u32, key: &str) -> Result<u64, BundleError> {
    if let Some(tag) = canonical_number(key) {
        return Ok(tag);
    }
    // `01` would be a second name of tag 1, which is worse than a malformed tag.
    if key.starts_with('0') && key.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Conflict::TagSpelling {
            type_id: type_id.into(),
            version,
            tag: key.into(),
        }
        .into());
    }
    Err(Malformed::Tag {
        type_id: type_id.to_owned(),
        version,
        tag: key.to_owned(),
    }
    .into())
}

fn reject_name_twice(type_id: &str, version: u32, fields: &[Field]) -> Result<(), Conflict> {
    let mut tags = BTreeMap::new();
    for field in fields {
        if let Some(first) = tags.insert(&field.name, field.tag) {
            return Err(Conflict::NameTwice {
                type_id: type_id.into(),
                version,
                name: Arc::clone(&field.name),
                first,
                second: field.tag,
            });
        }
    }
    Ok(())
}

type ParsedEnum = (Arc<str>, BTreeMap<i128, Arc<str>>);

fn parse_enum((enum_id, value): (&String, &Value)) -> Result<ParsedEnum, BundleError> {
    let enum_id_text = check_id(enum_id, || "an enum id".to_owned())?;
    let mut labels = BTreeMap::new();
    for (key, label) in expect_object(value, || format!("enum {enum_id}"))? {
        let number = parse_enum_number(key).ok_or_else(|| {
            malformed_part(
                format!("enum {enum_id} number `{key}`"),
                "a whole number of 64 bits",
            )
        })?;
        let label = label
            .as_str()
            .ok_or_else(|| malformed_part(format!("enum {enum_id} number {key}"), "a string"))?;
        labels.insert(
            number,
            check_id(label, || format!("enum {enum_id} number {key}"))?,
        );
    }
    Ok((enum_id_text, labels))
}

fn parse_enum_number(key: &str) -> Option<i128> {
    let Some(magnitude) = key.strip_prefix('-') else {
        return canonical_number(key).map(i128::from);
    };
    let number = canonical_number(magnitude)
        .filter(|magnitude| *magnitude > 0)
        .map(|m| -i128::from(m));
    number.filter(|number| *number >= i64::MIN.into())
}
