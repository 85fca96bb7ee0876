//! Envelopes that wait for the verification of their sender's work.

use super::*;
use crate::effect::VerifyPlace;
use crate::input::EnvelopeStatus;
use crate::orchestration::SendHandoff;

/// A lead that has asked a worker over a gated edge. The worker's turn is open.
struct Gated {
    scenario: Scenario,
    lead: NodeId,
    worker: NodeId,
}

fn begin_gated(verify: &[&str]) -> Gated {
    let checked = RunSettings {
        verify: verify.iter().map(|&command| command.to_owned()).collect(),
        ..settings()
    };
    let mut scenario = Scenario::begin(checked);
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    connect_gated(&mut scenario, "lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    prepare(&mut scenario, worker, "You write code.");
    Gated {
        scenario,
        lead,
        worker,
    }
}

fn connect_gated(scenario: &mut Scenario, from: &str, to: &str) {
    let request = EdgeRequest {
        from,
        to,
        kind: None,
        label: None,
        bidirectional: None,
        gate: Some(true),
    };
    scenario
        .take(|run, around| connect(run, around, request))
        .unwrap();
}

/// The worker says that its work has succeeded, or not.
fn report(gated: &mut Gated, ok: bool) -> ToolAnswer {
    let handoff = SendHandoff {
        to: "lead".to_owned(),
        message: "It is built".to_owned(),
        structured: None,
        artifacts: Vec::new(),
        status: Some(EnvelopeStatus { ok, reason: None }),
        expectation: None,
        reply_to: None,
        context_pack: None,
    };
    let sent = OrchestrationCall::SendHandoff(Box::new(handoff));
    call(&mut gated.scenario, gated.worker, sent).unwrap()
}

fn held(gated: &Gated) -> EnvelopeId {
    *gated.scenario.run.live.gates.keys().next().unwrap()
}

fn end_check(gated: &mut Gated, ok: bool) -> Result<(), Rejection> {
    let target = VerificationTarget::Gate(held(gated));
    end_check_of(gated, target, ok)
}

fn end_check_of(gated: &mut Gated, target: VerificationTarget, ok: bool) -> Result<(), Rejection> {
    let end = VerificationEnd {
        target,
        ok,
        report: Bytes::from_static(b"{}"),
        tail: "1 test failed".to_owned(),
        signature: "make test: 2".to_owned(),
        changes: None,
    };
    gated
        .scenario
        .take(|run, around| end_verification(run, around, &end))
}

fn inbox_len(gated: &Gated, node: NodeId) -> usize {
    gated.scenario.run.live.node(node).unwrap().inbox.len()
}

fn is_pending(answer: &ToolAnswer) -> bool {
    matches!(answer, ToolAnswer::Pending { approval: None, .. })
}

#[test]
fn a_success_is_delivered_only_after_the_senders_work_was_verified() {
    let mut gated = begin_gated(&["make test"]);
    let before = gated.scenario.log.len();
    assert!(is_pending(&report(&mut gated, true)));
    let expect = Effect::Verify {
        target: VerificationTarget::Gate(held(&gated)),
        place: VerifyPlace::Workspace(gated.worker),
    };
    assert_eq!(gated.scenario.effects, [expect]);
    assert_eq!(inbox_len(&gated, gated.lead), 0);
    let id = held(&gated);
    end_check(&mut gated, true).unwrap();
    assert_eq!(
        gated.scenario.names_from(before),
        [
            "tool.proposed",
            "tool.started",
            "handoff.held",
            "artifact.created",
            "handoff.sent",
            "node.patch",
            "tool.completed",
        ]
    );
    let [Effect::AnswerToolCall { result, .. }] = &gated.scenario.effects[..] else {
        panic!("the call is answered: {:?}", gated.scenario.effects);
    };
    assert_eq!(result.as_ref().unwrap()["payloadId"], id.to_string());
    assert_eq!(inbox_len(&gated, gated.lead), 1);
    gated.scenario.complete(gated.worker, "Reported.");
    assert_eq!(inbox_len(&gated, gated.lead), 1, "it was the answer");
}

#[test]
fn a_success_that_fails_the_commands_is_refused_with_their_output() {
    let mut gated = begin_gated(&["make test"]);
    report(&mut gated, true);
    end_check(&mut gated, false).unwrap();
    let [Effect::AnswerToolCall { result, .. }] = &gated.scenario.effects[..] else {
        panic!("the call is answered: {:?}", gated.scenario.effects);
    };
    let refusal = "not delivered: verification failed: 1 test failed";
    assert_eq!(result, &Err(refusal.to_owned()));
    assert_eq!(inbox_len(&gated, gated.lead), 0);
    // The worker may report that it failed, which needs no verification.
    assert!(!is_pending(&report(&mut gated, false)));
    assert_eq!(inbox_len(&gated, gated.lead), 1);
}

#[test]
fn without_commands_or_over_another_edge_alone_nothing_is_held() {
    let mut open = begin_gated(&[]);
    assert!(!is_pending(&report(&mut open, true)));
    // A second edge does not lead around the gate.
    let mut gated = begin_gated(&["make test"]);
    gated.scenario.connect("worker", "lead");
    assert!(is_pending(&report(&mut gated, true)));
}

#[test]
fn the_reply_of_the_daemon_passes_the_gate_or_is_a_failure() {
    for ok in [true, false] {
        let mut gated = begin_gated(&["make test"]);
        gated.scenario.complete(gated.worker, "Built.");
        assert_eq!(inbox_len(&gated, gated.lead), 0, "it is verified first");
        assert_eq!(gated.scenario.status(gated.worker), NodeStatus::Idle);
        end_check(&mut gated, ok).unwrap();
        let lead = gated.scenario.run.live.node(gated.lead).unwrap();
        assert!(lead.unanswered.is_empty());
        let [Input::Envelope(reply)] = lead.inbox.inputs() else {
            panic!("one reply: {:?}", lead.inbox);
        };
        let status = reply.status.as_ref().unwrap();
        assert_eq!(status.ok, ok);
        assert_eq!(status.reason.is_some(), !ok);
    }
}

#[test]
fn a_refusal_that_comes_after_the_turn_is_a_message_and_the_question_stays_owed() {
    let mut gated = begin_gated(&["make test"]);
    report(&mut gated, true);
    gated.scenario.complete(gated.worker, "I have reported.");
    assert_eq!(gated.scenario.run.live.gates.len(), 1, "no second answer");
    end_check(&mut gated, false).unwrap();
    let worker = gated.scenario.run.live.node(gated.worker).unwrap();
    let consumed = &worker.turn.as_ref().unwrap().consumed;
    assert!(matches!(&consumed[..], [Input::Message(note)] if note.content.contains("refused")));
    gated.scenario.complete(gated.worker, "Now it works.");
    end_check(&mut gated, true).unwrap();
    let lead = gated.scenario.run.live.node(gated.lead).unwrap();
    assert!(lead.unanswered.is_empty());
}

#[test]
fn an_interrupt_gives_a_held_envelope_up_and_a_late_result_is_ignored() {
    let mut gated = begin_gated(&["make test"]);
    report(&mut gated, true);
    let target = VerificationTarget::Gate(held(&gated));
    let worker = gated.worker;
    gated
        .scenario
        .take(|run, around| interrupt_node(run, around, worker))
        .unwrap();
    let cancel = Effect::CancelVerification(target);
    assert!(gated.scenario.effects.contains(&cancel));
    assert!(gated.scenario.run.live.gates.is_empty());
    let late = end_check_of(&mut gated, target, true);
    assert_eq!(late, Err(Rejection::NotVerifying));
    assert_eq!(inbox_len(&gated, gated.lead), 0);
}

#[test]
fn nothing_is_held_for_a_node_that_is_deleted() {
    for deletes_sender in [true, false] {
        let mut gated = begin_gated(&["make test"]);
        report(&mut gated, true);
        let target = VerificationTarget::Gate(held(&gated));
        let deleted = if deletes_sender {
            gated.worker
        } else {
            gated.lead
        };
        gated
            .scenario
            .take(|run, around| delete_node(run, around, deleted))
            .unwrap();
        assert!(
            gated
                .scenario
                .effects
                .contains(&Effect::CancelVerification(target))
        );
        assert!(gated.scenario.run.live.gates.is_empty());
        if deletes_sender {
            // Its question comes back as a failure.
            assert_eq!(inbox_len(&gated, gated.lead), 1);
        }
    }
}

#[test]
fn a_check_that_a_restart_ended_begins_again() {
    let mut gated = begin_gated(&["make test"]);
    report(&mut gated, true);
    let target = VerificationTarget::Gate(held(&gated));
    let found = Restart {
        resume: false,
        resumable_programs: &[],
        changes: &[],
    };
    gated
        .scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    let place = VerifyPlace::Workspace(gated.worker);
    assert_eq!(gated.scenario.effects, [Effect::Verify { target, place }]);
    end_check(&mut gated, true).unwrap();
    assert_eq!(inbox_len(&gated, gated.lead), 1);
}

#[test]
fn a_quiet_run_waits_for_a_gate_and_says_so() {
    let mut gated = begin_gated(&["make test"]);
    let automatic = RunChange {
        mode: Some(Mode::Auto),
        ..RunChange::default()
    };
    gated
        .scenario
        .take(|run, around| change_run(run, around, automatic))
        .unwrap();
    gated.scenario.complete(gated.worker, "Built.");
    assert_eq!(gated.scenario.turn(gated.lead), None);
    let live = &gated.scenario.run.live;
    let waits = explain(live, gated.scenario.now, Capacity::UNLIMITED).waits;
    let of_worker = waits.iter().find(|wait| wait.node == Some(gated.worker));
    let wait = of_worker.unwrap();
    assert_eq!(
        (&wait.reason, &wait.owner),
        (&WaitReason::Verification, &Owner::Daemon)
    );
}

#[test]
fn a_copy_of_the_run_has_no_held_envelope() {
    let mut gated = begin_gated(&["make test"]);
    gated.scenario.complete(gated.worker, "Built.");
    let copy = RunCopy {
        origin: CopyOrigin::Fork,
        title: None,
        cwd: None,
        keeps: KeptByCopy::default(),
    };
    gated
        .scenario
        .take(|run, around| Ok(settle_copy(run, around, &copy)))
        .unwrap();
    assert!(gated.scenario.run.live.gates.is_empty());
    // The question is answered all the same.
    assert_eq!(inbox_len(&gated, gated.lead), 1);
}
