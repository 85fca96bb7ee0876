//! The tags of everything that an event contains. A tag keeps its meaning for ever; a tag that is
//! given up is never used again.
//!
//! A [`LongText`] and a [`Json`] take two tags, so the next one is free only after them. Texts that
//! people and programs write are long; names, paths, ids and words are not.

use turnkeep_types::record::{
    Bool, DurationMs, F64, Flag, Flat, List, LongText, Map, Optional, Text, U32, U64, UnixMs,
};
use turnkeep_types::{record_enum, record_struct};

use super::Json;
use crate::approval::{Approval, ApprovalSubject, Resolution, Rule, RuleMatcher};
use crate::artifact::{Artifact, DiffSummary, Workspace};
use crate::edge::Edge;
use crate::fact::{Event, Fact, NodeChange, ShownNode, StallEvidence, TurnStep};
use crate::input::{Envelope, EnvelopeStatus, Message};
use crate::node::{BlockReason, Capabilities, NewNode, NodeSettings, Permissions, Position};
use crate::orchestration::{CreateEdge, OrchestrationCall, SendHandoff, SpawnNode};
use crate::request::RequestKey;
use crate::run::{RunLimits, RunSettings};
use crate::stall::{Stall, TurnSignature};
use crate::tool::{ToolCall, ToolOutcome};
use crate::usage::{Budget, Usage, UsageReport};

record_struct! {
    Event {
        1 id: Text,
        2 seq: U64,
        3 at: UnixMs,
        4 node: Optional<Text>,
        5 turn: Optional<Text>,
        6 request: Optional<Map<RequestKey>>,
        7 made: Optional<Text>,
        10 fact: Flat<Fact>,
    }
}

record_struct! {
    RequestKey {
        1 key: Text,
        2 fingerprint: Text,
    }
}

record_enum! {
    Fact, kind 10 {
        "run-created" RunCreated(11 settings: Map<RunSettings>)
        "run-configured" RunConfigured(11 settings: Map<RunSettings>)
        "run-status-changed" RunStatusChanged {
            12 status: Text,
            13 paused_reason: Optional<Text>,
        }
        "end-seen" EndSeen()
        "phase-changed" PhaseChanged(14 phase: Text)
        "completion-claimed" CompletionClaimed {
            15 tool: Text,
            16 summary: LongText,
        }
        "verification-started" VerificationStarted {
            15 tool: Optional<Text>,
            47 verification: Text,
        }
        "verification-failed" VerificationFailed { 18 signature: LongText }
        "modes-changed" ModesChanged {
            20 mode: Text,
            21 global_mode: Text,
        }
        "stalled" Stalled(22 evidence: Map<StallEvidence>)
        "run-deleted" RunDeleted()
        "rule-added" RuleAdded(23 rule: Map<Rule>)
        "rule-deleted" RuleDeleted(24 rule_id: Text)
        "request-noted" RequestNoted()
        "node-added" NodeAdded(25 new_node: Map<NewNode>)
        "node-changed" NodeChanged {
            26 change: Map<NodeChange>,
            27 shown: Map<ShownNode>,
        }
        "node-progressed" NodeProgressed {
            12 status: Text,
            16 summary: LongText,
        }
        "silence-noticed" SilenceNoticed()
        "node-logged" NodeLogged(28 text: LongText)
        "node-deleted" NodeDeleted { 51 dropped: List }
        "edge-created" EdgeCreated(30 edge: Map<Edge>)
        "edge-changed" EdgeChanged(30 edge: Map<Edge>)
        "edge-deleted" EdgeDeleted(31 edge_id: Text)
        "envelope-sent" EnvelopeSent(32 envelope: Map<Envelope>)
        "envelope-held" EnvelopeHeld {
            15 tool: Optional<Text>,
            32 envelope: Map<Envelope>,
        }
        "envelope-refused" EnvelopeRefused {
            48 envelope as envelope_id: Text,
            49 reason: LongText,
        }
        "message-sent" MessageSent(33 message: Map<Message>)
        "answer-delta" AnswerDelta(34 delta: LongText)
        "answer-final" AnswerFinal {
            36 content: LongText,
            38 interrupted: Flag,
        }
        "thinking-delta" ThinkingDelta(34 delta: LongText)
        "thinking-final" ThinkingFinal(36 content: LongText)
        "tool-proposed" ToolProposed(39 call: Map<ToolCall>)
        "tool-started" ToolStarted(39 call: Map<ToolCall>)
        "tool-completed" ToolCompleted {
            15 tool: Text,
            40 outcome: Map<ToolOutcome>,
        }
        "approval-requested" ApprovalRequested(41 approval_request: Map<Approval>)
        "approval-resolved" ApprovalResolved {
            42 approval: Text,
            43 resolution: Map<Resolution>,
        }
        "artifact-created" ArtifactCreated(44 artifact: Map<Artifact>)
        "turn-stepped" TurnStepped(45 step: Map<TurnStep>)
        "usage-reported" UsageReported(46 report: Map<UsageReport>)
    }
}

record_struct! {
    RunSettings {
        1 title: Text,
        2 goal: Optional<LongText>,
        4 cwd: Optional<Text>,
        5 mode: Text,
        6 global_mode: Text,
        7 world: Optional<Text>,
        8 verify: List,
        9 setup: List,
        10 docs_node: Optional<Text>,
        11 budget: Map<Budget>,
        12 limits: Map<RunLimits>,
    }
}

record_struct! {
    Budget {
        1 tokens: Optional<U64>,
        2 cost_micro_usd: Optional<U64>,
    }
}

record_struct! {
    RunLimits {
        1 open_turns_max: U32,
        2 nodes_max: U32,
        3 spawn_depth_max: U32,
        4 stall_after: U32,
        5 fan_in_ms: DurationMs,
        6 silence_warn_ms: DurationMs,
        7 silence_end_ms: DurationMs,
        8 turn_end_ms: DurationMs,
        9 approval_ms: DurationMs,
    }
}

record_struct! {
    StallEvidence {
        1 stall: Map<Stall>,
        2 summaries: List,
        3 verification_failure: Optional<LongText>,
        5 output: Optional<Text>,
        6 diff: Optional<Text>,
    }
}

record_struct! {
    Stall {
        1 reason: Text,
        2 hash: Optional<Text>,
        3 count: U32,
        4 turns: List,
    }
}

record_struct! {
    Rule {
        1 id: Text,
        2 node: Optional<Text>,
        3 tool: Text,
        4 matcher: Map<RuleMatcher>,
        5 created_at: UnixMs,
        6 holds_in_planning: Flag,
    }
}

record_enum! {
    RuleMatcher, kind 1 {
        "command-prefix" CommandPrefix(2 prefix: LongText)
        "path" Path(4 path: Text)
    }
}

record_struct! {
    NewNode {
        1 id: Text,
        2 settings: Map<NodeSettings>,
        3 parent: Optional<Text>,
        4 depth: U32,
    }
}

record_struct! {
    NodeSettings {
        1 label: Text,
        2 role: Text,
        3 provider: Text,
        4 provider_name: Optional<Text>,
        5 alias: Optional<Text>,
        6 person: Optional<Text>,
        7 capabilities: Map<Capabilities>,
        8 permissions: Map<Permissions>,
        9 custom_system_prompt: Optional<LongText>,
        11 wake_on: Text,
        12 position: Optional<Map<Position>>,
        13 reset_commands: List,
        14 budget: Optional<Map<Budget>>,
    }
}

record_struct! {
    Capabilities {
        1 spawn_nodes: Flag,
        2 write_code: Flag,
        3 write_docs: Flag,
        4 run_commands: Flag,
        5 delegate_only: Flag,
    }
}

record_struct! {
    Permissions {
        1 cli: Text,
        2 spawn_requires_approval: Flag,
    }
}

record_struct! {
    Position {
        1 x: F64,
        2 y: F64,
    }
}

record_enum! {
    NodeChange, kind 1 {
        "configured" Configured(2 settings: Map<NodeSettings>)
        "inbox-counted" InboxCounted()
        "inbox-cleared" InboxCleared()
        "retried" Retried()
        "turn-opened" TurnOpened()
        "blocked" Blocked {
            3 reason as block: Map<BlockReason>,
            4 summary: LongText,
        }
        "unblocked" Unblocked()
        "rested" Rested {
            4 summary: LongText,
            6 status: Text,
        }
        "parked" Parked {
            4 summary: LongText,
            7 retry_at: UnixMs,
        }
        "interrupting" Interrupting {
            8 reason: LongText,
            10 continues: Flag,
            15 holds: Flag,
        }
        "session-named" SessionNamed {
            11 id: Text,
            12 reset_commands: List,
        }
        "session-dropped" SessionDropped {
            12 reset_commands: List,
            13 lost: Flag,
        }
        "workspace-fixed" WorkspaceFixed(14 workspace: Map<Workspace>)
        "workspace-released" WorkspaceReleased()
    }
}

record_struct! {
    ShownNode {
        1 status: Text,
        2 inbox_count: U64,
    }
}

record_enum! {
    BlockReason, kind 1 {
        "approvals" Approvals()
        "stall" Stall()
        "violation" Violation {
            2 turn: Text,
            3 paths: List,
        }
    }
}

record_struct! {
    Workspace {
        1 kind: Text,
        2 branch: Optional<Text>,
    }
}

record_struct! {
    Edge {
        1 id: Text,
        2 from: Text,
        3 to: Text,
        4 bidirectional: Flag,
        5 kind: Text,
        6 label: Text,
        7 gate: Flag,
    }
}

record_struct! {
    Envelope {
        1 id: Text,
        2 from: Text,
        3 to: Text,
        4 created_at: UnixMs,
        5 message: LongText,
        7 structured: Optional<Json>,
        9 artifacts: List,
        10 status: Optional<Map<EnvelopeStatus>>,
        11 expectation: Text,
        12 reply_to: Optional<Text>,
        13 context_pack: Optional<Text>,
        14 synthesized: Flag,
    }
}

record_struct! {
    EnvelopeStatus {
        1 ok: Flag,
        2 reason: Optional<LongText>,
    }
}

record_struct! {
    Message {
        1 id: Text,
        2 node: Text,
        3 role: Text,
        4 content: LongText,
        6 interrupt: Flag,
        7 created_at: UnixMs,
    }
}

record_struct! {
    ToolCall {
        1 id: Text,
        2 name: Text,
        3 args: Json,
        5 provider_id: Optional<Text>,
    }
}

record_struct! {
    ToolOutcome {
        1 ok: Flag,
        2 output: Optional<LongText>,
        4 truncated: Flag,
        5 artifact: Optional<Text>,
        6 error: Optional<LongText>,
        8 duration_ms: DurationMs,
    }
}

record_struct! {
    Approval {
        1 id: Text,
        2 node: Text,
        3 turn: Text,
        4 tool: Map<ToolCall>,
        5 subject: Map<ApprovalSubject>,
        6 context: LongText,
        8 created_at: UnixMs,
        9 expires_at: Optional<UnixMs>,
    }
}

record_enum! {
    ApprovalSubject, kind 1 {
        "provider-tool" ProviderTool { 4 can_allow_always: Flag }
        "orchestration-tool" OrchestrationTool(2 call: Map<OrchestrationCall>)
        "question" Question { 3 options: List }
    }
}

record_enum! {
    OrchestrationCall, kind 1 {
        "spawn-node" SpawnNode(2 spawn: Map<SpawnNode>)
        "create-edge" CreateEdge(3 edge: Map<CreateEdge>)
        "send-handoff" SendHandoff(4 handoff: Map<SendHandoff>)
        "ask-user" AskUser {
            5 question: LongText,
            7 options: List,
        }
        "complete-run" CompleteRun { 8 summary: LongText }
    }
}

record_struct! {
    SpawnNode {
        1 settings: Map<NodeSettings>,
        2 input: Optional<LongText>,
        4 connect: Flag,
    }
}

record_struct! {
    CreateEdge {
        1 from: Text,
        2 to: Text,
        3 kind: Optional<Text>,
        4 label: Optional<Text>,
        5 bidirectional: Optional<Bool>,
    }
}

record_struct! {
    SendHandoff {
        1 to: Text,
        2 message: LongText,
        4 structured: Optional<Json>,
        6 artifacts: List,
        7 status: Optional<Map<EnvelopeStatus>>,
        8 expectation: Optional<Text>,
        9 reply_to: Optional<Text>,
        10 context_pack: Optional<Text>,
    }
}

record_struct! {
    Resolution {
        1 verdict: Text,
        2 modified_args: Optional<Json>,
        4 reason: Optional<LongText>,
        6 scope: Text,
        7 by: Optional<Text>,
    }
}

record_struct! {
    Artifact {
        1 id: Text,
        2 node: Optional<Text>,
        3 kind: Text,
        4 name: Text,
        5 content: Text,
        6 bytes: U64,
        7 created_at: UnixMs,
        8 diff: Optional<Map<DiffSummary>>,
    }
}

record_struct! {
    DiffSummary {
        1 turn: Optional<Text>,
        2 files_changed: List,
        3 summary: LongText,
        5 lines_added: U64,
        6 lines_removed: U64,
        7 base_tree: Text,
        8 head_tree: Text,
        9 violations: List,
        10 shared: List,
        11 conflicts: List,
    }
}

record_enum! {
    TurnStep, kind 1 {
        "started" Started {
            2 cause: Text,
            3 consumed: List,
            4 mode: Text,
            5 global_mode: Text,
            6 attempt: U32,
        }
        "waiting-for-model" WaitingForModel {
            7 prompt: Text,
            8 prompt_hash: Text,
            14 forgets: Flag,
            15 base_tree: Optional<Text>,
        }
        "tool-pending" ToolPending()
        "awaiting-approval" AwaitingApproval()
        "completed" Completed { 9 signature: Map<TurnSignature> }
        "interrupted" Interrupted {
            10 detail: LongText,
            12 requeued: List,
            13 holds: Flag,
        }
        "failed" Failed {
            10 detail: LongText,
            12 requeued: List,
        }
    }
}

record_struct! {
    TurnSignature {
        1 output: Text,
        2 diff: Optional<Text>,
        3 may_repeat: Flag,
        4 made_artifact: Flag,
        5 was_idle_auto_turn: Flag,
        6 tools: Optional<Text>,
    }
}

record_struct! {
    UsageReport {
        1 usage: Map<Usage>,
        2 cause: Optional<Text>,
    }
}

record_struct! {
    Usage {
        1 prompt_tokens: U64,
        2 completion_tokens: U64,
        3 cached_tokens: U64,
        4 cost_micro_usd: U64,
    }
}
