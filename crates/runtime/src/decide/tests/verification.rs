//! Claims that a run has reached its goal.

use super::*;

fn claim(scenario: &mut Scenario, node: NodeId) -> ToolAnswer {
    let summary = "All done".to_owned();
    call(scenario, node, OrchestrationCall::CompleteRun { summary }).unwrap()
}

fn verified(scenario: &mut Scenario, ok: bool) {
    verified_with(scenario, ok, None);
}

fn verified_with(scenario: &mut Scenario, ok: bool, changes: Option<DiffTaken>) {
    let under_way = scenario.run.live.verification.unwrap();
    let end = VerificationEnd {
        target: VerificationTarget::Run(under_way.id),
        ok,
        report: Bytes::from_static(b"{}"),
        tail: "1 test failed".to_owned(),
        signature: "make test: 2".to_owned(),
        changes,
    };
    scenario
        .take(|run, around| end_verification(run, around, &end))
        .unwrap();
}

#[test]
fn a_run_is_completed_only_by_a_claim_that_passes_verification() {
    let checked = RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    };
    let mut scenario = Scenario::begin(checked);
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    let before = scenario.log.len();
    assert!(matches!(
        claim(&mut scenario, lead),
        ToolAnswer::Pending { approval: None, .. }
    ));
    assert_eq!(scenario.run.live.phase, Phase::Verify);
    verified(&mut scenario, false);
    assert_eq!(scenario.run.live.phase, Phase::Execute);
    assert_eq!(scenario.run.live.node(lead).unwrap().inbox.len(), 1);
    claim(&mut scenario, lead);
    verified(&mut scenario, true);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
    let phases: Vec<&str> = scenario
        .names_from(before)
        .into_iter()
        .filter(|name| matches!(*name, "run.phase" | "run.patch" | "handoff.sent"))
        .collect();
    let expect = [
        "run.phase",
        "handoff.sent",
        "run.phase",
        "run.phase",
        "run.phase",
        "run.patch",
    ];
    assert_eq!(phases, expect);
    // Nothing starts in a completed run.
    scenario.complete(lead, "Completed.");
    assert_eq!(scenario.turn(lead), None);
}

/// A run with a docs node and without verification commands, and a lead that works.
fn begin_with_docs() -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let docs = scenario.add("docs", "docs");
    let with_docs = RunSettings {
        docs_node: Some(docs),
        ..settings()
    };
    let change = RunChange {
        settings: Some(with_docs),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
    scenario.chat("lead", "Go");
    (scenario, lead, docs)
}

#[test]
fn a_docs_node_gets_the_changes_before_the_run_is_done_and_cannot_undo_it() {
    let (mut scenario, lead, docs) = begin_with_docs();
    claim(&mut scenario, lead);
    // Without a command, too: only the server knows the changes.
    assert_eq!(scenario.run.live.phase, Phase::Verify);
    let mut changes = DiffTaken {
        patch: Bytes::from_static(b"diff --git a/x b/x"),
        ..DiffTaken::default()
    };
    changes.summary.files_changed = vec!["x".to_owned()];
    verified_with(&mut scenario, true, Some(changes));
    assert_eq!(scenario.run.live.phase, Phase::DocsSync);
    let inbox = scenario.run.live.node(docs).unwrap().inbox.inputs();
    let [Input::Envelope(envelope)] = inbox else {
        panic!("one envelope waits: {inbox:?}")
    };
    let artifact = scenario
        .run
        .archive
        .artifact(envelope.artifacts[0])
        .unwrap();
    assert_eq!(artifact.kind, ArtifactKind::Diff);
    assert_eq!(artifact.content, BlobHash::of(b"diff --git a/x b/x"));
    assert_eq!(artifact.diff.as_ref().unwrap().files_changed, ["x"]);
    scenario.pass(300);
    scenario.end(
        docs,
        TurnEnd::Failed {
            reason: "exit status 1".to_owned(),
        },
    );
    assert_eq!(scenario.run.live.phase, Phase::Done);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
}

fn begin_checked() -> (Scenario, NodeId) {
    let checked = RunSettings {
        verify: vec!["make test".to_owned()],
        ..settings()
    };
    let mut scenario = Scenario::begin(checked);
    let lead = scenario.add("lead", "orchestrator");
    scenario.chat("lead", "Go");
    prepare(&mut scenario, lead, "You lead.");
    (scenario, lead)
}

/// The answer that the claim got.
fn claim_answer(scenario: &Scenario) -> Option<Result<serde_json::Value, String>> {
    scenario.effects.iter().find_map(|effect| match effect {
        Effect::AnswerToolCall { result, .. } => Some(result.clone()),
        _ => None,
    })
}

#[test]
fn a_message_that_comes_while_the_claim_is_verified_is_read_before_the_run_is_done() {
    let (mut scenario, lead) = begin_checked();
    claim(&mut scenario, lead);
    scenario.chat("lead", "One more thing");
    verified(&mut scenario, true);
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    assert_eq!(scenario.run.live.phase, Phase::Execute);
    let refusal = claim_answer(&scenario).unwrap().unwrap_err();
    assert!(
        refusal.contains("a message of the user waits for lead"),
        "{refusal}"
    );
    // While it waits, another claim is refused at once.
    let summary = "All done".to_owned();
    let again = call(
        &mut scenario,
        lead,
        OrchestrationCall::CompleteRun { summary },
    );
    assert!(matches!(again, Err(Rejection::NotComplete(_))), "{again:?}");
    scenario.complete(lead, "I look at it.");
    let turn = scenario.run.live.node(lead).unwrap().turn.as_ref().unwrap();
    assert!(turn.consumed[0].is_chat());
    claim(&mut scenario, lead);
    verified(&mut scenario, true);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
}

#[test]
fn a_message_that_comes_while_the_documents_are_written_reopens_the_run() {
    let (mut scenario, lead, docs) = begin_with_docs();
    claim(&mut scenario, lead);
    verified(&mut scenario, true);
    let summary = "All done".to_owned();
    let again = call(
        &mut scenario,
        lead,
        OrchestrationCall::CompleteRun { summary },
    );
    assert!(matches!(again, Err(Rejection::NotComplete(_))), "{again:?}");
    let refused = scenario.take(verify);
    assert!(
        matches!(refused, Err(Rejection::CannotVerify(_))),
        "{refused:?}"
    );
    scenario.pass(300);
    scenario.chat("lead", "One more thing");
    scenario.complete(docs, "Written.");
    assert_eq!(scenario.run.live.phase, Phase::Execute);
    scenario.complete(lead, "Completed?");
    assert!(scenario.turn(lead).is_some(), "the message is read");
}

#[test]
fn stopping_the_claimer_stops_the_verification_and_its_late_result_is_ignored() {
    for stop in ["interrupt", "pause", "reset", "delete"] {
        let (mut scenario, lead) = begin_checked();
        claim(&mut scenario, lead);
        let old = scenario.run.live.verification.unwrap();
        let target = VerificationTarget::Run(old.id);
        let pause = RunChange {
            status: Some(RunStatus::Paused),
            interrupt: true,
            ..RunChange::default()
        };
        scenario
            .take(|run, around| match stop {
                "interrupt" => interrupt_node(run, around, lead),
                "pause" => change_run(run, around, pause),
                "reset" => reset_node(run, around, lead, ResetInbox::Keep),
                _ => delete_node(run, around, lead),
            })
            .unwrap();
        let cancel = Effect::CancelVerification(target);
        assert!(scenario.effects.contains(&cancel), "{stop}");
        assert_eq!(scenario.run.live.phase, Phase::Execute, "{stop}");
        assert_eq!(
            claim_answer(&scenario).is_some(),
            stop != "delete",
            "{stop}"
        );
        let end = VerificationEnd {
            target,
            ok: true,
            report: Bytes::new(),
            tail: String::new(),
            signature: String::new(),
            changes: None,
        };
        let late = scenario.take(|run, around| end_verification(run, around, &end));
        assert_eq!(late, Err(Rejection::NotVerifying), "{stop}");
        assert_ne!(scenario.run.live.status, RunStatus::Completed, "{stop}");
    }
}

#[test]
fn the_result_of_an_older_verification_does_not_end_a_newer_one() {
    let (mut scenario, lead) = begin_checked();
    claim(&mut scenario, lead);
    let old = scenario.run.live.verification.unwrap();
    scenario
        .take(|run, around| interrupt_node(run, around, lead))
        .unwrap();
    let (reason, requeue) = ("interrupted".to_owned(), false);
    scenario.end(lead, TurnEnd::Interrupted { reason, requeue });
    scenario.chat("lead", "Go on");
    claim(&mut scenario, lead);
    let end = VerificationEnd {
        target: VerificationTarget::Run(old.id),
        ok: true,
        report: Bytes::new(),
        tail: String::new(),
        signature: String::new(),
        changes: None,
    };
    let late = scenario.take(|run, around| end_verification(run, around, &end));
    assert_eq!(late, Err(Rejection::NotVerifying));
    assert_eq!(scenario.run.live.phase, Phase::Verify);
}

#[test]
fn a_restart_answers_the_claim_that_was_being_verified() {
    let (mut scenario, lead) = begin_checked();
    claim(&mut scenario, lead);
    let found = Restart {
        resume: false,
        resumable_programs: &[],
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    assert_eq!(scenario.run.live.phase, Phase::Execute);
    let inbox = scenario.run.live.node(lead).unwrap().inbox.inputs();
    let is_note = |input: &Input| {
        matches!(input, Input::Message(note) if note.role == MessageRole::System
            && note.content.contains("Call complete_run again"))
    };
    assert!(inbox.iter().any(is_note), "{inbox:?}");
}

#[test]
fn a_person_verifies_a_run_without_completing_it() {
    for (ok, expect) in [(true, None), (false, Some("make test: 2"))] {
        let (mut scenario, lead) = begin_checked();
        let before = scenario.log.len();
        let id = scenario.take(verify).unwrap();
        let target = VerificationTarget::Run(id);
        let place = crate::effect::VerifyPlace::IntegrationTree;
        assert_eq!(scenario.effects, [Effect::Verify { target, place }]);
        // Another one, and a claim, have to wait.
        let again = scenario.take(verify);
        let reason = "a verification is under way";
        assert_eq!(again, Err(Rejection::CannotVerify(reason)));
        let summary = "All done".to_owned();
        let claimed = call(
            &mut scenario,
            lead,
            OrchestrationCall::CompleteRun { summary },
        );
        assert!(matches!(claimed, Err(Rejection::NotComplete(_))));
        verified(&mut scenario, ok);
        let names = ["run.phase", "artifact.created", "run.phase"];
        assert_eq!(scenario.names_from(before), names);
        let failure = scenario.log.last().and_then(|event| match &event.fact {
            Fact::VerificationFailed { signature } => Some(signature.as_str()),
            _ => None,
        });
        assert_eq!(failure, expect);
        assert_eq!(scenario.run.live.phase, Phase::Execute);
        assert_eq!(scenario.run.live.status, RunStatus::Running);
        assert_eq!(scenario.run.live.node(lead).unwrap().inbox.len(), 0);
    }
}

/// A run that a person has completed.
fn begin_completed() -> Scenario {
    let (mut scenario, _) = begin_checked();
    let complete = RunChange {
        status: Some(RunStatus::Completed),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, complete))
        .unwrap();
    scenario
}

#[test]
fn a_completed_run_can_be_verified_and_stays_completed() {
    for ok in [true, false] {
        let mut scenario = begin_completed();
        scenario.take(verify).unwrap();
        assert_eq!(scenario.run.live.phase, Phase::Verify);
        verified(&mut scenario, ok);
        assert_eq!(scenario.run.live.phase, Phase::Done);
        assert_eq!(scenario.run.live.status, RunStatus::Completed);
    }
    // The server ends in between, or the run is copied.
    let mut scenario = begin_completed();
    scenario.take(verify).unwrap();
    let found = Restart {
        resume: false,
        resumable_programs: &[],
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
    assert_eq!(scenario.run.live.phase, Phase::Done);
}

#[test]
fn a_message_reopens_a_completed_run_and_its_verification_goes_on() {
    let mut scenario = begin_completed();
    let id = scenario.take(verify).unwrap();
    scenario.chat("lead", "One more thing");
    assert_eq!(scenario.run.live.status, RunStatus::Running);
    assert_eq!(scenario.run.live.phase, Phase::Verify);
    assert_eq!(
        scenario.run.live.verification.map(|known| known.id),
        Some(id)
    );
    verified(&mut scenario, true);
    assert_eq!(scenario.run.live.phase, Phase::Execute);
}

#[test]
fn a_person_who_completes_the_run_ends_the_verification() {
    let (mut scenario, lead) = begin_checked();
    claim(&mut scenario, lead);
    let complete = RunChange {
        status: Some(RunStatus::Completed),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, complete))
        .unwrap();
    assert_eq!(scenario.run.live.phase, Phase::Done);
    assert!(claim_answer(&scenario).is_some());
}
