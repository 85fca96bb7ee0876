//! Why a run waits: every kind of wait, with its reason, its beginning and who can end it.
//!
//! The programs are puppets: each prints the lines that the test puts into its pipe. The server's
//! clock stands still unless the test moves it, so the age of a wait is exact.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_journal::MemoryStorage;
use turnkeep_server::ServerConfig;
use turnkeep_types::{Clock as _, Timestamp};
use turnkeep_wire::json::Time;

use super::socket::EventClient;
use super::start_on;
use crate::client::{Reply, Server};

/// The programs of a run, and the aliases of their nodes.
const PUPPETS: [&str; 3] = ["lead", "a", "b"];
const MINUTE_MS: u64 = 60_000;

/// A server with a run whose programs are puppets.
struct Stage {
    server: Server,
    dir: tempfile::TempDir,
    run: String,
    /// The inputs of the puppets.
    strings: HashMap<&'static str, File>,
    nodes: HashMap<&'static str, String>,
}

fn make_pipe(path: &PathBuf) -> File {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
    // Open for reading too, so that neither side waits for the other.
    let mut open = OpenOptions::new();
    open.read(true).write(true).open(path).unwrap()
}

impl Stage {
    async fn start(settings: Value) -> Self {
        Self::start_with(settings, |_| {}).await
    }

    async fn start_with(mut settings: Value, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        let mut strings = HashMap::new();
        for name in PUPPETS {
            strings.insert(name, make_pipe(&dir.path().join(name)));
        }
        strings.insert("check", make_pipe(&dir.path().join("check")));
        let server = start_on(MemoryStorage::new(), dir.path(), |config| {
            for name in PUPPETS {
                let kind = ProgramKind::Custom(CustomProtocol::Jsonl);
                let mut program = AgentProgram::new(kind, "sh");
                // `cat` prints the pipe's lines. It never reads its standard input, which stays open.
                let pipe = dir.path().join(name).display().to_string();
                program.args = vec!["-c".to_owned(), format!("exec cat '{pipe}'")];
                config.runs.custom.insert(name.to_owned(), program);
            }
            change(config);
        })
        .await;
        settings["cwd"] = json!(work);
        settings["goal"] = json!("g");
        let reply = server.post("/api/runs", &settings).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
        Self {
            server,
            dir,
            run,
            strings,
            nodes: HashMap::new(),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        let path = format!("/api/runs/{}/{path}", self.run);
        let reply = self.server.post(&path, body).send().await;
        let is_done = (200..300).contains(&reply.status);
        assert!(is_done, "{path}: {} {}", reply.status, reply.text());
        reply
    }

    async fn change(&self, change: &Value) {
        let path = format!("/api/runs/{}", self.run);
        let reply = self.server.patch(&path, change).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    async fn add(&mut self, alias: &'static str, role: &str, more: Value) {
        let mut body = json!({"label": alias, "alias": alias, "roleTemplate": role,
            "provider": "custom", "providerName": alias});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let reply = self.post("nodes", &body).await.json();
        let id = reply["node"]["id"].as_str().unwrap().to_owned();
        self.nodes.insert(alias, id);
    }

    async fn chat(&self, alias: &str) {
        let body = json!({"content": "Go", "nodeId": alias});
        self.post("chat", &body).await;
    }

    /// Sends a node its first message and waits until the program has the prompt.
    async fn begin_turn(&self, alias: &str) {
        self.chat(alias).await;
        self.wait_for_prompt(alias, 1).await;
    }

    /// Hands work over in the name of a node that has a turn.
    async fn hand_over(&self, from: &str, to: &str, more: Value) {
        let mut body = json!({"from": from, "to": to, "message": "Please look"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.post("handoffs", &body).await;
    }

    async fn connect(&self, from: &str, to: &str, gate: bool) {
        let edge = json!({"from": from, "to": to, "gate": gate});
        self.post("edges", &edge).await;
    }

    /// Lets a puppet print a line.
    fn says(&self, name: &str, line: &Value) {
        let mut string = &self.strings[name];
        writeln!(string, "{line}").unwrap();
    }

    fn completes(&self, name: &str) {
        let end = json!({"type": "turn.status", "status": "turn.completed"});
        self.says(name, &end);
    }

    async fn wait_for(&self, is_meant: impl Fn(&Value) -> bool) {
        let query = format!("?runId={}&since=0", self.run);
        let mut client = EventClient::open(&self.server, &query).await;
        while !is_meant(&client.next_event().await) {}
    }

    /// Waits until the program has so many prompts.
    async fn wait_for_prompt(&self, alias: &str, count: usize) {
        let mut left = count;
        let query = format!("?runId={}&since=0", self.run);
        let mut client = EventClient::open(&self.server, &query).await;
        while left > 0 {
            let event = client.next_event().await;
            let is_prompt = event["status"] == "waiting_for_model"
                && event["nodeId"] == self.nodes[alias].as_str();
            left -= usize::from(is_prompt);
        }
    }

    async fn wait_for_status(&self, alias: &str, status: &str) {
        self.wait_for(|event| {
            event["status"] == status && event["nodeId"] == self.nodes[alias].as_str()
        })
        .await;
    }

    fn now(&self) -> Timestamp {
        self.server.clock.now()
    }

    /// Lets time pass on the server's clock.
    fn pass(&self, ms: u64) {
        self.server.clock.set(Timestamp(self.now().0 + ms));
    }

    async fn why(&self) -> Value {
        let path = format!("/api/runs/{}/why", self.run);
        self.server.read(&path).await
    }

    /// A minute later, this wait is shown with its reason, its beginning and its owner.
    async fn check(&self, expect: Expected<'_>) -> Value {
        self.check_since(expect, self.now()).await
    }

    /// The same for a wait that began before.
    async fn check_since(&self, expect: Expected<'_>, since: Timestamp) -> Value {
        self.pass(MINUTE_MS);
        let why = self.why().await;
        let node = expect.node.map(|alias| self.nodes[alias].as_str());
        let mut waits = why["waits"].as_array().unwrap().iter();
        let found =
            waits.find(|wait| wait["reason"] == expect.reason && wait["nodeId"].as_str() == node);
        let wait = found.unwrap_or_else(|| panic!("no `{}`: {why:#}", expect.reason));
        assert_eq!(wait["since"], json!(Time(since)), "{wait:#}");
        assert_eq!(wait["ageMs"], self.now().0 - since.0, "{wait:#}");
        let owner = match expect.owner {
            Owner::Person => json!({"kind": "person"}),
            Owner::Daemon => json!({"kind": "daemon"}),
            Owner::Program(name) => json!({"kind": "program", "program": name}),
            Owner::Node(alias) => json!({"kind": "node", "nodeId": self.nodes[alias]}),
        };
        assert_eq!(wait["owner"], owner, "{wait:#}");
        wait.clone()
    }

    async fn stop(self) {
        self.server.stop().await;
        drop(self.dir);
    }
}

/// A wait that must be shown.
#[derive(Clone, Copy)]
struct Expected<'a> {
    node: Option<&'a str>,
    reason: &'a str,
    owner: Owner<'a>,
}

#[derive(Clone, Copy)]
enum Owner<'a> {
    Person,
    Daemon,
    Program(&'a str),
    Node(&'a str),
}

fn of_run<'a>(reason: &'a str, owner: Owner<'a>) -> Expected<'a> {
    let node = None;
    Expected {
        node,
        reason,
        owner,
    }
}

fn of_node<'a>(node: &'a str, reason: &'a str, owner: Owner<'a>) -> Expected<'a> {
    let node = Some(node);
    Expected {
        node,
        reason,
        owner,
    }
}

#[tokio::test]
async fn a_stopped_run_says_why_and_since_when() {
    let mut stage = Stage::start(json!({"budget": {"tokens": 100}})).await;
    stage.check(of_run("no-nodes", Owner::Person)).await;
    stage.add("a", "implementer", json!({})).await;
    stage.check(of_node("a", "no-input", Owner::Person)).await;
    stage.change(&json!({"status": "paused"})).await;
    let wait = stage.check(of_run("run-stopped", Owner::Person)).await;
    assert_eq!(wait["pausedReason"], "user");

    stage.change(&json!({"status": "running"})).await;
    stage.begin_turn("a").await;
    let usage = json!({"promptTokens": 90, "completionTokens": 20});
    stage.says("a", &json!({"type": "telemetry.usage", "usage": usage}));
    stage
        .wait_for(|event| event["patch"]["pausedReason"] == "budget")
        .await;
    let wait = stage.check(of_run("run-stopped", Owner::Person)).await;
    assert_eq!(wait["pausedReason"], "budget");
    stage.stop().await;

    // An automatic run that does nothing goes in circles.
    let mut stage = Stage::start(json!({"mode": "AUTO"})).await;
    stage.add("lead", "orchestrator", json!({})).await;
    for turn in 1..=2 {
        stage.wait_for_prompt("lead", turn).await;
        stage.completes("lead");
    }
    stage
        .wait_for(|event| event["type"] == "run.patch" && event["patch"]["status"] == "paused")
        .await;
    let since = stage.now();
    let wait = stage.check(of_run("run-stopped", Owner::Person)).await;
    assert_eq!(wait["pausedReason"], "stall");
    stage.server.clock.set(since);
    stage.check(of_node("lead", "stall", Owner::Person)).await;
    stage.stop().await;
}

#[tokio::test]
async fn an_open_turn_says_what_it_waits_for() {
    let mut stage = Stage::start(json!({})).await;
    let gated = json!({"permissions": {"cliPermissionsMode": "gated"}});
    stage.add("a", "implementer", gated).await;
    stage.begin_turn("a").await;
    let program = Owner::Program("a");
    stage.check(of_node("a", "working", program)).await;
    let tool = json!({"id": "t", "name": "command", "args": {"cmd": "make"}});
    stage.says(
        "a",
        &json!({"type": "approval.requested", "approvalId": "q", "tool": tool}),
    );
    stage.wait_for_status("a", "awaiting_approval").await;
    let wait = stage.check(of_node("a", "approval", Owner::Person)).await;
    let approval = wait["approvalId"].as_str().unwrap();
    let path = format!("/api/approvals/{approval}/resolve");
    let denied = json!({"status": "denied"});
    let reply = stage.server.post(&path, &denied).send().await;
    assert_eq!(reply.status, 200, "{}", reply.text());

    let ask = json!({"name": "ask_user", "args": {"question": "Blue?"}});
    stage.says("a", &json!({"tool_call": ask}));
    stage
        .wait_for(|event| {
            event["type"] == "approval.requested" && event["tool"]["name"] == "ask_user"
        })
        .await;
    stage.check(of_node("a", "question", Owner::Person)).await;

    stage.post("nodes/a/interrupt", &json!({})).await;
    // The puppet does not hear it.
    let why = stage.why().await;
    let mut waits = why["waits"].as_array().unwrap().iter();
    let stopping = waits.find(|wait| wait["reason"] == "interrupting").unwrap();
    assert_eq!(
        stopping["owner"],
        json!({"kind": "program", "program": "a"})
    );
    stage.stop().await;
}

#[tokio::test]
async fn a_node_that_wrote_too_much_waits_for_a_person() {
    let mut stage = Stage::start(json!({})).await;
    stage.add("a", "reviewer", json!({})).await;
    stage.begin_turn("a").await;
    fs::write(stage.dir.path().join("work/code.rs"), "").unwrap();
    stage.completes("a");
    stage.wait_for_status("a", "turn.completed").await;
    let wait = stage.check(of_node("a", "violation", Owner::Person)).await;
    assert_eq!(wait["paths"], json!(["code.rs"]));
    stage.stop().await;
}

#[tokio::test]
async fn a_node_that_has_failed_says_why_and_waits_for_a_person() {
    let mut stage = Stage::start(json!({})).await;
    stage.add("a", "implementer", json!({})).await;
    stage.add("b", "implementer", json!({})).await;
    stage.begin_turn("a").await;
    let failed = json!({"type": "turn.status", "status": "turn.failed", "detail": "no such model"});
    stage.says("a", &failed);
    stage.wait_for_status("a", "turn.failed").await;
    let wait = stage.check(of_node("a", "failure", Owner::Person)).await;
    assert_eq!(wait["detail"], "no such model");
    assert!(wait["turnId"].is_string(), "{wait}");
    stage.stop().await;
}

#[tokio::test]
async fn a_node_that_may_not_start_says_what_holds_it() {
    let full = |config: &mut ServerConfig| {
        let limits = &mut config.runs.capacity.program_turns_max;
        limits.insert("b".to_owned(), 0);
        config.runs.capacity.open_turns_max = 2;
    };
    let mut stage = Stage::start_with(json!({"limits": {"fanInMs": 5000}}), full).await;
    for (alias, role) in [
        ("a", "implementer"),
        ("b", "reviewer"),
        ("lead", "orchestrator"),
    ] {
        stage.add(alias, role, json!({})).await;
    }
    stage.chat("b").await;
    let program = Owner::Program("b");
    stage.check(of_node("b", "program-full", program)).await;

    let came_at = stage.now();
    stage.begin_turn("a").await;
    stage
        .change(&json!({"limits": {"maxConcurrentTurns": 1}}))
        .await;
    stage.chat("lead").await;
    stage
        .check(of_node("lead", "run-full", Owner::Daemon))
        .await;
    stage
        .change(&json!({"limits": {"maxConcurrentTurns": 4}}))
        .await;

    let limited = json!({"type": "turn.status", "status": "turn.failed", "httpStatus": 429});
    stage.says("a", &limited);
    stage
        .wait_for(|event| event["patch"]["retryAt"].is_string())
        .await;
    let parked_at = stage.now();
    // Its input waits since it came, also while the turn was open.
    let expect = of_node("a", "retry-at", Owner::Program("a"));
    let wait = stage.check_since(expect, came_at).await;
    let until = Time(Timestamp(parked_at.0 + 15 * MINUTE_MS));
    assert_eq!(wait["until"], json!(until));
    stage.stop().await;

    let one = |config: &mut ServerConfig| config.runs.capacity.open_turns_max = 1;
    let mut stage = Stage::start_with(json!({"limits": {"fanInMs": 5000}}), one).await;
    stage.add("a", "implementer", json!({})).await;
    stage.add("b", "reviewer", json!({})).await;
    stage.connect("b", "a", false).await;
    stage.hand_over("b", "a", json!({})).await;
    let why = stage.why().await;
    let mut waits = why["waits"].as_array().unwrap().iter();
    let fan_in = waits.find(|wait| wait["reason"] == "fan-in").unwrap();
    assert_eq!(fan_in["owner"], json!({"kind": "daemon"}));
    let came_at = stage.now();
    assert_eq!(fan_in["since"], json!(Time(came_at)));
    let until = Timestamp(came_at.0 + 5000);
    assert_eq!(fan_in["until"], json!(Time(until)));
    // Another node takes the only turn, so that the person's message waits for room.
    stage.begin_turn("b").await;
    stage.chat("a").await;
    let expect = of_node("a", "server-full", Owner::Daemon);
    stage.check_since(expect, came_at).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_verification_waits_for_the_daemon_and_the_documents_for_their_program() {
    let mut stage = Stage::start(json!({"limits": {"fanInMs": 0}})).await;
    // Each check ends with a line from the test.
    let check = stage.dir.path().join("check").display().to_string();
    stage
        .change(&json!({"verify": [format!("read -r line < '{check}'")]}))
        .await;
    for (alias, role) in [
        ("lead", "orchestrator"),
        ("a", "implementer"),
        ("b", "docs"),
    ] {
        stage.add(alias, role, json!({})).await;
    }
    stage.connect("a", "lead", true).await;
    stage.change(&json!({"docsNode": "b"})).await;

    // The gate of an edge.
    stage.begin_turn("a").await;
    let report = json!({"status": {"ok": true}, "response": {"expectation": "none"}});
    stage.hand_over("a", "lead", report).await;
    stage
        .wait_for(|event| event["type"] == "handoff.held")
        .await;
    let at_gate = of_node("a", "verification", Owner::Daemon);
    stage.check(at_gate).await;
    stage.says("check", &json!("go"));

    // The claim of the lead, whom the report has woken.
    stage.wait_for_prompt("lead", 1).await;
    let claim = json!({"name": "complete_run", "args": {"summary": "Done", "ok": true}});
    stage.says("lead", &json!({"tool_call": claim}));
    stage.wait_for(|event| event["phase"] == "VERIFY").await;
    let verification = of_run("verification", Owner::Daemon);
    stage.check(verification).await;
    stage.says("check", &json!("go"));

    stage.wait_for(|event| event["phase"] == "DOCS_SYNC").await;
    stage.wait_for_prompt("b", 1).await;
    let documents = of_node("b", "working", Owner::Program("b"));
    stage.check(documents).await;
    stage.stop().await;
}

#[tokio::test]
async fn two_nodes_that_wait_for_each_other_are_named_at_the_first_look() {
    let mut stage = Stage::start(json!({})).await;
    for alias in ["a", "b"] {
        stage.add(alias, "planner", json!({"wakeOn": "all"})).await;
    }
    stage.connect("a", "b", false).await;
    for alias in ["a", "b"] {
        stage.begin_turn(alias).await;
    }
    let asks = json!({"response": {"expectation": "required"}});
    stage.hand_over("a", "b", asks.clone()).await;
    stage.hand_over("b", "a", asks).await;
    assert_eq!(stage.why().await["deadlocks"], json!([]));
    for alias in ["a", "b"] {
        stage.completes(alias);
        stage.wait_for_status(alias, "turn.completed").await;
    }
    let why = stage.why().await;
    let mut circle = [&stage.nodes["a"], &stage.nodes["b"]];
    circle.sort();
    assert_eq!(why["deadlocks"], json!([circle]), "{why:#}");
    stage.check(of_node("a", "reply", Owner::Node("b"))).await;
    stage.stop().await;
}
