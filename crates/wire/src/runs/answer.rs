//! The bodies of responses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ApprovalView, ArtifactView, AttentionAction, AttentionKind, CapabilitiesView,
    DirectoryEntryKind, EdgeView, EventView, FileSource, NodeView, OwnerKind, PausedReason,
    Provider, ResolutionView, RuleView, RunStatus, RunSummary, RunView, Scope, UuidText, WaitKind,
};
use crate::json::Time;

shapes! {
    /// A run.
    struct RunAnswer {
        run: RunView,
    }
    /// Runs, newest first.
    struct RunList {
        runs: Vec<RunView>,
    }
    /// Runs in short, newest first.
    struct RunSummaryList {
        runs: Vec<RunSummary>,
    }
    /// A run that is gone.
    struct RunGone {
        run_id: UuidText,
    }
    /// Events in ascending order.
    struct EventPage {
        events: Vec<EventView>,
        page: EventPageInfo,
    }
    /// Where the next page begins.
    struct EventPageInfo {
        has_more: bool,
    }
    optional {
        /// The `before` or `after` of the next page.
        next_cursor: u64,
    }
    /// A node.
    struct NodeAnswer {
        node: NodeView,
    }
    /// A node that is gone.
    struct NodeGone {
        node_id: UuidText,
    }
    /// An edge.
    struct EdgeAnswer {
        edge: EdgeView,
    }
    /// An edge that is gone.
    struct EdgeGone {
        edge_id: UuidText,
    }
    /// A message that waits in an inbox.
    struct ChatAccepted {
        message_id: UuidText,
    }
    /// An envelope that waits in an inbox.
    struct HandoffAccepted {
        payload_id: UuidText,
    }
    /// Open approvals, oldest first.
    struct ApprovalList {
        approvals: Vec<ApprovalOfRun>,
    }
    /// An approval and its run.
    struct ApprovalOfRun {
        run_id: UuidText,
        approval: ApprovalView,
    }
    optional {
        /// Whether the answer may bring other arguments.
        can_edit: bool,
        /// How long a yes to the call as it is may hold.
        scopes: Vec<Scope>,
    }
    /// An approval that is resolved.
    struct ApprovalResolvedAnswer {
        approval_id: UuidText,
        resolution: ResolutionView,
    }
    /// Rules that answer approvals.
    struct RuleList {
        rules: Vec<RuleOfRun>,
    }
    /// A rule and its run.
    struct RuleOfRun {
        run_id: UuidText,
        rule: RuleView,
    }
    /// A rule that is gone.
    struct RuleGone {
        rule_id: UuidText,
    }
    /// Artifacts, oldest first.
    struct ArtifactList {
        artifacts: Vec<ArtifactView>,
    }
    /// An artifact.
    struct ArtifactAnswer {
        artifact: ArtifactView,
    }
    /// What waits for a person, oldest first.
    struct AttentionList {
        items: Vec<AttentionItem>,
    }
    /// One thing that waits for a person.
    struct AttentionItem {
        /// `approval:`, `turn:`, `node:` or `run:` and an id. With `kind` it is unique.
        #[serde(rename = "ref")]
        #[schema(example = "approval:0b5f1c9e-8a3d-4c55-9a67-0123456789ab")]
        target: String,
        kind: AttentionKind,
        run_id: UuidText,
        since: Time,
        summary: String,
        actions: Vec<AttentionAction>,
    }
    optional {
        node_id: UuidText,
        node_label: String,
        node_alias: String,
    }
    /// Why a run does not go on.
    struct WhyGraph {
        /// Those of the run, then those of its nodes in the order of their creation.
        waits: Vec<WaitView>,
        /// The places in `waits` of those that no other node can end.
        root_causes: Vec<u64>,
        /// Circles of nodes that wait for each other's replies.
        deadlocks: Vec<Vec<UuidText>>,
    }
    /// One wait.
    struct WaitView {
        reason: WaitKind,
        since: Time,
        age_ms: u64,
        owner: OwnerView,
    }
    optional {
        /// The node that waits; the run as a whole without one.
        node_id: UuidText,
        /// The status of a stopped run.
        run_status: RunStatus,
        paused_reason: PausedReason,
        approval_id: UuidText,
        /// The question that has no reply.
        payload_id: UuidText,
        /// The turn that failed.
        turn_id: UuidText,
        /// Why it failed, in words.
        detail: String,
        /// The files that a person decides about.
        paths: Vec<String>,
        /// When it ends by itself.
        until: Time,
    }
    /// Who can end a wait.
    struct OwnerView {
        kind: OwnerKind,
    }
    optional {
        node_id: UuidText,
        /// The program, or its provider.
        program: String,
    }
    /// Changes that were brought into the run's directory.
    struct AppliedChanges {
        /// The files that changed.
        applied: Vec<String>,
        /// The name of the tree that the directory has now.
        tree: String,
        /// Whether the verification commands passed on that tree.
        verified: bool,
    }
    /// Files that have the content from before a turn again, or keep what the turn wrote.
    struct TurnFilesAnswer {
        paths: Vec<String>,
    }
    optional {
        /// Files that a revert did not change: they have the content from before the turn already.
        already: Vec<String>,
    }
    /// A verification.
    struct VerificationAnswer {
        ok: bool,
        /// The report.
        artifact: ArtifactView,
    }
    /// The programs that nodes can use.
    struct ProviderList {
        providers: Vec<ProviderHealth>,
    }
    /// A program that nodes can use.
    struct ProviderHealth {
        /// `codex`, `claude`, `gemini` or the name of a configured program.
        name: String,
        provider: Provider,
        found: bool,
        features: ProviderFeatures,
    }
    optional {
        /// Where it was found.
        path: String,
        version: String,
        /// Absent if the program does not say.
        logged_in: bool,
        /// What to do if it cannot be used.
        hint: String,
    }
    /// What a program can do. Clients hide the rest.
    struct ProviderFeatures {
        resume: bool,
        steer: bool,
        approvals: bool,
        edit_args: bool,
        usage: bool,
        cost: bool,
        mcp: bool,
        plan_mode: bool,
    }
    /// Role templates.
    struct RoleList {
        roles: Vec<RoleFile>,
    }
    /// A role template.
    struct RoleFile {
        name: String,
        source: FileSource,
        text: String,
        /// What its nodes may do unless their request says otherwise.
        capabilities: CapabilitiesView,
    }
    /// Teams.
    struct TeamList {
        teams: Vec<TeamFile>,
    }
    /// A team: nodes, edges, goal and verification as TOML.
    struct TeamFile {
        name: String,
        source: FileSource,
        text: String,
    }
    /// A role or team that is gone. A built-in one of the same name counts again.
    struct FileGone {
        name: String,
    }
    /// The content of a directory.
    struct DirectoryListing {
        path: String,
        /// Directories first, each group by name.
        entries: Vec<DirectoryEntry>,
        /// Whether there are more entries.
        truncated: bool,
    }
    optional {
        /// The directory above, if it may be listed.
        parent: String,
    }
    /// An entry of a directory.
    struct DirectoryEntry {
        name: String,
        kind: DirectoryEntryKind,
    }
}
