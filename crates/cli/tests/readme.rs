//! Runs the README's session, command by command, against the real binary in a directory of its
//! own.
//!
//! In a `console` block a line that starts with `$ ` is a command and the lines up to the next one
//! are what it prints. A line `...` stands for any number of lines, `[..]` within a line for any
//! text.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::Command;

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

fn run(command: &str, home: &Path) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_turnkeep"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", command])
        .current_dir(ROOT)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TURNKEEP_DATA", home.join("data"))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_session_of_the_readme_runs_as_printed() {
    let steps = session(&fs::read_to_string(format!("{ROOT}/README.md")).unwrap());
    assert!(
        steps.len() >= 5,
        "the session has only {} commands",
        steps.len()
    );
    let home = tempfile::tempdir().unwrap();
    for step in steps {
        let (ok, text) = run(&step.command, home.path());
        assert!(ok, "$ {}\n{text}", step.command);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(
            matches(&step.expect, &lines),
            "$ {}\n{text}\nexpected:\n{}",
            step.command,
            step.expect.join("\n")
        );
    }
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
