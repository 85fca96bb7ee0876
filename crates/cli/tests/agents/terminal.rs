//! Programs in a terminal (`protocol = "pty"`): the bridge with a shell and an interpreter, and the
//! scripted agent as a node.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::team::{Team, make_repository};

/// `turnkeep agent-terminal` with a program, spoken to as the server does.
struct Bridge {
    _sandbox: Sandbox,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(program: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(&["agent-terminal", "--"]);
        command.args(program);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("PS1", "$ ").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            _sandbox: sandbox,
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line, but for those that only say that the program is alive.
    fn read(&mut self) -> Value {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let read = serde_json::from_str(&line);
            let value: Value = read.unwrap_or_else(|_| panic!("the bridge printed {line:?}"));
            if value["type"] != "terminal.output" {
                return value;
            }
        }
    }

    /// Sends a prompt and returns the answer.
    fn ask(&mut self, prompt: &str) -> String {
        self.send(&json!({"type": "message.user", "content": prompt}));
        let answer = self.read();
        assert_eq!(answer["type"], "message.assistant.final", "{answer}");
        assert_eq!(self.read()["status"], "turn.completed");
        answer["content"].as_str().unwrap().to_owned()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // The end of its input ends the bridge, and the bridge its program.
        self.input = None;
        self.child.wait().ok();
    }
}

#[test]
fn a_shell_in_a_terminal_answers_and_is_interrupted() {
    let mut bridge = Bridge::start(&["bash", "--norc", "--noprofile"]);
    bridge.send(&json!({"type": "start", "cwd": "/"}));
    assert_eq!(bridge.ask("echo one; echo two"), "one\ntwo");
    let directory = tempfile::tempdir().unwrap();
    let began = directory.path().join("began");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &began,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    // One program that is in the foreground from its start: a key between two commands of bash could
    // reach neither.
    let command = format!("sh -c 'echo busy; echo > {}; exec cat'", began.display());
    bridge.send(&json!({"type": "message.user", "content": command}));
    // Reading the other end waits until the shell is there.
    std::fs::read(&began).unwrap();
    bridge.send(&json!({"type": "interrupt"}));
    let half = bridge.read();
    assert_eq!(half["type"], "message.assistant.delta", "{half}");
    assert!(half["delta"].as_str().unwrap().contains("busy"), "{half}");
    assert_eq!(bridge.read()["status"], "turn.interrupted");
    assert_eq!(bridge.ask("echo again"), "again");
}

#[test]
fn an_interpreter_in_a_terminal_keeps_its_state_between_turns() {
    let mut bridge = Bridge::start(&["python3", "-q"]);
    assert_eq!(bridge.ask("x = 20; print('set')"), "set");
    assert_eq!(bridge.ask("print(x + 1)"), "21");
}

#[test]
fn a_program_that_fails_says_why() {
    let mut bridge = Bridge::start(&["sh", "-c", "echo out of paper; exit 3"]);
    let mut said = String::new();
    let errors = bridge.child.stderr.as_mut().unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(said.trim(), "out of paper");
    assert_eq!(bridge.child.wait().unwrap().code(), Some(3));
}

const TALKING: &str = r#"
[[turn]]
when = "Greet me"
steps = [{ say = "Hello from the terminal." }]

[[turn]]
when = "Look around"
steps = [{ say = '{"tool_call":{"name":"list_nodes","args":{}}}' }]

[[turn]]
when = "The results of your tool calls"
steps = [{ say = "I am alone." }]

[[turn]]
when = "Wait for it"
steps = [
    { say = "I wait." },
    { write = "started.txt", content = "yes" },
    { wait_for_file = "SANDBOX/never" },
]

[[turn]]
when = "Go on"
steps = [{ say = "I go on." }]
"#;

fn configure(sandbox: &Sandbox) -> String {
    let agent = sandbox.path("turnkeep-agent-script");
    let script = sandbox.path("script.toml");
    let args = json!(["--script", script]);
    format!(
        "[providers.terminal]\ncommand = {}\nprotocol = \"pty\"\nargs = {args}\n",
        json!(agent)
    )
}

fn last_answer(team: &Team, run: &str) -> (String, String) {
    let events = team.events(run);
    let mut finals = events.iter().rev();
    let last = finals.find(|event| event["type"] == "message.assistant.final");
    let text = |key: &str| last.unwrap()[key].as_str().unwrap().trim().to_owned();
    (text("content"), text("status"))
}

#[test]
fn an_agent_in_a_terminal_is_a_node() {
    let team = Team::start_with(TALKING, configure);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "terminal", json!({}));
    let rows = [
        ("Greet me", "Hello from the terminal."),
        ("Look around", "I am alone."),
    ];
    for (turn, (message, answer)) in rows.into_iter().enumerate() {
        team.chat(&run, &node, message);
        let end = team.wait_for_turn_end(&run, &node, turn + 1);
        assert_eq!(end, "turn.completed", "{:#?}", team.events(&run));
        assert_eq!(
            last_answer(&team, &run),
            (answer.to_owned(), "final".to_owned())
        );
    }
    team.chat(&run, &node, "Wait for it");
    while !team.work().join("started.txt").exists() {
        std::thread::yield_now();
    }
    team.post(
        &format!("/api/runs/{run}/nodes/{node}/interrupt"),
        &json!({}),
    );
    assert_eq!(team.wait_for_turn_end(&run, &node, 3), "turn.interrupted");
    team.chat(&run, &node, "Go on");
    assert_eq!(team.wait_for_turn_end(&run, &node, 4), "turn.completed");
    assert_eq!(last_answer(&team, &run).0, "I go on.");
}
