//! Requests that a caller repeats.

use super::*;
use crate::request::{KeyUse, KeyedRequest, MadeId, RequestKey};

fn key(name: &str, body: &str) -> RequestKey {
    RequestKey {
        key: name.to_owned(),
        fingerprint: BlobHash::of(body.as_bytes()),
    }
}

fn known(scenario: &Scenario, name: &str, body: &str) -> KeyUse {
    scenario.run.archive.find_request(&key(name, body))
}

/// Makes a decision for a request with a key, and returns what the key is known for.
fn take_keyed<T>(
    scenario: &mut Scenario,
    name: &str,
    decide: impl FnOnce(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection>,
) -> KeyedRequest {
    assert_eq!(known(scenario, name, "body"), KeyUse::New);
    let with_key = |run: &Run, around: Surroundings<'_>| {
        let request = Some(key(name, "body"));
        decide(run, Surroundings { request, ..around })
    };
    scenario.take(with_key).unwrap();
    match known(scenario, name, "body") {
        KeyUse::Repeated(request) => request,
        other => panic!("the key is kept: {other:?}"),
    }
}

#[test]
fn a_key_is_known_for_what_its_request_made_and_another_body_is_refused() {
    let mut scenario = Scenario::begin(settings());
    let request = NodeRequest {
        settings: node_settings("a", "implementer"),
        parent: None,
    };
    let kept = take_keyed(&mut scenario, "k-1", |run, around| {
        add_node(run, around, request)
    });
    let node = find_node(&scenario.run.live, "a").unwrap().id;
    assert_eq!(kept.made, Some(MadeId::Node(node)));
    assert_eq!(known(&scenario, "k-1", "other"), KeyUse::Reused);

    // A message that reopens a completed run is not the first event of its request.
    let complete = RunChange {
        status: Some(RunStatus::Completed),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, complete))
        .unwrap();
    let message = Chat {
        content: "Once more",
        node: None,
        interrupt: false,
    };
    let kept = take_keyed(&mut scenario, "k-2", |run, around| {
        chat(run, around, message)
    });
    assert!(matches!(kept.made, Some(MadeId::Message(_))), "{kept:?}");
    let first = &scenario.log[usize::try_from(kept.seq).unwrap() - 1];
    assert_eq!(first.fact.wire_name(), "run.patch");

    scenario.add("b", "implementer");
    let edge = EdgeRequest {
        from: "a",
        to: "b",
        kind: None,
        label: None,
        bidirectional: None,
        gate: None,
    };
    let kept = take_keyed(&mut scenario, "k-3", |run, around| {
        connect(run, around, edge)
    });
    let made = *scenario.run.live.edges.keys().next().unwrap();
    assert_eq!(kept.made, Some(MadeId::Edge(made)));
    // The edge that existed is the answer of this request too.
    let kept = take_keyed(&mut scenario, "k-4", |run, around| {
        connect(run, around, edge)
    });
    assert_eq!(kept.made, Some(MadeId::Edge(made)));
}

#[test]
fn a_request_that_changed_nothing_keeps_its_key() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    let before = scenario.log.len();
    let kept = take_keyed(&mut scenario, "k-1", |run, around| {
        interrupt_node(run, around, node)
    });
    assert_eq!(scenario.names_from(before), ["run.patch"]);
    assert_eq!((kept.made, kept.seq), (None, before as u64 + 1));
    // The same request later must not stop a turn that began meanwhile.
    scenario.chat("a", "Go");
    assert_eq!(known(&scenario, "k-1", "body"), KeyUse::Repeated(kept));
}

#[test]
fn a_handoff_and_a_verification_are_answered_again() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    scenario.add("a", "implementer");
    scenario.connect("lead", "a");
    let handoff = Handoff {
        from: lead,
        to: "a",
        message: "Please build it",
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: None,
        reply_to: None,
        context_pack: None,
    };
    let kept = take_keyed(&mut scenario, "k-1", |run, around| {
        send_handoff(run, around, handoff)
    });
    assert!(matches!(kept.made, Some(MadeId::Envelope(_))), "{kept:?}");
    let kept = take_keyed(&mut scenario, "k-2", verify);
    let under_way = scenario.run.live.verification.unwrap();
    assert_eq!(kept.made, Some(MadeId::Verification(under_way.id)));
}
