//! Every example, run as its own program against the real server, and the guide's first program.
//!
//! Cargo builds the examples before it runs this. The server is the binary of `TURNKEEP_BIN`, or
//! else the one that a test of the whole workspace has built beside the examples.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../../cli/tests/sandbox/server_process.rs"]
mod server_process;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use server_process::{ServerProcess, UP};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Far more than any of them needs.
const PATIENCE: Duration = Duration::from_mins(1);

/// An example's name, and what it prints with every run of digits or of hex as `#`.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("append", &["turn # at depth # with payload #"]),
    ("append_batch", &["# turns, the last at depth #"]),
    ("attach_fs", &["turn # has the files of #"]),
    ("before", &["depth #: payload #"; 3]),
    ("cancel", &["before: depth #", "after: depth #"]),
    (
        "create_context",
        &["context #, and with the same key again #"],
    ),
    ("fork_context", &["context # begins at turn #"]),
    ("get_blob", &["got by an example"]),
    ("has_blobs", &["[true, false]"]),
    ("head", &["context # is empty"]),
    ("hello", &["connected to #.#.#.#:#"]),
    ("last", &["depth #: # bytes of com.example.Note@#"; 2]),
    ("pipeline", &["the last of # turns is at depth #"]),
    ("put_blob", &["# is new"]),
    ("put_bundle", &["the bundle is new"]),
    (
        "quickstart",
        &[
            "turn # is durable",
            "turn # is durable",
            r#"com.example.Greeting@#: b"\x#\x#\xa#hello""#,
            r#"com.example.Greeting@#: b"\x#\x#\xa#world""#,
        ],
    ),
    ("range", &["depth #: written at # ms"]),
    (
        "subscribe",
        &[
            r#"depth #: b"\x#\x#\xa#a""#,
            r#"depth #: b"\x#\x#\xa#b""#,
            r#"depth #: b"\x#\x#\xa#c""#,
        ],
    ),
];

/// Programs that others start: the interoperability matrix and the comparison of the clients'
/// speed.
const TOOLS: &[&str] = &["bench_client", "interop"];

/// A server on free ports and a directory of its own.
struct Server {
    process: ServerProcess,
    _data: TempDir,
}

impl Server {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(server_binary());
        command.args(UP).arg("--data").arg(data.path());
        Self {
            process: ServerProcess::start(&mut command),
            _data: data,
        }
    }

    /// Runs an example to its end and gives what it prints.
    fn run(&self, example: &str) -> String {
        let program = built(&format!("examples/{example}"));
        assert!(
            program.is_file(),
            "not built: cargo build -p turnkeep-client --example {example}"
        );
        let output = Command::new("timeout")
            .arg(PATIENCE.as_secs().to_string())
            .arg(program)
            .env("TURNKEEP_ADDR", self.process.tcp())
            .env("TURNKEEP_TOKEN", self.process.token())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{example}: {}\n{errors}",
            output.status
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

/// What cargo has built for the same profile as this test.
fn built(name: &str) -> PathBuf {
    let profile = env::current_exe()
        .unwrap()
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .to_owned();
    profile.join(name)
}

fn server_binary() -> PathBuf {
    let binary = env::var_os("TURNKEEP_BIN").map_or_else(|| built("turnkeep"), PathBuf::from);
    assert!(
        binary.is_file(),
        "no server binary: run ./x test, or set TURNKEEP_BIN"
    );
    binary
}

/// The text with every run of digits, and every hash, as `#`.
fn normal(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let hex = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let taken = if hex == 64 { hex } else { digits };
        if taken > 0 {
            out.push('#');
            rest = &rest[taken..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

#[test]
fn every_example_does_what_it_says() {
    let server = Server::start();
    for (name, expect) in EXAMPLES {
        let printed = server.run(name);
        let lines: Vec<String> = printed.lines().map(normal).collect();
        assert_eq!(lines, *expect, "{name} printed\n{printed}");
    }
}

#[test]
fn every_example_is_run() {
    let known: BTreeSet<&str> = EXAMPLES
        .iter()
        .map(|(name, _)| *name)
        .chain(TOOLS.iter().copied())
        .collect();
    let entries = fs::read_dir(format!("{ROOT}/crates/client/examples")).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let there: BTreeSet<&str> = paths
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(there, known);
}

#[test]
fn the_guide_begins_with_the_example_that_is_run() {
    let guide = fs::read_to_string(format!("{ROOT}/docs/clients/rust.md")).unwrap();
    let program = guide
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let example =
        fs::read_to_string(format!("{ROOT}/crates/client/examples/quickstart.rs")).unwrap();
    let code = example.split_once("\n\n").unwrap().1;
    assert_eq!(
        program, code,
        "docs/clients/rust.md and examples/quickstart.rs differ"
    );
}

#[test]
fn numbers_and_hashes_are_told_from_words() {
    assert_eq!(normal("turn 12 at 3, feed"), "turn # at #, feed");
    assert_eq!(
        normal(&format!("payload {} ok", "a1".repeat(32))),
        "payload # ok"
    );
}
