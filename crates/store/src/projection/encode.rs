//! Encoding: JSON with field names becomes a payload's msgpack, by a published descriptor.
//!
//! It accepts the JSON that projection prints by default. The same JSON always gives the same
//! bytes: tags ascend, integers take the fewest bytes, map keys are sorted. It fails with the path
//! of the first value that does not fit.

mod scalar;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};
use turnkeep_types::TypeRef;
use turnkeep_types::msgpack::MsgpackWriter;

use super::payload_reader::NESTING_MAX;
use super::resolve::Resolver;
use super::warning::truncate_path;
use crate::registry::{Field, Kind, MapShape, Registry, Shape, TypeVersion};

/// Why JSON cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The request names no type.
    #[error("data needs a type: name type_id and type_version")]
    MissingType,
    /// The type is not published.
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
    /// The data lacks a field that is not optional.
    #[error(
        "{path} is missing, and {type_ref} does not mark it optional; allow_missing accepts data without it"
    )]
    MissingField {
        /// The way to it by names.
        path: String,
        /// The type that has the field.
        type_ref: TypeRef,
    },
    /// A value does not fit its descriptor.
    #[error("{path} must be {expected}, not {found}")]
    WrongValue {
        /// The way to it by names.
        path: String,
        /// What the descriptor allows.
        expected: String,
        /// What the data has.
        found: String,
    },
    /// The data is nested too deeply.
    #[error("the data nests deeper than {NESTING_MAX} levels at {path}")]
    TooDeep {
        /// The path to the first value beyond the limit.
        path: String,
    },
}

/// Whether data may lack fields that are not optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    /// The encoder rejects such data.
    Refuse,
    /// The encoder accepts such data.
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
    let mut out = MsgpackWriter::default();
    encoder.encode_object(&mut out, version, data)?;
    Ok(out.into_bytes())
}

struct Encoder<'r> {
    names: Resolver<'r>,
    missing: MissingFields,
    /// The path to the value that is being encoded, one string per step.
    path: Vec<String>,
    depth: usize,
}

type Encoded = Result<(), EncodeError>;

impl<'r> Encoder<'r> {
    fn wrong_value(&self, expected: impl Into<String>, found: &Value) -> EncodeError {
        EncodeError::WrongValue {
            path: self.path_text(""),
            expected: expected.into(),
            found: describe(found),
        }
    }

    /// The current path and one more step as text, truncated to a bounded length.
    fn path_text(&self, last: &str) -> String {
        let mut text = self.path.concat();
        text.push_str(last);
        truncate_path(&mut text);
        text
    }

    /// Runs `encode` with one more step on the path.
    fn encode_at<T>(
        &mut self,
        step: String,
        encode: impl FnOnce(&mut Self) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError> {
        self.path.push(step);
        let encoded = encode(self)?;
        self.path.pop();
        Ok(encoded)
    }

    /// Runs `encode` one nesting level deeper.
    fn encode_inside(&mut self, encode: impl FnOnce(&mut Self) -> Encoded) -> Encoded {
        // The same limit as in decoding: whatever is encoded can be read back.
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

    fn encode_object(
        &mut self,
        out: &mut MsgpackWriter,
        version: &'r TypeVersion,
        data: &Value,
    ) -> Encoded {
        let Value::Object(members) = data else {
            return Err(self.wrong_value(format!("an object of {}", version.type_ref), data));
        };
        // Resolve all names before anything is written: an error must leave no partial output.
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
        self.reject_missing(version, members)?;
        // Ascending tags give equal data equal bytes, and so equal hashes.
        fields.sort_by_key(|(field, _)| field.tag);
        self.encode_inside(|this| {
            out.write_map_header(fields.len());
            for (field, value) in fields {
                out.write_int(field.tag.into());
                this.encode_at(format!(".{}", field.name), |this| {
                    this.encode_value(out, &field.shape, value)
                })?;
            }
            Ok(())
        })
    }

    /// Returns an error if a required field is missing. A field that is null is not missing.
    fn reject_missing(&self, version: &TypeVersion, members: &Map<String, Value>) -> Encoded {
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

    fn encode_value(
        &mut self,
        out: &mut MsgpackWriter,
        shape: &'r Shape,
        value: &Value,
    ) -> Encoded {
        match (&shape.kind, value) {
            // Any field may be null, as in rendering.
            (_, Value::Null) => out.write_nil(),
            (Kind::Any, value) => self.encode_any(out, value)?,
            (Kind::Array(items), Value::Array(values)) => self.encode_array(out, items, values)?,
            (Kind::Map(map), Value::Object(members)) => self.encode_map(out, map, members)?,
            (Kind::TypedBlob, Value::Object(members)) => {
                self.encode_typed_blob(out, members, value)?;
            }
            (Kind::Type(id), value) => self.encode_nested(out, id, value)?,
            (_, value) => self.encode_scalar(out, shape, value)?,
        }
        Ok(())
    }

    fn encode_nested(
        &mut self,
        out: &mut MsgpackWriter,
        id: &'r Arc<str>,
        value: &Value,
    ) -> Encoded {
        match self.names.latest(id) {
            Some(version) => self.encode_object(out, version, value),
            None => Err(EncodeError::Unpublished(TypeRef {
                id: Arc::clone(id),
                version: 0,
            })),
        }
    }

    fn encode_array(
        &mut self,
        out: &mut MsgpackWriter,
        items: &'r Shape,
        values: &[Value],
    ) -> Encoded {
        self.encode_inside(|this| {
            out.write_array_header(values.len());
            for (index, value) in values.iter().enumerate() {
                this.encode_at(format!("[{index}]"), |this| {
                    this.encode_value(out, items, value)
                })?;
            }
            Ok(())
        })
    }

    fn encode_map(
        &mut self,
        out: &mut MsgpackWriter,
        map: &'r MapShape,
        members: &Map<String, Value>,
    ) -> Encoded {
        let mut entries = Vec::with_capacity(members.len());
        for (key, value) in members {
            let encoded = self.encode_at(format!("[{key:?}]"), |this| {
                this.parse_map_key(&map.key.kind, key)
            })?;
            entries.push((encoded, key, value));
        }
        // By the typed key, not by its text: 9 comes before 10.
        entries.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        self.encode_inside(|this| {
            out.write_map_header(entries.len());
            for (encoded, key, value) in entries {
                encoded.write(out);
                this.encode_at(format!("[{key:?}]"), |this| {
                    this.encode_value(out, &map.value, value)
                })?;
            }
            Ok(())
        })
    }

    /// Encodes JSON without a shape.
    fn encode_any(&mut self, out: &mut MsgpackWriter, value: &Value) -> Encoded {
        match value {
            Value::Null => out.write_nil(),
            Value::Bool(flag) => out.write_bool(*flag),
            Value::String(text) => out.write_str(text),
            Value::Number(number) => match scalar::as_whole_number(number) {
                Some(whole) => out.write_int(whole),
                None => out.write_f64(number.as_f64().unwrap_or_default()),
            },
            Value::Array(values) => {
                static ANY: Shape = Shape {
                    kind: Kind::Any,
                    semantic: None,
                    enum_id: None,
                };
                self.encode_array(out, &ANY, values)?;
            }
            Value::Object(members) => self.encode_any_object(out, members)?,
        }
        Ok(())
    }

    fn encode_any_object(
        &mut self,
        out: &mut MsgpackWriter,
        members: &Map<String, Value>,
    ) -> Encoded {
        // Members keep the order of the document, but equal data must give equal bytes.
        let mut entries: Vec<_> = members.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        self.encode_inside(|this| {
            out.write_map_header(entries.len());
            for (key, value) in entries {
                out.write_str(key);
                this.encode_at(format!("[{key:?}]"), |this| this.encode_any(out, value))?;
            }
            Ok(())
        })
    }

    /// Encodes `{type_id, type_version, data}`, or `bytes` in place of `data`.
    fn encode_typed_blob(
        &mut self,
        out: &mut MsgpackWriter,
        members: &Map<String, Value>,
        whole: &Value,
    ) -> Encoded {
        const EXPECTED: &str = "a typed blob {type_id, type_version, data}";
        let type_ref = read_blob_type(members).ok_or_else(|| self.wrong_value(EXPECTED, whole))?;
        let bytes = match (members.get("data"), members.get("bytes")) {
            (Some(data), None) => self.encode_inner_payload(&type_ref, data)?,
            (None, Some(bytes)) => {
                self.encode_at(".bytes".to_owned(), |this| this.parse_bytes(bytes))?
            }
            _ => return Err(self.wrong_value(EXPECTED, whole)),
        };
        out.write_map_header(3);
        out.write_int(1);
        out.write_str(&type_ref.id);
        out.write_int(2);
        out.write_int(type_ref.version.into());
        out.write_int(3);
        out.write_bin(&bytes);
        Ok(())
    }

    fn encode_inner_payload(
        &mut self,
        type_ref: &TypeRef,
        data: &Value,
    ) -> Result<Vec<u8>, EncodeError> {
        let registry = self.names.registry;
        let version = registry.descriptor(&type_ref.id, type_ref.version);
        let version = version.ok_or_else(|| EncodeError::Unpublished(type_ref.clone()))?;
        let mut inner = MsgpackWriter::default();
        self.encode_inside(|this| {
            this.encode_at(".data".to_owned(), |this| {
                this.encode_object(&mut inner, version, data)
            })
        })?;
        Ok(inner.into_bytes())
    }
}

/// The type that a typed blob names; `None` if it is not named, or a member is unknown.
fn read_blob_type(members: &Map<String, Value>) -> Option<TypeRef> {
    // A projection adds `error` to a blob that it cannot decode. Its own output must be accepted.
    let is_known = |key: &String| {
        matches!(
            key.as_str(),
            "type_id" | "type_version" | "data" | "bytes" | "error"
        )
    };
    if !members.keys().all(is_known) {
        return None;
    }
    let version = u32::try_from(members.get("type_version")?.as_u64()?).ok()?;
    Some(TypeRef::new(members.get("type_id")?.as_str()?, version))
}

/// Describes a value for messages. Long values are described by their kind only.
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
