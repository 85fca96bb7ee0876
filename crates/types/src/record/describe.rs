//! Describes records as a registry bundle, from the same tables that read and write them.
//!
//! Only tests use it: the bundle is a file in the repository, and a test compares the two. Panics if
//! a table contradicts itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Binary, Bool, DurationMs, F64, Flag, Flat, List, LongText, Map, Markdown, Optional, Record,
    Text, U32, U64, UnixMs,
};

/// A record that can be described.
pub trait DescribeRecord: Record {
    /// Describes its fields, and adds the records inside it to the bundle.
    fn describe(bundle: &mut BundleText) -> FieldTexts;
}

/// A shape that can be described.
pub trait DescribeShape {
    /// Describes the fields that a value of this shape takes.
    fn describe(tag: u64, name: &str, bundle: &mut BundleText) -> FieldTexts;
}

/// The description of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldText {
    name: String,
    /// The members that describe the type, such as `"type": "u64"`.
    members: String,
    optional: bool,
}

/// The descriptions of fields, by tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldTexts(BTreeMap<u64, FieldText>);

impl FieldTexts {
    /// One field whose value is always there.
    pub fn one(tag: u64, name: &str, members: impl Into<String>) -> Self {
        let field = FieldText {
            name: name.to_owned(),
            members: members.into(),
            optional: false,
        };
        Self(BTreeMap::from([(tag, field)]))
    }

    /// A long text: the text itself or the hash of its blob.
    pub fn long_text(tag: u64, name: &str) -> Self {
        let mut fields = Self::one(tag, name, STRING);
        let blob = Self::one(tag + 1, &format!("{name}_blob"), STRING);
        fields.0.extend(blob.0);
        fields.optional()
    }

    /// The same fields, which may be missing.
    #[must_use]
    pub fn optional(mut self) -> Self {
        for field in self.0.values_mut() {
            field.optional = true;
        }
        self
    }

    /// Adds a field of a struct.
    pub fn add_field<S: DescribeShape>(&mut self, tag: u64, name: &str, bundle: &mut BundleText) {
        let last = self.0.last_key_value().map_or(0, |(tag, _)| *tag);
        assert!(tag > last, "the tag {tag} of `{name}` does not ascend");
        self.0.extend(S::describe(tag, name, bundle).0);
    }

    /// Adds a field of a variant. Another variant may have it as well.
    pub fn add_variant_field<S: DescribeShape>(
        &mut self,
        tag: u64,
        name: &str,
        bundle: &mut BundleText,
    ) {
        for (tag, field) in S::describe(tag, name, bundle).optional().0 {
            let known = self.0.entry(tag).or_insert_with(|| field.clone());
            assert_eq!(*known, field, "the tag {tag} has two meanings");
        }
    }

    fn assert_names_differ(&self, record: &str) {
        let mut names = BTreeSet::new();
        for field in self.0.values() {
            assert!(
                names.insert(&field.name),
                "{record} has two `{}`",
                field.name
            );
        }
    }
}

/// A bundle under construction.
#[derive(Debug)]
pub struct BundleText {
    namespace: &'static str,
    types: BTreeMap<&'static str, FieldTexts>,
}

impl BundleText {
    /// A bundle without types. Their ids begin with the namespace.
    pub fn new(namespace: &'static str) -> Self {
        Self {
            namespace,
            types: BTreeMap::new(),
        }
    }

    /// Adds a record and the records inside it.
    pub fn add<R: DescribeRecord>(&mut self) {
        if !self.types.contains_key(R::NAME) {
            let fields = R::describe(self);
            fields.assert_names_differ(R::NAME);
            self.types.insert(R::NAME, fields);
        }
    }

    /// The bundle as JSON text.
    pub fn to_json(&self, number: u32) -> String {
        let namespace = self.namespace;
        let types = self.types.iter().map(|(name, fields)| {
            let fields = fields.0.iter().map(|(tag, field)| field_line(*tag, field));
            let fields = join_lines(fields);
            format!(
                "    \"{namespace}.{name}\": {{\n      \"versions\": {{\n        \"1\": {{\n          \
                 \"fields\": {{\n{fields}\n          }}\n        }}\n      }}\n    }}"
            )
        });
        let types = join_lines(types);
        format!(
            "{{\n  \"registry_version\": 1,\n  \"bundle_id\": \"{namespace}#{number}\",\n  \
             \"types\": {{\n{types}\n  }}\n}}\n"
        )
    }
}

fn join_lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join(",\n")
}

fn field_line(tag: u64, field: &FieldText) -> String {
    let FieldText {
        name,
        members,
        optional,
    } = field;
    let mut line = format!("            \"{tag}\": {{ \"name\": \"{name}\", {members}");
    if *optional {
        line.push_str(", \"optional\": true");
    }
    line.push_str(" }");
    line
}

const STRING: &str = "\"type\": \"string\"";

/// Shapes that take one field with a fixed type.
macro_rules! describe_shapes {
    ($($shape:ident: $members:literal,)+) => {
        $(impl DescribeShape for $shape {
            fn describe(tag: u64, name: &str, _bundle: &mut BundleText) -> FieldTexts {
                FieldTexts::one(tag, name, $members)
            }
        })+
    };
}

describe_shapes! {
    Text: "\"type\": \"string\"",
    Markdown: "\"type\": \"string\", \"semantic\": \"markdown\"",
    U64: "\"type\": \"u64\"",
    U32: "\"type\": \"u32\"",
    UnixMs: "\"type\": \"u64\", \"semantic\": \"unix_ms\"",
    DurationMs: "\"type\": \"u64\", \"semantic\": \"duration_ms\"",
    F64: "\"type\": \"f64\"",
    Bool: "\"type\": \"bool\"",
    Binary: "\"type\": \"bytes\"",
}

impl DescribeShape for Flag {
    fn describe(tag: u64, name: &str, bundle: &mut BundleText) -> FieldTexts {
        Bool::describe(tag, name, bundle).optional()
    }
}

impl DescribeShape for List {
    fn describe(tag: u64, name: &str, _bundle: &mut BundleText) -> FieldTexts {
        FieldTexts::one(tag, name, "\"type\": \"array\", \"items\": \"string\"").optional()
    }
}

impl DescribeShape for LongText {
    fn describe(tag: u64, name: &str, _bundle: &mut BundleText) -> FieldTexts {
        FieldTexts::long_text(tag, name)
    }
}

impl<R: DescribeRecord> DescribeShape for Map<R> {
    fn describe(tag: u64, name: &str, bundle: &mut BundleText) -> FieldTexts {
        bundle.add::<R>();
        let (namespace, record) = (bundle.namespace, R::NAME);
        FieldTexts::one(tag, name, format!("\"type\": \"{namespace}.{record}\""))
    }
}

impl<R: DescribeRecord> DescribeShape for Flat<R> {
    fn describe(tag: u64, name: &str, bundle: &mut BundleText) -> FieldTexts {
        let fields = R::describe(bundle);
        let first = fields.0.first_key_value().map(|(first, _)| *first);
        assert_eq!(first, Some(tag), "`{name}` begins at another tag");
        fields
    }
}

impl<S: DescribeShape> DescribeShape for Optional<S> {
    fn describe(tag: u64, name: &str, bundle: &mut BundleText) -> FieldTexts {
        S::describe(tag, name, bundle).optional()
    }
}
