//! Checks values against the schemas, for tests.
//!
//! It knows the part of JSON Schema that the generated schemas use, and fails on a schema with any
//! other keyword, so that nothing is silently left unchecked. It is stricter in one point: an
//! object must not have fields that its schema does not name. Readers ignore such fields, but what
//! the server writes must be described.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{SchemaKind, schemas};

/// Made once: a test checks hundreds of events.
static SCHEMAS: LazyLock<BTreeMap<String, (SchemaKind, Value)>> = LazyLock::new(schemas);

/// Keywords that restrict nothing.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
];

/// Checks a value against the schema of this name. The error says where it does not fit.
pub fn check_schema(name: &str, value: &Value) -> Result<(), String> {
    let known = SCHEMAS.get(name);
    let (_, schema) = known.ok_or_else(|| format!("no schema `{name}`"))?;
    check_document(schema, value).map_err(|error| format!("{name}: {error}"))
}

/// Checks an event against the schema of its type.
pub fn check_event(event: &Value) -> Result<(), String> {
    let name = event.get("type").and_then(Value::as_str);
    check_schema(name.ok_or("the event has no type")?, event)
}

/// Checks the body of a request against the schema of this name. Readers ignore fields that the
/// schema does not name.
pub fn check_body(name: &str, value: &Value) -> Result<(), String> {
    let known = SCHEMAS.get(name);
    let (_, schema) = known.ok_or_else(|| format!("no schema `{name}`"))?;
    let checker = Checker { root: schema };
    let checked = checker.check(schema, value, "");
    checked
        .map(drop)
        .map_err(|error| format!("{name}: {error}"))
}

/// Checks a value against a complete schema.
fn check_document(schema: &Value, value: &Value) -> Result<(), String> {
    let checker = Checker { root: schema };
    let named = checker.check(schema, value, "")?;
    check_names(value, &named, "")
}

/// The fields of an object that some part of its schema names.
#[derive(Debug, Default)]
struct NamedFields {
    names: BTreeSet<String>,
    /// Whether the schema allows any field.
    any: bool,
}

impl NamedFields {
    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.any |= other.any;
    }
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    /// Checks a value. Returns the fields that the schema names, because the parts of an `allOf`
    /// name them together.
    fn check(&self, schema: &Value, value: &Value, path: &str) -> Result<NamedFields, String> {
        let Value::Object(keywords) = schema else {
            return Err(format!("{path}: the schema is not an object"));
        };
        let mut named = NamedFields {
            // A schema without a type describes any value.
            any: !["type", "$ref", "allOf", "oneOf", "anyOf"]
                .iter()
                .any(|keyword| keywords.contains_key(*keyword)),
            ..NamedFields::default()
        };
        for (keyword, rule) in keywords {
            named.add(self.check_keyword(keywords, keyword, rule, value, path)?);
        }
        Ok(named)
    }

    fn check_keyword(
        &self,
        keywords: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        path: &str,
    ) -> Result<NamedFields, String> {
        // As JSON Schema says, a rule about numbers or texts holds for every value of another type.
        let fits = match keyword {
            "$ref" => return self.check(self.resolve(rule)?, value, path),
            "allOf" => return self.check_all(rule, value, path),
            "oneOf" | "anyOf" => return self.check_one(rule, value, path),
            "properties" => return self.check_properties(rule, value, path),
            "additionalProperties" => {
                return self.check_additional(keywords, rule, value, path);
            }
            "items" => return self.check_items(rule, value, path),
            "type" => has_type(rule, value),
            "enum" => items_of(rule).contains(value),
            "const" => rule == value,
            "required" => return check_required(rule, value, path),
            "minimum" => number_of(value).is_none_or(|number| Some(number) >= rule.as_f64()),
            "pattern" => text_of(value).is_none_or(|text| fits_pattern(rule, text)),
            "format" => fits_format(rule, value),
            "propertyNames" => true,
            other if ANNOTATIONS.contains(&other) => true,
            other => return Err(format!("{path}: the keyword `{other}` is not supported")),
        };
        if fits {
            Ok(NamedFields::default())
        } else {
            Err(format!("{path}: {value} does not fit {keyword} {rule}"))
        }
    }

    fn resolve(&self, reference: &Value) -> Result<&Value, String> {
        let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let found = target.and_then(|pointer| self.root.pointer(pointer));
        found.ok_or_else(|| format!("{reference} leads nowhere"))
    }

    fn check_all(&self, parts: &Value, value: &Value, path: &str) -> Result<NamedFields, String> {
        let mut named = NamedFields::default();
        for part in items_of(parts) {
            named.add(self.check(part, value, path)?);
        }
        Ok(named)
    }

    fn check_one(&self, choices: &Value, value: &Value, path: &str) -> Result<NamedFields, String> {
        let mut errors = Vec::new();
        for choice in items_of(choices) {
            match self.check(choice, value, path) {
                Ok(named) => return Ok(named),
                Err(error) => errors.push(error),
            }
        }
        Err(format!("{path}: fits no choice: {}", errors.join(" / ")))
    }

    fn check_properties(
        &self,
        properties: &Value,
        value: &Value,
        path: &str,
    ) -> Result<NamedFields, String> {
        let mut named = NamedFields::default();
        let properties = properties.as_object().into_iter().flatten();
        for (name, schema) in properties {
            named.names.insert(name.clone());
            if let Some(field) = value.get(name) {
                let path = format!("{path}.{name}");
                let inner = self.check(schema, field, &path)?;
                check_names(field, &inner, &path)?;
            }
        }
        Ok(named)
    }

    fn check_additional(
        &self,
        keywords: &Map<String, Value>,
        schema: &Value,
        value: &Value,
        path: &str,
    ) -> Result<NamedFields, String> {
        let known = keywords.get("properties").and_then(Value::as_object);
        for (name, field) in value.as_object().into_iter().flatten() {
            if known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            let path = format!("{path}.{name}");
            let inner = self.check(schema, field, &path)?;
            check_names(field, &inner, &path)?;
        }
        Ok(NamedFields {
            any: true,
            ..NamedFields::default()
        })
    }

    fn check_items(
        &self,
        schema: &Value,
        value: &Value,
        path: &str,
    ) -> Result<NamedFields, String> {
        for (place, item) in items_of(value).iter().enumerate() {
            let path = format!("{path}[{place}]");
            let inner = self.check(schema, item, &path)?;
            check_names(item, &inner, &path)?;
        }
        Ok(NamedFields::default())
    }
}

fn check_names(value: &Value, named: &NamedFields, path: &str) -> Result<(), String> {
    let mut fields = value.as_object().into_iter().flat_map(Map::keys);
    let unknown = fields.find(|name| !named.any && !named.names.contains(*name));
    unknown.map_or(Ok(()), |name| {
        Err(format!("{path}: `{name}` is not described"))
    })
}

fn check_required(rule: &Value, value: &Value, path: &str) -> Result<NamedFields, String> {
    let mut names = items_of(rule).iter().filter_map(Value::as_str);
    match names.find(|name| value.get(name).is_none()) {
        Some(name) => Err(format!("{path}: `{name}` is missing")),
        None => Ok(NamedFields::default()),
    }
}

fn items_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str()
}

fn number_of(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    };
    if rule.is_array() {
        items_of(rule).iter().any(is)
    } else {
        is(rule)
    }
}

/// The two patterns that the shapes use: a hash, and a UUID.
fn fits_pattern(rule: &Value, text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match rule.as_str() {
        Some("^[0-9a-f]{64}$") => text.len() == 64 && is_hex(text),
        Some(pattern) if pattern.starts_with("^[0-9a-f]{8}-") => {
            let lengths: Vec<usize> = text.split('-').map(str::len).collect();
            lengths == [8, 4, 4, 4, 12] && text.split('-').all(is_hex)
        }
        _ => false,
    }
}

fn fits_format(rule: &Value, value: &Value) -> bool {
    match rule.as_str() {
        Some("date-time") => {
            let time = text_of(value).and_then(turnkeep_types::rfc3339::parse_rfc3339);
            time.is_some()
        }
        Some("int32") => value
            .as_i64()
            .is_none_or(|number| i32::try_from(number).is_ok()),
        Some("int64" | "double") => true,
        _ => false,
    }
}
