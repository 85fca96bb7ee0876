//! The arguments of a tool call. An unknown argument is rejected, so that a misspelt one is not
//! silently ignored.

use serde_json::{Map, Value};
use turnkeep_ledger::json::Node;
use turnkeep_ledger::{Code, Fault};

/// The arguments of one call.
pub(super) struct Arguments<'a>(Node<'a>);

impl<'a> Arguments<'a> {
    /// Checks that the tool has all of these arguments.
    pub(super) fn new(value: &'a Value, schema: &Value) -> Result<Self, Fault> {
        let node = Node::root(value, Code::ToolRequestInvalid);
        let known = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = known
            .map(Map::keys)
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match node.unknown_field(&known)? {
            Some(path) => {
                let message = match &known[..] {
                    [] => "is not an argument: this tool takes none".to_owned(),
                    known => format!("is not an argument here; these are: {}", known.join(", ")),
                };
                Err(Fault::new(Code::UnknownField, path, message))
            }
            None => Ok(Self(node)),
        }
    }

    /// A required text.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, Fault> {
        self.0.field(name)?.text()
    }

    /// An optional text.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.0.optional(name)?.map(|node| node.text()).transpose()
    }

    /// An optional number.
    pub(super) fn optional_count(&self, name: &str) -> Result<Option<usize>, Fault> {
        let count = self
            .0
            .optional(name)?
            .map(|node| node.count())
            .transpose()?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// Optional texts.
    pub(super) fn optional_texts(&self, name: &str) -> Result<Option<Vec<&'a str>>, Fault> {
        let Some(node) = self.0.optional(name)? else {
            return Ok(None);
        };
        node.items()?
            .iter()
            .map(Node::text)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// All arguments.
    pub(super) fn root(&self) -> &Node<'a> {
        &self.0
    }

    /// The value of an argument, or null if it is missing.
    pub(super) fn value(&self, name: &str) -> Value {
        self.0.value.get(name).cloned().unwrap_or_default()
    }
}
