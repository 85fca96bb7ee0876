//! As much of JSON Schema as the ledger's schemas use. A keyword that it does not know is a panic,
//! so that no schema says something that nothing checks.

use serde_json::{Map, Value};

/// A schema with its definitions.
pub(crate) struct Schema {
    root: Value,
}

/// What says nothing about a value.
const ANNOTATIONS: &[&str] = &["$schema", "$id", "$defs", "title", "description"];
/// What is looked at together with another keyword.
const COMPANIONS: &[&str] = &["then", "else"];

impl Schema {
    pub(crate) fn new(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            root["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        Self { root }
    }

    /// Whether the value is of the shape.
    pub(crate) fn admits(&self, value: &Value) -> bool {
        self.fits(&self.root, value)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let keywords = match schema {
            Value::Bool(all) => return *all,
            schema => schema.as_object().unwrap(),
        };
        let mut checked = keywords.iter().filter(|(word, _)| {
            !ANNOTATIONS.contains(&word.as_str()) && !COMPANIONS.contains(&word.as_str())
        });
        checked.all(|(word, wanted)| self.keyword(keywords, word, wanted, value))
    }

    fn keyword(
        &self,
        keywords: &Map<String, Value>,
        word: &str,
        wanted: &Value,
        value: &Value,
    ) -> bool {
        match word {
            "$ref" => self.fits(self.definition(wanted), value),
            "type" => one_or_more(wanted)
                .iter()
                .any(|name| is_of_type(value, name.as_str().unwrap())),
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "not" => !self.fits(wanted, value),
            "anyOf" => self.count(wanted, value) > 0,
            "oneOf" => self.count(wanted, value) == 1,
            "if" => self.branch(keywords, wanted, value),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 >= limit(wanted)),
            "maxLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 <= limit(wanted)),
            "pattern" => value
                .as_str()
                .is_none_or(|text| matches_pattern(text, wanted.as_str().unwrap())),
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= limit(wanted)),
            "maxItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 <= limit(wanted)),
            "uniqueItems" => value.as_array().is_none_or(|items| all_differ(items)),
            "items" => self.items(keywords, wanted, value),
            "prefixItems" => self.prefix(wanted, value),
            "required" => value
                .as_object()
                .is_none_or(|fields| has_all(fields, wanted)),
            "properties" => self.properties(wanted, value),
            "additionalProperties" => self.additional(keywords, wanted, value),
            unknown => panic!("the keyword `{unknown}` is not checked"),
        }
    }

    fn definition(&self, reference: &Value) -> &Value {
        let name = reference
            .as_str()
            .and_then(|text| text.strip_prefix("#/$defs/"));
        self.root["$defs"]
            .get(name.unwrap())
            .unwrap_or_else(|| panic!("no definition {reference}"))
    }

    fn count(&self, schemas: &Value, value: &Value) -> usize {
        schemas
            .as_array()
            .unwrap()
            .iter()
            .filter(|schema| self.fits(schema, value))
            .count()
    }

    fn branch(&self, keywords: &Map<String, Value>, condition: &Value, value: &Value) -> bool {
        let branch = if self.fits(condition, value) {
            "then"
        } else {
            "else"
        };
        keywords
            .get(branch)
            .is_none_or(|schema| self.fits(schema, value))
    }

    fn items(&self, keywords: &Map<String, Value>, schema: &Value, value: &Value) -> bool {
        let before = keywords
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let mut rest = value.as_array().into_iter().flatten().skip(before);
        rest.all(|item| self.fits(schema, item))
    }

    fn prefix(&self, schemas: &Value, value: &Value) -> bool {
        let items = value.as_array().into_iter().flatten();
        schemas
            .as_array()
            .unwrap()
            .iter()
            .zip(items)
            .all(|(schema, item)| self.fits(schema, item))
    }

    fn properties(&self, schemas: &Value, value: &Value) -> bool {
        let known = schemas.as_object().unwrap().iter();
        known
            .filter_map(|(key, schema)| Some((schema, value.as_object()?.get(key)?)))
            .all(|(schema, value)| self.fits(schema, value))
    }

    fn additional(&self, keywords: &Map<String, Value>, schema: &Value, value: &Value) -> bool {
        let known = keywords.get("properties").and_then(Value::as_object);
        let others = value.as_object().into_iter().flatten();
        others
            .filter(|(key, _)| !known.is_some_and(|known| known.contains_key(*key)))
            .all(|(_, value)| self.fits(schema, value))
    }
}

fn one_or_more(value: &Value) -> &[Value] {
    value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn limit(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        unknown => panic!("the type `{unknown}` is not checked"),
    }
}

/// The two patterns that there are.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    match pattern {
        r"\S" => text.chars().any(|c| !c.is_whitespace()),
        "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$" => turnkeep_ledger::ids::Name::new(text).is_some(),
        unknown => panic!("the pattern `{unknown}` is not checked"),
    }
}

fn all_differ(items: &[Value]) -> bool {
    items
        .iter()
        .enumerate()
        .all(|(index, item)| !items[..index].contains(item))
}

fn has_all(fields: &Map<String, Value>, keys: &Value) -> bool {
    keys.as_array()
        .unwrap()
        .iter()
        .all(|key| fields.contains_key(key.as_str().unwrap()))
}

#[test]
fn the_checker_refuses_what_each_keyword_forbids() {
    for (schema, good, bad) in [
        (r#""type":["string","null"]"#, r#""x""#, "7"),
        (r#""type":"integer""#, "7", "7.5"),
        (r#""const":7"#, "7", "8"),
        (r#""enum":[1,2]"#, "2", "3"),
        (r#""not":{"const":1}"#, "2", "1"),
        (
            r#""anyOf":[{"type":"null"},{"type":"boolean"}]"#,
            "true",
            "1",
        ),
        (r#""oneOf":[{"minimum":1},{"maximum":5}]"#, "7", "3"),
        (r#""if":{"const":1},"then":false"#, "2", "1"),
        (r#""if":{"const":1},"else":false"#, "1", "2"),
        (r#""minLength":2"#, r#""ää""#, r#""ä""#),
        (r#""maxLength":1"#, r#""ä""#, r#""ää""#),
        (r#""pattern":"\\S""#, r#"" x ""#, r#"" \n""#),
        (r#""minimum":1,"maximum":2"#, "2", "3"),
        (r#""minItems":1,"maxItems":1"#, "[1]", "[]"),
        (r#""uniqueItems":true"#, "[1,2]", "[1,1]"),
        (
            r#""prefixItems":[{"const":1}],"items":{"const":2}"#,
            "[1,2]",
            "[1,1]",
        ),
        (r#""prefixItems":[{"const":1}]"#, "[1,7]", "[2]"),
        (r#""required":["a"]"#, r#"{"a":1}"#, "{}"),
        (
            r#""properties":{"a":{"const":1}},"additionalProperties":false"#,
            r#"{"a":1}"#,
            r#"{"b":1}"#,
        ),
        (
            r##""$ref":"#/$defs/x","$defs":{"x":{"const":1}}"##,
            "1",
            "2",
        ),
    ] {
        let schema = Schema::new(&format!(
            r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema",{schema}}}"#
        ));
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(schema.admits(&value(good)), "{good} by {}", schema.root);
        assert!(!schema.admits(&value(bad)), "{bad} by {}", schema.root);
    }
}
