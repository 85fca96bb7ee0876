//! What a person does to a node.

use super::*;

#[test]
fn a_failed_turn_waits_for_a_person_who_lets_it_try_again() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    scenario.end(
        node,
        TurnEnd::Failed {
            reason: "exit status 1".to_owned(),
        },
    );
    let items = list_attention(&scenario.run.live);
    let kinds: Vec<&AttentionKind> = items.iter().map(|item| &item.kind).collect();
    assert_eq!(
        kinds,
        [&AttentionKind::Failure(turn), &AttentionKind::Finished]
    );
    assert_eq!(items[0].summary, "a: exit status 1");
    scenario
        .take(|run, around| retry_node(run, around, node))
        .unwrap();
    let again = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert_eq!(again.consumed.len(), 1);
    let refused = scenario.take(|run, around| retry_node(run, around, node));
    assert_eq!(refused, Err(Rejection::NothingToRetry));
}

#[test]
fn a_reset_keeps_waiting_inputs_unless_they_are_cleared() {
    for (inbox, expect) in [(ResetInbox::Keep, 1), (ResetInbox::Clear, 0)] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "First");
        scenario.chat("a", "Second");
        scenario
            .take(|run, around| reset_node(run, around, node, inbox))
            .unwrap();
        let effects = [Effect::Interrupt(node), Effect::ResetProgram(node)];
        assert_eq!(scenario.effects, effects);
        assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), expect);
    }
}

fn interrupt(scenario: &mut Scenario, node: NodeId) {
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
}

/// The server has prepared the prompt of a turn that was stopped meanwhile.
fn report_prepared(scenario: &mut Scenario, node: NodeId) {
    let turn = scenario.turn(node).unwrap();
    let sources = PromptSources::default();
    scenario
        .take(|run, around| send_prompt(run, around, node, turn, &sources))
        .unwrap();
}

#[test]
fn a_turn_that_is_stopped_before_its_prompt_does_not_begin_again_by_itself() {
    type GoOn = fn(&mut Scenario, NodeId);
    let ways: [(&str, GoOn, usize); 3] = [
        ("a message", |scenario, _| scenario.chat("a", "More"), 2),
        (
            "a retry",
            |scenario, node| {
                scenario
                    .take(|run, around| retry_node(run, around, node))
                    .unwrap();
            },
            1,
        ),
        (
            "a resumed run",
            |scenario, _| {
                for status in [RunStatus::Paused, RunStatus::Running] {
                    let change = RunChange {
                        status: Some(status),
                        ..RunChange::default()
                    };
                    scenario
                        .take(|run, around| change_run(run, around, change))
                        .unwrap();
                }
            },
            1,
        ),
    ];
    for (way, go_on, expect) in ways {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        interrupt(&mut scenario, node);
        report_prepared(&mut scenario, node);
        assert_eq!(scenario.turn(node), None, "{way}");
        assert_eq!(
            scenario.run.live.node(node).unwrap().inbox.len(),
            1,
            "{way}"
        );
        scenario.pass(1_000);
        assert_eq!(scenario.turn(node), None, "{way}");
        go_on(&mut scenario, node);
        let turn = scenario.run.live.node(node).unwrap().turn.as_ref();
        assert_eq!(turn.unwrap().consumed.len(), expect, "{way}");
    }
}

#[test]
fn a_message_that_interrupts_a_turn_before_its_prompt_starts_the_next_one_at_once() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let message = Chat {
        content: "No, this",
        node: Some("a"),
        interrupt: true,
    };
    scenario
        .take(|run, around| chat(run, around, message))
        .unwrap();
    report_prepared(&mut scenario, node);
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref();
    assert_eq!(turn.unwrap().consumed.len(), 2);
}

#[test]
fn only_inputs_that_the_program_has_not_seen_go_back() {
    for (requeue, expect) in [(true, 1), (false, 0)] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        prepare(&mut scenario, node, "You write code.");
        interrupt(&mut scenario, node);
        let reason = "interrupted".to_owned();
        scenario.end(node, TurnEnd::Interrupted { reason, requeue });
        assert_eq!(scenario.turn(node), None);
        assert_eq!(scenario.run.live.node(node).unwrap().inbox.len(), expect);
    }
}

#[test]
fn a_question_in_an_inbox_that_is_cleared_is_answered() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("worker", "Go");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario
        .take(|run, around| reset_node(run, around, worker, ResetInbox::Clear))
        .unwrap();
    let lead = scenario.run.live.node(lead).unwrap();
    assert!(lead.unanswered.is_empty());
    let [Input::Envelope(answer)] = lead.inbox.inputs() else {
        panic!("one answer: {:?}", lead.inbox);
    };
    let status = answer.status.as_ref().unwrap();
    assert_eq!(status.reason.as_deref(), Some("the inbox was cleared"));
}

#[test]
fn a_question_that_an_interrupted_turn_has_read_is_answered_when_the_inbox_is_cleared() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    let waits = NodeSettings {
        wake_on: WakeOn::All,
        ..node_settings("lead", "orchestrator")
    };
    scenario
        .take(|run, around| change_node(run, around, lead, waits))
        .unwrap();
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    prepare(&mut scenario, worker, "You write code.");
    let pause = RunChange {
        status: Some(RunStatus::Paused),
        interrupt: true,
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, pause))
        .unwrap();
    let reason = "paused by the user".to_owned();
    let requeue = false;
    scenario.end(worker, TurnEnd::Interrupted { reason, requeue });
    assert_eq!(scenario.run.live.node(worker).unwrap().owed.len(), 1);
    scenario
        .take(|run, around| reset_node(run, around, worker, ResetInbox::Clear))
        .unwrap();
    let asker = scenario.run.live.node(lead).unwrap();
    assert!(asker.unanswered.is_empty() && asker.awaited_replies.is_empty());
    assert_eq!(asker.inbox.len(), 1);
}

#[test]
fn a_summary_says_nothing_that_is_over() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let summary = |scenario: &Scenario| scenario.run.live.node(node).unwrap().summary.clone();
    scenario.chat("a", "Go");
    scenario.complete(node, "Done.");
    assert_eq!(summary(&scenario), "Done.");
    scenario.chat("a", "More");
    assert_eq!(summary(&scenario), "");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    assert_eq!(summary(&scenario), "waits for approval: runs make");
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    assert_eq!(summary(&scenario), "");
}

#[test]
fn a_retry_and_an_answer_reopen_a_run_that_has_ended() {
    for status in [RunStatus::Completed, RunStatus::Failed] {
        for (verdict, expect) in [
            (None, RunStatus::Running),
            (Some(Verdict::Approved), RunStatus::Running),
            // Who gives no answer wants nothing done.
            (Some(Verdict::Denied), status),
        ] {
            let mut scenario = Scenario::begin(settings());
            let node = scenario.add("a", "implementer");
            scenario.add("b", "implementer");
            scenario.chat("a", "Go");
            let question = OrchestrationCall::AskUser {
                question: "Is it good?".to_owned(),
                options: Vec::new(),
            };
            call(&mut scenario, node, question).unwrap();
            let reason = "exit status 1".to_owned();
            scenario.end(node, TurnEnd::Failed { reason });
            let ended = RunChange {
                status: Some(status),
                ..RunChange::default()
            };
            scenario
                .take(|run, around| change_run(run, around, ended))
                .unwrap();
            let approval = *scenario.run.live.approvals.keys().next().unwrap();
            match verdict {
                None => scenario
                    .take(|run, around| retry_node(run, around, node))
                    .unwrap(),
                Some(verdict) => {
                    answer(&mut scenario, approval, verdict, Scope::Once).unwrap();
                }
            }
            assert_eq!(scenario.run.live.status, expect, "{status} {verdict:?}");
            let works = expect == RunStatus::Running;
            assert_eq!(scenario.turn(node).is_some(), works);
        }
    }
}

/// Begins a turn with a prompt. `resumes` says whether the program continues its sessions.
fn begin_prompted(resumes: bool) -> (Scenario, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    let sources = PromptSources {
        resumes,
        ..PromptSources::default()
    };
    scenario
        .take(|run, around| send_prompt(run, around, node, turn, &sources))
        .unwrap();
    scenario.output(node, turn, Output::Session("s-1".to_owned()));
    (scenario, node)
}

#[test]
fn a_paused_turn_of_a_program_that_forgets_begins_again() {
    for (resumes, expect) in [(true, MessageRole::System), (false, MessageRole::User)] {
        let (mut scenario, node) = begin_prompted(resumes);
        for status in [RunStatus::Paused, RunStatus::Running] {
            let change = RunChange {
                status: Some(status),
                interrupt: true,
                ..RunChange::default()
            };
            scenario
                .take(|run, around| change_run(run, around, change))
                .unwrap();
            if status == RunStatus::Paused {
                let reason = "paused by the user".to_owned();
                let requeue = false;
                scenario.end(node, TurnEnd::Interrupted { reason, requeue });
            }
        }
        let turn = scenario.run.live.node(node).unwrap().turn.as_ref();
        let [Input::Message(message)] = &turn.unwrap().consumed[..] else {
            panic!("one message: {turn:?}");
        };
        assert_eq!(message.role, expect, "{resumes}");
    }
}

#[test]
fn another_provider_gets_the_inputs_of_the_turn_that_it_takes_over() {
    let (mut scenario, node) = begin_prompted(true);
    let other = NodeSettings {
        provider: Provider::Codex,
        ..node_settings("a", "implementer")
    };
    scenario
        .take(|run, around| change_node(run, around, node, other))
        .unwrap();
    let reason = "interrupted".to_owned();
    let requeue = false;
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    let turn = scenario.run.live.node(node).unwrap().turn.as_ref().unwrap();
    assert!(matches!(&turn.consumed[..], [Input::Message(message)] if message.content == "Go"));
}
