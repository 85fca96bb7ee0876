//! Which turns start, and where they work.

use super::*;

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

fn waits(scenario: &Scenario) -> bool {
    let capacity = Capacity {
        turns: scenario.free_turns,
        parked_programs: &scenario.parked,
        full_programs: &[],
    };
    waits_for_capacity(&scenario.run.live, scenario.now, capacity)
}

fn begin_automatic() -> Scenario {
    Scenario::begin(RunSettings {
        mode: Mode::Auto,
        ..settings()
    })
}

#[test]
fn a_quiet_automatic_run_that_found_no_room_is_prompted_when_there_is_some() {
    for is_parked in [false, true] {
        let mut scenario = begin_automatic();
        if is_parked {
            scenario.parked = vec!["claude".to_owned()];
        } else {
            scenario.free_turns = 0;
        }
        let lead = scenario.add("lead", "orchestrator");
        assert_eq!(scenario.turn(lead), None);
        assert!(waits(&scenario), "the server looks again");
        scenario.parked.clear();
        scenario.free_turns = 1;
        scenario.pass(0);
        assert!(scenario.turn(lead).is_some());
        assert!(!waits(&scenario));
    }
}

#[test]
fn a_parked_program_that_no_node_uses_stops_no_automatic_run() {
    let mut scenario = begin_automatic();
    scenario.parked = vec!["codex".to_owned()];
    let lead = scenario.add("lead", "orchestrator");
    assert!(scenario.turn(lead).is_some());
}

#[test]
fn a_run_without_an_orchestrator_waits_for_no_room() {
    let mut scenario = begin_automatic();
    scenario.free_turns = 0;
    scenario.add("a", "implementer");
    assert!(!waits(&scenario));
}

#[test]
fn orchestrators_take_turns_where_only_one_fits() {
    let mut scenario = begin_automatic();
    scenario.free_turns = 0;
    let (first, second) = (
        scenario.add("first", "orchestrator"),
        scenario.add("second", "orchestrator"),
    );
    scenario.free_turns = 1;
    scenario.pass(0);
    assert!(scenario.turn(first).is_some() && scenario.turn(second).is_none());
    scenario.now = Timestamp(scenario.now.0 + 1);
    scenario.complete(first, "Nothing yet.");
    assert!(scenario.turn(second).is_some() && scenario.turn(first).is_none());
}

#[test]
fn an_automatic_turn_is_tried_again_as_often_as_any_other() {
    let mut scenario = begin_automatic();
    scenario.add("other", "reviewer");
    let lead = scenario.add("lead", "orchestrator");
    for (attempt, pause) in [(2, 2_000), (3, 8_000), (4, 30_000)] {
        let reason = "overloaded".to_owned();
        scenario.end(lead, TurnEnd::Unavailable { reason });
        assert_eq!(scenario.turn(lead), None, "it waits {pause} ms");
        scenario.pass(pause + pause / 5);
        let node = scenario.run.live.node(lead).unwrap();
        assert_eq!(node.turn.as_ref().unwrap().attempt, attempt);
        assert_eq!(scenario.run.live.status, RunStatus::Running);
    }
    // It gives up like any other turn, and only then this counts as an idle automatic turn.
    for expect in [None, Some(PausedReason::Stall)] {
        let reason = "exit status 1".to_owned();
        scenario.end(lead, TurnEnd::Failed { reason });
        assert_eq!(scenario.run.live.paused_reason, expect);
        let next = scenario.run.live.node(lead).unwrap().turn.as_ref();
        assert_eq!(next.map(|turn| turn.attempt), expect.is_none().then_some(1));
    }
}

#[test]
fn an_automatic_run_waits_out_any_number_of_rate_limits() {
    let mut scenario = begin_automatic();
    let lead = scenario.add("lead", "orchestrator");
    for _ in 0..4 {
        let until = Some(Timestamp(scenario.now.0 + 60_000));
        scenario.end(lead, TurnEnd::RateLimited { until });
        assert_eq!(scenario.turn(lead), None);
        scenario.pass(60_000);
        let node = scenario.run.live.node(lead).unwrap();
        assert_eq!(node.turn.as_ref().unwrap().attempt, 1, "no failed attempt");
        assert_eq!(scenario.run.live.status, RunStatus::Running);
    }
}

#[test]
fn a_provider_that_is_parked_now_gets_no_other_turn_in_the_same_decision() {
    let limits = RunLimits {
        open_turns_max: 1,
        ..RunLimits::default()
    };
    let mut scenario = Scenario::begin(RunSettings {
        limits,
        ..settings()
    });
    let a = scenario.add("a", "implementer");
    let b = scenario.add("b", "reviewer");
    scenario.chat("a", "Go");
    scenario.chat("b", "Go");
    assert_eq!(scenario.turn(b), None, "the run has one turn at a time");
    let until = Some(Timestamp(scenario.now.0 + 60_000));
    scenario.end(a, TurnEnd::RateLimited { until });
    assert_eq!(scenario.turn(b), None, "its provider takes no more");
    scenario.pass(60_000);
    assert!(scenario.turn(a).is_some(), "the oldest input comes first");
}

#[test]
fn a_run_opens_no_more_turns_than_its_own_limit_where_the_server_has_room() {
    let mut scenario = Scenario::begin(settings());
    for alias in ["a", "b", "c", "d", "e"] {
        scenario.add(alias, "implementer");
        scenario.chat(alias, "Go");
    }
    let open = |scenario: &Scenario| {
        let nodes = scenario.run.live.nodes();
        let working = nodes.filter(|node| node.turn.is_some());
        working
            .map(|node| node.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(open(&scenario), ["a", "b", "c", "d"]);
    let a = find_node(&scenario.run.live, "a").unwrap().id;
    scenario.complete(a, "Done.");
    assert_eq!(open(&scenario), ["b", "c", "d", "e"]);
}
