//! Adding and deleting nodes.

use super::*;
use crate::ids::EdgeId;

#[test]
fn a_deleted_node_returns_its_mail() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario
        .take(|run, around| delete_node(run, around, worker))
        .unwrap();
    let inbox = &scenario.run.live.node(lead).unwrap().inbox;
    assert_eq!(inbox.len(), 1);
    assert!(scenario.run.live.edges.is_empty());
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

#[test]
fn a_child_is_never_freer_than_its_parent() {
    let mut scenario = Scenario::begin(settings());
    let parent = scenario.add("parent", "reviewer");
    let wanted = NodeSettings {
        permissions: Permissions {
            cli: CliPermissions::Skip,
            spawn_requires_approval: false,
        },
        ..node_settings("child", "reviewer")
    };
    let request = NodeRequest {
        settings: wanted,
        parent: Some(parent),
    };
    let child = scenario
        .take(|run, around| add_node(run, around, request))
        .unwrap();
    let permissions = scenario.run.live.node(child).unwrap().settings.permissions;
    assert_eq!(permissions.cli, CliPermissions::Gated);
    assert!(permissions.spawn_requires_approval);
    let writer = NodeRequest {
        settings: node_settings("writer", "implementer"),
        parent: Some(parent),
    };
    let refused = scenario
        .take(|run, around| add_node(run, around, writer))
        .unwrap_err();
    assert_eq!(refused, Rejection::RightNotHeld("writeCode"));
}

#[test]
fn deleting_a_node_ends_its_turn_and_everything_in_it() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.pass(300);
    prepare(&mut scenario, worker, "You write code.");
    ask(&mut scenario, worker, "make");
    let turn = scenario.turn(worker).unwrap();
    let half = Output::Answer("half a senten".to_owned());
    scenario
        .take(|run, around| add_output(run, around, worker, turn, half))
        .unwrap();
    let before = scenario.log.len();
    scenario
        .take(|run, around| delete_node(run, around, worker))
        .unwrap();
    assert_eq!(
        scenario.names_from(before),
        [
            "edge.deleted",
            "approval.resolved",
            "node.patch",
            "message.assistant.final",
            "tool.completed",
            "turn.interrupted",
            "node.patch",
            "handoff.sent",
            "node.patch",
            "node.deleted",
        ]
    );
    // The question that it had read comes back, because its answer was awaited.
    let lead = scenario.run.live.node(lead).unwrap();
    assert!(lead.unanswered.is_empty());
    assert_eq!(lead.inbox.len(), 1);
    assert!(scenario.run.live.approvals.is_empty());
}

#[test]
fn a_deleted_node_names_the_messages_that_it_never_read() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.add("b", "implementer");
    scenario.chat("a", "First");
    let first = scenario
        .run
        .live
        .node(node)
        .unwrap()
        .turn
        .as_ref()
        .unwrap()
        .consumed[0]
        .id();
    scenario.chat("a", "Second");
    let second = scenario.run.live.node(node).unwrap().inbox.ids()[0];
    let question = OrchestrationCall::AskUser {
        question: "Which colour?".to_owned(),
        options: Vec::new(),
    };
    call(&mut scenario, node, question).unwrap();
    scenario
        .take(|run, around| delete_node(run, around, node))
        .unwrap();
    // The prompt was not sent, so the first message was not read either. The question of a node that
    // is gone has no answer, so none is invented.
    let Some(Fact::NodeDeleted { dropped }) = scenario.log.last().map(|event| &event.fact) else {
        panic!("the node is deleted last");
    };
    assert_eq!(dropped, &[first, second]);
}

#[test]
fn names_stay_on_one_line_and_are_bounded() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let long = "x".repeat(81);
    for (label, is_good) in [
        ("The reviewer of the payment service", true),
        ("审查员", true),
        ("x", true),
        ("", false),
        ("  ", false),
        (long.as_str(), false),
        (&long[..80], true),
        ("two\nlines", false),
        ("a bell \u{7}", false),
        ("a line\u{2028}separator", false),
    ] {
        let named = NodeSettings {
            label: label.to_owned(),
            ..node_settings("a", "implementer")
        };
        let changed = scenario.take(|run, around| change_node(run, around, node, named.clone()));
        assert_eq!(changed.is_ok(), is_good, "{label:?}");
        let request = NodeRequest {
            settings: NodeSettings {
                alias: None,
                ..named
            },
            parent: None,
        };
        let draft = super::super::graph::check_request(&scenario.run.live, &request);
        assert_eq!(draft.is_ok(), is_good, "{label:?}");
    }
    let refused = NodeSettings {
        label: long,
        ..node_settings("a", "implementer")
    };
    let error = scenario
        .take(|run, around| change_node(run, around, node, refused))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`label` must have 1 to 80 characters and no line break or control character"
    );
}

#[test]
fn a_child_orchestrator_of_another_node_still_needs_approval_to_spawn() {
    let mut scenario = Scenario::begin(settings());
    let parent = scenario.add("parent", "reviewer");
    // Whatever the settings of the parent say: it does not lead, so it always needs approval.
    let mut free = node_settings("parent", "reviewer");
    free.permissions.spawn_requires_approval = false;
    free.capabilities.spawn_nodes = true;
    scenario
        .take(|run, around| change_node(run, around, parent, free))
        .unwrap();
    let request = NodeRequest {
        settings: node_settings("child", "orchestrator"),
        parent: Some(parent),
    };
    let child = scenario
        .take(|run, around| add_node(run, around, request))
        .unwrap();
    let permissions = scenario.run.live.node(child).unwrap().settings.permissions;
    assert!(permissions.spawn_requires_approval);
}

#[test]
fn a_node_that_only_delegates_cannot_give_the_right_to_write() {
    let mut scenario = Scenario::begin(settings());
    let parent = scenario.add("parent", "implementer");
    let mut delegates = node_settings("parent", "implementer");
    delegates.capabilities.delegate_only = true;
    scenario
        .take(|run, around| change_node(run, around, parent, delegates))
        .unwrap();
    let request = NodeRequest {
        settings: node_settings("child", "implementer"),
        parent: Some(parent),
    };
    let refused = scenario.take(|run, around| add_node(run, around, request));
    assert_eq!(refused, Err(Rejection::RightNotHeld("writeCode")));
}

#[test]
fn a_refused_node_names_the_limit_and_changes_nothing() {
    let limits = RunLimits {
        nodes_max: 3,
        spawn_depth_max: 1,
        ..RunLimits::default()
    };
    let mut scenario = Scenario::begin(RunSettings {
        limits,
        ..settings()
    });
    let add = |scenario: &mut Scenario, alias: &str, parent: Option<NodeId>| {
        let request = NodeRequest {
            settings: node_settings(alias, "reviewer"),
            parent,
        };
        scenario.take(|run, around| add_node(run, around, request))
    };
    let root = add(&mut scenario, "root", None).unwrap();
    let child = add(&mut scenario, "child", Some(root)).unwrap();
    let before = scenario.log.len();
    let too_deep = add(&mut scenario, "grandchild", Some(child)).unwrap_err();
    assert_eq!(
        too_deep.to_string(),
        "at most 1 spawns may lie between a person and a node: let another node spawn it"
    );
    assert_eq!(scenario.log.len(), before);
    add(&mut scenario, "last", Some(root)).unwrap();
    let before = scenario.log.len();
    for parent in [None, Some(root)] {
        let refused = add(&mut scenario, "more", parent);
        assert_eq!(refused, Err(Rejection::TooManyNodes(3)));
    }
    assert_eq!(scenario.log.len(), before);
    let taken = NodeSettings {
        label: "Renamed".to_owned(),
        ..node_settings("CHILD", "reviewer")
    };
    let refused = scenario.take(|run, around| change_node(run, around, root, taken));
    assert_eq!(refused, Err(Rejection::AliasTaken("CHILD".to_owned())));
    let settings = &scenario.run.live.node(root).unwrap().settings;
    assert_eq!(settings, &node_settings("root", "reviewer"));
}

#[test]
fn a_deleted_node_leaves_its_worktree_to_the_server() {
    let mut scenario = Scenario::begin(settings());
    let first = scenario.add("a", "implementer");
    let second = scenario.add("b", "implementer");
    scenario.chat("a", "Write");
    let branch = {
        let node = scenario.run.live.node(first).unwrap();
        node.workspace.as_ref().unwrap().branch.clone()
    };
    assert!(branch.is_some(), "two writers have worktrees");
    scenario
        .take(|run, around| delete_node(run, around, first))
        .unwrap();
    let removal = Effect::RemoveWorktree {
        node: first,
        name: "a".to_owned(),
        branch,
    };
    assert_eq!(scenario.effects[0], Effect::EndProgram(first));
    assert!(
        scenario.effects.contains(&removal),
        "{:?}",
        scenario.effects
    );
    // The note comes when the node is gone.
    let before = scenario.log.len();
    scenario
        .take(|run, around| note_node(run, around, first, "it stays"))
        .unwrap();
    assert_eq!(scenario.names_from(before), ["node.log"]);

    // A node without a turn has no workspace.
    scenario
        .take(|run, around| delete_node(run, around, second))
        .unwrap();
    assert_eq!(scenario.effects, [Effect::EndProgram(second)]);
}

/// Asks for the edge between `a` and `b` with these properties.
fn connect_with(scenario: &mut Scenario, gate: Option<bool>, label: Option<&str>) -> EdgeId {
    let request = EdgeRequest {
        from: "a",
        to: "b",
        kind: None,
        label,
        bidirectional: None,
        gate,
    };
    scenario
        .take(|run, around| connect(run, around, request))
        .unwrap()
}

#[test]
fn an_edge_that_is_asked_for_again_gets_what_the_request_names_and_keeps_the_rest() {
    let mut scenario = Scenario::begin(settings());
    scenario.add("a", "implementer");
    scenario.add("b", "implementer");
    let id = connect_with(&mut scenario, None, None);
    let check = |scenario: &mut Scenario, gate, label, expect: (&str, bool), events: &[&str]| {
        let before = scenario.log.len();
        assert_eq!(connect_with(scenario, gate, label), id);
        let edge = &scenario.run.live.edges[&id];
        assert_eq!((edge.label.as_str(), edge.gate), expect);
        assert!(edge.bidirectional);
        assert_eq!(scenario.names_from(before), events);
    };
    let told = ["edge.created"];
    check(&mut scenario, Some(true), None, ("task", true), &told);
    check(&mut scenario, Some(true), None, ("task", true), &[]);
    check(&mut scenario, None, Some("work"), ("work", true), &told);
    check(&mut scenario, None, None, ("work", true), &[]);
    check(&mut scenario, Some(false), None, ("work", false), &told);
    assert_eq!(scenario.run.live.edges.len(), 1);
}

#[test]
fn an_agent_that_connects_nodes_again_changes_nothing_of_their_edge() {
    let mut scenario = Scenario::begin(settings());
    let a = scenario.add("a", "orchestrator");
    scenario.add("b", "implementer");
    let id = connect_with(&mut scenario, Some(true), None);
    scenario.chat("a", "Go");
    let again = OrchestrationCall::CreateEdge(CreateEdge {
        from: "a".to_owned(),
        to: "b".to_owned(),
        kind: None,
        label: Some("mine".to_owned()),
        // Without the gate on the way back the agent could report whatever it likes.
        bidirectional: Some(false),
    });
    call(&mut scenario, a, again).unwrap();
    let edge = &scenario.run.live.edges[&id];
    assert_eq!((edge.label.as_str(), edge.gate), ("task", true));
    assert!(edge.bidirectional);
}
