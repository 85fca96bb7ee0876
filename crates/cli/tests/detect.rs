//! `turnkeep detect` on recordings: the turns, the shape of `--json`, profiles from the
//! configuration.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use sandbox::{Sandbox, check};
use serde_json::{Value, json};

const RECORDING: &str = r#"{"t":0,"dir":"h","cols":80,"rows":24,"argv":["demo"]}
{"t":0.1,"dir":"o","b64":"b2s+IA=="}
{"t":1.0,"dir":"i","src":"user","b64":"aGkN"}
{"t":1.1,"dir":"o","b64":"aGkNChtbMzFtaGVsbG8bWzBtDQpvaz4g"}
{"t":1.5,"dir":"m","mark":"turn-start"}
{"t":3.0,"dir":"s","icanon":true,"echo":true}
"#;

fn terminals(name: &str) -> String {
    format!(
        "{}/../../testdata/terminals/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

fn json_lines(output: &std::process::Output) -> Vec<Value> {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_recording_is_replayed_with_its_own_times() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("demo.jsonl"), RECORDING).unwrap();
    check(
        &sandbox.transcript("detect demo.jsonl --pattern ^ok>"),
        "
$ detect demo.jsonl --pattern ^ok>
turn 1  1.000 to 1.200 s, by line
  hello

",
    );
    let turns = json_lines(&sandbox.output(&["detect", "demo.jsonl", "--json"], b""));
    let turn = json!({
        "turn": 1, "start_t": 1.0, "end_t": 1.2, "interrupted": false, "incomplete": false, "unprompted": false,
        "signal": "line", "text": "hello", "content_b64": "G1szMW1oZWxsbxtbMG0NCg==",
    });
    assert_eq!(turns, [turn]);
}

#[test]
fn a_packed_recording_of_a_real_program_gets_the_preset_of_its_name() {
    let sandbox = Sandbox::new();
    let turns = json_lines(&sandbox.output(
        &["detect", &terminals("claude-tool.jsonl.zst"), "--json"],
        b"",
    ));
    let text: Vec<&str> = turns
        .iter()
        .map(|turn| turn["text"].as_str().unwrap())
        .collect();
    assert_eq!(turns.len(), 4);
    assert_eq!(
        text[0],
        "I will create it.\n\nThe file hello.txt now exists."
    );
    assert_eq!(turns[0]["signal"], "status");
}

#[test]
fn a_profile_of_the_configuration_is_known_and_a_wrong_one_is_shown() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("demo.jsonl"), RECORDING).unwrap();
    let config = "[programs]\ndemo = 'mine'\n[profiles.mine.prompt]\ncursor = '^ok> $'\n";
    std::fs::write(sandbox.path("good.toml"), config).unwrap();
    let turns = json_lines(&sandbox.output(
        &["detect", "demo.jsonl", "--json", "--config", "good.toml"],
        b"",
    ));
    assert_eq!(turns[0]["text"], "hello");
    std::fs::write(
        sandbox.path("bad.toml"),
        "[profiles.mine]\nline = \"a\\nb\"\n",
    )
    .unwrap();
    check(
        &sandbox.transcript(
            "detect demo.jsonl --config bad.toml
             detect demo.jsonl --preset nobody
             detect demo.jsonl --pattern a(b",
        ),
        r#"
$ detect demo.jsonl --config bad.toml
error: the configuration bad.toml is not valid: profile mine: line: a pattern is matched line by line and must not hold a newline (column 2)
    a⏎b
     ^
[exit status: 2]
$ detect demo.jsonl --preset nobody
error: no profile is called "nobody"; there are aider, bash, claude, cn, codex, copilot, fish, gdb, gemini, generic, ipython, kilo, node, opencode, pi, psql, python, qwen, sqlite3, vibe, zsh
[exit status: 2]
$ detect demo.jsonl --pattern a(b
error: --pattern: regex parse error:
    a(b
     ^
error: unclosed group
[exit status: 2]
"#,
    );
}

#[test]
fn what_is_no_recording_is_refused_with_its_row() {
    let sandbox = Sandbox::new();
    for (name, text, said) in [
        (
            "json",
            "{\"t\":0,\"dir\":\"h\"}\nnonsense\n",
            "error: json: row 2: ",
        ),
        (
            "time",
            "{\"t\":-1,\"dir\":\"o\",\"b64\":\"\"}\n",
            "error: time: row 1: t is -1",
        ),
        (
            "bytes",
            "{\"t\":1,\"dir\":\"o\",\"b64\":\"***\"}\n",
            "error: bytes: row 1: b64: ",
        ),
    ] {
        std::fs::write(sandbox.path(name), text).unwrap();
        let refused = sandbox.output(&["detect", name], b"");
        assert_eq!(refused.status.code(), Some(1));
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.starts_with(said), "{error}");
    }
    assert_eq!(
        sandbox
            .output(&["detect", "absent.jsonl"], b"")
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn a_recording_whose_end_is_missing_is_read_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    let rows: usize = RECORDING.lines().take(4).map(|line| line.len() + 1).sum();
    for (name, cut) in [
        ("mode", RECORDING.len() - 7),
        ("mark", rows + 9),
        ("whole", rows),
    ] {
        let text = RECORDING.as_bytes().get(..cut).unwrap();
        std::fs::write(sandbox.path(name), text).unwrap();
        let output = sandbox.output(&["detect", name, "--pattern", "^ok>", "--json"], b"");
        let note = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            note.contains("the last row is cut off and left out"),
            name != "whole",
            "{name}: {note}"
        );
        assert_eq!(json_lines(&output).len(), 1, "{name}");
    }
    // A packed one: what can be unpacked of it, here nothing behind the first rows.
    let noise = (0_u64..60_000).fold(RECORDING.to_owned(), |text, at| {
        let mark = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text + &format!("{{\"t\":9,\"dir\":\"m\",\"mark\":\"{mark}\"}}\n")
    });
    let packed = zstd::encode_all(noise.as_bytes(), 1).unwrap();
    std::fs::write(
        sandbox.path("cut.jsonl.zst"),
        packed.get(..packed.len() / 2).unwrap(),
    )
    .unwrap();
    let output = sandbox.output(
        &["detect", "cut.jsonl.zst", "--pattern", "^ok>", "--json"],
        b"",
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("the file is cut off"));
    assert_eq!(json_lines(&output)[0]["text"], "hello");
}

/// A recording of a program's output and a person's keys, by the second.
fn recording(events: &[(f64, &str, &str)]) -> String {
    use base64::Engine as _;
    let row = |(at, dir, bytes): &(f64, &str, &str)| {
        let b64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        format!("{}\n", json!({ "t": at, "dir": dir, "b64": b64 }))
    };
    events.iter().map(row).collect()
}

#[test]
fn the_profiles_that_the_documentation_shows_work_as_written() {
    let sandbox = Sandbox::new();
    let path = format!(
        "{}/../../docs/turn-detection.md",
        env!("CARGO_MANIFEST_DIR")
    );
    let document = std::fs::read_to_string(path).unwrap();
    let example = document
        .split("```")
        .find(|block| block.contains("[profiles.mycli]"))
        .unwrap();
    std::fs::write(
        sandbox.path("docs.toml"),
        example.strip_prefix("toml").unwrap(),
    )
    .unwrap();
    let by_rows = [
        (1.0, "o", "> "),
        (2.0, "i", "x\r"),
        (2.1, "o", "x\r\nesc to stop\r\n"),
        (3.0, "o", "\x1b[1A\x1b[2K● said so\r\n  and more\r\n> "),
        (6.0, "i", "y"),
    ];
    let by_title = [
        (1.0, "o", "\x1b]2;mycli\x07> "),
        (2.0, "i", "x\r"),
        (2.1, "o", "x\r\n\x1b]2;⠋ busy\x07"),
        (3.0, "o", "● said so\r\n  and more\r\n> \x1b]2;mycli\x07"),
        (6.0, "i", "y"),
    ];
    let prompt = [
        (1.0, "o", "\x1b[?2004hmyrepl> "),
        (2.0, "i", "x\r"),
        (2.1, "o", "x\r\n\x1b[?2004lsaid so\r\n\x1b[?2004hmyrepl> "),
        (6.0, "i", "y"),
    ];
    let line = [
        (1.0, "o", "ready> "),
        (2.0, "i", "x\r"),
        (2.1, "o", "x\r\nsaid so\r\nready> "),
        (6.0, "i", "y"),
    ];
    for (name, preset, events, expect) in [
        ("mycli.jsonl", "mycli", &by_rows[..], "said so\nand more"),
        ("mycli-2.jsonl", "mycli", &by_title, "said so\nand more"),
        ("repl.jsonl", "myrepl", &prompt, "said so"),
        ("tool.jsonl", "mytool", &line, "said so"),
    ] {
        std::fs::write(sandbox.path(name), recording(events)).unwrap();
        let args = [
            "detect",
            name,
            "--json",
            "--config",
            "docs.toml",
            "--preset",
            preset,
        ];
        // The program's base name finds its profile too.
        let args = if preset == "mycli" {
            &args[..5]
        } else {
            &args[..]
        };
        let turns = json_lines(&sandbox.output(args, b""));
        let texts: Vec<&str> = turns
            .iter()
            .map(|turn| turn["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, [expect], "{name}");
    }
}
