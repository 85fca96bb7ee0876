//! The recorded run of a real team, killed at every event: found again, let go on and played to its
//! end.
//!
//! `testdata/runs/story-a.jsonl` has the records that a server wrote while the story of the
//! `turnkeep` crate's tests was played with the scripted agent. The log is also cut inside the
//! batches that one decision wrote, where only a repair of a damaged log can cut it.

use super::*;
use crate::turn::TurnStage;

/// Reads the records as a server does at its start.
fn read_recording() -> Vec<Event> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/runs/story-a.jsonl"
    );
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(read_event).collect()
}

fn read_event(line: &str) -> Event {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let bytes = |value: &serde_json::Value| hex::decode(value.as_str().unwrap()).unwrap();
    let blobs: Vec<Bytes> = line["blobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|blob| Bytes::from(bytes(blob)))
        .collect();
    let find_blob = |hash: &BlobHash| {
        let mut blobs = blobs.iter();
        blobs.find(|blob| BlobHash::of(blob) == *hash).cloned()
    };
    record::decode(&bytes(&line["record"]), &find_blob).unwrap()
}

/// How often each input that was ever sent is consumed by a turn that did not put it back.
fn count_consumed(log: &[Event]) -> BTreeMap<InputId, i32> {
    let mut counts = BTreeMap::new();
    for event in log {
        match &event.fact {
            Fact::MessageSent(message) => drop(counts.insert(InputId::Message(message.id), 0)),
            Fact::EnvelopeSent(sent) => drop(counts.insert(InputId::Envelope(sent.id), 0)),
            Fact::TurnStepped(TurnStep::Started { consumed, .. }) => {
                for input in consumed {
                    *counts.get_mut(input).unwrap() += 1;
                }
            }
            Fact::TurnStepped(
                TurnStep::Interrupted { requeued, .. } | TurnStep::Failed { requeued, .. },
            ) => {
                for input in requeued {
                    *counts.get_mut(input).unwrap() -= 1;
                }
            }
            _ => {}
        }
    }
    counts
}

/// Nothing is made twice: no node, edge or approval, and no file of a turn.
fn check_nothing_is_doubled(log: &[Event]) {
    let mut made = BTreeSet::new();
    let mut make = |what: String| assert!(made.insert(what.clone()), "twice: {what}");
    for event in log {
        match &event.fact {
            Fact::NodeAdded(new) => {
                make(format!("node {}", new.id));
                make(format!("alias {:?}", new.settings.alias));
            }
            Fact::EdgeCreated(edge) => {
                make(format!("edge {}", edge.id));
                make(format!("way {} {} {}", edge.from, edge.to, edge.kind));
            }
            Fact::ArtifactCreated(artifact) => {
                make(format!("artifact {}", artifact.id));
                if [ArtifactKind::Prompt, ArtifactKind::Diff].contains(&artifact.kind) {
                    make(format!("file {:?} {}", event.turn, artifact.name));
                }
            }
            Fact::ApprovalRequested(approval) => make(format!("approval {}", approval.id)),
            Fact::ApprovalResolved { approval, .. } => make(format!("answer {approval}")),
            _ => {}
        }
    }
}

/// What the server does at its next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    WithNewSessions,
    WithOldSessions,
    GoingOn,
}

fn restart_server(scenario: &mut Scenario, start: Start) {
    let programs = ["claude".to_owned()];
    let found = Restart {
        resume: start == Start::GoingOn,
        resumable_programs: match start {
            Start::WithNewSessions => &[],
            Start::WithOldSessions | Start::GoingOn => &programs,
        },
        changes: &[],
    };
    scenario
        .take(|run, around| Ok(restart(run, around, found)))
        .unwrap();
}

fn let_run_go_on(scenario: &mut Scenario) {
    let change = RunChange {
        status: Some(RunStatus::Running),
        ..RunChange::default()
    };
    scenario
        .take(|run, around| change_run(run, around, change))
        .unwrap();
}

/// Does the next thing that programs, the person and the verification do: programs answer what they
/// are asked, and everything is approved. Returns whether there was one.
fn step(scenario: &mut Scenario) -> bool {
    let live = &scenario.run.live;
    if let Some(approval) = live.approvals.keys().next().copied() {
        answer(scenario, approval, Verdict::Approved, Scope::Once).unwrap();
        return true;
    }
    if let Some(verification) = live.verification {
        pass_verification(scenario, VerificationTarget::Run(verification.id));
        return true;
    }
    let working = live.nodes().find_map(|node| {
        let turn = node.turn.as_ref()?;
        Some((node.id, turn.stage == TurnStage::Preparing))
    });
    match working {
        Some((node, true)) => drop(prepare(scenario, node, "Your role.")),
        Some((node, false)) => scenario.complete(node, "I am done."),
        None => return pass_deadline(scenario),
    }
    true
}

fn pass_verification(scenario: &mut Scenario, target: VerificationTarget) {
    let end = VerificationEnd {
        target,
        ok: true,
        report: Bytes::from_static(b"{}"),
        tail: String::new(),
        signature: String::new(),
        changes: None,
    };
    scenario
        .take(|run, around| end_verification(run, around, &end))
        .unwrap();
}

fn pass_deadline(scenario: &mut Scenario) -> bool {
    let live = &scenario.run.live;
    let deadline = next_deadline(live, scenario.now, Capacity::UNLIMITED, &scenario.heard);
    if let Some(deadline) = deadline {
        scenario.pass(deadline.0.saturating_sub(scenario.now.0));
    }
    deadline.is_some()
}

fn has_waiting_input(scenario: &Scenario) -> bool {
    let mut nodes = scenario.run.live.nodes();
    nodes.any(|node| !node.inbox.is_empty())
}

/// Plays until nothing is left to do. A stall is overruled while inputs wait.
fn play_to_the_end(scenario: &mut Scenario) {
    const STEPS_MAX: usize = 1000;
    for _ in 0..STEPS_MAX {
        if step(scenario) {
            continue;
        }
        if scenario.run.live.status != RunStatus::Paused || !has_waiting_input(scenario) {
            return;
        }
        let_run_go_on(scenario);
    }
    panic!("the run does not end");
}

fn is_completion(event: &Event) -> bool {
    let completed = RunStatus::Completed;
    matches!(event.fact, Fact::RunStatusChanged { status, .. } if status == completed)
}

/// Cuts the log, starts the server and plays on. Every input that was sent before the cut is consumed
/// as often as in the recorded run: once.
fn check_kill(log: &[Event], killed_after: usize, start: Start) {
    let kept = &log[..killed_after];
    let mut scenario = story::find_after(kept, 7);
    restart_server(&mut scenario, start);
    scenario.check();
    if scenario.run.live.status == RunStatus::Paused {
        let_run_go_on(&mut scenario);
    }
    play_to_the_end(&mut scenario);
    scenario.check();
    check_nothing_is_doubled(&scenario.log);
    let recorded = count_consumed(log);
    let played = count_consumed(&scenario.log);
    let has_ended = kept.iter().any(is_completion);
    for input in count_consumed(kept).keys() {
        let (count, expected) = (played[input], recorded[input]);
        // What comes back from the last turn of a completed run waits until somebody reopens it.
        let may_wait = has_ended || expected == 0;
        assert!(
            count == 1 || (count == 0 && may_wait),
            "{input} is consumed {count} times, killed after {killed_after}, {start:?}"
        );
    }
}

#[test]
fn the_recorded_run_is_whole() {
    let log = read_recording();
    let scenario = story::find_after(&log, 7);
    scenario.check();
    check_nothing_is_doubled(&log);
    assert_eq!(scenario.run.live.status, RunStatus::Completed);
    assert!(count_consumed(&log).values().all(|count| *count <= 1));
}

#[test]
fn a_recorded_run_loses_and_doubles_nothing_wherever_it_is_killed() {
    let log = read_recording();
    for killed_after in 1..=log.len() {
        for start in [
            Start::WithNewSessions,
            Start::WithOldSessions,
            Start::GoingOn,
        ] {
            check_kill(&log, killed_after, start);
        }
    }
}
