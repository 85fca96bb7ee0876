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
