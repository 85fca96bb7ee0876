//! Pausing, resuming, restarting and deleting runs.

use super::*;

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
                made: None,
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
        changes: &[],
    };
    let before = scenario.log.len();
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    assert_eq!(
        scenario.names_from(before),
        [
            "run.patch",
            "turn.interrupted",
            "node.patch",
            "tool.completed",
            "turn.interrupted",
            "approval.resolved",
            // The node is no longer blocked, and then at rest.
            "node.patch",
            "node.patch",
        ]
    );
    let resolved = scenario.log[before..]
        .iter()
        .find_map(|event| match &event.fact {
            Fact::ApprovalResolved { resolution, .. } => Some(resolution),
            _ => None,
        });
    let reason = resolved.unwrap().reason.as_deref();
    assert_eq!(reason, Some("provider-restarted"));
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
    let turn = scenario.turn(worker).unwrap();
    scenario.output(worker, turn, Output::Session("s-1".to_owned()));
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

fn set_run_status(scenario: &mut Scenario, status: RunStatus, interrupt: bool) {
    let change = RunChange {
        status: Some(status),
        interrupt,
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
}

/// Creates a run while no turn is free.
fn begin_queued() -> Scenario {
    let mut scenario = Scenario::begin(settings());
    scenario.run = Run::new(scenario.run.live.id);
    scenario.log.clear();
    scenario.stored.clear();
    scenario.free_turns = 0;
    scenario
        .take(|run, around| Ok(create_run(run, around, settings())))
        .unwrap();
    scenario
}

#[test]
fn a_run_is_queued_until_a_turn_is_free() {
    let mut scenario = begin_queued();
    assert_eq!(scenario.run.live.status, RunStatus::Queued);
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let full = Capacity {
        turns: 0,
        ..Capacity::UNLIMITED
    };
    let waits = explain(&scenario.run.live, scenario.now, full).waits;
    let reasons: Vec<(&WaitReason, &Owner)> = waits
        .iter()
        .map(|wait| (&wait.reason, &wait.owner))
        .collect();
    let queued = WaitReason::RunStopped {
        status: RunStatus::Queued,
        paused: None,
    };
    let full_server = WaitReason::Held(crate::hold::Hold::ServerFull);
    assert_eq!(
        reasons,
        [(&queued, &Owner::Daemon), (&full_server, &Owner::Daemon)]
    );
    assert!(waits_for_capacity(&scenario.run.live, scenario.now, full));
    scenario.pass(1_000);
    assert_eq!(scenario.run.live.status, RunStatus::Queued);
    scenario.free_turns = 1;
    scenario.pass(0);
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    assert!(scenario.turn(node).is_some());
    assert!(!waits_for_capacity(&scenario.run.live, scenario.now, full));
}

#[test]
fn a_queued_run_can_be_paused_and_resumed_and_waits_for_a_person_after_a_restart() {
    let mut scenario = begin_queued();
    set_run_status(&mut scenario, RunStatus::Paused, false);
    set_run_status(&mut scenario, RunStatus::Running, false);
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    for (resume, expect) in [(false, RunStatus::Paused), (true, RunStatus::Running)] {
        let mut scenario = begin_queued();
        scenario.free_turns = 1;
        let found = Restart {
            resume,
            resumable_programs: &[],
            changes: &[],
        };
        scenario
            .take(|run, around| Ok(restart(run, around, found)))
            .unwrap();
        assert_eq!(scenario.run.live.status, expect);
    }
}

#[test]
fn a_node_is_asked_to_continue_once_however_often_its_run_is_paused() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    set_run_status(&mut scenario, RunStatus::Paused, true);
    let reason = "paused by the user".to_owned();
    let requeue = false;
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    // The server has no room, so no turn reads the note before the next pause.
    scenario.free_turns = 0;
    for _ in 0..2 {
        set_run_status(&mut scenario, RunStatus::Running, false);
        assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), 1);
        set_run_status(&mut scenario, RunStatus::Paused, false);
    }
}

fn attention_kinds(scenario: &Scenario) -> Vec<AttentionKind> {
    let items = list_attention(&scenario.run.live);
    items.into_iter().map(|item| item.kind).collect()
}

fn dismiss(scenario: &mut Scenario) -> Result<(), Rejection> {
    scenario.take(dismiss_end)
}

#[test]
fn the_end_of_a_run_waits_until_a_person_has_seen_it() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    assert_eq!(dismiss(&mut scenario), Err(Rejection::NotEnded));
    let turn = scenario.turn(node).unwrap();
    let reason = "exit status 1".to_owned();
    scenario.end(node, TurnEnd::Failed { reason });
    let failure = AttentionKind::Failure(turn);
    assert_eq!(
        attention_kinds(&scenario),
        [failure, AttentionKind::Finished]
    );
    let before = scenario.log.len();
    dismiss(&mut scenario).unwrap();
    // A failed agent of a run that is over holds up nothing.
    assert_eq!(attention_kinds(&scenario), []);
    dismiss(&mut scenario).unwrap();
    assert_eq!(scenario.names_from(before), ["run.patch"], "once");
    // The run goes on, and ends again.
    scenario.chat("a", "Go on");
    let reason = "exit status 2".to_owned();
    scenario.end(node, TurnEnd::Failed { reason });
    assert_eq!(attention_kinds(&scenario).len(), 2);
}

#[test]
fn a_question_of_a_run_whose_end_was_seen_still_waits() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let question = OrchestrationCall::AskUser {
        question: "Which colour?".to_owned(),
        options: Vec::new(),
    };
    call(&mut scenario, node, question).unwrap();
    scenario.complete(node, "Asked.");
    let complete = RunChange {
        status: Some(RunStatus::Completed),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, complete))
        .unwrap();
    dismiss(&mut scenario).unwrap();
    let approval = *scenario.run.live.approvals.keys().next().unwrap();
    assert_eq!(
        attention_kinds(&scenario),
        [AttentionKind::Question(approval)]
    );
}
