//! A server whose providers are the real programs, and a repository for them to work in.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::model::{Model, Topic};
use crate::programs::RealProgram;
use crate::sandbox::{Sandbox, ServerProcess, UP};

/// Far longer than anything takes on a busy machine.
const ANSWER_MAX: Duration = Duration::from_mins(2);

/// A server, the model behind its programs, and a run.
pub(crate) struct Office {
    sandbox: Sandbox,
    server: Option<ServerProcess>,
    pub(crate) model: Model,
    pub(crate) run: String,
}

/// The answer to a request.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Office {
    /// Starts a server with this program, and a run in a fresh repository.
    pub(crate) fn open(program: RealProgram, topics: Vec<Topic>) -> Self {
        let sandbox = Sandbox::new();
        let model = Model::start(topics);
        let config = program.configure(&sandbox, model.address);
        fs::write(sandbox.path("config.toml"), config).unwrap();
        fs::create_dir(sandbox.path("work")).unwrap();
        let mut office = Self {
            sandbox,
            server: None,
            model,
            run: String::new(),
        };
        office.make_repository();
        office.restart();
        let body = json!({"cwd": office.work(), "goal": "Look after the files"});
        let made = office.post("/api/runs", &body);
        office.run = made["run"]["id"].as_str().unwrap().into();
        office
    }

    /// Starts the server. One that runs is killed, as by a power failure.
    pub(crate) fn restart(&mut self) {
        self.server = None;
        let mut command = self.sandbox.command(&UP);
        let config = self.sandbox.path("config.toml");
        command.args(["--no-auth", "--config"]).arg(config);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        self.server = Some(ServerProcess::start(&mut command));
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.sandbox.path("work")
    }

    fn make_repository(&self) {
        let work = self.work();
        fs::write(work.join("README.md"), "A project.\n").unwrap();
        let commit = "git init --quiet . && git add . && git commit --quiet -m first";
        let mut shell = Command::new("sh");
        shell.args(["-c", commit]).current_dir(work);
        for role in ["AUTHOR", "COMMITTER"] {
            shell.env(format!("GIT_{role}_NAME"), "a");
            shell.env(format!("GIT_{role}_EMAIL"), "a@example.org");
        }
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(shell.status().unwrap().success());
    }

    /// Sends a request and reads the answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Answered {
        let http = self.server.as_ref().unwrap().http();
        let address = http.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let text = body.map(Value::to_string).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{text}",
            text.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let (_, body) = rest.split_once("\r\n\r\n").unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()));
        Answered { status, body }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answered = self.request("GET", path, None);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let answered = self.request("POST", path, Some(body));
        let Answered { status, body } = answered;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    /// The path of something of the run.
    pub(crate) fn of_run(&self, rest: &str) -> String {
        format!("/api/runs/{}{rest}", self.run)
    }

    /// Adds a node of the program that asks before it uses a tool.
    pub(crate) fn add_node(&self, program: RealProgram, role: &str) -> String {
        let body = json!({
            "label": role,
            "alias": role,
            "roleTemplate": role,
            "provider": program.name,
            "permissions": {"cliPermissionsMode": "gated"},
        });
        let made = self.post(&self.of_run("/nodes"), &body);
        made["node"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn show_node(&self, node: &str) -> Value {
        let shown = self.get(&self.of_run(""));
        shown["run"]["nodes"][node].clone()
    }

    pub(crate) fn chat(&self, node: &str, content: &str) {
        let body = json!({"content": content, "nodeId": node});
        self.post(&self.of_run("/chat"), &body);
    }

    /// The events of a run after a number.
    pub(crate) fn events_after(&self, seq: u64) -> Vec<Value> {
        let page = self.get(&self.of_run(&format!("/events?limit=2000&after={seq}")));
        page["events"].as_array().unwrap().clone()
    }

    pub(crate) fn last_seq(&self) -> u64 {
        let events = self.events_after(0);
        events
            .last()
            .map_or(0, |event| event["seq"].as_u64().unwrap())
    }

    /// Waits for an event after a number for which the check holds.
    pub(crate) fn wait_for(&self, seq: u64, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let events = self.events_after(seq);
            if let Some(found) = events.iter().find(|event| check(event)) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "no {what}: {events:#?}");
            std::thread::yield_now();
        }
    }

    /// Waits for the end of the turn that a node began after a number, and returns its events.
    pub(crate) fn wait_for_turn(&self, seq: u64, node: &str) -> TurnSeen {
        let ended = self.wait_for(seq, "end of the turn", |event| {
            let status = event["status"].as_str().unwrap_or_default();
            let is_end = ["turn.completed", "turn.failed", "turn.interrupted"].contains(&status);
            event["type"] == "turn.status" && event["nodeId"] == node && is_end
        });
        let turn = &ended["turnId"];
        let mut events = self.events_after(seq);
        events.retain(|event| event["turnId"] == *turn);
        TurnSeen {
            end: ended["status"].as_str().unwrap().to_owned(),
            events,
        }
    }

    pub(crate) fn resolve(&self, asked: &Value, resolution: &Value) -> Answered {
        let id = asked["approvalId"].as_str().unwrap();
        let path = format!("/api/approvals/{id}/resolve");
        self.request("POST", &path, Some(resolution))
    }
}

/// A turn that has ended.
pub(crate) struct TurnSeen {
    pub(crate) end: String,
    pub(crate) events: Vec<Value>,
}

impl TurnSeen {
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The only event of a type.
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let found = self.of_type(kind);
        assert_eq!(found.len(), 1, "{kind}: {:#?}", self.events);
        found[0]
    }

    pub(crate) fn diff(&self) -> &Value {
        let created = self.of_type("artifact.created");
        let mut diffs = created.iter().map(|event| &event["artifact"]);
        let diff = diffs.rfind(|artifact| artifact["kind"] == "diff");
        diff.unwrap()
    }
}
