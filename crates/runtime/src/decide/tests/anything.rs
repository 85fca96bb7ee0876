//! Random commands in a row: each is accepted or refused as the tables of legal moves say.
//!
//! The prediction is made before the command, from [`Model`] alone. What must hold after every
//! decision is checked by [`Scenario::take`]; that each event is a legal move, by the model.

use std::cell::RefCell;
use std::mem::discriminant;

use super::legal_moves::{
    ANSWERS, CLAIM_PROBLEMS, NODE_COMMANDS, STATUS_AFTER_RESTART, STATUS_REQUESTS, VERIFY_REQUESTS,
    cell, cells,
};
use super::model::{Model, ModelNode, ModelTurn};
use super::*;
use crate::ids::{EdgeId, RuleId};

/// A run has at most so many nodes here, so that the limit is met.
const NODES_MAX: u32 = 5;

/// The cells of the tables that were looked up: the table, its row and its column.
type SeenCells = BTreeSet<(&'static str, &'static str, &'static str)>;

/// A command, which makes its own random choices.
type Command = fn(&mut Game<'_>, &mut Dice);

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        // The generator of SplitMix64: every seed gives good numbers.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (limit as u64)).unwrap()
    }

    fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        (!list.is_empty()).then(|| list[self.below(list.len())])
    }
}

/// Commands that let turns go on come more often, so that the later stages are reached.
const COMMANDS: &[Command] = &[
    add_a_node,
    send_chat,
    send_chat,
    send_chat,
    hand_off,
    connect_nodes,
    disconnect_nodes,
    prepare_prompt,
    prepare_prompt,
    prepare_prompt,
    prepare_prompt,
    report_output,
    ask_for_permission,
    ask_for_permission,
    answer_approval,
    answer_approval,
    forget_rule,
    complete_turn,
    end_any_turn,
    call_any_tool,
    call_any_tool,
    claim_completion,
    claim_completion,
    request_verification,
    end_any_check,
    change_status,
    let_run_go_on,
    let_run_go_on,
    act_on_node,
    settle_files,
    choose_docs_node,
    change_capacity,
    let_time_pass,
    restart_server,
];

/// A run under random commands, and the model that predicts their answers.
struct Game<'a> {
    scenario: Scenario,
    model: Model,
    seen: &'a RefCell<SeenCells>,
}

/// A node, a turn and the column of the commands about both.
#[derive(Debug, Clone, Copy)]
struct Target {
    node: NodeId,
    turn: AgentTurnId,
    stage: &'static str,
}

impl<'a> Game<'a> {
    fn begin(mode: Mode, free_turns: u32, seen: &'a RefCell<SeenCells>) -> Self {
        let limits = RunLimits {
            nodes_max: NODES_MAX,
            ..RunLimits::default()
        };
        let settings = RunSettings {
            mode,
            limits,
            verify: vec!["make test".to_owned()],
            ..settings()
        };
        let mut scenario = Scenario::begin_with(settings, free_turns);
        // So that a node can write what it may not write where a person must decide about it.
        scenario.has_repository = false;
        scenario.add("lead", "orchestrator");
        scenario.add("worker", "implementer");
        scenario.connect("lead", "worker");
        let mut model = Model::new();
        model.follow(&scenario.log);
        Self {
            scenario,
            model,
            seen,
        }
    }

    /// Gives a command and checks that it is answered as predicted.
    fn give<T>(
        &mut self,
        expect: Result<(), Rejection>,
        decide: impl FnOnce(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection>,
    ) -> Option<T> {
        let events = self.scenario.log.len();
        let answer = self.scenario.take(decide);
        self.model.follow(&self.scenario.log);
        let is_completed = self.model.status == "completed";
        let is_of_completed = match self.model.phase {
            "DONE" => true,
            // A person may have a completed run verified.
            "VERIFY" => is_completed,
            _ => false,
        };
        assert_eq!(is_completed, is_of_completed, "{}", self.model.phase);
        match (answer, expect) {
            (Ok(answer), Ok(())) => Some(answer),
            (Err(rejection), Err(expected)) => {
                assert!(
                    is_same(&rejection, &expected),
                    "{rejection}, not {expected}"
                );
                assert_eq!(self.scenario.log.len(), events, "a refusal has no events");
                None
            }
            (Ok(_), Err(expected)) => panic!("accepted instead of: {expected}"),
            (Err(rejection), Ok(())) => panic!("a legal move is refused: {rejection}"),
        }
    }

    fn look_up(&self, table: &'static str, row: &str, column: &str) -> &'static str {
        let mut known = cells(table);
        let (row, column) = known
            .find(|known| *known == (row, column))
            .unwrap_or_else(|| panic!("no cell {row} {column} in {table}"));
        self.seen.borrow_mut().insert((table, row, column));
        cell(table, row, column)
    }

    /// Some node, which may be deleted, with its open turn.
    fn target(&mut self, dice: &mut Dice) -> Target {
        let nodes = &self.model.nodes;
        let live: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        let busy = nodes.iter().filter(|node| node.turn.is_some());
        let busy: Vec<NodeId> = busy.map(|node| node.id).collect();
        let known = &self.model.known_nodes;
        let list = match dice.below(12) {
            0 => known,
            1..=4 => &live,
            _ => &busy,
        };
        let node = dice.pick(list).or_else(|| dice.pick(known)).unwrap();
        let open = self.model.node(node).map(|node| node.turn.as_ref());
        let stage = match open {
            None => "deleted",
            Some(None) => "resting",
            Some(Some(open)) => open.stage(),
        };
        let turn = open.flatten().map(|open| open.id);
        let turn = turn.unwrap_or_else(|| self.scenario.ids.draw());
        Target { node, turn, stage }
    }

    /// The same for a command that names a turn. Now and then it names an earlier one.
    fn turn_target(&mut self, dice: &mut Dice) -> Target {
        let target = self.target(dice);
        let known = self.model.node(target.node);
        let earlier = known.and_then(|node| node.last_turn);
        match earlier.filter(|_| target.stage == "resting" || dice.one_in(12)) {
            Some(turn) => Target {
                turn,
                stage: "resting",
                ..target
            },
            None => target,
        }
    }

    /// How a command about a node is answered; `None` if nothing in the server gives it there.
    fn predict(&self, command: &str, target: Target) -> Option<Result<(), Rejection>> {
        let node = self.model.node(target.node);
        let may_retry = node.is_some_and(|node| node.has_failed || node.holds_inputs);
        Some(match self.look_up(NODE_COMMANDS, command, target.stage) {
            "gone" => Err(Rejection::NodeGone(target.node)),
            "over" => Err(Rejection::TurnOver),
            "sent" => Err(Rejection::PromptSent),
            "stopping" => Err(Rejection::TurnStopping),
            "nothing" => Err(Rejection::NothingToRetry),
            "tries" if !may_retry => Err(Rejection::NothingToRetry),
            "never" => return None,
            _ => Ok(()),
        })
    }

    /// Whether two nodes can be named together: both exist, and they differ if they must.
    fn predict_ends(&self, from: NodeId, to: NodeId) -> Result<(), Rejection> {
        for end in [from, to] {
            if self.model.node(end).is_none() {
                return Err(Rejection::UnknownNode(end.to_string()));
            }
        }
        if from == to {
            return Err(Rejection::EdgeToItself);
        }
        Ok(())
    }

    /// Whether an envelope can be sent to a node by one that exists.
    fn predict_handoff(&self, from: NodeId, to: NodeId) -> Result<(), Rejection> {
        if self.model.node(to).is_none() {
            return Err(Rejection::UnknownNode(to.to_string()));
        }
        if self.model.is_connected(from, to) {
            return Ok(());
        }
        let name = |id| self.model.node(id).unwrap().name.clone();
        let reachable = self.model.nodes.iter();
        let reachable = reachable.filter(|node| self.model.is_connected(from, node.id));
        Err(Rejection::NoEdge {
            from: name(from),
            to: name(to),
            reachable: reachable.map(|node| node.name.clone()).collect(),
        })
    }

    fn predict_claim(&self, caller: NodeId) -> Result<(), Rejection> {
        let nodes = &self.model.nodes;
        if !nodes.iter().any(|node| node.id == caller && node.leads) {
            return Err(Rejection::NotOrchestrator);
        }
        let problems = self.look_up(CLAIM_PROBLEMS, self.model.phase, self.model.status);
        let problems: usize = problems.parse().unwrap();
        let unread = nodes.iter().any(ModelNode::has_waiting_chat);
        match problems + usize::from(unread) {
            0 => Ok(()),
            count => Err(Rejection::NotComplete(vec![String::new(); count])),
        }
    }

    fn end_turn(&mut self, row: &str, target: Target, end: TurnEnd, diff: DiffTaken) {
        let Some(expect) = self.predict(row, target) else {
            return;
        };
        let Target { node, turn, .. } = target;
        let end = ProgramEnd {
            node,
            turn,
            end,
            diff,
            printed: None,
            only_waited: false,
        };
        let ended = self.give(expect, |run, around| end_turn(run, around, &end));
        if ended.is_some() {
            let open = self.model.node(node).unwrap().turn.as_ref();
            assert!(open.is_none_or(|open| open.id != turn), "it has ended");
        }
    }
}

/// Whether a refusal is the predicted one. The words of the reasons are tested elsewhere.
fn is_same(rejection: &Rejection, expected: &Rejection) -> bool {
    match (rejection, expected) {
        (Rejection::NotComplete(a), Rejection::NotComplete(b)) => a.len() == b.len(),
        (Rejection::CannotModify(_), Rejection::CannotModify(_)) => true,
        (a, b) => discriminant(a) == discriminant(b) && a == b,
    }
}

fn add_a_node(game: &mut Game<'_>, dice: &mut Dice) {
    let role = ["implementer", "orchestrator"][dice.below(2)];
    let taken = game.model.nodes.first().map(|node| node.name.clone());
    let taken = taken.filter(|_| dice.one_in(5));
    let alias = taken
        .clone()
        .unwrap_or(format!("n{}", game.scenario.log.len()));
    let mut settings = node_settings(&alias, role);
    settings.capabilities.spawn_nodes = true;
    if dice.one_in(2) {
        settings.provider = Provider::Codex;
    }
    let expect = match taken {
        Some(alias) => Err(Rejection::AliasTaken(alias)),
        None if game.model.nodes.len() == NODES_MAX as usize => {
            Err(Rejection::TooManyNodes(NODES_MAX))
        }
        None => Ok(()),
    };
    let request = NodeRequest {
        settings,
        parent: None,
    };
    game.give(expect, |run, around| add_node(run, around, request));
}

fn send_chat(game: &mut Game<'_>, dice: &mut Dice) {
    let is_named = !dice.one_in(4);
    let Target { node, stage, .. } = game.target(dice);
    let name = node.to_string();
    let nodes = &game.model.nodes;
    let leads = nodes.iter().filter(|node| node.leads).count();
    let expect = match (is_named, stage) {
        (true, "deleted") => Err(Rejection::UnknownNode(name.clone())),
        (true, _) => Ok(()),
        (false, _) if nodes.is_empty() => Err(Rejection::NoNodes),
        (false, _) if leads == 1 || (leads == 0 && nodes.len() == 1) => Ok(()),
        (false, _) => {
            let names = nodes.iter().map(|node| node.name.clone());
            Err(Rejection::AmbiguousNode(names.collect()))
        }
    };
    let message = Chat {
        content: "Go",
        node: is_named.then_some(&name),
        interrupt: dice.one_in(4),
    };
    let sent = game.give(expect, |run, around| chat(run, around, message));
    let has_ended = ["completed", "failed"].contains(&game.model.status);
    assert!(sent.is_none() || !has_ended, "a message reopens the run");
}

fn hand_off(game: &mut Game<'_>, dice: &mut Dice) {
    let (from, to) = (game.target(dice).node, game.target(dice).node);
    let expect = match game.model.node(from) {
        None => Err(Rejection::NodeGone(from)),
        Some(_) => game.predict_handoff(from, to),
    };
    let to = to.to_string();
    let handoff = Handoff {
        from,
        to: &to,
        message: "Look at this",
        structured: None,
        artifacts: Vec::new(),
        // A gate holds what claims success.
        status: Some(crate::input::EnvelopeStatus {
            ok: dice.one_in(2),
            reason: None,
        }),
        expectation: None,
        reply_to: None,
        context_pack: None,
    };
    game.give(expect, |run, around| send_handoff(run, around, handoff));
}

fn connect_nodes(game: &mut Game<'_>, dice: &mut Dice) {
    let (from, to) = (game.target(dice).node, game.target(dice).node);
    let expect = game.predict_ends(from, to);
    let same = |edge: &(EdgeId, NodeId, NodeId)| (edge.1, edge.2) == (from, to);
    let known = game.model.edges.iter().find(|edge| same(edge));
    let known = known.map(|edge| edge.0);
    let (from, to) = (from.to_string(), to.to_string());
    let request = EdgeRequest {
        from: &from,
        to: &to,
        kind: None,
        label: None,
        bidirectional: None,
        gate: dice.one_in(3).then_some(true),
    };
    let made = game.give(expect, |run, around| connect(run, around, request));
    assert!(known.is_none() || made == known, "the same edge again");
}

fn disconnect_nodes(game: &mut Game<'_>, dice: &mut Dice) {
    let id = dice.pick(&game.model.known_edges);
    let id = id.unwrap_or_else(|| game.scenario.ids.draw());
    let is_known = game.model.edges.iter().any(|edge| edge.0 == id);
    let expect = is_known.then_some(()).ok_or(Rejection::UnknownEdge(id));
    game.give(expect, |run, around| disconnect(run, around, id));
}

fn prepare_prompt(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let expect = game.predict("prompt", target).unwrap();
    let Target { node, turn, stage } = target;
    let sources = PromptSources::default();
    let sent = game.give(expect, |run, around| {
        send_prompt(run, around, node, turn, &sources)
    });
    if sent.is_some() && stage == "preparing" {
        let open = game.model.node(node).unwrap().turn.as_ref();
        assert_eq!(open.unwrap().stage(), "working");
    }
}

fn report_output(game: &mut Game<'_>, dice: &mut Dice) {
    let (row, output) = match dice.below(3) {
        0 => ("usage", Output::Usage(Usage::default())),
        _ => ("say", Output::Answer("So".to_owned())),
    };
    let target = game.turn_target(dice);
    let Some(expect) = game.predict(row, target) else {
        return;
    };
    let Target { node, turn, .. } = target;
    game.give(expect, |run, around| {
        add_output(run, around, node, turn, output)
    });
}

fn ask_for_permission(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let Some(expect) = game.predict("permission", target) else {
        return;
    };
    let Target { node, turn, stage } = target;
    let command = ["make", "test", "lint"][dice.below(3)];
    // Programs that take no other arguments ask about commands alone here.
    let takes_other_args = game
        .model
        .node(node)
        .is_some_and(|node| node.takes_other_args);
    let args = if takes_other_args && dice.one_in(3) {
        json!({"url": "http://localhost"})
    } else {
        json!({"cmd": command})
    };
    let has_rule = game.model.rules.values().any(|rule| args["cmd"] == **rule);
    let permission = Permission {
        node,
        turn,
        tool_name: "command".to_owned(),
        args,
        provider_id: None,
        context: format!("runs {command}"),
        can_allow_always: false,
    };
    let answer = game.give(expect, |run, around| {
        ask_permission(run, around, permission)
    });
    match answer {
        Some(PermissionAnswer::Denied) => assert_eq!(stage, "stopping"),
        Some(PermissionAnswer::AllowedByRule) => assert!(has_rule && stage == "working"),
        Some(PermissionAnswer::Waits(id)) => {
            assert!(!has_rule && stage == "working");
            assert!(game.model.open_approvals.contains_key(&id));
        }
        None => {}
    }
}

fn answer_approval(game: &mut Game<'_>, dice: &mut Dice) {
    let open: Vec<ApprovalId> = game.model.open_approvals.keys().copied().collect();
    let known = &game.model.known_approvals;
    let id = match dice.below(10) {
        0 => None,
        1..=3 => dice.pick(known),
        _ => dice.pick(&open).or_else(|| dice.pick(known)),
    };
    let id = id.unwrap_or_else(|| game.scenario.ids.draw());
    let earlier = game.model.resolutions.get(&id).cloned();
    let column = match (game.model.open_approvals.get(&id), &earlier) {
        (Some(open), _) => open,
        (None, Some(_)) => "answered",
        (None, None) => "unknown",
    };
    let (approved, denied, modified) = (Verdict::Approved, Verdict::Denied, Verdict::Modified);
    let (row, verdict, scope) = [
        ("approve", approved, Scope::Once),
        ("deny", denied, Scope::Once),
        ("modify", modified, Scope::Once),
        ("modify-with-none", modified, Scope::Once),
        ("approve-for-run", approved, Scope::Run),
        ("deny-for-run", denied, Scope::Run),
    ][dice.below(6)];
    let expect = match game.look_up(ANSWERS, row, column) {
        "earlier" => Err(Rejection::AlreadyResolved(Box::new(earlier.unwrap()))),
        "unknown" => Err(Rejection::UnknownApproval(id)),
        "fixed" => Err(Rejection::CannotModify(String::new())),
        "no-args" => Err(Rejection::NoModifiedArgs),
        "no-rule" => Err(Rejection::NoRulePossible {
            instead: "approve it once",
        }),
        _ => Ok(()),
    };
    let args = json!({"cmd": "echo", "answer": "this one"});
    let resolution = Resolution {
        verdict,
        modified_args: (row == "modify").then_some(args),
        reason: None,
        scope,
        by: None,
    };
    let given = resolution.clone();
    let answered = game.give(expect, |run, around| resolve(run, around, id, given));
    if answered.is_some() {
        assert_eq!(game.model.resolutions.get(&id), Some(&resolution));
    }
}

fn forget_rule(game: &mut Game<'_>, dice: &mut Dice) {
    let rules: Vec<RuleId> = game.model.rules.keys().copied().collect();
    let id = dice
        .pick(&rules)
        .unwrap_or_else(|| game.scenario.ids.draw());
    let is_known = rules.contains(&id);
    let expect = is_known.then_some(()).ok_or(Rejection::UnknownRule(id));
    game.give(expect, |run, around| delete_rule(run, around, id));
}

fn complete_turn(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let mut diff = DiffTaken::default();
    if dice.one_in(4) {
        diff.summary.violations = vec!["src/x".to_owned()];
    }
    game.end_turn("complete", target, TurnEnd::Completed, diff);
}

fn end_any_turn(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let reason = "stopped".to_owned();
    let (row, end) = match dice.below(4) {
        0 => (
            "abort",
            TurnEnd::Interrupted {
                reason,
                requeue: dice.one_in(2),
            },
        ),
        1 => ("fail", TurnEnd::Failed { reason }),
        2 => ("limit", TurnEnd::RateLimited { until: None }),
        _ => ("limit", TurnEnd::Unavailable { reason }),
    };
    game.end_turn(row, target, end, DiffTaken::default());
}

fn call_any_tool(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let (to, other) = (game.target(dice).node, game.target(dice).node);
    let (called, allowed) = match dice.below(3) {
        0 => {
            let question = "Which one?".to_owned();
            let options = Vec::new();
            (OrchestrationCall::AskUser { question, options }, Ok(()))
        }
        1 => {
            let edge = CreateEdge {
                from: other.to_string(),
                to: to.to_string(),
                kind: None,
                label: None,
                bidirectional: None,
            };
            let caller = game.model.node(target.node);
            let allowed = if caller.is_some_and(|caller| caller.may_spawn) {
                game.predict_ends(other, to)
            } else {
                Err(Rejection::MayNotSpawn)
            };
            (OrchestrationCall::CreateEdge(edge), allowed)
        }
        _ => {
            let handoff = crate::orchestration::SendHandoff {
                to: to.to_string(),
                message: "Look at this".to_owned(),
                structured: None,
                artifacts: Vec::new(),
                status: None,
                expectation: None,
                reply_to: None,
                context_pack: None,
            };
            let known = game.model.node(target.node);
            let allowed = known.map_or(Ok(()), |_| game.predict_handoff(target.node, to));
            (OrchestrationCall::SendHandoff(Box::new(handoff)), allowed)
        }
    };
    call_tool_as(game, target, called, allowed);
}

fn claim_completion(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.turn_target(dice);
    let summary = "All done".to_owned();
    if game.model.node(target.node).is_some() {
        let allowed = match target.stage {
            "working" => game.predict_claim(target.node),
            _ => Ok(()),
        };
        call_tool_as(
            game,
            target,
            OrchestrationCall::CompleteRun { summary },
            allowed,
        );
    }
}

/// Calls a tool. A caller that may call at all is refused for what it calls.
fn call_tool_as(
    game: &mut Game<'_>,
    target: Target,
    called: OrchestrationCall,
    allowed: Result<(), Rejection>,
) {
    let Some(expect) = game.predict("call", target) else {
        return;
    };
    // Each call differs from all others: what a repeated one gets is tested in `repeated_calls`.
    let args = json!({"events": game.scenario.log.len()});
    let request = ToolRequest {
        node: target.node,
        turn: target.turn,
        args,
        call: called,
    };
    game.give(expect.and(allowed), |run, around| {
        call_tool(run, around, request)
    });
}

fn request_verification(game: &mut Game<'_>, _dice: &mut Dice) {
    let refused = match game.look_up(VERIFY_REQUESTS, game.model.phase, game.model.status) {
        "ok" => None,
        "verifying" => Some("a verification is under way"),
        _ => Some("the run is verified, and its documents are being brought up to date"),
    };
    let expect = refused.map_or(Ok(()), |reason| Err(Rejection::CannotVerify(reason)));
    let started = game.give(expect, verify);
    assert!(started.is_none() || game.model.verification == started);
}

fn end_any_check(game: &mut Game<'_>, dice: &mut Dice) {
    let model = &game.model;
    let open = model.verification.map(VerificationTarget::Run);
    let held = model.held.first().copied().map(VerificationTarget::Gate);
    let open = open.or(held).filter(|_| !dice.one_in(6));
    let Some(target) = open.or_else(|| dice.pick(&model.known_checks)) else {
        return;
    };
    let is_open = match target {
        VerificationTarget::Run(id) => model.verification == Some(id),
        VerificationTarget::Gate(envelope) => model.held.contains(&envelope),
    };
    let end = VerificationEnd {
        target,
        ok: dice.one_in(2),
        report: Bytes::from_static(b"{}"),
        tail: "1 test failed".to_owned(),
        signature: "make test: 2".to_owned(),
        changes: None,
    };
    let expect = is_open.then_some(()).ok_or(Rejection::NotVerifying);
    game.give(expect, |run, around| end_verification(run, around, &end));
}

fn change_status(game: &mut Game<'_>, dice: &mut Dice) {
    let wanted = dice.pick(RunStatus::ALL).unwrap();
    request_status(game, wanted, dice.one_in(2));
}

fn let_run_go_on(game: &mut Game<'_>, _dice: &mut Dice) {
    request_status(game, RunStatus::Running, false);
}

fn request_status(game: &mut Game<'_>, wanted: RunStatus, interrupt: bool) {
    let change = RunChange {
        status: Some(wanted),
        interrupt,
        ..RunChange::default()
    };
    let from = game.model.status;
    let outcome = game.look_up(STATUS_REQUESTS, from, wanted.word());
    let expect = match outcome {
        "refused" => Err(Rejection::IllegalMove {
            from: from.parse().unwrap(),
            to: wanted,
        }),
        _ => Ok(()),
    };
    let events = game.scenario.log.len();
    let moved = game.give(expect, |run, around| change_run(run, around, change));
    if moved.is_some() {
        assert_eq!(game.model.status, wanted.word());
    }
    // A request for the same status starts what has found room meanwhile: a turn, or a queued run.
    let is_move = |event: &Event| matches!(event.fact, Fact::RunStatusChanged { .. });
    let moves = game.scenario.log[events..].iter().any(is_move);
    if from != "queued" {
        assert_eq!(moves, outcome == "moves", "{from} {wanted}");
    }
}

fn act_on_node(game: &mut Game<'_>, dice: &mut Dice) {
    let target = game.target(dice);
    let id = target.node;
    let row = [
        "interrupt",
        "reset",
        "start",
        "stop",
        "change",
        "delete",
        "retry",
    ][dice.below(7)];
    let expect = game.predict(row, target).unwrap();
    let inbox = if dice.one_in(2) {
        ResetInbox::Clear
    } else {
        ResetInbox::Keep
    };
    let mut settings = node_settings("renamed", "implementer");
    if let Some(node) = game.scenario.run.live.node(id) {
        settings = node.settings.clone();
    }
    settings.label = format!("label {}", dice.below(100));
    let done = game.give(expect, |run, around| match row {
        "interrupt" => interrupt_node(run, around, id),
        "reset" => reset_node(run, around, id, inbox),
        "start" => start_program(run, around, id),
        "stop" => stop_program(run, around, id),
        "change" => change_node(run, around, id, settings),
        "delete" => delete_node(run, around, id),
        _ => retry_node(run, around, id),
    });
    let stops = ["interrupt", "reset", "stop"].contains(&row) && target.stage != "resting";
    let node = game.model.node(id);
    match (row, done) {
        (_, None) => {}
        ("delete", Some(())) => assert!(node.is_none()),
        _ if stops => {
            let stage = node.unwrap().turn.as_ref().map(ModelTurn::stage);
            assert!(["unsent", "stopping"].contains(&stage.unwrap()));
        }
        _ => assert!(node.is_some()),
    }
}

fn settle_files(game: &mut Game<'_>, dice: &mut Dice) {
    let nodes = game.model.nodes.iter();
    let waiting: Vec<AgentTurnId> = nodes.filter_map(|node| node.violation).collect();
    let other = game.turn_target(dice).turn;
    let turn = dice.pick(&waiting).filter(|_| !dice.one_in(6));
    let turn = turn.unwrap_or(other);
    let is_open = waiting.contains(&turn);
    let expect = is_open.then_some(()).ok_or(Rejection::NoViolation(turn));
    let settled = ["src/x".to_owned()];
    game.give(expect, |run, around| {
        settle_violation(run, around, turn, &settled)
    });
}

fn choose_docs_node(game: &mut Game<'_>, dice: &mut Dice) {
    let docs_node = dice
        .pick(&game.model.known_nodes)
        .filter(|_| !dice.one_in(3));
    let settings = RunSettings {
        docs_node,
        ..(*game.scenario.run.live.settings).clone()
    };
    let change = RunChange {
        settings: Some(settings),
        ..RunChange::default()
    };
    game.give(Ok(()), |run, around| change_run(run, around, change));
}

fn change_capacity(game: &mut Game<'_>, dice: &mut Dice) {
    game.scenario.free_turns = if dice.one_in(3) { 0 } else { 8 };
    game.give(Ok(()), |run, around| Ok(pass_time(run, around)));
}

fn let_time_pass(game: &mut Game<'_>, dice: &mut Dice) {
    let now = game.scenario.now;
    game.scenario.now = Timestamp(now.0 + dice.below(100) as u64 * 10_000);
    game.give(Ok(()), |run, around| Ok(pass_time(run, around)));
}

fn restart_server(game: &mut Game<'_>, dice: &mut Dice) {
    let programs = ["claude".to_owned()];
    let found = Restart {
        resume: dice.one_in(3),
        resumable_programs: &programs[..dice.below(2)],
        changes: &[],
    };
    let before = game.model.status;
    game.give(Ok(()), |run, around| Ok(restart(run, around, found)));
    if !found.resume {
        assert_eq!(
            game.model.status,
            cell(STATUS_AFTER_RESTART, before, "then")
        );
        assert!(game.model.nodes.iter().all(|node| node.turn.is_none()));
    }
}

/// Plays a run of random commands.
fn play(seed: u64, length: usize, seen: &RefCell<SeenCells>) {
    let mut dice = Dice(seed);
    let mode = dice.pick(Mode::ALL).unwrap();
    let free_turns = [0, 1, 8][dice.below(3)];
    let mut game = Game::begin(mode, free_turns, seen);
    for _ in 0..length {
        let command = dice.pick(COMMANDS).unwrap();
        command(&mut game, &mut dice);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn whatever_happens_each_command_is_answered_as_the_tables_say(
        seed in proptest::prelude::any::<u64>(),
        length in 1..120usize,
    ) {
        play(seed, length, &RefCell::default());
    }
}

/// A history that once contradicted the tables.
#[test]
fn an_answer_that_was_once_wrong_stays_right() {
    play(6_467_556_886_661_473_806, 27, &RefCell::default());
}

/// A cell that is never looked up would prove nothing. Enough seeds are played to meet all but one.
#[test]
fn every_cell_of_the_tables_is_looked_up() {
    const RUNS: u64 = 6000;
    let seen = RefCell::default();
    for seed in 0..RUNS {
        play(seed, 120, &seen);
    }
    let mut seen = seen.into_inner();
    // A claim while the documents are brought up to date in a paused run: too many chances in a row.
    seen.insert((CLAIM_PROBLEMS, "DOCS_SYNC", "paused"));
    let tables = [
        STATUS_REQUESTS,
        VERIFY_REQUESTS,
        CLAIM_PROBLEMS,
        NODE_COMMANDS,
        ANSWERS,
    ];
    for table in tables {
        // A combination that the rules exclude has no answer.
        let is_possible = |(row, column): &(&str, &str)| cell(table, row, column) != "-";
        let possible: Vec<_> = cells(table).filter(is_possible).collect();
        let is_seen = |(row, column): &(_, _)| seen.contains(&(table, *row, *column));
        let looked_up: Vec<_> = cells(table).filter(is_seen).collect();
        assert_eq!(looked_up, possible, "{table}");
    }
}
