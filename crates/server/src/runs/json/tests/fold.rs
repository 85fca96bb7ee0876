//! A client that assigns the fields of each patch sees the snapshot.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use turnkeep_runtime::approval::Resolution;
use turnkeep_runtime::decide::{
    Capacity, Chat, Decision, DiffTaken, EdgeRequest, LastHeard, NodeRequest, Output, Permission,
    PermissionAnswer, ProgramEnd, ResetInbox, RunChange, Surroundings, add_node, add_output,
    ask_permission, change_node, change_run, chat, connect, create_run, delete_node, end_turn,
    pass_time, reset_node, resolve, send_prompt,
};
use turnkeep_runtime::ids::{AgentTurnId, IdSource, NodeId};
use turnkeep_runtime::prompt::PromptSources;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::secrets::Secrets;
use turnkeep_runtime::turn::TurnEnd;
use turnkeep_runtime::usage::Usage;
use turnkeep_runtime::words::{RunStatus, Scope, Verdict};
use turnkeep_runtime::{Event, Run};
use turnkeep_wire::runs::schema_check::{check_event, check_schema};

use super::super::{ConnectionViews, event_view, run_view};
use super::*;

/// The fields that clients fold from other events, or that no event has.
const NOT_PATCHED: &[&str] = &["turnId", "usage"];

/// What a client knows of a run.
#[derive(Default)]
struct Client {
    run: Map<String, Value>,
    nodes: BTreeMap<String, Map<String, Value>>,
}

impl Client {
    fn fold(&mut self, event: &Value) {
        let node = event["nodeId"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "run.patch" => assign(&mut self.run, &event["patch"]),
            "run.phase" => assign(&mut self.run, &json!({"phase": event["phase"]})),
            "run.mode" => {
                let modes = json!({"mode": event["mode"], "globalMode": event["globalMode"]});
                assign(&mut self.run, &modes);
            }
            "node.patch" => {
                let fields = self.nodes.entry(node.to_owned()).or_default();
                assign(fields, &event["patch"]);
            }
            "node.progress" if event.get("notice") != Some(&json!("silence")) => {
                let fields = self.nodes.get_mut(node).unwrap();
                let progress = json!({
                    "status": event["status"], "summary": event["summary"],
                    "lastActivityAt": event["ts"],
                });
                assign(fields, &progress);
            }
            "node.deleted" => drop(self.nodes.remove(node)),
            _ => {}
        }
        assign(
            &mut self.run,
            &json!({"updatedAt": event["ts"], "lastSeq": event["seq"]}),
        );
    }

    fn check(&self, snapshot: &Value) {
        for field in [
            "status",
            "pausedReason",
            "phase",
            "mode",
            "globalMode",
            "title",
            "goal",
            "cwd",
            "world",
            "verify",
            "setup",
            "docsNode",
            "budget",
            "limits",
            "updatedAt",
            "lastSeq",
            "createdAt",
            "contractVersion",
            "id",
        ] {
            assert_eq!(self.run.get(field), snapshot.get(field), "{field}");
        }
        let nodes = snapshot["nodes"].as_object().unwrap();
        assert_eq!(nodes.len(), self.nodes.len());
        for (id, node) in nodes {
            let mut folded = self.nodes[id].clone();
            let mut shown = node.as_object().unwrap().clone();
            for field in NOT_PATCHED {
                folded.remove(*field);
                shown.remove(*field);
            }
            let sorted =
                |fields: Map<String, Value>| fields.into_iter().collect::<BTreeMap<_, _>>();
            assert_eq!(sorted(folded), sorted(shown));
        }
    }
}

/// Assigns the fields of a patch; null removes one.
fn assign(fields: &mut Map<String, Value>, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
}

struct Scenario {
    run: Run,
    log: Vec<Event>,
    ids: IdSource,
    now: Timestamp,
    client: Client,
}

impl Scenario {
    fn begin() -> Self {
        let mut scenario = Self {
            run: Run::new(id(1)),
            log: Vec::new(),
            ids: IdSource::from_seed(&[1; 32]),
            now: NOW,
            client: Client::default(),
        };
        scenario.take(|run, around| Ok(create_run(run, around, run_settings())));
        scenario
    }

    /// Makes a decision, and checks the client against the snapshot after it.
    fn take<T>(
        &mut self,
        decide: impl FnOnce(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection>,
    ) -> T {
        self.now = Timestamp(self.now.0 + 1000);
        let around = Surroundings {
            now: self.now,
            ids: &mut self.ids,
            capacity: Capacity {
                turns: 8,
                parked_programs: &[],
                full_programs: &[],
            },
            has_repository: true,
            heard: &LastHeard::new(),
            secrets: &Secrets::default(),
            request: None,
        };
        let decision = decide(&self.run, around).unwrap();
        for event in &decision.events {
            self.run.apply(event);
            let json = json_of(&event_view(place(&self.run.archive), event));
            check_event(&json).unwrap();
            self.client.fold(&json);
        }
        self.log.extend(decision.events);
        let view = run_view(place(&self.run.archive), &self.run, &ConnectionViews::new());
        let snapshot = json_of(&view);
        self.client.check(&snapshot);
        check_schema("RunAnswer", &json!({"run": snapshot})).unwrap();
        decision.answer
    }

    fn add(&mut self, alias: &str, role: &str) -> NodeId {
        let request = NodeRequest {
            settings: node_settings(alias, role),
            parent: None,
        };
        self.take(|run, around| add_node(run, around, request))
    }

    fn chat(&mut self, node: &str, interrupt: bool) {
        let message = Chat {
            content: "go on",
            node: Some(node),
            interrupt,
        };
        self.take(|run, around| chat(run, around, message));
    }

    /// The open turn of a node, after its prompt was sent.
    fn prompt(&mut self, node: NodeId) -> AgentTurnId {
        let turn = self.run.live.node(node).unwrap().turn.as_ref().unwrap().id;
        let sources = PromptSources::default();
        self.take(|run, around| send_prompt(run, around, node, turn, &sources));
        turn
    }

    fn output(&mut self, node: NodeId, turn: AgentTurnId, output: Output) {
        self.take(|run, around| add_output(run, around, node, turn, output));
    }

    fn end(&mut self, node: NodeId, turn: AgentTurnId, end: TurnEnd) {
        let end = ProgramEnd {
            node,
            turn,
            end,
            diff: DiffTaken {
                patch: Bytes::from_static(b"+x"),
                ..DiffTaken::default()
            },
            printed: None,
            only_waited: false,
        };
        self.take(|run, around| end_turn(run, around, &end));
    }

    fn ask(&mut self, node: NodeId, turn: AgentTurnId) -> PermissionAnswer {
        let permission = Permission {
            node,
            turn,
            tool_name: "command".to_owned(),
            args: json!({"cmd": "make test"}),
            provider_id: Some("t-1".to_owned()),
            context: "make test in /work".to_owned(),
            can_allow_always: false,
        };
        self.take(|run, around| ask_permission(run, around, permission))
    }
}

#[test]
fn folded_patches_are_the_snapshot_after_every_decision() {
    let mut scenario = Scenario::begin();
    let orch = scenario.add("orch", "orchestrator");
    let worker = scenario.add("a", "implementer");
    let edge = EdgeRequest {
        from: "orch",
        to: "a",
        kind: None,
        label: None,
        bidirectional: None,
        gate: None,
    };
    scenario.take(|run, around| connect(run, around, edge));
    scenario.chat("orch", false);
    let turn = scenario.prompt(orch);
    scenario.output(orch, turn, Output::Session("s-1".to_owned()));
    scenario.output(orch, turn, Output::Answer("Hel".to_owned()));
    scenario.output(orch, turn, Output::Progress("thinks".to_owned()));
    let PermissionAnswer::Waits(approval) = scenario.ask(orch, turn) else {
        panic!("no rule exists yet");
    };
    let approved = Resolution {
        verdict: Verdict::Approved,
        modified_args: None,
        reason: None,
        scope: Scope::Node,
        by: None,
    };
    scenario.take(|run, around| resolve(run, around, approval, approved));
    scenario.output(orch, turn, Output::Usage(Usage::default()));
    scenario.end(orch, turn, TurnEnd::Completed);
    go_wrong(&mut scenario, worker);
    change(&mut scenario, orch);
    scenario.take(|run, around| delete_node(run, around, worker));
}

/// A rate limit, an interrupt, a reset and a pause.
fn go_wrong(scenario: &mut Scenario, worker: NodeId) {
    scenario.chat("a", false);
    let turn = scenario.prompt(worker);
    let until = Some(Timestamp(scenario.now.0 + 60_000));
    scenario.end(worker, turn, TurnEnd::RateLimited { until });
    assert!(scenario.run.live.node(worker).unwrap().retry_at.is_some());
    scenario.now = Timestamp(scenario.now.0 + 120_000);
    scenario.take(|run, around| Ok(pass_time(run, around)));
    let turn = scenario.prompt(worker);
    scenario.chat("a", true);
    let interrupted = TurnEnd::Interrupted {
        reason: "interrupted".to_owned(),
        requeue: false,
    };
    scenario.end(worker, turn, interrupted);
    let turn = scenario.prompt(worker);
    let failed = TurnEnd::Failed {
        reason: "exit status 1".to_owned(),
    };
    scenario.end(worker, turn, failed);
    scenario.take(|run, around| reset_node(run, around, worker, ResetInbox::Clear));
}

/// Changes of settings by a person.
fn change(scenario: &mut Scenario, orch: NodeId) {
    let mut settings = node_settings("boss", "orchestrator");
    settings.custom_system_prompt = Some("Be brief.".to_owned());
    scenario.take(|run, around| change_node(run, around, orch, settings));
    let paused = RunChange {
        status: Some(RunStatus::Paused),
        mode: Some(Mode::Interactive),
        settings: Some(RunSettings {
            goal: None,
            title: "Another".to_owned(),
            docs_node: Some(orch),
            ..run_settings()
        }),
        ..RunChange::default()
    };
    scenario.take(|run, around| change_run(run, around, paused));
    let completed = RunChange {
        status: Some(RunStatus::Completed),
        ..RunChange::default()
    };
    scenario.take(|run, around| change_run(run, around, completed));
}

#[test]
fn an_event_has_the_same_json_with_any_later_state() {
    let mut scenario = Scenario::begin();
    let orch = scenario.add("orch", "orchestrator");
    scenario.chat("orch", false);
    let turn = scenario.prompt(orch);
    scenario.end(orch, turn, TurnEnd::Completed);
    let mut replayed = Run::new(id(1));
    for event in &scenario.log {
        replayed.apply(event);
        let then = event_view(place(&replayed.archive), event);
        let now = event_view(place(&scenario.run.archive), event);
        assert_eq!(then, now);
    }
}
