//! Full and shorter prompts.

use super::*;

#[test]
fn a_session_gets_everything_once_and_then_only_what_is_new() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "First");
    let before = scenario.log.len();
    let prompt = prepare(&mut scenario, node, "You write code.");
    assert_eq!(
        scenario.names_from(before),
        ["artifact.created", "artifact.created", "waiting_for_model"]
    );
    assert!(
        prompt.contains("You write code.") && prompt.contains("First"),
        "{prompt}"
    );
    let turn = scenario.turn(node).unwrap();
    let named = Output::Session("s-1".to_owned());
    scenario
        .take(|run, around| add_output(run, around, node, turn, named))
        .unwrap();
    scenario.complete(node, "Done.");

    scenario.chat("a", "Second");
    let prompt = prepare(&mut scenario, node, "You write code.");
    assert!(
        !prompt.contains("You write code.") && prompt.contains("Second"),
        "{prompt}"
    );
    assert!(
        prompt.starts_with("The run is in IMPLEMENTATION mode."),
        "{prompt}"
    );
    scenario.complete(node, "Done again.");

    // An edited role template counts at the next turn.
    scenario.chat("a", "Third");
    let prompt = prepare(&mut scenario, node, "You write tests.");
    assert!(prompt.contains("You write tests."), "{prompt}");
}
