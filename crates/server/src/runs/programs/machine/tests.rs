//! The machine with a protocol whose lines name the events: `say hello`, `tool 1 Bash`, `end`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use turnkeep_agents::event::{LineCall, PermissionRequest, ToolCall, ToolResult};
use turnkeep_agents::request::{Access, Permissions, RequestError};
use turnkeep_agents::{Features, TurnEnd as AgentEnd};
use turnkeep_runtime::ids::Uuid as _;

use super::*;

/// How long a program may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// Understands lines of a few words, and writes requests as such lines.
#[derive(Default)]
struct WordProtocol {
    has_turn: bool,
    resets_in_process: bool,
}

fn tool_call(id: &str, name: &str) -> ToolCall {
    ToolCall {
        provider_id: id.to_owned(),
        name: name.to_owned(),
        args: Value::Null,
    }
}

impl AgentProtocol for WordProtocol {
    fn features(&self) -> Features {
        Features {
            resets_in_process: self.resets_in_process,
            ..Features::default()
        }
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        let text = match request {
            Request::Start(_) => "start".to_owned(),
            Request::Send { prompt } => {
                self.has_turn = true;
                format!("send {prompt}")
            }
            Request::Interrupt if !self.has_turn => return Err(RequestError::NoTurn),
            Request::Interrupt => "interrupt".to_owned(),
            Request::Answer { request_id, answer } => format!("answer {request_id} {answer:?}"),
            Request::ToolResults(results) => format!("results {}", results.len()),
            other => format!("{other:?}"),
        };
        Ok(vec![Action::Write(text)])
    }

    fn receive_line(&mut self, line: &[u8]) -> Vec<Action> {
        let line = String::from_utf8_lossy(line).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let event = match words.as_slice() {
            ["say", text] => AgentEvent::AnswerDelta((*text).to_owned()),
            ["tool", id, name @ ..] => AgentEvent::ToolProposed(tool_call(id, &name.join(" "))),
            ["done", id] => AgentEvent::ToolCompleted(ToolResult {
                provider_id: (*id).to_owned(),
                ok: true,
                output: None,
                error: None,
            }),
            ["ask", id, name @ ..] => AgentEvent::PermissionAsked(Box::new(PermissionRequest {
                request_id: format!("question-{id}"),
                call: tool_call(id, &name.join(" ")),
                context: String::new(),
                can_allow_always: false,
            })),
            ["call", name] => AgentEvent::ToolCallRequested(LineCall {
                name: (*name).to_owned(),
                args: Value::Null,
            }),
            ["poll"] => AgentEvent::CommandPolled { call: None },
            ["poll", id] => AgentEvent::CommandPolled {
                call: Some((*id).to_owned()),
            },
            ["progress", text] => AgentEvent::Progress((*text).to_owned()),
            ["await"] => AgentEvent::AwaitsToolResults,
            ["end"] => {
                self.has_turn = false;
                AgentEvent::TurnEnded(AgentEnd::Completed)
            }
            _ => AgentEvent::Log(line),
        };
        vec![Action::Emit(event)]
    }

    fn receive_end(&mut self, _exit: &Exit) -> Vec<Action> {
        Vec::new()
    }
}

fn turn_id(number: u128) -> AgentTurnId {
    AgentTurnId::from_bits(number)
}

/// The machine with a process that can be seen to live.
struct Bench {
    machine: ProgramMachine<Arc<()>>,
    process: Arc<()>,
}

impl Bench {
    fn new() -> Self {
        Self {
            machine: ProgramMachine::new(STOP_WITHIN),
            process: Arc::new(()),
        }
    }

    /// A machine whose program works on turn 1.
    fn in_turn() -> Self {
        let mut bench = Self::new();
        bench.prompt(1);
        bench.start_process();
        bench
    }

    fn prompt(&mut self, turn: u128) -> Vec<String> {
        let prompt = TurnPrompt {
            turn: turn_id(turn),
            session: None,
            text: Bytes::from_static(b"hello"),
        };
        describe(&self.machine.begin_turn(prompt))
    }

    fn start_process(&mut self) -> Vec<String> {
        self.start_protocol(WordProtocol::default())
    }

    fn start_protocol(&mut self, protocol: WordProtocol) -> Vec<String> {
        let steps = self.machine.take_process(StartedProcess {
            process: Arc::clone(&self.process),
            protocol: Box::new(protocol),
            options: StartOptions {
                session: None,
                cwd: "/work".to_owned(),
                mcp: None,
                permissions: Permissions::Gated,
                access: Access::Write,
            },
        });
        describe(&steps)
    }

    fn line(&mut self, line: &str) -> Vec<String> {
        describe(&self.machine.receive_line(line.as_bytes()))
    }

    fn exit(&mut self) -> Vec<String> {
        let code = Some(3);
        let last_errors = "boom".to_owned();
        describe(&self.machine.receive_exit(&Exit { code, last_errors }))
    }

    fn result(&mut self, turn: u128) -> Vec<String> {
        let result = TurnResult {
            turn: turn_id(turn),
            result: LineResult {
                name: "tool".to_owned(),
                result: Ok(Value::Null),
            },
        };
        describe(&self.machine.receive_result(result))
    }

    /// Answers a question about a call that no rule can be made of.
    fn answer(&mut self, id: &str, resolution: Resolution) -> Vec<String> {
        let call = turnkeep_runtime::tool::ToolCall {
            id: turnkeep_runtime::ids::ToolId::from_bits(1),
            name: "Bash".to_owned(),
            args: Value::Null,
            provider_id: Some(id.to_owned()),
        };
        describe(&self.machine.answer(&call, resolution))
    }

    fn runs(&self) -> bool {
        Arc::strong_count(&self.process) > 1
    }
}

fn describe(steps: &[Step]) -> Vec<String> {
    steps.iter().map(describe_step).collect()
}

fn describe_step(step: &Step) -> String {
    match step {
        Step::EnsureProcess { .. } => "ensure process".to_owned(),
        Step::Write(text) => format!("write {text}"),
        Step::CloseInput => "close input".to_owned(),
        Step::SignalInterrupt => "signal".to_owned(),
        Step::Kill => "kill".to_owned(),
        Step::AwaitExit => "await exit".to_owned(),
        Step::CallTool(call) => format!("call {}", call.call.name),
        Step::Report { output, .. } => match output {
            Output::Answer(text) => format!("report answer {text}"),
            Output::ToolProposed { name, .. } => format!("report proposed {name}"),
            Output::ToolStarted { provider_id } => format!("report started {provider_id}"),
            Output::ToolCompleted { provider_id, .. } => format!("report completed {provider_id}"),
            other => format!("report {other:?}"),
        },
        Step::ReportOwnCall(own) => format!("report own {}", own.tool),
        Step::AskPermission { request, .. } => format!("ask {}", request.call.name),
        Step::ReportBetweenTurns(_) => "report between turns".to_owned(),
        Step::WithdrawPermission { provider_id, .. } => format!("withdraw {provider_id}"),
        Step::EndTurn(ended) if ended.only_waited => {
            format!("end {}, only waited", describe_end(&ended.end))
        }
        Step::EndTurn(ended) => format!("end {}", describe_end(&ended.end)),
    }
}

fn describe_end(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Completed => "completed".to_owned(),
        TurnEnd::Interrupted { .. } => "interrupted".to_owned(),
        TurnEnd::Failed { reason } => format!("failed: {reason}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_prompt_starts_the_program_once_and_the_next_one_uses_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.prompt(1), ["ensure process"]);
    assert_eq!(bench.start_process(), ["write start", "write send hello"]);
    assert_eq!(bench.line("end"), ["end completed"]);
    assert_eq!(bench.prompt(2), ["ensure process"]);
    let kept = describe(&bench.machine.keep_process());
    assert_eq!(kept, ["write send hello"]);
}

#[test]
fn text_waits_for_more_and_comes_before_what_follows_it() {
    let mut bench = Bench::in_turn();
    assert!(bench.line("say a").is_empty());
    assert!(bench.line("say b").is_empty());
    let due = bench.machine.next_deadline(Instant::now()).unwrap().due;
    assert_eq!(due, Due::Flush);
    let expect = ["report answer ab", "report proposed Bash"];
    assert_eq!(bench.line("tool 1 Bash"), expect);
    let started = describe(&bench.machine.take_due(Due::Flush));
    assert_eq!(started, ["report started 1"]);
    assert_eq!(bench.line("done 1"), ["report completed 1"]);
    assert_eq!(bench.machine.next_deadline(Instant::now()), None);
}

#[test]
fn a_question_goes_to_a_person_and_its_answer_to_the_program() {
    let mut bench = Bench::in_turn();
    bench.line("tool 1 Bash");
    assert_eq!(bench.line("ask 1 Bash"), ["ask Bash"]);
    let denied = || Resolution::denied("no");
    let unknown = bench.answer("2", denied());
    assert!(unknown.is_empty());
    let answered = bench.answer("1", denied());
    assert_eq!(
        answered,
        ["write answer question-1 Deny { reason: \"no\" }"]
    );
    let again = bench.answer("1", denied());
    assert!(again.is_empty(), "a question is answered once");
}

#[test]
fn calls_of_the_servers_own_tools_are_reported_once_they_are_done() {
    for name in [
        "mcp__turnkeep__send_handoff",
        "send_handoff (turnkeep MCP Server)",
    ] {
        let mut bench = Bench::in_turn();
        assert!(bench.line(&format!("tool 1 {name}")).is_empty(), "{name}");
        let allowed = bench.line(&format!("ask 1 {name}"));
        assert_eq!(allowed, ["write answer question-1 Allow"], "{name}");
        assert_eq!(bench.line("done 1"), ["report own send_handoff"]);
    }
    let mut bench = Bench::in_turn();
    bench.line("tool 1 mcp__turnkeep");
    assert!(bench.line("done 1").is_empty(), "a question is no call");
}

#[test]
fn a_turn_goes_on_in_the_next_process_with_the_results_of_its_calls() {
    let mut bench = Bench::in_turn();
    assert_eq!(bench.line("call list_nodes"), ["call list_nodes"]);
    assert_eq!(bench.line("call ask_user"), ["call ask_user"]);
    assert!(bench.line("await").is_empty(), "no result is there yet");
    assert!(bench.exit().is_empty(), "the turn is still open");
    assert!(!bench.runs());
    assert!(bench.result(1).is_empty(), "one result is missing");
    assert!(bench.result(7).is_empty(), "it belongs to another turn");
    assert_eq!(bench.result(1), ["ensure process"]);
    // The same protocol goes on: it is not started again.
    assert_eq!(bench.start_process(), ["write results 2"]);
    assert_eq!(bench.line("end"), ["end completed"]);
}

#[test]
fn a_program_that_waits_for_results_gets_them_in_the_same_process() {
    let mut bench = Bench::in_turn();
    bench.line("call list_nodes");
    bench.line("await");
    assert_eq!(bench.result(1), ["write results 1"]);
}

#[test]
fn an_agent_that_calls_tools_without_end_is_stopped() {
    let mut bench = Bench::in_turn();
    for _ in 0..TOOL_ROUNDS_MAX {
        bench.line("call list_nodes");
        bench.line("await");
        assert_eq!(bench.result(1), ["write results 1"]);
    }
    bench.line("call list_nodes");
    let ended = bench.line("await");
    assert!(ended.concat().starts_with("end failed"), "{ended:?}");
    assert!(!bench.runs());
}

#[test]
fn an_exit_ends_the_turn_with_its_reason() {
    let mut bench = Bench::in_turn();
    let ended = bench.exit();
    let reason = "end failed: the program exited with status 3: boom";
    assert_eq!(ended, [reason]);
    assert!(!bench.runs());
    assert!(bench.exit().is_empty(), "a turn ends once");
}

#[test]
fn an_interrupt_is_repeated_and_then_the_program_is_killed() {
    let mut bench = Bench::in_turn();
    let now = Instant::now();
    let asked = describe(&bench.machine.interrupt(now));
    assert_eq!(asked, ["write interrupt"]);
    let repeat = bench.machine.next_deadline(now).unwrap();
    assert_eq!(
        (repeat.at, repeat.due),
        (now + STOP_WITHIN / 2, Due::RepeatInterrupt)
    );
    let repeated = describe(&bench.machine.take_due(repeat.due));
    assert_eq!(repeated, ["write interrupt"]);
    // Another interrupt does not put the end off.
    bench.machine.interrupt(now + STOP_WITHIN / 2);
    let kill = bench.machine.next_deadline(now).unwrap();
    assert_eq!((kill.at, kill.due), (now + STOP_WITHIN, Due::Kill));
    let killed = describe(&bench.machine.take_due(kill.due));
    assert_eq!(killed, ["kill", "await exit"]);
    assert_eq!(bench.exit(), ["end interrupted"]);
    assert_eq!(bench.machine.next_deadline(now), None);
}

#[test]
fn a_turn_between_processes_can_be_killed() {
    let mut bench = Bench::in_turn();
    bench.line("call ask_user");
    bench.line("await");
    bench.exit();
    bench.machine.interrupt(Instant::now());
    let killed = describe(&bench.machine.take_due(Due::Kill));
    assert_eq!(killed, ["end interrupted"]);
    assert!(bench.result(1).is_empty(), "nobody wants the result");
}

#[test]
fn start_and_stop_can_be_repeated() {
    let mut bench = Bench::new();
    assert!(bench.machine.stop(Instant::now()).is_empty());
    let started = describe(&bench.machine.start(None));
    assert_eq!(started, ["ensure process"]);
    assert_eq!(bench.start_process(), ["write start"]);
    assert!(bench.runs());
    assert!(bench.machine.start(None).is_empty(), "it runs");
    for _ in 0..2 {
        assert!(bench.machine.stop(Instant::now()).is_empty());
        assert!(!bench.runs());
    }
    let started = describe(&bench.machine.start(None));
    assert_eq!(started, ["ensure process"]);
}

#[test]
fn a_stop_in_a_turn_ends_the_program_with_the_turn() {
    let mut bench = Bench::in_turn();
    let stopped = describe(&bench.machine.stop(Instant::now()));
    assert_eq!(stopped, ["write interrupt"]);
    assert!(bench.runs(), "the program may end its turn");
    assert_eq!(bench.line("end"), ["end completed"]);
    assert!(!bench.runs());
    // The next turn is not stopped.
    bench.prompt(2);
    bench.start_process();
    bench.line("end");
    assert!(bench.runs());
}

#[test]
fn a_reset_ends_the_turn_and_the_program() {
    let commands = || vec!["/new".to_owned()];
    let mut bench = Bench::in_turn();
    let steps = bench.machine.reset(commands());
    assert_eq!(describe(&steps), ["end interrupted"]);
    assert!(!bench.runs());
    assert!(bench.machine.reset(commands()).is_empty());
}

#[test]
fn a_program_that_can_begin_a_new_session_does_so_without_a_new_process() {
    let commands = || vec!["/new".to_owned()];
    let mut bench = Bench::new();
    bench.prompt(1);
    bench.start_protocol(WordProtocol {
        resets_in_process: true,
        ..WordProtocol::default()
    });
    bench.line("end");
    let typed = describe(&bench.machine.reset(commands()));
    assert_eq!(typed, [r#"write Reset { commands: ["/new"] }"#]);
    assert!(bench.runs());
    // There is nothing that could be typed.
    assert!(bench.machine.reset(Vec::new()).is_empty());
    assert!(!bench.runs());
    // What a program says about its open turn must not become a part of the next one.
    bench.prompt(2);
    bench.start_protocol(WordProtocol {
        resets_in_process: true,
        ..WordProtocol::default()
    });
    let stopped = describe(&bench.machine.reset(commands()));
    assert_eq!(stopped, ["end interrupted"]);
    assert!(!bench.runs());
}

#[test]
fn progress_is_reported_twice_a_second_and_only_the_newest() {
    let mut bench = Bench::in_turn();
    let now = Instant::now();
    assert!(bench.line("progress a").is_empty());
    assert!(bench.line("progress b").is_empty());
    let first = bench.machine.next_deadline(now).unwrap();
    assert_eq!((first.at, first.due), (now, Due::Progress));
    let reported = describe(&bench.machine.take_due(first.due));
    assert_eq!(reported, [r#"report Progress("b")"#]);
    assert_eq!(bench.machine.next_deadline(now), None);
    bench.line("progress c");
    let second = bench.machine.next_deadline(now).unwrap();
    assert_eq!(second.at, now + Duration::from_millis(500));
    bench.machine.take_due(second.due);
    bench.line("progress d");
    let late = now + Duration::from_secs(9);
    assert_eq!(bench.machine.next_deadline(late).unwrap().at, late);
}

#[test]
fn a_log_line_is_kept_also_while_no_turn_is_open() {
    let mut bench = Bench::in_turn();
    bench.line("end");
    let logged = describe(&bench.machine.receive_error("a warning".to_owned()));
    assert_eq!(logged, ["report between turns"]);
}

#[test]
fn a_lasting_yes_reaches_the_program_where_no_rule_can_be_made() {
    let lasting = || Resolution {
        scope: turnkeep_runtime::words::Scope::Node,
        verdict: turnkeep_runtime::words::Verdict::Approved,
        ..Resolution::denied("")
    };
    let mut bench = Bench::in_turn();
    bench.line("tool 1 Fetch");
    bench.line("ask 1 Fetch");
    assert!(!bench.machine.has_lasting_consent());
    let answered = bench.answer("1", lasting());
    assert_eq!(answered, ["write answer question-1 AllowAlways"]);
    assert!(bench.machine.has_lasting_consent());
    // Consent lasts as long as the process that it was given to.
    bench.line("end");
    bench.machine.close();
    bench.prompt(2);
    bench.start_process();
    assert!(!bench.machine.has_lasting_consent());
}

#[test]
fn a_program_that_cannot_start_fails_its_turn() {
    let mut bench = Bench::new();
    bench.prompt(1);
    let missed = describe(&bench.machine.miss_process("no such program".to_owned()));
    assert_eq!(missed, ["end failed: no such program"]);
    // A start without a turn ends none, but a person must hear of it.
    let idle = describe(&bench.machine.miss_process("no such program".to_owned()));
    assert_eq!(idle, ["report between turns"]);
}

#[test]
fn a_turn_that_only_looks_at_a_running_command_says_so() {
    let check = |lines: &[&str], expect: &str| {
        let mut bench = Bench::in_turn();
        for line in lines {
            bench.line(line);
        }
        assert_eq!(bench.line("end").last().unwrap(), expect, "{lines:?}");
    };
    let (waited, worked) = ("end completed, only waited", "end completed");
    check(&["tool 1 BashOutput", "poll 1", "done 1"], waited);
    check(&["poll", "say running", "poll"], waited);
    check(&[], worked);
    check(&["tool 1 BashOutput", "done 1"], worked);
    check(&["poll", "tool 1 Bash", "done 1"], worked);
    check(&["poll", "call send_handoff"], worked);
    let own = "tool 2 mcp__turnkeep__send_handoff";
    check(&["tool 1 BashOutput", "poll 1", "done 1", own], worked);
}
