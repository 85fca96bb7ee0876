//! Carries out the effects of a run's decisions, in the order of the decisions.
//!
//! Effects that take long (a snapshot, a verification) run in tasks of their own and report with a
//! new decision, so that one node's work never holds up another's. Such work is cancelled when its
//! node is interrupted, reset or deleted. The programs and the work belong to this task: they end
//! with it, and before the files of a deleted run are removed.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_runtime::artifact::Workspace;
use turnkeep_runtime::decide::{self, ProgramEnd};
use turnkeep_runtime::effect::{Effect, VerifyPlace};
use turnkeep_runtime::ids::{AgentTurnId, NodeId, ToolId};
use turnkeep_runtime::turn::TurnEnd;
use turnkeep_runtime::verification::VerificationTarget;
use turnkeep_runtime::words::RunStatus;

use super::error::RunError;
use super::programs::{ProgramCommand, Programs, TurnPrompt, report_end};
use super::prompt_sources;
use super::run_directory;
use super::run_handle::RunHandle;
use super::settings;
use super::verification;
use super::waiting_calls::CallOutcome;
use super::workspaces::DeletedNode;

/// Carries out effects until the run is deleted or the server stops.
pub(super) async fn perform_effects(handle: Arc<RunHandle>, mut effects: mpsc::Receiver<Effect>) {
    let mut performer = Performer::new(handle);
    let mut events = performer.handle.subscribe_seq();
    loop {
        let effect = tokio::select! {
            biased;
            effect = effects.recv() => effect,
            _ = events.changed() => {
                performer.notice_completion();
                continue;
            }
        };
        match effect {
            Some(Effect::RemoveRun) => return performer.remove_run().await,
            Some(effect) => performer.perform(effect),
            None => return,
        }
    }
}

/// What a run does besides deciding.
struct Performer {
    handle: Arc<RunHandle>,
    programs: Programs,
    /// The tasks that prepare turns and verify.
    work: TaskTracker,
    /// Cancels the preparation of a node's turn.
    preparations: HashMap<NodeId, CancellationToken>,
    /// Cancels what is verified.
    verifications: HashMap<VerificationTarget, CancellationToken>,
    /// Whether the run was completed and at rest when last looked at.
    was_completed: bool,
}

impl Performer {
    fn new(handle: Arc<RunHandle>) -> Self {
        Self {
            programs: Programs::new(Arc::clone(&handle)),
            was_completed: is_completed(&handle),
            handle,
            work: TaskTracker::new(),
            preparations: HashMap::new(),
            verifications: HashMap::new(),
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::PrepareTurn {
                node,
                turn,
                workspace,
            } => self.prepare_turn(node, turn, workspace),
            Effect::SendPrompt {
                node,
                turn,
                session,
                prompt: text,
            } => {
                let prompt = TurnPrompt {
                    turn,
                    session,
                    text,
                };
                self.programs
                    .tell_or_begin(node, ProgramCommand::Send(prompt));
            }
            Effect::StartProgram(node) => self.start_program(node),
            Effect::StopProgram(node) => self.programs.tell(node, ProgramCommand::Stop),
            Effect::Interrupt(node) => self.stop_work(node, ProgramCommand::Interrupt),
            Effect::ResetProgram(node) => self.reset_program(node),
            Effect::EndProgram(node) => self.stop_work(node, ProgramCommand::End),
            Effect::RemoveWorktree { node, name, branch } => {
                self.remove_worktree(DeletedNode { node, name, branch });
            }
            Effect::AnswerPermission {
                node,
                call,
                resolution,
            } => {
                let answer = ProgramCommand::Answer { call, resolution };
                self.programs.tell(node, answer);
            }
            Effect::AnswerToolCall { node, tool, result } => {
                answer_tool_call(&self.handle, node, tool, result);
            }
            Effect::Verify { target, place } => self.verify(target, place),
            Effect::CancelVerification(target) => self.cancel_verification(target),
            Effect::Notify { text, .. } => tracing::info!(run = %self.handle.id(), "{text}"),
            // The caller takes it: nothing comes after it.
            Effect::RemoveRun => {}
        }
    }

    fn spawn_work(&self, work: impl Future<Output = ()> + Send + 'static) {
        let services = &self.handle.services;
        services.spawn_background(self.work.track_future(work));
    }

    fn prepare_turn(&mut self, node: NodeId, turn: AgentTurnId, workspace: Workspace) {
        let cancelled = CancellationToken::new();
        self.preparations.insert(node, cancelled.clone());
        let handle = Arc::clone(&self.handle);
        self.spawn_work(async move {
            prepare_turn(&handle, node, turn, workspace, &cancelled).await;
        });
    }

    /// Cancels what the server does for a node, and tells its program.
    fn stop_work(&mut self, node: NodeId, command: ProgramCommand) {
        if let Some(preparation) = self.preparations.remove(&node) {
            preparation.cancel();
        }
        self.programs.tell(node, command);
    }

    /// Removes the worktree of a deleted node when its program writes no more.
    fn remove_worktree(&mut self, deleted: DeletedNode) {
        let program_end = self.programs.release(deleted.node);
        let handle = Arc::clone(&self.handle);
        self.spawn_work(async move {
            program_end.await;
            let workspaces = &handle.services.workspaces;
            workspaces.remove_deleted(&handle, &deleted).await;
        });
    }

    fn reset_program(&mut self, node: NodeId) {
        let commands = self.handle.read_live(|run| {
            let node = run.node(node)?;
            Some(node.settings.reset_commands.clone())
        });
        let commands = commands.unwrap_or_default();
        self.stop_work(node, ProgramCommand::Reset { commands });
    }

    fn start_program(&mut self, node: NodeId) {
        let services = &self.handle.services;
        let session = self.handle.read_live(|run| {
            let node = run.node(node)?;
            let program = services.settings.program_of(&node.settings).ok()?;
            let session = node.session.id.clone();
            session.filter(|_| settings::resumes(program))
        });
        self.programs
            .tell_or_begin(node, ProgramCommand::Start { session });
    }

    fn verify(&mut self, target: VerificationTarget, place: VerifyPlace) {
        // Those that have ended need no token any more.
        self.verifications
            .retain(|known, _| is_under_way(&self.handle, *known));
        let cancelled = CancellationToken::new();
        self.verifications.insert(target, cancelled.clone());
        let handle = Arc::clone(&self.handle);
        self.spawn_work(verification::verify(handle, target, place, cancelled));
    }

    fn cancel_verification(&mut self, target: VerificationTarget) {
        if let Some(cancelled) = self.verifications.remove(&target) {
            cancelled.cancel();
        }
    }

    /// Removes the worktrees that a completed run needs no more, once no turn is open.
    fn notice_completion(&mut self) {
        let is_completed = is_completed(&self.handle);
        if is_completed && !self.was_completed {
            let handle = Arc::clone(&self.handle);
            self.spawn_work(async move {
                let workspaces = &handle.services.workspaces;
                workspaces.remove_unchanged(&handle).await;
            });
        }
        self.was_completed = is_completed;
    }

    /// Ends everything that belongs to a deleted run. `file_views` removes its files.
    async fn remove_run(mut self) {
        for preparation in self.preparations.values() {
            preparation.cancel();
        }
        for verification in self.verifications.values() {
            verification.cancel();
        }
        self.programs.end_all().await;
        self.work.close();
        self.work.wait().await;
        let services = &self.handle.services;
        services.workspaces.remove_run(&self.handle).await;
    }
}

fn is_under_way(handle: &RunHandle, target: VerificationTarget) -> bool {
    handle.read_live(|run| match target {
        VerificationTarget::Run(id) => run.verification.is_some_and(|known| known.id == id),
        VerificationTarget::Gate(envelope) => run.gates.contains_key(&envelope),
    })
}

/// Whether a run is completed and no turn is open.
fn is_completed(handle: &RunHandle) -> bool {
    handle.read_live(|run| {
        let rests = run.nodes().all(|node| node.turn.is_none());
        run.status == RunStatus::Completed && rests
    })
}

/// Takes the snapshot before the turn and sends the prompt, or ends the turn if that fails.
async fn prepare_turn(
    handle: &Arc<RunHandle>,
    node: NodeId,
    turn: AgentTurnId,
    workspace: Workspace,
    cancelled: &CancellationToken,
) {
    let workspaces = &handle.services.workspaces;
    let prepare = async {
        let base_tree = workspaces.begin_turn(handle, node, turn, workspace).await?;
        let mut sources = prompt_sources::collect(handle, node).await?;
        sources.base_tree = Some(base_tree.to_string());
        Ok::<_, String>(sources)
    };
    let prepared = tokio::select! {
        biased;
        () = cancelled.cancelled() => return give_up_turn(handle, node, turn).await,
        prepared = prepare => prepared,
    };
    let sources = match prepared {
        Ok(sources) => sources,
        Err(reason) => {
            let end = TurnEnd::Failed { reason };
            end_unsent(handle, node, turn, end).await;
            // Without its directory no other node can go on either.
            return run_directory::fail_if_missing(handle).await;
        }
    };
    let sent =
        handle.decide(move |run, around| decide::send_prompt(run, around, node, turn, &sources));
    match sent.await {
        Ok(()) => {}
        Err(error @ (RunError::Rejected(_) | RunError::UnknownRun(_))) => {
            tracing::debug!(run = %handle.id(), %error, "a prompt was not sent");
        }
        Err(error) => {
            let reason = error.to_string();
            return end_unsent(handle, node, turn, TurnEnd::Failed { reason }).await;
        }
    }
    // The turn was stopped while it was prepared, so no program will end it.
    let is_open = handle.read_live(|run| {
        let open = run.node(node).and_then(|node| node.turn.as_ref());
        open.is_some_and(|open| open.id == turn)
    });
    if !is_open {
        workspaces.abandon_turn(turn);
    }
}

/// Ends a turn that was stopped while it was prepared. No program has seen its inputs, so they wait
/// for the next turn.
async fn give_up_turn(handle: &Arc<RunHandle>, node: NodeId, turn: AgentTurnId) {
    let end = TurnEnd::Interrupted {
        reason: "interrupted".to_owned(),
        requeue: true,
    };
    end_unsent(handle, node, turn, end).await;
}

async fn end_unsent(handle: &Arc<RunHandle>, node: NodeId, turn: AgentTurnId, end: TurnEnd) {
    handle.services.workspaces.abandon_turn(turn);
    let end = ProgramEnd {
        node,
        turn,
        end,
        diff: decide::DiffTaken::default(),
        printed: None,
        only_waited: false,
    };
    report_end(handle, end).await;
}

/// Passes the outcome of a call to the agent that waits for it, or puts it into its inbox.
fn answer_tool_call(handle: &Arc<RunHandle>, node: NodeId, tool: ToolId, result: CallOutcome) {
    let Some(late) = handle.waiting_calls.settle(tool, result) else {
        return;
    };
    let deliver = Arc::clone(handle);
    handle.services.spawn_background(async move {
        let delivered =
            deliver.decide(move |run, around| decide::deliver_outcome(run, around, node, &late));
        if let Err(error) = delivered.await {
            tracing::debug!(%error, "the outcome of a call reached nobody");
        }
    });
}
