//! The tools that the server gives to agents.

use super::*;

fn spawn(alias: &str) -> OrchestrationCall {
    OrchestrationCall::SpawnNode(Box::new(SpawnNode {
        settings: node_settings(alias, "reviewer"),
        input: Some("Review it".to_owned()),
        connect: true,
    }))
}

#[test]
fn an_orchestrator_spawns_a_node_that_gets_its_input() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    let ToolAnswer::Done(answer) = call(&mut scenario, lead, spawn("child")).unwrap() else {
        panic!("an orchestrator needs no approval");
    };
    assert_eq!(answer["alias"], "child");
    assert!(answer["edgeId"].is_string());
    scenario.pass(300);
    let child = find_node(&scenario.run.live, "child").unwrap();
    assert_eq!((child.parent, child.depth), (Some(lead), 1));
    assert_eq!(child.turn.as_ref().unwrap().consumed.len(), 1);
}

#[test]
fn another_node_needs_approval_whatever_its_settings_say() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    let mut free = node_settings("a", "reviewer");
    free.capabilities.spawn_nodes = true;
    free.permissions.spawn_requires_approval = false;
    scenario.chat("a", "Go");
    let refused = call(&mut scenario, node, spawn("child"));
    assert_eq!(refused, Err(Rejection::MayNotSpawn));
    scenario
        .take(|run, around| change_node(run, around, node, free))
        .unwrap();
    for (verdict, expect) in [(Verdict::Denied, 1), (Verdict::Approved, 2)] {
        let answered = call(&mut scenario, node, spawn("child")).unwrap();
        let ToolAnswer::Pending {
            tool,
            approval: Some(approval),
        } = answered
        else {
            panic!("it needs approval: {answered:?}");
        };
        assert_eq!(scenario.status(node), NodeStatus::Blocked);
        answer(&mut scenario, approval, verdict, Scope::Once).unwrap();
        assert_eq!(scenario.status(node), NodeStatus::Running);
        assert_eq!(scenario.run.live.nodes().len(), expect, "{verdict}");
        let is_answer = |effect: &Effect| {
            matches!(effect, Effect::AnswerToolCall { tool: of, result, .. }
                if *of == tool && result.is_ok() == (verdict == Verdict::Approved))
        };
        assert!(
            scenario.effects.iter().any(is_answer),
            "{:?}",
            scenario.effects
        );
    }
}

#[test]
fn a_question_blocks_nothing_and_its_answer_is_a_message() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    scenario.chat("a", "Go");
    let question = "Which colour?".to_owned();
    let ask = OrchestrationCall::AskUser {
        question,
        options: vec!["red".to_owned()],
    };
    let ToolAnswer::Done(_) = call(&mut scenario, node, ask).unwrap() else {
        panic!("a question is answered at once");
    };
    assert_eq!(scenario.status(node), NodeStatus::Running);
    scenario.complete(node, "Asked.");
    let approval = *scenario.run.live.approvals.keys().next().unwrap();
    let resolution = Resolution {
        verdict: Verdict::Modified,
        modified_args: Some(json!({"answer": "red"})),
        reason: None,
        scope: Scope::Once,
        by: None,
    };
    scenario
        .take(|run, around| resolve(run, around, approval, resolution))
        .unwrap();
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert!(matches!(&turn.consumed[..], [Input::Message(message)] if message.content == "red"));
}

#[test]
fn a_call_that_is_approved_after_its_turn_reports_its_outcome_as_a_message() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    let mut free = node_settings("a", "reviewer");
    free.capabilities.spawn_nodes = true;
    scenario
        .take(|run, around| change_node(run, around, node, free))
        .unwrap();
    scenario.chat("a", "Go");
    let ToolAnswer::Pending {
        approval: Some(approval),
        ..
    } = call(&mut scenario, node, spawn("child")).unwrap()
    else {
        panic!("it needs approval");
    };
    scenario.complete(node, "I wait.");
    assert_eq!(scenario.status(node), NodeStatus::Idle);
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    assert_eq!(scenario.run.live.nodes().len(), 2);
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert_eq!(turn.consumed.len(), 1);
}

#[test]
fn an_edge_that_cannot_be_is_refused_before_a_person_is_asked() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "reviewer");
    scenario.add("b", "reviewer");
    let mut free = node_settings("a", "reviewer");
    free.capabilities.spawn_nodes = true;
    scenario
        .take(|run, around| change_node(run, around, node, free))
        .unwrap();
    scenario.chat("a", "Go");
    let edge = |to: &str, label: Option<&str>| {
        OrchestrationCall::CreateEdge(CreateEdge {
            from: "a".to_owned(),
            to: to.to_owned(),
            kind: None,
            label: label.map(str::to_owned),
            bidirectional: None,
        })
    };
    let before = scenario.log.len();
    for refused in [
        edge("a", None),
        edge("nobody", None),
        edge("b", Some("")),
        edge("b", Some("two\nlines")),
    ] {
        let answer = call(&mut scenario, node, refused.clone());
        assert!(answer.is_err(), "{refused:?}: {answer:?}");
    }
    assert_eq!(scenario.log.len(), before, "a refused call leaves no trace");
    let answer = call(&mut scenario, node, edge("b", Some("review"))).unwrap();
    assert!(matches!(
        answer,
        ToolAnswer::Pending {
            approval: Some(_),
            ..
        }
    ));
}
