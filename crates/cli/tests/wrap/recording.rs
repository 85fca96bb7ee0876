//! Recordings: what was recorded, replayed, gives what was found while it happened.

use std::path::Path;
use std::process::Command;

use turnkeep_types::broker::{AgentState, GetTurn};

use crate::relay::{Broker, client, session};
use crate::terminal::{TURNKEEP, Terminal};

/// The texts of the turns that a replay finds.
fn replayed(file: &Path) -> Vec<String> {
    let output = Command::new("timeout")
        .args(["60", TURNKEEP, "detect", file.to_str().unwrap(), "--preset", "bash", "--json"])
        .env("HOME", file.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let turns = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    turns.map(|turn| turn["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_recording_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let name = file.to_str().unwrap();
    let program = ["bash", "--norc", "--noprofile", "-i"];
    let mut terminal = Terminal::wrap(&[&["--record", name, "--"], &program[..]].concat());
    terminal.until("$ ");
    terminal.person_thinks();
    terminal.type_bytes(b"echo a$((40+2))z\r");
    terminal.until("a42z");
    terminal.until("$ ");
    terminal.resize(90, 20);
    terminal.person_thinks();
    terminal.type_bytes(b"exit\r");
    assert!(terminal.finish().1.success());
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["dir"], &rows[0]["cols"], &rows[0]["rows"]), (&"h".into(), &100.into(), &30.into()));
    for dir in ["o", "i", "r", "s"] {
        assert!(rows.iter().any(|row| row["dir"] == dir), "no {dir} in {text}");
    }
    assert_eq!(replayed(&file), ["a42z"]);
}

#[test]
fn a_replay_finds_what_was_found_live_also_where_a_program_reads_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.jsonl");
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let args =
        ["--record", file.to_str().unwrap(), "--name", "one", "--", "bash", "--norc", "--noprofile", "-i"];
    let mut terminal = Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())]);
    terminal.until("$ ");
    let ready = |turns| {
        move |it: &turnkeep_types::broker::SessionInfo| {
            it.state == Some(AgentState::Ready) && it.turns == turns
        }
    };
    session(&mut client, &mut terminal, "one", ready(0));
    let mut id = String::new();
    for turn in 1..=3 {
        terminal.type_bytes(b"printf 'n%s? ' ame; read x; echo =$x=\r");
        terminal.until("name? ");
        terminal.type_bytes(b"hello\r");
        terminal.until("=hello=");
        id = session(&mut client, &mut terminal, "one", ready(turn)).session;
    }
    let live = (1..=3).map(|seq| {
        let found = client.turn(GetTurn { turn_id: format!("{id}:{seq}"), raw: false });
        found.unwrap().text.unwrap()
    });
    let live: Vec<String> = live.collect();
    terminal.type_bytes(b"exit\r");
    assert!(terminal.finish().1.success());
    assert_eq!(replayed(&file), live);
    broker.stop();
}
