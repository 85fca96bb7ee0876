//! The tools that there are, and whose they are.

use std::sync::LazyLock;

use serde_json::{Value, json};
use turnkeep_ledger::Principal;

use crate::principal::Caller;

/// Who has a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Everyone; the owner says in which world.
    Reader,
    /// Persons with a write grant.
    Writer,
    /// The owner.
    Owner,
}

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    whose: Whose,
    title: &'static str,
    description: &'static str,
    properties: Value,
    required: &'static [&'static str],
}

static TOOLS: LazyLock<Vec<Tool>> =
    LazyLock::new(|| [reading_tools(), vec![writing_tool()], store_tools()].into_iter().flatten().collect());

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn count(description: &str, max: u32) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "description": description })
}

fn reading_tools() -> Vec<Tool> {
    let tool = |name, title, description, properties, required| Tool {
        name,
        whose: Whose::Reader,
        title,
        description,
        properties,
        required,
    };
    vec![
        tool(
            "ledger_search",
            "Search the ledger",
            "Finds entries by words, best first, as verbatim excerpts with their ids. Words in double quotes must \
             occur exactly so. No words and a time window: newest first.",
            json!({
                "query": text("Words to match"),
                "person_id": text("Only what this person wrote"),
                "from": text("Not before this time, RFC 3339"),
                "to": text("Before this time, RFC 3339"),
                "limit": count("At most so many; 10 unless given", 200),
            }),
            &["query"],
        ),
        tool(
            "ledger_get",
            "Get entries by id",
            "The entries with these ids, or of the bundles with these ids. What you may not see is absent.",
            json!({
                "ids": texts("Ids of entries (e_…) or bundles (b_…)"),
                "limit": count("At most so many; 10 unless given", 200),
            }),
            &["ids"],
        ),
        tool(
            "capsule_get",
            "What is known of a person",
            "Verbatim excerpts by and about a person.",
            json!({ "person_id": text("Whom it is about") }),
            &["person_id"],
        ),
        tool(
            "scene_pack_build",
            "The scene",
            "Where things stand: the scene as it was last set, or the newest entries verbatim.",
            json!({}),
            &[],
        ),
        tool(
            "ledger_read",
            "Read the stream",
            "The entries that you may see, in order, from a cursor on; and the pocket: clock, calendar, messages. \
             Pass `cursor_after` as `cursor` to go on.",
            json!({
                "cursor": text("A page's `cursor_after`; none starts at the beginning"),
                "limit": count("At most so many; 500 unless given", 500),
            }),
            &[],
        ),
    ]
}

fn writing_tool() -> Tool {
    Tool {
        name: "ledger_write",
        whose: Whose::Writer,
        title: "Write to the ledger",
        description: "Adds one entry in your own name. It stays for ever as it is: a correction is a new entry. \
            Without `visible_to` everyone may see it.",
        properties: json!({
            "text": text("The words, kept to the byte"),
            "visible_to": texts("Who may see it besides you: ids of persons, or GEORGE for the operator"),
            "request_id": text("An idempotency key: the same again gives the same answer"),
        }),
        required: &["text"],
    }
}

fn store_tools() -> Vec<Tool> {
    let tool = |name, title, description, properties, required| Tool {
        name,
        whose: Whose::Owner,
        title,
        description,
        properties,
        required,
    };
    vec![
        tool(
            "store_contexts",
            "List contexts",
            "The store's contexts, newest first.",
            json!({
                "label": text("Only contexts with this label: `key` or `key=value`"),
                "cursor": text("A page's `next_cursor`"),
                "limit": count("At most so many; 64 unless given", 1000),
            }),
            &[],
        ),
        tool(
            "store_turns",
            "Read turns",
            "A page of a context's turns, oldest first, ending at its head or before a turn.",
            json!({
                "context_id": text("The context"),
                "before_turn_id": text("Only ancestors of this turn"),
                "limit": count("At most so many; 64 unless given", 1000),
            }),
            &["context_id"],
        ),
        tool(
            "store_turn",
            "Read a turn",
            "One turn with its payload.",
            json!({ "turn_id": text("The turn") }),
            &["turn_id"],
        ),
    ]
}

impl Tool {
    fn is_for(&self, caller: &Caller) -> bool {
        match (self.whose, caller) {
            (Whose::Reader, _) | (Whose::Owner, Caller::Owner) => true,
            (Whose::Writer, Caller::Person(person)) => {
                matches!(person.who, Principal::Person { write: true, .. })
            }
            (Whose::Writer, Caller::Owner) | (Whose::Owner, Caller::Person(_)) => false,
        }
    }

    /// The schema of its arguments.
    pub(super) fn schema(&self, caller: &Caller) -> Value {
        let mut properties = self.properties.clone();
        if self.whose == Whose::Reader && matches!(caller, Caller::Owner) {
            properties["world"] = text("The world; `default` unless given");
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": self.required,
            "additionalProperties": false,
        })
    }

    fn describe(&self, caller: &Caller) -> Value {
        let reads = self.whose != Whose::Writer;
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema(caller),
            "annotations": {
                "readOnlyHint": reads, "destructiveHint": false, "idempotentHint": reads, "openWorldHint": false,
            },
        })
    }
}

/// The caller's tools, as a list of tools shows them.
pub(super) fn of(caller: &Caller) -> Vec<Value> {
    TOOLS.iter().filter(|tool| tool.is_for(caller)).map(|tool| tool.describe(caller)).collect()
}

/// One of the caller's tools.
pub(super) fn find(caller: &Caller, name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name && tool.is_for(caller))
}
