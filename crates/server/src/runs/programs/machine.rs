//! What a node's program does, as a state machine without I/O.
//!
//! The task feeds it with commands, lines and ends, and carries out the [`Step`]s that it returns, in
//! order. `P` is the process: the machine keeps it as long as the program runs, and dropping it kills
//! the process. It never looks inside.
//!
//! A program that answers and exits, and whose answer calls a tool, goes through all states in one
//! turn:
//!
//! | happens | state after it | steps |
//! |---|---|---|
//! | the prompt comes | absent | start a process |
//! | the process runs | running | write the prompt |
//! | it prints a call of a tool | running | call the tool |
//! | it exits | between processes | – |
//! | the tool has a result | between processes | start a process |
//! | the process runs | running | write the result |
//! | it prints its answer and exits | absent | end the turn |
//!
//! A turn ends once, however its program ends. A turn that was stopped and whose program then dies
//! counts as interrupted: the runtime knows why it was stopped.

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::Instant;
use turnkeep_agents::request::{LineResult, StartOptions};
use turnkeep_agents::{Action, AgentEvent, AgentProtocol, Answer, Exit, Request, event};
use turnkeep_runtime::approval::Resolution;
use turnkeep_runtime::decide::Output;
use turnkeep_runtime::ids::AgentTurnId;
use turnkeep_runtime::secrets::Secrets;
use turnkeep_runtime::tool::ToolCall;
use turnkeep_runtime::turn::TurnEnd;

use super::TurnPrompt;
use super::coalescer::DeltaKind;
use super::own_tools::{OwnName, find_own_name};
use super::translate;
use super::turn::{ProgramTurn, Stopping};

/// How often an agent without MCP may call tools in one turn.
const TOOL_ROUNDS_MAX: u32 = 8;

/// Something that the task does for the machine.
#[derive(Debug)]
pub(super) enum Step {
    /// Makes sure that a process runs with the node's present settings, then reports it with
    /// [`ProgramMachine::keep_process`], [`ProgramMachine::take_process`] or
    /// [`ProgramMachine::miss_process`].
    EnsureProcess { session: Option<String> },
    /// Writes to the input of the process.
    Write(String),
    /// Closes the input of the process.
    CloseInput,
    /// Sends the process what Ctrl-C would send.
    SignalInterrupt,
    /// Kills the process and everything that it started.
    Kill,
    /// Waits for the exit of the process, then calls [`ProgramMachine::receive_exit`].
    AwaitExit,
    /// Calls a tool of the server, then calls [`ProgramMachine::receive_result`].
    CallTool(TurnCall),
    /// Reports what the program did.
    Report { turn: AgentTurnId, output: Output },
    /// Reports what the program did while no turn was open.
    ReportBetweenTurns(Output),
    /// Reports a call of a tool of the server, unless the server has recorded it.
    ReportOwnCall(Box<OwnCall>),
    /// Asks a person for permission.
    AskPermission {
        turn: AgentTurnId,
        request: Box<event::PermissionRequest>,
    },
    /// Reports that the program does not wait for a permission any more.
    WithdrawPermission {
        turn: AgentTurnId,
        /// The program's own id of the call.
        provider_id: String,
    },
    /// Reports the end of a turn.
    EndTurn(EndedTurn),
}

/// A turn that the program has ended.
#[derive(Debug)]
pub(super) struct EndedTurn {
    pub(super) turn: AgentTurnId,
    pub(super) end: TurnEnd,
    /// Whether it did nothing but look at a command that still runs.
    pub(super) only_waited: bool,
}

/// A call by a line of text.
#[derive(Debug)]
pub(super) struct TurnCall {
    pub(super) turn: AgentTurnId,
    pub(super) call: event::LineCall,
}

/// The result of a call by a line of text.
#[derive(Debug)]
pub(super) struct TurnResult {
    pub(super) turn: AgentTurnId,
    pub(super) result: LineResult,
}

/// A call of a tool of the server, as the program reports it.
#[derive(Debug)]
pub(super) struct OwnCall {
    pub(super) turn: AgentTurnId,
    pub(super) tool: String,
    pub(super) call: event::ToolCall,
    pub(super) result: event::ToolResult,
}

/// A process that was just started.
pub(super) struct StartedProcess<P> {
    pub(super) process: P,
    /// For a program that begins a conversation. One that goes on has its own.
    pub(super) protocol: Box<dyn AgentProtocol>,
    pub(super) options: StartOptions,
}

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Text has waited long enough.
    Flush,
    /// The last report of progress is long enough ago.
    Progress,
    /// The program did not stop yet: the protocol's harsher means is tried.
    RepeatInterrupt,
    /// The program did not stop at all.
    Kill,
}

/// A time, and what is due then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) due: Due,
}

/// The program of a node.
enum ProgramState<P> {
    /// No process runs.
    Absent,
    /// It runs.
    Running {
        protocol: Box<dyn AgentProtocol>,
        process: P,
    },
    /// Its process has ended in the middle of a turn, which goes on in the next process.
    BetweenProcesses { protocol: Box<dyn AgentProtocol> },
}

/// The program of a node and its open turn.
pub(super) struct ProgramMachine<P> {
    program: ProgramState<P>,
    turn: Option<ProgramTurn>,
    /// Whether the process ends with the open turn.
    ends_after_turn: bool,
    /// Whether the process was allowed something for the rest of its session.
    has_lasting_consent: bool,
    secrets: Secrets,
    /// How long a program may take to stop.
    stop_within: Duration,
    steps: Vec<Step>,
}

impl<P> ProgramMachine<P> {
    pub(super) fn new(stop_within: Duration) -> Self {
        Self {
            program: ProgramState::Absent,
            turn: None,
            ends_after_turn: false,
            has_lasting_consent: false,
            secrets: Secrets::default(),
            stop_within,
            steps: Vec::new(),
        }
    }

    /// The process, while one runs.
    pub(super) fn process(&mut self) -> Option<&mut P> {
        match &mut self.program {
            ProgramState::Running { process, .. } => Some(process),
            ProgramState::Absent | ProgramState::BetweenProcesses { .. } => None,
        }
    }

    pub(super) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// The turn that the program works on.
    pub(super) fn open_turn(&self) -> Option<AgentTurnId> {
        self.turn.as_ref().map(|turn| turn.id)
    }

    /// Whether the process was allowed something for the rest of its session.
    pub(super) fn has_lasting_consent(&self) -> bool {
        self.has_lasting_consent
    }

    fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Begins a turn.
    pub(super) fn begin_turn(&mut self, prompt: TurnPrompt) -> Vec<Step> {
        let text = String::from_utf8_lossy(&prompt.text).into_owned();
        let mut turn = ProgramTurn::new(prompt.turn);
        turn.unsent = Some(Request::Send { prompt: text });
        self.turn = Some(turn);
        self.ends_after_turn = false;
        if let ProgramState::BetweenProcesses { .. } = self.program {
            self.program = ProgramState::Absent;
        }
        self.steps.push(Step::EnsureProcess {
            session: prompt.session,
        });
        self.take_steps()
    }

    /// Starts the program without a turn. A program that runs is left alone.
    pub(super) fn start(&mut self, session: Option<String>) -> Vec<Step> {
        self.ends_after_turn = false;
        if matches!(self.program, ProgramState::Absent) && self.turn.is_none() {
            self.steps.push(Step::EnsureProcess { session });
        }
        self.take_steps()
    }

    /// Ends the program: at once, or with its open turn, which is stopped.
    pub(super) fn stop(&mut self, now: Instant) -> Vec<Step> {
        if self.turn.is_none() {
            self.close();
            return Vec::new();
        }
        self.ends_after_turn = true;
        self.interrupt(now)
    }

    /// Drops the process without another word. It must have no turn.
    pub(super) fn close(&mut self) {
        self.program = ProgramState::Absent;
    }

    /// Begins a new session: in the process if the program can do that, else by ending the program.
    /// A program that works on a turn is ended too. What it still says would be taken for a part of
    /// the next turn.
    pub(super) fn reset(&mut self, commands: Vec<String>) -> Vec<Step> {
        if self.turn.is_none() && !commands.is_empty() && self.resets_in_process() {
            self.request(Request::Reset { commands });
        } else {
            self.end_turn(translate::interrupted("reset by the user"));
            self.close();
        }
        self.take_steps()
    }

    fn resets_in_process(&self) -> bool {
        match &self.program {
            ProgramState::Running { protocol, .. } => protocol.features().resets_in_process,
            ProgramState::Absent | ProgramState::BetweenProcesses { .. } => false,
        }
    }

    /// Kills the program. Its exit ends the open turn.
    pub(super) fn kill(&mut self) -> Vec<Step> {
        if let ProgramState::Running { .. } = self.program {
            self.steps.extend([Step::Kill, Step::AwaitExit]);
        } else {
            self.end_turn(translate::interrupted("killed"));
            self.close();
        }
        self.take_steps()
    }

    /// Asks the program to stop its open turn, and kills it if it does not.
    pub(super) fn interrupt(&mut self, now: Instant) -> Vec<Step> {
        let stop_within = self.stop_within;
        let Some(turn) = &mut self.turn else {
            return Vec::new();
        };
        turn.stopping.get_or_insert(Stopping {
            repeat_at: Some(now + stop_within / 2),
            kill_at: now + stop_within,
        });
        self.request(Request::Interrupt);
        self.take_steps()
    }

    /// Answers a question of the program.
    pub(super) fn answer(&mut self, call: &ToolCall, resolution: Resolution) -> Vec<Step> {
        let answer = translate::answer_of(call, resolution, self.can_edit_args());
        if let Some(provider_id) = &call.provider_id {
            self.answer_question(provider_id, answer);
        }
        self.take_steps()
    }

    /// Denies a call that no person can be asked about. The program must not wait for an answer.
    pub(super) fn deny(&mut self, provider_id: &str, reason: String) -> Vec<Step> {
        self.answer_question(provider_id, Answer::Deny { reason });
        self.take_steps()
    }

    fn answer_question(&mut self, provider_id: &str, answer: Answer) {
        let questions = self.turn.as_mut().map(|turn| &mut turn.questions);
        if let Some(request_id) = questions.and_then(|open| open.remove(provider_id)) {
            self.has_lasting_consent |= answer == Answer::AllowAlways;
            self.request(Request::Answer { request_id, answer });
        }
    }

    fn can_edit_args(&self) -> bool {
        match &self.program {
            ProgramState::Running { protocol, .. } => protocol.features().edit_args,
            ProgramState::Absent | ProgramState::BetweenProcesses { .. } => false,
        }
    }

    /// The process that runs is the right one.
    pub(super) fn keep_process(&mut self) -> Vec<Step> {
        self.send_waiting();
        self.take_steps()
    }

    /// A process was started. A conversation that was between two processes goes on.
    pub(super) fn take_process(&mut self, started: StartedProcess<P>) -> Vec<Step> {
        let StartedProcess {
            process,
            protocol,
            options,
        } = started;
        self.has_lasting_consent = false;
        let known = std::mem::replace(&mut self.program, ProgramState::Absent);
        if let ProgramState::BetweenProcesses { protocol } = known {
            self.program = ProgramState::Running { protocol, process };
        } else {
            self.program = ProgramState::Running { protocol, process };
            self.request(Request::Start(options));
        }
        self.send_waiting();
        self.take_steps()
    }

    /// The process could not be started.
    pub(super) fn miss_process(&mut self, reason: String) -> Vec<Step> {
        if self.turn.is_none() {
            let text = format!("the program could not be started: {reason}");
            self.report(Output::Log(text));
        }
        self.end_turn(TurnEnd::Failed { reason });
        self.close();
        self.take_steps()
    }

    /// Passes on what waited for the process.
    fn send_waiting(&mut self) {
        let waiting = self.turn.as_mut().and_then(|turn| turn.unsent.take());
        if let Some(request) = waiting {
            self.request(request);
        }
    }

    /// Passes a request to the protocol and does what it says.
    fn request(&mut self, request: Request) {
        let (ProgramState::Running { protocol, .. } | ProgramState::BetweenProcesses { protocol }) =
            &mut self.program
        else {
            return;
        };
        match protocol.request(request) {
            Ok(actions) => self.take_actions(actions),
            Err(error) => self.report(Output::Log(format!(
                "the program cannot be told that: {error}"
            ))),
        }
    }

    /// Takes a line of the program's output.
    pub(super) fn receive_line(&mut self, line: &[u8]) -> Vec<Step> {
        if let ProgramState::Running { protocol, .. } = &mut self.program {
            let actions = protocol.receive_line(line);
            self.take_actions(actions);
        }
        self.take_steps()
    }

    /// Takes a line of the program's error output.
    pub(super) fn receive_error(&mut self, line: String) -> Vec<Step> {
        self.report(Output::Log(line));
        self.take_steps()
    }

    /// Takes the end of the process. It ends the turn, unless the turn goes on with the results of
    /// tools that the program called.
    pub(super) fn receive_exit(&mut self, exit: &Exit) -> Vec<Step> {
        let ended = std::mem::replace(&mut self.program, ProgramState::Absent);
        let ProgramState::Running { mut protocol, .. } = ended else {
            self.program = ended;
            return Vec::new();
        };
        let actions = protocol.receive_end(exit);
        self.program = ProgramState::BetweenProcesses { protocol };
        self.take_actions(actions);
        let goes_on = |turn: &ProgramTurn| turn.line_calls.is_awaited || turn.unsent.is_some();
        if !self.turn.as_ref().is_some_and(goes_on) {
            // The protocol ends an open turn itself, unless it was never told of it.
            let was_stopped = self
                .turn
                .as_ref()
                .is_some_and(|turn| turn.stopping.is_some());
            self.end_turn(if was_stopped {
                translate::interrupted("the program was killed")
            } else {
                TurnEnd::Failed {
                    reason: exit.describe(),
                }
            });
            self.close();
        }
        self.take_steps()
    }

    /// Takes the result of a call by a line of text. Those of an earlier turn are dropped.
    pub(super) fn receive_result(&mut self, result: TurnResult) -> Vec<Step> {
        let turn = self.turn.as_mut();
        if let Some(turn) = turn.filter(|turn| turn.id == result.turn) {
            turn.line_calls.open = turn.line_calls.open.saturating_sub(1);
            turn.line_calls.results.push(result.result);
            self.continue_with_results();
        }
        self.take_steps()
    }

    /// What is due next.
    pub(super) fn next_deadline(&mut self, now: Instant) -> Option<Deadline> {
        let turn = self.turn.as_mut()?;
        let flush = turn.plan_flush(now);
        let progress = turn.progress.plan_report(now);
        let repeat = turn.stopping.and_then(|stopping| stopping.repeat_at);
        let kill = turn.stopping.map(|stopping| stopping.kill_at);
        let times = [
            (flush, Due::Flush),
            (progress, Due::Progress),
            (repeat, Due::RepeatInterrupt),
            (kill, Due::Kill),
        ];
        let set = times
            .into_iter()
            .filter_map(|(at, due)| Some(Deadline { at: at?, due }));
        set.min_by_key(|deadline| deadline.at)
    }

    /// Does what is due.
    pub(super) fn take_due(&mut self, due: Due) -> Vec<Step> {
        match due {
            Due::Flush => self.flush_due(),
            Due::Progress => self.report_progress(),
            Due::RepeatInterrupt => self.repeat_interrupt(),
            Due::Kill => return self.kill(),
        }
        self.take_steps()
    }

    fn repeat_interrupt(&mut self) {
        let stopping = self.turn.as_mut().and_then(|turn| turn.stopping.as_mut());
        if let Some(stopping) = stopping {
            stopping.repeat_at = None;
            self.request(Request::Interrupt);
        }
    }

    fn take_actions(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Write(text) => self.steps.push(Step::Write(text)),
                Action::CloseInput => self.steps.push(Step::CloseInput),
                Action::SignalInterrupt => self.steps.push(Step::SignalInterrupt),
                Action::Emit(event) => self.take_event(event),
            }
        }
    }

    fn take_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::AnswerDelta(text) => self.add_delta(DeltaKind::Answer, &text),
            AgentEvent::ThinkingDelta(text) => self.add_delta(DeltaKind::Thinking, &text),
            AgentEvent::AnswerFinal(text) => self.flush_and_report(Output::AnswerFinal(text)),
            AgentEvent::ThinkingFinal(text) => self.flush_and_report(Output::ThinkingFinal(text)),
            AgentEvent::ToolProposed(call) => self.propose_tool(call),
            AgentEvent::ToolCompleted(result) => self.complete_tool(result),
            AgentEvent::CommandPolled { call } => self.note_poll(call.is_some()),
            AgentEvent::PermissionAsked(request) => self.ask_permission(request),
            AgentEvent::PermissionWithdrawn { request_id } => self.withdraw(&request_id),
            AgentEvent::Session(name) => self.report(Output::Session(name)),
            AgentEvent::SessionLost(reason) => {
                self.report(Output::Log(reason));
                self.report(Output::SessionLost);
            }
            AgentEvent::Usage(usage) => self.report(Output::Usage(translate::usage_of(usage))),
            AgentEvent::Progress(text) => self.add_progress(text),
            AgentEvent::Log(text) | AgentEvent::MalformedToolCall(text) => {
                self.report(Output::Log(text));
            }
            // The real diff is taken at the end of the turn.
            AgentEvent::DiffPreview(_) => {}
            AgentEvent::ToolCallRequested(call) => self.call_tool(call),
            AgentEvent::AwaitsToolResults => self.await_results(),
            AgentEvent::TurnEnded(end) => self.end_turn(translate::end_of(end)),
        }
    }

    fn report(&mut self, output: Output) {
        match (self.open_turn(), &output) {
            (Some(turn), _) => self.steps.push(Step::Report { turn, output }),
            // These hold for the node, whether a turn is open or not.
            (
                None,
                Output::Session(_) | Output::SessionLost | Output::Usage(_) | Output::Log(_),
            ) => {
                self.steps.push(Step::ReportBetweenTurns(output));
            }
            (None, _) => {}
        }
    }

    /// Reports something that comes after the text before it.
    fn flush_and_report(&mut self, output: Output) {
        self.flush();
        self.report(output);
    }

    fn add_progress(&mut self, text: String) {
        if let Some(turn) = &mut self.turn {
            turn.progress.add(text);
        }
    }

    fn report_progress(&mut self) {
        let waiting = self.turn.as_mut().and_then(|turn| turn.progress.take());
        if let Some(text) = waiting {
            self.report(Output::Progress(text));
        }
    }

    fn add_delta(&mut self, kind: DeltaKind, text: &str) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        for output in turn.deltas.add(kind, text, &self.secrets) {
            self.report(output);
        }
    }

    /// Says what must not be recorded from now on.
    pub(super) fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    /// Reports the text that has waited long enough.
    fn flush_due(&mut self) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let text = turn.deltas.flush_whole_secrets(&self.secrets);
        turn.restart_flush();
        self.report_flushed(text);
    }

    /// Reports the text that waits, and the tools that the program runs without asking.
    fn flush(&mut self) {
        let text = self.turn.as_mut().and_then(|turn| turn.deltas.flush());
        self.report_flushed(text);
    }

    fn report_flushed(&mut self, text: Option<Output>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let started = std::mem::take(&mut turn.unstarted_tools);
        if let Some(text) = text {
            self.report(text);
        }
        for provider_id in started {
            self.report(Output::ToolStarted { provider_id });
        }
    }

    fn propose_tool(&mut self, call: event::ToolCall) {
        self.flush();
        let Some(turn) = &mut self.turn else {
            return;
        };
        turn.calls.made += 1;
        if find_own_name(&call.name).is_some() {
            turn.own_calls.insert(call.provider_id.clone(), call);
            return;
        }
        turn.unstarted_tools.push(call.provider_id.clone());
        self.report(translate::proposed(call));
    }

    fn complete_tool(&mut self, result: event::ToolResult) {
        self.flush();
        let Some(turn) = &mut self.turn else {
            return;
        };
        let Some(call) = turn.own_calls.remove(&result.provider_id) else {
            self.report(translate::completed(result));
            return;
        };
        // A mere question for permission is no call.
        if let Some(OwnName::Tool(tool)) = find_own_name(&call.name) {
            let own = OwnCall {
                turn: turn.id,
                tool: tool.to_owned(),
                call,
                result,
            };
            self.steps.push(Step::ReportOwnCall(Box::new(own)));
        }
    }

    fn note_poll(&mut self, was_call: bool) {
        if let Some(turn) = &mut self.turn {
            turn.calls.polls += 1;
            turn.calls.polls_by_call += usize::from(was_call);
        }
    }

    fn ask_permission(&mut self, request: Box<event::PermissionRequest>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        if find_own_name(&request.call.name).is_some() {
            // The server has rules of its own for its tools, and asks a person where they say so.
            self.request(Request::Answer {
                request_id: request.request_id,
                answer: Answer::Allow,
            });
            return;
        }
        let provider_id = &request.call.provider_id;
        turn.unstarted_tools
            .retain(|waiting| waiting != provider_id);
        turn.questions
            .insert(provider_id.clone(), request.request_id.clone());
        let turn = turn.id;
        self.flush();
        self.steps.push(Step::AskPermission { turn, request });
    }

    fn withdraw(&mut self, request_id: &str) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        // A question that was answered is not open any more.
        let mut open = turn.questions.iter();
        let withdrawn = open.find(|(_, question)| *question == request_id);
        let Some(provider_id) = withdrawn.map(|(call, _)| call.clone()) else {
            return;
        };
        turn.questions.remove(&provider_id);
        let turn = turn.id;
        self.steps
            .push(Step::WithdrawPermission { turn, provider_id });
    }

    /// Makes a call that the agent wrote as a line of text.
    fn call_tool(&mut self, call: event::LineCall) {
        self.flush();
        if let Some(turn) = &mut self.turn {
            turn.calls.made += 1;
            turn.line_calls.open += 1;
            let turn = turn.id;
            self.steps.push(Step::CallTool(TurnCall { turn, call }));
        }
    }

    fn await_results(&mut self) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        turn.line_calls.rounds += 1;
        if turn.line_calls.rounds > TOOL_ROUNDS_MAX {
            let reason = format!("it called tools more than {TOOL_ROUNDS_MAX} times in one turn");
            self.end_turn(TurnEnd::Failed { reason });
            self.close();
            return;
        }
        turn.line_calls.is_awaited = true;
        self.continue_with_results();
    }

    /// Goes on with the turn once all results are there.
    fn continue_with_results(&mut self) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        if turn.line_calls.is_awaited && turn.line_calls.open == 0 {
            turn.line_calls.is_awaited = false;
            let results = std::mem::take(&mut turn.line_calls.results);
            turn.unsent = Some(Request::ToolResults(results));
            // A process that runs stays, whatever the node's settings are by now: only it knows the
            // conversation.
            match self.program {
                ProgramState::Running { .. } => self.send_waiting(),
                _ => self.steps.push(Step::EnsureProcess { session: None }),
            }
        }
    }

    /// Ends the open turn, if there is one.
    fn end_turn(&mut self, end: TurnEnd) {
        self.flush();
        let Some(turn) = self.turn.take() else {
            return;
        };
        self.steps.push(Step::EndTurn(EndedTurn {
            turn: turn.id,
            end,
            only_waited: turn.calls.only_polled(),
        }));
        if std::mem::take(&mut self.ends_after_turn) {
            self.close();
        }
    }
}
