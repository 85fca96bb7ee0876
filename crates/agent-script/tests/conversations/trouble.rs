//! What goes wrong: crashes, garbage, silence, limits.

use std::os::unix::process::{CommandExt, ExitStatusExt};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
use serde_json::{Value, json};

use super::harness::{
    Agent, CLAUDE, CODEX, GEMINI, JSONL, Workplace, acp_prompt, codex_prompt, open_acp_session,
    open_codex_thread, wait_until,
};

fn start(prompt: &str) -> (Workplace, Agent) {
    let workplace = Workplace::with_example("crash.toml");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt(prompt);
    (workplace, agent)
}

fn read_to_end(agent: &mut Agent) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| agent.read_bytes()).collect()
}

#[test]
fn a_crash_has_a_code_and_a_last_word() {
    let (_workplace, mut agent) = start("crash");
    let lines = read_to_end(&mut agent);
    assert!(!lines.is_empty());
    assert_eq!(agent.wait().code(), Some(3));
    assert_eq!(agent.errors(), "fatal: out of luck\n");
}

#[test]
fn a_kill_is_a_signal() {
    let (_workplace, mut agent) = start("die");
    assert_eq!(agent.wait().signal(), Some(9));
}

#[test]
fn garbage_arrives_as_it_is() {
    let (_workplace, mut agent) = start("garbage");
    let mut lines = Vec::new();
    loop {
        let line = agent.read_bytes().unwrap();
        if line.starts_with(br#"{"type":"result""#) {
            break;
        }
        lines.push(line);
    }
    assert!(lines.contains(&b"Segmentation fault".to_vec()));
    assert!(lines.contains(&vec![0xff, 0xfe]));
}

#[test]
fn a_closed_output_ends_in_mid_line() {
    let (_workplace, mut agent) = start("cut");
    let lines = read_to_end(&mut agent);
    let last: Result<Value, _> = serde_json::from_slice(lines.last().unwrap());
    assert!(last.is_err(), "the last line is whole");
    // The program itself goes on.
    agent.close_input();
    assert!(agent.wait().success());
}

#[test]
fn silence_ends_with_the_input() {
    let (_workplace, mut agent) = start("hang");
    agent.read_to_value("/subtype", "init");
    assert!(agent.leave().success());
}

#[test]
fn an_interrupt_stops_what_a_command_started() {
    let script = "[[turn]]\nsteps = [{ run = 'sleep 600 & echo $! > child.pid; wait' }]";
    let workplace = Workplace::new(script);
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("go");
    let child = wait_until("a process id", || {
        workplace.await_file("child.pid").trim().parse().ok()
    });
    let child = Pid::from_raw(child).unwrap();
    let request = json!({"subtype": "interrupt"});
    agent.send(&json!({"type": "control_request", "request_id": "s", "request": request}));
    agent.read_to_value("/type", "result");
    wait_until("the end of the child", || is_gone(child).then_some(()));
}

#[test]
fn a_deaf_turn_and_its_child_die_with_the_group() {
    let workplace = Workplace::with_example("crash.toml");
    let mut command = workplace.command(CLAUDE);
    let mut agent = Agent::start(command.process_group(0));
    agent.send_claude_prompt("deaf");
    let child = workplace.await_file("child.pid");
    let child = Pid::from_raw(child.parse().unwrap()).unwrap();
    let request = json!({"subtype": "interrupt"});
    agent.send(&json!({"type": "control_request", "request_id": "s", "request": request}));
    // The answer to a later request shows that the interrupt was read, and had no effect.
    let request = json!({"subtype": "set_model", "model": "m"});
    agent.send(&json!({"type": "control_request", "request_id": "m", "request": request}));
    let answer = agent.read_to_value("/type", "control_response");
    assert_eq!(answer["response"]["request_id"], "m");
    assert!(test_kill_process(child).is_ok());
    let group = Pid::from_raw(i32::try_from(agent.id()).unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    assert_eq!(agent.wait().signal(), Some(9));
    wait_until("the end of the child", || is_gone(child).then_some(()));
}

/// Whether a process has ended. Without a parent that waits for it, it may stay as a zombie.
fn is_gone(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    status.map_or(true, |status| status.contains(") Z "))
}

#[test]
fn claude_reports_limits_overload_and_errors() {
    let workplace = Workplace::with_example("crash.toml");
    let mut agent = workplace.start(CLAUDE);
    let turn = agent.claude_turn("limit");
    let limit = turn
        .iter()
        .find(|message| message["type"] == "rate_limit_event")
        .unwrap();
    assert_eq!(limit["rate_limit_info"]["status"], "rejected");
    assert!(limit["rate_limit_info"]["resetsAt"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(turn.last().unwrap()["api_error_status"], 429);
    let turn = agent.claude_turn("overload");
    assert_eq!(turn.last().unwrap()["api_error_status"], 529);
    assert_eq!(turn.last().unwrap()["result"], "API Error: 529 Overloaded");
    let turn = agent.claude_turn("error");
    let result = turn.last().unwrap();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["result"], "the model refused");
}

#[test]
fn codex_reports_limits_overload_and_errors() {
    let workplace = Workplace::with_example("crash.toml");
    let mut agent = workplace.start(CODEX);
    let thread = open_codex_thread(&mut agent, &json!({}));
    let mut error = |prompt: &str| {
        agent.send_request("turn/start", &codex_prompt(&thread, prompt));
        let turn = agent.read_until(|message| message["method"] == "turn/completed");
        let last = turn.last().unwrap()["params"]["turn"].clone();
        assert_eq!(last["status"], "failed");
        assert!(
            turn.iter()
                .any(|m| m["method"] == "error" && m["params"]["error"] == last["error"])
        );
        (last["error"]["codexErrorInfo"].clone(), turn)
    };
    let (info, turn) = error("limit");
    assert_eq!(info, "usageLimitExceeded");
    let limits = turn
        .iter()
        .find(|m| m["method"] == "account/rateLimits/updated")
        .unwrap();
    assert!(
        limits["params"]["rateLimits"]["primary"]["resetsAt"]
            .as_u64()
            .unwrap()
            > 1_700_000_000
    );
    assert_eq!(error("overload").0, "serverOverloaded");
    assert_eq!(error("error").0, "other");
}

#[test]
fn gemini_reports_limits_overload_and_errors() {
    let workplace = Workplace::with_example("crash.toml");
    let mut agent = workplace.start(GEMINI);
    let session = open_acp_session(&mut agent, &workplace, &json!([]));
    let mut error = |prompt: &str| {
        let answer = agent.request("session/prompt", &acp_prompt(&session, prompt));
        answer["error"].clone()
    };
    let limit = error("limit");
    assert_eq!(limit["code"], 429);
    assert_eq!(
        limit["message"],
        "Rate limit exceeded. Your quota will reset after 3600s."
    );
    assert_eq!(error("overload")["code"], 503);
    assert_eq!(error("error")["message"], "the model refused");
}

#[test]
fn jsonl_reports_limits_overload_and_errors() {
    let workplace = Workplace::with_example("crash.toml");
    let mut agent = workplace.start(JSONL);
    let mut status = |prompt: &str| {
        agent.send(&json!({"type": "message.user", "content": prompt}));
        let line = agent.read_to_value("/type", "turn.status");
        assert_eq!(line["status"], "turn.failed");
        line
    };
    assert_eq!(status("limit")["httpStatus"], 429);
    assert_eq!(status("overload")["httpStatus"], 503);
    assert_eq!(status("error")["detail"], "the model refused");
}
