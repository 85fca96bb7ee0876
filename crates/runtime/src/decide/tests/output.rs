//! What programs report between turns.

use super::*;

fn idle_output(scenario: &mut Scenario, node: NodeId, output: Output) -> Result<(), Rejection> {
    scenario.take(|run, around| add_idle_output(run, around, node, output))
}

#[test]
fn a_session_and_usage_are_kept_also_when_no_turn_is_open() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let before = scenario.log.len();
    idle_output(&mut scenario, node, Output::Session("s-1".to_owned())).unwrap();
    let used = Usage {
        completion_tokens: 7,
        ..Usage::default()
    };
    idle_output(&mut scenario, node, Output::Usage(used)).unwrap();
    assert_eq!(
        scenario.names_from(before),
        ["node.patch", "telemetry.usage"]
    );
    let known = scenario.run.live.node(node).unwrap();
    assert_eq!(known.session.id.as_deref(), Some("s-1"));
    assert_eq!((known.usage, scenario.run.live.usage), (used, used));
    let text = Output::AnswerFinal("late".to_owned());
    assert_eq!(
        idle_output(&mut scenario, node, text),
        Err(Rejection::TurnOver)
    );
}

#[test]
fn what_a_turn_cost_counts_also_after_its_end() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    scenario.complete(node, "Done.");
    let used = Usage {
        prompt_tokens: 11,
        ..Usage::default()
    };
    let late = Output::Usage(used);
    scenario
        .take(|run, around| add_output(run, around, node, turn, late))
        .unwrap();
    assert_eq!(scenario.run.live.usage, used);
    assert_eq!(scenario.log.last().unwrap().turn, None);
}
