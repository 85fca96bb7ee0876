//! What clients rely on: streams that can be resumed, a state that the log makes again, and the list
//! of events.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::story_a::{CLAUDE, Story, start_story};
use crate::story_b::{play_trouble, start_trouble};
use crate::team::bookkeeping::Books;
use crate::team::contract::EVENT_TYPES;
use crate::team::event_socket::{EventSocket, Place};
use crate::team::{Team, skip};

const SCRIPT: &str = r#"
[[turn]]
repeat = true
steps = [
    { say = "One. Two. Three.", chunk = 4 },
    { run = "echo four" },
    { say = "Five." },
]
"#;

#[test]
fn a_client_that_was_cut_off_reads_the_same_stream_as_one_that_was_not() {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("node"));
    let mut steady = team.watch(&run, 0);
    let mut broken = team.watch(&run, 0);
    team.chat(&run, &node, "first");
    broken.read_until("the beginning", |event| event["status"] == "turn.started");
    let cut_at = broken.last_seq();
    drop(broken);
    // The turns go on while the client is away.
    team.wait_for_turn_end(&run, &node, 1);
    team.chat(&run, &node, "second");
    let mut back = team.watch(&run, cut_at);
    team.wait_for_turn_end(&run, &node, 2);
    let last = team.show(&run)["lastSeq"].as_u64().unwrap();
    let whole = steady.read_up_to(last);
    assert_eq!(
        whole[usize::try_from(cut_at).unwrap()..],
        back.read_up_to(last)
    );
    assert_eq!(whole, team.events(&run), "the log has the same order");
    Books::keep(&whole);
    team.check_event_file(&run);
}

#[test]
fn a_number_beyond_the_end_is_refused() {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({}));
    let last = team.show(&run)["lastSeq"].as_u64().unwrap();
    let address = team.address();
    let place = Place {
        address: &address,
        run: &run,
        since: last + 1,
    };
    assert_eq!(EventSocket::open(&place).err(), Some(400));
}

#[test]
fn the_state_from_the_log_is_the_state_before() {
    let mut team = Team::start(SCRIPT);
    let run = team.new_run(json!({"limits": {"maxNodes": 40}}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    for number in 0..30 {
        let alias = format!("n{number}");
        team.add_node(&run, "reviewer", "codex", skip(&alias));
        team.connect(&run, "lead", &alias);
    }
    team.chat(&run, &lead, "Speak");
    team.wait_for_turn_end(&run, &lead, 1);
    // A paused run has nothing to end at the next start, so no event follows.
    team.patch(&format!("/api/runs/{run}"), &json!({"status": "paused"}));
    let before = lasting_state(&team, &run);
    team.kill();
    team.restart();
    assert_eq!(lasting_state(&team, &run), before);
}

/// A run without what lives only as long as its programs.
fn lasting_state(team: &Team, run: &str) -> Value {
    let mut shown = team.show(run);
    for node in shown["nodes"].as_object_mut().unwrap().values_mut() {
        node.as_object_mut().unwrap().remove("connection");
    }
    shown
}

#[test]
fn every_type_of_event_happens() {
    let team = start_story(&CLAUDE);
    let mut events = Story::prepare(&team, &CLAUDE).play(&team);
    let team = start_trouble();
    events.extend(play_trouble(&team));
    let seen: BTreeSet<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    let missing: Vec<&&str> = EVENT_TYPES
        .iter()
        .filter(|name| !seen.contains(**name))
        .collect();
    assert_eq!(missing, [&""; 0], "of {seen:?}");
}
