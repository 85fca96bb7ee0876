//! Runs the README's session, command by command, against the real binary in a directory of its
//! own.
//!
//! In a `console` block a line that starts with `$ ` is a command and the lines up to the next one
//! are what it prints. A line `...` stands for any number of lines, `[..]` within a line for any
//! text.
//!
//! Before the first command for runs the test starts a server, as the README tells the reader to. The
//! agent program is the scripted agent, so the session needs no model and no network.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "sandbox/mod.rs"]
mod sandbox;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "agents/team.rs"]
mod team;

use std::fs;
use std::path::Path;
use std::process::Command;

use sandbox::{Sandbox, ServerProcess, UP};
use team::Team;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

struct Step {
    command: String,
    expect: Vec<String>,
}

fn session(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (line, inside) {
            ("```console", false) => inside = true,
            ("```", true) => inside = false,
            (line, true) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step {
                        command: command.to_owned(),
                        expect: Vec::new(),
                    });
                }
                (None, Some(step)) => step.expect.push(line.to_owned()),
                (None, None) => panic!("output before the first command: {line}"),
            },
            (_, false) => {}
        }
    }
    steps
}

/// Whether `line` is `pattern` with each `[..]` replaced by some text.
fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        last = Some(part);
    }
    rest.is_empty() || last.is_some_and(|part| part.is_empty() || line.ends_with(part))
}

fn matches(expect: &[String], actual: &[&str]) -> bool {
    match expect {
        [] => actual.is_empty(),
        [any, tail @ ..] if any == "..." => {
            (0..=actual.len()).any(|skip| matches(tail, &actual[skip..]))
        }
        [first, tail @ ..] => match actual {
            [line, rest @ ..] => line_matches(first, line) && matches(tail, rest),
            [] => false,
        },
    }
}

/// What the agent of the README does.
const AGENT: &str = r#"
[[turn]]
steps = [
    { say = "I will write the file." },
    { write = "hello.txt", content = "Hello!\n", ask = true },
    { say = "hello.txt says hello." },
]
"#;

/// A program in the reader's home, with nothing else in its environment.
fn command_in(home: &Path, program: &str) -> Command {
    let turnkeep = Path::new(env!("CARGO_BIN_EXE_turnkeep"));
    let path = format!("{}:/usr/bin:/bin", turnkeep.parent().unwrap().display());
    let mut command = Command::new(program);
    command.current_dir(ROOT).env_clear().env("PATH", path);
    command.env("HOME", home);
    command.env("TURNKEEP_DATA", home.join("data"));
    command
}

fn run(command: &str, home: &Path) -> (bool, String) {
    // In one stream, as a terminal shows it.
    let script = format!("exec 2>&1\n{command}");
    let output = command_in(home, "timeout")
        .args(["60", "sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), text)
}

/// Starts the server of the session, with the scripted agent in the place of Claude Code.
fn start_server(home: &Path) -> ServerProcess {
    let (agent, script) = (home.join("turnkeep-agent-script"), home.join("agent.toml"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnkeep"), &agent).unwrap();
    fs::write(&script, AGENT).unwrap();
    let config = home.join(".config/turnkeep");
    fs::create_dir_all(&config).unwrap();
    let settings = format!(
        "[providers.claude]\ncommand = '{}'\nargs = ['--script', '{}']\n",
        agent.display(),
        script.display()
    );
    fs::write(config.join("config.toml"), settings).unwrap();
    ServerProcess::start(command_in(home, env!("CARGO_BIN_EXE_turnkeep")).args(UP))
}

#[test]
fn the_session_of_the_readme_runs_as_printed() {
    let steps = session(&fs::read_to_string(format!("{ROOT}/README.md")).unwrap());
    assert!(
        steps.len() >= 5,
        "the session has only {} commands",
        steps.len()
    );
    let sandbox = Sandbox::new();
    let home = sandbox.path("");
    let mut server = None;
    for step in steps {
        if step.command.starts_with("turnkeep run ") {
            server.get_or_insert_with(|| start_server(&home));
        }
        let (ok, text) = run(&step.command, &home);
        assert!(ok, "$ {}\n{text}", step.command);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(
            matches(&step.expect, &lines),
            "$ {}\n{text}\nexpected:\n{}",
            step.command,
            step.expect.join("\n")
        );
    }
    // The checks of every server with runs.
    drop(Team::of_server(sandbox, Some(server.unwrap())));
}

#[test]
fn patterns_match_what_they_say() {
    let check = |pattern: &str, text: &str, expect: bool| {
        let pattern: Vec<String> = pattern.lines().map(str::to_owned).collect();
        assert_eq!(
            matches(&pattern, &text.lines().collect::<Vec<_>>()),
            expect,
            "{pattern:?} on {text:?}"
        );
    };
    check("a", "a", true);
    check("a", "b", false);
    check("a", "a\nb", false);
    check("...", "", true);
    check("...\nb", "a\nb", true);
    check("...\nb", "a\nc", false);
    check("x [..] z", "x y z", true);
    check("x [..] z", "x y", false);
    check("x[..]", "xyz", true);
    check("[..]a", "ba", true);
    check("[..]a", "bab", false);
}
