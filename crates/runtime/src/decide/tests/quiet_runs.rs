//! A run in AUTO mode goes on although one of its nodes waits for a person.

use super::*;

fn begin_auto() -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::begin(settings());
    // Without a repository both share the directory.
    scenario.has_repository = false;
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("w", "reviewer");
    (scenario, lead, worker)
}

fn go_auto(scenario: &mut Scenario) {
    let change = RunChange {
        mode: Some(Mode::Auto),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
}

/// The node writes a file that it may not write.
fn violate(scenario: &mut Scenario, node: NodeId) -> AgentTurnId {
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
        printed: None,
        only_waited: false,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
    turn
}

/// A person stops a turn before its program has read the message.
fn hold(scenario: &mut Scenario, node: NodeId) {
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    let (reason, requeue) = ("interrupted".to_owned(), true);
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    assert_eq!(scenario.turn(node), None);
}

fn items(scenario: &Scenario) -> Vec<(AttentionKind, Option<NodeId>, String)> {
    let items = list_attention(&scenario.run.live).into_iter();
    items
        .map(|item| (item.kind, item.node, item.summary))
        .collect()
}

#[test]
fn a_violation_or_held_inputs_of_a_worker_do_not_stop_the_orchestrator() {
    for stop in [
        |scenario: &mut Scenario, node| {
            violate(scenario, node);
        },
        hold,
    ] {
        let (mut scenario, lead, worker) = begin_auto();
        scenario.chat("w", "Review it");
        stop(&mut scenario, worker);
        go_auto(&mut scenario);
        assert!(scenario.turn(lead).is_some(), "it gets an automatic turn");
        // What cannot go on says so after two idle turns.
        scenario.complete(lead, "Nothing to do.");
        scenario.complete(lead, "Nothing to do.");
        assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Stall));
    }
}

#[test]
fn an_orchestrator_that_waits_for_a_person_is_not_prompted() {
    for stop in [
        |scenario: &mut Scenario, node| {
            violate(scenario, node);
        },
        hold,
    ] {
        let (mut scenario, lead, _) = begin_auto();
        scenario.chat("lead", "Plan it");
        stop(&mut scenario, lead);
        go_auto(&mut scenario);
        scenario.pass(60_000);
        assert_eq!(scenario.turn(lead), None);
        assert_eq!(items(&scenario).len(), 1, "a person sees why");
        let free = Capacity::UNLIMITED;
        assert!(!waits_for_capacity(&scenario.run.live, scenario.now, free));
    }
}

#[test]
fn held_inputs_wait_for_a_person_until_they_start() {
    let (mut scenario, _, worker) = begin_auto();
    scenario.chat("w", "Review it");
    hold(&mut scenario, worker);
    let summary = "w: an input waits since its turn was stopped: retry, or send a message";
    let held = (AttentionKind::Held, Some(worker), summary.to_owned());
    assert_eq!(items(&scenario), [held]);
    let why = explain(&scenario.run.live, scenario.now, Capacity::UNLIMITED);
    let held = WaitReason::Held(crate::hold::Hold::Interrupted);
    let mut waits = why.waits.iter();
    assert!(waits.any(|wait| wait.reason == held && wait.owner == Owner::Person));
    scenario
        .take(|run, around| retry_node(run, around, worker))
        .unwrap();
    assert!(scenario.turn(worker).is_some());
    assert_eq!(items(&scenario), []);
}

#[test]
fn a_reset_leaves_forbidden_files_to_a_person() {
    let (mut scenario, _, worker) = begin_auto();
    scenario.chat("w", "Review it");
    let turn = violate(&mut scenario, worker);
    let before = items(&scenario);
    scenario
        .take(|run, around| reset_node(run, around, worker, ResetInbox::Keep))
        .unwrap();
    assert_eq!(scenario.status(worker), NodeStatus::Blocked);
    assert_eq!(items(&scenario), before);
    let files = ["src/x".to_owned()];
    scenario
        .take(|run, around| settle_violation(run, around, turn, &files))
        .unwrap();
    assert_eq!(scenario.status(worker), NodeStatus::Idle);
}
