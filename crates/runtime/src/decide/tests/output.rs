//! What programs report between turns.

use super::*;
use crate::artifact::Artifact;

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

/// The artifact of a text that was cut.
fn last_artifact(scenario: &Scenario, from: usize) -> &Artifact {
    let created = scenario.log[from..]
        .iter()
        .find_map(|event| match &event.fact {
            Fact::ArtifactCreated(artifact) => Some(artifact.as_ref()),
            _ => None,
        });
    created.unwrap()
}

#[test]
fn a_long_answer_is_cut_whether_it_is_finished_or_not() {
    let long = "é".repeat(3 << 20);
    for is_finished in [true, false] {
        let mut scenario = Scenario::begin(settings());
        let node = scenario.add("a", "implementer");
        scenario.chat("a", "Go");
        prepare(&mut scenario, node, "You write code.");
        let turn = scenario.turn(node).unwrap();
        let before = scenario.log.len();
        if is_finished {
            scenario.output(node, turn, Output::AnswerFinal(long.clone()));
        } else {
            scenario.output(node, turn, Output::Answer(long.clone()));
        }
        scenario.end(node, TurnEnd::Completed);
        let artifact = last_artifact(&scenario, before);
        assert_eq!(artifact.name, "answer.txt");
        assert_eq!(artifact.content, BlobHash::of(long.as_bytes()));
        let events = scenario.log[before..].iter();
        let finals: Vec<&str> = events
            .filter_map(|event| match &event.fact {
                Fact::AnswerFinal { content, .. } => Some(content.as_str()),
                _ => None,
            })
            .collect();
        let [content] = finals[..] else {
            panic!("{} final texts", finals.len());
        };
        let (beginning, note) = content.split_once("\n\n").unwrap();
        assert_eq!(beginning, &long[..1 << 20]);
        assert_eq!(
            note,
            format!(
                "(Cut: the artifact {} has all {} bytes.)",
                artifact.id,
                6 << 20
            )
        );
    }
}

#[test]
fn a_long_error_of_a_tool_is_cut() {
    let mut scenario = Scenario::begin(settings());
    let node = scenario.add("a", "implementer");
    scenario.chat("a", "Go");
    prepare(&mut scenario, node, "You write code.");
    let turn = scenario.turn(node).unwrap();
    let provider_id = "call-1".to_owned();
    let proposed = Output::ToolProposed {
        provider_id: provider_id.clone(),
        name: "shell".to_owned(),
        args: json!({}),
    };
    scenario.output(node, turn, proposed);
    let before = scenario.log.len();
    let failed = Output::ToolCompleted {
        provider_id,
        ok: false,
        output: None,
        error: Some("x".repeat(1 << 20)),
    };
    scenario.output(node, turn, failed);
    let artifact = last_artifact(&scenario, before);
    assert_eq!(
        (artifact.name.as_str(), artifact.bytes),
        ("tool-output.txt", 1 << 20)
    );
    let Fact::ToolCompleted { outcome, .. } = &scenario.log.last().unwrap().fact else {
        panic!("{:?}", scenario.log.last());
    };
    assert_eq!(outcome.artifact, Some(artifact.id));
    assert!(outcome.truncated);
    assert_eq!(
        outcome.error.as_deref(),
        Some("x".repeat(32 << 10).as_str())
    );
}
