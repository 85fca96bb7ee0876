//! Envelopes between nodes and their answers.

use super::*;

#[test]
fn every_question_gets_an_answer() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    // An envelope waits for others before it starts a turn.
    assert_eq!(scenario.turn(worker), None);
    scenario.pass(300);
    let before = scenario.log.len();
    scenario.complete(worker, "Built.");
    let replies: Vec<&Fact> = scenario.log[before..]
        .iter()
        .map(|event| &event.fact)
        .filter(|fact| matches!(fact, Fact::EnvelopeSent(_)))
        .collect();
    let [Fact::EnvelopeSent(reply)] = replies[..] else {
        panic!("one reply: {replies:?}");
    };
    assert_eq!(
        (reply.to, reply.message.as_str(), reply.synthesized),
        (lead, "Built.", true)
    );
    assert!(reply.status.as_ref().unwrap().ok);
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
}

#[test]
fn a_reply_by_the_agent_itself_is_the_only_one() {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "orchestrator");
    let worker = scenario.add("worker", "implementer");
    scenario.connect("lead", "worker");
    scenario.chat("lead", "Go");
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.complete(lead, "Handed over.");
    scenario.pass(300);
    scenario.send(worker, "lead", "It is built").unwrap();
    scenario.complete(worker, "Reported.");
    assert_eq!(scenario.run.live.node(lead).unwrap().inbox.len(), 1);
    scenario.pass(300);
    assert!(scenario.turn(lead).is_some());
}

#[test]
fn nothing_is_sent_where_no_edge_leads() {
    let mut scenario = Scenario::begin(settings());
    let a = scenario.add("a", "implementer");
    scenario.add("b", "implementer");
    scenario.add("c", "reviewer");
    scenario.connect("a", "c");
    let error = scenario.send(a, "b", "hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no edge leads from a to b: create one, or choose one of: c"
    );
    assert_eq!(scenario.run.live.node(a).unwrap().unanswered.len(), 0);
}

fn handoff<'a>(from: NodeId, to: &'a str, message: &'a str) -> Handoff<'a> {
    Handoff {
        from,
        to,
        message,
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: None,
        reply_to: None,
        context_pack: None,
    }
}

fn try_send(scenario: &mut Scenario, handoff: Handoff<'_>) -> Result<EnvelopeId, Rejection> {
    scenario.take(|run, around| send_handoff(run, around, handoff))
}

/// A lead and a worker with an edge between them.
fn begin_pair(bidirectional: Option<bool>, kind: Option<EdgeKind>) -> (Scenario, NodeId, NodeId) {
    let mut scenario = Scenario::begin(settings());
    let lead = scenario.add("lead", "planner");
    let worker = scenario.add("worker", "implementer");
    let edge = EdgeRequest {
        from: "lead",
        to: "worker",
        kind,
        label: None,
        bidirectional,
        gate: None,
    };
    scenario
        .take(|run, around| connect(run, around, edge))
        .unwrap();
    (scenario, lead, worker)
}

fn envelope(scenario: &Scenario, id: EnvelopeId) -> &crate::input::Envelope {
    let mut sent = scenario.log.iter().filter_map(|event| match &event.fact {
        Fact::EnvelopeSent(envelope) => Some(&**envelope),
        _ => None,
    });
    sent.find(|envelope| envelope.id == id).unwrap()
}

#[test]
fn long_parts_and_unknown_artifacts_are_refused_and_nothing_is_delivered() {
    let (mut scenario, lead, worker) = begin_pair(None, None);
    let longest = "x".repeat(16 << 10);
    let too_long = format!("{longest}x");
    let unknown: crate::ids::ArtifactId = scenario.ids.draw();
    // As JSON, the text has two quotes more.
    let value = |bytes: usize| Some(json!("x".repeat(bytes - 2)));
    let good = [
        handoff(lead, "worker", &longest),
        Handoff {
            structured: value(64 << 10),
            ..handoff(lead, "worker", "x")
        },
    ];
    let bad = [
        handoff(lead, "worker", &too_long),
        Handoff {
            structured: value((64 << 10) + 1),
            ..handoff(lead, "worker", "x")
        },
        Handoff {
            artifacts: vec![unknown],
            ..handoff(lead, "worker", "x")
        },
        Handoff {
            context_pack: Some(unknown),
            ..handoff(lead, "worker", "x")
        },
        handoff(lead, "worker", " "),
    ];
    for handoff in bad {
        let before = scenario.log.len();
        let refused = try_send(&mut scenario, handoff).unwrap_err();
        assert_eq!(scenario.log.len(), before, "{refused}");
    }
    for handoff in good {
        try_send(&mut scenario, handoff).unwrap();
    }
    assert_eq!(scenario.run.live.node(worker).unwrap().inbox.len(), 2);
}

#[test]
fn the_direction_and_the_kind_of_an_edge_decide_what_it_carries() {
    use Expectation::{None as Nothing, Required};
    // What is expected along the edge, and against it; `None` if it carries nothing.
    for (kind, bidirectional, along, against) in [
        (EdgeKind::Handoff, None, Required, Some(Nothing)),
        (EdgeKind::Handoff, Some(true), Required, Some(Nothing)),
        (EdgeKind::Handoff, Some(false), Required, None),
        (EdgeKind::Report, Some(true), Nothing, Some(Nothing)),
        (EdgeKind::Report, Some(false), Nothing, None),
    ] {
        let (mut scenario, lead, worker) = begin_pair(bidirectional, Some(kind));
        let sent = try_send(&mut scenario, handoff(lead, "worker", "x")).unwrap();
        assert_eq!(envelope(&scenario, sent).expectation, along, "{kind}");
        let (mut scenario, _, _) = begin_pair(bidirectional, Some(kind));
        let sent = try_send(&mut scenario, handoff(worker, "lead", "x"));
        let expectation = sent.map(|id| envelope(&scenario, id).expectation);
        assert_eq!(expectation.ok(), against, "{kind} {bidirectional:?}");
    }
}

#[test]
fn a_deleted_edge_recalls_nothing() {
    let (mut scenario, lead, worker) = begin_pair(None, None);
    scenario.send(lead, "worker", "Please build it").unwrap();
    let edge = *scenario.run.live.edges.keys().next().unwrap();
    scenario
        .take(|run, around| disconnect(run, around, edge))
        .unwrap();
    assert_eq!(scenario.run.live.node(worker).unwrap().inbox.len(), 1);
    scenario.pass(300);
    // The question is answered also without an edge.
    scenario.complete(worker, "Built.");
    assert!(scenario.run.live.node(lead).unwrap().unanswered.is_empty());
    assert!(scenario.send(lead, "worker", "More").is_err());
}

#[test]
fn a_reply_in_a_nodes_place_quotes_two_thousand_characters() {
    let (mut scenario, lead, worker) = begin_pair(None, None);
    scenario.send(lead, "worker", "Please build it").unwrap();
    scenario.pass(300);
    scenario.complete(worker, &"ä".repeat(2_001));
    let [Input::Envelope(reply)] = scenario.run.live.node(lead).unwrap().inbox.inputs() else {
        panic!("one reply");
    };
    assert_eq!(reply.message, "ä".repeat(2_000));
    assert!(reply.synthesized);
}

#[test]
fn an_answer_names_a_question_that_waits_or_is_worked_on() {
    for expectation in [Expectation::Required, Expectation::Optional] {
        let (mut scenario, lead, worker) = begin_pair(None, None);
        let question = Handoff {
            expectation: Some(expectation),
            ..handoff(lead, "worker", "Which colour?")
        };
        let question = try_send(&mut scenario, question).unwrap();
        scenario.pass(300);
        let answer = |question| Handoff {
            reply_to: Some(question),
            ..handoff(worker, "lead", "Blue")
        };
        let stranger: EnvelopeId = scenario.ids.draw();
        let refused = try_send(&mut scenario, answer(stranger));
        assert_eq!(refused, Err(Rejection::NoSuchQuestion(stranger)));
        let sent = try_send(&mut scenario, answer(question)).unwrap();
        assert_eq!(envelope(&scenario, sent).reply_to, Some(question));
        assert_eq!(envelope(&scenario, sent).expectation, Expectation::None);
        scenario.complete(worker, "Answered.");
        let late = scenario.turn(worker);
        assert_eq!(late, None, "{expectation}");
        let refused = try_send(&mut scenario, answer(question));
        assert_eq!(refused, Err(Rejection::NoSuchQuestion(question)));
    }
}

/// An artifact of this many bytes.
fn add_report(scenario: &mut Scenario, bytes: u64) -> crate::ids::ArtifactId {
    let id = scenario.ids.draw();
    let artifact = crate::artifact::Artifact {
        id,
        node: None,
        kind: ArtifactKind::Report,
        name: "report.txt".to_owned(),
        content: BlobHash::of(&bytes.to_le_bytes()),
        bytes,
        created_at: scenario.now,
        diff: None,
    };
    let event = Event {
        id: scenario.ids.draw(),
        seq: scenario.run.live.last_seq + 1,
        at: scenario.now,
        node: None,
        turn: None,
        request: None,
        made: None,
        fact: Fact::ArtifactCreated(Box::new(artifact)),
    };
    scenario.run.apply(&event);
    scenario.log.push(event);
    id
}

#[test]
fn any_artifact_of_a_mebibyte_can_be_a_context_pack() {
    const LIMIT: u64 = 1 << 20;
    let (mut scenario, lead, worker) = begin_pair(None, None);
    let (report, too_long) = (
        add_report(&mut scenario, LIMIT),
        add_report(&mut scenario, LIMIT + 1),
    );
    let with_pack = |pack| Handoff {
        context_pack: Some(pack),
        ..handoff(lead, "worker", "Read this first")
    };
    let refused = try_send(&mut scenario, with_pack(too_long)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the artifact of `contextRef` has 1048577 bytes; the limit is 1048576: name it in \
         `artifacts`, and the receiver reads it in parts"
    );
    assert!(scenario.run.live.node(worker).unwrap().inbox.is_empty());
    let sent = try_send(&mut scenario, with_pack(report)).unwrap();
    let pack = envelope(&scenario, sent).context_pack.unwrap();
    let made = scenario.run.archive.artifact(pack).unwrap();
    assert_ne!(pack, report);
    assert_eq!(made.kind, ArtifactKind::ContextPack);
    assert_eq!((made.bytes, made.node), (LIMIT, Some(lead)));
    // A pack is used as it is, and the same content makes no second one.
    for again in [report, pack] {
        let sent = try_send(&mut scenario, with_pack(again)).unwrap();
        assert_eq!(envelope(&scenario, sent).context_pack, Some(pack));
    }
}
