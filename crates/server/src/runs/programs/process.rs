//! The process of an agent program: starts it, reads its lines and waits for its exit.
//!
//! Dropping it kills the process with everything that it started, makes its token invalid and removes
//! its private files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout, timeout_at};
use turnkeep_agents::Exit;
use turnkeep_agents::launch::{EnvVariable, plan_launch};
use turnkeep_agents::request::StartOptions;

use super::pipes::{HearProgram, LINE_BYTES_MAX, ProgramLine, ProgramPipes};
use crate::child_process::{ChildCommand, ChildProcess};
use crate::runs::launch_settings::NodeLaunch;
use crate::runs::process_records::ProcessRecord;
use crate::runs::services::RunServices;

/// How long a process that has closed its output may take to exit.
const EXIT_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait for the last lines of a process that has ended, if another process holds its output
/// open.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);
/// How many lines of the error output are quoted when a program fails.
const LAST_ERRORS_MAX: usize = 20;

/// A running process.
pub(super) struct ProgramProcess {
    pipes: ProgramPipes,
    launch: NodeLaunch,
    last_errors: VecDeque<String>,
    /// When its end was first seen. Another process may go on printing into its output.
    ended_at: Option<Instant>,
    _record: ProcessRecord,
}

/// How a process has ended.
#[derive(Debug, Default)]
pub(super) struct EndedProcess {
    pub(super) exit: Exit,
    /// The lines of its error output that were read after its end.
    pub(super) last_lines: Vec<String>,
}

impl ProgramProcess {
    /// Starts a process with its private files. The error says why it cannot be started.
    pub(super) async fn start(
        services: &Arc<RunServices>,
        mut launch: NodeLaunch,
        options: StartOptions,
        hear: HearProgram,
    ) -> Result<Self, String> {
        let records = Arc::clone(services);
        let start = move || {
            let plan = plan_launch(&launch.program, &options, launch.private_path());
            launch.write_files(&plan.files)?;
            let command = ChildCommand {
                program: plan.command,
                args: plan.args,
                env: plan.env.into_iter().map(env_pair).collect(),
                cwd: Some(plan.cwd.into()),
                keeps_errors: true,
                line_bytes_max: LINE_BYTES_MAX,
            };
            let process = ChildProcess::start(command).map_err(|error| error.to_string())?;
            let parts = process.into_parts();
            // If the server dies before this line, the guard alone ends the process.
            let record = records.process_records.add(parts.group.id());
            Ok((launch, parts, record))
        };
        let started: Result<_, String> = services
            .run_file_work(start)
            .await
            .map_err(|error| error.to_string())?;
        let (launch, parts, record) = started?;
        Ok(Self {
            pipes: ProgramPipes::new(parts, hear),
            launch,
            last_errors: VecDeque::new(),
            ended_at: None,
            _record: record,
        })
    }

    /// Whether the process can serve a turn that wants this.
    pub(super) fn fits(&self, wanted: &NodeLaunch) -> bool {
        self.launch.fits(wanted)
    }

    /// Writes to the input. A program that reads nothing for long is killed.
    pub(super) fn write(&self, text: String) {
        let Some(input) = &self.pipes.input else {
            return;
        };
        // A closed channel means that the program has ended, and its output tells that.
        if let Err(TrySendError::Full(_)) = input.try_send(text) {
            self.kill();
        }
    }

    pub(super) fn close_input(&mut self) {
        self.pipes.input = None;
    }

    pub(super) fn interrupt(&self) {
        self.pipes.group.interrupt();
    }

    pub(super) fn kill(&self) {
        self.pipes.group.kill();
    }

    /// Remembers a line for the reason of a failure.
    pub(super) fn keep_error(&mut self, line: &str) {
        if self.last_errors.len() == LAST_ERRORS_MAX {
            self.last_errors.pop_front();
        }
        self.last_errors.push_back(line.to_owned());
    }

    /// The next line. A process that has ended says nothing more after a moment, also if another
    /// process holds its output open.
    pub(super) async fn next_line(&mut self) -> ProgramLine {
        let ProgramPipes { lines, group, .. } = &mut self.pipes;
        let ended = async {
            group.wait().await;
            let ended_at = *self.ended_at.get_or_insert_with(Instant::now);
            tokio::time::sleep_until(ended_at + LAST_LINES_WITHIN).await;
        };
        tokio::select! {
            biased;
            line = lines.recv() => line.unwrap_or(ProgramLine::Closed),
            () = ended => ProgramLine::Closed,
        }
    }

    /// Waits for the end of the process, kills it if it does not come, and reads the errors that are
    /// still on their way.
    pub(super) async fn wait(&mut self) -> EndedProcess {
        let ProgramPipes { lines, group, .. } = &mut self.pipes;
        let ended = timeout(EXIT_WITHIN, group.wait()).await;
        let status = if let Ok(status) = ended {
            status
        } else {
            group.kill();
            group.wait().await
        };
        // A process that the program started may hold the pipes open for as long as it lives, so the
        // last lines get a limited time.
        let give_up_at = *self.ended_at.get_or_insert_with(Instant::now) + LAST_LINES_WITHIN;
        let mut last_lines = Vec::new();
        while let Ok(Some(line)) = timeout_at(give_up_at, lines.recv()).await {
            if let ProgramLine::Error(text) = line {
                last_lines.push(text);
            }
            if last_lines.len() == LAST_ERRORS_MAX {
                break;
            }
        }
        for line in &last_lines {
            self.keep_error(line);
        }
        let errors: Vec<&str> = self.last_errors.iter().map(String::as_str).collect();
        let exit = Exit {
            code: status.and_then(|status| status.code()),
            last_errors: errors.join("\n"),
        };
        EndedProcess { exit, last_lines }
    }
}

fn env_pair(variable: EnvVariable) -> (String, String) {
    (variable.name, variable.value)
}
