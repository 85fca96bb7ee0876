//! The list of tools, and which callers have each.
//!
//! A caller never sees a tool that it may not use, and calling one is the same error as an unknown
//! tool. Names, texts and schemas are visible to clients.

use std::sync::LazyLock;

use serde_json::{Value, json};
use turnkeep_ledger::{Principal, acceptance, projection};

use super::budget::{ANSWER_BYTES_DEFAULT, ANSWER_BYTES_MAX, ANSWER_BYTES_MIN};
use super::node_tools;
use super::reading::{IDS_MAX, ITEMS_MAX, WAIT_SECONDS_MAX};
use crate::principal::Caller;

/// Which callers have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAudience {
    /// Every caller. The owner names the world.
    Reader,
    /// Persons with a write grant.
    Writer,
    /// The owner.
    Owner,
    /// Nodes of runs.
    Node,
}

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) audience: ToolAudience,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) properties: Value,
    pub(super) required: &'static [&'static str],
}

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let ledger_tools = [reading_tools(), vec![writing_tool()]];
    let other_tools = [store_tools(), node_tools::tools()];
    let all = ledger_tools.into_iter().chain(other_tools);
    all.flatten().collect()
});

pub(super) fn text_property(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn texts_property(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn count_property(description: &str, max: usize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "description": description })
}

pub(super) fn offset_property(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn max_bytes_property() -> Value {
    let description = format!(
        "The answer's bytes at most, as they are sent; {ANSWER_BYTES_DEFAULT} unless given"
    );
    json!({
        "type": "integer", "minimum": ANSWER_BYTES_MIN, "maximum": ANSWER_BYTES_MAX, "description": description,
    })
}

fn reading_tools() -> Vec<Tool> {
    [starting_tools(), lookup_tools()]
        .into_iter()
        .flatten()
        .collect()
}

fn reading_tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    properties: Value,
    required: &'static [&'static str],
) -> Tool {
    Tool {
        name,
        audience: ToolAudience::Reader,
        title,
        description,
        properties,
        required,
    }
}

fn starting_tools() -> Vec<Tool> {
    vec![
        reading_tool(
            "whoami",
            "Who you are here",
            "Use it when you need to know who you are here, what you may do, or how somebody is called. It gives \
             your person, your world, your rights, everyone else with id and label, the world's time, and \
             `cursor_now` to wait for news from now on.",
            json!({
                "after": text_property("A former answer's `next_after`, for more persons"),
                "max_bytes": max_bytes_property(),
            }),
            &[],
        ),
        reading_tool(
            "ledger_read",
            "Read the stream",
            "Use it first of all, with `newest`, to learn what is going on; then, with `cursor`, whenever you want \
             to know what is new. With `wait_seconds` it waits until somebody writes something that you may see. \
             It gives entries in order, each with its audience in words; pass `cursor_after` as `cursor` to go on. \
             If `more_before` is true, not all of the newest fit: pass `cursor_before` as `cursor` to read the \
             ones left out; without a `cursor_before`, start at the beginning. An entry with `next_offset` is cut: ledger_get has the rest.",
            json!({
                "cursor": text_property("A former answer's `cursor_after`; none starts at the beginning"),
                "newest": count_property("The newest so many instead, up to now", projection::PAGE_ENTRIES_MAX),
                "limit": count_property("Entries at most; 500 unless given", projection::PAGE_ENTRIES_MAX),
                "wait_seconds": {
                    "type": "integer", "minimum": 0, "maximum": WAIT_SECONDS_MAX,
                    "description": "If there is nothing behind the cursor, wait so long for it; 0 unless given",
                },
                "max_bytes": max_bytes_property(),
            }),
            &[],
        ),
    ]
}

fn lookup_tools() -> Vec<Tool> {
    vec![
        reading_tool(
            "ledger_search",
            "Search the ledger",
            "Use it before you ask somebody, decide something or repeat work: it may have been said. It finds \
             entries by words, best first, as verbatim excerpts with their ids, authors and audiences. A result \
             with `context: true` does not match itself: it was said right before or after a match and may \
             explain it. Words in double quotes must occur exactly so. No words and a time window: newest first.",
            json!({
                "query": text_property("Words to match"),
                "person_id": text_property("Only what this person wrote: an id or a label"),
                "from": text_property("Not before this time, RFC 3339"),
                "to": text_property("Before this time, RFC 3339"),
                "limit": count_property("Results at most, with context; 10 unless given", 200),
                "context": {
                    "type": "integer", "minimum": 0, "maximum": 200,
                    "description": "Of these, results with `context: true` at most; as many as `limit` unless given, \
                        0 for matches only",
                },
                "max_bytes": max_bytes_property(),
            }),
            &["query"],
        ),
        reading_tool(
            "ledger_get",
            "Get entries by id",
            "Use it to read an entry that was cut, or to quote entries whose ids you have. One id gives as much of \
             its text as fits, from `offset` on; `next_offset` says where to go on. Several ids give the beginning \
             of each. What you may not see is absent.",
            json!({
                "ids": texts_property("Ids of entries (e_…) or bundles (b_…)"),
                "offset": offset_property("The first byte of the one entry's text; 0 unless given"),
                "limit": count_property("Entries at most", IDS_MAX),
                "max_bytes": max_bytes_property(),
            }),
            &["ids"],
        ),
        reading_tool(
            "ledger_pocket",
            "Read the calendar or the messages",
            "Use it when you need to know what is planned, or what was noted as a message. It gives the items that \
             still stand, oldest first, with `item_id` to move or cancel them by ledger_write, and the world's time.",
            json!({
                "part": { "type": "string", "enum": ["calendar", "messages"], "description": "Which list" },
                "skip": offset_property("A former answer's `next_skip`"),
                "limit": count_property("Items at most", ITEMS_MAX),
                "max_bytes": max_bytes_property(),
            }),
            &["part"],
        ),
        reading_tool(
            "capsule_get",
            "What is known of a person",
            "Use it before you work with a person or write about one: verbatim excerpts by and about that person, \
             the newest of them that fit, each with its source in `sources`.",
            json!({
                "person_id": text_property("Whom it is about: an id or a label"),
                "max_bytes": max_bytes_property(),
            }),
            &["person_id"],
        ),
        reading_tool(
            "scene_pack_build",
            "The scene",
            "Use it to catch up in one call after a long pause: the scene as it was last set, or the newest \
             entries verbatim.",
            json!({ "max_bytes": max_bytes_property() }),
            &[],
        ),
    ]
}

fn writing_tool() -> Tool {
    Tool {
        name: "ledger_write",
        audience: ToolAudience::Writer,
        title: "Write to the ledger",
        description: "Use it to tell others a result, a decision, a question or an answer. It adds entries in your \
            own name, all of them or none. They stay for ever as they are: a correction is a new entry. Without \
            `visible_to` everyone may see an entry; a reply goes to those who may see what it answers. Give `text` \
            for one entry, or `entries` for several. Give `expected_cursor` if nothing new may have come since you \
            last read: then it is refused with HEAD_MOVED instead of written. The answer has ids and no text.",
        properties: writing_properties(),
        required: &[],
    }
}

fn writing_properties() -> Value {
    let mut properties = entry_properties();
    properties["entries"] = json!({
        "type": "array", "minItems": 1, "maxItems": acceptance::ENTRIES_MAX,
        "items": {
            "type": "object", "properties": entry_properties(), "required": ["text"], "additionalProperties": false,
        },
        "description": "Several entries, instead of `text` and its companions",
    });
    properties["expected_cursor"] = text_property("The `cursor_after` that you read last");
    properties["request_id"] =
        text_property("Your own key for this write: the same again is written once");
    properties
}

fn entry_properties() -> Value {
    json!({
        "text": text_property("The words, kept to the byte"),
        "visible_to": texts_property("Who may see it besides you: ids or labels of persons, or GEORGE for the operator"),
        "reply_to": text_property("The entry_id of the entry that this one answers"),
        "calendar": {
            "type": "array",
            "description": "Dates in this entry. Title, location and notes are words of its text, letter by letter",
            "items": {
                "type": "object",
                "properties": {
                    "title": text_property("What; without it the item only cancels the one that it supersedes"),
                    "time": text_property("When, RFC 3339"),
                    "location": text_property("Where"),
                    "notes": text_property("More about it"),
                    "supersedes": text_property("The item_id that this one replaces or cancels"),
                },
                "additionalProperties": false,
            },
        },
    })
}

fn store_tools() -> Vec<Tool> {
    let tool = |name, title, description, properties, required| Tool {
        name,
        audience: ToolAudience::Owner,
        title,
        description,
        properties,
        required,
    };
    vec![
        tool(
            "store_contexts",
            "List contexts",
            "Use it to find a conversation in the store: its contexts, newest first.",
            json!({
                "label": text_property("Only contexts with this label: `key` or `key=value`"),
                "cursor": text_property("A page's `next_cursor`"),
                "limit": count_property("At most so many; 64 unless given", 1000),
                "worlds": { "type": "boolean", "description": "Also list the contexts in which worlds keep their records" },
            }),
            &[],
        ),
        tool(
            "store_turns",
            "Read turns",
            "Use it to read a context: a page of its turns, oldest first, ending at its head or before a turn.",
            json!({
                "context_id": text_property("The context"),
                "before_turn_id": text_property("Only ancestors of this turn"),
                "limit": count_property("At most so many; 64 unless given", 1000),
            }),
            &["context_id"],
        ),
        tool(
            "store_turn",
            "Read a turn",
            "Use it to read one turn with its payload.",
            json!({ "turn_id": text_property("The turn") }),
            &["turn_id"],
        ),
    ]
}

impl Tool {
    fn is_for(&self, caller: &Caller) -> bool {
        match (self.audience, caller) {
            (ToolAudience::Node, Caller::Node(node)) => node_tools::is_for(node, self.name),
            (ToolAudience::Node, Caller::Owner | Caller::Person(_))
            | (ToolAudience::Owner, Caller::Person(_) | Caller::Node(_)) => false,
            (ToolAudience::Reader | ToolAudience::Owner, Caller::Owner) => true,
            // A node without a world is no person, and has no tool of a world.
            (ToolAudience::Reader, _) => caller.person().is_some(),
            // The owner is no person either: no agent speaks as the operator.
            (ToolAudience::Writer, _) => caller
                .person()
                .is_some_and(|person| matches!(person.who, Principal::Person { write: true, .. })),
        }
    }

    /// The schema of its arguments.
    pub(super) fn schema(&self, caller: &Caller) -> Value {
        let mut properties = self.properties.clone();
        if self.audience == ToolAudience::Reader && matches!(caller, Caller::Owner) {
            properties["world"] = text_property("The world; `default` unless given");
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": self.required,
            "additionalProperties": false,
        })
    }

    fn describe(&self, caller: &Caller) -> Value {
        let reads = self.audience != ToolAudience::Writer;
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

/// The caller's tools, in the form of `tools/list`.
pub(super) fn list_tools(caller: &Caller) -> Value {
    let own = TOOLS.iter().filter(|tool| tool.is_for(caller));
    let described: Vec<Value> = own.map(|tool| tool.describe(caller)).collect();
    json!({ "tools": described })
}

/// A tool of the caller by its name.
pub(super) fn find_tool(caller: &Caller, name: &str) -> Option<&'static Tool> {
    TOOLS
        .iter()
        .find(|tool| tool.name == name && tool.is_for(caller))
}
