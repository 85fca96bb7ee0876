//! What happens only because time passes.

use super::*;

#[test]
fn a_silent_turn_is_noticed_and_then_stopped() {
    const MINUTE_MS: u64 = 60_000;
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let deadline = |scenario: &Scenario| {
        let capacity = Capacity {
            turns: 8,
            parked_programs: &[],
            full_programs: &[],
        };
        next_deadline(&scenario.run.live, scenario.now, capacity)
            .unwrap()
            .0
            - scenario.now.0
    };
    assert_eq!(deadline(&scenario), 3 * MINUTE_MS);
    let before = scenario.log.len();
    scenario.pass(3 * MINUTE_MS);
    assert_eq!(scenario.names_from(before), ["node.progress"]);
    // A tool that runs may be silent for as long as the turn may last.
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
    scenario.pass(60 * MINUTE_MS);
    assert_eq!(scenario.effects, []);
    scenario.pass(57 * MINUTE_MS);
    assert_eq!(scenario.effects, [Effect::Interrupt(node)]);
    scenario.pass(19_999);
    assert_eq!(scenario.effects, [], "it is being stopped");
    scenario.pass(1);
    assert_eq!(scenario.effects, [Effect::EndProgram(node)]);
}

#[test]
fn an_approval_expires_only_where_the_settings_say_so() {
    for (approval_ms, expect) in [(0, NodeStatus::Blocked), (1_000, NodeStatus::Running)] {
        let limits = RunLimits {
            approval_ms,
            ..RunLimits::default()
        };
        let mut scenario = Scenario::begin(RunSettings {
            limits,
            ..settings()
        });
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        ask(&mut scenario, node, "make");
        scenario.pass(1_000);
        assert_eq!(scenario.status(node), expect, "{approval_ms}");
    }
}

#[test]
fn a_turn_that_timed_out_has_failed_also_if_it_had_to_be_killed() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.add("b", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    scenario.pass(15 * 60_000);
    for _ in 0..2 {
        scenario.pass(20_000);
        assert_eq!(scenario.effects, [Effect::EndProgram(node)]);
    }
    let (reason, requeue) = ("interrupted".to_owned(), false);
    scenario.end(node, TurnEnd::Interrupted { reason, requeue });
    assert_eq!(scenario.status(node), NodeStatus::Failed);
    assert_eq!(
        scenario.run.live.node(node).unwrap().summary,
        "timed out: it printed nothing, and it was killed because it did not stop"
    );
}
