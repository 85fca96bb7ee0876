//! What stops a run by itself: stalls and budgets.

use super::*;
use crate::fact::StallEvidence;
use crate::usage::BudgetLevel;

fn evidence(scenario: &Scenario) -> &StallEvidence {
    let facts = scenario.log.iter().map(|event| &event.fact);
    let mut stalls = facts.rev().filter_map(|fact| match fact {
        Fact::Stalled(evidence) => Some(evidence),
        _ => None,
    });
    stalls.next().unwrap()
}

/// Ends a node's turn with these words and changes.
fn end_with(scenario: &mut Scenario, node: NodeId, text: &str, patch: &'static str) {
    scenario.say(node, text);
    let end = ProgramEnd {
        node,
        turn: scenario.turn(node).unwrap(),
        end: TurnEnd::Completed,
        diff: DiffTaken {
            patch: Bytes::from_static(patch.as_bytes()),
            ..DiffTaken::default()
        },
        printed: None,
        only_waited: false,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
}

/// Ends a node's turn that did nothing but look at a running command.
fn end_waiting(scenario: &mut Scenario, node: NodeId, text: &str) {
    scenario.say(node, text);
    let end = ProgramEnd {
        node,
        turn: scenario.turn(node).unwrap(),
        end: TurnEnd::Completed,
        diff: DiffTaken::default(),
        printed: None,
        only_waited: true,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
}

/// A lead that asks a worker again and again. Returns the worker, whose turn is open.
fn begin_loop() -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    (scenario, lead, worker)
}

fn ask_worker(scenario: &mut Scenario, lead: NodeId, task: &str) {
    scenario.send(lead, "worker", task).unwrap();
    scenario.pass(300);
}

/// Gives the worker a task for which it owes no reply.
fn hand_over(scenario: &mut Scenario, lead: NodeId, task: &str) {
    let handoff = Handoff {
        from: lead,
        to: "worker",
        message: task,
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: Some(Expectation::None),
        reply_to: None,
        context_pack: None,
    };
    scenario
        .take(|run, around| send_handoff(run, around, handoff))
        .unwrap();
    scenario.pass(300);
}

fn read_file(scenario: &mut Scenario, node: NodeId, path: &str) {
    let turn = scenario.turn(node).unwrap();
    let call = Output::ToolProposed {
        provider_id: "call-1".to_owned(),
        name: "Read".to_owned(),
        args: json!({"path": path}),
    };
    scenario
        .take(|run, around| add_output(run, around, node, turn, call))
        .unwrap();
}

#[test]
fn the_evidence_of_a_stall_is_whole_whatever_its_reason_is() {
    for (patch, reason) in [
        ("", StallReason::SameOutput),
        ("+the same line", StallReason::SameDiff),
    ] {
        let (mut scenario, lead, worker) = begin_loop();
        let mut turns = Vec::new();
        for number in 1..=5 {
            ask_worker(&mut scenario, lead, &format!("Task {}", "x".repeat(number)));
            turns.push(scenario.turn(worker).unwrap());
            end_with(
                &mut scenario,
                worker,
                &format!("Still red at 10:0{number}"),
                patch,
            );
        }
        let found = evidence(&scenario);
        assert_eq!(found.stall.reason, reason);
        assert_eq!((found.stall.count, &found.stall.turns), (5, &turns));
        assert_eq!(found.summaries.len(), 3, "the last three");
        assert_eq!(found.summaries[2], "Still red at 10:05");
        assert!(found.output.is_some());
        assert_eq!(found.diff.is_some(), !patch.is_empty());
        assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Stall));
        assert_eq!(scenario.status(worker), NodeStatus::Blocked);
    }
}

#[test]
fn turns_that_only_wait_for_a_command_are_no_circle() {
    let (mut scenario, lead, worker) = begin_loop();
    for number in 1..=10 {
        ask_worker(&mut scenario, lead, &format!("Task {}", "x".repeat(number)));
        end_waiting(&mut scenario, worker, "It still runs.");
    }
    // Neither the equal turns nor the equal replies count.
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    for number in 1..=5 {
        assert_eq!(scenario.run.live.status, RunStatus::Running);
        ask_worker(&mut scenario, lead, &format!("More {}", "y".repeat(number)));
        end_with(&mut scenario, worker, "It still runs.", "");
    }
    assert_eq!(evidence(&scenario).stall.count, 5);
}

#[test]
fn equal_words_after_other_work_are_no_circle() {
    // The changes differ each time, or the calls of tools do.
    let patches = ["+a", "+b", "+c", "+d", "+e"];
    let (mut scenario, lead, worker) = begin_loop();
    for (number, patch) in patches.into_iter().enumerate() {
        ask_worker(&mut scenario, lead, &format!("Task {}", "x".repeat(number)));
        end_with(&mut scenario, worker, "Done.", patch);
    }
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    let (mut scenario, lead, worker) = begin_loop();
    // No reply is owed, so only the turns themselves are compared.
    let words = ["one", "two", "three", "four", "five"];
    for word in words {
        hand_over(&mut scenario, lead, word);
        read_file(&mut scenario, worker, word);
        end_with(&mut scenario, worker, "Done.", "");
    }
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    for word in words {
        hand_over(&mut scenario, lead, word);
        read_file(&mut scenario, worker, "one");
        end_with(&mut scenario, worker, "Done.", "");
    }
    assert_eq!(evidence(&scenario).stall.reason, StallReason::SameOutput);
}

#[test]
fn a_claim_that_fails_again_and_again_names_the_failure() {
    let checked = RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    };
    let mut scenario = Scenario::begin(checked);
    let lead = scenario.add("lead", "orchestrator");
    for number in 1..=5 {
        if scenario.turn(lead).is_none() {
            scenario.pass(300);
        }
        if scenario.turn(lead).is_none() {
            scenario.chat("lead", "Go");
        }
        let summary = "All done".to_owned();
        call(
            &mut scenario,
            lead,
            OrchestrationCall::CompleteRun { summary },
        )
        .unwrap();
        let under_way = scenario.run.live.verification.unwrap();
        let end = VerificationEnd {
            target: VerificationTarget::Run(under_way.id),
            ok: false,
            report: Bytes::from_static(b"{}"),
            tail: "1 test failed".to_owned(),
            signature: "`make test`: exit status 2".to_owned(),
            changes: None,
        };
        scenario
            .take(|run, around| end_verification(run, around, &end))
            .unwrap();
        let words = ["one", "two", "three", "four", "five"][number - 1];
        scenario.complete(lead, words);
    }
    let found = evidence(&scenario);
    assert_eq!(found.stall.reason, StallReason::SameVerificationFailure);
    let failure = found.verification_failure.as_deref();
    assert_eq!(failure, Some("`make test`: exit status 2"));
    assert_eq!(found.stall.turns.len(), 5);
}

#[test]
fn idle_automatic_turns_are_named_in_the_evidence() {
    let automatic = RunSettings {
        mode: Mode::Auto,
        ..settings()
    };
    let mut scenario = Scenario::begin(automatic);
    let lead = scenario.add("lead", "orchestrator");
    let mut turns = Vec::new();
    for _ in 0..2 {
        turns.push(scenario.turn(lead).unwrap());
        scenario.complete(lead, "Nothing to do.");
    }
    let found = evidence(&scenario);
    assert_eq!(found.stall.reason, StallReason::NoProgress);
    assert_eq!((found.stall.count, &found.stall.turns), (2, &turns));
    assert_eq!(found.summaries, ["Nothing to do.", "Nothing to do."]);
}

fn use_tokens(scenario: &mut Scenario, node: NodeId, prompt_tokens: u64) {
    let turn = scenario.turn(node).unwrap();
    let used = Output::Usage(Usage {
        prompt_tokens,
        ..Usage::default()
    });
    scenario
        .take(|run, around| add_output(run, around, node, turn, used))
        .unwrap();
}

fn budget_items(scenario: &Scenario) -> Vec<(BudgetLevel, Option<NodeId>, Timestamp)> {
    let items = list_attention(&scenario.run.live).into_iter();
    items
        .filter_map(|item| match item.kind {
            AttentionKind::Budget(level) => Some((level, item.node, item.since)),
            _ => None,
        })
        .collect()
}

fn hundred_tokens() -> Budget {
    Budget {
        tokens: Some(100),
        cost_micro_usd: None,
    }
}

#[test]
fn a_budget_of_the_run_warns_at_four_fifths_and_pauses_when_it_is_used_up() {
    let mut scenario = Scenario::begin(RunSettings {
        budget: hundred_tokens(),
        ..settings()
    });
    let (a, b) = (scenario.add("a", "planner"), scenario.add("b", "planner"));
    scenario.chat("a", "Go");
    use_tokens(&mut scenario, a, 79);
    assert_eq!(budget_items(&scenario), []);
    use_tokens(&mut scenario, a, 1);
    let low_since = scenario.now;
    scenario.pass(1_000);
    assert_eq!(
        budget_items(&scenario),
        [(BudgetLevel::Low, None, low_since)]
    );
    use_tokens(&mut scenario, a, 20);
    assert_eq!(
        budget_items(&scenario),
        [(BudgetLevel::UsedUp, None, low_since)]
    );
    assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Budget));
    // At once: the open turn goes on, and no other starts.
    assert!(scenario.turn(a).is_some());
    scenario.chat("b", "Go");
    assert_eq!(scenario.turn(b), None);
    scenario.complete(a, "Done.");
    let more = RunChange {
        status: Some(RunStatus::Running),
        settings: Some(RunSettings {
            budget: Budget::default(),
            ..settings()
        }),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, more))
        .unwrap();
    assert_eq!(budget_items(&scenario), []);
    assert!(scenario.turn(b).is_some());
}

#[test]
fn a_budget_of_a_node_counts_only_its_own_turns() {
    let mut scenario = Scenario::begin(settings());
    let (a, b) = (scenario.add("a", "planner"), scenario.add("b", "planner"));
    let limited = NodeSettings {
        budget: Some(hundred_tokens()),
        ..node_settings("a", "planner")
    };
    scenario
        .take(|run, around| change_node(run, around, a, limited))
        .unwrap();
    scenario.chat("a", "Go");
    scenario.chat("b", "Go");
    use_tokens(&mut scenario, b, 500);
    assert_eq!(budget_items(&scenario), []);
    use_tokens(&mut scenario, a, 80);
    assert_eq!(
        budget_items(&scenario),
        [(BudgetLevel::Low, Some(a), scenario.now)]
    );
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    use_tokens(&mut scenario, a, 20);
    assert_eq!(scenario.run.live.paused_reason, Some(PausedReason::Budget));
}
