//! Encoding: JSON with field names becomes a payload's msgpack, by a published descriptor.
//!
//! It takes what projection prints by default. The same JSON gives the same bytes: tags ascend,
//! integers take the fewest bytes, map keys are sorted. It fails with the path of the first value
//! that does not fit.

mod msgpack;
mod scalar;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};
use turnkeep_types::TypeRef;

use super::msgpack::NESTING_MAX;
use super::resolve::Resolver;
use super::warning::truncate_path;
use crate::registry::{Field, Kind, MapShape, Registry, Shape, TypeVersion};
use msgpack::Writer;

/// Why JSON cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// No type was named.
    #[error("data needs a type: name type_id and type_version")]
    MissingType,
    /// Nobody published the type.
    #[error("type {0} is not published: publish its bundle first, or send payload_b64")]
    Unpublished(TypeRef),
    /// The type has no field with this name.
    #[error("{path} is not a field of {type_ref}")]
    UnknownField {
        /// The way to it by names.
        path: String,
        /// The type that has no such field.
        type_ref: TypeRef,
    },
    /// The data lacks a field that its type does not mark optional.
    #[error(
        "{path} is missing, and {type_ref} does not mark it optional; allow_missing accepts data without it"
    )]
    MissingField {
        /// The way to it by names.
        path: String,
        /// The type that has the field.
        type_ref: TypeRef,
    },
    /// A value is not what its descriptor says.
    #[error("{path} must be {expected}, not {found}")]
    WrongValue {
        /// The way to it by names.
        path: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The data nests too deep.
    #[error("the data nests deeper than {NESTING_MAX} levels at {path}")]
    TooDeep {
        /// The way to the level too much.
        path: String,
    },
}

/// Whether data may lack fields that its type does not mark optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    /// It may not.
    Refuse,
    /// It may.
    Allow,
}

/// Encodes `data`, an object with field names, as a payload of the type.
pub fn encode(
    registry: &Registry,
    type_ref: &TypeRef,
    data: &Value,
    missing: MissingFields,
) -> Result<Vec<u8>, EncodeError> {
    if !type_ref.is_declared() {
        return Err(EncodeError::MissingType);
    }
    let unpublished = || EncodeError::Unpublished(type_ref.clone());
    let version = registry
        .descriptor(&type_ref.id, type_ref.version)
        .ok_or_else(unpublished)?;
    let mut encoder = Encoder {
        names: Resolver::new(registry),
        missing,
        path: vec!["data".to_owned()],
        depth: 0,
    };
    let mut out = Writer::default();
    encoder.object(&mut out, version, data)?;
    Ok(out.into_bytes())
}

struct Encoder<'r> {
    names: Resolver<'r>,
    missing: MissingFields,
    /// The way to the value that is being encoded, a text per step.
    path: Vec<String>,
    depth: usize,
}

type Encoded = Result<(), EncodeError>;

impl<'r> Encoder<'r> {
    fn wrong(&self, expected: impl Into<String>, found: &Value) -> EncodeError {
        EncodeError::WrongValue {
            path: self.path_text(""),
            expected: expected.into(),
            found: describe(found),
        }
    }

    /// The way to a value as text, of bounded length however long the keys on it are.
    fn path_text(&self, last: &str) -> String {
        let mut text = self.path.concat();
        text.push_str(last);
        truncate_path(&mut text);
        text
    }

    /// Encodes what is one step further on the path.
    fn at<T>(
        &mut self,
        step: String,
        encode: impl FnOnce(&mut Self) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError> {
        self.path.push(step);
        let encoded = encode(self)?;
        self.path.pop();
        Ok(encoded)
    }

    /// Encodes the parts of a container.
    fn inside(&mut self, encode: impl FnOnce(&mut Self) -> Encoded) -> Encoded {
        if self.depth == NESTING_MAX {
            return Err(EncodeError::TooDeep {
                path: self.path_text(""),
            });
        }
        self.depth += 1;
        encode(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, out: &mut Writer, version: &'r TypeVersion, data: &Value) -> Encoded {
        let Value::Object(members) = data else {
            return Err(self.wrong(format!("an object of {}", version.type_ref), data));
        };
        let mut fields = Vec::with_capacity(members.len());
        for (name, value) in members {
            let field = version
                .field_named(name)
                .ok_or_else(|| EncodeError::UnknownField {
                    path: self.path_text(&format!(".{name}")),
                    type_ref: version.type_ref.clone(),
                })?;
            fields.push((field, value));
        }
        self.refuse_missing(version, members)?;
        fields.sort_by_key(|(field, _)| field.tag);
        self.inside(|this| {
            out.map(fields.len());
            fields.into_iter().try_for_each(|(field, value)| {
                out.int(field.tag.into());
                this.at(format!(".{}", field.name), |this| {
                    this.value(out, &field.shape, value)
                })
            })
        })
    }

    /// A field that is null is not missing.
    fn refuse_missing(&self, version: &TypeVersion, members: &Map<String, Value>) -> Encoded {
        if self.missing == MissingFields::Allow {
            return Ok(());
        }
        let is_missing = |field: &&Field| !field.optional && !members.contains_key(&*field.name);
        match version.fields.iter().find(is_missing) {
            None => Ok(()),
            Some(field) => Err(EncodeError::MissingField {
                path: self.path_text(&format!(".{}", field.name)),
                type_ref: version.type_ref.clone(),
            }),
        }
    }

    fn value(&mut self, out: &mut Writer, shape: &'r Shape, value: &Value) -> Encoded {
        match (&shape.kind, value) {
            (_, Value::Null) => out.nil(),
            (Kind::Any, value) => self.any(out, value)?,
            (Kind::Array(items), Value::Array(values)) => self.array(out, items, values)?,
            (Kind::Map(map), Value::Object(members)) => self.map(out, map, members)?,
            (Kind::TypedBlob, Value::Object(members)) => self.typed_blob(out, members, value)?,
            (Kind::Type(id), value) => self.nested(out, id, value)?,
            (_, value) => self.scalar(out, shape, value)?,
        }
        Ok(())
    }

    fn nested(&mut self, out: &mut Writer, id: &'r Arc<str>, value: &Value) -> Encoded {
        match self.names.latest(id) {
            Some(version) => self.object(out, version, value),
            None => Err(EncodeError::Unpublished(TypeRef {
                id: Arc::clone(id),
                version: 0,
            })),
        }
    }

    fn array(&mut self, out: &mut Writer, items: &'r Shape, values: &[Value]) -> Encoded {
        self.inside(|this| {
            out.array(values.len());
            values.iter().enumerate().try_for_each(|(index, value)| {
                this.at(format!("[{index}]"), |this| this.value(out, items, value))
            })
        })
    }

    fn map(
        &mut self,
        out: &mut Writer,
        map: &'r MapShape,
        members: &Map<String, Value>,
    ) -> Encoded {
        let mut entries = Vec::with_capacity(members.len());
        for (key, value) in members {
            entries.push((
                self.at(format!("[{key:?}]"), |this| {
                    this.map_key(&map.key.kind, key)
                })?,
                key,
                value,
            ));
        }
        entries.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        self.inside(|this| {
            out.map(entries.len());
            entries.into_iter().try_for_each(|(encoded, key, value)| {
                encoded.write(out);
                this.at(format!("[{key:?}]"), |this| {
                    this.value(out, &map.value, value)
                })
            })
        })
    }

    /// Encodes JSON without a shape.
    fn any(&mut self, out: &mut Writer, value: &Value) -> Encoded {
        match value {
            Value::Null => out.nil(),
            Value::Bool(flag) => out.bool(*flag),
            Value::String(text) => out.str(text),
            Value::Number(number) => match scalar::whole(number) {
                Some(whole) => out.int(whole),
                None => out.f64(number.as_f64().unwrap_or_default()),
            },
            Value::Array(values) => {
                static ANY: Shape = Shape {
                    kind: Kind::Any,
                    semantic: None,
                    enum_id: None,
                };
                self.array(out, &ANY, values)?;
            }
            Value::Object(members) => self.any_object(out, members)?,
        }
        Ok(())
    }

    fn any_object(&mut self, out: &mut Writer, members: &Map<String, Value>) -> Encoded {
        let mut entries: Vec<_> = members.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        self.inside(|this| {
            out.map(entries.len());
            entries.into_iter().try_for_each(|(key, value)| {
                out.str(key);
                this.at(format!("[{key:?}]"), |this| this.any(out, value))
            })
        })
    }

    /// Encodes `{type_id, type_version, data}`, or with `bytes` in place of the data.
    fn typed_blob(
        &mut self,
        out: &mut Writer,
        members: &Map<String, Value>,
        whole: &Value,
    ) -> Encoded {
        const EXPECTED: &str = "a typed blob {type_id, type_version, data}";
        let known =
            |key: &str| matches!(key, "type_id" | "type_version" | "data" | "bytes" | "error");
        let type_id = members.get("type_id").and_then(Value::as_str);
        let version = members.get("type_version").and_then(Value::as_u64);
        let version = version.and_then(|version| u32::try_from(version).ok());
        let (Some(type_id), Some(version), true) =
            (type_id, version, members.keys().all(|key| known(key)))
        else {
            return Err(self.wrong(EXPECTED, whole));
        };
        let type_ref = TypeRef::new(type_id, version);
        let bytes = match (members.get("data"), members.get("bytes")) {
            (Some(data), None) => self.inner_payload(&type_ref, data)?,
            (None, Some(bytes)) => self.at(".bytes".to_owned(), |this| this.bytes(bytes))?,
            _ => return Err(self.wrong(EXPECTED, whole)),
        };
        out.map(3);
        out.int(1);
        out.str(type_id);
        out.int(2);
        out.int(version.into());
        out.int(3);
        out.bin(&bytes);
        Ok(())
    }

    fn inner_payload(&mut self, type_ref: &TypeRef, data: &Value) -> Result<Vec<u8>, EncodeError> {
        let registry = self.names.registry;
        let version = registry.descriptor(&type_ref.id, type_ref.version);
        let version = version.ok_or_else(|| EncodeError::Unpublished(type_ref.clone()))?;
        let mut inner = Writer::default();
        self.inside(|this| {
            this.at(".data".to_owned(), |this| {
                this.object(&mut inner, version, data)
            })
        })?;
        Ok(inner.into_bytes())
    }
}

/// What a value is, for messages; long ones by their kind only.
fn describe(value: &Value) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > SHOWN_BYTES_MAX => {
            format!("a string of {} bytes", text.len())
        }
        scalar => scalar.to_string(),
    }
}
