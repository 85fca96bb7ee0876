//! Things go wrong: programs that break, nodes that go in circles, limits, pauses, and deletions.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::team::{ANSWER_MAX, PROTOCOLS, Team, is_completion, is_turn_end, make_repository, skip};

const SCRIPT: &str = r#"
[[turn]]
when = ["(lead) of run"]
repeat = true
steps = [{ say = "Noted." }]

[[turn]]
when = ["(closes-"]
steps = ["close_stdout"]

[[turn]]
when = ["(mute) of run"]
repeat = true
steps = ["silence"]

[[turn]]
when = ["(worker) of run"]
repeat = true
steps = [
    { run = "date +%s%N", save = "now" },
    { say = "Still failing at {{now.output}}" },
]

[[turn]]
when = ["(waiter) of run"]
repeat = true
steps = [
    { tool = "BashOutput", args = { bash_id = "b1" }, result = "<status>running</status>" },
    { say = "The build still runs." },
]

[[turn]]
when = ["(ping) of run"]
repeat = true
steps = [
    { call = "send_handoff", args = { to = "pong", message = "Please look at it" } },
    { say = "Sent." },
]

[[turn]]
when = ["(pong) of run"]
repeat = true
steps = [
    { call = "send_handoff", args = { to = "ping", message = "No, you look at it" } },
    { say = "Sent back." },
]

[[turn]]
when = ["(asking) of run", "No new input came"]
repeat = true
steps = [
    { call = "ask_user", args = { question = "Blue or green?", options = ["blue", "green"] } },
    { say = "I wait for an answer." },
]

[[turn]]
when = ["(idle) of run", "No new input came"]
repeat = true
steps = [{ say = "There is nothing to do." }]

[[turn]]
when = ["(limited) of run", "LIMIT"]
repeat = true
steps = [{ rate_limit = { resets_in = 3600 } }]

[[turn]]
when = ["ASK FIRST"]
repeat = true
steps = [
    { spawn_child = "SANDBOX/child.pid" },
    { run = "echo it ran", ask = true },
    { say = "I asked." },
]

[[turn]]
when = ["WAIT FOR IT"]
repeat = true
steps = [
    { spawn_child = "SANDBOX/child.pid" },
    { say = "I wait." },
    { wait_for_file = "SANDBOX/go" },
    { say = "I waited." },
]

[[turn]]
when = ["BREAK NOW"]
repeat = true
steps = [{ fail = "it broke" }]

[[turn]]
repeat = true
steps = [{ say = "Noted." }]
"#;

/// A route of a run.
fn route(run: &str, tail: &str) -> String {
    format!("/api/runs/{run}/{tail}")
}

fn set_status(team: &Team, run: &str, change: &Value) {
    team.patch(&format!("/api/runs/{run}"), change);
}

/// Hands work to a node in the name of another one, without a reply.
fn hand_off(team: &Team, run: &str, from: &str, to: &str, message: &str) {
    let envelope = json!({
        "from": from, "to": to, "message": message, "response": {"expectation": "none"},
    });
    team.post(&route(run, "handoffs"), &envelope);
}

/// Waits until a process has ended.
fn wait_for_end_of(team: &Team) {
    let pid = fs::read_to_string(team.sandbox.path("child.pid")).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + ANSWER_MAX;
    let is_alive = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
    while is_alive() {
        assert!(Instant::now() < deadline, "the process {pid} survives");
        std::thread::yield_now();
    }
}

/// The kinds of a run's attention items: reasons why it waits for a person.
fn attention_of(team: &Team, run: &str) -> BTreeSet<String> {
    let waiting = team.get("/api/attention");
    let items = waiting["items"].as_array().unwrap().iter();
    items
        .filter(|item| item["runId"] == run)
        .map(|item| item["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_broken_program_fails_its_node_alone_and_whoever_asked_hears_why() {
    let broken = r#"
[providers.missing]
command = "/nonexistent/agent"
protocol = "jsonl"

[providers.exits]
command = "sh"
args = ["-c", "echo no licence >&2; exit 1"]
protocol = "jsonl"

[providers.garbage]
command = "sh"
args = ["-c", "read line; printf 'what is this\n'; echo not a protocol >&2; exit 4"]
protocol = "stream-json"
"#;
    let team = Team::start_with(SCRIPT, |_| broken.to_owned());
    let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
    team.add_node(&run, "orchestrator", "claude", skip("lead"));
    let mut cases = vec![
        ("missing".to_owned(), "missing", "/nonexistent/agent"),
        ("exits".to_owned(), "exits", "no licence"),
        ("garbage".to_owned(), "garbage", "not a protocol"),
    ];
    // The end of its output is the end of a raw program's answer.
    for protocol in PROTOCOLS.into_iter().filter(|name| *name != "raw") {
        cases.push((format!("closes-{protocol}"), protocol, ""));
    }
    for (alias, program, _) in &cases {
        team.add_node(&run, "implementer", program, skip(alias));
        team.connect(&run, "lead", alias);
    }
    let healthy = team.add_node(&run, "implementer", "codex", skip("healthy"));
    team.connect(&run, "lead", "healthy");
    let aliases = cases.iter().map(|(alias, ..)| alias.as_str());
    for alias in aliases.chain(["healthy"]) {
        let envelope = json!({"from": "lead", "to": alias, "message": "Work"});
        team.post(&route(&run, "handoffs"), &envelope);
    }
    for (alias, _, reason) in &cases {
        check_failure(&team, &run, alias, reason);
    }
    assert_eq!(team.wait_for_turn_end(&run, &healthy, 1), "turn.completed");
    assert!(attention_of(&team, &run).contains("failure"));
}

#[test]
fn a_program_that_never_answers_fails_its_node_alone_and_whoever_asked_hears_why() {
    let team = Team::start_with(SCRIPT, |_| "[runs]\nprogram_stop_ms = 50\n".to_owned());
    for protocol in PROTOCOLS {
        let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
        team.add_node(&run, "orchestrator", "claude", skip("lead"));
        let mute = team.add_node(&run, "implementer", protocol, skip("mute"));
        let healthy = team.add_node(&run, "implementer", "codex", skip("healthy"));
        team.connect(&run, "lead", "mute");
        let envelope = json!({"from": "lead", "to": "mute", "message": "Work"});
        team.post(&route(&run, "handoffs"), &envelope);
        team.wait_for(&run, "the prompt", |event| {
            event["nodeId"] == mute.as_str() && event["status"] == "waiting_for_model"
        });
        team.chat(&run, &healthy, "Hello");
        assert_eq!(team.wait_for_turn_end(&run, &healthy, 1), "turn.completed");
        // The limit comes when only the mute program works, so that it ends no other turn.
        set_status(&team, &run, &json!({"limits": {"silenceEndMs": 1}}));
        team.wait_for_turn_end(&run, &mute, 1);
        set_status(&team, &run, &json!({"limits": {"silenceEndMs": 0}}));
        check_failure(&team, &run, "mute", "timed out: it printed nothing");
    }
}

/// A node has failed with this reason, and its lead got a report that says so.
fn check_failure(team: &Team, run: &str, alias: &str, reason: &str) {
    let shown = team.show(run);
    let nodes = shown["nodes"].as_object().unwrap();
    let (id, _) = nodes
        .iter()
        .find(|(_, node)| node["alias"] == alias)
        .unwrap();
    assert_eq!(team.wait_for_turn_end(run, id, 1), "turn.failed", "{alias}");
    let failed = team.wait_for(run, "the failure", |event| {
        event["nodeId"] == id.as_str() && event["status"] == "turn.failed"
    });
    let detail = failed["detail"].as_str().unwrap();
    assert!(
        !detail.is_empty() && detail.contains(reason),
        "{alias}: {detail}"
    );
    assert_eq!(team.show_node(run, id)["status"], "failed", "{alias}");
    let report = team.wait_for(run, "the report", |event| {
        event["type"] == "handoff.sent" && event["envelope"]["fromNodeId"] == id.as_str()
    });
    let status = &report["envelope"]["payload"]["status"];
    assert_eq!(status["ok"], false, "{alias}: {report}");
    assert_eq!(status["reason"], failed["detail"], "{alias}");
}

/// Lets the worker of a run have turns that say the same until the run stalls. Returns how many.
fn work_until_stalled(team: &Team, run: &str, worker: &str) -> usize {
    let before = ended_turns(team, run, worker);
    for count in 1.. {
        assert!(count < 20, "the run never stalls");
        hand_off(team, run, "lead", "worker", &format!("Try number {count}"));
        team.wait_for_turn_end(run, worker, before + count);
        if team.show(run)["status"] == "paused" {
            return count;
        }
    }
    unreachable!("the loop has no end")
}

fn ended_turns(team: &Team, run: &str, node: &str) -> usize {
    let events = team.events(run);
    let ends = events.iter().filter(|event| is_turn_end(event));
    ends.filter(|event| event["nodeId"] == node).count()
}

/// Makes a run with a lead, a worker and a node that works while the worker goes in circles.
pub(crate) fn start_circles(team: &Team) -> (String, String) {
    let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
    team.add_node(&run, "orchestrator", "claude", skip("lead"));
    let worker = team.add_node(&run, "implementer", "claude", skip("worker"));
    team.connect(&run, "lead", "worker");
    (run, worker)
}

pub(crate) fn start_trouble() -> Team {
    Team::start(SCRIPT)
}

/// Plays a run that stalls, goes on, and loses an edge. Returns its events.
pub(crate) fn play_trouble(team: &Team) -> Vec<Value> {
    let (run, worker) = start_circles(team);
    work_until_stalled(team, &run, &worker);
    let shown = team.show(&run);
    let edge = shown["edges"].as_object().unwrap().keys().next().unwrap();
    team.delete(&route(&run, &format!("edges/{edge}")));
    team.events(&run)
}

#[test]
fn a_node_that_goes_in_circles_stops_its_run_and_a_person_lets_it_go_on() {
    let team = start_trouble();
    let (run, worker) = start_circles(&team);
    let other = team.add_node(&run, "reviewer", "codex", skip("other"));
    team.chat(&run, &other, "WAIT FOR IT");
    assert_eq!(work_until_stalled(&team, &run, &worker), 5);
    let stalled = team.wait_for(&run, "the stall", |event| event["type"] == "run.stalled");
    assert_eq!(stalled["nodeId"], worker.as_str());
    assert_eq!(stalled["evidence"]["count"], 5);
    assert_eq!(stalled["evidence"]["turnIds"].as_array().unwrap().len(), 5);
    assert!(stalled["evidence"]["outputHash"].is_string(), "{stalled}");
    let shown = team.show(&run);
    assert_eq!(shown["pausedReason"], "stall");
    assert_eq!(shown["nodes"][&worker]["status"], "blocked");
    assert_eq!(
        attention_of(&team, &run),
        BTreeSet::from(["stall".to_owned()])
    );
    // The open turn of another node ends as if nothing had happened.
    fs::write(team.sandbox.path("go"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&run, &other, 1), "turn.completed");

    team.resume(&run);
    assert_eq!(team.show_node(&run, &worker)["status"], "idle");
    let limits = json!({"limits": {"stallAfter": 2}});
    set_status(&team, &run, &limits);
    assert_eq!(
        work_until_stalled(&team, &run, &worker),
        2,
        "the count began anew"
    );

    team.chat(&run, &worker, "Try something else");
    let shown = team.show(&run);
    assert_eq!(shown["status"], "running", "guidance lets the run go on");
    assert_eq!(team.wait_for_turn_end(&run, &worker, 8), "turn.completed");
    assert_eq!(
        team.show(&run)["status"],
        "running",
        "a turn of a person is no circle"
    );
}

#[test]
fn a_node_that_looks_at_a_long_command_again_and_again_does_not_stop_its_run() {
    const LOOKS: usize = 7;
    let team = start_trouble();
    let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
    team.add_node(&run, "orchestrator", "claude", skip("lead"));
    let waiter = team.add_node(&run, "implementer", "claude", skip("waiter"));
    team.connect(&run, "lead", "waiter");
    for look in 1..=LOOKS {
        hand_off(
            &team,
            &run,
            "lead",
            "waiter",
            &format!("Look number {look}"),
        );
        let end = team.wait_for_turn_end(&run, &waiter, look);
        assert_eq!(end, "turn.completed");
    }
    assert_eq!(team.show(&run)["status"], "running");
    assert_eq!(team.show_node(&run, &waiter)["status"], "idle");
}

#[test]
fn two_nodes_that_only_send_work_back_and_forth_are_stopped() {
    let team = start_trouble();
    let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
    let ping = team.add_node(&run, "implementer", "claude", skip("ping"));
    let pong = team.add_node(&run, "reviewer", "codex", skip("pong"));
    team.connect(&run, "ping", "pong");
    team.chat(&run, &ping, "Begin");
    let stalled = team.wait_for(&run, "the stall", |event| event["type"] == "run.stalled");
    assert!(
        [&ping, &pong]
            .iter()
            .any(|node| stalled["nodeId"] == node.as_str())
    );
    assert_eq!(team.show(&run)["status"], "paused");
    let started = team.events(&run).into_iter();
    let started = started
        .filter(|event| event["status"] == "turn.started")
        .count();
    assert!(started <= 12, "{started} turns");
}

#[test]
fn an_automatic_run_with_nothing_to_do_says_so_and_stops() {
    let team = start_trouble();
    let run = team.new_run(json!({"mode": "AUTO"}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("idle"));
    let stalled = team.wait_for(&run, "the stall", |event| event["type"] == "run.stalled");
    assert_eq!(stalled["evidence"]["reason"], "no-progress", "{stalled}");
    assert_eq!(ended_turns(&team, &run, &lead), 2);
    let why = team.get(&route(&run, "why"));
    let waits = why["waits"].as_array().unwrap();
    assert!(
        waits.iter().any(|wait| wait["pausedReason"] == "stall"),
        "{why:#}"
    );
}

#[test]
fn an_open_question_blocks_no_node_and_its_answer_arrives_as_a_message() {
    let team = start_trouble();
    let run = team.new_run(json!({"mode": "AUTO"}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("asking"));
    let asked = team.wait_for(&run, "the question", |event| {
        event["type"] == "approval.requested"
    });
    assert_eq!(asked["kind"], "question");
    assert_eq!(asked["options"], json!(["blue", "green"]));
    team.wait_for_turn_end(&run, &lead, 1);
    team.chat(&run, &lead, "By the way");
    assert_eq!(team.wait_for_turn_end(&run, &lead, 2), "turn.completed");
    set_status(&team, &run, &json!({"mode": "INTERACTIVE"}));
    team.resolve(
        &asked,
        &json!({"status": "modified", "modifiedArgs": {"answer": "green"}}),
    );
    let answer = team.wait_for(&run, "the answer", |event| {
        event["type"] == "message.user" && event["message"]["content"].to_string().contains("green")
    });
    assert_eq!(answer["nodeId"], lead.as_str());
    assert_eq!(team.wait_for_turn_end(&run, &lead, 3), "turn.completed");
}

#[test]
fn a_rate_limit_parks_its_provider_and_nothing_else() {
    let mut team = start_trouble();
    let run = team.new_run(json!({}));
    let limited = team.add_node(&run, "implementer", "claude", skip("limited"));
    let parked = team.add_node(&run, "reviewer", "claude", skip("parked"));
    let free = team.add_node(&run, "reviewer", "codex", skip("free"));
    team.chat(&run, &limited, "LIMIT");
    let patch = team.wait_for(&run, "the limit", |event| {
        event["nodeId"] == limited.as_str() && event["patch"]["retryAt"].is_string()
    });
    let retry_at = patch["patch"]["retryAt"].clone();
    team.chat(&run, &parked, "Later");
    team.chat(&run, &free, "Now");
    assert_eq!(team.wait_for_turn_end(&run, &free, 1), "turn.completed");
    let check = |team: &Team| {
        let shown = team.show(&run);
        let node = &shown["nodes"][&limited];
        assert_eq!(
            (&node["status"], &node["inboxCount"]),
            (&json!("idle"), &json!(1)),
            "{node}"
        );
        assert_eq!(node["retryAt"], retry_at);
        assert_eq!(
            shown["nodes"][&parked]["inboxCount"], 1,
            "the same provider waits"
        );
        assert_eq!(ended_turns(team, &run, &parked), 0);
    };
    check(&team);
    assert_eq!(
        attention_of(&team, &run),
        BTreeSet::new(),
        "a limit is no failure"
    );
    team.kill();
    team.restart();
    check(&team);
    team.resume(&run);
    team.chat(&run, &free, "Again");
    assert_eq!(team.wait_for_turn_end(&run, &free, 2), "turn.completed");
    check(&team);
}

#[test]
fn a_pause_lets_open_turns_end_and_starts_none() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    let gated = json!({"alias": "asks", "permissions": {"cliPermissionsMode": "gated"}});
    let asks = team.add_node(&run, "implementer", "claude", gated);
    let waits = team.add_node(&run, "reviewer", "codex", skip("waits"));
    team.chat(&run, &asks, "ASK FIRST");
    let asked = team.wait_for(&run, "the question", |event| {
        event["type"] == "approval.requested"
    });
    set_status(&team, &run, &json!({"status": "paused"}));
    assert_eq!(team.show(&run)["pausedReason"], "user");
    team.chat(&run, &waits, "WAIT FOR IT");
    team.resolve(&asked, &json!({"status": "approved"}));
    assert_eq!(team.wait_for_turn_end(&run, &asks, 1), "turn.completed");
    let done = team.wait_for(&run, "the tool", |event| event["type"] == "tool.completed");
    assert_eq!(done["result"]["ok"], true, "the answer took effect");
    assert_eq!(
        team.show_node(&run, &waits)["inboxCount"],
        1,
        "nothing starts"
    );

    team.resume(&run);
    team.wait_for(&run, "the text", |event| {
        event["nodeId"] == waits.as_str() && event["type"] == "message.assistant.delta"
    });
    set_status(&team, &run, &json!({"status": "paused", "interrupt": true}));
    assert_eq!(team.wait_for_turn_end(&run, &waits, 1), "turn.interrupted");
    fs::write(team.sandbox.path("go"), "").unwrap();
    team.resume(&run);
    assert_eq!(team.wait_for_turn_end(&run, &waits, 2), "turn.completed");
    let roles = messages_to(&team, &run, &waits);
    assert_eq!(roles, ["user WAIT FOR IT".to_owned(), roles[1].clone()]);
    assert!(
        roles[1].starts_with("system "),
        "the note is the daemon's: {roles:?}"
    );
}

/// The messages that a node got: role and content.
fn messages_to(team: &Team, run: &str, node: &str) -> Vec<String> {
    let events = team.events(run).into_iter();
    let messages =
        events.filter(|event| event["type"] == "message.user" && event["nodeId"] == node);
    let describe = |event: Value| {
        let message = &event["message"];
        let field = |name: &str| message[name].as_str().unwrap().to_owned();
        format!("{} {}", field("role"), field("content"))
    };
    messages.map(describe).collect()
}

/// The inputs of a node's turns, turn by turn: the contents of the messages.
fn consumed_by(team: &Team, run: &str, node: &str) -> Vec<Vec<String>> {
    let events = team.events(run);
    let content = |id: &Value| {
        let mut messages = events
            .iter()
            .filter(|event| event["type"] == "message.user");
        let found = messages
            .find(|event| event["message"]["id"] == *id)
            .unwrap();
        found["message"]["content"].as_str().unwrap().to_owned()
    };
    let turns = events
        .iter()
        .filter(|event| event["nodeId"] == node && event["status"] == "turn.started");
    turns
        .map(|turn| {
            turn["consumed"]
                .as_array()
                .unwrap()
                .iter()
                .map(content)
                .collect()
        })
        .collect()
}

#[test]
fn a_message_reaches_a_node_in_every_state() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("node"));
    let chat = |content: &str, interrupt: bool| {
        let body = json!({"content": content, "nodeId": node, "interrupt": interrupt});
        team.post(&route(&run, "chat"), &body);
    };
    let wait_for_text = |nth: usize| {
        let mut socket = team.watch(&run, 0);
        for _ in 0..nth {
            socket.read_until("the text", |event| {
                event["type"] == "message.assistant.delta"
            });
        }
    };
    chat("WAIT FOR IT", false);
    wait_for_text(1);
    chat("queued", false);
    assert_eq!(
        team.show_node(&run, &node)["inboxCount"],
        1,
        "a running node is not disturbed"
    );
    chat("at once", true);
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.interrupted");
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
    chat("BREAK NOW", false);
    assert_eq!(team.wait_for_turn_end(&run, &node, 3), "turn.failed");
    chat("after a failure", false);
    assert_eq!(team.wait_for_turn_end(&run, &node, 4), "turn.completed");
    set_status(&team, &run, &json!({"status": "completed"}));
    chat("after the end", false);
    assert_eq!(team.wait_for_turn_end(&run, &node, 5), "turn.completed");
    let shown = team.show(&run);
    assert_eq!(
        (&shown["status"], &shown["phase"]),
        (&json!("running"), &json!("EXECUTE"))
    );
    let expected = [
        vec!["WAIT FOR IT"],
        vec!["at once", "queued"],
        vec!["BREAK NOW"],
        vec!["after a failure"],
        vec!["after the end"],
    ];
    assert_eq!(consumed_by(&team, &run, &node), expected);
}

#[test]
fn an_urgent_message_to_a_blocked_node_takes_the_place_of_an_answer() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    let gated = json!({"alias": "asks", "permissions": {"cliPermissionsMode": "gated"}});
    let node = team.add_node(&run, "implementer", "claude", gated);
    team.chat(&run, &node, "ASK FIRST");
    team.wait_for(&run, "the question", |event| {
        event["type"] == "approval.requested"
    });
    team.chat(&run, &node, "quietly");
    assert_eq!(
        team.show_node(&run, &node)["status"],
        "blocked",
        "a quiet message waits"
    );
    let body = json!({"content": "urgent", "nodeId": node, "interrupt": true});
    team.post(&route(&run, "chat"), &body);
    let resolved = team.wait_for(&run, "the decision", |event| {
        event["type"] == "approval.resolved"
    });
    assert_eq!(resolved["resolution"]["status"], "denied");
    assert_eq!(resolved["resolution"]["reason"], "superseded by a message");
    team.wait_for_turn_end(&run, &node, 2);
    assert_eq!(consumed_by(&team, &run, &node)[1], ["urgent", "quietly"]);
}

#[test]
fn a_deleted_node_returns_its_mail_and_leaves_nothing_behind() {
    let team = start_trouble();
    let run = team.new_run(json!({"limits": {"fanInMs": 0}}));
    let lead = team.add_node(&run, "orchestrator", "codex", skip("lead"));
    let gated = json!({"alias": "victim", "permissions": {"cliPermissionsMode": "gated"}});
    let victim = team.add_node(&run, "implementer", "claude", gated);
    team.connect(&run, "lead", "victim");
    let envelope = |message: &str| json!({"from": "lead", "to": "victim", "message": message});
    team.post(&route(&run, "handoffs"), &envelope("ASK FIRST"));
    let asked = team.wait_for(&run, "the question", |event| {
        event["type"] == "approval.requested"
    });
    team.post(&route(&run, "handoffs"), &envelope("And this"));
    team.delete(&route(&run, "nodes/victim"));
    wait_for_end_of(&team);
    let events = team.events(&run);
    let find = |name: &'static str| events.iter().filter(move |event| event["type"] == name);
    assert_eq!(find("edge.deleted").count(), 1);
    let denied = find("approval.resolved").next().unwrap();
    assert_eq!(denied["approvalId"], asked["approvalId"]);
    assert_eq!(denied["resolution"]["reason"], "node deleted");
    let returned: Vec<&Value> = find("handoff.sent")
        .map(|event| &event["envelope"])
        .filter(|envelope| envelope["toNodeId"] == lead.as_str())
        .collect();
    assert_eq!(
        returned.len(),
        2,
        "both the open and the waiting one: {returned:#?}"
    );
    assert!(
        returned
            .iter()
            .all(|envelope| envelope["payload"]["status"]["ok"] == false)
    );
    assert!(team.show_node(&run, &victim).is_null());
    assert_eq!(team.wait_for_turn_end(&run, &lead, 1), "turn.completed");
    let gone = team.request(
        "POST",
        &route(&run, "chat"),
        Some(&json!({"content": "x", "nodeId": victim})),
    );
    assert_eq!(gone.status, 404, "{}", gone.body);
}

#[test]
fn a_deleted_run_ends_its_programs_and_its_files() {
    let team = start_trouble();
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("node"));
    team.chat(&run, &node, "WAIT FOR IT");
    let mut socket = team.watch(&run, 0);
    socket.read_until("the text", |event| {
        event["type"] == "message.assistant.delta"
    });
    team.delete(&format!("/api/runs/{run}"));
    assert_eq!(socket.read_close(), Some(4004));
    wait_for_end_of(&team);
    let deadline = Instant::now() + ANSWER_MAX;
    while team.run_dir(&run).exists() {
        assert!(
            Instant::now() < deadline,
            "the files of the run are still there"
        );
        std::thread::yield_now();
    }
    for tail in ["", "/events", "/artifacts", "/why"] {
        let answered = team.request("GET", &format!("/api/runs/{run}{tail}"), None);
        assert_eq!(answered.status, 404, "{tail}: {}", answered.body);
    }
    assert_eq!(team.get("/api/runs")["runs"], json!([]));
    assert_eq!(attention_of(&team, &run), BTreeSet::new());
}

/// The kinds of the prompts of a node, in order.
fn prompt_kinds(team: &Team, run: &str, node: &str) -> Vec<String> {
    let events = team.events(run).into_iter();
    let sent =
        events.filter(|event| event["nodeId"] == node && event["status"] == "waiting_for_model");
    sent.map(|event| event["promptKind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_reset_keeps_the_inbox_and_begins_a_new_session() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("node"));
    team.chat(&run, &node, "first");
    team.wait_for_turn_end(&run, &node, 1);
    let session = team.show_node(&run, &node)["session"]["sessionId"].clone();
    assert!(session.is_string());
    team.chat(&run, &node, "WAIT FOR IT");
    let mut socket = team.watch(&run, 0);
    socket.read_until("the text", |event| {
        event["delta"].to_string().contains("I wait")
    });
    team.chat(&run, &node, "queued");
    team.post(&route(&run, "nodes/node/reset"), &json!({}));
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.interrupted");
    assert_eq!(team.wait_for_turn_end(&run, &node, 3), "turn.completed");
    assert_eq!(consumed_by(&team, &run, &node)[2], ["queued"]);
    assert_eq!(prompt_kinds(&team, &run, &node), ["full", "delta", "full"]);
    assert_ne!(team.show_node(&run, &node)["session"]["sessionId"], session);
    let texts = messages_to(&team, &run, &node);
    assert_eq!(texts, ["user first", "user WAIT FOR IT", "user queued"]);
}

#[test]
fn another_provider_and_a_changed_role_get_a_full_prompt() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("node"));
    for count in 1..=2 {
        team.chat(&run, &node, "Go on");
        team.wait_for_turn_end(&run, &node, count);
    }
    team.patch(&route(&run, "nodes/node"), &json!({"provider": "codex"}));
    team.chat(&run, &node, "And now");
    assert_eq!(team.wait_for_turn_end(&run, &node, 3), "turn.completed");
    let roles = team.work().join(".turnkeep/roles");
    fs::create_dir_all(&roles).unwrap();
    fs::write(roles.join("implementer.md"), "You only ever whisper.\n").unwrap();
    team.chat(&run, &node, "Speak");
    assert_eq!(team.wait_for_turn_end(&run, &node, 4), "turn.completed");
    assert_eq!(
        prompt_kinds(&team, &run, &node),
        ["full", "delta", "full", "full"]
    );
    let prompts = team.artifacts_of(&run, &node, "prompt");
    let full: Vec<String> = prompts
        .iter()
        .filter(|prompt| prompt["name"] == "prompt.full.txt")
        .map(|prompt| team.read_artifact(&run, prompt))
        .collect();
    assert!(
        full[2].contains("Noted."),
        "the new program gets a recap: {}",
        full[2]
    );
    assert!(full[3].contains("whisper"), "{}", full[3]);
    assert!(!full[2].contains("whisper"));
}

#[test]
fn an_interrupted_turn_is_no_failure_and_makes_up_no_message() {
    let team = start_trouble();
    // A raw program shows whole lines only, so nothing tells that it has begun.
    for protocol in PROTOCOLS.into_iter().filter(|name| *name != "raw") {
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", protocol, skip("node"));
        team.chat(&run, &node, "WAIT FOR IT");
        team.wait_for(&run, "the text", |event| {
            event["type"] == "message.assistant.delta"
        });
        team.post(&route(&run, "nodes/node/interrupt"), &json!({}));
        assert_eq!(
            team.wait_for_turn_end(&run, &node, 1),
            "turn.interrupted",
            "{protocol}"
        );
        let last = team.wait_for(&run, "the text", |event| {
            event["type"] == "message.assistant.final"
        });
        // This program sends the rest of its message whole when it is interrupted.
        if protocol != "jsonl" {
            assert_eq!(last["status"], "interrupted", "{protocol}: {last}");
        }
        assert_eq!(team.show_node(&run, &node)["status"], "idle", "{protocol}");
        assert_eq!(
            messages_to(&team, &run, &node),
            ["user WAIT FOR IT"],
            "{protocol}"
        );
        assert_eq!(
            team.artifacts_of(&run, &node, "diff").len(),
            1,
            "{protocol}"
        );
    }
}

/// A completed run says what it needs from a person: nothing but a look.
#[test]
fn a_completed_run_is_listed_as_finished() {
    let team = start_trouble();
    let run = team.new_run(json!({}));
    set_status(&team, &run, &json!({"status": "completed"}));
    team.wait_for(&run, "the completion", is_completion);
    assert_eq!(
        attention_of(&team, &run),
        BTreeSet::from(["finished".to_owned()])
    );
}
