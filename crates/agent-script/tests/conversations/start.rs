//! Starting: help, wrong arguments, wrong scripts, the log of prompts.

use std::process::{Command, Stdio};

use super::harness::{CLAUDE, GEMINI, Workplace};

fn run(workplace: &Workplace, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep-agent-script"));
    command
        .current_dir(workplace.path())
        .args(arguments)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn help_shows_a_script_and_version_a_number() {
    let workplace = Workplace::new("");
    let (code, help, _) = run(&workplace, &["--help"]);
    assert_eq!(code, Some(0));
    assert!(help.contains("Usage:") && help.contains("[[turn]]"));
    assert!(help.lines().all(|line| line.chars().count() <= 100));
    let (code, version, _) = run(&workplace, &["--version"]);
    assert_eq!(code, Some(0));
    assert!(version.starts_with("turnkeep-agent-script 0."));
}

#[test]
fn a_wrong_script_names_file_and_line() {
    let workplace = Workplace::new("[[turn]]\nsteps = [\n    { sya = 'hi' },\n]\n");
    let (code, _, errors) = run(&workplace, &["--acp", "--script", "script.toml"]);
    assert_eq!(code, Some(2));
    let expect =
        "turnkeep-agent-script: script.toml: line 3: unknown step (sya); a step has one of:";
    assert!(errors.starts_with(expect), "{errors}");
    let (code, _, errors) = run(&workplace, &["--acp", "--script", "gone.toml"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("cannot read the script gone.toml"),
        "{errors}"
    );
    let (code, _, errors) = run(&workplace, &["--script", "script.toml"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("no protocol"), "{errors}");
}

#[test]
fn the_environment_may_name_the_script() {
    let workplace = Workplace::with_example("happy.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep-agent-script"));
    command
        .current_dir(workplace.path())
        .args(GEMINI)
        .stdin(Stdio::null());
    let status = command
        .env("TURNKEEP_AGENT_SCRIPT", "script.toml")
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn prompts_are_logged_copied_and_hashed() {
    let script =
        "[[turn]]\nrepeat = true\nsteps = [{ prompt_copy = 'copy' }, { prompt_hash = 'hash' }]";
    let workplace = Workplace::new(script);
    let arguments = [CLAUDE, &["--log", "log"]].concat();
    let prompt = "zwölf\n\n  Boxkämpfer\t\"jagen\"\n";
    workplace.start(&arguments).claude_turn(prompt);
    assert_eq!(workplace.read("copy"), prompt);
    assert_eq!(
        workplace.read("hash"),
        blake3::hash(prompt.as_bytes()).to_hex().as_str()
    );
    // A second process continues the numbers.
    workplace.start(&arguments).claude_turn("next");
    assert_eq!(workplace.read("log/0001.txt"), prompt);
    assert_eq!(workplace.read("log/0002.txt"), "next");
}

#[test]
fn a_state_file_carries_on_after_a_kill() {
    let script =
        "[[turn]]\nsteps = [{ say = '1' }, 'kill_self']\n[[turn]]\nsteps = [{ say = '2' }]";
    let workplace = Workplace::new(script);
    let arguments = [CLAUDE, &["--state", "state.json"]].concat();
    let mut agent = workplace.start(&arguments);
    agent.send_claude_prompt("go");
    agent.wait();
    let turn = workplace.start(&arguments).claude_turn("go on");
    assert_eq!(turn.last().unwrap()["result"], "2");
    workplace.write("state.json", "no state");
    let (code, _, errors) = run(
        &workplace,
        &["--acp", "--script", "script.toml", "--state", "state.json"],
    );
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("state.json: this is no state file"),
        "{errors}"
    );
}
