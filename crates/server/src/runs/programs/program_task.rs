//! The task of one agent program: moves bytes between its process and the machine, and reports to
//! the run.
//!
//! The task is the only one that touches the process. It carries out the steps of the
//! [`ProgramMachine`] in order and waits for each, so the log has the events of a turn in the order
//! in which the program printed them. It ends when the run drops its commands, and the process dies
//! with it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use turnkeep_agents::event::{LineCall, PermissionRequest, ToolCall, ToolResult};
use turnkeep_agents::request::LineResult;
use turnkeep_runtime::artifact::DiffSummary;
use turnkeep_runtime::decide::{
    self, Output, Permission, PrintedLines, ProgramEnd, WithdrawnPermission,
};
use turnkeep_runtime::ids::{AgentTurnId, NodeId};
use turnkeep_types::Timestamp;

use super::ProgramCommand;
use super::connections::ProgramActivity;
use super::log_limiter::LogLimiter;
use super::machine::{
    Deadline, Due, EndedTurn, OwnCall, ProgramMachine, StartedProcess, Step, TurnCall, TurnResult,
};
use super::pipes::{HearProgram, ProgramLine};
use super::process::{EndedProcess, ProgramProcess};
use super::translate;
use super::turn_lines::{JSON_FILE, TEXT_FILE, TurnLines};
use crate::runs::error::RunError;
use crate::runs::launch_settings;
use crate::runs::node_tools::{self, ToolCaller};
use crate::runs::run_handle::RunHandle;
use crate::runs::services::Heartbeat;

/// The pauses before the end of a turn is reported again, after the store refused it.
const REPORT_PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
];

/// Runs a node's program until the run lets go of it.
pub(super) async fn run(
    handle: Arc<RunHandle>,
    node: NodeId,
    mut commands: mpsc::Receiver<ProgramCommand>,
) {
    let mut task = ProgramTask::new(handle, node);
    loop {
        match task.next_wake(&mut commands).await {
            Wake::Command(Some(command)) => task.obey(*command).await,
            Wake::Command(None) => break,
            Wake::Line(line) => task.take_line(line).await,
            Wake::Due(due) => {
                let steps = task.machine.take_due(due);
                task.carry_out(steps).await;
            }
            Wake::Called(result) => {
                task.running_call = None;
                let steps = task.machine.receive_result(result);
                task.carry_out(steps).await;
            }
            Wake::Idle => task.machine.close(),
            Wake::Heartbeat => task.beat(),
        }
        task.show_activity();
    }
    task.machine.close();
    task.show_activity();
    task.handle.recorded_calls.forget(node);
}

/// Why the task goes on.
enum Wake {
    /// The run tells it something; `None` if the run is gone.
    Command(Option<Box<ProgramCommand>>),
    /// The program printed something.
    Line(ProgramLine),
    /// A time of the machine has come.
    Due(Due),
    /// A tool that the program called by a line of text has a result.
    Called(TurnResult),
    /// The process was not used for long.
    Idle,
    /// Clients hear that the program is alive.
    Heartbeat,
}

type RunningCall = Pin<Box<dyn Future<Output = TurnResult> + Send>>;

struct ProgramTask {
    handle: Arc<RunHandle>,
    node: NodeId,
    machine: ProgramMachine<ProgramProcess>,
    /// Calls by lines of text. They run one after the other, beside everything else: a call may wait
    /// for a person.
    waiting_calls: VecDeque<TurnCall>,
    running_call: Option<RunningCall>,
    /// How many calls by lines of text were begun.
    line_calls: u64,
    log_limiter: LogLimiter,
    /// What the program printed in the open turn.
    turn_lines: TurnLines,
    /// When the process was last used.
    used_at: Timestamp,
    /// When clients last heard of the process.
    beat_at: Timestamp,
}

impl ProgramTask {
    fn new(handle: Arc<RunHandle>, node: NodeId) -> Self {
        let now = handle.services.clock.now();
        let stop_within = handle.services.settings.program_stop_within;
        Self {
            handle,
            node,
            machine: ProgramMachine::new(stop_within),
            waiting_calls: VecDeque::new(),
            running_call: None,
            line_calls: 0,
            log_limiter: LogLimiter::default(),
            turn_lines: TurnLines::default(),
            used_at: now,
            beat_at: now,
        }
    }

    fn now(&self) -> Timestamp {
        self.handle.services.clock.now()
    }

    async fn next_wake(&mut self, commands: &mut mpsc::Receiver<ProgramCommand>) -> Wake {
        self.start_next_call();
        let settings = &self.handle.services.settings;
        let idle_pause = self.pause_until(self.used_at, settings.program_idle_max);
        let beat_pause = self.pause_until(self.beat_at, settings.heartbeat_every);
        let is_idle = !self.machine.has_turn() && self.machine.process().is_some();
        let is_alive = self.machine.process().is_some();
        let deadline = self.machine.next_deadline(Instant::now());
        tokio::select! {
            // Commands first: a program that prints without end must still hear an interrupt, and
            // its text must still be seen.
            biased;
            command = commands.recv() => Wake::Command(command.map(Box::new)),
            due = wait_for_deadline(deadline) => Wake::Due(due),
            () = tokio::time::sleep(beat_pause), if is_alive => Wake::Heartbeat,
            result = wait_for_call(&mut self.running_call) => Wake::Called(result),
            line = next_line(self.machine.process()) => Wake::Line(line),
            () = tokio::time::sleep(idle_pause), if is_idle => Wake::Idle,
        }
    }

    /// How long it is until some time after `from` on the server's clock.
    fn pause_until(&self, from: Timestamp, after: Duration) -> Duration {
        let passed = Duration::from_millis(self.now().0.saturating_sub(from.0));
        after.saturating_sub(passed)
    }

    async fn obey(&mut self, command: ProgramCommand) {
        let steps = match command {
            ProgramCommand::Send(prompt) => self.machine.begin_turn(prompt),
            ProgramCommand::Start { session } => self.machine.start(session),
            ProgramCommand::Stop => self.machine.stop(Instant::now()),
            ProgramCommand::Interrupt => self.machine.interrupt(Instant::now()),
            ProgramCommand::Answer { call, resolution } => self.machine.answer(&call, resolution),
            ProgramCommand::Reset { commands } => self.machine.reset(commands),
            ProgramCommand::End => self.machine.kill(),
        };
        self.used_at = self.now();
        self.carry_out(steps).await;
    }

    async fn take_line(&mut self, line: ProgramLine) {
        let steps = match line {
            ProgramLine::Output(line) => {
                // Before the machine reads it: a line that ends a turn belongs to the turn.
                if let Some(turn) = self.machine.open_turn() {
                    self.turn_lines.add(turn, &line);
                }
                self.machine.receive_line(&line)
            }
            ProgramLine::Error(text) => {
                self.keep_error(&text);
                self.machine.receive_error(text)
            }
            ProgramLine::TooLong => {
                self.keep_error("it printed a line that is too long");
                vec![Step::Kill, Step::AwaitExit]
            }
            ProgramLine::Closed => vec![Step::AwaitExit],
        };
        self.carry_out(steps).await;
    }

    fn keep_error(&mut self, line: &str) {
        if let Some(process) = self.machine.process() {
            process.keep_error(line);
        }
    }

    /// Carries out steps, and those that they lead to before the ones behind them.
    async fn carry_out(&mut self, steps: Vec<Step>) {
        let mut waiting = VecDeque::from(steps);
        while let Some(step) = waiting.pop_front() {
            for next in self.carry_out_step(step).await.into_iter().rev() {
                waiting.push_front(next);
            }
        }
    }

    async fn carry_out_step(&mut self, step: Step) -> Vec<Step> {
        match step {
            Step::EnsureProcess { session } => return self.ensure_process(session).await,
            Step::AwaitExit => return self.await_exit().await,
            Step::Write(text) => self.with_process(|process| process.write(text)),
            Step::CloseInput => self.with_process(ProgramProcess::close_input),
            Step::SignalInterrupt => self.with_process(|process| process.interrupt()),
            Step::Kill => self.with_process(|process| process.kill()),
            Step::CallTool(call) => self.waiting_calls.push_back(call),
            Step::Report { turn, output } => self.report(turn, output).await,
            Step::ReportOwnCall(own) => record_own_call(&self.handle, self.node, *own).await,
            Step::ReportBetweenTurns(output) => self.report_between_turns(output).await,
            Step::AskPermission { turn, request } => {
                return self.ask_permission(turn, *request).await;
            }
            Step::WithdrawPermission { turn, provider_id } => {
                self.withdraw_permission(turn, provider_id).await;
            }
            Step::EndTurn(ended) => self.end_turn(ended).await,
        }
        Vec::new()
    }

    fn with_process(&mut self, act: impl FnOnce(&mut ProgramProcess)) {
        if let Some(process) = self.machine.process() {
            act(process);
        }
    }

    /// Starts the process unless it runs with the current settings already.
    async fn ensure_process(&mut self, session: Option<String>) -> Vec<Step> {
        let launch = match launch_settings::of_node(&self.handle, self.node).await {
            Ok(launch) => launch,
            Err(reason) => return self.machine.miss_process(reason),
        };
        if let Some(process) = self.machine.process() {
            let fits = process.fits(&launch);
            // What a program was allowed for good was meant for the implementation.
            if fits && !(launch.is_planning() && self.machine.has_lasting_consent()) {
                return self.machine.keep_process();
            }
            self.machine.close();
        }
        let protocol = launch.program.new_machine();
        let prints_json = launch.program.prints_json();
        self.turn_lines
            .set_file(if prints_json { JSON_FILE } else { TEXT_FILE });
        let options = launch.start_options(&self.handle, session);
        let services = &self.handle.services;
        // With the token of the new process.
        self.machine.set_secrets(services.secrets());
        let hear = self.hear_program();
        match ProgramProcess::start(services, launch, options.clone(), hear).await {
            Ok(process) => {
                self.beat_at = self.now();
                self.machine.take_process(StartedProcess {
                    process,
                    protocol,
                    options,
                })
            }
            Err(reason) => self.machine.miss_process(reason),
        }
    }

    /// What notes that the program has printed something.
    fn hear_program(&self) -> HearProgram {
        let (handle, node) = (Arc::clone(&self.handle), self.node);
        Arc::new(move || {
            let now = handle.services.clock.now();
            handle.connections.note_output(node, now);
        })
    }

    async fn await_exit(&mut self) -> Vec<Step> {
        let ended = match self.machine.process() {
            Some(process) => process.wait().await,
            None => EndedProcess::default(),
        };
        let mut steps = Vec::new();
        // The last lines are logged, too. If no turn is open, no failure quotes them.
        for line in ended.last_lines {
            steps.extend(self.machine.receive_error(line));
        }
        steps.extend(self.machine.receive_exit(&ended.exit));
        steps
    }

    /// Begins the next call by a line of text.
    fn start_next_call(&mut self) {
        if self.running_call.is_some() {
            return;
        }
        // Drop the calls of turns that have ended: the program no longer waits for their results.
        let open = self.machine.open_turn();
        self.waiting_calls.retain(|call| Some(call.turn) == open);
        let Some(TurnCall { turn, call }) = self.waiting_calls.pop_front() else {
            return;
        };
        let (handle, node) = (Arc::clone(&self.handle), self.node);
        self.line_calls += 1;
        let provider_id = format!("line-{}", self.line_calls);
        self.running_call = Some(Box::pin(async move {
            let caller = ToolCaller::of_line(node);
            let result = node_tools::call(&handle, &caller, &call.name, &call.args).await;
            let name = call.name.clone();
            let own = own_call_of_line(turn, provider_id, call, &result);
            record_own_call(&handle, node, own).await;
            TurnResult {
                turn,
                result: LineResult { name, result },
            }
        }));
    }

    /// Asks a person. A program whose question is refused must not wait for an answer, so it gets a
    /// denial.
    async fn ask_permission(&mut self, turn: AgentTurnId, request: PermissionRequest) -> Vec<Step> {
        let call = request.call.provider_id.clone();
        let permission = Permission {
            node: self.node,
            turn,
            tool_name: request.call.name,
            args: request.call.args,
            provider_id: Some(request.call.provider_id),
            context: request.context,
            can_allow_always: request.can_allow_always,
        };
        let asked = self
            .handle
            .decide(move |run, around| decide::ask_permission(run, around, permission.clone()));
        match asked.await {
            Ok(_) => Vec::new(),
            Err(error) => {
                let reason = error.to_string();
                log_rejection(&self.handle, Err(error));
                self.machine.deny(&call, reason)
            }
        }
    }

    async fn withdraw_permission(&mut self, turn: AgentTurnId, provider_id: String) {
        let withdrawn = WithdrawnPermission {
            node: self.node,
            turn,
            provider_id,
            reason: "the program does not wait for it any more".to_owned(),
        };
        let denied = self
            .handle
            .decide(move |run, around| decide::withdraw_permission(run, around, &withdrawn));
        log_rejection(&self.handle, denied.await);
    }

    /// The output to report; `None` for a log line beyond the limit.
    fn limit_log(&mut self, output: Output) -> Option<Output> {
        match output {
            Output::Log(line) => self.log_limiter.pass(self.now(), line).map(Output::Log),
            output => Some(output),
        }
    }

    async fn report_between_turns(&mut self, output: Output) {
        let Some(output) = self.limit_log(output) else {
            return;
        };
        let node = self.node;
        let added = self
            .handle
            .decide(move |run, around| decide::add_idle_output(run, around, node, output.clone()));
        log_rejection(&self.handle, added.await);
    }

    /// Reports something that the program did in a turn.
    async fn report(&mut self, turn: AgentTurnId, output: Output) {
        if let Some(output) = self.limit_log(output) {
            record_output(&self.handle, self.node, turn, output).await;
        }
    }

    async fn end_turn(&mut self, ended: EndedTurn) {
        let EndedTurn {
            turn,
            end,
            only_waited,
        } = ended;
        // How many lines were left out belongs to this turn, so it is said before the turn ends.
        if let Some(note) = self.log_limiter.take_note() {
            record_output(&self.handle, self.node, turn, Output::Log(note)).await;
        }
        let workspaces = &self.handle.services.workspaces;
        let diff = workspaces.finish_turn(&self.handle, self.node, turn).await;
        let printed = self.take_printed(turn).await;
        let end = ProgramEnd {
            node: self.node,
            turn,
            end,
            diff,
            printed,
            only_waited,
        };
        self.used_at = self.now();
        report_end(&self.handle, end).await;
    }

    /// What the program printed in a turn, masked.
    async fn take_printed(&mut self, turn: AgentTurnId) -> Option<PrintedLines> {
        let lines = self.turn_lines.take(turn)?;
        let services = &self.handle.services;
        let secrets = services.secrets();
        let masked = services.run_blocking(move || lines.mask(&secrets)).await;
        if let Err(error) = &masked {
            tracing::warn!(run = %self.handle.id(), %error, "the lines of a turn are not kept");
        }
        masked.ok()
    }

    fn beat(&mut self) {
        let now = self.now();
        self.beat_at = now;
        let connection = self.handle.connections.beat(self.node, now);
        self.handle.services.notify_heartbeat(Heartbeat {
            run: self.handle.id(),
            node: self.node,
            at: now,
            connection,
        });
    }

    fn show_activity(&mut self) {
        let activity = match (self.machine.process().is_some(), self.machine.has_turn()) {
            (false, _) => ProgramActivity::Gone,
            (true, false) => ProgramActivity::Idle,
            (true, true) => ProgramActivity::Working,
        };
        self.handle.connections.set_activity(self.node, activity);
    }
}

async fn record_output(handle: &Arc<RunHandle>, node: NodeId, turn: AgentTurnId, output: Output) {
    let added = handle
        .decide(move |run, around| decide::add_output(run, around, node, turn, output.clone()));
    log_rejection(handle, added.await);
}

/// Records a call of a tool of the server that left no other record: it only read, or it was refused.
async fn record_own_call(handle: &Arc<RunHandle>, node: NodeId, own: OwnCall) {
    if handle.recorded_calls.take(node, own.turn, &own.tool) {
        return;
    }
    record_output(handle, node, own.turn, translate::proposed(own.call)).await;
    record_output(handle, node, own.turn, translate::completed(own.result)).await;
}

/// A call by a line of text as a program with MCP would report it.
fn own_call_of_line(
    turn: AgentTurnId,
    provider_id: String,
    call: LineCall,
    result: &Result<Value, String>,
) -> OwnCall {
    OwnCall {
        turn,
        tool: call.name.clone(),
        result: ToolResult {
            provider_id: provider_id.clone(),
            ok: result.is_ok(),
            output: result.as_ref().ok().map(Value::to_string),
            error: result.as_ref().err().cloned(),
        },
        call: ToolCall {
            provider_id,
            name: call.name,
            args: call.args,
        },
    }
}

async fn wait_for_deadline(deadline: Option<Deadline>) -> Due {
    match deadline {
        Some(Deadline { at, due }) => {
            tokio::time::sleep_until(at).await;
            due
        }
        None => std::future::pending().await,
    }
}

async fn wait_for_call(call: &mut Option<RunningCall>) -> TurnResult {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}

async fn next_line(process: Option<&mut ProgramProcess>) -> ProgramLine {
    match process {
        Some(process) => process.next_line().await,
        None => std::future::pending().await,
    }
}

/// Reports the end of a turn. A store that refuses it, because its disk is full, is asked again: a
/// turn that never ends would hold its node for ever.
pub(in crate::runs) async fn report_end(handle: &Arc<RunHandle>, end: ProgramEnd) {
    let mut pauses = REPORT_PAUSES.into_iter();
    let mut end = end;
    let mut is_shortened = false;
    loop {
        let reported = end.clone();
        let ended = handle
            .decide(move |run, around| decide::end_turn(run, around, &reported))
            .await;
        match ended {
            Ok(()) => return,
            Err(error @ (RunError::Rejected(_) | RunError::UnknownRun(_))) => {
                return log_rejection(handle, Err(error));
            }
            // A patch and a reason are blobs of their own, and both are bounded. So only the lists of
            // files can make a record too long, and once they are short it fits.
            Err(RunError::TooLarge { .. }) if !is_shortened => {
                is_shortened = true;
                shorten_lists(&mut end.diff.summary);
            }
            Err(error) => {
                tracing::warn!(run = %handle.id(), %error, "the end of a turn is not recorded yet");
                let pause = pauses.next().unwrap_or(Duration::from_mins(5));
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Shortens the lists of files of a diff that does not fit into a record. Some of the files that the node
/// may not write stay named, because a person decides about them.
fn shorten_lists(summary: &mut DiffSummary) {
    summary.summary = format!(
        "{} files; their names are too long to record",
        summary.files_changed.len()
    );
    // If files are shared, a revert without names takes back those of `files_changed` that `shared` does
    // not name. With a part of `shared`, it would take back shared files, so `files_changed` is empty.
    summary.files_changed.clear();
    keep_named(&mut summary.shared, String::len);
    keep_named(&mut summary.violations, String::len);
    keep_named(&mut summary.conflicts, |conflict| conflict.path.len());
}

/// Keeps the beginning of a list of files: at most so many names, and so many bytes of them. A name with
/// unusual characters is written with escapes, so it can be much longer than the file system allows.
fn keep_named<T>(list: &mut Vec<T>, bytes_of: impl Fn(&T) -> usize) {
    const NAMED_MAX: usize = 100;
    const NAMED_BYTES_MAX: usize = 256 << 10;
    let mut bytes = 0;
    let fits = |item: &&T| {
        bytes += bytes_of(item);
        bytes <= NAMED_BYTES_MAX
    };
    let kept = list.iter().take(NAMED_MAX).take_while(fits).count();
    list.truncate(kept);
}

/// A turn that was ended by a person meanwhile rejects what its program still says.
fn log_rejection(handle: &RunHandle, result: Result<(), RunError>) {
    if let Err(error) = result {
        tracing::debug!(run = %handle.id(), %error, "a report of a program was dropped");
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::artifact::WriteConflict;
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;
    use crate::runs::run_log::RECORD_BYTES_MAX;

    #[test]
    fn a_shortened_list_of_files_makes_no_shared_file_look_like_an_own_one() {
        let names = || (0..5000).map(|number| number.to_string()).collect();
        let mut summary = DiffSummary {
            files_changed: names(),
            shared: names(),
            violations: names(),
            head_tree: "tree".to_owned(),
            ..DiffSummary::default()
        };
        shorten_lists(&mut summary);
        assert_eq!(summary.files_changed, Vec::<String>::new());
        assert_eq!((summary.shared.len(), summary.violations.len()), (100, 100));
        assert_eq!(summary.head_tree, "tree");
    }

    #[test]
    fn a_shortened_list_of_very_long_names_fits_into_a_record() {
        // The longest name of which each byte needs an escape.
        let names = || vec![r"\377".repeat(4096); 5000];
        let conflict = |path: String| WriteConflict {
            path,
            node: NodeId::from_bits(1),
            turn: AgentTurnId::from_bits(2),
        };
        let mut summary = DiffSummary {
            files_changed: names(),
            shared: names(),
            violations: names(),
            conflicts: names().into_iter().map(conflict).collect(),
            ..DiffSummary::default()
        };
        shorten_lists(&mut summary);
        assert!(
            !summary.violations.is_empty(),
            "a person decides about them"
        );
        let lists = [&summary.shared, &summary.violations];
        let names = lists.into_iter().flatten().map(String::len);
        let conflicts = summary.conflicts.iter();
        let conflicts = conflicts.map(|conflict| conflict.to_string().len());
        let bytes: usize = names.chain(conflicts).sum();
        assert!(bytes < RECORD_BYTES_MAX / 2, "{bytes}");
    }
}
