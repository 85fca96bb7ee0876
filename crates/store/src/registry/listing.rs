//! The registry as JSON, for the HTTP API and the command line.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::descriptor::TypeVersion;
use super::{NESTING_MAX, Registry, json as strict};

impl Registry {
    /// All types with their versions: `{"types": [{type_id, latest_version, versions}]}`, by type
    /// id.
    pub fn types_json(&self) -> Value {
        let types = self.types().map(|(type_id, versions)| {
            let versions: Vec<u32> = versions.map(|version| version.type_ref.version).collect();
            json!({ "type_id": **type_id, "latest_version": versions.last(), "versions": versions })
        });
        json!({ "types": types.collect::<Vec<_>>() })
    }

    /// One version: `{type_id, type_version, bundle_id, fields, enums}`. The fields are as
    /// published, with unknown keys. The enums are the ones that the fields name, with their
    /// current labels.
    pub fn descriptor_json(&self, version: &TypeVersion) -> Value {
        // The registry wrote this text itself, so parsing cannot fail.
        let fields = strict::parse(version.published.as_bytes(), NESTING_MAX).unwrap_or_default();
        json!({
            "type_id": &*version.type_ref.id,
            "type_version": version.type_ref.version,
            "bundle_id": &*version.bundle_id,
            "fields": fields,
            "enums": self.enums_json(version),
        })
    }

    fn enums_json(&self, version: &TypeVersion) -> Value {
        let mut named = BTreeMap::new();
        for field in &version.fields {
            field.shape.walk(&mut |shape| {
                if let Some(id) = &shape.enum_id {
                    named.insert(id.to_string(), self.enums.get(id));
                }
            });
        }
        let mut enums = Map::new();
        for (id, table) in named {
            let mut labels = Map::new();
            for (number, label) in table.into_iter().flat_map(|table| &table.labels) {
                labels.insert(number.to_string(), Value::from(&*label.text));
            }
            enums.insert(id, Value::Object(labels));
        }
        Value::Object(enums)
    }
}
