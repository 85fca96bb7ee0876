//! Requests to the ledger's tools, and the packs that they return.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

shapes! {
    /// The caller of a tool.
    #[serde(deny_unknown_fields)]
    RequestedBy {
        /// The caller's engine.
        engine: String,
        /// The caller's identity: the person, or GEORGE.
        actor: String,
        /// `PUBLIC`, or the caller's own view.
        knowledge_view: String,
    }
    /// A time window: `from` inclusive, `to` exclusive.
    #[serde(deny_unknown_fields)]
    TimeWindow {
        /// Null means no limit.
        #[serde(default)]
        from: Option<String>,
        /// Null means no limit.
        #[serde(default)]
        to: Option<String>,
    }
    /// The constraints of a tool call.
    #[serde(deny_unknown_fields)]
    Constraints {
        /// When.
        #[serde(default)]
        time_window: Option<TimeWindow>,
        /// 1 to 200; 10 unless given.
        #[serde(default)]
        limit: Option<u64>,
        /// Of `LEDGER_SEARCH`: at most so many of the results may be context, 0 to 200; as many as
        /// `limit` unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u64>,
        /// Whose.
        #[serde(default)]
        person_id: Option<String>,
    }
    /// A tool and its arguments.
    #[serde(deny_unknown_fields)]
    ToolCall {
        /// `LEDGER_SEARCH`, `LEDGER_GET`, `CAPSULE_GET` or `SCENE_PACK_BUILD`.
        name: String,
        /// Words to match, or ids.
        query_text: String,
        /// The constraints of the call.
        #[serde(default)]
        constraints: Option<Constraints>,
    }
    /// A request to one of the ledger's tools.
    #[serde(deny_unknown_fields)]
    ToolRequest {
        /// Echoed.
        tool_request_id: String,
        /// Echoed.
        request_id: String,
        /// The caller.
        requested_by: RequestedBy,
        /// The tool and its arguments.
        tool: ToolCall,
    }
    /// A piece of evidence.
    #[serde(deny_unknown_fields)]
    RetrievalResult {
        /// The entry.
        entry_id: String,
        /// Its bundle.
        bundle_id: String,
        /// When, in the world.
        created_at_world: String,
        /// PUBLIC or PRIVATE.
        visibility_scope: String,
        /// A piece of the entry's text, to the byte.
        verbatim_excerpt: String,
        /// Its author.
        author_id: String,
        /// Where in the text the excerpt is, in bytes.
        range: Vec<u64>,
        /// True when the entry has nothing that was asked for but stands beside one that has; else
        /// it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<bool>,
    }
    /// Evidence.
    #[serde(deny_unknown_fields)]
    RetrievalResultPack {
        /// From the request.
        tool_request_id: String,
        /// From the request.
        request_id: String,
        /// What was found.
        results: Vec<RetrievalResult>,
        /// Whether nothing was found.
        empty: bool,
        /// A mechanical remark.
        notes: Option<String>,
    }
    /// The sources of a text.
    #[serde(deny_unknown_fields)]
    Provenance {
        /// Entries.
        used_entry_ids: Vec<String>,
    }
    /// Where an excerpt is from.
    #[serde(deny_unknown_fields)]
    Excerpt {
        /// The entry.
        entry_id: String,
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
    }
    /// A part of a capsule.
    #[serde(deny_unknown_fields)]
    CapsuleSection {
        /// `SOURCE_EXCERPTS` or `OPTIONAL_DERIVED`.
        name: String,
        /// The text.
        text: String,
        /// The sources of the text.
        provenance: Provenance,
        /// Of `SOURCE_EXCERPTS`: where each is from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excerpts: Option<Vec<Excerpt>>,
    }
    /// What there is to read about a person.
    #[serde(deny_unknown_fields)]
    CapsulePack {
        /// A hash of person, view, cursor and content.
        capsule_id: String,
        /// About whom.
        person_id: String,
        /// The world time of the newest visible entry.
        created_at_world: String,
        /// `SOURCE_EXCERPTS` first.
        sections: Vec<CapsuleSection>,
        /// From the request, if it is a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
        /// From the request, if it is a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    }
    /// A scene in words.
    #[serde(deny_unknown_fields)]
    SceneAnchorPack {
        /// A hash of view, cursor and text.
        scene_anchor_id: String,
        /// From the request.
        request_id: String,
        /// The world time of the newest visible entry.
        created_at_world: String,
        /// The text.
        text: String,
        /// The sources of the text.
        provenance: Provenance,
        /// From the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolAnswer {
    /// `LEDGER_SEARCH` and `LEDGER_GET`.
    Retrieval(RetrievalResultPack),
    /// `CAPSULE_GET`.
    Capsule(CapsulePack),
    /// `SCENE_PACK_BUILD`.
    SceneAnchor(SceneAnchorPack),
}
