//! A turn that reads the same inputs again makes nothing twice.

use super::*;
use crate::orchestration::SendHandoff;

fn spawn(alias: &str) -> OrchestrationCall {
    OrchestrationCall::SpawnNode(Box::new(SpawnNode {
        settings: node_settings(alias, "implementer"),
        input: None,
        connect: true,
    }))
}

fn handoff(to: &str, message: &str) -> OrchestrationCall {
    OrchestrationCall::SendHandoff(Box::new(SendHandoff {
        to: to.to_owned(),
        message: message.to_owned(),
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: None,
        reply_to: None,
        context_pack: None,
    }))
}

fn question() -> OrchestrationCall {
    OrchestrationCall::AskUser {
        question: "Which one?".to_owned(),
        options: Vec::new(),
    }
}

/// Makes a call with these arguments.
fn call_with(
    scenario: &mut Scenario,
    node: NodeId,
    args: &serde_json::Value,
    call: OrchestrationCall,
) -> serde_json::Value {
    let request = ToolRequest {
        node,
        turn: scenario.turn(node).unwrap(),
        args: args.clone(),
        call,
    };
    match scenario.take(|run, around| call_tool(run, around, request)) {
        Ok(ToolAnswer::Done(answer)) => answer,
        other => panic!("answered at once: {other:?}"),
    }
}

/// Stops and starts the server. The program cannot continue, so the turn begins again.
fn begin_again(scenario: &mut Scenario, node: NodeId) {
    let found = Restart {
        resume: true,
        resumable_programs: &[],
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    assert!(scenario.turn(node).is_some());
}

fn count(scenario: &Scenario, is_meant: impl Fn(&Fact) -> bool) -> usize {
    let facts = scenario.log.iter().map(|event| &event.fact);
    facts.filter(|fact| is_meant(fact)).count()
}

fn begin() -> (Scenario, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    (scenario, lead)
}

#[test]
fn a_turn_that_begins_again_gets_the_answers_of_its_earlier_calls() {
    let (mut scenario, lead) = begin();
    let spawned = json!({"alias": "w", "label": "Worker", "request_id": "1"});
    let sent = json!({"to": "w", "message": "Build it"});
    let asked = json!({"question": "Which one?"});
    let make_all = |scenario: &mut Scenario, spawned: &serde_json::Value| {
        [
            call_with(scenario, lead, spawned, spawn("w")),
            call_with(scenario, lead, &sent, handoff("w", "Build it")),
            call_with(scenario, lead, &asked, question()),
        ]
    };
    let first = make_all(&mut scenario, &spawned);
    // Other order, and another name of the request.
    let again = json!({"request_id": "2", "label": "Worker", "alias": "w"});
    for _ in 0..2 {
        begin_again(&mut scenario, lead);
        assert_eq!(make_all(&mut scenario, &again), first);
    }
    assert_eq!(scenario.run.live.nodes().len(), 2);
    assert_eq!(
        count(&scenario, |fact| matches!(fact, Fact::EnvelopeSent(_))),
        1
    );
    assert_eq!(scenario.run.live.approvals.len(), 1);
}

#[test]
fn only_as_many_calls_are_repeated_as_were_made() {
    let (mut scenario, lead) = begin();
    scenario.add("w", "implementer");
    scenario.connect("lead", "w");
    let args = json!({"to": "w", "message": "Again"});
    let send = |scenario: &mut Scenario| {
        let answer = call_with(scenario, lead, &args, handoff("w", "Again"));
        answer["payloadId"].as_str().unwrap().to_owned()
    };
    let made = [send(&mut scenario), send(&mut scenario)];
    assert_ne!(made[0], made[1]);
    begin_again(&mut scenario, lead);
    assert_eq!([send(&mut scenario), send(&mut scenario)], made);
    let third = send(&mut scenario);
    assert!(!made.contains(&third), "the earlier turn made two calls");
    // A turn with other inputs repeats nothing.
    scenario.complete(lead, "Done.");
    scenario.chat("lead", "Once more");
    assert!(![&made[0], &made[1], &third].contains(&&send(&mut scenario)));
}

#[test]
fn a_retry_after_a_failure_repeats_no_call_either() {
    let (mut scenario, lead) = begin();
    let args = json!({"alias": "w"});
    let first = call_with(&mut scenario, lead, &args, spawn("w"));
    let reason = "exit status 1".to_owned();
    scenario.end(lead, TurnEnd::Failed { reason });
    scenario
        .take(|run, around| retry_node(run, around, lead))
        .unwrap();
    assert_eq!(call_with(&mut scenario, lead, &args, spawn("w")), first);
    assert_eq!(scenario.run.live.nodes().len(), 2);
}

#[test]
fn a_call_that_made_nothing_is_made() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let spawns = NodeSettings {
        capabilities: Capabilities {
            spawn_nodes: true,
            ..node_settings("a", "implementer").capabilities
        },
        ..node_settings("a", "implementer")
    };
    scenario
        .take(|run, around| change_node(run, around, node, spawns))
        .unwrap();
    scenario.chat("a", "Go");
    // It waits for a person, and the approval ends with the server.
    for _ in 0..2 {
        let pending = call(&mut scenario, node, spawn("w")).unwrap();
        assert!(matches!(
            pending,
            ToolAnswer::Pending {
                approval: Some(_),
                ..
            }
        ));
        begin_again(&mut scenario, node);
    }
    assert_eq!(scenario.run.live.nodes().len(), 1);
}

#[test]
fn an_envelope_that_waits_at_a_gate_is_not_sent_again() {
    let mut scenario = Scenario::begin(RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    });
    let lead = scenario.add("lead", "orchestrator");
    scenario.add("w", "implementer");
    let gated = EdgeRequest {
        from: "lead",
        to: "w",
        kind: None,
        label: None,
        bidirectional: None,
        gate: Some(true),
    };
    scenario
        .take(|run, around| connect(run, around, gated))
        .unwrap();
    scenario.chat("lead", "Go");
    let status = Some(crate::input::EnvelopeStatus {
        ok: true,
        reason: None,
    });
    let claim = || match handoff("w", "It is done") {
        OrchestrationCall::SendHandoff(sent) => {
            let status = status.clone();
            OrchestrationCall::SendHandoff(Box::new(SendHandoff { status, ..*sent }))
        }
        other => other,
    };
    let held = call(&mut scenario, lead, claim()).unwrap();
    assert!(matches!(held, ToolAnswer::Pending { approval: None, .. }));
    begin_again(&mut scenario, lead);
    let id = *scenario.run.live.gates.keys().next().unwrap();
    let answer = call(&mut scenario, lead, claim()).unwrap();
    let pending = json!({"payloadId": id.to_string(), "pending": true});
    assert_eq!(answer, ToolAnswer::Done(pending));
    assert_eq!(scenario.run.live.gates.len(), 1);
}
