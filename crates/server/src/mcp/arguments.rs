//! The arguments of a tool call. An unknown argument is rejected, so that a misspelt one is not
//! silently ignored.

use serde_json::{Map, Value};
use turnkeep_ledger::json::Node;
use turnkeep_ledger::{Code, Fault};

use super::held_value::HeldValue;
use crate::memory::MemoryPermit;

/// The arguments of one call. A tool that waits drops them first, because they may take much
/// memory.
pub(super) struct Arguments(HeldValue);

impl Arguments {
    /// Checks that the tool has all of these arguments.
    pub(super) fn new(given: HeldValue, schema: &Value) -> Result<Self, Fault> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties
            .map(Map::keys)
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let arguments = Self(given);
        check_known_arguments(&arguments.root(), &known)?;
        Ok(arguments)
    }

    /// A required text.
    pub(super) fn text(&self, name: &str) -> Result<&str, Fault> {
        self.root().field(name)?.text()
    }

    /// An optional text.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Fault> {
        self.root().optional_text(name)
    }

    /// An optional number.
    pub(super) fn optional_count(&self, name: &str) -> Result<Option<usize>, Fault> {
        let count = self.root().read_optional(name, |node| node.count())?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// Optional texts.
    pub(super) fn optional_texts(&self, name: &str) -> Result<Option<Vec<&str>>, Fault> {
        self.root()
            .read_optional(name, |node| node.items()?.iter().map(Node::text).collect())
    }

    /// All arguments as a node, whose faults have paths.
    pub(super) fn root(&self) -> Node<'_> {
        Node::root(self.0.value(), Code::ToolRequestInvalid)
    }

    /// The value of an argument, if it is given. Null counts as missing.
    pub(super) fn optional_value(&self, name: &str) -> Option<&Value> {
        self.0.value().get(name).filter(|value| !value.is_null())
    }

    /// All arguments.
    pub(super) fn value(&self) -> &Value {
        self.0.value()
    }

    /// Drops the arguments, and keeps their permit for what was copied from them.
    pub(super) fn into_permit(self) -> Option<MemoryPermit> {
        self.0.into_permit()
    }
}

/// Rejects an argument whose name is not one of these.
pub(super) fn check_known_arguments(node: &Node<'_>, known: &[&str]) -> Result<(), Fault> {
    let Some(path) = node.unknown_field(known)? else {
        return Ok(());
    };
    let message = match known {
        [] => "is not an argument: this tool takes none".to_owned(),
        known => format!("is not an argument here; these are: {}", known.join(", ")),
    };
    Err(Fault::new(Code::UnknownField, path, message))
}
