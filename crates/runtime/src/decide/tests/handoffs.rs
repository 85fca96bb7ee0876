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
