//! Why a run waits.

use super::*;

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
    // The circle needs attention even while nodes cannot start.
    let told = list_attention(&scenario.run.live);
    let told: Vec<_> = told
        .iter()
        .map(|item| (&item.kind, item.summary.as_str()))
        .collect();
    // The circle begins at its smallest id.
    let circle = if a < b {
        "a → b → a"
    } else {
        "b → a → b"
    };
    let summary = format!("each waits for the next one's reply: {circle}");
    assert_eq!(told, [(&AttentionKind::Deadlock, summary.as_str())]);
    // A word to one of them ends it.
    scenario.chat("a", "Go on without b");
    assert_eq!(list_attention(&scenario.run.live), []);
}

/// A wait that a person can read: why, since when, and who can end it.
#[derive(Debug, PartialEq)]
struct Seen {
    reason: WaitReason,
    age_ms: u64,
    owner: Owner,
}

/// Every wait of the run after a minute has passed.
fn seen_after_a_minute(scenario: &mut Scenario) -> Vec<Seen> {
    scenario.now = Timestamp(scenario.now.0 + 60_000);
    let waits = explained(scenario).waits.into_iter();
    waits
        .map(|wait| Seen {
            reason: wait.reason,
            age_ms: scenario.now.0 - wait.since.0,
            owner: wait.owner,
        })
        .collect()
}

fn check_only(scenario: &mut Scenario, reason: WaitReason, owner: Owner) {
    let age_ms = 60_000;
    let expect = [Seen {
        reason,
        age_ms,
        owner,
    }];
    assert_eq!(seen_after_a_minute(scenario), expect);
}

fn claude() -> Owner {
    Owner::Program("claude".to_owned())
}

fn stop_run(scenario: &mut Scenario, status: RunStatus) {
    let change = RunChange {
        status: Some(status),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
}

/// A run whose node got its first message five seconds after the run was created.
fn begin_working() -> (Scenario, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.now = Timestamp(scenario.now.0 + 5_000);
    scenario.chat("a", "Go");
    (scenario, node)
}

#[test]
fn a_stopped_run_says_since_when_and_why() {
    let stopped = |status, paused| WaitReason::RunStopped { status, paused };
    for status in [RunStatus::Paused, RunStatus::Completed, RunStatus::Failed] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.now = Timestamp(scenario.now.0 + 5_000);
        stop_run(&mut scenario, status);
        // Later events do not make the wait younger.
        scenario
            .take(|run, around| interrupt_node(run, around, node))
            .unwrap();
        let paused = (status == RunStatus::Paused).then_some(PausedReason::User);
        check_only(&mut scenario, stopped(status, paused), Owner::Person);
    }
    let mut scenario = Scenario::begin(settings());
    scenario.add("a", "implementer");
    let found = Restart {
        resume: false,
        resumable_programs: &[],
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    let restarted = stopped(RunStatus::Paused, Some(PausedReason::DaemonRestart));
    check_only(&mut scenario, restarted, Owner::Person);
}

#[test]
fn an_open_turn_says_what_it_waits_for() {
    let (mut scenario, node) = begin_working();
    check_only(&mut scenario, WaitReason::Preparing, Owner::Daemon);
    prepare(&mut scenario, node, "You write code.");
    check_only(&mut scenario, WaitReason::Working, claude());
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    check_only(&mut scenario, WaitReason::Approval(approval), Owner::Person);
    answer(&mut scenario, approval, Verdict::Denied, Scope::Once).unwrap();
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    let age_ms = 60_000;
    let interrupting = Seen {
        reason: WaitReason::Interrupting,
        age_ms,
        owner: claude(),
    };
    assert_eq!(seen_after_a_minute(&mut scenario), [interrupting]);
}

#[test]
fn a_question_waits_for_a_person_and_the_node_for_its_program() {
    let (mut scenario, node) = begin_working();
    prepare(&mut scenario, node, "You write code.");
    let question = OrchestrationCall::AskUser {
        question: "Which colour?".to_owned(),
        options: Vec::new(),
    };
    call(&mut scenario, node, question).unwrap();
    let approval = *scenario.run.live.approvals.keys().next().unwrap();
    let seen = seen_after_a_minute(&mut scenario);
    let reasons: Vec<&WaitReason> = seen.iter().map(|seen| &seen.reason).collect();
    assert_eq!(
        reasons,
        [&WaitReason::Question(approval), &WaitReason::Working]
    );
    assert!(seen.iter().all(|seen| seen.age_ms == 60_000), "{seen:?}");
}

#[test]
fn a_blocked_node_waits_for_a_person() {
    // It wrote files that it may not write.
    let mut scenario = Scenario::begin(settings());
    scenario.has_repository = false;
    let node = scenario.add("a", "reviewer");
    scenario.chat("a", "Go");
    let paths: BTreeSet<String> = ["src/x".to_owned()].into();
    let mut diff = DiffTaken::default();
    diff.summary.violations = paths.iter().cloned().collect();
    let end = ProgramEnd {
        node,
        turn: scenario.turn(node).unwrap(),
        end: TurnEnd::Completed,
        diff,
        printed: None,
        only_waited: false,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
    check_only(&mut scenario, WaitReason::Violation(paths), Owner::Person);

    // It goes in circles.
    let mut scenario = Scenario::begin(RunSettings {
        mode: Mode::Auto,
        ..settings()
    });
    let lead = scenario.add("lead", "orchestrator");
    for _ in 0..2 {
        scenario.complete(lead, "Nothing to do.");
    }
    let seen = seen_after_a_minute(&mut scenario);
    let stalled = WaitReason::RunStopped {
        status: RunStatus::Paused,
        paused: Some(PausedReason::Stall),
    };
    let reasons: Vec<&WaitReason> = seen.iter().map(|seen| &seen.reason).collect();
    assert_eq!(reasons, [&stalled, &WaitReason::Stall]);
    assert!(seen.iter().all(|seen| seen.owner == Owner::Person));
    assert!(seen.iter().all(|seen| seen.age_ms == 60_000), "{seen:?}");
}

#[test]
fn a_node_that_may_not_start_says_what_holds_it() {
    use crate::hold::Hold;
    let held = WaitReason::Held;
    let check = |mut scenario: Scenario, hold: Hold, owner: Owner| {
        scenario.chat("a", "Go");
        let waits = seen_after_a_minute(&mut scenario);
        let of_hold = waits.iter().find(|seen| seen.reason == held(hold.clone()));
        let seen = of_hold.unwrap_or_else(|| panic!("{hold:?} is not in {waits:?}"));
        assert_eq!((seen.age_ms, &seen.owner), (60_000, &owner));
    };
    let begin = || {
        let mut scenario = Scenario::begin(settings());
        scenario.add("a", "implementer");
        scenario
    };
    let mut full = begin();
    full.free_turns = 0;
    check(full, Hold::ServerFull, Owner::Daemon);
    let mut parked = begin();
    parked.parked = vec!["claude".to_owned()];
    check(parked, Hold::ProgramParked, claude());
    let mut busy = Scenario::begin(RunSettings {
        limits: RunLimits {
            open_turns_max: 1,
            ..RunLimits::default()
        },
        ..settings()
    });
    busy.add("b", "implementer");
    busy.add("a", "implementer");
    busy.chat("b", "Go");
    check(busy, Hold::RunFull, Owner::Daemon);

    let mut scenario = begin();
    scenario.chat("a", "Go");
    let capacity = Capacity {
        full_programs: &["claude".to_owned()],
        ..Capacity::UNLIMITED
    };
    scenario.free_turns = 0;
    let node = find_node(&scenario.run.live, "a").unwrap().id;
    scenario.complete(node, "Done.");
    scenario.chat("a", "More");
    let waits = explain(&scenario.run.live, scenario.now, capacity).waits;
    assert_eq!(waits[0].reason, held(Hold::ProgramFull));
}

#[test]
fn a_turn_that_a_person_stopped_early_waits_for_the_person() {
    let (mut scenario, node) = begin_working();
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    let turn = scenario.turn(node).unwrap();
    let sources = PromptSources::default();
    scenario
        .take(|run, around| send_prompt(run, around, node, turn, &sources))
        .unwrap();
    let held = WaitReason::Held(crate::hold::Hold::Interrupted);
    check_only(&mut scenario, held, Owner::Person);
}

#[test]
fn a_node_that_has_asked_waits_for_the_node_that_has_the_question() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    let question = *scenario
        .run
        .live
        .node(lead)
        .unwrap()
        .unanswered
        .first()
        .unwrap();
    let until = Timestamp(scenario.now.0 + 300);
    let fan_in = WaitReason::Held(crate::hold::Hold::FanIn { until });
    assert_eq!(
        reasons(&scenario),
        [
            (WaitReason::Reply(question), Owner::Node(worker)),
            (fan_in, Owner::Daemon),
        ]
    );
    scenario.pass(300);
    assert_eq!(
        reasons(&scenario),
        [
            (WaitReason::Reply(question), Owner::Node(worker)),
            (WaitReason::Preparing, Owner::Daemon),
        ]
    );
}

#[test]
fn a_verification_waits_for_the_daemon() {
    let mut scenario = Scenario::begin(RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    });
    scenario.add("a", "implementer");
    scenario.now = Timestamp(scenario.now.0 + 5_000);
    scenario.take(verify).unwrap();
    let seen = seen_after_a_minute(&mut scenario);
    let expect = Seen {
        reason: WaitReason::Verification,
        age_ms: 60_000,
        owner: Owner::Daemon,
    };
    assert_eq!(seen[0], expect);
}

#[test]
fn a_run_without_nodes_waits_for_a_person_since_it_has_none() {
    let mut scenario = Scenario::begin(settings());
    check_only(&mut scenario, WaitReason::NoNodes, Owner::Person);
    let node = scenario.add("a", "implementer");
    check_only(&mut scenario, WaitReason::NoInput, Owner::Person);
    scenario
        .take(|run, around| delete_node(run, around, node))
        .unwrap();
    check_only(&mut scenario, WaitReason::NoNodes, Owner::Person);
}

#[test]
fn a_circle_of_three_is_named_at_once_and_only_once() {
    let mut scenario = Scenario::begin(settings());
    let aliases = ["a", "b", "c"];
    let ids = aliases.map(|alias| scenario.add(alias, "planner"));
    for (id, alias) in ids.into_iter().zip(aliases) {
        let waits = NodeSettings {
            wake_on: WakeOn::All,
            ..node_settings(alias, "planner")
        };
        scenario
            .take(|run, around| change_node(run, around, id, waits))
            .unwrap();
    }
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        scenario.connect(from, to);
        scenario.chat(from, "Go");
    }
    for (id, to) in ids.into_iter().zip(["b", "c", "a"]) {
        scenario.send(id, to, "What do you need?").unwrap();
    }
    for id in ids {
        assert_eq!(explained(&scenario).deadlocks.len(), 0);
        scenario.complete(id, "Asked.");
    }
    // The circle is found at once: no time has passed since the last turn ended.
    let circles = explained(&scenario).deadlocks;
    assert_eq!(circles.len(), 1, "{circles:?}");
    let members: BTreeSet<NodeId> = circles[0].iter().copied().collect();
    assert_eq!(members, ids.into());
}

/// A node that wakes on all replies has asked in a turn that did not complete. The turn that repeats it
/// finds the questions asked.
#[test]
fn a_repeated_turn_still_waits_for_all_replies() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let workers = ["a", "b"].map(|alias| scenario.add(alias, "implementer"));
    let waits = NodeSettings {
        wake_on: WakeOn::All,
        ..node_settings("lead", "orchestrator")
    };
    scenario
        .take(|run, around| change_node(run, around, lead, waits))
        .unwrap();
    scenario.chat("lead", "Go");
    prepare(&mut scenario, lead, "You lead.");
    for alias in ["a", "b"] {
        scenario.connect("lead", alias);
        scenario.send(lead, alias, "Please build it").unwrap();
    }
    let reason = "overloaded".to_owned();
    scenario.end(lead, TurnEnd::Unavailable { reason });
    scenario.pass(10_000);
    prepare(&mut scenario, lead, "You lead.");
    scenario.complete(lead, "Both work.");
    for (number, worker) in workers.into_iter().enumerate() {
        assert_eq!(scenario.turn(lead), None, "{number} replies");
        prepare(&mut scenario, worker, "You write code.");
        scenario.complete(worker, "Built.");
        scenario.pass(10_000);
    }
    assert!(scenario.turn(lead).is_some());
}

/// Lets the turn of a node fail. Returns the wait of the node from then on.
fn fail_turn(scenario: &mut Scenario, node: NodeId) -> Seen {
    let text = "the program exited with status 1".to_owned();
    let turn = scenario.turn(node).unwrap();
    let reason = text.clone();
    scenario.end(node, TurnEnd::Failed { reason });
    Seen {
        reason: WaitReason::Failure { turn, text },
        age_ms: 60_000,
        owner: Owner::Person,
    }
}

#[test]
fn a_failed_node_waits_for_a_person_and_says_why_it_failed() {
    let (mut scenario, node) = begin_working();
    // Another node keeps the run from failing as a whole.
    scenario.add("b", "implementer");
    let failed = fail_turn(&mut scenario, node);
    assert_eq!(seen_after_a_minute(&mut scenario)[0], failed);

    // The run fails with its only node.
    let (mut scenario, node) = begin_working();
    let failed = fail_turn(&mut scenario, node);
    let seen = seen_after_a_minute(&mut scenario);
    let stopped = WaitReason::RunStopped {
        status: RunStatus::Failed,
        paused: None,
    };
    assert_eq!((&seen[0].reason, &seen[1]), (&stopped, &failed));
    scenario
        .take(|run, around| retry_node(run, around, node))
        .unwrap();
    check_only(&mut scenario, WaitReason::Preparing, Owner::Daemon);
}
