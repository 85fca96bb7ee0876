//! Lines that no program should print. Whatever comes, a machine never panics, ends a turn at most
//! once, and completes every proposed tool exactly once before the end of its turn.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_agents::acp::Acp;
use turnkeep_agents::claude::Claude;
use turnkeep_agents::codex::Codex;
use turnkeep_agents::jsonl::Jsonl;
use turnkeep_agents::raw::Raw;
use turnkeep_agents::{Action, AgentEvent, AgentProtocol, Answer, Exit, Request};

use crate::conversation::{answer_to, deny, start_options};

fn machines() -> Vec<Box<dyn AgentProtocol>> {
    vec![
        Box::new(Claude::new()),
        Box::new(Codex::new()),
        Box::new(Acp::new()),
        Box::new(Jsonl::new()),
        Box::new(Raw::new()),
    ]
}

/// Checks the promises of a machine while it is used.
struct Watched {
    machine: Box<dyn AgentProtocol>,
    is_open: bool,
    open_tools: BTreeSet<String>,
    open_questions: BTreeSet<String>,
}

impl Watched {
    fn new(machine: Box<dyn AgentProtocol>) -> Self {
        Self {
            machine,
            is_open: false,
            open_tools: BTreeSet::new(),
            open_questions: BTreeSet::new(),
        }
    }

    fn check(&mut self, actions: Vec<Action>) {
        for action in actions {
            let Action::Emit(event) = action else {
                continue;
            };
            match event {
                AgentEvent::ToolProposed(call) => {
                    assert!(self.is_open, "a tool outside a turn");
                    assert!(self.open_tools.insert(call.provider_id), "proposed twice");
                }
                AgentEvent::ToolCompleted(result) => {
                    assert!(
                        self.open_tools.remove(&result.provider_id),
                        "completed twice"
                    );
                }
                AgentEvent::PermissionAsked(request) => {
                    assert!(
                        self.open_questions.insert(request.request_id),
                        "asked twice"
                    );
                }
                AgentEvent::PermissionWithdrawn { request_id } => {
                    assert!(self.open_questions.remove(&request_id), "withdrawn twice");
                }
                AgentEvent::AnswerDelta(_) | AgentEvent::AnswerFinal(_) => {
                    assert!(self.is_open, "an answer outside a turn");
                }
                AgentEvent::TurnEnded(_) => {
                    assert!(self.is_open, "ended twice");
                    assert_eq!(self.open_tools.len(), 0, "tools are open");
                    assert_eq!(self.open_questions.len(), 0, "questions are open");
                    self.is_open = false;
                }
                _ => {}
            }
        }
    }

    fn request(&mut self, request: Request) {
        let is_send = matches!(request, Request::Send { .. });
        let answered = match &request {
            Request::Answer { request_id, .. } => Some(request_id.clone()),
            _ => None,
        };
        if let Ok(actions) = self.machine.request(request) {
            if is_send {
                assert!(!self.is_open, "opened twice");
                self.is_open = true;
            }
            if let Some(id) = answered {
                assert!(
                    self.open_questions.remove(&id),
                    "answered a closed question"
                );
            }
            self.check(actions);
        }
    }

    fn receive(&mut self, line: &[u8]) {
        let actions = self.machine.receive_line(line);
        self.check(actions);
    }

    /// A failed end: a successful one may leave a turn open for the results of tools.
    fn end(&mut self) {
        let exit = Exit {
            code: Some(1),
            last_errors: String::new(),
        };
        let actions = self.machine.receive_end(&exit);
        self.check(actions);
        assert!(!self.is_open, "the turn of a dead program is open");
    }
}

/// The programs with recordings.
const RECORDED: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

fn machine_of(program: &str) -> Box<dyn AgentProtocol> {
    match program {
        "claude" => Box::new(Claude::new()),
        "codex" => Box::new(Codex::new()),
        _ => Box::new(Acp::new()),
    }
}

fn read_recording(program: &str) -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/");
    let text = std::fs::read_to_string(format!("{root}{program}.lines")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Recorded lines of all programs, as material to damage.
fn recorded_lines() -> Vec<String> {
    let lines = RECORDED.into_iter().flat_map(read_recording);
    lines.map(|line| line.chars().skip(2).collect()).collect()
}

/// What happens to a machine.
#[derive(Debug, Clone)]
enum Step {
    Line(String),
    Request(Request),
}

/// Values where a program should print something else.
fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(u64::MAX)),
        Just(json!(1e308)),
        Just(json!("")),
        Just(json!("tu")),
        Just(json!([])),
        Just(json!([null, {}, "x"])),
        Just(json!({})),
        Just(json!({"id": {"id": []}})),
    ]
}

/// Replaces the value at a position of a message, counted through the whole tree.
fn replace_value(value: &mut Value, position: &mut usize, new: &Value) {
    if *position == 0 {
        *value = new.clone();
    }
    *position = position.wrapping_sub(1);
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                replace_value(field, position, new);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                replace_value(element, position, new);
            }
        }
        _ => {}
    }
}

fn damage(line: &str, mut position: usize, new: &Value) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    replace_value(&mut value, &mut position, new);
    value.to_string()
}

fn damaged_line() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(recorded_lines());
    (lines, 0_usize..40, odd_value())
        .prop_map(|(line, position, new)| damage(&line, position, &new))
}

/// A line of the program's own recording, chosen by its place.
#[derive(Debug, Clone)]
struct OwnLine {
    place: prop::sample::Index,
    damage: Option<(usize, Value)>,
}

fn own_line() -> impl Strategy<Value = OwnLine> {
    let damage = prop::option::of((0_usize..40, odd_value()));
    (any::<prop::sample::Index>(), damage).prop_map(|(place, damage)| OwnLine { place, damage })
}

/// Plays the beginning of a recording, with a prompt wherever no turn is open.
fn play_beginning(watched: &mut Watched, lines: &[String]) {
    for line in lines {
        watched.request(Request::Send {
            prompt: "hello".to_owned(),
        });
        if let Some(printed) = line.strip_prefix("< ") {
            watched.receive(printed.as_bytes());
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let ids = vec!["0", "\"q\"", "7", "f2aad211-c116-41d7-8e45-cc5d0508851a"];
    let answers = vec![
        Answer::Allow,
        Answer::AllowAlways,
        Answer::AllowWith(json!({})),
        Answer::AllowWith(json!(1)),
        deny("no"),
    ];
    let answer = (prop::sample::select(ids), prop::sample::select(answers));
    prop_oneof![
        4 => Just(Request::Send { prompt: "hello".to_owned() }),
        2 => answer.prop_map(|(id, answer)| answer_to(id, answer)),
        1 => Just(Request::Interrupt),
        1 => Just(Request::Steer { text: "more".to_owned() }),
        1 => Just(Request::ToolResults(Vec::new())),
        1 => Just(Request::Start(start_options())),
        1 => Just(Request::Reset { commands: Vec::new() }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::sample::select(recorded_lines()).prop_map(Step::Line),
        4 => damaged_line().prop_map(Step::Line),
        1 => "[ -~]{0,40}".prop_map(Step::Line),
        3 => request().prop_map(Step::Request),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_whatever_a_program_prints(steps in prop::collection::vec(step(), 1..80)) {
        for machine in machines() {
            let mut watched = Watched::new(machine);
            watched.request(Request::Start(start_options()));
            watched.request(Request::Send { prompt: "hello".to_owned() });
            for step in &steps {
                match step {
                    Step::Line(line) => watched.receive(line.as_bytes()),
                    Step::Request(request) => watched.request(request.clone()),
                }
            }
            watched.end();
        }
    }

    #[test]
    fn promises_hold_in_the_middle_of_a_conversation(
        program in prop::sample::select(&RECORDED[..]),
        beginning in 0_usize..60,
        steps in prop::collection::vec((own_line(), prop::option::weighted(0.3, request())), 1..60),
    ) {
        let lines = read_recording(program);
        let mut watched = Watched::new(machine_of(program));
        watched.request(Request::Start(start_options()));
        play_beginning(&mut watched, &lines[..beginning.min(lines.len())]);
        for (own, request) in steps {
            let line = &own.place.get(&lines)[2..];
            match own.damage {
                Some((position, new)) => watched.receive(damage(line, position, &new).as_bytes()),
                None => watched.receive(line.as_bytes()),
            }
            if let Some(request) = request {
                watched.request(request);
            }
        }
        watched.end();
    }

    #[test]
    fn any_bytes_are_survived(line in prop::collection::vec(any::<u8>(), 0..200)) {
        for machine in machines() {
            let mut watched = Watched::new(machine);
            watched.request(Request::Start(start_options()));
            watched.request(Request::Send { prompt: "hello".to_owned() });
            watched.receive(&line);
            watched.end();
        }
    }
}

#[test]
fn deep_and_huge_lines_are_logged() {
    let deep = "[".repeat(100_000);
    let rows = [
        deep.clone(),
        format!("{{\"type\":{deep}"),
        "{\"id\":1e999,\"result\":{}}".to_owned(),
        "{\"id\":1".to_owned(),
        "\u{feff}{}".to_owned(),
        "x".repeat(1_000_000),
    ];
    for line in &rows {
        for mut machine in machines().into_iter().take(4) {
            machine.request(Request::Start(start_options())).unwrap();
            let actions = machine.receive_line(line.as_bytes());
            let [Action::Emit(AgentEvent::Log(logged))] = &actions[..] else {
                panic!("not logged: {}", line.chars().take(40).collect::<String>());
            };
            assert!(logged.chars().count() <= 8 * 1024 + 1);
        }
    }
}

#[test]
fn the_tools_and_questions_of_a_turn_are_bounded() {
    let mut claude = Watched::new(Box::new(Claude::new()));
    claude.request(Request::Start(start_options()));
    claude.request(Request::Send {
        prompt: "hello".to_owned(),
    });
    for n in 0..20_000 {
        let block = json!({"type": "tool_use", "id": format!("t{n}"), "name": "x"});
        let record = json!({"type": "assistant", "message": {"content": [block]}});
        claude.receive(record.to_string().as_bytes());
    }
    assert_eq!(claude.open_tools.len(), 10_000);
    let large = "x".repeat(5_000_000);
    let record = json!({"type": "control_request", "request_id": "large",
        "request": {"subtype": "can_use_tool", "tool_use_id": "t0", "input": {"x": large}}});
    claude.receive(record.to_string().as_bytes());
    assert!(!claude.open_questions.contains("large"));
    for n in 0..1_000 {
        let record = json!({"type": "control_request", "request_id": format!("q{n}"),
            "request": {"subtype": "can_use_tool", "tool_use_id": "t0"}});
        claude.receive(record.to_string().as_bytes());
    }
    assert_eq!(claude.open_questions.len(), 64);
    let long_id = "x".repeat(5_000);
    let block = json!({"type": "tool_use", "id": long_id, "name": "x"});
    let record = json!({"type": "assistant", "message": {"content": [block]}});
    claude.receive(record.to_string().as_bytes());
    claude.end();
}
