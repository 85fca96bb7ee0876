//! Every kind of fact as exact JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnkeep_runtime::approval::{Approval, ApprovalSubject, Resolution, Rule, RuleMatcher};
use turnkeep_runtime::artifact::{Artifact, DiffSummary, Workspace, WriteConflict};
use turnkeep_runtime::edge::Edge;
use turnkeep_runtime::fact::{NodeChange, ShownNode, StallEvidence, TurnStep};
use turnkeep_runtime::input::{Envelope, EnvelopeStatus, InputId, Message};
use turnkeep_runtime::node::{BlockReason, NewNode};
use turnkeep_runtime::stall::{Stall, TurnSignature};
use turnkeep_runtime::tool::{ToolCall, ToolOutcome};
use turnkeep_runtime::usage::{Usage, UsageReport};
use turnkeep_runtime::words::*;
use turnkeep_runtime::{Event, Fact, Run};
use turnkeep_types::{BlobHash, Timestamp};
use turnkeep_wire::runs::schema_check::check_event;

use super::super::event_view;
use super::*;

const NODE: u128 = 2;
const TURN: u128 = 3;
const ARTIFACT: u128 = 4;

fn event(fact: Fact) -> Event {
    Event {
        id: id(0xe),
        seq: 7,
        at: NOW,
        node: Some(id(NODE)),
        turn: Some(id(TURN)),
        request: None,
        made: None,
        fact,
    }
}

/// A run that knows one artifact.
fn run_with_artifact() -> Run {
    let mut run = Run::new(id(1));
    run.apply(&event(Fact::ArtifactCreated(Box::new(artifact(None)))));
    run
}

fn artifact(diff: Option<DiffSummary>) -> Artifact {
    Artifact {
        id: id(ARTIFACT),
        node: Some(id(NODE)),
        kind: ArtifactKind::Diff,
        name: "diff.patch".to_owned(),
        content: BlobHash::of(b""),
        bytes: 12,
        created_at: NOW,
        diff,
    }
}

/// The names of all events that were checked.
#[derive(Default)]
struct Checked(BTreeSet<String>);

impl Checked {
    /// Checks the JSON of a fact besides the envelope.
    #[expect(clippy::needless_pass_by_value, reason = "a table of literals")]
    fn check(&mut self, fact: Fact, expect: Value) {
        let run = run_with_artifact();
        let name = fact.wire_name();
        let view = event_view(place(&run.archive), &event(fact));
        let mut whole = json!({
            "id": id_text(0xe), "runId": id_text(1), "ts": NOW_TEXT, "seq": 7,
            "nodeId": id_text(NODE), "turnId": id_text(TURN), "type": name,
        });
        for (field, value) in expect.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let found = json_of(&view);
        assert_eq!(found, whole, "{name}");
        check_event(&found).unwrap();
        self.0.insert(name.to_owned());
    }

    /// Checks the patch of a change of a node besides what every patch has.
    #[expect(clippy::needless_pass_by_value, reason = "a table of literals")]
    fn check_change(&mut self, change: NodeChange, expect: Value) {
        let shown = ShownNode {
            status: NodeStatus::Running,
            inbox_count: 2,
        };
        let mut patch = json!({"status": "running", "inboxCount": 2, "lastActivityAt": NOW_TEXT});
        for (field, value) in expect.as_object().unwrap() {
            patch[field] = value.clone();
        }
        self.check(Fact::NodeChanged { change, shown }, json!({"patch": patch}));
    }
}

#[test]
fn every_event_has_its_name_and_its_fields() {
    let mut checked = Checked::default();
    check_run_events(&mut checked);
    check_node_events(&mut checked);
    check_node_changes(&mut checked);
    check_edges_and_inputs(&mut checked);
    check_output(&mut checked);
    check_approvals(&mut checked);
    check_artifacts(&mut checked);
    check_turns(&mut checked);
    let expected = [
        // Those that every consumer supports.
        "run.patch",
        "run.phase",
        "run.mode",
        "run.stalled",
        "node.patch",
        "node.progress",
        "edge.created",
        "edge.deleted",
        "handoff.sent",
        "message.user",
        "message.assistant.delta",
        "message.assistant.final",
        "tool.proposed",
        "tool.started",
        "tool.completed",
        "approval.requested",
        "approval.resolved",
        "artifact.created",
        // The others.
        "turn.status",
        "handoff.held",
        "handoff.refused",
        "message.assistant.thinking.delta",
        "message.assistant.thinking.final",
        "telemetry.usage",
        "node.log",
        "node.deleted",
        "run.deleted",
    ];
    assert_eq!(checked.0, BTreeSet::from(expected.map(str::to_owned)));
}

fn limits_json() -> Value {
    json!({
        "maxConcurrentTurns": 4, "maxNodes": 24, "maxSpawnDepth": 3, "stallAfter": 5,
        "fanInMs": 300, "silenceWarnMs": 180_000, "silenceEndMs": 900_000,
        "turnEndMs": 7_200_000, "approvalMs": 0,
    })
}

fn no_usage() -> Value {
    json!({
        "promptTokens": 0, "completionTokens": 0, "totalTokens": 0, "cachedTokens": 0,
        "costUsd": 0.0,
    })
}

fn check_run_events(checked: &mut Checked) {
    let settings = json!({
        "title": "Fix the refund", "goal": "Fix the refund\nand test it", "cwd": "/work",
        "verify": ["make test"], "setup": [], "budget": {"tokens": 1000, "costUsd": 2.5},
        "limits": limits_json(),
    });
    let mut created = json!({
        "id": id_text(1), "contractVersion": "1", "status": "queued", "phase": "BOOT",
        "mode": "AUTO", "globalMode": "PLANNING", "createdAt": NOW_TEXT, "updatedAt": NOW_TEXT,
        "lastSeq": 7, "usage": no_usage(), "nodes": {}, "edges": {}, "artifacts": {},
    });
    let mut configured = json!({"updatedAt": NOW_TEXT, "world": null, "docsNode": null});
    for (field, value) in settings.as_object().unwrap() {
        created[field] = value.clone();
        configured[field] = value.clone();
    }
    checked.check(
        Fact::RunCreated(Box::new(run_settings())),
        json!({"patch": created}),
    );
    checked.check(
        Fact::RunConfigured(Box::new(run_settings())),
        json!({"patch": configured}),
    );
    checked.check(
        Fact::RunStatusChanged {
            status: RunStatus::Paused,
            paused_reason: Some(PausedReason::DaemonRestart),
        },
        json!({"patch": {
            "status": "paused", "pausedReason": "daemon-restart", "updatedAt": NOW_TEXT,
        }}),
    );
    checked.check(
        Fact::RunStatusChanged {
            status: RunStatus::Running,
            paused_reason: None,
        },
        json!({"patch": {"status": "running", "pausedReason": null, "updatedAt": NOW_TEXT}}),
    );
    let rule = Rule {
        id: id(9),
        node: Some(id(NODE)),
        tool: "command".to_owned(),
        matcher: RuleMatcher::CommandPrefix("npm test".to_owned()),
        created_at: NOW,
        holds_in_planning: false,
    };
    checked.check(
        Fact::RuleAdded(rule),
        json!({
            "patch": {"updatedAt": NOW_TEXT},
            "ruleAdded": {
                "id": id_text(9), "tool": "command", "createdAt": NOW_TEXT,
                "nodeId": id_text(NODE), "commandPrefix": "npm test",
            },
        }),
    );
    checked.check(
        Fact::RuleDeleted(id(9)),
        json!({"patch": {"updatedAt": NOW_TEXT}, "ruleDeleted": id_text(9)}),
    );
    checked.check(
        Fact::RequestNoted,
        json!({"patch": {"updatedAt": NOW_TEXT}}),
    );
    checked.check(
        Fact::VerificationStarted {
            verification: id(5),
            tool: None,
        },
        json!({"phase": "VERIFY", "verificationId": id_text(5)}),
    );
    checked.check(
        Fact::PhaseChanged(Phase::DocsSync),
        json!({"phase": "DOCS_SYNC"}),
    );
    checked.check(
        Fact::VerificationFailed {
            signature: "make test exits with 1".to_owned(),
        },
        json!({"phase": "EXECUTE", "verificationFailure": "make test exits with 1"}),
    );
    checked.check(
        Fact::ModesChanged {
            mode: Mode::Interactive,
            global_mode: GlobalMode::Implementation,
        },
        json!({"mode": "INTERACTIVE", "globalMode": "IMPLEMENTATION"}),
    );
    check_stalls(checked);
    checked.check(Fact::RunDeleted, json!({}));
}

fn check_stalls(checked: &mut Checked) {
    let hash = BlobHash::of(b"x");
    for (reason, field) in [
        (StallReason::SameOutput, Some("outputHash")),
        (StallReason::SameDiff, Some("diffHash")),
        (StallReason::SameEnvelope, Some("envelopeHash")),
        (StallReason::NoProgress, None),
    ] {
        let mut evidence = json!({
            "reason": reason.word(), "count": 5, "summaries": ["again"], "turnIds": [id_text(TURN)],
        });
        if let Some(field) = field {
            evidence[field] = hash.to_string().into();
        }
        let stall = Stall {
            reason,
            hash: Some(hash),
            count: 5,
            turns: vec![id(TURN)],
        };
        let fact = Fact::Stalled(StallEvidence {
            stall,
            summaries: vec!["again".to_owned()],
            verification_failure: None,
            output: None,
            diff: None,
        });
        checked.check(fact, json!({"evidence": evidence}));
    }
}

fn check_node_events(checked: &mut Checked) {
    let mut settings = node_settings("orch", "orchestrator");
    settings.position = Some(turnkeep_runtime::node::Position { x: 1.5, y: -2.0 });
    let new = NewNode {
        id: id(NODE),
        settings,
        parent: Some(id(8)),
        depth: 1,
    };
    checked.check(
        Fact::NodeAdded(Box::new(new)),
        json!({"patch": {
            "id": id_text(NODE), "runId": id_text(1), "label": "The orch",
            "roleTemplate": "orchestrator", "provider": "claude", "status": "idle", "summary": "",
            "createdAt": NOW_TEXT, "lastActivityAt": NOW_TEXT,
            "capabilities": {
                "spawnNodes": true, "writeCode": false, "writeDocs": true, "runCommands": true,
                "delegateOnly": false,
            },
            "permissions": {"cliPermissionsMode": "gated", "spawnRequiresApproval": false},
            "session": {"resetCommands": ["/new", "/clear"]},
            "inboxCount": 0, "wakeOn": "any", "depth": 1, "usage": no_usage(), "alias": "orch",
            "position": {"x": 1.5, "y": -2.0}, "parentId": id_text(8),
        }}),
    );
    checked.check(
        Fact::NodeProgressed {
            status: NodeStatus::Running,
            summary: "reads".to_owned(),
        },
        json!({"status": "running", "summary": "reads"}),
    );
    checked.check(
        Fact::SilenceNoticed,
        json!({
            "status": "running", "summary": "the program has printed nothing for a while",
            "notice": "silence",
        }),
    );
    checked.check(
        Fact::CompletionClaimed {
            tool: id(6),
            summary: "all done".to_owned(),
        },
        json!({"status": "running", "summary": "all done", "notice": "completion-claimed"}),
    );
    checked.check(
        Fact::NodeLogged("warning".to_owned()),
        json!({"text": "warning"}),
    );
    let deleted = |dropped| Fact::NodeDeleted { dropped };
    checked.check(deleted(Vec::new()), json!({}));
    let dropped = vec![InputId::Message(id(5)), InputId::Envelope(id(6))];
    checked.check(
        deleted(dropped),
        json!({"dropped": [id_text(5), id_text(6)]}),
    );
}

fn check_node_changes(checked: &mut Checked) {
    let mut settings = node_settings("a", "implementer");
    settings.wake_on = WakeOn::All;
    checked.check_change(
        NodeChange::Configured(Box::new(settings)),
        json!({
            "label": "The a", "roleTemplate": "implementer", "provider": "claude",
            "providerName": null, "alias": "a", "person": null,
            "capabilities": {
                "spawnNodes": false, "writeCode": true, "writeDocs": true, "runCommands": true,
                "delegateOnly": false,
            },
            "permissions": {"cliPermissionsMode": "gated", "spawnRequiresApproval": true},
            "customSystemPrompt": null, "wakeOn": "all", "position": null, "budget": null,
        }),
    );
    checked.check_change(NodeChange::InboxCounted, json!({}));
    checked.check_change(NodeChange::InboxCleared, json!({}));
    checked.check_change(NodeChange::Retried, json!({}));
    checked.check_change(
        NodeChange::TurnOpened,
        json!({"retryAt": null, "summary": ""}),
    );
    checked.check_change(
        NodeChange::Blocked {
            reason: BlockReason::Violation {
                turn: id(TURN),
                paths: BTreeSet::from(["src/x".to_owned()]),
            },
            summary: "wrote src/x".to_owned(),
        },
        json!({
            "summary": "wrote src/x",
            "block": {"reason": "violation", "turnId": id_text(TURN), "paths": ["src/x"]},
        }),
    );
    checked.check_change(
        NodeChange::Blocked {
            reason: BlockReason::Approvals,
            summary: "waits".to_owned(),
        },
        json!({"summary": "waits", "block": {"reason": "approvals"}}),
    );
    checked.check_change(NodeChange::Unblocked, json!({"block": null, "summary": ""}));
    checked.check_change(
        NodeChange::Rested {
            status: NodeStatus::Idle,
            summary: "done".to_owned(),
        },
        json!({"block": null, "summary": "done"}),
    );
    checked.check_change(
        NodeChange::Parked {
            retry_at: Timestamp(NOW.0 + 60_000),
            summary: "too many requests".to_owned(),
        },
        json!({"retryAt": "2026-01-01T00:01:00.000Z", "summary": "too many requests"}),
    );
    checked.check_change(
        NodeChange::Interrupting {
            reason: "interrupted by the user".to_owned(),
            continues: false,
            holds: true,
        },
        json!({"summary": "interrupted by the user"}),
    );
    let reset_commands = || vec!["/new".to_owned()];
    checked.check_change(
        NodeChange::SessionNamed {
            id: "s-1".to_owned(),
            reset_commands: reset_commands(),
        },
        json!({"session": {"sessionId": "s-1", "resetCommands": ["/new"]}}),
    );
    checked.check_change(
        NodeChange::SessionDropped {
            lost: true,
            reset_commands: reset_commands(),
        },
        json!({"session": {"resetCommands": ["/new"]}, "retryAt": null}),
    );
    checked.check_change(
        NodeChange::WorkspaceFixed(Workspace {
            kind: WorkspaceKind::Worktree,
            branch: Some("turnkeep/1/a".to_owned()),
        }),
        json!({"workspace": {"kind": "worktree", "branch": "turnkeep/1/a"}}),
    );
    checked.check_change(NodeChange::WorkspaceReleased, json!({"workspace": null}));
}

fn check_edges_and_inputs(checked: &mut Checked) {
    let edge = Edge {
        id: id(5),
        from: id(NODE),
        to: id(8),
        bidirectional: true,
        kind: EdgeKind::Report,
        label: "report".to_owned(),
        gate: false,
    };
    checked.check(
        Fact::EdgeCreated(edge),
        json!({"edge": {
            "id": id_text(5), "from": id_text(NODE), "to": id_text(8), "bidirectional": true,
            "type": "report", "label": "report", "gate": false,
        }}),
    );
    checked.check(Fact::EdgeDeleted(id(5)), json!({"edgeId": id_text(5)}));
    let envelope = Envelope {
        id: id(6),
        from: id(NODE),
        to: id(8),
        created_at: NOW,
        message: "done".to_owned(),
        structured: Some(json!({"files": 2})),
        artifacts: vec![id(ARTIFACT)],
        status: Some(EnvelopeStatus {
            ok: true,
            reason: Some("tests-pass".to_owned()),
        }),
        expectation: Expectation::None,
        reply_to: Some(id(7)),
        context_pack: Some(id(ARTIFACT)),
        synthesized: true,
    };
    checked.check(
        Fact::EnvelopeSent(Box::new(envelope.clone())),
        json!({"envelope": {
            "kind": "handoff", "id": id_text(6), "fromNodeId": id_text(NODE),
            "toNodeId": id_text(8), "createdAt": NOW_TEXT,
            "payload": {
                "message": "done", "structured": {"files": 2},
                "artifacts": [{"type": "diff", "ref": format!("artifact://{}", id_text(ARTIFACT))}],
                "status": {"ok": true, "reason": "tests-pass"},
                "response": {"expectation": "none", "replyTo": id_text(7)},
            },
            "contextRef": format!("contextpack://{}", id_text(ARTIFACT)),
            "meta": {"synthesized": true},
        }}),
    );
    let plain = Envelope {
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: Expectation::Required,
        reply_to: None,
        context_pack: None,
        synthesized: false,
        ..envelope
    };
    let shown = json!({"envelope": {
        "kind": "handoff", "id": id_text(6), "fromNodeId": id_text(NODE),
        "toNodeId": id_text(8), "createdAt": NOW_TEXT,
        "payload": {
            "message": "done", "artifacts": [], "response": {"expectation": "required"},
        },
    }});
    let held = Fact::EnvelopeHeld {
        envelope: Box::new(plain.clone()),
        tool: Some(id(9)),
    };
    checked.check(held, shown.clone());
    checked.check(Fact::EnvelopeSent(Box::new(plain)), shown);
    checked.check(
        Fact::EnvelopeRefused {
            envelope: id(6),
            reason: "1 test failed".to_owned(),
        },
        json!({"payloadId": id_text(6), "reason": "1 test failed"}),
    );
    let message = Message {
        id: id(6),
        node: id(NODE),
        role: MessageRole::User,
        content: "go".to_owned(),
        interrupt: true,
        created_at: NOW,
    };
    checked.check(
        Fact::MessageSent(message),
        json!({"message": {
            "id": id_text(6), "runId": id_text(1), "nodeId": id_text(NODE), "role": "user",
            "content": "go", "interrupt": true, "createdAt": NOW_TEXT,
        }}),
    );
}

fn call() -> ToolCall {
    ToolCall {
        id: id(6),
        name: "command".to_owned(),
        args: json!({"cmd": "make test"}),
        provider_id: Some("toolu_1".to_owned()),
    }
}

fn call_json() -> Value {
    json!({
        "id": id_text(6), "name": "command", "args": {"cmd": "make test"},
        "providerToolId": "toolu_1",
    })
}

fn check_output(checked: &mut Checked) {
    checked.check(Fact::AnswerDelta("He".to_owned()), json!({"delta": "He"}));
    for (interrupted, status) in [(false, "final"), (true, "interrupted")] {
        checked.check(
            Fact::AnswerFinal {
                content: "Hello".to_owned(),
                interrupted,
            },
            json!({"content": "Hello", "status": status}),
        );
    }
    checked.check(Fact::ThinkingDelta("Hm".to_owned()), json!({"delta": "Hm"}));
    checked.check(
        Fact::ThinkingFinal("Hmm".to_owned()),
        json!({"content": "Hmm"}),
    );
    checked.check(Fact::ToolProposed(call()), json!({"tool": call_json()}));
    checked.check(Fact::ToolStarted(call()), json!({"tool": call_json()}));
    let outcome = ToolOutcome {
        ok: true,
        output: Some("fine".to_owned()),
        truncated: true,
        artifact: Some(id(ARTIFACT)),
        error: None,
        duration_ms: 250,
    };
    checked.check(
        Fact::ToolCompleted {
            tool: id(6),
            outcome,
        },
        json!({
            "toolId": id_text(6), "durationMs": 250,
            "result": {
                "ok": true, "output": "fine", "truncated": true, "artifactId": id_text(ARTIFACT),
            },
        }),
    );
    checked.check(
        Fact::ToolCompleted {
            tool: id(6),
            outcome: ToolOutcome::abandoned("denied"),
        },
        json!({
            "toolId": id_text(6), "durationMs": 0, "result": {"ok": false},
            "error": {"message": "denied"},
        }),
    );
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 5,
        cached_tokens: 4,
        cost_micro_usd: 1_500,
    };
    checked.check(
        Fact::UsageReported(UsageReport {
            usage,
            cause: Some(InputId::Message(id(6))),
        }),
        json!({
            "usage": {
                "promptTokens": 10, "completionTokens": 5, "totalTokens": 15, "cachedTokens": 4,
            },
            "costUsd": 0.0015, "cause": id_text(6),
        }),
    );
    checked.check(
        Fact::UsageReported(UsageReport {
            usage: Usage::default(),
            cause: None,
        }),
        json!({"usage": {"promptTokens": 0, "completionTokens": 0, "totalTokens": 0}}),
    );
}

fn check_approvals(checked: &mut Checked) {
    let approval = Approval {
        id: id(9),
        node: id(NODE),
        turn: id(TURN),
        tool: call(),
        subject: ApprovalSubject::ProviderTool {
            can_allow_always: true,
        },
        context: "make test in /work".to_owned(),
        created_at: NOW,
        expires_at: Some(Timestamp(NOW.0 + 1000)),
    };
    checked.check(
        Fact::ApprovalRequested(Box::new(approval.clone())),
        json!({
            "approvalId": id_text(9), "kind": "tool", "tool": call_json(),
            "context": "make test in /work", "createdAt": NOW_TEXT,
            "expiresAt": "2026-01-01T00:00:01.000Z", "options": [],
        }),
    );
    let question = Approval {
        subject: ApprovalSubject::Question {
            options: vec!["yes".to_owned(), "no".to_owned()],
        },
        expires_at: None,
        ..approval
    };
    checked.check(
        Fact::ApprovalRequested(Box::new(question)),
        json!({
            "approvalId": id_text(9), "kind": "question", "tool": call_json(),
            "context": "make test in /work", "createdAt": NOW_TEXT, "options": ["yes", "no"],
        }),
    );
    checked.check(
        Fact::ApprovalResolved {
            approval: id(9),
            resolution: Resolution {
                verdict: Verdict::Modified,
                modified_args: Some(json!({"cmd": "make"})),
                reason: Some("shorter".to_owned()),
                scope: Scope::Run,
                by: Some(ResolvedBy::CommandLine),
            },
        },
        json!({"approvalId": id_text(9), "resolution": {
            "status": "modified", "modifiedArgs": {"cmd": "make"}, "reason": "shorter",
            "scope": "run", "by": "command-line",
        }}),
    );
    checked.check(
        Fact::ApprovalResolved {
            approval: id(9),
            resolution: Resolution::denied("node deleted"),
        },
        json!({"approvalId": id_text(9), "resolution": {
            "status": "denied", "reason": "node deleted", "scope": "once", "by": "daemon",
        }}),
    );
}

fn check_artifacts(checked: &mut Checked) {
    let common = json!({
        "id": id_text(ARTIFACT), "runId": id_text(1), "nodeId": id_text(NODE), "kind": "diff",
        "name": "diff.patch", "path": format!("{ARTIFACTS_DIR}/{}-diff.patch", id_text(ARTIFACT)),
        "createdAt": NOW_TEXT, "contentHash": BlobHash::of(b"").to_string(), "bytes": 12,
    });
    checked.check(
        Fact::ArtifactCreated(Box::new(artifact(None))),
        json!({"artifact": common}),
    );
    let diff = DiffSummary {
        turn: Some(id(TURN)),
        files_changed: vec!["src/x".to_owned()],
        summary: "one file".to_owned(),
        lines_added: 2,
        lines_removed: 1,
        base_tree: "a".to_owned(),
        head_tree: "b".to_owned(),
        violations: vec!["src/x".to_owned()],
        shared: vec!["src/y".to_owned()],
        conflicts: vec![WriteConflict {
            path: "src/y".to_owned(),
            node: id(9),
            turn: id(8),
        }],
    };
    let mut with_diff = common;
    with_diff["metadata"] = json!({
        "filesChanged": ["src/x"], "summary": "one file", "added": 2, "removed": 1,
        "turnId": id_text(TURN), "baseTree": "a", "headTree": "b", "violation": ["src/x"],
        "shared": ["src/y"],
        "conflicts": [{"path": "src/y", "nodeId": id_text(9), "turnId": id_text(8)}],
    });
    checked.check(
        Fact::ArtifactCreated(Box::new(artifact(Some(diff)))),
        json!({"artifact": with_diff}),
    );
}

fn check_turns(checked: &mut Checked) {
    let mut step = |step: TurnStep, expect: Value| {
        assert_eq!(expect["status"], step.word());
        checked.check(Fact::TurnStepped(step), expect);
    };
    step(
        TurnStep::Started {
            cause: TurnCause::Inputs,
            consumed: vec![InputId::Message(id(6)), InputId::Envelope(id(7))],
            mode: Mode::Auto,
            global_mode: GlobalMode::Planning,
            attempt: 1,
        },
        json!({
            "status": "turn.started", "consumed": [id_text(6), id_text(7)], "mode": "AUTO",
            "globalMode": "PLANNING", "attempt": 1,
        }),
    );
    step(
        TurnStep::WaitingForModel {
            prompt: PromptKind::Delta,
            prompt_hash: BlobHash::of(b""),
            base_tree: None,
            forgets: false,
        },
        json!({"status": "waiting_for_model", "promptKind": "delta"}),
    );
    step(TurnStep::ToolPending, json!({"status": "tool.pending"}));
    step(
        TurnStep::AwaitingApproval,
        json!({"status": "awaiting_approval"}),
    );
    let signature = TurnSignature {
        output: BlobHash::of(b""),
        tools: None,
        diff: None,
        may_repeat: false,
        made_artifact: false,
        was_idle_auto_turn: false,
    };
    step(
        TurnStep::Completed { signature },
        json!({"status": "turn.completed"}),
    );
    step(
        TurnStep::Interrupted {
            detail: "reset by the user".to_owned(),
            requeued: vec![InputId::Message(id(6))],
            holds: false,
        },
        json!({
            "status": "turn.interrupted", "detail": "reset by the user", "requeued": [id_text(6)],
        }),
    );
    step(
        TurnStep::Failed {
            detail: "exit status 1".to_owned(),
            requeued: Vec::new(),
        },
        json!({"status": "turn.failed", "detail": "exit status 1", "requeued": []}),
    );
}

#[test]
fn an_event_that_is_not_described_does_not_fit_its_schema() {
    let run = run_with_artifact();
    let good = event(Fact::ToolStarted(call()));
    let good = json_of(&event_view(place(&run.archive), &good));
    check_event(&good).unwrap();
    let check = |pointer: &str, wrong: Value, expect: &str| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        let error = check_event(&bad).unwrap_err();
        assert!(error.contains(expect), "{pointer}: {error}");
    };
    check("/id", json!("x"), ".id");
    check("/ts", json!("yesterday"), ".ts");
    check("/seq", json!(-1), ".seq");
    check("/tool/name", json!(1), ".tool.name");
    check(
        "/tool",
        json!({"id": id_text(6), "args": {}}),
        "`name` is missing",
    );
    check("/type", json!("tool.exploded"), "no schema");
    let mut more = good.clone();
    more["surprise"] = json!(1);
    let error = check_event(&more).unwrap_err();
    assert!(error.contains("`surprise` is not described"), "{error}");
}
