//! The state of a run that is being followed: a snapshot, brought up to date by events.
//!
//! The state holds what a person looks at, in bounded memory: each node's transcript keeps its newest
//! entries only. `apply` cannot fail, and ignores what it does not know. Texts are kept as the agents
//! wrote them; whoever shows them makes them printable.
//!
//! Example: the snapshot says that `impl` is idle after event 10. `node.patch {status: running}` with
//! number 11 sets its status; `message.assistant.delta` with number 12 extends its open text.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use turnkeep_wire::runs::{
    ApprovalView, EnvelopeView, EventBody, EventView, MessageRole, NodePatch, NodeView, RunPatch,
    RunView, TurnStatus,
};

use crate::commands::run::events::RunEvent;
use crate::commands::run::names::nodes_in_order;
use crate::render::run_text::tool_text;

/// The entries that a transcript keeps.
const ENTRIES_MAX: usize = 200;
/// The bytes of one entry that are kept. The end of a text is what a person wants to see.
const ENTRY_BYTES_MAX: usize = 32 << 10;

/// A run that is being followed.
#[derive(Debug, Clone)]
pub(crate) struct FollowedRun {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) status: String,
    /// Why it is paused.
    pub(crate) paused_reason: String,
    pub(crate) phase: String,
    pub(crate) mode: String,
    pub(crate) global_mode: String,
    pub(crate) tokens: u64,
    pub(crate) cost_usd: f64,
    /// In the order of their creation.
    pub(crate) nodes: Vec<FollowedNode>,
    /// What waits for a person, oldest first.
    pub(crate) approvals: Vec<OpenApproval>,
    /// The last event that the snapshot includes.
    snapshot_seq: u64,
    pub(crate) is_deleted: bool,
}

/// A node of it.
#[derive(Debug, Clone)]
pub(crate) struct FollowedNode {
    pub(crate) id: String,
    label: String,
    alias: String,
    pub(crate) role: String,
    pub(crate) provider: String,
    pub(crate) status: String,
    pub(crate) summary: String,
    pub(crate) inbox_count: u64,
    pub(crate) transcript: VecDeque<Entry>,
    /// Whether the last entry is a text that is still being written.
    is_writing: bool,
}

/// One piece of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) speaker: Speaker,
    pub(crate) text: String,
}

/// Whose words or deed an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaker {
    Agent,
    User,
    /// The server itself.
    System,
    /// A tool call, or its result.
    Tool,
    /// Another node handed this over.
    From(String),
    /// Handed over to another node.
    To(String),
}

/// A decision that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenApproval {
    pub(crate) id: String,
    pub(crate) node: String,
    pub(crate) is_question: bool,
    /// One sentence, or the question.
    pub(crate) context: String,
    pub(crate) args: Value,
    pub(crate) options: Vec<String>,
}

impl OpenApproval {
    pub(crate) fn new(view: &ApprovalView) -> Self {
        Self {
            id: view.approval_id.0.clone(),
            node: view.node_id.0.clone(),
            is_question: view.kind == turnkeep_wire::runs::ApprovalKind::Question,
            context: context_text(&view.context, &tool_text(&view.tool)),
            args: view.tool.args.clone(),
            options: view.options.clone(),
        }
    }
}

/// The sentence about an approval, or else its call.
fn context_text(context: &str, tool: &str) -> String {
    let text = if context.trim().is_empty() {
        tool
    } else {
        context
    };
    text.to_owned()
}

impl FollowedRun {
    /// The run as the server shows it now.
    pub(crate) fn new(run: &RunView, approvals: &[ApprovalView]) -> Self {
        Self {
            id: run.id.0.clone(),
            title: run.title.clone(),
            status: run.status.word().to_owned(),
            paused_reason: run
                .paused_reason
                .map(|reason| reason.word().to_owned())
                .unwrap_or_default(),
            phase: run.phase.word().to_owned(),
            mode: run.mode.word().to_owned(),
            global_mode: run.global_mode.word().to_owned(),
            tokens: run.usage.total_tokens,
            cost_usd: run.usage.cost_usd,
            nodes: nodes_in_order(run)
                .into_iter()
                .map(FollowedNode::new)
                .collect(),
            approvals: approvals.iter().map(OpenApproval::new).collect(),
            snapshot_seq: run.last_seq,
            is_deleted: false,
        }
    }

    /// The number of the last event that the snapshot includes.
    pub(crate) fn snapshot_seq(&self) -> u64 {
        self.snapshot_seq
    }

    /// What a person calls a node.
    pub(crate) fn node_name<'a>(&'a self, id: &'a str) -> &'a str {
        let node = self.nodes.iter().find(|node| node.id == id);
        node.map_or(id, FollowedNode::name)
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_deleted || matches!(self.status.as_str(), "completed" | "failed")
    }

    /// Whether nothing goes on until a person does something.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_running = |node: &FollowedNode| node.status == "running";
        let is_ready = |node: &FollowedNode| node.inbox_count > 0 && node.status != "blocked";
        let works = self.nodes.iter().any(is_running);
        let will_work = self.status == "running" && self.nodes.iter().any(is_ready);
        self.is_over() || !(works || will_work)
    }

    /// Adds an event. An event that the snapshot includes only adds to the transcripts.
    pub(crate) fn apply(&mut self, event: &RunEvent) {
        let Some(view) = &event.view else { return };
        self.note_in_transcript(view);
        if event.seq() > self.snapshot_seq || event.seq() == 0 {
            self.change_state(view);
        }
    }

    fn change_state(&mut self, event: &EventView) {
        let node = event.node_id.as_ref().map(|id| id.0.as_str());
        match &event.body {
            EventBody::RunPatch { patch, .. } => self.patch_run(patch),
            EventBody::RunPhase { phase, .. } => phase.word().clone_into(&mut self.phase),
            EventBody::RunMode { mode, global_mode } => {
                mode.word().clone_into(&mut self.mode);
                global_mode.word().clone_into(&mut self.global_mode);
            }
            EventBody::RunDeleted {} => self.is_deleted = true,
            EventBody::NodePatch { patch } => self.patch_node(node, patch),
            EventBody::NodeProgress {
                status, summary, ..
            } => {
                if let Some(node) = self.node_mut(node) {
                    status.word().clone_into(&mut node.status);
                    node.summary.clone_from(summary);
                }
            }
            EventBody::NodeDeleted { .. } => {
                self.nodes.retain(|kept| Some(kept.id.as_str()) != node);
            }
            EventBody::ApprovalRequested { .. } => self.approvals.extend(requested(event)),
            EventBody::ApprovalResolved { approval_id, .. } => {
                self.approvals.retain(|open| open.id != approval_id.0);
            }
            EventBody::TelemetryUsage {
                usage, cost_usd, ..
            } => {
                self.tokens = self.tokens.saturating_add(usage.total_tokens);
                self.cost_usd += cost_usd.unwrap_or_default();
            }
            _ => {}
        }
    }

    fn patch_run(&mut self, patch: &RunPatch) {
        let fields = [
            ("title", &mut self.title),
            ("status", &mut self.status),
            ("pausedReason", &mut self.paused_reason),
            ("phase", &mut self.phase),
            ("mode", &mut self.mode),
            ("globalMode", &mut self.global_mode),
        ];
        for (name, field) in fields {
            assign_text(&patch.0, name, field);
        }
    }

    /// Changes a node. The first patch of a node has all of its fields.
    fn patch_node(&mut self, node: Option<&str>, patch: &NodePatch) {
        let Some(id) = node else { return };
        if !self.nodes.iter().any(|known| known.id == id) {
            self.nodes.push(FollowedNode::unknown(id));
        }
        if let Some(node) = self.node_mut(Some(id)) {
            node.patch(&patch.0);
        }
    }

    fn node_mut(&mut self, id: Option<&str>) -> Option<&mut FollowedNode> {
        self.nodes
            .iter_mut()
            .find(|node| Some(node.id.as_str()) == id)
    }

    /// Adds what was said or done to the transcripts of the nodes concerned.
    fn note_in_transcript(&mut self, event: &EventView) {
        if let EventBody::HandoffSent { envelope } = &event.body {
            self.note_handoff(envelope);
            return;
        }
        let id = event.node_id.as_ref().map(|id| id.0.as_str());
        let Some(node) = self.node_mut(id) else {
            return;
        };
        match &event.body {
            EventBody::AnswerDelta { delta } => node.extend_text(delta),
            EventBody::AnswerFinal { content, .. } => node.finish_text(content),
            EventBody::MessageUser { message } => {
                let speaker = match message.role {
                    MessageRole::User => Speaker::User,
                    MessageRole::Assistant | MessageRole::System => Speaker::System,
                };
                node.add(speaker, &message.content);
            }
            EventBody::ToolStarted { tool } => node.add(Speaker::Tool, &tool_text(tool)),
            // A success needs no line: the call has one.
            EventBody::ToolCompleted { result, error, .. } if !result.ok => {
                let why = error.as_ref().map_or("", |error| error.message.as_str());
                node.add(Speaker::Tool, &format!("failed: {why}"));
            }
            EventBody::TurnStatus { status, detail, .. } => {
                node.note_turn(*status, detail.as_deref());
            }
            _ => {}
        }
    }

    fn note_handoff(&mut self, envelope: &EnvelopeView) {
        let (from, to) = (
            envelope.from_node_id.0.as_str(),
            envelope.to_node_id.0.as_str(),
        );
        let sender = Speaker::From(self.node_name(from).to_owned());
        let receiver = Speaker::To(self.node_name(to).to_owned());
        let message = envelope.payload.message.as_str();
        if let Some(node) = self.node_mut(Some(from)) {
            node.add(receiver, message);
        }
        if let Some(node) = self.node_mut(Some(to)) {
            node.add(sender, message);
        }
    }
}

/// The approval that an event asks for.
fn requested(event: &EventView) -> Option<OpenApproval> {
    let EventBody::ApprovalRequested {
        approval_id,
        kind,
        tool,
        context,
        options,
        ..
    } = &event.body
    else {
        return None;
    };
    Some(OpenApproval {
        id: approval_id.0.clone(),
        node: event
            .node_id
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        is_question: *kind == turnkeep_wire::runs::ApprovalKind::Question,
        context: context_text(context, &tool_text(tool)),
        args: tool.args.clone(),
        options: options.clone(),
    })
}

/// Assigns a field of a patch. Null means that the field has no value any more.
fn assign_text(patch: &Map<String, Value>, name: &str, field: &mut String) {
    if let Some(value) = patch.get(name) {
        value.as_str().unwrap_or_default().clone_into(field);
    }
}

impl FollowedNode {
    fn new(node: &NodeView) -> Self {
        Self {
            id: node.id.0.clone(),
            label: node.label.clone(),
            alias: node.alias.clone().unwrap_or_default(),
            role: node.role_template.clone(),
            provider: node
                .provider_name
                .clone()
                .unwrap_or_else(|| node.provider.word().to_owned()),
            status: node.status.word().to_owned(),
            summary: node.summary.clone(),
            inbox_count: node.inbox_count,
            transcript: VecDeque::new(),
            is_writing: false,
        }
    }

    /// A node before its first patch is read.
    fn unknown(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: id.to_owned(),
            alias: String::new(),
            role: String::new(),
            provider: String::new(),
            status: String::new(),
            summary: String::new(),
            inbox_count: 0,
            transcript: VecDeque::new(),
            is_writing: false,
        }
    }

    /// What a person calls it: its alias, or else its label.
    pub(crate) fn name(&self) -> &str {
        if self.alias.is_empty() {
            &self.label
        } else {
            &self.alias
        }
    }

    fn patch(&mut self, patch: &Map<String, Value>) {
        assign_text(patch, "label", &mut self.label);
        assign_text(patch, "alias", &mut self.alias);
        assign_text(patch, "roleTemplate", &mut self.role);
        assign_text(patch, "provider", &mut self.provider);
        if let Some(name) = patch.get("providerName").and_then(Value::as_str) {
            name.clone_into(&mut self.provider);
        }
        assign_text(patch, "status", &mut self.status);
        assign_text(patch, "summary", &mut self.summary);
        if patch.contains_key("inboxCount") {
            self.inbox_count = patch
                .get("inboxCount")
                .and_then(Value::as_u64)
                .unwrap_or_default();
        }
    }

    fn add(&mut self, speaker: Speaker, text: &str) {
        self.is_writing = false;
        if text.trim().is_empty() {
            return;
        }
        let mut text = text.to_owned();
        keep_end(&mut text);
        self.transcript.push_back(Entry { speaker, text });
        if self.transcript.len() > ENTRIES_MAX {
            self.transcript.pop_front();
        }
    }

    /// Adds to the text that is being written, or begins one.
    fn extend_text(&mut self, delta: &str) {
        match self.transcript.back_mut() {
            Some(entry) if self.is_writing => {
                entry.text.push_str(delta);
                keep_end(&mut entry.text);
            }
            _ => {
                self.add(Speaker::Agent, delta);
                self.is_writing = true;
            }
        }
    }

    /// Replaces the text that was being written by the whole one.
    fn finish_text(&mut self, content: &str) {
        if self.is_writing {
            self.transcript.pop_back();
        }
        self.add(Speaker::Agent, content);
    }

    fn note_turn(&mut self, status: TurnStatus, detail: Option<&str>) {
        let detail = detail
            .map(|detail| format!(": {detail}"))
            .unwrap_or_default();
        match status {
            TurnStatus::Failed => self.add(Speaker::System, &format!("the turn failed{detail}")),
            TurnStatus::Interrupted => {
                self.add(
                    Speaker::System,
                    &format!("the turn was interrupted{detail}"),
                );
            }
            _ => {}
        }
    }
}

/// Cuts a text that became too long, at a character.
fn keep_end(text: &mut String) {
    let Some(excess) = text
        .len()
        .checked_sub(ENTRY_BYTES_MAX)
        .filter(|excess| *excess > 0)
    else {
        return;
    };
    let cut = (excess..=text.len()).find(|at| text.is_char_boundary(*at));
    text.drain(..cut.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::run::samples::{event, node_json, run, tool};

    fn followed() -> FollowedRun {
        FollowedRun::new(&run(), &[])
    }

    fn transcript(run: &FollowedRun, node: usize) -> Vec<(Speaker, &str)> {
        let entries = run.nodes[node].transcript.iter();
        entries
            .map(|entry| (entry.speaker.clone(), entry.text.as_str()))
            .collect()
    }

    #[test]
    fn a_text_grows_and_its_final_form_replaces_it() {
        let mut run = followed();
        let delta = |seq, text: &str| {
            event(
                seq,
                "n2",
                "message.assistant.delta",
                &json!({ "delta": text }),
            )
        };
        run.apply(&delta(11, "Hel"));
        run.apply(&delta(12, "lo"));
        assert_eq!(transcript(&run, 1), [(Speaker::Agent, "Hello")]);
        let content = json!({ "content": "Hello!", "status": "final" });
        run.apply(&event(13, "n2", "message.assistant.final", &content));
        run.apply(&delta(14, "Next"));
        assert_eq!(
            transcript(&run, 1),
            [(Speaker::Agent, "Hello!"), (Speaker::Agent, "Next")]
        );
    }

    #[test]
    fn events_of_the_snapshot_change_no_state() {
        let mut run = followed();
        let patch = |seq| {
            event(
                seq,
                "n2",
                "node.patch",
                &json!({ "patch": { "status": "running" } }),
            )
        };
        run.apply(&patch(10));
        assert_eq!(run.nodes[1].status, "idle");
        run.apply(&patch(11));
        assert_eq!(run.nodes[1].status, "running");
        assert!(!run.is_quiet());
    }

    #[test]
    fn an_approval_opens_and_closes() {
        let mut run = followed();
        let body = json!({
            "approvalId": "a1", "kind": "tool", "tool": tool("Bash", &json!({ "command": "rm x" })),
            "context": "", "createdAt": "2026-01-01T12:00:00Z", "options": [],
        });
        run.apply(&event(11, "n2", "approval.requested", &body));
        assert_eq!(run.approvals[0].context, "Bash: rm x");
        assert_eq!(run.approvals[0].node, "n2");
        let body =
            json!({ "approvalId": "a1", "resolution": { "status": "denied", "scope": "once" } });
        run.apply(&event(12, "n2", "approval.resolved", &body));
        assert!(run.approvals.is_empty());
    }

    #[test]
    fn a_handoff_is_in_both_transcripts() {
        let mut run = followed();
        let envelope = json!({
            "kind": "handoff", "id": "p1", "fromNodeId": "n1", "toNodeId": "n2",
            "createdAt": "2026-01-01T12:00:00Z",
            "payload": { "message": "build it", "artifacts": [], "response": { "expectation": "required" } },
        });
        run.apply(&event(
            11,
            "n1",
            "handoff.sent",
            &json!({ "envelope": envelope }),
        ));
        assert_eq!(
            transcript(&run, 0),
            [(Speaker::To("impl".to_owned()), "build it")]
        );
        assert_eq!(
            transcript(&run, 1),
            [(Speaker::From("lead".to_owned()), "build it")]
        );
    }

    #[test]
    fn nodes_come_and_go_and_patches_rename_them() {
        let mut run = followed();
        let patch = node_json("n3", "rev", "reviewer");
        run.apply(&event(11, "n3", "node.patch", &json!({ "patch": patch })));
        assert_eq!(
            (run.nodes[2].name(), run.nodes[2].role.as_str()),
            ("rev", "reviewer")
        );
        run.apply(&event(12, "n2", "node.deleted", &json!({})));
        let names: Vec<_> = run.nodes.iter().map(FollowedNode::name).collect();
        assert_eq!(names, ["lead", "rev"]);
    }

    #[test]
    fn a_run_is_quiet_when_only_a_person_can_go_on() {
        let mut run = followed();
        assert!(run.is_quiet());
        run.nodes[0].inbox_count = 1;
        assert!(!run.is_quiet(), "an input waits, so a turn will start");
        run.status = "paused".to_owned();
        assert!(run.is_quiet(), "no turn starts while the run is paused");
        run.nodes[1].status = "running".to_owned();
        assert!(!run.is_quiet(), "an open turn goes on");
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let mut text = format!("ä{}", "x".repeat(ENTRY_BYTES_MAX - 1));
        keep_end(&mut text);
        assert_eq!(text, "x".repeat(ENTRY_BYTES_MAX - 1));
    }
}
