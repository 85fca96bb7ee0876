//! The end of a run: an orchestrator claims completion, and the daemon verifies the claim.
//!
//! Worked example with one verification command that fails first: `complete_run` → phase VERIFY →
//! the report as an artifact → the claimer gets the failing output, phase EXECUTE. It fixes the
//! fault and claims again → phase VERIFY → the report → phase DONE, completed.

use bytes::Bytes;
use serde_json::json;

use crate::effect::Effect;
use crate::fact::{Fact, NodeChange};
use crate::ids::NodeId;
use crate::input::{Envelope, EnvelopeStatus};
use crate::live::Claim;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::words::{ArtifactKind, Expectation, GlobalMode, Phase, RunStatus};

use super::draft::NewArtifact;
use super::tools::{CallPlace, answer_call, complete_call};
use super::{Decision, Draft, Surroundings, schedule};

/// The result of the verification commands.
#[derive(Debug, Clone)]
pub struct VerificationEnd {
    pub ok: bool,
    /// `verification.json`, with the hash of the tree that was verified.
    pub report: Bytes,
    /// The end of the failing output, or the files in conflict.
    pub tail: String,
    /// Names the failing command, its exit code and its masked output, so that the same failure is
    /// recognized.
    pub signature: String,
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
    if draft.run.status != RunStatus::Running {
        reasons.push(format!("the run is {}", draft.run.status));
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(Rejection::NotComplete(reasons))
    }
}

/// Records a claim. Returns whether the run is completed at once, because nothing needs to be
/// verified.
pub(super) fn claim_completion(draft: &mut Draft<'_>, place: CallPlace, summary: &str) -> bool {
    let text = super::turns::shorten(summary);
    draft.record_in(
        place.node,
        place.turn,
        Fact::CompletionClaimed {
            tool: place.tool,
            summary: text,
        },
    );
    if draft.run.settings.verify.is_empty() {
        finish_run(draft, place.node);
        return true;
    }
    draft.record(Fact::PhaseChanged(Phase::Verify));
    draft.perform(Effect::Verify {
        claimer: Some(place.node),
    });
    false
}

/// Ends a verification.
pub fn end_verification(
    run: &Run,
    around: Surroundings<'_>,
    end: &VerificationEnd,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let claim = draft.run.claim.filter(|_| draft.run.phase == Phase::Verify);
    let Claim { node, turn, tool } = claim.ok_or(Rejection::NotVerifying)?;
    let report = NewArtifact {
        kind: ArtifactKind::Report,
        name: "verification.json",
        content: end.report.clone(),
        diff: None,
    };
    // The report comes before the verdict, so that whoever sees the verdict can read the report.
    draft.create_artifact(node, turn, report);
    let place = CallPlace { node, turn, tool };
    let result = if end.ok {
        finish_run(&mut draft, node);
        Ok(json!({"accepted": true}))
    } else {
        reject_claim(&mut draft, node, end);
        Err(format!("verification failed: {}", end.tail))
    };
    complete_call(&mut draft, place, &result);
    answer_call(&mut draft, place, result);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Sends the failing output to the claimer, and lets the run go on.
fn reject_claim(draft: &mut Draft<'_>, claimer: NodeId, end: &VerificationEnd) {
    // The turn that claimed may be over, so the failure also comes as an input that starts another.
    let envelope = daemon_envelope(draft, claimer, claimer, end.tail.clone());
    let failed = Envelope {
        status: Some(EnvelopeStatus {
            ok: false,
            reason: Some("verification failed".to_owned()),
        }),
        ..envelope
    };
    draft.record_for(claimer, Fact::EnvelopeSent(Box::new(failed)));
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

/// Completes the run, after its documents are brought up to date if it has a node for that.
fn finish_run(draft: &mut Draft<'_>, claimer: NodeId) {
    let docs_node = draft
        .run
        .settings
        .docs_node
        .filter(|docs| draft.run.node(*docs).is_some());
    // A plan changes no code, so there is nothing to document.
    match docs_node.filter(|_| draft.run.global_mode == GlobalMode::Implementation) {
        Some(docs) => {
            draft.record(Fact::PhaseChanged(Phase::DocsSync));
            let message = "The run is verified. Bring the documents up to date.".to_owned();
            let envelope = daemon_envelope(draft, claimer, docs, message);
            draft.record_for(claimer, Fact::EnvelopeSent(Box::new(envelope)));
            draft.change_node(docs, NodeChange::InboxCounted);
        }
        None => complete_run(draft),
    }
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
    if docs.is_none_or(|docs| docs.inbox.is_empty() && docs.turn.is_none()) {
        complete_run(draft);
    }
}
