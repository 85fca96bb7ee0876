//! A server with the scripted agent behind every provider, and a run on it.
//!
//! Every request, answer and event that a test sends or reads is checked against its schema on the
//! way.

// By path, because other test binaries include this file from their own directory.
#[path = "bookkeeping.rs"]
pub(crate) mod bookkeeping;
#[path = "contract.rs"]
pub(crate) mod contract;
#[path = "event_socket.rs"]
pub(crate) mod event_socket;
#[path = "../../../server/tests/support/folded_run.rs"]
mod folded_run;
#[path = "replay.rs"]
pub(crate) mod replay;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::contract::Exchange;
use self::event_socket::{EventSocket, Place};
use crate::sandbox::{Sandbox, ServerProcess, UP};

/// Far longer than anything takes on a busy machine.
pub(crate) const ANSWER_MAX: Duration = Duration::from_mins(2);

/// The ways in which the scripted agent can be a node.
pub(crate) const PROTOCOLS: [&str; 7] = [
    "claude",
    "codex",
    "gemini",
    "jsonl",
    "stream-json",
    "acp",
    "raw",
];

/// A server, its agent script and its workspace.
pub(crate) struct Team {
    /// Before the sandbox, so that it ends before its files are removed.
    server: Option<ServerProcess>,
    pub(crate) sandbox: Sandbox,
    /// The data directory of the server.
    data: PathBuf,
}

/// The answer to a request.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Team {
    /// Starts a server whose agents play this script. `SANDBOX` in it is the sandbox's path.
    pub(crate) fn start(script: &str) -> Self {
        Self::start_with(script, |_| String::new())
    }

    /// The same with more lines in the configuration.
    pub(crate) fn start_with(script: &str, more: impl FnOnce(&Sandbox) -> String) -> Self {
        let sandbox = Sandbox::new();
        let agent = sandbox.path("turnkeep-agent-script");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnkeep"), &agent).unwrap();
        // Agents in different directories meet at files with absolute paths.
        let script = script.replace("SANDBOX", sandbox.path("").to_str().unwrap());
        fs::write(sandbox.path("script.toml"), script).unwrap();
        let mut config = String::new();
        for name in ["claude", "codex", "gemini"] {
            config.push_str(&provider(&sandbox, name, None));
        }
        for name in ["jsonl", "stream-json", "acp", "raw"] {
            config.push_str(&provider(&sandbox, name, Some(name)));
        }
        config.push_str(&more(&sandbox));
        Self::start_configured(sandbox, &config)
    }

    /// Starts a server with this configuration.
    pub(crate) fn start_configured(sandbox: Sandbox, config: &str) -> Self {
        fs::write(sandbox.path("config.toml"), config).unwrap();
        fs::create_dir(sandbox.path("work")).unwrap();
        let mut team = Self::of_server(sandbox, None);
        team.restart();
        team
    }

    /// Starts a demo. It makes its directory in `tmp` of the sandbox.
    pub(crate) fn start_demo() -> Self {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path("tmp")).unwrap();
        let mut command = sandbox.command(&["up", "--demo", "--no-auth", "--json"]);
        command.env("TMPDIR", sandbox.path("tmp"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let server = Some(ServerProcess::start(&mut command));
        let mut made = fs::read_dir(sandbox.path("tmp")).unwrap();
        Self {
            data: made.next().unwrap().unwrap().path().join("data"),
            sandbox,
            server,
        }
    }

    /// A team whose server runs already, or is not started yet.
    pub(crate) fn of_server(sandbox: Sandbox, server: Option<ServerProcess>) -> Self {
        Self {
            server,
            data: sandbox.data(),
            sandbox,
        }
    }

    /// Starts the server, again if it was running.
    pub(crate) fn restart(&mut self) {
        let command = self.sandbox.command(&UP);
        self.restart_as(command);
    }

    /// Starts it again with a broker beside it.
    pub(crate) fn restart_with_broker(&mut self) {
        fs::create_dir(self.sandbox.path("run")).unwrap();
        let mut command = self.sandbox.command(&UP);
        command.env("XDG_RUNTIME_DIR", self.sandbox.path("run"));
        self.restart_as(command);
    }

    fn restart_as(&mut self, mut command: std::process::Command) {
        self.check_replay();
        self.server = None;
        let config = self.sandbox.path("config.toml");
        command.args(["--no-auth", "--config"]).arg(config);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        self.server = Some(ServerProcess::start(&mut command));
        self.check_replay();
    }

    /// Asks the server to end, and waits until it has.
    pub(crate) fn terminate(&mut self) {
        self.check_replay();
        let server = self.server.take().unwrap();
        assert!(server.terminate().success());
    }

    /// Kills the server as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }

    /// A replay of every run's log gives what the server shows, if a server runs.
    fn check_replay(&self) {
        if self.server.is_some() {
            replay::check_all_runs(self);
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.sandbox.path("work")
    }

    pub(crate) fn run_dir(&self, run: &str) -> PathBuf {
        self.data.join("runs").join(run)
    }

    /// Where the server listens for the binary protocol.
    pub(crate) fn binary_address(&self) -> String {
        let said = &self.server.as_ref().unwrap().said;
        said["tcp"].as_str().unwrap().to_owned()
    }

    /// The owner's token, if the server requires one.
    fn token(&self) -> Option<&str> {
        let link = self.server.as_ref()?.said["link"].as_str()?;
        link.split_once("token=").map(|(_, token)| token)
    }

    /// Where the server listens for HTTP.
    pub(crate) fn address(&self) -> String {
        let said = &self.server.as_ref().unwrap().said;
        let http = said["http"].as_str().unwrap();
        http.trim_start_matches("http://").to_owned()
    }

    /// Sends a request and reads the answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Answered {
        self.request_with(method, path, body, &[])
    }

    pub(crate) fn request_with(
        &self,
        method: &str,
        path: &str,
        sent: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Answered {
        let address = self.address();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let text = sent.map(Value::to_string).unwrap_or_default();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n",
            text.len()
        );
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if let Some(token) = self.token() {
            write!(head, "Authorization: Bearer {token}\r\n").unwrap();
        }
        write!(stream, "{head}\r\n{text}").unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let (_, body) = rest.split_once("\r\n\r\n").unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()));
        contract::check_exchange(&Exchange {
            method,
            path,
            body: sent,
            status,
            answer: &body,
        });
        Answered { status, body }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answered = self.request("GET", path, None);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let answered = self.request("POST", path, Some(body));
        assert!(
            (200..300).contains(&answered.status),
            "{path}: {} {}",
            answered.status,
            answered.body
        );
        answered.body
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Value {
        let answered = self.request("PATCH", path, Some(body));
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    pub(crate) fn delete(&self, path: &str) -> Value {
        let answered = self.request("DELETE", path, None);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }

    /// Creates a run in the workspace.
    pub(crate) fn new_run(&self, more: Value) -> String {
        let mut body = json!({"cwd": self.work(), "goal": "Build it\nwell"});
        merge(&mut body, more);
        let answer = self.post("/api/runs", &body);
        answer["run"]["id"].as_str().unwrap().to_owned()
    }

    /// Adds a node of a protocol. Its alias is its role unless given.
    pub(crate) fn add_node(&self, run: &str, role: &str, protocol: &str, more: Value) -> String {
        let mut body = json!({"label": role, "roleTemplate": role, "alias": role});
        match protocol {
            "claude" | "codex" | "gemini" => body["provider"] = protocol.into(),
            custom => {
                body["provider"] = "custom".into();
                body["providerName"] = custom.into();
            }
        }
        merge(&mut body, more);
        let answer = self.post(&format!("/api/runs/{run}/nodes"), &body);
        answer["node"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn chat(&self, run: &str, node: &str, content: &str) {
        let body = json!({"content": content, "nodeId": node});
        self.post(&format!("/api/runs/{run}/chat"), &body);
    }

    /// All events of a run.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let after = events.len();
            let page = self.get(&format!("/api/runs/{run}/events?limit=2000&after={after}"));
            let page_events = page["events"].as_array().unwrap();
            page_events.iter().for_each(contract::check_event);
            events.extend(page_events.iter().cloned());
            if page["page"]["hasMore"] == false {
                return events;
            }
        }
    }

    /// Follows the events of a run behind a number.
    pub(crate) fn watch(&self, run: &str, since: u64) -> EventSocket {
        let address = self.address();
        let place = Place {
            address: &address,
            run,
            since,
        };
        EventSocket::open(&place).unwrap()
    }

    /// Waits for an event for which the check holds. An event that was there before counts.
    pub(crate) fn wait_for(&self, run: &str, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        self.watch(run, 0).read_until(what, check)
    }

    /// Waits until so many turns of a node have ended, and returns how the last of them did.
    pub(crate) fn wait_for_turn_end(&self, run: &str, node: &str, count: usize) -> String {
        let mut socket = self.watch(run, 0);
        let mut ended = String::new();
        for _ in 0..count {
            let end = socket.read_until("the end of a turn", |event| {
                event["nodeId"] == node && is_turn_end(event)
            });
            end["status"].as_str().unwrap().clone_into(&mut ended);
        }
        ended
    }

    /// A run as it is now.
    pub(crate) fn show(&self, run: &str) -> Value {
        self.get(&format!("/api/runs/{run}"))["run"].take()
    }

    /// A node as it is now.
    pub(crate) fn show_node(&self, run: &str, node: &str) -> Value {
        self.show(run)["nodes"][node].take()
    }

    /// Lets a paused run go on.
    pub(crate) fn resume(&self, run: &str) {
        self.patch(&format!("/api/runs/{run}"), &json!({"status": "running"}));
    }

    /// Connects two nodes in both directions.
    pub(crate) fn connect(&self, run: &str, from: &str, to: &str) -> Value {
        let edge = json!({"from": from, "to": to});
        self.post(&format!("/api/runs/{run}/edges"), &edge)["edge"].take()
    }

    /// Answers an approval, given the event that requested it.
    pub(crate) fn resolve(&self, requested: &Value, answer: &Value) {
        let id = requested["approvalId"].as_str().unwrap();
        self.post(&format!("/api/approvals/{id}/resolve"), answer);
    }

    /// The artifacts of a kind that a node made, the oldest first.
    pub(crate) fn artifacts_of(&self, run: &str, node: &str, kind: &str) -> Vec<Value> {
        let events = self.events(run).into_iter();
        let created = events.filter(|event| event["type"] == "artifact.created");
        let artifacts = created.map(|mut event| event["artifact"].take());
        artifacts
            .filter(|artifact| artifact["nodeId"] == node && artifact["kind"] == kind)
            .collect()
    }

    /// The content of an artifact as text.
    pub(crate) fn read_artifact(&self, run: &str, artifact: &Value) -> String {
        let id = artifact["id"].as_str().unwrap();
        let path = format!("/api/runs/{run}/artifacts/{id}?raw=1");
        match self.get(&path) {
            Value::String(text) => text,
            json => json.to_string(),
        }
    }

    /// The file `events.jsonl` has exactly the events of the log.
    pub(crate) fn check_event_file(&self, run: &str) {
        self.check_event_file_has(run, self.events(run));
    }

    /// The file `events.jsonl` has these events, the first of the run, as soon as the server has
    /// written them. It has no event that the log does not have.
    fn check_event_file_has(&self, run: &str, mut events: Vec<Value>) {
        let path = self.run_dir(run).join("events.jsonl");
        // A test may put a directory in its place, so that the server cannot write it.
        if path.is_dir() {
            return;
        }
        let deadline = Instant::now() + ANSWER_MAX;
        let mut text = read_whole_lines(&path);
        while text.len() < events.len() {
            let (have, want) = (text.len(), events.len());
            let in_time = Instant::now() < deadline;
            assert!(in_time, "{run}: {have} lines, {want} events");
            std::thread::yield_now();
            text = read_whole_lines(&path);
        }
        let lines: Vec<Value> = text
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        if lines.len() > events.len() {
            events = self.events(run);
        }
        for (line, event) in lines.iter().zip(&events) {
            assert_eq!(line, event, "the file of {run}");
        }
        assert!(lines.len() <= events.len(), "the file is ahead of the log");
        for (number, event) in (1_u64..).zip(&events) {
            assert_eq!(event["seq"], number, "the numbers are dense");
        }
    }
}

/// The lines of a file that are complete.
fn read_whole_lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap_or_default();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter(|line| line.ends_with(b"\n"));
    whole.map(<[u8]>::to_vec).collect()
}

impl Drop for Team {
    /// Every test ends with the check, unless it has failed already: its own message must stay.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_replay();
        }
    }
}

/// The lines of the configuration for the scripted agent under this name.
pub(crate) fn provider(sandbox: &Sandbox, name: &str, protocol: Option<&str>) -> String {
    let agent = sandbox.path("turnkeep-agent-script");
    let script = sandbox.path("script.toml");
    let mut args = vec!["--script".to_owned(), script.display().to_string()];
    let mut text = format!("[providers.{name}]\ncommand = \"{}\"\n", agent.display());
    if let Some(protocol) = protocol {
        writeln!(text, "protocol = \"{protocol}\"").unwrap();
        args.extend(["--protocol".to_owned(), protocol.to_owned()]);
    }
    if protocol == Some("acp") {
        // `gemini` is the other program that speaks ACP; this one shows the arguments of its calls.
        args.push("acp".to_owned());
    }
    if protocol == Some("stream-json") {
        // A program of the user gets no arguments from the server, so its own make it ask, and show
        // unfinished messages.
        args.extend(["--permission-prompt-tool", "stdio"].map(str::to_owned));
        args.push("--include-partial-messages".to_owned());
        // It gets the address and the token in its environment.
        let server = json!({
            "type": "http", "url": "${TURNKEEP_MCP_URL}",
            "headers": {"Authorization": "Bearer ${TURNKEEP_MCP_TOKEN}"},
        });
        let config = json!({"mcpServers": {"turnkeep": server}});
        args.extend(["--mcp-config".to_owned(), config.to_string()]);
    }
    if protocol == Some("raw") {
        // A process plays one turn; this file says to the next one which turn that was.
        let state = sandbox.path(&format!("{name}.state"));
        args.extend(["--state".to_owned(), state.display().to_string()]);
    }
    format!("{text}args = {}\n\n", json!(args))
}

/// Makes the workspace a repository with one commit.
pub(crate) fn make_repository(dir: &Path) {
    fs::write(dir.join("README.md"), "A project.\n").unwrap();
    for args in [
        &["init", "--quiet", "."][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "first"],
    ] {
        let mut command = std::process::Command::new("git");
        command.args(args).current_dir(dir);
        let identity: BTreeMap<&str, &str> = [
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ]
        .into();
        assert!(command.envs(identity).status().unwrap().success());
    }
}

fn merge(body: &mut Value, more: Value) {
    if let Value::Object(fields) = more {
        for (name, value) in fields {
            body[name] = value;
        }
    }
}

/// Settings of a node with an alias whose program never asks for permission.
pub(crate) fn skip(alias: &str) -> Value {
    json!({"alias": alias, "permissions": {"cliPermissionsMode": "skip"}})
}

/// The type of an event, or the value of `turn.status`.
pub(crate) fn name_of(event: &Value) -> String {
    match event["type"].as_str().unwrap() {
        "turn.status" => event["status"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    }
}

/// The types of events, with the value of `turn.status`.
pub(crate) fn names(events: &[Value]) -> Vec<String> {
    events.iter().map(name_of).collect()
}

/// Whether an event ends a turn.
pub(crate) fn is_turn_end(event: &Value) -> bool {
    let ends = ["turn.completed", "turn.failed", "turn.interrupted"];
    event["status"]
        .as_str()
        .is_some_and(|status| event["type"] == "turn.status" && ends.contains(&status))
}

/// Whether an event is the completion of its run.
pub(crate) fn is_completion(event: &Value) -> bool {
    event["type"] == "run.patch" && event["patch"]["status"] == "completed"
}
