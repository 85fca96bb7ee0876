//! Scenarios: commands and reports against one run, with the state checked after each decision.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::json;
use turnkeep_types::Timestamp;

use super::*;
use crate::approval::Resolution;
use crate::attention::{AttentionKind, list_attention};
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, NodeId};
use crate::input::{Input, InputId};
use crate::node::{Capabilities, NodeSettings, Permissions};
use crate::orchestration::{OrchestrationCall, SpawnNode};
use crate::prompt::PromptSources;
use crate::run::Run;
use crate::run::{RunLimits, RunSettings};
use crate::tool::ToolOutcome;
use crate::turn::TurnEnd;
use crate::usage::Budget;
use crate::waits::{Explanation, Owner, WaitReason, explain};
use crate::words::*;

/// A run, its log and a clock that the test moves.
struct Scenario {
    run: Run,
    log: Vec<Event>,
    effects: Vec<Effect>,
    ids: IdSource,
    now: Timestamp,
    free_turns: u32,
    parked: Vec<String>,
    has_repository: bool,
}

fn settings() -> RunSettings {
    RunSettings {
        title: String::new(),
        goal: Some("Fix the refund\nand test it".to_owned()),
        cwd: None,
        mode: Mode::Interactive,
        global_mode: GlobalMode::Implementation,
        world: None,
        verify: Vec::new(),
        setup: Vec::new(),
        docs_node: None,
        budget: Budget::default(),
        limits: RunLimits::default(),
    }
}

fn node_settings(alias: &str, role: &str) -> NodeSettings {
    let leads = role == "orchestrator";
    NodeSettings {
        label: format!("The {alias}"),
        role: role.to_owned(),
        provider: Provider::Claude,
        provider_name: None,
        alias: Some(alias.to_owned()),
        person: None,
        capabilities: Capabilities {
            spawn_nodes: leads,
            write_code: role == "implementer",
            write_docs: true,
            run_commands: true,
            delegate_only: false,
        },
        permissions: Permissions {
            cli: CliPermissions::Gated,
            spawn_requires_approval: !leads,
        },
        custom_system_prompt: None,
        wake_on: WakeOn::Any,
        position: None,
        reset_commands: vec!["/clear".to_owned()],
    }
}

impl Scenario {
    fn begin(settings: RunSettings) -> Self {
        let mut ids = IdSource::from_seed(&[9; 32]);
        let mut scenario = Self {
            run: Run::new(ids.draw()),
            log: Vec::new(),
            effects: Vec::new(),
            ids,
            now: Timestamp(1_000_000),
            free_turns: 8,
            parked: Vec::new(),
            has_repository: true,
        };
        scenario
            .take(|run, around| Ok(create_run(run, around, settings)))
            .unwrap();
        scenario
    }

    /// Makes a decision, appends its events and checks what holds after every decision.
    fn take<T>(
        &mut self,
        decide: impl FnOnce(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection>,
    ) -> Result<T, Rejection> {
        let around = Surroundings {
            now: self.now,
            ids: &mut self.ids,
            capacity: Capacity {
                turns: self.free_turns,
                parked_programs: &self.parked,
                full_programs: &[],
            },
            has_repository: self.has_repository,
            request: None,
        };
        let decision = decide(&self.run, around)?;
        for event in &decision.events {
            self.run.apply(event);
        }
        self.log.extend(decision.events);
        self.effects = decision.effects;
        self.check();
        Ok(decision.answer)
    }

    /// What holds after every decision.
    fn check(&self) {
        let mut replayed = Run::new(self.run.live.id);
        for (place, event) in self.log.iter().enumerate() {
            assert_eq!(
                event.seq,
                place as u64 + 1,
                "the numbers of events have no gaps"
            );
            replayed.apply(event);
        }
        assert_eq!(replayed, self.run, "a replay gives the live state");
        self.check_inboxes();
        for node in self.run.live.nodes() {
            let is_open = node.turn.is_some();
            match node.status {
                NodeStatus::Running => assert!(is_open, "{}", node.name()),
                NodeStatus::Idle | NodeStatus::Failed => assert!(!is_open, "{}", node.name()),
                NodeStatus::Blocked => assert!(node.block.is_some(), "{}", node.name()),
            }
        }
    }

    /// Every input is in an inbox, or was consumed by a turn and not put back.
    fn check_inboxes(&self) {
        let mut waiting: BTreeMap<NodeId, BTreeSet<InputId>> = BTreeMap::new();
        // The inputs of each node's last turn, which a retry puts back.
        let mut failed: BTreeMap<NodeId, BTreeSet<InputId>> = BTreeMap::new();
        for event in &self.log {
            match &event.fact {
                Fact::MessageSent(message) => {
                    let inbox = waiting.entry(message.node).or_default();
                    assert!(inbox.insert(InputId::Message(message.id)));
                }
                Fact::EnvelopeSent(envelope) => {
                    let inbox = waiting.entry(envelope.to).or_default();
                    assert!(inbox.insert(InputId::Envelope(envelope.id)));
                }
                Fact::TurnStepped(TurnStep::Started { consumed, .. }) => {
                    let inbox = waiting.entry(event.node.unwrap()).or_default();
                    for input in consumed {
                        assert!(inbox.remove(input), "consumed twice: {input:?}");
                    }
                    failed.insert(event.node.unwrap(), consumed.iter().copied().collect());
                }
                Fact::TurnStepped(
                    TurnStep::Interrupted { requeued, .. } | TurnStep::Failed { requeued, .. },
                ) => waiting
                    .entry(event.node.unwrap())
                    .or_default()
                    .extend(requeued),
                Fact::NodeChanged(NodeChange::InboxCleared) => {
                    waiting.remove(&event.node.unwrap());
                }
                Fact::NodeChanged(NodeChange::Retried) => {
                    let inbox = waiting.entry(event.node.unwrap()).or_default();
                    inbox.append(&mut failed.remove(&event.node.unwrap()).unwrap());
                }
                _ => {}
            }
        }
        for node in self.run.live.nodes() {
            let inbox: BTreeSet<InputId> = node.inbox.ids().into_iter().collect();
            assert_eq!(
                inbox,
                waiting.remove(&node.id).unwrap_or_default(),
                "{}",
                node.name()
            );
        }
    }

    fn add(&mut self, alias: &str, role: &str) -> NodeId {
        let settings = node_settings(alias, role);
        let request = NodeRequest {
            settings,
            parent: None,
        };
        self.take(|run, around| add_node(run, around, request))
            .unwrap()
    }

    fn connect(&mut self, from: &str, to: &str) {
        let request = EdgeRequest {
            from,
            to,
            kind: None,
            label: None,
            bidirectional: None,
            gate: false,
        };
        self.take(|run, around| connect(run, around, request))
            .unwrap();
    }

    fn chat(&mut self, node: &str, content: &str) {
        let message = Chat {
            content,
            node: Some(node),
            interrupt: false,
        };
        self.take(|run, around| chat(run, around, message)).unwrap();
    }

    fn send(&mut self, from: NodeId, to: &str, message: &str) -> Result<(), Rejection> {
        let handoff = Handoff {
            from,
            to,
            message,
            structured: None,
            artifacts: Vec::new(),
            status: None,
            expectation: None,
            reply_to: None,
            context_pack: None,
        };
        self.take(|run, around| send_handoff(run, around, handoff))
            .map(drop)
    }

    fn turn(&self, node: NodeId) -> Option<AgentTurnId> {
        Some(self.run.live.node(node)?.turn.as_ref()?.id)
    }

    fn say(&mut self, node: NodeId, text: &str) {
        let turn = self.turn(node).unwrap();
        let output = Output::AnswerFinal(text.to_owned());
        self.take(|run, around| add_output(run, around, node, turn, output))
            .unwrap();
    }

    fn end(&mut self, node: NodeId, end: TurnEnd) {
        let turn = self.turn(node).unwrap();
        let end = ProgramEnd {
            node,
            turn,
            end,
            diff: DiffTaken::default(),
            only_waited: false,
        };
        self.take(|run, around| end_turn(run, around, &end))
            .unwrap();
    }

    fn complete(&mut self, node: NodeId, text: &str) {
        self.say(node, text);
        self.end(node, TurnEnd::Completed);
    }

    fn pass(&mut self, ms: u64) {
        self.now = Timestamp(self.now.0 + ms);
        self.take(|run, around| Ok(pass_time(run, around))).unwrap();
    }

    fn status(&self, node: NodeId) -> NodeStatus {
        self.run.live.node(node).unwrap().status
    }

    /// The names of the events since a place in the log.
    fn names_from(&self, place: usize) -> Vec<&'static str> {
        let name = |event: &Event| match &event.fact {
            Fact::TurnStepped(step) => step.word(),
            fact => fact.wire_name(),
        };
        self.log[place..].iter().map(name).collect()
    }
}

#[test]
fn a_message_starts_a_turn_and_its_end_leaves_the_node_idle() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("orch", "orchestrator");
    let before = scenario.log.len();
    let message = Chat {
        content: "Go",
        node: None,
        interrupt: false,
    };
    scenario
        .take(|run, around| chat(run, around, message))
        .unwrap();
    assert!(matches!(scenario.effects[..], [Effect::PrepareTurn { .. }]));
    scenario.complete(node, "Done.\nAll of it.");
    assert_eq!(
        scenario.names_from(before),
        [
            "message.user",
            "node.patch",
            "node.patch",
            "turn.started",
            "node.patch",
            "run.phase",
            "message.assistant.final",
            "artifact.created",
            "turn.completed",
            "node.patch",
        ]
    );
    assert_eq!(scenario.status(node), NodeStatus::Idle);
    assert_eq!(scenario.run.live.node(node).unwrap().summary, "Done.");
    assert_eq!(scenario.run.live.settings.title, "Fix the refund");
}

#[test]
fn without_a_name_the_leader_is_meant_and_a_choice_is_never_guessed() {
    let mut scenario = Scenario::begin(settings());
    let send = |scenario: &mut Scenario| {
        let message = Chat {
            content: "Go",
            node: None,
            interrupt: false,
        };
        scenario
            .take(|run, around| chat(run, around, message))
            .map(drop)
    };
    assert_eq!(send(&mut scenario), Err(Rejection::NoNodes));
    scenario.add("a", "implementer");
    assert_eq!(send(&mut scenario), Ok(()));
    scenario.add("b", "implementer");
    let names = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(send(&mut scenario), Err(Rejection::AmbiguousNode(names)));
    scenario.add("lead", "Orchestrator");
    assert_eq!(send(&mut scenario), Ok(()));
}

#[test]
fn every_question_gets_an_answer() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    // An envelope waits for others before it starts a turn.
    assert_eq!(scenario.turn(worker), None);
    scenario.pass(300);
    let before = scenario.log.len();
    scenario.complete(worker, "Built.");
    let replies: Vec<&Fact> = scenario.log[before..]
        .iter()
        .map(|event| &event.fact)
        .filter(|fact| matches!(fact, Fact::EnvelopeSent(_)))
        .collect();
    let [Fact::EnvelopeSent(reply)] = replies[..] else {
        panic!("one reply: {replies:?}");
    };
    assert_eq!(
        (reply.to, reply.message.as_str(), reply.synthesized),
        (lead, "Built.", true)
    );
    assert!(reply.status.as_ref().unwrap().ok);
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

#[test]
fn a_reply_by_the_agent_itself_is_the_only_one() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    scenario.send(worker, "lead", "It is built").unwrap();
    scenario.complete(worker, "Reported.");
    assert_eq!(scenario.run.live.node(lead).unwrap().inbox.len(), 1);
    scenario.pass(300);
    assert!(scenario.turn(lead).is_some());
}

#[test]
fn a_node_that_waits_for_all_replies_wakes_once() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let (first, second) = (
        scenario.add("a", "implementer"),
        scenario.add("b", "implementer"),
    );
    let waits = NodeSettings {
        wake_on: WakeOn::All,
        ..node_settings("lead", "orchestrator")
    };
    scenario
        .take(|run, around| change_node(run, around, lead, waits))
        .unwrap();
    scenario.connect("lead", "a");
    scenario.connect("lead", "b");
    scenario.chat("lead", "Go");
    scenario.send(lead, "a", "one half").unwrap();
    scenario.send(lead, "b", "other half").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    scenario.complete(first, "Done A.");
    scenario.pass(10_000);
    assert_eq!(scenario.turn(lead), None, "one reply is missing");
    scenario.complete(second, "Done B.");
    scenario.pass(300);
    let turn = scenario.run.live.node(lead).unwrap().turn.as_ref().unwrap();
    assert_eq!(turn.consumed.len(), 2);
}

#[test]
fn nothing_is_sent_where_no_edge_leads() {
    let mut scenario = Scenario::begin(settings());
    let a = scenario.add("a", "implementer");
    scenario.add("b", "implementer");
    scenario.add("c", "reviewer");
    scenario.connect("a", "c");
    let error = scenario.send(a, "b", "hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no edge leads from a to b: create one, or choose one of: c"
    );
    assert_eq!(scenario.run.live.node(a).unwrap().unanswered.len(), 0);
}

fn ask(scenario: &mut Scenario, node: NodeId, command: &str) -> PermissionAnswer {
    let permission = Permission {
        node,
        turn: scenario.turn(node).unwrap(),
        tool_name: "command".to_owned(),
        args: json!({"cmd": command}),
        provider_id: None,
        context: format!("runs {command}"),
    };
    scenario
        .take(|run, around| ask_permission(run, around, permission))
        .unwrap()
}

fn answer(
    scenario: &mut Scenario,
    approval: ApprovalId,
    verdict: Verdict,
    scope: Scope,
) -> Result<(), Rejection> {
    let resolution = Resolution {
        verdict,
        modified_args: None,
        reason: None,
        scope,
    };
    scenario.take(|run, around| resolve(run, around, approval, resolution))
}

#[test]
fn an_approval_blocks_its_node_until_the_first_answer() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let before = scenario.log.len();
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "npm test") else {
        panic!("no rule allows it");
    };
    assert_eq!(scenario.status(node), NodeStatus::Blocked);
    answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    assert_eq!(
        scenario.names_from(before),
        [
            "tool.proposed",
            "approval.requested",
            "awaiting_approval",
            "node.patch",
            "run.patch",
            "approval.resolved",
            "node.patch",
            "tool.started",
        ]
    );
    assert_eq!(scenario.status(node), NodeStatus::Running);
    let again = answer(&mut scenario, approval, Verdict::Denied, Scope::Once).unwrap_err();
    assert_eq!(again.to_string(), "the approval was approved already");
    // The scope made a rule for the same command, and for nothing that only begins like it.
    assert_eq!(
        ask(&mut scenario, node, "npm test"),
        PermissionAnswer::AllowedByRule
    );
    assert!(matches!(
        ask(&mut scenario, node, "npm test; rm x"),
        PermissionAnswer::Waits(_)
    ));
}

#[test]
fn the_end_of_a_turn_closes_everything_that_it_left_open() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    ask(&mut scenario, node, "make");
    let turn = scenario.turn(node).unwrap();
    let half = Output::Answer("half a senten".to_owned());
    scenario
        .take(|run, around| add_output(run, around, node, turn, half))
        .unwrap();
    let before = scenario.log.len();
    let failed = TurnEnd::Failed {
        reason: "exit status 1".to_owned(),
    };
    scenario.end(node, failed);
    assert_eq!(
        scenario.names_from(before),
        [
            "message.assistant.final",
            "approval.resolved",
            "node.patch",
            "tool.completed",
            "artifact.created",
            "turn.failed",
            "node.patch",
            "run.patch",
        ]
    );
    assert_eq!(scenario.status(node), NodeStatus::Failed);
    // No node is left that could go on.
    assert_eq!(scenario.run.live.status, RunStatus::Failed);
    assert!(scenario.run.live.approvals.is_empty());
    // A failed node works again as soon as input arrives.
    scenario.chat("a", "Try again");
    assert_eq!(scenario.status(node), NodeStatus::Running);
}

#[test]
fn an_unavailable_provider_is_tried_three_times_and_not_after_a_tool_ran() {
    let unavailable = || TurnEnd::Unavailable {
        reason: "overloaded".to_owned(),
    };
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    for pause in [2_000, 8_000, 30_000] {
        scenario.end(node, unavailable());
        scenario.pass(pause - 1);
        assert_eq!(scenario.turn(node), None, "it waits {pause} ms");
        scenario.pass(1);
        assert!(scenario.turn(node).is_some());
    }
    scenario.end(node, unavailable());
    assert_eq!(scenario.status(node), NodeStatus::Failed);

    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    scenario.end(node, unavailable());
    assert_eq!(scenario.status(node), NodeStatus::Failed);
}

#[test]
fn a_rate_limit_keeps_the_inputs_and_parks_the_node() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let until = Some(Timestamp(scenario.now.0 + 60_000));
    scenario.end(node, TurnEnd::RateLimited { until });
    assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), 1);
    scenario.pass(59_999);
    assert_eq!(scenario.turn(node), None);
    scenario.pass(1);
    assert!(scenario.turn(node).is_some());
}

#[test]
fn a_paused_run_starts_nothing_and_loses_nothing() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let pause = RunChange {
        status: Some(RunStatus::Paused),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, pause))
        .unwrap();
    scenario.chat("a", "Go");
    assert_eq!(scenario.turn(node), None);
    let resume = RunChange {
        status: Some(RunStatus::Running),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, resume))
        .unwrap();
    assert!(scenario.turn(node).is_some());
}

#[test]
fn the_moves_between_statuses_are_those_of_the_table() {
    use RunStatus::{Completed, Failed, Paused, Queued, Running};
    for from in RunStatus::ALL {
        for to in RunStatus::ALL {
            let mut scenario = Scenario::begin(settings());
            let set = Fact::RunStatusChanged {
                status: *from,
                paused_reason: None,
            };
            let seq = scenario.run.live.last_seq + 1;
            let event = Event {
                id: scenario.ids.draw(),
                seq,
                at: scenario.now,
                node: None,
                turn: None,
                request: None,
                fact: set,
            };
            scenario.run.apply(&event);
            scenario.log.push(event);
            let change = RunChange {
                status: Some(*to),
                ..RunChange::default()
            };
            let moved = scenario.take(|run, around| change_run(run, around, change));
            let is_legal = from == to
                || *to == Running
                || matches!((from, to), (Queued | Running, Paused))
                || matches!((from, to), (Running | Paused, Completed | Failed));
            assert_eq!(moved.is_ok(), is_legal, "{from} to {to}");
        }
    }
}

#[test]
fn a_restart_loses_no_input_and_consumes_none_twice() {
    let mut scenario = Scenario::begin(settings());
    let (a, b) = (
        scenario.add("a", "implementer"),
        scenario.add("b", "implementer"),
    );
    scenario.chat("a", "one");
    scenario.chat("b", "two");
    ask(&mut scenario, b, "make");
    let turn = scenario.turn(a).unwrap();
    let named = Output::Session("s-1".to_owned());
    scenario
        .take(|run, around| add_output(run, around, a, turn, named))
        .unwrap();
    let program = ["claude".to_owned()];
    let found = Restart {
        resume: false,
        resumable_programs: &program,
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    assert_eq!(scenario.run.live.status, RunStatus::Paused);
    assert_eq!(
        scenario.run.live.paused_reason,
        Some(PausedReason::DaemonRestart)
    );
    assert!(scenario.run.live.approvals.is_empty());
    for node in [a, b] {
        // Neither prompt was sent, so both inputs are back.
        let node = scenario.run.live.node(node).unwrap();
        assert_eq!((node.inbox.len(), node.status), (1, NodeStatus::Idle));
    }
    let consumed: Vec<InputId> = scenario
        .log
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::TurnStepped(TurnStep::Started { consumed, .. }) => Some(consumed.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(consumed.len(), 2);
}

#[test]
fn going_in_circles_pauses_the_run_and_a_message_lets_it_go_on() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "reviewer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    for round in 0..5 {
        scenario
            .send(
                lead,
                "worker",
                &format!("Look again, round {round} at 10:0{round}"),
            )
            .unwrap();
        scenario.complete(lead, &format!("Asked, round {round}"));
        if scenario.run.live.status == RunStatus::Paused {
            break;
        }
        scenario.pass(300);
        scenario.complete(worker, &format!("Nothing new, {round}"));
        scenario.pass(300);
    }
    assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Stall));
    let stalled = scenario
        .log
        .iter()
        .any(|event| matches!(event.fact, Fact::Stalled(_)));
    assert!(stalled);
    scenario.chat("worker", "Look at the tests instead");
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    assert!(
        scenario
            .run
            .live
            .nodes()
            .all(|node| node.status != NodeStatus::Blocked)
    );
}

#[test]
fn a_quiet_automatic_run_prompts_its_leader_twice_and_then_says_why_it_stops() {
    let automatic = RunSettings {
        mode: Mode::Auto,
        ..settings()
    };
    let mut scenario = Scenario::begin(automatic);
    let lead = scenario.add("lead", "orchestrator");
    for _ in 0..2 {
        assert!(scenario.turn(lead).is_some());
        scenario.complete(lead, "Nothing to do.");
    }
    assert_eq!(scenario.turn(lead), None);
    assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Stall));
}

#[test]
fn a_deleted_node_returns_its_mail() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario
        .take(|run, around| delete_node(run, around, worker))
        .unwrap();
    let inbox = &scenario.run.live.node(lead).unwrap().inbox;
    assert_eq!(inbox.len(), 1);
    assert!(scenario.run.live.edges.is_empty());
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

#[test]
fn a_child_is_never_freer_than_its_parent() {
    let mut scenario = Scenario::begin(settings());
    let parent = scenario.add("parent", "reviewer");
    let wanted = NodeSettings {
        permissions: Permissions {
            cli: CliPermissions::Skip,
            spawn_requires_approval: false,
        },
        ..node_settings("child", "reviewer")
    };
    let request = NodeRequest {
        settings: wanted,
        parent: Some(parent),
    };
    let child = scenario
        .take(|run, around| add_node(run, around, request))
        .unwrap();
    let permissions = scenario.run.live.node(child).unwrap().settings.permissions;
    assert_eq!(permissions.cli, CliPermissions::Gated);
    assert!(permissions.spawn_requires_approval);
    let writer = NodeRequest {
        settings: node_settings("writer", "implementer"),
        parent: Some(parent),
    };
    let refused = scenario
        .take(|run, around| add_node(run, around, writer))
        .unwrap_err();
    assert_eq!(refused, Rejection::RightNotHeld("writeCode"));
}

#[test]
fn the_second_writer_gets_a_worktree_and_nobody_moves() {
    let mut scenario = Scenario::begin(settings());
    let first = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let second = scenario.add("b", "implementer");
    scenario.chat("b", "Go");
    scenario.complete(first, "Done.");
    scenario.chat("a", "More");
    let kind = |node| {
        scenario
            .run
            .live
            .node(node)
            .unwrap()
            .workspace
            .clone()
            .unwrap()
            .kind
    };
    assert_eq!(kind(first), WorkspaceKind::Shared);
    assert_eq!(kind(second), WorkspaceKind::Worktree);
}

#[test]
fn a_run_opens_no_more_turns_than_it_may() {
    let mut scenario = Scenario::begin(settings());
    scenario.free_turns = 3;
    for alias in ["a", "b", "c", "d", "e"] {
        scenario.add(alias, "implementer");
    }
    scenario.parked = vec!["claude".to_owned()];
    for alias in ["e", "d", "c", "b", "a"] {
        scenario.now = Timestamp(scenario.now.0 + 1);
        scenario.chat(alias, "Go");
    }
    assert!(scenario.run.live.nodes().all(|node| node.turn.is_none()));
    scenario.parked.clear();
    scenario.pass(0);
    let working: Vec<&str> = scenario
        .run
        .live
        .nodes()
        .filter(|node| node.turn.is_some())
        .map(Node::name)
        .collect();
    assert_eq!(working, ["c", "d", "e"], "the oldest input comes first");
}

#[test]
fn a_violation_in_a_shared_workspace_blocks_the_node() {
    let mut scenario = Scenario::begin(settings());
    scenario.has_repository = false;
    let node = scenario.add("a", "reviewer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    let mut diff = DiffTaken {
        patch: Bytes::from_static(b"diff"),
        ..DiffTaken::default()
    };
    diff.summary.violations = vec!["src/x".to_owned()];
    let end = ProgramEnd {
        node,
        turn,
        end: TurnEnd::Completed,
        diff,
        only_waited: false,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
    let node = scenario.run.live.node(node).unwrap();
    assert_eq!(node.status, NodeStatus::Blocked);
    assert_eq!(node.summary, "wrote files that it may not write: src/x");
}

#[test]
fn a_tool_that_ran_is_completed_once() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    let call = crate::tool::ToolCall {
        id: scenario.ids.draw(),
        name: "Read".to_owned(),
        args: json!({"path": "a"}),
        provider_id: Some("t1".to_owned()),
    };
    let started = Output::ToolStarted(call);
    scenario
        .take(|run, around| add_output(run, around, node, turn, started))
        .unwrap();
    for _ in 0..2 {
        let outcome = ToolOutcome {
            ok: true,
            error: None,
            ..ToolOutcome::abandoned("")
        };
        let done = Output::ToolCompleted {
            provider_id: "t1".to_owned(),
            outcome,
        };
        scenario
            .take(|run, around| add_output(run, around, node, turn, done))
            .unwrap();
    }
    scenario.end(node, TurnEnd::Completed);
    let completed = scenario
        .log
        .iter()
        .filter(|event| matches!(event.fact, Fact::ToolCompleted { .. }));
    assert_eq!(completed.count(), 1);
}

#[test]
fn a_silent_turn_is_noticed_and_then_stopped() {
    const MINUTE_MS: u64 = 60_000;
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let deadline = |scenario: &Scenario| {
        let capacity = Capacity {
            turns: 8,
            parked_programs: &[],
            full_programs: &[],
        };
        next_deadline(&scenario.run.live, scenario.now, capacity)
            .unwrap()
            .0
            - scenario.now.0
    };
    assert_eq!(deadline(&scenario), 3 * MINUTE_MS);
    let before = scenario.log.len();
    scenario.pass(3 * MINUTE_MS);
    assert_eq!(scenario.names_from(before), ["node.progress"]);
    // A tool that runs may be silent for as long as the turn may last.
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    scenario.pass(60 * MINUTE_MS);
    assert_eq!(scenario.effects, []);
    scenario.pass(57 * MINUTE_MS);
    assert_eq!(scenario.effects, [Effect::Interrupt(node)]);
    scenario.pass(19_999);
    assert_eq!(scenario.effects, [], "it is being stopped");
    scenario.pass(1);
    assert_eq!(scenario.effects, [Effect::EndProgram(node)]);
}

#[test]
fn an_approval_expires_only_where_the_settings_say_so() {
    for (approval_ms, expect) in [(0, NodeStatus::Blocked), (1_000, NodeStatus::Running)] {
        let limits = RunLimits {
            approval_ms,
            ..RunLimits::default()
        };
        let mut scenario = Scenario::begin(RunSettings {
            limits,
            ..settings()
        });
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        ask(&mut scenario, node, "make");
        scenario.pass(1_000);
        assert_eq!(scenario.status(node), expect, "{approval_ms}");
    }
}

fn explained(scenario: &Scenario) -> Explanation {
    let capacity = Capacity {
        turns: scenario.free_turns,
        parked_programs: &scenario.parked,
        full_programs: &[],
    };
    explain(&scenario.run.live, scenario.now, capacity)
}

/// The reasons of all waits, with their owners.
fn reasons(scenario: &Scenario) -> Vec<(WaitReason, Owner)> {
    let waits = explained(scenario).waits.into_iter();
    waits.map(|wait| (wait.reason, wait.owner)).collect()
}

#[test]
fn every_wait_has_a_reason_and_an_owner() {
    let mut scenario = Scenario::begin(settings());
    assert_eq!(reasons(&scenario), [(WaitReason::NoNodes, Owner::Person)]);
    let node = scenario.add("a", "implementer");
    assert_eq!(reasons(&scenario), [(WaitReason::NoInput, Owner::Person)]);
    scenario.chat("a", "Go");
    assert_eq!(reasons(&scenario), [(WaitReason::Preparing, Owner::Daemon)]);
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    assert_eq!(
        reasons(&scenario),
        [(WaitReason::Approval(approval), Owner::Person)]
    );
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    scenario.end(node, TurnEnd::RateLimited { until: None });
    let program = Owner::Program("claude".to_owned());
    let until = Timestamp(scenario.now.0 + 15 * 60_000);
    let parked = WaitReason::Held(crate::hold::Hold::RetryAt(until));
    assert_eq!(reasons(&scenario), [(parked, program)]);
    let pause = RunChange {
        status: Some(RunStatus::Paused),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, pause))
        .unwrap();
    let paused = Some(PausedReason::User);
    let stopped = WaitReason::RunStopped {
        status: RunStatus::Paused,
        paused,
    };
    assert_eq!(reasons(&scenario), [(stopped, Owner::Person)]);
}

#[test]
fn nodes_that_wait_for_each_other_are_a_deadlock() {
    let mut scenario = Scenario::begin(settings());
    let (a, b) = (scenario.add("a", "planner"), scenario.add("b", "planner"));
    for (id, alias) in [(a, "a"), (b, "b")] {
        let waits = NodeSettings {
            wake_on: WakeOn::All,
            ..node_settings(alias, "planner")
        };
        scenario
            .take(|run, around| change_node(run, around, id, waits))
            .unwrap();
    }
    scenario.connect("a", "b");
    scenario.connect("b", "a");
    scenario.chat("a", "Go");
    scenario.chat("b", "Go");
    scenario.send(a, "b", "What do you need?").unwrap();
    let question = Handoff {
        from: b,
        to: "a",
        message: "What do you need?",
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: Some(Expectation::Required),
        reply_to: None,
        context_pack: None,
    };
    scenario
        .take(|run, around| send_handoff(run, around, question))
        .unwrap();
    assert_eq!(explained(&scenario).deadlocks, Vec::<Vec<NodeId>>::new());
    scenario.complete(a, "Asked.");
    scenario.complete(b, "Asked.");
    scenario.pass(10_000);
    let circle = explained(&scenario).deadlocks;
    assert_eq!(circle.len(), 1);
    let members: BTreeSet<NodeId> = circle[0].iter().copied().collect();
    assert_eq!(members, [a, b].into());
}

fn prepare(scenario: &mut Scenario, node: NodeId, role: &str) -> String {
    let turn = scenario.turn(node).unwrap();
    let sources = PromptSources {
        role: role.to_owned(),
        resumes: true,
        ..PromptSources::default()
    };
    scenario
        .take(|run, around| send_prompt(run, around, node, turn, &sources))
        .unwrap();
    let [Effect::SendPrompt { prompt, .. }] = &scenario.effects[..] else {
        panic!("one prompt: {:?}", scenario.effects);
    };
    String::from_utf8(prompt.to_vec()).unwrap()
}

#[test]
fn a_session_gets_everything_once_and_then_only_what_is_new() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "First");
    let before = scenario.log.len();
    let prompt = prepare(&mut scenario, node, "You write code.");
    assert_eq!(
        scenario.names_from(before),
        ["artifact.created", "artifact.created", "waiting_for_model"]
    );
    assert!(
        prompt.contains("You write code.") && prompt.contains("First"),
        "{prompt}"
    );
    let turn = scenario.turn(node).unwrap();
    let named = Output::Session("s-1".to_owned());
    scenario
        .take(|run, around| add_output(run, around, node, turn, named))
        .unwrap();
    scenario.complete(node, "Done.");

    scenario.chat("a", "Second");
    let prompt = prepare(&mut scenario, node, "You write code.");
    assert!(
        !prompt.contains("You write code.") && prompt.contains("Second"),
        "{prompt}"
    );
    assert!(
        prompt.starts_with("The run is in IMPLEMENTATION mode."),
        "{prompt}"
    );
    scenario.complete(node, "Done again.");

    // An edited role template counts at the next turn.
    scenario.chat("a", "Third");
    let prompt = prepare(&mut scenario, node, "You write tests.");
    assert!(prompt.contains("You write tests."), "{prompt}");
}

/// Does one random thing. Refusals are fine; what holds after every decision is checked by
/// [`Scenario::take`].
fn do_anything(scenario: &mut Scenario, what: u8, which: u8) {
    let nodes: Vec<NodeId> = scenario.run.live.nodes().map(|node| node.id).collect();
    let Some(&node) = nodes.get(usize::from(which) % nodes.len().max(1)) else {
        scenario.add("first", "orchestrator");
        return;
    };
    let name = node.to_string();
    let turn = scenario.turn(node);
    match what % 16 {
        0 if nodes.len() < 6 => {
            let role = if which.is_multiple_of(3) {
                "orchestrator"
            } else {
                "implementer"
            };
            scenario.add(&format!("n{}", scenario.log.len()), role);
        }
        1 => {
            let message = Chat {
                content: "Go",
                node: Some(&name),
                interrupt: which > 127,
            };
            drop(scenario.take(|run, around| chat(run, around, message)));
        }
        2 | 3 => {
            let other = nodes[(usize::from(which) + 1) % nodes.len()].to_string();
            if other != name {
                scenario.connect(&name, &other);
            }
            drop(scenario.send(node, &other, "Look at this"));
        }
        4 if turn.is_some() => drop(ask(scenario, node, "make")),
        5 => {
            if let Some(approval) = scenario.run.live.approvals.keys().next().copied() {
                let verdict = Verdict::ALL[usize::from(which) % 2];
                answer(scenario, approval, verdict, Scope::Once).unwrap();
            }
        }
        6 | 7 if turn.is_some() => scenario.complete(node, &format!("Done {which}")),
        8 if turn.is_some() => {
            let (reason, requeue) = ("stopped".to_owned(), which > 127);
            scenario.end(node, TurnEnd::Interrupted { reason, requeue });
        }
        9 if turn.is_some() => {
            scenario.end(
                node,
                TurnEnd::Unavailable {
                    reason: "overloaded".to_owned(),
                },
            );
        }
        10 => scenario.pass(u64::from(which) * 100),
        11 => {
            let status = Some(RunStatus::ALL[usize::from(which) % RunStatus::ALL.len()]);
            let change = RunChange {
                status,
                interrupt: which > 127,
                ..RunChange::default()
            };
            drop(scenario.take(|run, around| change_run(run, around, change)));
        }
        12 if nodes.len() > 2 => {
            scenario
                .take(|run, around| delete_node(run, around, node))
                .unwrap();
        }
        14 if turn.is_some() => {
            scenario.end(
                node,
                TurnEnd::Failed {
                    reason: "exit status 1".to_owned(),
                },
            );
            // Another input may have started the next turn already.
            drop(scenario.take(|run, around| retry_node(run, around, node)));
        }
        15 => {
            let inbox = if which > 200 {
                ResetInbox::Clear
            } else {
                ResetInbox::Keep
            };
            scenario
                .take(|run, around| reset_node(run, around, node, inbox))
                .unwrap();
        }
        13 => {
            let found = Restart {
                resume: which > 127,
                resumable_programs: &[],
            };
            scenario
                .take(|run, around| Ok(restart(run, around, found)))
                .unwrap();
        }
        _ => {}
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_no_input_is_lost_and_a_replay_gives_the_same_run(
        mode in 0..2usize,
        things in proptest::collection::vec(proptest::prelude::any::<(u8, u8)>(), 1..60),
    ) {
        let mut scenario = Scenario::begin(RunSettings { mode: Mode::ALL[mode], ..settings() });
        for (what, which) in things {
            do_anything(&mut scenario, what, which);
        }
    }
}

#[test]
fn a_failed_turn_waits_for_a_person_who_lets_it_try_again() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    scenario.end(
        node,
        TurnEnd::Failed {
            reason: "exit status 1".to_owned(),
        },
    );
    let items = list_attention(&scenario.run.live);
    let kinds: Vec<&AttentionKind> = items.iter().map(|item| &item.kind).collect();
    assert_eq!(
        kinds,
        [&AttentionKind::Failure(turn), &AttentionKind::Finished]
    );
    assert_eq!(items[0].summary, "a: exit status 1");
    scenario
        .take(|run, around| retry_node(run, around, node))
        .unwrap();
    let again = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert_eq!(again.consumed.len(), 1);
    let refused = scenario.take(|run, around| retry_node(run, around, node));
    assert_eq!(refused, Err(Rejection::NothingToRetry));
}

#[test]
fn a_reset_keeps_waiting_inputs_unless_they_are_cleared() {
    for (inbox, expect) in [(ResetInbox::Keep, 1), (ResetInbox::Clear, 0)] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "First");
        scenario.chat("a", "Second");
        scenario
            .take(|run, around| reset_node(run, around, node, inbox))
            .unwrap();
        let effects = [Effect::Interrupt(node), Effect::ResetProgram(node)];
        assert_eq!(scenario.effects, effects);
        assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), expect);
    }
}

fn call(
    scenario: &mut Scenario,
    node: NodeId,
    call: OrchestrationCall,
) -> Result<ToolAnswer, Rejection> {
    let turn = scenario.turn(node).unwrap();
    let request = ToolRequest {
        node,
        turn,
        args: json!({}),
        call,
    };
    scenario.take(|run, around| call_tool(run, around, request))
}

fn spawn(alias: &str) -> OrchestrationCall {
    OrchestrationCall::SpawnNode(Box::new(SpawnNode {
        settings: node_settings(alias, "reviewer"),
        input: Some("Review it".to_owned()),
        connect: true,
    }))
}

#[test]
fn an_orchestrator_spawns_a_node_that_gets_its_input() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    let ToolAnswer::Done(answer) = call(&mut scenario, lead, spawn("child")).unwrap() else {
        panic!("an orchestrator needs no approval");
    };
    assert_eq!(answer["alias"], "child");
    assert!(answer["edgeId"].is_string());
    scenario.pass(300);
    let child = find_node(&scenario.run.live, "child").unwrap();
    assert_eq!((child.parent, child.depth), (Some(lead), 1));
    assert_eq!(child.turn.as_ref().unwrap().consumed.len(), 1);
}

#[test]
fn another_node_needs_approval_whatever_its_settings_say() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    let mut free = node_settings("a", "reviewer");
    free.capabilities.spawn_nodes = true;
    free.permissions.spawn_requires_approval = false;
    scenario.chat("a", "Go");
    let refused = call(&mut scenario, node, spawn("child"));
    assert_eq!(refused, Err(Rejection::MayNotSpawn));
    scenario
        .take(|run, around| change_node(run, around, node, free))
        .unwrap();
    for (verdict, expect) in [(Verdict::Denied, 1), (Verdict::Approved, 2)] {
        let answered = call(&mut scenario, node, spawn("child")).unwrap();
        let ToolAnswer::Pending {
            tool,
            approval: Some(approval),
        } = answered
        else {
            panic!("it needs approval: {answered:?}");
        };
        assert_eq!(scenario.status(node), NodeStatus::Blocked);
        answer(&mut scenario, approval, verdict, Scope::Once).unwrap();
        assert_eq!(scenario.status(node), NodeStatus::Running);
        assert_eq!(scenario.run.live.nodes().len(), expect, "{verdict}");
        let is_answer = |effect: &Effect| {
            matches!(effect, Effect::AnswerToolCall { tool: of, result, .. }
                if *of == tool && result.is_ok() == (verdict == Verdict::Approved))
        };
        assert!(
            scenario.effects.iter().any(is_answer),
            "{:?}",
            scenario.effects
        );
    }
}

#[test]
fn a_question_blocks_nothing_and_its_answer_is_a_message() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    scenario.chat("a", "Go");
    let question = "Which colour?".to_owned();
    let ask = OrchestrationCall::AskUser {
        question,
        options: vec!["red".to_owned()],
    };
    let ToolAnswer::Done(_) = call(&mut scenario, node, ask).unwrap() else {
        panic!("a question is answered at once");
    };
    assert_eq!(scenario.status(node), NodeStatus::Running);
    scenario.complete(node, "Asked.");
    let approval = *scenario.run.live.approvals.keys().next().unwrap();
    let resolution = Resolution {
        verdict: Verdict::Modified,
        modified_args: Some(json!({"answer": "red"})),
        reason: None,
        scope: Scope::Once,
    };
    scenario
        .take(|run, around| resolve(run, around, approval, resolution))
        .unwrap();
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert!(matches!(&turn.consumed[..], [Input::Message(message)] if message.content == "red"));
}

fn claim(scenario: &mut Scenario, node: NodeId) -> ToolAnswer {
    let summary = "All done".to_owned();
    call(scenario, node, OrchestrationCall::CompleteRun { summary }).unwrap()
}

fn verified(scenario: &mut Scenario, ok: bool) {
    let end = VerificationEnd {
        ok,
        report: Bytes::from_static(b"{}"),
        tail: "1 test failed".to_owned(),
        signature: "make test: 2".to_owned(),
    };
    scenario
        .take(|run, around| end_verification(run, around, &end))
        .unwrap();
}

#[test]
fn a_run_is_completed_only_by_a_claim_that_passes_verification() {
    let checked = RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    };
    let mut scenario = Scenario::begin(checked);
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    let before = scenario.log.len();
    assert!(matches!(
        claim(&mut scenario, lead),
        ToolAnswer::Pending { approval: None, .. }
    ));
    assert_eq!(scenario.run.live.phase, Phase::Verify);
    verified(&mut scenario, false);
    assert_eq!(scenario.run.live.phase, Phase::Execute);
    assert_eq!(scenario.run.live.node(lead).unwrap().inbox.len(), 1);
    claim(&mut scenario, lead);
    verified(&mut scenario, true);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
    let phases: Vec<&str> = scenario
        .names_from(before)
        .into_iter()
        .filter(|name| matches!(*name, "run.phase" | "run.patch" | "handoff.sent"))
        .collect();
    let expect = [
        "run.phase",
        "handoff.sent",
        "run.phase",
        "run.phase",
        "run.phase",
        "run.patch",
    ];
    assert_eq!(phases, expect);
    // Nothing starts in a completed run.
    scenario.complete(lead, "Completed.");
    assert_eq!(scenario.turn(lead), None);
}

#[test]
fn a_docs_node_works_before_the_run_is_done_and_cannot_undo_it() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let docs = scenario.add("docs", "docs");
    let with_docs = RunSettings {
        docs_node: Some(docs),
        ..settings()
    };
    let change = RunChange {
        settings: Some(with_docs),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
    scenario.chat("lead", "Go");
    claim(&mut scenario, lead);
    assert_eq!(scenario.run.live.phase, Phase::DocsSync);
    scenario.pass(300);
    scenario.end(
        docs,
        TurnEnd::Failed {
            reason: "exit status 1".to_owned(),
        },
    );
    assert_eq!(scenario.run.live.phase, Phase::Done);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
}

#[test]
fn an_automatic_run_whose_program_fails_stops_after_two_turns() {
    let automatic = RunSettings {
        mode: Mode::Auto,
        ..settings()
    };
    let mut scenario = Scenario::begin(automatic);
    scenario.add("other", "reviewer");
    let lead = scenario.add("lead", "orchestrator");
    for _ in 0..2 {
        scenario.end(
            lead,
            TurnEnd::Failed {
                reason: "exit status 1".to_owned(),
            },
        );
    }
    assert_eq!(scenario.turn(lead), None);
    assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Stall));
}

#[test]
fn a_turn_that_is_stopped_before_its_prompt_gives_its_inputs_back() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "First");
    let turn = scenario.turn(node).unwrap();
    let message = Chat {
        content: "Second",
        node: Some("a"),
        interrupt: true,
    };
    scenario
        .take(|run, around| chat(run, around, message))
        .unwrap();
    let sources = PromptSources::default();
    scenario
        .take(|run, around| send_prompt(run, around, node, turn, &sources))
        .unwrap();
    assert!(
        !scenario
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::SendPrompt { .. }))
    );
    let next = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert_ne!(next.id, turn);
    assert_eq!(next.consumed.len(), 2);
}

#[test]
fn a_call_that_is_approved_after_its_turn_reports_its_outcome_as_a_message() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    let mut free = node_settings("a", "reviewer");
    free.capabilities.spawn_nodes = true;
    scenario
        .take(|run, around| change_node(run, around, node, free))
        .unwrap();
    scenario.chat("a", "Go");
    let ToolAnswer::Pending {
        approval: Some(approval),
        ..
    } = call(&mut scenario, node, spawn("child")).unwrap()
    else {
        panic!("it needs approval");
    };
    scenario.complete(node, "I wait.");
    assert_eq!(scenario.status(node), NodeStatus::Idle);
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    assert_eq!(scenario.run.live.nodes().len(), 2);
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert_eq!(turn.consumed.len(), 1);
}

#[test]
fn nothing_happens_in_a_deleted_run() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    scenario
        .take(|run, around| Ok(delete_run(run, around)))
        .unwrap();
    let before = scenario.log.len();
    let late = Output::AnswerFinal("late".to_owned());
    let refused = scenario.take(|run, around| add_output(run, around, node, turn, late));
    assert_eq!(refused, Err(Rejection::TurnOver));
    assert_eq!(scenario.log.len(), before);
}

#[test]
fn a_turn_that_a_pause_stopped_continues_and_still_answers_its_question() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    prepare(&mut scenario, worker, "You write code.");
    let pause = RunChange {
        status: Some(RunStatus::Paused),
        interrupt: true,
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, pause))
        .unwrap();
    let resume = RunChange {
        status: Some(RunStatus::Running),
        ..RunChange::default()
    };
    // The run goes on before the program has stopped.
    scenario
        .take(|run, around| change_run(run, around, resume))
        .unwrap();
    let reason = "paused by the user".to_owned();
    scenario.end(
        worker,
        TurnEnd::Interrupted {
            reason,
            requeue: false,
        },
    );
    assert_eq!(scenario.run.live.node(lead).unwrap().unanswered.len(), 1);
    let turn = scenario
        .run
        .live
        .node(worker)
        .unwrap()
        .turn
        .as_ref()
        .unwrap();
    assert!(
        matches!(&turn.consumed[..], [Input::Message(note)] if note.role == MessageRole::System)
    );
    scenario.complete(worker, "Built.");
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}
