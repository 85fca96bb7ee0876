//! Questions of nodes and to persons, and what counts as an answer.

use super::*;
use crate::approval::ApprovalSubject;

/// A worker that has read two questions of a lead that waits for all replies.
fn ask_twice(gate: bool) -> (Scenario, NodeId, NodeId) {
    let verify = if gate {
        vec!["make test".to_owned()]
    } else {
        Vec::new()
    };
    let mut scenario = Scenario::begin(RunSettings {
        verify,
        ..settings()
    });
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("w", "implementer");
    let waits = NodeSettings {
        wake_on: WakeOn::All,
        ..node_settings("lead", "orchestrator")
    };
    scenario
        .take(|run, around| change_node(run, around, lead, waits))
        .unwrap();
    let edge = EdgeRequest {
        from: "lead",
        to: "w",
        kind: None,
        label: None,
        bidirectional: None,
        gate: Some(gate),
    };
    scenario
        .take(|run, around| connect(run, around, edge))
        .unwrap();
    scenario.chat("lead", "Go");
    scenario.send(lead, "w", "Is it fast?").unwrap();
    scenario.send(lead, "w", "Is it safe?").unwrap();
    scenario.complete(lead, "Asked.");
    scenario.pass(300);
    assert_eq!(
        scenario.run.live.node(lead).unwrap().awaited_replies.len(),
        2
    );
    (scenario, lead, worker)
}

fn replies(scenario: &Scenario, lead: NodeId) -> Vec<(String, bool)> {
    let sent = scenario.log.iter().filter_map(|event| match &event.fact {
        Fact::EnvelopeSent(envelope) if envelope.to == lead => {
            Some((envelope.message.clone(), envelope.synthesized))
        }
        _ => None,
    });
    sent.collect()
}

#[test]
fn one_envelope_answers_all_questions_of_its_receiver() {
    let (mut scenario, lead, worker) = ask_twice(false);
    scenario.send(worker, "lead", "It is both.").unwrap();
    // Until its turn ends the worker may answer the other question, too.
    scenario.pass(1_000);
    assert_eq!(scenario.turn(lead), None);
    scenario.complete(worker, "Answered.");
    assert_eq!(
        replies(&scenario, lead),
        [("It is both.".to_owned(), false)]
    );
    let asker = scenario.run.live.node(lead).unwrap();
    assert!(asker.unanswered.is_empty() && asker.awaited_replies.is_empty());
    scenario.pass(300);
    assert!(scenario.turn(lead).is_some());
}

#[test]
fn a_turn_without_an_envelope_gets_a_reply_for_each_question() {
    let (mut scenario, lead, worker) = ask_twice(false);
    scenario.complete(worker, "It is both.");
    let reply = ("It is both.".to_owned(), true);
    assert_eq!(replies(&scenario, lead), [reply.clone(), reply]);
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

#[test]
fn an_envelope_that_waits_at_a_gate_answers_all_questions_when_it_passes() {
    for ok in [true, false] {
        let (mut scenario, lead, worker) = ask_twice(true);
        let handoff = Handoff {
            from: worker,
            to: "lead",
            message: "It is both.",
            structured: None,
            artifacts: Vec::new(),
            status: Some(crate::input::EnvelopeStatus {
                ok: true,
                reason: None,
            }),
            expectation: None,
            reply_to: None,
            context_pack: None,
        };
        scenario
            .take(|run, around| send_handoff(run, around, handoff))
            .unwrap();
        scenario.complete(worker, "Answered.");
        assert_eq!(replies(&scenario, lead), []);
        let id = *scenario.run.live.gates.keys().next().unwrap();
        let end = VerificationEnd {
            target: VerificationTarget::Gate(id),
            ok,
            report: Bytes::from_static(b"{}"),
            tail: "1 test failed".to_owned(),
            signature: "make test: 2".to_owned(),
            changes: None,
        };
        scenario
            .take(|run, around| end_verification(run, around, &end))
            .unwrap();
        let unanswered = scenario.run.live.node(lead).unwrap().unanswered.len();
        assert_eq!(unanswered, if ok { 0 } else { 2 });
        if !ok {
            // The worker hears of the refusal. The server answers if it does not.
            assert!(scenario.turn(worker).is_some());
            scenario.end(
                worker,
                TurnEnd::Failed {
                    reason: "exit status 1".to_owned(),
                },
            );
            assert_eq!(replies(&scenario, lead).len(), 2);
        }
    }
}

/// Answers a question of a node with these arguments. Returns what the node reads.
fn answer_with(args: serde_json::Value) -> Result<String, Rejection> {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let question = OrchestrationCall::AskUser {
        question: "How many?".to_owned(),
        options: Vec::new(),
    };
    call(&mut scenario, node, question).unwrap();
    let asked = scenario.run.live.approvals.values().next().unwrap();
    assert!(matches!(asked.subject, ApprovalSubject::Question { .. }));
    let id = asked.id;
    let resolution = Resolution {
        verdict: Verdict::Modified,
        modified_args: Some(args),
        reason: None,
        scope: Scope::Once,
        by: None,
    };
    scenario.take(|run, around| resolve(run, around, id, resolution))?;
    let inbox = &scenario.run.live.node(node).unwrap().inbox;
    match inbox.inputs() {
        [Input::Message(message)] => Ok(message.content.clone()),
        other => panic!("one message: {other:?}"),
    }
}

#[test]
fn an_answer_that_is_no_text_is_given_as_json() {
    for (answer, expect) in [
        (json!({"answer": "three"}), "three"),
        (json!({"answer": 3}), "3"),
        (json!({"answer": false}), "false"),
        (json!({"answer": ["a", {"b": 1}]}), r#"["a",{"b":1}]"#),
    ] {
        assert_eq!(answer_with(answer), Ok(expect.to_owned()));
    }
    // Other arguments are no answer: the agent would read a yes that no person gave.
    for other in [json!({"answer": null}), json!({"question": "x"}), json!({})] {
        assert_eq!(answer_with(other), Err(Rejection::NoAnswer));
    }
}

#[test]
fn changed_arguments_are_refused_for_a_program_that_cannot_take_them() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let own = NodeSettings {
        provider: Provider::Custom,
        provider_name: Some("mine".to_owned()),
        ..node_settings("a", "implementer")
    };
    scenario
        .take(|run, around| change_node(run, around, node, own))
        .unwrap();
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(id) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    let changed = |verdict| Resolution {
        verdict,
        modified_args: Some(json!({"cmd": "make test"})),
        reason: None,
        scope: Scope::Once,
        by: None,
    };
    let check = |verdict, fixed: &str| {
        let fixed = [fixed.to_owned()];
        check_changed_args(&scenario.run, id, &changed(verdict), &fixed)
    };
    let refused = Err(Rejection::CannotModify("mine".to_owned()));
    assert_eq!(check(Verdict::Modified, "mine"), refused);
    assert_eq!(check(Verdict::Modified, "other"), Ok(()));
    assert_eq!(check(Verdict::Approved, "mine"), Ok(()));
    let run = &scenario.run.live;
    let takes_changes =
        |fixed: &str| takes_changed_args(run, &run.approvals[&id], &[fixed.to_owned()]);
    assert!(!takes_changes("mine"));
    assert!(takes_changes("other"));
}
