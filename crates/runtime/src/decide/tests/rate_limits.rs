//! A provider that takes no more for a while.

use super::*;

fn pause(scenario: &mut Scenario, node: NodeId, end: TurnEnd) -> u64 {
    scenario.end(node, end);
    let retry_at = scenario.run.live.node(node).unwrap().retry_at.unwrap();
    retry_at.0 - scenario.now.0
}

#[test]
fn a_limit_that_is_over_already_does_not_start_the_turn_at_once() {
    let passed = || TurnEnd::RateLimited {
        until: Some(Timestamp(5)),
    };
    let at_once = || TurnEnd::RateLimitedFor {
        wait: std::time::Duration::ZERO,
    };
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let mut pauses = Vec::new();
    for number in 0..12 {
        let end = if number % 2 == 0 { passed() } else { at_once() };
        let pause = pause(&mut scenario, node, end);
        pauses.push(pause);
        scenario.pass(pause - 1);
        assert_eq!(scenario.turn(node), None);
        scenario.pass(1);
    }
    let quarter = 15 * 60_000;
    let expect = [
        2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, quarter, quarter,
        quarter,
    ];
    assert_eq!(pauses, expect);
    // A longer pause that the provider names counts, and a turn that completes ends the row.
    let until = Some(Timestamp(scenario.now.0 + 3_600_000));
    assert_eq!(
        pause(&mut scenario, node, TurnEnd::RateLimited { until }),
        3_600_000
    );
    scenario.pass(3_600_000);
    scenario.complete(node, "Done.");
    scenario.chat("a", "Go on");
    assert_eq!(pause(&mut scenario, node, passed()), 2_000);
}
