//! Lists, the inbox of a person, and the explanation of a run.

use serde_json::json;
use turnkeep_runtime::Run;
use turnkeep_runtime::approval::{Approval, ApprovalSubject, Rule, RuleMatcher};
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::edge::Edge;
use turnkeep_runtime::hold::Hold;
use turnkeep_runtime::node::{NewNode, Node};
use turnkeep_runtime::tool::ToolCall;
use turnkeep_runtime::waits::{Explanation, Owner, Wait, WaitReason};
use turnkeep_runtime::words::{ArtifactKind, EdgeKind, PausedReason, RunStatus};
use turnkeep_runtime::{Event, Fact};
use turnkeep_types::BlobHash;
use turnkeep_wire::json::Time;
use turnkeep_wire::runs::schema_check::check_schema;
use turnkeep_wire::runs::{
    ApprovalList, ApprovalOfRun, ArtifactAnswer, AttentionList, ConnectionStatus, ConnectionView,
    EdgeAnswer, NodeAnswer, RuleList, RuleOfRun, RunSummaryList, UuidText,
};

use super::super::{
    approval_view, artifact_view, attention_items, edge_view, node_view, rule_view, run_summary,
    scopes_of, why_graph,
};
use super::*;

fn question() -> Approval {
    Approval {
        id: id(9),
        node: id(2),
        turn: id(3),
        tool: ToolCall {
            id: id(6),
            name: "ask_user".to_owned(),
            args: json!({"question": "Which one?"}),
            provider_id: None,
        },
        subject: ApprovalSubject::Question {
            options: vec!["a".to_owned()],
        },
        context: "Which one?".to_owned(),
        created_at: NOW,
        expires_at: None,
    }
}

fn run_with(facts: Vec<Fact>) -> Run {
    let mut run = Run::new(id(1));
    for (seq, fact) in (1..).zip(facts) {
        run.apply(&Event {
            id: id(seq.into()),
            seq,
            at: NOW,
            node: None,
            turn: None,
            request: None,
            made: None,
            fact,
        });
    }
    run
}

#[test]
fn a_run_in_a_list_has_counts_instead_of_nodes() {
    let run = run_with(vec![
        Fact::RunCreated(Box::new(run_settings())),
        Fact::ApprovalRequested(Box::new(question())),
    ]);
    let list = RunSummaryList {
        runs: vec![run_summary(&run)],
    };
    let found = json_of(&list);
    check_schema("RunSummaryList", &found).unwrap();
    let summary = &found["runs"][0];
    assert_eq!(summary["openApprovals"], 1);
    assert_eq!(summary["nodeCount"], 0);
    assert_eq!(summary["title"], "Fix the refund");
    assert_eq!(summary.get("nodes"), None);
}

#[test]
fn a_node_in_a_snapshot_has_its_process() {
    let new = NewNode {
        id: id(2),
        settings: node_settings("a", "tester"),
        parent: None,
        depth: 0,
    };
    let connection = ConnectionView {
        status: ConnectionStatus::Idle,
        streaming: false,
        last_heartbeat_at: Some(Time(NOW)),
        last_output_at: None,
    };
    let node = node_view(id(1), &Node::new(new, NOW), Some(connection));
    let found = json_of(&NodeAnswer { node });
    check_schema("NodeAnswer", &found).unwrap();
    let expect = json!({"status": "idle", "streaming": false, "lastHeartbeatAt": NOW_TEXT});
    assert_eq!(found["node"]["connection"], expect);
}

#[test]
fn edges_artifacts_and_rules_fit_their_schemas() {
    let edge = Edge {
        id: id(5),
        from: id(2),
        to: id(3),
        bidirectional: false,
        kind: EdgeKind::Handoff,
        label: "task".to_owned(),
        gate: true,
    };
    let edge = EdgeAnswer {
        edge: edge_view(&edge),
    };
    check_schema("EdgeAnswer", &json_of(&edge)).unwrap();
    let artifact = Artifact {
        id: id(4),
        node: None,
        kind: ArtifactKind::Report,
        name: "verification.json".to_owned(),
        content: BlobHash::of(b""),
        bytes: 0,
        created_at: NOW,
        diff: None,
    };
    let run = Run::new(id(1));
    let artifact = ArtifactAnswer {
        artifact: artifact_view(place(&run.archive), &artifact),
    };
    check_schema("ArtifactAnswer", &json_of(&artifact)).unwrap();
    let rule = Rule {
        id: id(9),
        node: None,
        tool: "edit".to_owned(),
        matcher: RuleMatcher::Path("docs/a.md".to_owned()),
        created_at: NOW,
        holds_in_planning: false,
    };
    let rules = RuleList {
        rules: vec![RuleOfRun {
            run_id: UuidText::of(id_text(1)),
            rule: rule_view(&rule),
        }],
    };
    let found = json_of(&rules);
    check_schema("RuleList", &found).unwrap();
    assert_eq!(found["rules"][0]["rule"]["path"], "docs/a.md");
}

#[test]
fn an_open_approval_names_its_run_its_node_and_its_turn() {
    let list = ApprovalList {
        approvals: vec![ApprovalOfRun {
            run_id: UuidText::of(id_text(1)),
            approval: approval_view(&question()),
            can_edit: Some(true),
            scopes: Some(scopes_of(&question())),
        }],
    };
    let found = json_of(&list);
    check_schema("ApprovalList", &found).unwrap();
    let expect = json!({"approvals": [{"runId": id_text(1), "approval": {
        "approvalId": id_text(9), "nodeId": id_text(2), "turnId": id_text(3), "kind": "question",
        "tool": {"id": id_text(6), "name": "ask_user", "args": {"question": "Which one?"}},
        "context": "Which one?", "createdAt": NOW_TEXT, "options": ["a"],
    }, "canEdit": true, "scopes": ["once"]}]});
    assert_eq!(found, expect);
}

#[test]
fn an_item_that_waits_for_a_person_says_what_they_can_do() {
    let asker = NewNode {
        id: id(2),
        settings: node_settings("a", "tester"),
        parent: None,
        depth: 0,
    };
    let run = run_with(vec![
        Fact::RunCreated(Box::new(run_settings())),
        Fact::NodeAdded(Box::new(asker)),
        Fact::ApprovalRequested(Box::new(question())),
        Fact::RunStatusChanged {
            status: RunStatus::Completed,
            paused_reason: None,
        },
    ]);
    let list = AttentionList {
        items: attention_items(&run),
    };
    let found = json_of(&list);
    check_schema("AttentionList", &found).unwrap();
    let expect = json!({"items": [
        {
            "ref": format!("approval:{}", id_text(9)), "kind": "question", "runId": id_text(1),
            "nodeId": id_text(2), "nodeLabel": "The a", "nodeAlias": "a", "since": NOW_TEXT,
            "summary": "Which one?", "actions": ["answer"],
        },
        {
            "ref": format!("run:{}", id_text(1)), "kind": "finished", "runId": id_text(1),
            "since": NOW_TEXT, "summary": "the run is completed",
            "actions": ["apply", "chat", "dismiss"],
        },
    ]});
    assert_eq!(found, expect);
}

#[test]
fn an_explanation_has_ages_owners_and_root_causes() {
    let wait = |node: Option<u128>, reason, owner| Wait {
        node: node.map(id),
        reason,
        since: NOW,
        owner,
    };
    let stopped = WaitReason::RunStopped {
        status: RunStatus::Paused,
        paused: Some(PausedReason::User),
    };
    let until = Timestamp(NOW.0 + 1000);
    let explanation = Explanation {
        waits: vec![
            wait(None, stopped, Owner::Person),
            wait(Some(2), WaitReason::Reply(id(6)), Owner::Node(id(3))),
            wait(
                Some(3),
                WaitReason::Held(Hold::RetryAt(until)),
                Owner::Program("claude".to_owned()),
            ),
            wait(Some(4), WaitReason::NoInput, Owner::Person),
        ],
        deadlocks: vec![vec![id(2), id(3)]],
    };
    let found = json_of(&why_graph(&explanation, Timestamp(NOW.0 + 500)));
    check_schema("WhyGraph", &found).unwrap();
    let expect = json!({
        "waits": [
            {
                "reason": "run-stopped", "since": NOW_TEXT, "ageMs": 500,
                "owner": {"kind": "person"}, "runStatus": "paused", "pausedReason": "user",
            },
            {
                "reason": "reply", "since": NOW_TEXT, "ageMs": 500, "nodeId": id_text(2),
                "owner": {"kind": "node", "nodeId": id_text(3)}, "payloadId": id_text(6),
            },
            {
                "reason": "retry-at", "since": NOW_TEXT, "ageMs": 500, "nodeId": id_text(3),
                "owner": {"kind": "program", "program": "claude"},
                "until": "2026-01-01T00:00:01.000Z",
            },
            {
                "reason": "no-input", "since": NOW_TEXT, "ageMs": 500, "nodeId": id_text(4),
                "owner": {"kind": "person"},
            },
        ],
        "rootCauses": [0, 2],
        "deadlocks": [[id_text(2), id_text(3)]],
    });
    assert_eq!(found, expect);
}

#[test]
fn a_run_in_which_nothing_else_waits_needs_input() {
    let idle = Wait {
        node: Some(id(2)),
        reason: WaitReason::NoInput,
        since: NOW,
        owner: Owner::Person,
    };
    let explanation = Explanation {
        waits: vec![idle],
        deadlocks: Vec::new(),
    };
    assert_eq!(why_graph(&explanation, NOW).root_causes, [0]);
}
