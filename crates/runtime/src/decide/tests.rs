//! Scenarios: commands and reports against one run, with the state checked after each decision.
//!
//! Each file has the scenarios of one part of `decide`. [`Scenario`] is what they share.

mod actions;
mod anything;
mod approvals;
mod chat;
mod clock;
mod copies;
mod cut_off;
mod gates;
mod graph;
mod handoffs;
mod legal_moves;
mod limits;
mod model;
mod open_questions;
mod output;
mod prepare;
mod quiet_runs;
mod rate_limits;
mod recorded_story;
mod repeated_calls;
mod requests;
mod runs;
mod schedule;
mod story;
mod tools;
mod turns;
mod verification;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::json;
use turnkeep_types::{BlobHash, Timestamp};

use super::*;
use crate::approval::Resolution;
use crate::attention::{AttentionKind, list_attention};
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, EnvelopeId, NodeId, ToolId};
use crate::input::{Input, InputId};
use crate::node::{Capabilities, NodeSettings, Permissions};
use crate::orchestration::{CreateEdge, OrchestrationCall, SpawnNode};
use crate::prompt::PromptSources;
use crate::record;
use crate::run::Run;
use crate::run::{RunLimits, RunSettings};
use crate::secrets::Secrets;
use crate::tool_guide::ToolCalling;
use crate::turn::TurnEnd;
use crate::usage::{Budget, Usage};
use crate::verification::VerificationTarget;
use crate::waits::{Explanation, Owner, WaitReason, explain};
use crate::words::*;

/// A run, its log and a clock that the test moves.
struct Scenario {
    run: Run,
    log: Vec<Event>,
    /// The log as it is read back from its stored form.
    stored: Vec<Event>,
    effects: Vec<Effect>,
    /// The contents of the artifacts of the last decision.
    blobs: Vec<Bytes>,
    ids: IdSource,
    now: Timestamp,
    free_turns: u32,
    heard: LastHeard,
    secrets: Secrets,
    parked: Vec<String>,
    has_repository: bool,
    /// Whether everything is checked after each decision. A long story checks only its end.
    checks_each_decision: bool,
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
        budget: None,
    }
}

/// Stores an event and reads it back.
fn read_back(event: &Event) -> Event {
    let stored = record::encode(event);
    let find_blob = |hash: &BlobHash| {
        let mut blobs = stored.blobs.iter();
        blobs.find(|blob| BlobHash::of(blob) == *hash).cloned()
    };
    record::decode(&stored.payload, &find_blob).unwrap()
}

impl Scenario {
    fn begin(settings: RunSettings) -> Self {
        Self::begin_with(settings, 8)
    }

    /// Begins a run where so many turns are free.
    fn begin_with(settings: RunSettings, free_turns: u32) -> Self {
        let mut ids = IdSource::from_seed(&[9; 32]);
        let mut scenario = Self {
            run: Run::new(ids.draw()),
            log: Vec::new(),
            stored: Vec::new(),
            effects: Vec::new(),
            blobs: Vec::new(),
            ids,
            now: Timestamp(1_000_000),
            free_turns,
            parked: Vec::new(),
            has_repository: true,
            heard: LastHeard::new(),
            secrets: Secrets::default(),
            checks_each_decision: true,
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
            heard: &self.heard,
            secrets: &self.secrets,
            request: None,
        };
        let decision = decide(&self.run, around)?;
        for event in &decision.events {
            self.run.apply(event);
        }
        self.log.extend(decision.events);
        let new = self.log.iter().skip(self.stored.len());
        self.stored.extend(new.map(read_back));
        self.effects = decision.effects;
        self.blobs = decision.blobs;
        if self.checks_each_decision {
            self.check();
        }
        Ok(decision.answer)
    }

    /// What holds after every decision.
    fn check(&self) {
        let mut replayed = Run::new(self.run.live.id);
        for (place, event) in self.stored.iter().enumerate() {
            assert_eq!(
                event.seq,
                place as u64 + 1,
                "the numbers of events have no gaps"
            );
            replayed.apply(event);
        }
        assert_eq!(self.stored, self.log, "an event is stored whole");
        assert_eq!(replayed, self.run, "a replay gives the live state");
        self.check_inboxes();
        self.check_turns();
        for node in self.run.live.nodes() {
            let is_open = node.turn.is_some();
            match node.status {
                NodeStatus::Running => assert!(is_open, "{}", node.name()),
                NodeStatus::Idle | NodeStatus::Failed => assert!(!is_open, "{}", node.name()),
                NodeStatus::Blocked => assert!(node.block.is_some(), "{}", node.name()),
            }
        }
    }

    /// Every turn ends once, and every tool and approval ends with it or before.
    fn check_turns(&self) {
        let mut turns: BTreeMap<NodeId, AgentTurnId> = BTreeMap::new();
        let mut tools: BTreeMap<ToolId, NodeId> = BTreeMap::new();
        for event in &self.log {
            let node = event.node;
            match &event.fact {
                Fact::TurnStepped(TurnStep::Started { .. }) => {
                    let before = turns.insert(node.unwrap(), event.turn.unwrap());
                    assert_eq!(before, None, "a node has one turn at a time");
                }
                Fact::TurnStepped(
                    TurnStep::Completed { .. }
                    | TurnStep::Interrupted { .. }
                    | TurnStep::Failed { .. },
                ) => {
                    assert_eq!(turns.remove(&node.unwrap()), event.turn);
                    let open = tools.values().filter(|of| Some(**of) == node);
                    assert_eq!(open.count(), 0, "every tool ends before its turn");
                }
                Fact::ToolProposed(call) => drop(tools.insert(call.id, node.unwrap())),
                Fact::ToolCompleted { tool, .. } => {
                    assert!(tools.remove(tool).is_some(), "a tool ends once");
                }
                Fact::NodeDeleted { .. } => {
                    assert_eq!(turns.get(&node.unwrap()), None, "its turn has ended");
                }
                _ => {}
            }
        }
        let open = self.run.live.nodes();
        let open = open.filter_map(|node| Some((node.id, node.turn.as_ref()?.id)));
        assert_eq!(turns, open.collect());
        for approval in self.run.live.approvals.values() {
            assert!(self.run.live.node(approval.node).is_some());
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
                ) => {
                    let of_turn = failed.entry(event.node.unwrap()).or_default();
                    of_turn.retain(|input| !requeued.contains(input));
                    let inbox = waiting.entry(event.node.unwrap()).or_default();
                    inbox.extend(requeued);
                }
                Fact::NodeDeleted { dropped } => {
                    let mut left = waiting.remove(&event.node.unwrap()).unwrap_or_default();
                    left.retain(|input| !dropped.contains(input));
                    for input in left {
                        let InputId::Envelope(mail) = input else {
                            panic!("lost with its node: {input:?}");
                        };
                        assert!(self.is_answered(mail), "not returned: {mail}");
                    }
                }
                Fact::NodeChanged {
                    change: NodeChange::InboxCleared,
                    ..
                } => {
                    waiting.remove(&event.node.unwrap());
                }
                Fact::NodeChanged {
                    change: NodeChange::Retried,
                    ..
                } => {
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

    fn is_answered(&self, question: EnvelopeId) -> bool {
        let mut facts = self.log.iter().map(|event| &event.fact);
        facts.any(
            |fact| matches!(fact, Fact::EnvelopeSent(reply) if reply.reply_to == Some(question)),
        )
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
            gate: None,
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
        self.output(node, turn, Output::AnswerFinal(text.to_owned()));
    }

    fn end(&mut self, node: NodeId, end: TurnEnd) {
        let turn = self.turn(node).unwrap();
        let end = ProgramEnd {
            node,
            turn,
            end,
            diff: DiffTaken::default(),
            printed: None,
            only_waited: false,
        };
        self.take(|run, around| end_turn(run, around, &end))
            .unwrap();
    }

    fn output(&mut self, node: NodeId, turn: AgentTurnId, output: Output) {
        self.take(|run, around| add_output(run, around, node, turn, output))
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

fn ask(scenario: &mut Scenario, node: NodeId, command: &str) -> PermissionAnswer {
    let permission = Permission {
        node,
        turn: scenario.turn(node).unwrap(),
        tool_name: "command".to_owned(),
        args: json!({"cmd": command}),
        provider_id: None,
        context: format!("runs {command}"),
        can_allow_always: false,
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
        by: Some(ResolvedBy::Web),
    };
    scenario.take(|run, around| resolve(run, around, approval, resolution))
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
