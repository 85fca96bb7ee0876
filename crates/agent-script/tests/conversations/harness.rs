//! Starts the program, talks to it line by line, and never waits for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// No test comes near this; it only keeps a broken one from hanging.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const CLAUDE: &[&str] = &[
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];
pub(crate) const CODEX: &[&str] = &["app-server"];
pub(crate) const GEMINI: &[&str] = &["--acp", "--skip-trust"];
pub(crate) const OPENCODE: &[&str] = &["acp"];
pub(crate) const JSONL: &[&str] = &["--protocol", "jsonl"];
pub(crate) const RAW: &[&str] = &["--protocol", "raw"];

/// A directory with a script, in which agents work.
pub(crate) struct Workplace {
    directory: TempDir,
}

impl Workplace {
    pub(crate) fn new(script: &str) -> Workplace {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("script.toml"), script).unwrap();
        Workplace { directory }
    }

    /// A workplace with one of the scripts in `examples/`.
    pub(crate) fn with_example(name: &str) -> Workplace {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        Workplace::new(&std::fs::read_to_string(folder.join(name)).unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep-agent-script"));
        command.current_dir(self.path());
        command.args(["--script", "script.toml"]).args(arguments);
        command
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Agent {
        Agent::start(&mut self.command(arguments))
    }

    /// Waits for a file that an agent writes, and returns what it holds.
    pub(crate) fn await_file(&self, name: &str) -> String {
        wait_until(name, || {
            let text = std::fs::read_to_string(self.path().join(name)).ok()?;
            (!text.is_empty()).then_some(text)
        })
    }
}

/// A running agent. Dropping it kills it.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    errors: Receiver<String>,
    /// Every line that was read, to explain a failure.
    seen: Vec<String>,
    next_id: u64,
}

impl Agent {
    pub(crate) fn start(command: &mut Command) -> Agent {
        let command = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (line_sender, output) = sync_channel(10_000);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while let Ok(1..) = stdout.read_until(b'\n', &mut line) {
                if line_sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let (error_sender, errors) = sync_channel(1);
        let mut stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            if stderr.read_to_string(&mut text).is_ok() {
                drop(error_sender.send(text));
            }
        });
        Agent {
            input: child.stdin.take(),
            child,
            output,
            errors,
            seen: Vec::new(),
            next_id: 1,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&format!("{message}\n"));
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line, without its line break; `None` when the output has ended.
    pub(crate) fn read_bytes(&mut self) -> Option<Vec<u8>> {
        use std::sync::mpsc::RecvTimeoutError;
        match self.output.recv_timeout(PATIENCE) {
            Ok(mut line) => {
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                self.seen.push(String::from_utf8_lossy(&line).into_owned());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line; so far: {:#?}", self.seen),
        }
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.read_bytes();
        let line = line.unwrap_or_else(|| panic!("the output ended after: {:#?}", self.seen));
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("no JSON: {:?}", self.seen.last()))
    }

    /// Reads up to the first message that `fits`, and returns all of them.
    pub(crate) fn read_until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.read();
            let is_last = fits(&message);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    pub(crate) fn read_to(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.read_until(fits).pop().unwrap()
    }

    /// Reads up to the message with this value at this path.
    pub(crate) fn read_to_value(&mut self, path: &str, value: &str) -> Value {
        self.read_to(|message| message.pointer(path).and_then(Value::as_str) == Some(value))
    }

    /// Sends a JSON-RPC request and returns its id.
    pub(crate) fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a JSON-RPC request and reads up to its response.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        self.read_response(id)
    }

    pub(crate) fn read_response(&mut self, id: u64) -> Value {
        self.read_to(|message| message.get("method").is_none() && message["id"] == id)
    }

    pub(crate) fn send_claude_prompt(&mut self, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.send(
            &json!({"type": "user", "message": {"role": "user", "content": content},
            "parent_tool_use_id": null, "session_id": ""}),
        );
    }

    /// Sends a prompt as Claude's host does, and reads the turn.
    pub(crate) fn claude_turn(&mut self, text: &str) -> Vec<Value> {
        self.send_claude_prompt(text);
        self.read_until(|message| message["type"] == "result")
    }

    /// Closes the input and waits for the end.
    pub(crate) fn leave(mut self) -> ExitStatus {
        self.close_input();
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_until("the end of the agent", || self.child.try_wait().unwrap())
    }

    /// Everything on standard error. Call it when the agent has ended.
    pub(crate) fn errors(&mut self) -> String {
        self.errors.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Polls until `look` finds something.
pub(crate) fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "waited too long for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The values at a path of those messages that have it.
pub(crate) fn texts_at(messages: &[Value], path: &str) -> Vec<String> {
    let texts = messages
        .iter()
        .filter_map(|message| message.pointer(path)?.as_str());
    texts.map(str::to_owned).collect()
}

/// Starts a Codex thread and returns its id.
pub(crate) fn open_codex_thread(agent: &mut Agent, params: &Value) -> String {
    let client = json!({"clientInfo": {"name": "test", "title": "test", "version": "0"}});
    agent.request("initialize", &client);
    agent.send(&json!({"jsonrpc": "2.0", "method": "initialized"}));
    let response = agent.request("thread/start", params);
    response["result"]["thread"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub(crate) fn codex_prompt(thread: &str, text: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": text}]})
}

/// Starts an ACP session and returns its id.
pub(crate) fn open_acp_session(
    agent: &mut Agent,
    workplace: &Workplace,
    servers: &Value,
) -> String {
    agent.request(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {}}),
    );
    let params = json!({"cwd": workplace.path(), "mcpServers": servers});
    let response = agent.request("session/new", &params);
    response["result"]["sessionId"].as_str().unwrap().to_owned()
}

pub(crate) fn acp_prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}
