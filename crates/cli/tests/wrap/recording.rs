//! Recordings: a replay finds the same turns as the wrapper found live.

use std::path::Path;
use std::process::Command;

use turnkeep_types::broker::{AgentState, GetTurn};

use crate::relay::{Broker, ask, client, is_ready, session};
use crate::terminal::{TURNKEEP, Terminal};

/// The texts of the turns that a replay finds.
fn replayed(file: &Path) -> Vec<String> {
    let output = Command::new("timeout")
        .args([
            "60",
            TURNKEEP,
            "detect",
            file.to_str().unwrap(),
            "--preset",
            "bash",
            "--json",
        ])
        .env("HOME", file.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let turns = said
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    turns
        .map(|turn| turn["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_recording_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let name = file.to_str().unwrap();
    let broker = Broker::start(folder.path());
    let mut client = client(folder.path());
    let args = [
        "--record",
        name,
        "--name",
        "one",
        "--",
        "bash",
        "--norc",
        "--noprofile",
        "-i",
    ];
    let mut terminal = Terminal::wrap_with(
        &args,
        &[("XDG_RUNTIME_DIR", folder.path().to_str().unwrap())],
    );
    terminal.until("$ ");
    session(&mut client, &mut terminal, "one", is_ready);
    ask(&mut terminal, &mut client, "one", 1);
    terminal.resize(90, 20);
    // The key could overtake the signal of the new size.
    terminal.wait_for("the new size is recorded", |_| {
        std::fs::read_to_string(&file)
            .unwrap()
            .contains(r#""dir":"r""#)
    });
    terminal.type_bytes(b"exit\r");
    assert!(terminal.finish().1.success());
    broker.stop();
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&rows[0]["dir"], &rows[0]["cols"], &rows[0]["rows"]),
        (&"h".into(), &100.into(), &30.into())
    );
    for dir in ["o", "i", "r", "s"] {
        assert!(
            rows.iter().any(|row| row["dir"] == dir),
            "no {dir} in {text}"
        );
    }
    assert_eq!(replayed(&file), ["a41z"]);
}

#[test]
fn a_replay_finds_what_was_found_live_also_where_a_program_reads_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.jsonl");
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let args = [
        "--record",
        file.to_str().unwrap(),
        "--name",
        "one",
        "--",
        "bash",
        "--norc",
        "--noprofile",
        "-i",
    ];
    let mut terminal =
        Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())]);
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
        let found = client.turn(GetTurn {
            turn_id: format!("{id}:{seq}"),
            raw: false,
        });
        found.unwrap().text.unwrap()
    });
    let live: Vec<String> = live.collect();
    terminal.type_bytes(b"exit\r");
    assert!(terminal.finish().1.success());
    assert_eq!(replayed(&file), live);
    broker.stop();
}

#[test]
fn a_program_that_could_not_be_started_leaves_no_recording_behind() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.jsonl");
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126), ("true", 0)] {
        let mut terminal = Terminal::wrap(&["--record", file.to_str().unwrap(), "--", program]);
        let (said, status) = terminal.finish();
        assert_eq!(
            status.code(),
            Some(code),
            "{program}: {}",
            said.escape_ascii()
        );
        assert_eq!(file.exists(), code == 0, "{program}");
    }
}
