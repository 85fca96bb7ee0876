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
