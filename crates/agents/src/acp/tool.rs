//! The calls of tools of a turn. An agent describes a call in parts: each update replaces the fields
//! that it has.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::context::{FileChange, describe_call, describe_command, describe_files};
use crate::event::{ToolCall, ToolResult};
use crate::field::{first_text, list_at, shorten, text_at, weight_of};
use crate::turn::ID_BYTES_MAX;

/// The unfinished calls of a turn. The table ignores further ones.
const OPEN_CALLS_MAX: usize = 1024;
/// The table keeps at most this much; it ignores updates beyond.
const TABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The files of a call that are named among its arguments.
const CALL_PATHS_MAX: usize = 100;
/// The argument that says what a call does: `execute`, `edit`, `read`, …
const TOOL_KIND: &str = "toolKind";
/// The fields of an update that the table keeps.
const KEPT_FIELDS: &[&str] = &[
    "title",
    "name",
    "kind",
    "rawInput",
    "rawOutput",
    "content",
    "locations",
];

/// The unfinished calls by their ids.
#[derive(Debug, Default)]
pub(super) struct ToolTable {
    calls: BTreeMap<String, Value>,
    bytes: usize,
}

impl ToolTable {
    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.bytes = 0;
    }

    /// Takes what an update says, and returns the call as it is known now. `fallback_id` names a
    /// call without an id.
    pub(super) fn update(&mut self, update: &Value, fallback_id: &str) -> Option<ToolCall> {
        let id = text_at(update, "/toolCallId").unwrap_or(fallback_id);
        let is_known = self.calls.contains_key(id);
        let has_room = is_known || self.calls.len() < OPEN_CALLS_MAX;
        if id.is_empty() || id.len() > ID_BYTES_MAX || !has_room {
            return None;
        }
        let known = self.calls.entry(id.to_owned()).or_insert_with(|| json!({}));
        // The new weight is known only after the update, which may replace fields.
        self.bytes -= if is_known { weight_of(known) } else { 0 };
        if self.bytes + weight_of(known) + weight_of(update) <= TABLE_BYTES_MAX {
            merge_update(known, update);
        }
        self.bytes += weight_of(known);
        Some(ToolCall {
            provider_id: id.to_owned(),
            name: name_of(known),
            args: args_of(known),
        })
    }

    /// Removes a finished call and returns its result.
    pub(super) fn finish(&mut self, id: &str, ok: bool) -> ToolResult {
        let known = self.calls.remove(id);
        self.bytes -= known.as_ref().map_or(0, weight_of);
        let known = known.unwrap_or_default();
        let text = output_of(&known);
        let (output, error) = match (ok, text) {
            (true, text) => (text, None),
            (false, text) => (
                None,
                Some(text.unwrap_or_else(|| "the tool failed".to_owned())),
            ),
        };
        ToolResult {
            provider_id: id.to_owned(),
            ok,
            output,
            error,
        }
    }

    /// The sentence about a call.
    pub(super) fn describe(&self, call: &ToolCall, cwd: &str) -> String {
        let known = self.calls.get(&call.provider_id).unwrap_or(&Value::Null);
        let files = files_of(known);
        let title = text_at(known, "/title").unwrap_or(&call.name);
        let has_command = first_text(&call.args, &["/command", "/cmd"]).is_some();
        if !files.is_empty() {
            describe_files(&files)
        } else if has_command {
            describe_call(call, cwd)
        } else if text_at(known, "/kind") == Some("execute") {
            // Most agents use the command as the title.
            describe_command(title, cwd)
        } else {
            format!("use {}", shorten(title, 300))
        }
    }
}

fn merge_update(known: &mut Value, update: &Value) {
    let Value::Object(known) = known else {
        return;
    };
    for key in KEPT_FIELDS {
        if let Some(value) = update.get(key).filter(|value| !value.is_null()) {
            known.insert((*key).to_owned(), value.clone());
        }
    }
}

/// The name of a tool. Titles differ from call to call, so they are the last resort: rules compare
/// names.
fn name_of(known: &Value) -> String {
    let kind = text_at(known, "/kind").filter(|kind| *kind != "other");
    let name = text_at(known, "/name").or(kind);
    let name = name.or_else(|| text_at(known, "/title"));
    name.unwrap_or("tool").to_owned()
}

/// The arguments of a call, completed by its title, its kind and its files. The title does not count as a
/// command, although it often is one: a rule that a person makes must not match a mere description.
fn args_of(known: &Value) -> Value {
    let mut args = match known.get("rawInput") {
        Some(Value::Object(fields)) => fields.clone(),
        Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
        None => Map::new(),
    };
    if let Some(title) = text_at(known, "/title") {
        args.entry("title").or_insert_with(|| json!(title));
    }
    let kind = text_at(known, "/kind").filter(|kind| *kind != "other");
    if matches!(kind, Some("read" | "edit" | "delete" | "move")) {
        let paths = paths_of(known);
        if let Some(path) = paths.first() {
            args.entry("path").or_insert_with(|| json!(path));
        }
        if paths.len() > 1 {
            args.entry("paths").or_insert_with(|| json!(paths));
        }
    }
    if let Some(kind) = kind {
        // Not from the agent's own arguments: what a node may do depends on it.
        args.insert(TOOL_KIND.to_owned(), json!(kind));
    }
    Value::Object(args)
}

/// The files of a call, each once.
fn paths_of(known: &Value) -> Vec<&str> {
    let diffs = list_at(known, "/content").iter();
    let changed = diffs.filter(|part| text_at(part, "/type") == Some("diff"));
    let parts = changed.chain(list_at(known, "/locations"));
    let mut paths = Vec::new();
    for path in parts.filter_map(|part| text_at(part, "/path")) {
        if paths.len() < CALL_PATHS_MAX && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn files_of(known: &Value) -> Vec<FileChange> {
    let parts = list_at(known, "/content").iter();
    let diffs = parts.filter(|part| text_at(part, "/type") == Some("diff"));
    diffs
        .filter_map(|diff| {
            let old = text_at(diff, "/oldText").unwrap_or_default();
            let new = text_at(diff, "/newText").unwrap_or_default();
            Some(FileChange::between(text_at(diff, "/path")?, old, new))
        })
        .collect()
}

/// The text of a finished call: its content, or its raw output.
fn output_of(known: &Value) -> Option<String> {
    let parts = list_at(known, "/content").iter();
    let texts: Vec<&str> = parts
        .filter_map(|part| text_at(part, "/content/text"))
        .collect();
    if !texts.is_empty() {
        return Some(texts.join("\n"));
    }
    if let Some(text) = first_text(
        known,
        &["/rawOutput/output", "/rawOutput/error", "/rawOutput"],
    ) {
        return Some(text.to_owned());
    }
    let files = files_of(known);
    (!files.is_empty()).then(|| describe_files(&files))
}
