//! The life of a run: created, paused, resumed, ended, and found again after a restart.

use bytes::Bytes;

use crate::approval::Resolution;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, NodeId};
use crate::input::{Input, InputId};
use crate::node::{BlockReason, Node};
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::{Run, RunSettings};
use crate::turn::OpenTurn;
use crate::verification::VerificationTarget;
use crate::words::{ArtifactKind, GlobalMode, Mode, NodeStatus, PausedReason, Phase, RunStatus};

use super::draft::{ArtifactOwner, NewArtifact};
use super::turns::AfterStop;
use super::{
    Decision, DiffTaken, Draft, Surroundings, approvals, gates, schedule, turns, verification,
};

/// Creates a run. Without a title the goal gives one. It is queued while no turn is free.
pub fn create_run(run: &Run, around: Surroundings<'_>, mut settings: RunSettings) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    if settings.title.is_empty() {
        settings.title = super::chat::title_of(settings.goal.as_deref().unwrap_or_default());
    }
    draft.record(Fact::RunCreated(Box::new(settings)));
    draft.note_made(MadeId::Run);
    // Capacity counts the turns of all runs: a run that cannot start one yet is queued.
    let status = if draft.capacity().turns > 0 {
        RunStatus::Running
    } else {
        RunStatus::Queued
    };
    set_status(&mut draft, status, None);
    draft.finish(())
}

/// A change of a run by a person. What is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct RunChange {
    pub status: Option<RunStatus>,
    /// Whether pausing also stops open turns.
    pub interrupt: bool,
    pub mode: Option<Mode>,
    pub global_mode: Option<GlobalMode>,
    pub settings: Option<RunSettings>,
}

/// Changes a run. All of the change is recorded, or nothing.
pub fn change_run(
    run: &Run,
    around: Surroundings<'_>,
    change: RunChange,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    if let Some(to) = change.status {
        check_move(draft.run.status, to)?;
    }
    // Settings and modes before the status: turns that start now must follow them.
    if let Some(settings) = change.settings {
        draft.record(Fact::RunConfigured(Box::new(settings)));
    }
    let mode = change.mode.unwrap_or(draft.run.mode);
    let global_mode = change.global_mode.unwrap_or(draft.run.global_mode);
    if (mode, global_mode) != (draft.run.mode, draft.run.global_mode) {
        draft.record(Fact::ModesChanged { mode, global_mode });
    }
    if let Some(to) = change.status.filter(|to| *to != draft.run.status) {
        move_to(&mut draft, to, change.interrupt);
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Records that a person has seen how the run ended. The same again records nothing.
pub fn dismiss_end(run: &Run, around: Surroundings<'_>) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    if !draft.run.has_ended() {
        return Err(Rejection::NotEnded);
    }
    if !draft.run.is_end_seen {
        draft.record(Fact::EndSeen);
    }
    Ok(draft.finish(()))
}

/// Records a request for its key alone.
pub fn note_request(run: &Run, around: Surroundings<'_>) -> Decision<()> {
    Draft::new(run, around).finish(())
}

/// Records the answer to a request of which the run keeps nothing else, so that a repeat gets it again.
pub fn note_answer(run: &Run, around: Surroundings<'_>, name: &str, answer: Bytes) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    let report = NewArtifact {
        kind: ArtifactKind::Report,
        name,
        content: answer,
        diff: None,
    };
    let artifact = draft.create_artifact(ArtifactOwner::default(), report);
    draft.note_made(MadeId::Artifact(artifact));
    draft.finish(())
}

/// Rejects moves that make no sense. The same status again is no move.
fn check_move(from: RunStatus, to: RunStatus) -> Result<(), Rejection> {
    use RunStatus::{Completed, Failed, Paused, Queued, Running};
    match (from, to) {
        (_, Running) | (Queued | Running, Paused) | (Running | Paused, Completed | Failed) => {
            Ok(())
        }
        (from, to) if from == to => Ok(()),
        (from, to) => Err(Rejection::IllegalMove { from, to }),
    }
}

fn move_to(draft: &mut Draft<'_>, to: RunStatus, interrupt: bool) {
    match to {
        RunStatus::Running => resume(draft),
        RunStatus::Paused => {
            set_status(draft, to, Some(PausedReason::User));
            if interrupt {
                interrupt_open_turns(draft);
            }
        }
        RunStatus::Completed => {
            verification::cancel(draft, "the user completed the run");
            draft.record(Fact::PhaseChanged(Phase::Done));
            set_status(draft, to, None);
        }
        RunStatus::Failed => {
            verification::cancel(draft, "the user ended the run");
            set_status(draft, to, None);
        }
        RunStatus::Queued => set_status(draft, to, None),
    }
}

fn set_status(draft: &mut Draft<'_>, status: RunStatus, paused_reason: Option<PausedReason>) {
    draft.record(Fact::RunStatusChanged {
        status,
        paused_reason,
    });
}

/// Lets a run go on. Nodes that were stopped in a turn are asked to continue.
fn resume(draft: &mut Draft<'_>) {
    let had_ended = matches!(draft.run.status, RunStatus::Completed | RunStatus::Failed);
    // Before the status changes: that clears the counters, and the nodes need an event each.
    let stalled = node_ids(draft, |node| node.block == Some(BlockReason::Stall));
    set_status(draft, RunStatus::Running, None);
    // A verification that somebody asked for goes on, and leads to EXECUTE when it ends.
    if had_ended && draft.run.verification.is_none() {
        draft.record(Fact::PhaseChanged(Phase::Execute));
    }
    for node in stalled {
        draft.change_node(node, NodeChange::Unblocked);
    }
    for node in node_ids(draft, |node| node.continue_note_due && node.turn.is_none()) {
        turns::send_continue_note(draft, node);
    }
}

fn node_ids(draft: &Draft<'_>, is_meant: impl Fn(&Node) -> bool) -> Vec<NodeId> {
    let meant = draft.run.nodes().filter(|node| is_meant(node));
    meant.map(|node| node.id).collect()
}

fn interrupt_open_turns(draft: &mut Draft<'_>) {
    for node in node_ids(draft, |node| node.turn.is_some()) {
        turns::interrupt(draft, node, "paused by the user", AfterStop::Continue);
    }
}

/// Deletes a run: everything of it ends, and its files go. Its records stay in the log.
pub fn delete_run(run: &Run, around: Surroundings<'_>) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    draft.record(Fact::RunDeleted);
    // First of the effects: the commands must not run in files that are being removed.
    if let Some(verification) = draft.run.verification {
        let target = VerificationTarget::Run(verification.id);
        draft.perform(Effect::CancelVerification(target));
    }
    gates::cancel_all(&mut draft);
    draft.perform(Effect::RemoveRun);
    draft.finish(())
}

/// What the server does with a run that it finds at its start.
#[derive(Debug, Clone, Copy)]
pub struct Restart<'a> {
    /// Whether running runs go on by themselves.
    pub resume: bool,
    /// Programs whose sessions can be resumed by name.
    pub resumable_programs: &'a [String],
    /// What the turns changed that were open.
    pub changes: &'a [LostChanges],
}

/// What a turn changed that was open when the server stopped.
#[derive(Debug, Clone)]
pub struct LostChanges {
    pub turn: AgentTurnId,
    pub diff: DiffTaken,
}

/// Ends the turns that were open when the server stopped. Their programs are gone.
///
/// A turn is asked to continue if its program has said something in it and its session can be
/// resumed. The inputs of the others go back into the inbox. So no input is lost, and none is read
/// twice of which the log shows that it was read.
pub fn restart(run: &Run, around: Surroundings<'_>, restart: Restart<'_>) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    // A queued run would begin to work by itself, too.
    let would_work = matches!(draft.run.status, RunStatus::Running | RunStatus::Queued);
    if would_work && !restart.resume {
        set_status(
            &mut draft,
            RunStatus::Paused,
            Some(PausedReason::DaemonRestart),
        );
    }
    // After the status, so that nothing below starts a turn in a run that waits for a person.
    for node in node_ids(&draft, |node| node.turn.is_some()) {
        end_lost_turn(&mut draft, node, restart);
    }
    for node in node_ids(&draft, is_cut_off) {
        rest_interrupted(&mut draft, node);
    }
    verification::end_lost(&mut draft);
    gates::check_again(&mut draft);
    if restart.resume {
        schedule::start_ready_turns(&mut draft);
    }
    draft.finish(())
}

/// Whether the log ends between the end of a turn and the rest of its node. One decision is written
/// as one batch, but a log that was cut by a repair may end anywhere.
fn is_cut_off(node: &Node) -> bool {
    node.status == NodeStatus::Running && node.turn.is_none()
}

fn rest_interrupted(draft: &mut Draft<'_>, id: NodeId) {
    let rested = NodeChange::Rested {
        status: NodeStatus::Idle,
        summary: "interrupted by a restart of the server".to_owned(),
    };
    draft.change_node(id, rested);
}

fn end_lost_turn(draft: &mut Draft<'_>, id: NodeId, restart: Restart<'_>) {
    let Some(lost) = find_lost_turn(draft, id, restart) else {
        return;
    };
    let interrupted = TurnStep::Interrupted {
        detail: "the server was restarted".to_owned(),
        requeued: lost.requeued,
        holds: false,
    };
    turns::close_text(draft, id, &lost.open, true);
    turns::close_tools(draft, id, lost.open.id, "the server was restarted");
    let mut changes = restart.changes.iter();
    let changes = changes.find(|changes| changes.turn == lost.open.id);
    if let Some(LostChanges { turn, diff }) = changes {
        turns::record_diff(draft, id, *turn, diff);
    }
    draft.step_turn(id, lost.open.id, interrupted);
    // The program that asked is gone, so an answer would reach no one.
    for approval in lost.approvals {
        approvals::close(draft, approval, Resolution::denied("provider-restarted"));
    }
    rest_interrupted(draft, id);
    if let Some(LostChanges { turn, diff }) = changes {
        turns::block_violator(draft, id, *turn, &diff.summary.violations);
    }
    if lost.can_resume {
        turns::send_continue_note(draft, id);
    }
}

/// A turn that was open when the server stopped.
struct LostTurn {
    open: OpenTurn,
    requeued: Vec<InputId>,
    approvals: Vec<ApprovalId>,
    can_resume: bool,
}

fn find_lost_turn(draft: &Draft<'_>, id: NodeId, restart: Restart<'_>) -> Option<LostTurn> {
    let node = draft.run.node(id)?;
    let open = node.turn.as_ref()?;
    // Only what the program said shows that its session has read the inputs. Reading them twice is
    // better than never.
    let can_resume = node.session.id.is_some()
        && open.has_output
        && restart
            .resumable_programs
            .iter()
            .any(|program| program == node.program());
    let requeued = if can_resume {
        Vec::new()
    } else {
        open.consumed.iter().map(Input::id).collect()
    };
    Some(LostTurn {
        open: open.clone(),
        requeued,
        approvals: node.open_approvals.iter().copied().collect(),
        can_resume,
    })
}
