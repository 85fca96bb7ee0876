//! What happens only because time passes.

use super::*;

#[test]
fn a_silent_turn_is_noticed_and_then_stopped() {
    const MINUTE_MS: u64 = 60_000;
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    let deadline = |scenario: &Scenario| {
        let capacity = Capacity {
            turns: 8,
            parked_programs: &[],
            full_programs: &[],
        };
        next_deadline(&scenario.run.live, scenario.now, capacity, &scenario.heard)
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

#[test]
fn a_watchdog_of_zero_is_off() {
    const DAY_MS: u64 = 24 * 60 * 60_000;
    let limits = RunLimits {
        silence_warn_ms: 0,
        silence_end_ms: 0,
        turn_end_ms: 0,
        ..RunLimits::default()
    };
    let mut scenario = Scenario::begin(RunSettings {
        limits,
        ..settings()
    });
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    let deadline = next_deadline(
        &scenario.run.live,
        scenario.now,
        Capacity::UNLIMITED,
        &scenario.heard,
    );
    assert_eq!(deadline, None);
    let before = scenario.log.len();
    scenario.pass(DAY_MS);
    assert_eq!(
        (scenario.names_from(before), &scenario.effects[..]),
        (vec![], &[][..])
    );
    assert_eq!(scenario.status(node), NodeStatus::Running);
}

#[test]
fn a_program_that_prints_bytes_is_not_silent_and_each_silence_is_warned_about() {
    const MINUTE_MS: u64 = 60_000;
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    // A byte makes no event: only the surroundings tell of it.
    let print_byte = |scenario: &mut Scenario| {
        let now = scenario.now;
        scenario.heard.insert(node, now);
    };
    let warnings = |scenario: &Scenario| {
        let facts = scenario.log.iter().map(|event| &event.fact);
        facts
            .filter(|fact| matches!(fact, Fact::SilenceNoticed))
            .count()
    };
    for _ in 0..20 {
        scenario.pass(2 * MINUTE_MS);
        print_byte(&mut scenario);
    }
    assert_eq!(warnings(&scenario), 0);
    scenario.pass(3 * MINUTE_MS);
    scenario.pass(MINUTE_MS);
    assert_eq!(warnings(&scenario), 1, "once for this silence");
    print_byte(&mut scenario);
    scenario.pass(3 * MINUTE_MS);
    assert_eq!(warnings(&scenario), 2, "once for the next one");
    scenario.pass(12 * MINUTE_MS);
    assert_eq!(scenario.effects, [Effect::Interrupt(node)]);
}
