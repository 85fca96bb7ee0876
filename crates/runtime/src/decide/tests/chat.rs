//! Messages of people start turns.

use super::*;

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
fn the_first_message_is_the_goal_and_gives_the_title_only_if_there_is_none() {
    for (given, title) in [("", "Fix the refund"), ("Payments", "Payments")] {
        let mut scenario = Scenario::begin(RunSettings {
            goal: None,
            title: given.to_owned(),
            ..settings()
        });
        scenario.add("a", "implementer");
        scenario.chat("a", "Fix the refund\nand test it");
        scenario.chat("a", "Something else");
        let settings = &scenario.run.live.settings;
        assert_eq!(
            settings.goal.as_deref(),
            Some("Fix the refund\nand test it")
        );
        assert_eq!(settings.title, title);
    }
}

/// A node whose last turn has left a call behind that a person still decides about.
fn begin_with_pending_spawn() -> (Scenario, NodeId, ApprovalId) {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    let mut spawning = node_settings("a", "reviewer");
    spawning.capabilities.spawn_nodes = true;
    scenario
        .take(|run, around| change_node(run, around, node, spawning))
        .unwrap();
    scenario.chat("a", "Go");
    let spawn = OrchestrationCall::SpawnNode(Box::new(SpawnNode {
        settings: node_settings("child", "reviewer"),
        input: None,
        connect: true,
    }));
    let pending = call(&mut scenario, node, spawn).unwrap();
    let ToolAnswer::Pending {
        approval: Some(approval),
        ..
    } = pending
    else {
        panic!("it needs approval: {pending:?}");
    };
    scenario.complete(node, "I wait.");
    scenario.chat("a", "Do something else meanwhile");
    prepare(&mut scenario, node, "You review.");
    (scenario, node, approval)
}

#[test]
fn an_urgent_message_stops_the_turn_and_not_a_call_of_an_earlier_one() {
    let (mut scenario, node, approval) = begin_with_pending_spawn();
    let urgent = Chat {
        content: "Stop",
        node: Some("a"),
        interrupt: true,
    };
    scenario
        .take(|run, around| chat(run, around, urgent))
        .unwrap();
    assert_eq!(scenario.effects, [Effect::Interrupt(node)]);
    assert!(scenario.run.live.approvals.contains_key(&approval));
    let reason = "interrupted".to_owned();
    let requeue = false;
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    assert!(scenario.run.live.approvals.contains_key(&approval));
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    assert!(find_node(&scenario.run.live, "child").is_ok());
}

#[test]
fn a_call_of_an_earlier_turn_neither_blocks_the_next_one_nor_hides_its_silence() {
    let (mut scenario, node, spawning) = begin_with_pending_spawn();
    scenario.pass(60_000);
    let turn = scenario.turn(node).unwrap();
    let make = Permission {
        node,
        turn,
        tool_name: "command".to_owned(),
        args: json!({"cmd": "make"}),
        provider_id: Some("call-1".to_owned()),
        context: "runs make".to_owned(),
        can_allow_always: false,
    };
    let asked = scenario.take(|run, around| ask_permission(run, around, make));
    let Ok(PermissionAnswer::Waits(approval)) = asked else {
        panic!("no rule allows it: {asked:?}");
    };
    answer(&mut scenario, approval, Verdict::Denied, Scope::Once).unwrap();
    assert_eq!(scenario.status(node), NodeStatus::Running);
    let done = Output::ToolCompleted {
        provider_id: "call-1".to_owned(),
        ok: false,
        output: None,
        error: Some("denied".to_owned()),
    };
    scenario
        .take(|run, around| add_output(run, around, node, turn, done))
        .unwrap();
    // The answer to the older call is no output of this turn.
    scenario.pass(2 * 60_000);
    answer(&mut scenario, spawning, Verdict::Denied, Scope::Once).unwrap();
    let before = scenario.log.len();
    scenario.pass(60_000);
    assert_eq!(scenario.names_from(before), ["node.progress"]);
}
