//! What a copy of a run leaves to its origin.

use super::*;

/// Copies the run of a scenario in place.
fn copy(scenario: &mut Scenario, origin: CopyOrigin) -> usize {
    let before = scenario.log.len();
    let keeps = match origin {
        CopyOrigin::Fork => KeptByCopy::all_of(&scenario.run.live),
        CopyOrigin::Import => KeptByCopy::default(),
    };
    let copy = RunCopy {
        origin,
        title: Some("Another way".to_owned()),
        cwd: None,
        keeps,
    };
    scenario
        .take(|run, around| Ok(settle_copy(run, around, &copy)))
        .unwrap();
    before
}

#[test]
fn a_fork_is_paused_and_has_the_inputs_but_no_session_workspace_or_open_approval() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let turn = scenario.turn(node).unwrap();
    let named = Output::Session("s-1".to_owned());
    scenario
        .take(|run, around| add_output(run, around, node, turn, named))
        .unwrap();
    ask(&mut scenario, node, "make");
    assert!(scenario.run.live.node(node).unwrap().workspace.is_some());
    scenario.effects.clear();
    copy(&mut scenario, CopyOrigin::Fork);
    let live = &scenario.run.live;
    assert_eq!(live.status, RunStatus::Paused);
    assert_eq!(live.paused_reason, Some(PausedReason::User));
    assert_eq!(live.settings.title, "Another way");
    assert!(live.approvals.is_empty());
    let copied = live.node(node).unwrap();
    assert_eq!(copied.turn, None);
    assert_eq!(copied.inbox.len(), 1);
    assert_eq!(copied.session.id, None);
    assert!(
        copied.session.was_lost,
        "the next prompt recalls the last turns"
    );
    assert_eq!(copied.workspace, None);
    assert_eq!(copied.status, NodeStatus::Idle);
    assert!(scenario.effects.is_empty(), "{:?}", scenario.effects);
}

#[test]
fn a_fork_goes_on_by_itself_once_it_is_resumed() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let first = scenario.turn(node);
    copy(&mut scenario, CopyOrigin::Fork);
    let resume = RunChange {
        status: Some(RunStatus::Running),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, resume))
        .unwrap();
    assert!(scenario.turn(node).is_some_and(|turn| Some(turn) != first));
}

#[test]
fn rules_of_a_fork_have_new_ids_and_an_import_has_none() {
    for (origin, count) in [(CopyOrigin::Fork, 1), (CopyOrigin::Import, 0)] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "npm test") else {
            panic!("no rule allows it");
        };
        answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
        let before = scenario.run.live.rules.clone();
        assert_eq!(before.len(), 1);
        copy(&mut scenario, origin);
        let after = &scenario.run.live.rules;
        assert_eq!(after.len(), count, "{origin:?}");
        assert!(after.iter().all(|rule| rule.id != before[0].id));
    }
}

#[test]
fn an_ended_run_stays_ended_as_an_import_and_is_paused_as_a_fork() {
    for (origin, status) in [
        (CopyOrigin::Fork, RunStatus::Paused),
        (CopyOrigin::Import, RunStatus::Completed),
    ] {
        let mut scenario = Scenario::begin(settings());
        let complete = RunChange {
            status: Some(RunStatus::Completed),
            ..RunChange::default()
        };
        scenario
            .take(|run, around| change_run(run, around, complete))
            .unwrap();
        let before = copy(&mut scenario, origin);
        assert_eq!(scenario.run.live.status, status, "{origin:?}");
        assert_eq!(scenario.log[before].fact.wire_name(), "run.patch");
    }
}

/// A fork at an earlier event sees a rule that its origin has lost since, and the world that the origin
/// was in on another machine.
#[test]
fn a_copy_brings_back_nothing_that_its_origin_has_lost() {
    let mut scenario = Scenario::begin(RunSettings {
        world: Some("shop".to_owned()),
        ..settings()
    });
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "npm test") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    let copy = RunCopy {
        origin: CopyOrigin::Fork,
        title: None,
        cwd: Some("/here".to_owned()),
        keeps: KeptByCopy::default(),
    };
    scenario
        .take(|run, around| Ok(settle_copy(run, around, &copy)))
        .unwrap();
    let live = &scenario.run.live;
    assert_eq!(live.rules, []);
    assert_eq!(live.settings.world, None);
    assert_eq!(live.settings.cwd.as_deref(), Some("/here"));
}
