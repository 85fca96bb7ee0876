//! The broker and its commands, as a person uses them: the real binary, a runtime directory of its
//! own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use sandbox::{Sandbox, ServerProcess, check, mode};
use serde_json::Value;
use turnkeep_client::broker::Connection;
use turnkeep_types::Timestamp;
use turnkeep_types::broker::{AgentState, CompletedTurn, Register, Role, StateChange};

const LIMIT: Duration = Duration::from_mins(1);

/// A home with a runtime directory, and a broker in it.
struct Desk {
    sandbox: Sandbox,
    broker: ServerProcess,
}

fn command(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    command.env("XDG_RUNTIME_DIR", sandbox.path("run"));
    command
}

impl Desk {
    fn new(more: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("run")).unwrap();
        let broker = start(&sandbox, &[&["broker"], more].concat());
        Self { sandbox, broker }
    }

    fn wrapper(&self, session: &str, name: &str) -> Connection {
        let socket = self.sandbox.path("run/turnkeep/broker.sock");
        let mut wrapper = Connection::open(&socket, Role::Wrapper, LIMIT).unwrap();
        let register = Register {
            session: session.to_owned(),
            pid: 1,
            name: Some(name.to_owned()),
            preset: Some("claude".to_owned()),
            ..Register::default()
        };
        wrapper.register(register).unwrap();
        wrapper
    }

    /// What a command prints to both streams, with its exit code when that is not 0.
    fn says(&self, line: &str) -> String {
        let args: Vec<&str> = line.split(' ').collect();
        let output = command(&self.sandbox, &args).output().unwrap();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        if let Some(code @ 1..) = output.status.code() {
            writeln!(text, "[{code}]").unwrap();
        }
        text.replace(
            self.sandbox
                .path("")
                .to_str()
                .unwrap()
                .trim_end_matches('/'),
            "HOME",
        )
    }

    fn json(&self, line: &str) -> Vec<Value> {
        let said = self.says(line);
        said.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{said}")))
            .collect()
    }
}

/// Starts a broker. It gets every signal, also those that this process was started to ignore.
fn start(sandbox: &Sandbox, args: &[&str]) -> ServerProcess {
    let plain = command(sandbox, args);
    let mut with_signals = Command::new("/usr/bin/env");
    with_signals
        .arg("--default-signal")
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear();
    with_signals.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let broker = ServerProcess::start(with_signals.current_dir(sandbox.path("")));
    assert!(
        broker.first_line.contains("broker"),
        "{args:?}: {}",
        broker.first_line
    );
    broker
}

fn turn(session: &str, content: &str, text: &str) -> CompletedTurn {
    CompletedTurn {
        session: session.to_owned(),
        content: content.to_owned().into(),
        text: Some(text.to_owned()),
        timestamp: Some(Timestamp(1_700_000_000_000)),
        ..CompletedTurn::default()
    }
}

/// Replaces the labels of a context by one of a person's own.
fn relabel(server: &ServerProcess, context: &str) {
    let token = server.token();
    let body = r#"{"labels":{"mine":"yes"}}"#;
    let mut stream = std::net::TcpStream::connect(server.http()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!(
        "PATCH /v1/contexts/{context} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        server.http(),
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_turn_goes_from_one_session_to_another_a_file_and_the_store() {
    let desk = Desk::new(&[]);
    let mut review = desk.wrapper("aaaa1111", "review");
    let mut tests = desk.wrapper("bbbb2222", "tests");
    assert_eq!(
        desk.says("turns review"),
        "TURN  COMPLETED  SIZE  FLAGS  FIRST WORDS\n"
    );
    review
        .turn_completed(turn(
            "aaaa1111",
            "\x1b[1mWell\x1b[0m done.\n",
            "Well done.\n",
        ))
        .unwrap();
    let interrupted = CompletedTurn {
        interrupted: true,
        ..turn("aaaa1111", "Half", "Half")
    };
    review.turn_completed(interrupted).unwrap();
    let expect = "
        TURN    COMPLETED                SIZE  FLAGS        FIRST WORDS
        aaaa:2  2023-11-14 22:13:20 UTC  4 B   interrupted  Half
        aaaa:1  2023-11-14 22:13:20 UTC  19 B               Well done.
    ";
    check(&desk.says("turns review"), expect);
    assert_eq!(
        desk.json("turns @last --limit 1 --json")[0]["turn_id"],
        "aaaa1111:2"
    );
    assert_eq!(
        desk.says("capture review:1"),
        "captured aaaa:1, 19 B: \"Well done.\"\n"
    );
    for (raw, expect) in [
        ("", "Well done.\n"),
        (" --raw", "\x1b[1mWell\x1b[0m done.\n"),
    ] {
        assert_eq!(
            desk.says(&format!("paste tests{raw}")),
            "pasted into tests\n"
        );
        assert_eq!(tests.next_inject(LIMIT).unwrap().content, expect);
        let inject = format!("deliver inject --session bbbb{raw}");
        assert_eq!(desk.says(&inject), "delivered to inject\n");
        assert_eq!(tests.next_inject(LIMIT).unwrap().content, expect);
        assert_eq!(
            desk.says(&format!("deliver file --path out.txt{raw}")),
            "delivered to file\n"
        );
        assert_eq!(
            std::fs::read(desk.sandbox.path("out.txt")).unwrap(),
            expect.as_bytes()
        );
    }

    assert_eq!(
        desk.says("keep review:1"),
        "kept aaaa1111:1 as turn:1 of ctx:1\n"
    );
    assert_eq!(
        desk.says("keep review:1"),
        "kept aaaa1111:1 as turn:1 of ctx:1\n"
    );
    assert_eq!(
        desk.says("deliver store"),
        "delivered to store as turn:1 of ctx:1\n"
    );
    let stored = &desk.json("deliver store --json")[0];
    assert_eq!(
        (&stored["context_id"], &stored["turn_id"]),
        (&"1".into(), &"1".into())
    );
    assert_eq!(desk.json("keep review:2 --json")[0]["turn_id"], "2");
    for by in ["session=aaaa1111", "name=review", "preset=claude"] {
        let found = desk.json(&format!("ctx list --label {by} --json"));
        assert_eq!(found[0]["context_id"], "1", "{by}");
    }
    // What a person makes of the labels later stays.
    let server = desk.sandbox.up(&[]);
    relabel(&server, "1");
    review
        .turn_completed(turn("aaaa1111", "More", "More"))
        .unwrap();
    assert_eq!(desk.json("keep review:3 --json")[0]["context_id"], "1");
    assert_eq!(
        desk.json("ctx list --label mine --json")[0]["labels"],
        serde_json::json!({ "mine": "yes" })
    );
    assert!(server.terminate().success());
    let log = "
        3 (ctx:1) turnkeep.capture.Turn@1 review (claude): More
        2 turnkeep.capture.Turn@1 review (claude, interrupted): Half
        1 turnkeep.capture.Turn@1 review (claude): Well done.
    ";
    check(&desk.says("log 1 --oneline"), log);
    assert!(
        desk.says("log 1")
            .contains("    review (claude)\n\n    Well done.\n"),
        "{}",
        desk.says("log 1")
    );
}

#[test]
fn a_turn_prints_its_content_on_one_stream_and_its_metadata_on_the_other() {
    let desk = Desk::new(&[]);
    let mut wrapper = desk.wrapper("aaaa1111", "review");
    let raw = Some("RAW\x1b[0m".into());
    wrapper
        .turn_completed(CompletedTurn {
            raw,
            raw_truncated: true,
            ..turn("aaaa1111", "\x1b[1mA\x1b[0m\n", "A")
        })
        .unwrap();
    wrapper.turn_completed(turn("aaaa1111", "B", "B")).unwrap();
    let streams = |args: &[&str]| {
        let output = command(&desk.sandbox, args).output().unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (content, metadata) = streams(&["turn", "review:1"]);
    assert_eq!(content, "\x1b[1mA\x1b[0m\n");
    let expect = "
        Turn:      aaaa1111:1
        Session:   review
        Preset:    claude
        Completed: 2023-11-14 22:13:20 UTC
        Size:      10 B
    ";
    check(&metadata, expect);
    assert_eq!(streams(&["turn", "review:1", "--text"]).0, "A");
    assert_eq!(streams(&["turn", "review:1", "--raw"]).0, "RAW\x1b[0m");
    assert_eq!(
        streams(&["turn", "review:2", "--raw"]).0,
        "B",
        "the content, where no raw bytes were kept"
    );
    let with_raw = |raw: &str| (format!("{metadata}Raw:       {raw}\n"), String::new());
    assert_eq!(
        streams(&["turn", "review:1", "--meta"]),
        with_raw("7 B, truncated")
    );
    assert!(
        streams(&["turn", "review:2", "--meta"])
            .0
            .ends_with("Raw:       not kept\n")
    );
    for (turn, kept) in [("review:1", true), ("review:2", false)] {
        let said = &desk.json(&format!("turn {turn} --meta --json"))[0];
        assert_eq!(
            (&said["raw_kept"], &said["raw_truncated"]),
            (&kept.into(), &kept.into()),
            "{turn}"
        );
    }
    let whole = &desk.json("turn @last:1 --json")[0];
    assert_eq!(
        (&whole["text"], &whole["content_b64"]),
        (&"A".into(), &"G1sxbUEbWzBtCg==".into())
    );
    assert!(
        desk.json("turn @last:1 --json --meta")[0]
            .get("content_b64")
            .is_none()
    );
}

#[test]
fn sessions_say_what_they_do_and_how_they_ended() {
    let desk = Desk::new(&[]);
    assert!(desk.says("sessions").starts_with("no sessions"));
    let quiet = desk.wrapper("aaaa1111", "quiet");
    let mut busy = desk.wrapper("bbbb2222", "busy");
    let state = AgentState::Working;
    let change = StateChange {
        session: "bbbb2222".to_owned(),
        state,
        since: Timestamp(5),
        signal: None,
        unanswered: 0,
    };
    busy.state(change).unwrap();
    let table = desk.says("sessions");
    let words = |line: usize| {
        table
            .lines()
            .nth(line)
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(
        words(1).starts_with("aaaa quiet claude no prompt seen yet"),
        "{table}"
    );
    assert!(words(2).starts_with("bbbb busy claude working"), "{table}");
    drop((quiet, busy));
    // The broker notices in its own time.
    let deadline = std::time::Instant::now() + LIMIT;
    while desk
        .json("sessions --json")
        .iter()
        .any(|session| session["connected"] == true)
    {
        assert!(
            std::time::Instant::now() < deadline,
            "the broker did not notice"
        );
    }
    let table = desk.says("sessions");
    assert!(table.contains("ended in mid-turn"), "{table}");
}

#[test]
fn a_paste_into_a_dialog_is_refused_unless_it_is_forced() {
    let desk = Desk::new(&[]);
    let mut review = desk.wrapper("aaaa1111", "review");
    review
        .turn_completed(turn("aaaa1111", "one\ntwo", "one\ntwo"))
        .unwrap();
    desk.says("capture review");
    let state = AgentState::Blocked;
    let change = StateChange {
        session: "aaaa1111".to_owned(),
        state,
        since: Timestamp(5),
        signal: None,
        unanswered: 0,
    };
    review.state(change).unwrap();
    let refused = "error: the program shows a dialog or has shown no prompt yet: a paste would answer it (blocked)\n\
                   hint: answer it in its terminal first, or paste all the same with --force\n[1]\n";
    for line in [
        "paste review",
        "deliver inject --session review",
        "paste review --raw",
    ] {
        assert_eq!(desk.says(line), refused, "{line}");
    }
    assert_eq!(
        desk.says("deliver file --path out.txt"),
        "delivered to file\n",
        "no dialog is in its way"
    );
    assert_eq!(desk.says("paste review --force"), "pasted into review\n");
    assert_eq!(review.next_inject(LIMIT).unwrap().content, "one\ntwo");
}

#[test]
fn a_turn_is_named_in_the_same_ways_by_every_command() {
    let desk = Desk::new(&[]);
    let mut review = desk.wrapper("aaaa1111", "review");
    let mut other = desk.wrapper("aabb2222", "other");
    for content in ["first", "second"] {
        review
            .turn_completed(turn("aaaa1111", content, content))
            .unwrap();
    }
    other
        .turn_completed(CompletedTurn {
            timestamp: Some(Timestamp(5)),
            ..turn("aabb2222", "old", "old")
        })
        .unwrap();
    for (name, expect) in [
        ("@last", "second"),
        ("@last:1", "first"),
        ("review", "second"),
        ("review:1", "first"),
        ("aaa:2", "second"),
        ("aaaa1111", "second"),
        ("aabb", "old"),
    ] {
        for command in ["turn", "show"] {
            let said = desk.says(&format!("{command} {name}"));
            assert!(said.starts_with(expect), "{command} {name}: {said}");
        }
        let captured = desk.says(&format!("capture {name}"));
        assert!(captured.contains(&format!("\"{expect}\"")), "{captured}");
        let kept = desk.says(&format!("keep {name}"));
        assert!(kept.starts_with("kept "), "{kept}");
    }
    let sessions = desk.says("sessions");
    assert!(
        sessions.contains("aaaa ") && sessions.contains("aabb ") && sessions.contains("second"),
        "{sessions}"
    );
    for (line, expect) in [
        (
            "turn turn:7",
            "this is a turn of the store: `turnkeep show` takes it",
        ),
        ("turns review:1", "expected a session"),
        ("log review", "expected a context"),
        ("show 7", "expected ctx:N, turn:N, blob:HASH"),
    ] {
        let said = desk.says(line);
        assert!(
            said.contains(expect) && said.ends_with("[2]\n"),
            "{line}: {said}"
        );
    }
}

#[test]
fn a_watched_table_shows_what_changes() {
    let desk = Desk::new(&[]);
    let mut wrapper = desk.wrapper("aaaa1111", "review");
    let mut watch = command(&desk.sandbox, &["sessions", "--watch", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["turns"], 0);
    wrapper.turn_completed(turn("aaaa1111", "A", "A")).unwrap();
    assert_eq!(next()["turns"], 1);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn what_cannot_be_done_says_why_and_what_to_do() {
    let desk = Desk::new(&[]);
    let _one = desk.wrapper("aaaa1111", "twin");
    let _two = desk.wrapper("aaaa2222", "twin");
    for (line, expect) in [
        (
            "capture nobody",
            "error: no session is called `nobody`\nhint: `turnkeep sessions` lists them\n[1]\n",
        ),
        (
            "capture twin",
            "error: `twin` may be any of 2 sessions\nhint: name one by its id: aaaa1, aaaa2\n[1]\n",
        ),
        (
            "capture @last",
            "error: no session has completed a turn yet\n[1]\n",
        ),
        (
            "capture aaaa1",
            "error: the session has completed no turn yet (no_turn)\nhint: wait until its agent has answered: `turnkeep sessions` says what it does\n[1]\n",
        ),
        (
            "paste aaaa1",
            "error: nothing was captured yet (buffer_empty)\nhint: capture a turn first: `turnkeep capture SESSION`\n[1]\n",
        ),
        (
            "turn aaaa1:7",
            "error: there is no such turn, or no longer (turn_not_found)\nhint: `turnkeep turns SESSION` lists the turns that are still there\n[1]\n",
        ),
        (
            "deliver printer",
            "error: unknown_sink: there is no sink `printer`\nhint: the sinks are inject, clipboard, file, store and node\n[1]\n",
        ),
        (
            "deliver file",
            "error: the sink file needs --path FILE\n[2]\n",
        ),
        (
            "deliver inject",
            "error: the sink inject needs --session SESSION\n[2]\n",
        ),
        (
            "deliver node --run 1",
            "error: the sink node needs --node NODE\n[2]\n",
        ),
        (
            "turns --json",
            "{\"error\":\"the following required arguments were not provided: <SESSION>\",\"hint\":\"Usage: turnkeep turns --json <SESSION>\"}\n[2]\n",
        ),
        (
            "capture nobody --json",
            "{\"error\":\"no session is called `nobody`\",\"hint\":\"`turnkeep sessions` lists them\"}\n[1]\n",
        ),
    ] {
        assert_eq!(desk.says(line), expect, "{line}");
    }
}

#[test]
fn without_a_broker_or_a_place_for_one_the_commands_say_so() {
    let sandbox = Sandbox::new();
    let error = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&mut sandbox.command(&["broker"])).contains("XDG_RUNTIME_DIR is not set"));
    assert!(error(&mut sandbox.command(&["sessions"])).contains("XDG_RUNTIME_DIR is not set"));
    std::fs::create_dir(sandbox.path("run")).unwrap();
    let unreachable = error(&mut command(&sandbox, &["sessions"]));
    assert!(
        unreachable.contains("hint: start it with `turnkeep broker`"),
        "{unreachable}"
    );
}

#[test]
fn one_broker_runs_at_a_time_and_leaves_nothing_but_its_directory() {
    let mut desk = Desk::new(&["--json"]);
    let socket = desk.sandbox.path("run/turnkeep/broker.sock");
    assert_eq!(
        (mode(&desk.sandbox.path("run/turnkeep")), mode(&socket)),
        (0o700, 0o600)
    );
    assert!(desk.says("broker").contains("already running"));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (status, rest) = desk.broker.end_by(signal);
        assert_eq!((status.code(), &*rest), (Some(0), ""), "{signal:?}");
        assert!(!socket.exists(), "{signal:?}");
        desk.broker = start(&desk.sandbox, &["broker"]);
    }
    // Killed, it leaves a stale socket, which the next one clears away.
    desk.broker.end_by(Signal::KILL);
    assert!(socket.exists());
    desk.broker = start(&desk.sandbox, &["broker"]);
    assert!(desk.says("sessions").starts_with("no sessions"));
}

#[test]
fn bounds_come_from_flags_environment_and_file() {
    let desk = Desk::new(&["--ring", "1"]);
    let mut wrapper = desk.wrapper("aaaa1111", "review");
    for content in ["A", "B"] {
        wrapper
            .turn_completed(turn("aaaa1111", content, content))
            .unwrap();
    }
    assert_eq!(desk.json("turns review --json").len(), 1);
    for (args, why) in [
        (
            &["broker", "--ring", "0"][..],
            "a ring holds 1 to 10000 turns",
        ),
        (
            &["broker", "--max-turn-bytes", "7340033"],
            "a turn holds 1 to 7340032 bytes",
        ),
        (&["up", "--max-memory", "1"], "memory for turns is at least"),
    ] {
        let output = command(&desk.sandbox, args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(why),
            "{args:?}"
        );
    }
}

#[test]
fn up_runs_a_broker_too_and_goes_on_without_one() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("run")).unwrap();
    let server = ServerProcess::start(&mut command(&sandbox, &["up", "--json"]));
    assert_eq!(
        server.said["broker"],
        sandbox.path("run/turnkeep/broker.sock").to_str().unwrap()
    );
    let mut wrapper = Connection::open(
        server.said["broker"].as_str().unwrap().as_ref(),
        Role::Wrapper,
        LIMIT,
    )
    .unwrap();
    let session = "aaaa1111".to_owned();
    wrapper
        .register(Register {
            session,
            ..Register::default()
        })
        .unwrap();
    wrapper.turn_completed(turn("aaaa1111", "A", "A")).unwrap();
    for args in [
        &["capture", "@last"][..],
        &["deliver", "store"],
        &["log", "1"],
    ] {
        let output = command(&sandbox, args).output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(server.terminate().code(), Some(0));
    let server = sandbox.up(&[]);
    assert_eq!(
        server.said["broker"],
        Value::Null,
        "without XDG_RUNTIME_DIR"
    );
    assert!(server.terminate().success());
}

#[test]
fn doctor_tells_by_which_sign_the_turns_of_a_session_are_told() {
    let desk = Desk::new(&[]);
    let mut review = desk.wrapper("aaaa1111", "review");
    let _tests = desk.wrapper("bbbb2222", "tests");
    let state = AgentState::Ready;
    let signal = Some("title".to_owned());
    review
        .state(StateChange {
            session: "aaaa1111".to_owned(),
            state,
            since: Timestamp(1),
            signal,
            unanswered: 0,
        })
        .unwrap();
    let said = desk.says("doctor");
    for expect in [
        "runs; 2 wrapped sessions",
        "review: turns are detected by title",
        "tests: no prompt seen yet",
    ] {
        assert!(said.contains(expect), "{said}");
    }
}
