//! The server as the supervisor of processes: programs, setup commands and verification commands.

use serde_json::{Value, json};

use crate::processes::{is_alive, read_pid, recorded, wait_until};
use crate::team::{PROTOCOLS, Team, make_repository, skip};

/// A program that starts a child and then neither speaks nor stops.
const STUBBORN: &str = r#"
[[turn]]
when = "HANG NOW"
repeat = true
ignore_interrupt = true
steps = [
    { spawn_child = "SANDBOX/child.pid" },
    { say = "I hang." },
    "silence",
]

[[turn]]
when = "CLAIM IT"
repeat = true
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "I claimed it." },
]

[[turn]]
repeat = true
steps = [{ say = "Fine." }]
"#;

/// A command that starts a child, writes its id and waits for it.
const HANGING: &str = "sleep 600 & echo $! > SANDBOX/command.pid; wait";

fn start(config: &str) -> Team {
    let team = Team::start_with(STUBBORN, |_| format!("[runs]\n{config}\n"));
    make_repository(&team.work());
    team
}

fn hanging(team: &Team) -> String {
    HANGING.replace("SANDBOX", team.sandbox.path("").to_str().unwrap())
}

/// Starts a program that hangs, and returns its run, its node and the id of its child.
fn hang(team: &Team, protocol: &str) -> (String, String, i32) {
    let pid_file = team.sandbox.path("child.pid");
    std::fs::remove_file(&pid_file).ok();
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", protocol, skip("w"));
    team.chat(&run, &node, "HANG NOW");
    (run, node, read_pid(&pid_file))
}

fn act(team: &Team, run: &str, node: &str, action: &str) -> Value {
    let path = format!("/api/runs/{run}/nodes/{node}/{action}");
    team.post(&path, &json!({}))["node"].take()
}

fn wait_for_connection(team: &Team, run: &str, node: &str, status: &str) {
    wait_until(status, || {
        team.show_node(run, node)["connection"]["status"] == status
    });
}

#[test]
fn silence_and_the_ceiling_kill_the_whole_group() {
    let team = start("program_stop_ms = 50");
    for protocol in PROTOCOLS {
        for (limit, reason) in [
            ("silenceEndMs", "timed out: it printed nothing"),
            ("turnEndMs", "timed out: the turn took too long"),
        ] {
            let (run, node, child) = hang(&team, protocol);
            assert!(is_alive(child));
            // The limit is set once the child runs, so that it never comes too early.
            let limits = json!({"limits": {limit: 1}});
            team.patch(&format!("/api/runs/{run}"), &limits);
            assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.failed");
            let failed = team.wait_for(&run, "the end", |event| event["status"] == "turn.failed");
            assert_eq!(failed["detail"], reason, "{protocol}");
            wait_until("the child outlives its program", || !is_alive(child));
        }
    }
}

#[test]
fn a_program_that_does_not_stop_is_killed_with_its_children() {
    let team = start("program_stop_ms = 50");
    let (run, node, child) = hang(&team, "claude");
    act(&team, &run, &node, "interrupt");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.interrupted");
    wait_until("the child outlives its program", || !is_alive(child));
    team.chat(&run, &node, "again");
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
}

#[test]
fn start_and_stop_act_on_the_process_only_and_can_be_repeated() {
    let team = start("");
    for protocol in ["claude", "codex", "gemini"] {
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", protocol, skip("w"));
        let before = team.events(&run).len();
        act(&team, &run, &node, "stop");
        act(&team, &run, &node, "start");
        wait_for_connection(&team, &run, &node, "idle");
        let started = recorded(&team);
        assert_eq!(started.len(), 1, "{protocol}");
        act(&team, &run, &node, "start");
        for _ in 0..2 {
            act(&team, &run, &node, "stop");
            wait_for_connection(&team, &run, &node, "disconnected");
        }
        wait_until("the record stays", || recorded(&team).is_empty());
        // The record goes when the kill is sent; the process may still be ending.
        wait_until("the process stays", || !is_alive(started[0]));
        // A program that was quick enough has named its session.
        let mut events = team.events(&run).split_off(before);
        events.retain(|event| event["patch"]["session"].is_null());
        assert!(events.is_empty(), "{protocol}: {events:#?}");
        team.chat(&run, &node, "Hello");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
        wait_for_connection(&team, &run, &node, "idle");
        act(&team, &run, &node, "stop");
        wait_for_connection(&team, &run, &node, "disconnected");
    }
}

#[test]
fn a_stop_in_a_turn_interrupts_it_and_ends_the_process() {
    let team = start("program_stop_ms = 50");
    let (run, node, child) = hang(&team, "codex");
    act(&team, &run, &node, "stop");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.interrupted");
    let ended = team.wait_for(&run, "the end", |event| {
        event["status"] == "turn.interrupted"
    });
    assert_eq!(ended["detail"], "stopped by the user");
    wait_for_connection(&team, &run, &node, "disconnected");
    wait_until("the child outlives its program", || !is_alive(child));
}

#[test]
fn an_idle_process_is_closed_and_the_next_prompt_starts_it_again() {
    let team = start("program_idle_ms = 1");
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("w"));
    for turn in 1..=2 {
        team.chat(&run, &node, "Hello");
        assert_eq!(team.wait_for_turn_end(&run, &node, turn), "turn.completed");
        wait_for_connection(&team, &run, &node, "disconnected");
    }
    wait_until("the record stays", || recorded(&team).is_empty());
    let events = team.events(&run);
    let kinds: Vec<&Value> = events
        .iter()
        .filter(|event| event["status"] == "waiting_for_model")
        .map(|event| &event["promptKind"])
        .collect();
    assert_eq!(kinds, ["full", "delta"], "the session goes on");
}

/// Claims the completion of a run whose verification hangs. Returns the id of a process of it.
fn claim_with_hanging_verification(team: &Team) -> (String, String, i32) {
    let pid_file = team.sandbox.path("command.pid");
    std::fs::remove_file(&pid_file).ok();
    let run = team.new_run(json!({"verify": [hanging(team)]}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    team.chat(&run, &lead, "CLAIM IT");
    (run, lead, read_pid(&pid_file))
}

#[test]
fn a_verification_that_hangs_is_stopped_by_an_interrupt_and_by_a_deletion() {
    let team = start("");
    let (run, lead, command) = claim_with_hanging_verification(&team);
    assert!(is_alive(command));
    act(&team, &run, &lead, "interrupt");
    wait_until("the command goes on", || !is_alive(command));
    // The agent hears that its claim is refused, and that it shall stop. It may end its turn first.
    team.wait_for_turn_end(&run, &lead, 1);
    wait_until("the run still verifies", || {
        team.show(&run)["phase"] == "EXECUTE"
    });
    assert_ne!(team.show(&run)["status"], "completed");
    team.delete(&format!("/api/runs/{run}"));
    let (run, _, command) = claim_with_hanging_verification(&team);
    team.delete(&format!("/api/runs/{run}"));
    wait_until("the command goes on", || !is_alive(command));
    wait_until("the record stays", || recorded(&team).is_empty());
}

#[test]
fn a_verification_and_a_program_that_hang_end_with_the_server() {
    let mut team = start("");
    let (_, _, command) = claim_with_hanging_verification(&team);
    let (_, _, child) = hang(&team, "claude");
    team.terminate();
    wait_until("the command goes on", || !is_alive(command));
    wait_until("the child goes on", || !is_alive(child));
}

#[test]
fn a_verification_that_takes_too_long_fails_with_the_end_of_its_output() {
    let team = start("verify_ms_max = 200");
    let endless = "echo begin; while :; do echo more; done";
    let run = team.new_run(json!({"verify": [endless]}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    team.chat(&run, &lead, "CLAIM IT");
    let failed = team.wait_for(&run, "the result", |event| {
        event["type"] == "tool.completed" && event["result"]["ok"] == false
    });
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("took longer than 0.2 s"), "{message}");
    assert!(message.ends_with("more"), "{message}");
    assert!(message.len() < 64 << 10, "{} bytes", message.len());
}

#[test]
fn a_setup_that_hangs_is_stopped_by_an_interrupt_and_by_a_deletion() {
    let team = start("");
    let pid_file = team.sandbox.path("command.pid");
    let run = team.new_run(json!({"setup": [hanging(&team)]}));
    let first = team.add_node(&run, "implementer", "claude", skip("a"));
    team.add_node(&run, "implementer", "claude", skip("b"));
    team.chat(&run, &first, "Hello");
    let command = read_pid(&pid_file);
    std::fs::remove_file(&pid_file).unwrap();
    act(&team, &run, &first, "interrupt");
    wait_until("the command goes on", || !is_alive(command));
    assert_eq!(team.wait_for_turn_end(&run, &first, 1), "turn.interrupted");
    // No program has seen the message, so it waits for another try.
    act(&team, &run, &first, "retry");
    let command = read_pid(&pid_file);
    team.delete(&format!("/api/runs/{run}"));
    wait_until("the command goes on", || !is_alive(command));
    wait_until("the record stays", || recorded(&team).is_empty());
}

#[test]
fn a_setup_that_fails_fails_the_turn_with_its_output() {
    let team = start("");
    let run = team.new_run(json!({"setup": ["echo no compiler; exit 4"]}));
    let first = team.add_node(&run, "implementer", "claude", skip("a"));
    team.add_node(&run, "implementer", "claude", skip("b"));
    team.chat(&run, &first, "Hello");
    assert_eq!(team.wait_for_turn_end(&run, &first, 1), "turn.failed");
    let failed = team.wait_for(&run, "the end", |event| event["status"] == "turn.failed");
    let detail = failed["detail"].as_str().unwrap();
    assert!(
        detail.contains("exit status 4") && detail.contains("no compiler"),
        "{detail}"
    );
}

#[test]
fn clients_hear_that_a_program_is_alive() {
    let team = start("heartbeat_ms = 20");
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("w"));
    assert_eq!(team.show_node(&run, &node)["connection"], Value::Null);
    team.chat(&run, &node, "HANG NOW");
    let mut socket = team.watch(&run, 0);
    let mut last = Value::Null;
    for _ in 0..2 {
        let beat = socket.read_heartbeat();
        assert_eq!(beat["nodeId"], node.as_str());
        assert_eq!(beat["seq"], Value::Null, "it is not recorded");
        assert_ne!(beat["connection"]["lastHeartbeatAt"], last);
        last = beat["connection"]["lastHeartbeatAt"].clone();
    }
    team.wait_for(&run, "the text", |event| {
        event["type"] == "message.assistant.delta"
    });
    let shown = team.show_node(&run, &node);
    let connection = &shown["connection"];
    assert_eq!(connection["status"], "connected");
    assert_eq!(connection["streaming"], true);
    assert!(connection["lastOutputAt"].is_string(), "{connection}");
    assert!(connection["lastHeartbeatAt"].is_string(), "{connection}");
    let events = team.events(&run);
    assert!(events.iter().all(|event| event["type"] != "node.heartbeat"));
}

/// 2100-01-01 in Unix seconds.
const LATER: &str = "
[[turn]]
repeat = true
steps = [{ rate_limit = { at = 4102444800 } }]
";

#[test]
fn the_time_at_which_a_limit_ends_reaches_the_node() {
    let team = Team::start(LATER);
    for protocol in ["claude", "codex"] {
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", protocol, skip("w"));
        team.chat(&run, &node, "Hello");
        let parked = team.wait_for(&run, "the pause", |event| {
            event["patch"]["retryAt"].is_string()
        });
        let retry_at = parked["patch"]["retryAt"].as_str().unwrap();
        assert!(retry_at.starts_with("2100-01-01T00:00:00"), "{retry_at}");
    }
}
