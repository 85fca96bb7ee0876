//! Conversations with the real programs, replayed through their machines.
//!
//! `testdata/<name>.lines` is a recording, shortened: `> ` before a line that goes to the program,
//! `< ` before a line that it prints. The test makes the request that each sent line stands for, and
//! checks that the machine writes exactly the sent lines. `testdata/<name>.events` is what the
//! machine emits, one event per line after the line that caused it; `UPDATE=1` rewrites it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use turnkeep_agents::acp::Acp;
use turnkeep_agents::claude::Claude;
use turnkeep_agents::codex::Codex;
use turnkeep_agents::raw::Raw;
use turnkeep_agents::{Action, AgentEvent, AgentProtocol, Answer, Exit, Request};

use crate::conversation::{describe_event, start_options};

/// A replay in progress.
struct Replay {
    machine: Box<dyn AgentProtocol>,
    /// Lines that the machine wrote and that the recording has not reached.
    written: VecDeque<Value>,
    /// The question that waits for an answer.
    question: Option<String>,
    events: String,
}

impl Replay {
    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Write(text) => self.written.push_back(parse(&text)),
                Action::Emit(event) => {
                    if let AgentEvent::PermissionAsked(request) = &event {
                        self.question = Some(request.request_id.clone());
                    }
                    writeln!(self.events, "{}", describe_event(&event)).unwrap();
                }
                Action::CloseInput | Action::SignalInterrupt => {
                    writeln!(self.events, "{action:?}").unwrap();
                }
            }
        }
    }

    fn request(&mut self, request: Request) {
        let actions = self.machine.request(request).unwrap();
        self.perform(actions);
    }

    fn receive(&mut self, line: &str) {
        let actions = self.machine.receive_line(line.as_bytes());
        self.perform(actions);
    }

    /// Plays a line that was sent to the program.
    fn send(&mut self, sent: &Value) {
        if self.written.is_empty() {
            let request = self.request_of(sent);
            self.request(request);
        }
        let written = self.written.pop_front();
        assert_eq!(
            written.as_ref(),
            Some(sent),
            "the machine wrote another line"
        );
    }

    /// The request that makes a machine write this line. Lines that a machine writes by itself are
    /// already written when the recording reaches them.
    fn request_of(&mut self, sent: &Value) -> Request {
        let text = |path: &str| sent.pointer(path).and_then(Value::as_str);
        let prompt = text("/message/content/0/text")
            .or(text("/params/input/0/text"))
            .or(text("/params/prompt/0/text"));
        if let Some(prompt) = prompt {
            let prompt = prompt.to_owned();
            return Request::Send { prompt };
        }
        match text("/request/subtype").or(text("/method")) {
            Some("initialize") => Request::Start(start_options()),
            Some("interrupt" | "turn/interrupt" | "session/cancel") => Request::Interrupt,
            other => {
                assert_eq!(other, None, "no request writes {sent}");
                Request::Answer {
                    request_id: self.question.take().unwrap(),
                    answer: Answer::Allow,
                }
            }
        }
    }
}

/// A line without what differs between versions and settings: the name of the client, and the mode
/// that the recording was made in.
fn parse(line: &str) -> Value {
    let mut value: Value = serde_json::from_str(line).unwrap();
    for key in ["clientInfo", "approvalPolicy", "sandbox"] {
        if let Some(params) = value.get_mut("params").and_then(Value::as_object_mut) {
            params.remove(key);
        }
    }
    value
}

fn read(name: &str) -> String {
    let path = path_of(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn path_of(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("testdata").join(name)
}

fn check_events(name: &str, events: &str) {
    let file = format!("{name}.events");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path_of(&file), events).unwrap();
    }
    assert_eq!(events, read(&file), "{file}: UPDATE=1 rewrites it");
}

fn replay(machine: Box<dyn AgentProtocol>) -> Replay {
    Replay {
        machine,
        written: VecDeque::new(),
        question: None,
        events: String::new(),
    }
}

fn check_recording(name: &str, machine: Box<dyn AgentProtocol>) {
    let mut replay = replay(machine);
    for line in read(&format!("{name}.lines")).lines() {
        match line.split_at(2) {
            ("> ", sent) => replay.send(&parse(sent)),
            (_, printed) => replay.receive(printed),
        }
    }
    assert_eq!(replay.written, [] as [Value; 0]);
    // The turns are over, so the end of the program says nothing new.
    let events = replay.events.clone();
    let end = replay.machine.receive_end(&Exit::default());
    assert_eq!(end, []);
    check_events(name, &events);
}

#[test]
fn claude() {
    check_recording("claude", Box::new(Claude::new()));
}

/// The program calls a tool of the server.
#[test]
fn claude_handoff() {
    check_recording("claude-handoff", Box::new(Claude::new()));
}

/// The program prints a half message as if it were whole.
#[test]
fn claude_interrupt() {
    check_recording("claude-interrupt", Box::new(Claude::new()));
}

#[test]
fn codex_handoff() {
    check_recording("codex-handoff", Box::new(Codex::new()));
}

/// The program asks before it calls a tool of the server.
#[test]
fn gemini_handoff() {
    check_recording("gemini-handoff", Box::new(Acp::new()));
}

#[test]
fn codex() {
    check_recording("codex", Box::new(Codex::new()));
}

#[test]
fn gemini() {
    check_recording("gemini", Box::new(Acp::new()));
}

#[test]
fn opencode() {
    check_recording("opencode", Box::new(Acp::new()));
}

/// A program without a protocol prints its answer and exits.
#[test]
fn aider() {
    let mut replay = replay(Box::new(Raw::new()));
    for line in read("aider.lines").lines() {
        match line.split_at(2) {
            ("> ", prompt) => {
                let prompt = prompt.to_owned();
                let sent = replay.machine.request(Request::Send { prompt }).unwrap();
                assert!(matches!(&sent[..], [Action::Write(_), Action::CloseInput]));
            }
            (_, printed) => replay.receive(printed),
        }
    }
    let exit = Exit {
        code: Some(0),
        last_errors: String::new(),
    };
    let actions = replay.machine.receive_end(&exit);
    replay.perform(actions);
    check_events("aider", &replay.events);
}
