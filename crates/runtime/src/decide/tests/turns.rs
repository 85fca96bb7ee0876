//! What a program reports, and how a turn ends.

use super::*;

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
fn what_the_program_printed_is_a_log_before_the_diff() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    let before = scenario.log.len();
    let end = ProgramEnd {
        node,
        turn,
        end: TurnEnd::Completed,
        diff: DiffTaken::default(),
        printed: Some(PrintedLines {
            file: "provider.jsonl",
            content: Bytes::from_static(b"{}\n"),
        }),
        only_waited: false,
    };
    scenario
        .take(|run, around| end_turn(run, around, &end))
        .unwrap();
    let made: Vec<_> = scenario.log[before..]
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::ArtifactCreated(made) => Some((made.kind, made.name.as_str(), event.turn)),
            _ => None,
        })
        .collect();
    let of_turn = Some(turn);
    let expect = [
        (ArtifactKind::Log, "provider.jsonl", of_turn),
        (ArtifactKind::Diff, "diff.patch", of_turn),
    ];
    assert_eq!(made, expect);
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
        // And up to a fifth longer.
        scenario.pass(1 + pause / 5);
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
fn nodes_that_were_refused_together_do_not_come_back_together() {
    let mut pauses = BTreeSet::new();
    let mut scenario = Scenario::begin(settings());
    for number in 0..4 {
        let alias = format!("n{number}");
        let node = scenario.add(&alias, "implementer");
        scenario.chat(&alias, "Go");
        let reason = "overloaded".to_owned();
        scenario.end(node, TurnEnd::Unavailable { reason });
        let retry_at = scenario.run.live.node(node).unwrap().retry_at.unwrap();
        let pause = retry_at.0 - scenario.now.0;
        assert!((2_000..=2_400).contains(&pause), "{pause}");
        pauses.insert(pause);
        scenario.pass(2_400);
    }
    assert!(pauses.len() > 1, "{pauses:?}");
}

#[test]
fn a_rate_limit_keeps_the_inputs_and_parks_the_node() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let until = Some(Timestamp(scenario.now.0 + 60_000));
    let wait = std::time::Duration::from_mins(1);
    // Some providers name the time, others how long it is.
    for end in [
        TurnEnd::RateLimited { until },
        TurnEnd::RateLimitedFor { wait },
    ] {
        scenario.end(node, end);
        assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), 1);
        scenario.pass(59_999);
        assert_eq!(scenario.turn(node), None);
        scenario.pass(1);
        assert!(scenario.turn(node).is_some());
    }
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
        printed: None,
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
    let proposed = Output::ToolProposed {
        provider_id: "t1".to_owned(),
        name: "Read".to_owned(),
        args: json!({"path": "a"}),
    };
    scenario
        .take(|run, around| add_output(run, around, node, turn, proposed))
        .unwrap();
    for _ in 0..2 {
        let done = Output::ToolCompleted {
            provider_id: "t1".to_owned(),
            ok: true,
            output: Some("x".repeat(40 << 10)),
            error: None,
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
fn a_new_session_with_a_name_is_still_told_what_the_lost_one_knew() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "role");
    let turn = scenario.turn(node).unwrap();
    scenario
        .take(|run, around| add_output(run, around, node, turn, Output::SessionLost))
        .unwrap();
    let reason = "no such session".to_owned();
    scenario.end(node, TurnEnd::Unavailable { reason });
    // The program opens another session before anything is sent to it.
    let named = Output::Session("new".to_owned());
    scenario
        .take(|run, around| add_idle_output(run, around, node, named))
        .unwrap();
    let was_lost = |scenario: &Scenario| scenario.run.live.node(node).unwrap().session.was_lost;
    assert!(
        was_lost(&scenario),
        "the next prompt recalls the last turns"
    );
    scenario.pass(10_000);
    prepare(&mut scenario, node, "role");
    assert!(!was_lost(&scenario), "only the next one does");
}
