//! Decisions that wait for a person.

use super::*;
use crate::approval::RuleMatcher;

#[test]
fn an_approval_blocks_its_node_until_the_first_answer() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let before = scenario.log.len();
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "npm test") else {
        panic!("no rule allows it");
    };
    assert_eq!(scenario.status(node), NodeStatus::Blocked);
    answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    assert_eq!(
        scenario.names_from(before),
        [
            "tool.proposed",
            "approval.requested",
            "awaiting_approval",
            "node.patch",
            "run.patch",
            "approval.resolved",
            "node.patch",
            "tool.started",
        ]
    );
    assert_eq!(scenario.status(node), NodeStatus::Running);
    let again = answer(&mut scenario, approval, Verdict::Denied, Scope::Once).unwrap_err();
    assert_eq!(
        again.to_string(),
        "the approval was approved already, in the web UI"
    );
    // The scope made a rule for the same command, and for nothing that only begins like it.
    assert_eq!(
        ask(&mut scenario, node, "npm test"),
        PermissionAnswer::AllowedByRule
    );
    assert!(matches!(
        ask(&mut scenario, node, "npm test; rm x"),
        PermissionAnswer::Waits(_)
    ));
}

fn ask_about(scenario: &mut Scenario, node: NodeId, call: &str) -> PermissionAnswer {
    let permission = Permission {
        node,
        turn: scenario.turn(node).unwrap(),
        tool_name: "command".to_owned(),
        args: json!({"cmd": "make"}),
        provider_id: Some(call.to_owned()),
        context: "runs make".to_owned(),
        can_allow_always: false,
    };
    scenario
        .take(|run, around| ask_permission(run, around, permission))
        .unwrap()
}

#[test]
fn a_question_that_the_program_takes_back_is_denied_and_the_node_goes_on() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(first) = ask_about(&mut scenario, node, "call-1") else {
        panic!("no rule allows it");
    };
    ask_about(&mut scenario, node, "call-2");
    let withdrawn = |call: &str, scenario: &Scenario| WithdrawnPermission {
        node,
        turn: scenario.turn(node).unwrap(),
        provider_id: call.to_owned(),
        reason: "the program does not wait for it any more".to_owned(),
    };
    for (call, status) in [
        ("call-1", NodeStatus::Blocked),
        ("call-2", NodeStatus::Running),
    ] {
        let taken_back = withdrawn(call, &scenario);
        scenario
            .take(|run, around| withdraw_permission(run, around, &taken_back))
            .unwrap();
        assert_eq!(scenario.status(node), status, "{call}");
    }
    let resolution = scenario.run.archive.resolution(first).unwrap();
    assert_eq!(resolution.verdict, Verdict::Denied);
    assert_eq!(
        resolution.reason.as_deref(),
        Some("the program does not wait for it any more")
    );
    let again = withdrawn("call-1", &scenario);
    let refused = scenario.take(|run, around| withdraw_permission(run, around, &again));
    assert_eq!(refused, Err(Rejection::NoPermissionAsked));
}

#[test]
fn a_turn_that_is_being_stopped_asks_nobody_and_starts_nothing() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "orchestrator");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You lead.");
    scenario
        .take(|run, around| interrupt_node(run, around, node))
        .unwrap();
    assert_eq!(
        ask_about(&mut scenario, node, "call-1"),
        PermissionAnswer::Denied
    );
    let [Effect::AnswerPermission { resolution, .. }] = &scenario.effects[..] else {
        panic!("the program is answered: {:?}", scenario.effects);
    };
    assert_eq!(resolution.verdict, Verdict::Denied);
    assert_eq!(scenario.status(node), NodeStatus::Running);
    let question = OrchestrationCall::AskUser {
        question: "Which colour?".to_owned(),
        options: Vec::new(),
    };
    let refused = call(&mut scenario, node, question);
    assert_eq!(refused, Err(Rejection::TurnStopping));
}

/// Begins another turn of a node under this mode.
fn begin_turn_in(scenario: &mut Scenario, node: NodeId, mode: GlobalMode) {
    if scenario.turn(node).is_some() {
        scenario.complete(node, "Done.");
    }
    let change = RunChange {
        global_mode: Some(mode),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
    scenario.chat("a", "Go on");
}

#[test]
fn a_rule_of_the_implementation_answers_nothing_while_the_run_is_planning() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let allow_for_run = |scenario: &mut Scenario, command: &str| {
        let PermissionAnswer::Waits(approval) = ask(scenario, node, command) else {
            panic!("no rule allows {command}");
        };
        answer(scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    };
    let is_allowed = |scenario: &mut Scenario, command: &str| {
        let asked = ask(scenario, node, command);
        if let PermissionAnswer::Waits(approval) = asked {
            answer(scenario, approval, Verdict::Denied, Scope::Once).unwrap();
        }
        asked == PermissionAnswer::AllowedByRule
    };
    begin_turn_in(&mut scenario, node, GlobalMode::Implementation);
    allow_for_run(&mut scenario, "make");
    // A change of the mode holds from the next turn on.
    let change = RunChange {
        global_mode: Some(GlobalMode::Planning),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
    assert!(is_allowed(&mut scenario, "make"));
    begin_turn_in(&mut scenario, node, GlobalMode::Planning);
    assert!(!is_allowed(&mut scenario, "make"));
    allow_for_run(&mut scenario, "ls");
    assert!(is_allowed(&mut scenario, "ls"));
    begin_turn_in(&mut scenario, node, GlobalMode::Implementation);
    assert!(is_allowed(&mut scenario, "make") && is_allowed(&mut scenario, "ls"));
}

/// Asks about a call of which no rule can be made.
fn ask_to_fetch(scenario: &mut Scenario, node: NodeId, can_allow_always: bool) -> ApprovalId {
    let permission = Permission {
        node,
        turn: scenario.turn(node).unwrap(),
        tool_name: "fetch".to_owned(),
        args: json!({"url": "http://localhost"}),
        provider_id: None,
        context: "use fetch".to_owned(),
        can_allow_always,
    };
    let asked = scenario.take(|run, around| ask_permission(run, around, permission));
    let PermissionAnswer::Waits(approval) = asked.unwrap() else {
        panic!("no rule allows it");
    };
    approval
}

#[test]
fn a_scope_that_nothing_could_keep_is_refused_and_the_approval_stays_open() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let mut check = |can_allow_always: bool, scope: Scope, expect: Result<(), &str>| {
        let approval = ask_to_fetch(&mut scenario, node, can_allow_always);
        let answered = answer(&mut scenario, approval, Verdict::Approved, scope);
        let answered = answered.map_err(|error| error.to_string());
        assert_eq!(answered, expect.map_err(str::to_owned), "{scope}");
        if expect.is_err() {
            answer(&mut scenario, approval, Verdict::Approved, Scope::Once).unwrap();
        }
        assert_eq!(scenario.run.live.rules, []);
    };
    let once = "no rule can be made of this call: approve it once";
    let for_node = "no rule can be made of this call: approve it once, or for this node (`node`)";
    check(false, Scope::Once, Ok(()));
    check(false, Scope::Node, Err(once));
    check(false, Scope::Run, Err(once));
    // The program remembers it, so no rule is needed.
    check(true, Scope::Node, Ok(()));
    check(true, Scope::Run, Err(for_node));
}

#[test]
fn a_chained_command_makes_a_rule_of_its_beginning_and_a_denied_one_makes_none() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let mut check = |verdict: Verdict, expect: &[RuleMatcher]| {
        let asked = ask(&mut scenario, node, "npm test && git push");
        let PermissionAnswer::Waits(approval) = asked else {
            panic!("no rule allows it");
        };
        let open = &scenario.run.live.approvals[&approval];
        assert_eq!(possible_scopes(open), Scope::ALL);
        answer(&mut scenario, approval, verdict, Scope::Run).unwrap();
        let rules = scenario.run.live.rules.iter();
        let made: Vec<RuleMatcher> = rules.map(|rule| rule.matcher.clone()).collect();
        assert_eq!(made, expect);
    };
    check(Verdict::Denied, &[]);
    let beginning = RuleMatcher::CommandPrefix("npm test".to_owned());
    check(Verdict::Approved, &[beginning]);
}

#[test]
fn other_arguments_come_with_the_status_that_uses_them() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    let approved_with = |args: serde_json::Value| Resolution {
        verdict: Verdict::Approved,
        modified_args: Some(args),
        reason: None,
        scope: Scope::Once,
        by: None,
    };
    let changed = approved_with(json!({"cmd": "make test"}));
    let refused = scenario.take(|run, around| resolve(run, around, approval, changed));
    assert_eq!(refused, Err(Rejection::UnusedModifiedArgs));
    // The call runs as the agent wanted it.
    let unchanged = approved_with(json!({}));
    scenario
        .take(|run, around| resolve(run, around, approval, unchanged))
        .unwrap();
    let started = scenario.log.iter().find_map(|event| match &event.fact {
        Fact::ToolStarted(call) => Some(call.args.clone()),
        _ => None,
    });
    assert_eq!(started, Some(json!({"cmd": "make"})));
}

#[test]
fn a_rule_is_made_of_the_arguments_that_a_person_changed() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "rm -rf /") else {
        panic!("no rule allows it");
    };
    let resolution = Resolution {
        verdict: Verdict::Modified,
        modified_args: Some(json!({"cmd": "rm -rf build"})),
        reason: None,
        scope: Scope::Node,
        by: None,
    };
    scenario
        .take(|run, around| resolve(run, around, approval, resolution))
        .unwrap();
    assert_eq!(
        ask(&mut scenario, node, "rm -rf build"),
        PermissionAnswer::AllowedByRule
    );
    assert!(matches!(
        ask(&mut scenario, node, "rm -rf /"),
        PermissionAnswer::Waits(_)
    ));
}

#[test]
fn a_denial_that_stops_the_turn_is_one_decision() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    let denied = Resolution::denied("no");
    scenario
        .take(|run, around| resolve_and_interrupt(run, around, approval, denied))
        .unwrap();
    let [Effect::AnswerPermission { .. }, Effect::Interrupt(stopped)] = &scenario.effects[..]
    else {
        panic!(
            "the program is answered and stopped: {:?}",
            scenario.effects
        );
    };
    assert_eq!(*stopped, node);
}

#[test]
fn a_node_that_may_not_run_commands_is_denied_them_without_a_question() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "make") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    let mut limited = node_settings("a", "implementer");
    limited.capabilities.run_commands = false;
    scenario
        .take(|run, around| change_node(run, around, node, limited))
        .unwrap();
    // Not even a rule gives it the right.
    assert_eq!(ask(&mut scenario, node, "make"), PermissionAnswer::Denied);
    let [Effect::AnswerPermission { resolution, .. }] = &scenario.effects[..] else {
        panic!("the program is answered: {:?}", scenario.effects);
    };
    let reason = resolution.reason.as_deref().unwrap();
    assert!(reason.contains("may not run commands"), "{reason}");
    // An ACP agent may show only what kind of call it is.
    for (kind, expect) in [("execute", true), ("edit", false)] {
        let permission = Permission {
            node,
            turn: scenario.turn(node).unwrap(),
            tool_name: "shell".to_owned(),
            args: json!({"title": "make", "toolKind": kind}),
            provider_id: Some(format!("of kind {kind}")),
            context: String::new(),
            can_allow_always: false,
        };
        let asked = scenario.take(|run, around| ask_permission(run, around, permission));
        let is_denied = asked.unwrap() == PermissionAnswer::Denied;
        assert_eq!(is_denied, expect, "{kind}");
    }
    scenario.complete(node, "Done.");
    scenario.chat("a", "Again");
    let prompt = prepare(&mut scenario, node, "You write code.");
    assert!(prompt.contains("You may not run commands."), "{prompt}");
}

#[test]
fn a_secret_is_masked_in_everything_that_is_recorded() {
    const SECRET: &str = "key-12345";
    let mut scenario = Scenario::begin(settings());
    scenario.secrets = Secrets::new([SECRET.to_owned()]);
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Use key-12345");
    prepare(&mut scenario, node, "You write code.");
    let PermissionAnswer::Waits(approval) = ask(&mut scenario, node, "curl key-12345") else {
        panic!("no rule allows it");
    };
    answer(&mut scenario, approval, Verdict::Approved, Scope::Run).unwrap();
    let [Effect::AnswerPermission { .. }] = &scenario.effects[..] else {
        panic!("the program is answered: {:?}", scenario.effects);
    };
    // Long enough for a blob of its own.
    scenario.say(node, &format!("{} key-12345", "x".repeat(5000)));
    scenario.complete(node, "It is key-12345.");
    for event in &scenario.log {
        let stored = record::encode(event);
        let parts = stored
            .blobs
            .iter()
            .map(|blob| String::from_utf8_lossy(blob));
        let mut parts = parts.chain([String::from_utf8_lossy(&stored.payload)]);
        assert!(!parts.any(|part| part.contains(SECRET)), "{event:?}");
    }
}
