//! Decisions that wait for a person.

use super::*;

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

fn ask_about(scenario: &mut Scenario, node: NodeId, call: &str) -> PermissionAnswer {
    let permission = Permission {
        node,
        turn: scenario.turn(node).unwrap(),
        tool_name: "command".to_owned(),
        args: json!({"cmd": "make"}),
        provider_id: Some(call.to_owned()),
        context: "runs make".to_owned(),
    };
    scenario
        .take(|run, around| ask_permission(run, around, permission))
        .unwrap()
}

#[test]
fn a_question_that_the_program_takes_back_is_denied_and_the_node_goes_on() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(first) = ask_about(&mut scenario, node, "call-1") else {
        panic!("no rule allows it");
    };
    ask_about(&mut scenario, node, "call-2");
    let withdrawn = |call: &str, scenario: &Scenario| WithdrawnPermission {
        node,
        turn: scenario.turn(node).unwrap(),
        provider_id: call.to_owned(),
        reason: "the program does not wait for it any more".to_owned(),
    };
    for (call, status) in [
        ("call-1", NodeStatus::Blocked),
        ("call-2", NodeStatus::Running),
    ] {
        let taken_back = withdrawn(call, &scenario);
        scenario
            .take(|run, around| withdraw_permission(run, around, &taken_back))
            .unwrap();
        assert_eq!(scenario.status(node), status, "{call}");
    }
    let resolution = scenario.run.archive.resolution(first).unwrap();
    assert_eq!(resolution.verdict, Verdict::Denied);
    assert_eq!(
        resolution.reason.as_deref(),
        Some("the program does not wait for it any more")
    );
    let again = withdrawn("call-1", &scenario);
    let refused = scenario.take(|run, around| withdraw_permission(run, around, &again));
    assert_eq!(refused, Err(Rejection::NoPermissionAsked));
}

#[test]
fn a_turn_that_is_being_stopped_asks_nobody_and_starts_nothing() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "orchestrator");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You lead.");
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    assert_eq!(
        ask_about(&mut scenario, node, "call-1"),
        PermissionAnswer::Denied
    );
    let [Effect::AnswerPermission { resolution, .. }] = &scenario.effects[..] else {
        panic!("the program is answered: {:?}", scenario.effects);
    };
    assert_eq!(resolution.verdict, Verdict::Denied);
    assert_eq!(scenario.status(node), NodeStatus::Running);
    let question = OrchestrationCall::AskUser {
        question: "Which colour?".to_owned(),
        options: Vec::new(),
    };
    let refused = call(&mut scenario, node, question);
    assert_eq!(refused, Err(Rejection::TurnStopping));
}
