//! Questions to the ledger, and the packs that answer them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

shapes! {
    /// Who asks a tool.
    #[serde(deny_unknown_fields)]
    RequestedBy {
        /// With what.
        engine: String,
        /// The caller's identity: the person, or GEORGE.
        actor: String,
        /// `PUBLIC`, or the caller's own view.
        knowledge_view: String,
    }
    /// A time window: `from` inclusive, `to` exclusive.
    #[serde(deny_unknown_fields)]
    TimeWindow {
        /// Null is open.
        #[serde(default)]
        from: Option<String>,
        /// Null is open.
        #[serde(default)]
        to: Option<String>,
    }
    /// What a tool is held to.
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
    /// Which tool is asked what.
    #[serde(deny_unknown_fields)]
    ToolCall {
        /// `LEDGER_SEARCH`, `LEDGER_GET`, `CAPSULE_GET` or `SCENE_PACK_BUILD`.
        name: String,
        /// Words to match, or ids.
        query_text: String,
        /// What it is held to.
        #[serde(default)]
        constraints: Option<Constraints>,
    }
    /// A question to the ledger.
    #[serde(deny_unknown_fields)]
    ToolRequest {
        /// Echoed.
        tool_request_id: String,
        /// Echoed.
        request_id: String,
        /// Who asks.
        requested_by: RequestedBy,
        /// Which tool, and what.
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
        /// Who wrote it.
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
        /// The request's.
        tool_request_id: String,
        /// The request's.
        request_id: String,
        /// What was found.
        results: Vec<RetrievalResult>,
        /// Whether nothing was.
        empty: bool,
        /// A mechanical remark.
        notes: Option<String>,
    }
    /// What something was made from.
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
        /// The byte behind the last.
        end: u64,
    }
    /// A part of a capsule.
    #[serde(deny_unknown_fields)]
    CapsuleSection {
        /// `SOURCE_EXCERPTS` or `OPTIONAL_DERIVED`.
        name: String,
        /// The words.
        text: String,
        /// What they are from.
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
        /// Of the newest visible entry.
        created_at_world: String,
        /// `SOURCE_EXCERPTS` first.
        sections: Vec<CapsuleSection>,
        /// The request's, where a tool was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
        /// The request's, where a tool was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    }
    /// A scene in words.
    #[serde(deny_unknown_fields)]
    SceneAnchorPack {
        /// A hash of view, cursor and text.
        scene_anchor_id: String,
        /// The request's.
        request_id: String,
        /// Of the newest visible entry.
        created_at_world: String,
        /// The words.
        text: String,
        /// What they are from.
        provenance: Provenance,
        /// The request's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
    }
}

/// What a tool answers.
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
