//! The agent programs of a run: one process for each node that has had a turn.
//!
//! The first prompt starts the program. If the program is gone, the next prompt starts it again, so
//! no person has to. The parts:
//!
//! | file | what it owns |
//! |---|---|
//! | `machine` | the requests to a program and the reports from it, without I/O |
//! | `program_task` | the task of a node's program: carries out the steps of the machine |
//! | `process`, `pipes` | the process and its pipes |
//! | `own_tools` | calls of the server's own tools, which the server records itself |
//! | `connections` | which programs run, for clients and for the watchdog |
//! | `log_limiter` | bounds how many lines of error output become events |
//! | `turn_lines`, `split_secrets` | what a program printed in a turn, kept as a file of the turn |
//!
//! A task takes commands in the order in which the performer sends them.

mod coalescer;
mod connections;
mod log_limiter;
mod machine;
mod own_tools;
mod pipes;
mod process;
mod program_task;
mod split_secrets;
mod translate;
mod turn;
mod turn_lines;

pub(super) use connections::ProgramConnections;
pub(super) use own_tools::{MCP_NAME, RecordedCalls};
pub(super) use program_task::report_end;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_runtime::approval::Resolution;
use turnkeep_runtime::ids::{AgentTurnId, NodeId};
use turnkeep_runtime::tool::ToolCall;

use super::run_handle::RunHandle;

/// A command to the task of a program.
#[derive(Debug)]
pub(super) enum ProgramCommand {
    /// Starts a turn.
    Send(TurnPrompt),
    /// Starts the process, unless it runs.
    Start {
        /// The session to go on with.
        session: Option<String>,
    },
    /// Stops the open turn and ends the process.
    Stop,
    /// Stops the open turn.
    Interrupt,
    /// Answers a question for permission.
    Answer {
        /// The call that it asked about.
        call: ToolCall,
        /// The decision.
        resolution: Resolution,
    },
    /// Ends the open turn and begins a new session.
    Reset {
        /// What a person would type for that.
        commands: Vec<String>,
    },
    /// Kills the program.
    End,
}

/// The prompt of a turn.
#[derive(Debug)]
pub(super) struct TurnPrompt {
    pub(super) turn: AgentTurnId,
    /// The session to go on with.
    pub(super) session: Option<String>,
    pub(super) text: Bytes,
}

/// How many commands may wait for a program's task. A node has one open turn, so a few are normal.
const COMMANDS_MAX: usize = 1024;

/// Passes a command on without waiting: the effects of other nodes must not wait for this one.
fn tell_task(task: &mpsc::Sender<ProgramCommand>, command: ProgramCommand) {
    if let Err(error) = task.try_send(command) {
        tracing::warn!(%error, "a program's task did not take a command");
    }
}

/// The tasks of a run's programs. Dropping it ends all of them.
pub(super) struct Programs {
    handle: Arc<RunHandle>,
    nodes: HashMap<NodeId, RunningTask>,
    tasks: TaskTracker,
}

/// The task of a node's program.
struct RunningTask {
    commands: mpsc::Sender<ProgramCommand>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
}

impl Programs {
    pub(super) fn new(handle: Arc<RunHandle>) -> Self {
        Self {
            handle,
            nodes: HashMap::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Tells a node's program something, and starts the node's task if it has none.
    pub(super) fn tell_or_begin(&mut self, node: NodeId, command: ProgramCommand) {
        let (handle, tasks) = (&self.handle, &self.tasks);
        let begin = || {
            let (sender, commands) = mpsc::channel(COMMANDS_MAX);
            let ended = CancellationToken::new();
            // A guard, so that the end is known also if the task panics.
            let guard = ended.clone().drop_guard();
            let task = program_task::run(Arc::clone(handle), node, commands);
            let task = async move {
                let _guard = guard;
                task.await;
            };
            handle.services.spawn_background(tasks.track_future(task));
            RunningTask {
                commands: sender,
                ended,
            }
        };
        let task = self.nodes.entry(node).or_insert_with(begin);
        tell_task(&task.commands, command);
    }

    /// Sends a command to the task of a node's program. Drops it if the node has no program.
    pub(super) fn tell(&self, node: NodeId, command: ProgramCommand) {
        if let Some(task) = self.nodes.get(&node) {
            tell_task(&task.commands, command);
        }
    }

    /// Lets go of a deleted node, whose program then ends. The future waits until it has.
    pub(super) fn release(&mut self, node: NodeId) -> impl Future<Output = ()> + Send + 'static {
        let ended = self.nodes.remove(&node).map(|task| task.ended);
        async move {
            if let Some(ended) = ended {
                ended.cancelled().await;
            }
        }
    }

    /// Ends all programs and waits until they are gone.
    pub(super) async fn end_all(&mut self) {
        self.nodes.clear();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
