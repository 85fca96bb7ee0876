//! The end of a run: an orchestrator claims completion, and the server verifies the claim. A person
//! may ask for the same verification without completing the run.
//!
//! Worked example with one verification command that fails first: `complete_run` → phase VERIFY →
//! the report as an artifact → the claimer gets the failing output, phase EXECUTE. It fixes the
//! fault and claims again → phase VERIFY → the report → phase DONE, completed.
//!
//! A run is never completed over the head of a person: while a message waits, claims are refused.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::effect::{Effect, VerifyPlace};
use crate::fact::{Fact, NodeChange};
use crate::ids::{NodeId, VerificationId};
use crate::input::{CLAIM_AGAIN_NOTE, Envelope, EnvelopeStatus, Input};
use crate::live::LiveRun;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::Run;
use crate::turn::shorten;
use crate::verification::{CallPlace, VerificationTarget};
use crate::words::{ArtifactKind, Expectation, GlobalMode, MessageRole, Phase, RunStatus};

use super::draft::{ArtifactOwner, NewArtifact};
use super::tools::{answer_call, complete_call, refuse_call};
use super::{Decision, DiffTaken, Draft, Surroundings, gates, schedule, turns};

const DOCS_UNDER_WAY: &str = "the run is verified, and its documents are being brought up to date";

/// The result of the verification commands.
#[derive(Debug, Clone)]
pub struct VerificationEnd {
    /// What was verified: the target of [`Effect::Verify`].
    pub target: VerificationTarget,
    pub ok: bool,
    /// `verification.json`, with the hash of the tree that was verified.
    pub report: Bytes,
    /// The end of the failing output, or the files in conflict.
    pub tail: String,
    /// Names the failing command, its exit code and its masked output in words for people, so that
    /// the same failure is recognized.
    pub signature: String,
    /// What the run changed, if [`hands_over_changes`] asks for it.
    pub changes: Option<DiffTaken>,
}

/// Starts a verification of the run for a person (`POST …/verify`). The run is not completed by it.
///
/// The answer names the verification. Its report is an artifact of the kind `report` without a node.
/// It is refused while another one is under way, and while the documents are brought up to date. A
/// completed run stays completed: only its phase says that the commands run.
pub fn verify(run: &Run, around: Surroundings<'_>) -> Result<Decision<VerificationId>, Rejection> {
    let mut draft = Draft::new(run, around);
    check_request(&draft.run)?;
    let id = draft.draw_id();
    draft.record(Fact::VerificationStarted {
        verification: id,
        tool: None,
    });
    run_commands(&mut draft, id);
    draft.note_made(MadeId::Verification(id));
    Ok(draft.finish(id))
}

fn check_request(run: &LiveRun) -> Result<(), Rejection> {
    let refuse = |reason| Err(Rejection::CannotVerify(reason));
    if run.phase == Phase::Verify {
        return refuse("a verification is under way");
    }
    if run.phase == Phase::DocsSync {
        // Another phase now would hide that the run is about to be completed.
        return refuse(DOCS_UNDER_WAY);
    }
    Ok(())
}

/// Goes on to the phase behind a verification that completes nothing.
pub(super) fn leave_verify_phase(draft: &mut Draft<'_>) {
    let phase = phase_behind(&draft.run);
    draft.record(Fact::PhaseChanged(phase));
}

fn phase_behind(run: &LiveRun) -> Phase {
    match run.status {
        RunStatus::Completed => Phase::Done,
        _ => Phase::Execute,
    }
}

fn run_commands(draft: &mut Draft<'_>, id: VerificationId) {
    draft.perform(Effect::Verify {
        target: VerificationTarget::Run(id),
        place: VerifyPlace::IntegrationTree,
    });
}

/// Rejects a claim that cannot be verified now.
pub(super) fn check_claim(draft: &Draft<'_>, caller: &Node) -> Result<(), Rejection> {
    if !caller.is_orchestrator() {
        return Err(Rejection::NotOrchestrator);
    }
    let mut reasons = Vec::new();
    if draft.run.phase == Phase::Verify {
        reasons.push("a verification is under way".to_owned());
    }
    if draft.run.phase == Phase::DocsSync {
        // Another claim would hand the documents over a second time.
        reasons.push(DOCS_UNDER_WAY.to_owned());
    }
    if draft.run.status != RunStatus::Running {
        reasons.push(format!("the run is {}", draft.run.status));
    }
    reasons.extend(describe_waiting_chat(&draft.run));
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(Rejection::NotComplete(reasons))
    }
}

/// Names the nodes for which a message of a person waits. Inputs that a person has stopped do not
/// count: the person knows of them.
fn describe_waiting_chat(run: &LiveRun) -> Option<String> {
    let has_chat = |node: &&Node| {
        let mut inputs = node.inbox.inputs().iter();
        !node.inputs_held && inputs.any(Input::is_chat)
    };
    let names: Vec<&str> = run.nodes().filter(has_chat).map(Node::name).collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        format!("a message of the user waits for {names}: end your turn so that it is read")
    })
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// Nothing needs to be verified, so the run is completed.
    Accepted,
    /// The verification commands run.
    Verifying,
}

/// Records a claim.
pub(super) fn claim_completion(draft: &mut Draft<'_>, place: CallPlace, summary: &str) -> Claimed {
    let CallPlace { node, turn, tool } = place;
    let summary = shorten(summary);
    // Recorded before the verdict: the claim counts as progress, whatever becomes of it.
    draft.record_in(node, turn, Fact::CompletionClaimed { tool, summary });
    // The docs node needs the changes, which only the server knows. So it verifies the run even if
    // there is no command.
    if draft.run.settings.verify.is_empty() && !hands_over_changes(&draft.run) {
        finish_run(draft, place, None);
        return Claimed::Accepted;
    }
    let verification = draft.draw_id();
    let tool = Some(tool);
    draft.record_in(node, turn, Fact::VerificationStarted { verification, tool });
    run_commands(draft, verification);
    Claimed::Verifying
}

/// Ends a verification. The result of one that was cancelled is refused.
pub fn end_verification(
    run: &Run,
    around: Surroundings<'_>,
    end: &VerificationEnd,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    match end.target {
        VerificationTarget::Run(id) => end_of_run(&mut draft, id, end)?,
        VerificationTarget::Gate(envelope) => gates::end_check(&mut draft, envelope, end)?,
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

fn end_of_run(
    draft: &mut Draft<'_>,
    id: VerificationId,
    end: &VerificationEnd,
) -> Result<(), Rejection> {
    let under_way = draft.run.verification.filter(|known| known.id == id);
    let ended = under_way.ok_or(Rejection::NotVerifying)?;
    let owner = ended.claim.map_or_else(ArtifactOwner::default, |claim| {
        ArtifactOwner::turn(claim.node, claim.turn)
    });
    // The report comes before the verdict, so that whoever sees the verdict can read the report.
    record_report(draft, owner, end);
    match ended.claim {
        Some(place) => end_claim(draft, place, end),
        None => end_request(draft, end),
    }
    Ok(())
}

pub(super) fn record_report(draft: &mut Draft<'_>, owner: ArtifactOwner, end: &VerificationEnd) {
    let report = NewArtifact {
        kind: ArtifactKind::Report,
        name: "verification.json",
        content: end.report.clone(),
        diff: None,
    };
    draft.create_artifact(owner, report);
}

fn end_claim(draft: &mut Draft<'_>, place: CallPlace, end: &VerificationEnd) {
    let result = judge_claim(draft, place, end);
    // The call comes last: an agent that hears of it may already see the run in its new state.
    complete_call(draft, place, &result);
    answer_call(draft, place, result);
}

fn judge_claim(
    draft: &mut Draft<'_>,
    claim: CallPlace,
    end: &VerificationEnd,
) -> Result<Value, String> {
    if !end.ok {
        reject_claim(draft, claim, end);
        return Err(format!("verification failed: {}", end.tail));
    }
    // It came while the commands ran. A completed run would leave it unread.
    if let Some(reason) = describe_waiting_chat(&draft.run) {
        leave_verify_phase(draft);
        return Err(format!(
            "the verification passed, but {reason}, then call complete_run again"
        ));
    }
    finish_run(draft, claim, end.changes.clone());
    Ok(json!({"accepted": true}))
}

fn end_request(draft: &mut Draft<'_>, end: &VerificationEnd) {
    // A failure leads back to EXECUTE, which a completed run has left.
    if end.ok || draft.run.status == RunStatus::Completed {
        leave_verify_phase(draft);
    } else {
        let signature = end.signature.clone();
        draft.record(Fact::VerificationFailed { signature });
    }
}

/// Stops the verification that the call of this turn waits for.
pub(super) fn cancel_claim_of_turn(
    draft: &mut Draft<'_>,
    turn: crate::ids::AgentTurnId,
    reason: &str,
) {
    let claim = draft.run.verification.and_then(|known| known.claim);
    if claim.is_some_and(|claim| claim.turn == turn) {
        cancel(draft, reason);
    }
}

/// Stops the verification of the run, and answers the claim that waits for it.
pub(super) fn cancel(draft: &mut Draft<'_>, reason: &str) {
    let claim = draft.run.verification.and_then(|known| known.claim);
    stop(draft);
    if let Some(place) = claim {
        refuse_call(draft, place, reason.to_owned());
    }
}

/// Stops the verification that a deleted node has claimed. Its call gets no answer: the caller is gone.
pub(super) fn cancel_claim_of_node(draft: &mut Draft<'_>, node: NodeId) {
    let claim = draft.run.verification.and_then(|known| known.claim);
    if claim.is_some_and(|claim| claim.node == node) {
        stop(draft);
    }
}

fn stop(draft: &mut Draft<'_>) {
    if let Some(known) = draft.run.verification {
        leave_verify_phase(draft);
        let target = VerificationTarget::Run(known.id);
        draft.perform(Effect::CancelVerification(target));
    }
}

/// Ends a verification that was lost with the server. The claimer is asked to claim again: its work
/// may go on meanwhile, so the old claim must not complete the run by itself.
pub(super) fn end_lost(draft: &mut Draft<'_>) {
    if draft.run.phase != Phase::Verify {
        return;
    }
    let claim = draft.run.verification.and_then(|known| known.claim);
    leave_verify_phase(draft);
    let claimer = claim.and_then(|claim| draft.run.node(claim.node));
    if let Some(claimer) = claimer.map(|node| node.id) {
        turns::send_message(
            draft,
            claimer,
            MessageRole::System,
            CLAIM_AGAIN_NOTE.to_owned(),
        );
    }
}

/// Sends the failing output to the claimer, and lets the run go on.
fn reject_claim(draft: &mut Draft<'_>, claim: CallPlace, end: &VerificationEnd) {
    let claimer = claim.node;
    // The turn that claimed may be over, so the failure also comes as an input that starts another.
    let envelope = daemon_envelope(draft, claimer, claimer, end.tail.clone());
    let failed = Envelope {
        status: Some(EnvelopeStatus {
            ok: false,
            reason: Some("verification failed".to_owned()),
        }),
        ..envelope
    };
    // Of the turn that claimed, also if that is over: whoever asks why finds the claim.
    draft.record_in(claimer, claim.turn, Fact::EnvelopeSent(Box::new(failed)));
    draft.change_node(claimer, NodeChange::InboxCounted);
    let signature = end.signature.clone();
    draft.record_for(claimer, Fact::VerificationFailed { signature });
}

fn daemon_envelope(draft: &mut Draft<'_>, from: NodeId, to: NodeId, message: String) -> Envelope {
    Envelope {
        id: draft.draw_id(),
        from,
        to,
        created_at: draft.now(),
        message,
        structured: None,
        artifacts: Vec::new(),
        status: None,
        expectation: Expectation::None,
        reply_to: None,
        context_pack: None,
        synthesized: true,
    }
}

/// The node that brings the documents up to date before the run is completed. A plan changes no
/// code, so there is nothing to document in PLANNING.
fn find_docs_node(run: &LiveRun) -> Option<NodeId> {
    let docs = run.settings.docs_node;
    docs.filter(|docs| run.node(*docs).is_some() && run.global_mode == GlobalMode::Implementation)
}

/// Whether a passed verification must say what the run changed: the docs node gets it.
pub fn hands_over_changes(run: &LiveRun) -> bool {
    find_docs_node(run).is_some()
}

/// Completes the run, after its documents are brought up to date if it has a node for that.
fn finish_run(draft: &mut Draft<'_>, claim: CallPlace, changes: Option<DiffTaken>) {
    match find_docs_node(&draft.run) {
        Some(docs) => hand_over_changes(draft, claim, docs, changes),
        None => complete_run(draft),
    }
}

/// Gives the docs node everything that the run changed.
fn hand_over_changes(
    draft: &mut Draft<'_>,
    claim: CallPlace,
    docs: NodeId,
    changes: Option<DiffTaken>,
) {
    let claimer = claim.node;
    draft.record(Fact::PhaseChanged(Phase::DocsSync));
    let diff = changes.map(|changes| {
        let new = NewArtifact {
            kind: ArtifactKind::Diff,
            name: "changes.patch",
            content: changes.patch,
            diff: Some(changes.summary),
        };
        draft.create_artifact(ArtifactOwner::default(), new)
    });
    let message = match diff {
        Some(_) => "The run is verified. Bring the documents up to date with its changes.",
        None => "The run is verified. Bring the documents up to date.",
    };
    let envelope = Envelope {
        artifacts: diff.into_iter().collect(),
        ..daemon_envelope(draft, claimer, docs, message.to_owned())
    };
    draft.record_in(claimer, claim.turn, Fact::EnvelopeSent(Box::new(envelope)));
    draft.change_node(docs, NodeChange::InboxCounted);
}

fn complete_run(draft: &mut Draft<'_>) {
    draft.record(Fact::PhaseChanged(Phase::Done));
    draft.record(Fact::RunStatusChanged {
        status: RunStatus::Completed,
        paused_reason: None,
    });
}

/// Completes a run whose docs node has had its turn, however that turn ended, or is gone. Mail that
/// still waits for the node means that another turn comes.
pub(super) fn finish_docs(draft: &mut Draft<'_>, node: NodeId) {
    if draft.run.phase != Phase::DocsSync || draft.run.settings.docs_node != Some(node) {
        return;
    }
    let docs = draft.run.node(node);
    if docs.is_some_and(|docs| !docs.inbox.is_empty() || docs.turn.is_some()) {
        return;
    }
    if describe_waiting_chat(&draft.run).is_some() {
        // The message reopens the run, as it would have done a moment later.
        draft.record(Fact::PhaseChanged(Phase::Execute));
    } else {
        complete_run(draft);
    }
}
