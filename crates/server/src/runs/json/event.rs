//! Events as clients see them. Each kind of fact has one body.

use turnkeep_runtime::approval::{Approval, Resolution};
use turnkeep_runtime::fact::{StallEvidence, TurnStep};
use turnkeep_runtime::ids::{ApprovalId, ToolId};
use turnkeep_runtime::input::InputId;
use turnkeep_runtime::tool::ToolOutcome;
use turnkeep_runtime::usage::UsageReport;
use turnkeep_runtime::words::{NodeStatus, Phase, StallReason};
use turnkeep_runtime::{Event, Fact};
use turnkeep_wire::json::{Hash, Time};
use turnkeep_wire::runs::{self as wire, EventBody, EventView, UuidText};

use super::words::SameWord as _;
use super::{RunPlace, patch, snapshot};

const SILENCE_SUMMARY: &str = "the program has printed nothing for a while";

/// An event of a run.
pub(crate) fn event_view(place: RunPlace<'_>, event: &Event) -> EventView {
    EventView {
        id: UuidText::of(event.id),
        run_id: UuidText::of(place.run),
        ts: Time(event.at),
        seq: Some(event.seq),
        node_id: event.node.map(UuidText::of),
        turn_id: event.turn.map(UuidText::of),
        body: body_of(place, event),
    }
}

fn body_of(place: RunPlace<'_>, event: &Event) -> EventBody {
    match &event.fact {
        Fact::RunCreated(_) => run_patch(patch::whole_run(place, event)),
        Fact::RunConfigured(settings) => {
            run_patch(patch::configured_run(place, event.at, settings))
        }
        Fact::RunStatusChanged {
            status,
            paused_reason,
        } => run_patch(patch::moved_run(event.at, *status, *paused_reason)),
        Fact::RuleAdded(rule) => EventBody::RunPatch {
            patch: patch::touched_run(event.at),
            rule_added: Some(snapshot::rule_view(rule)),
            rule_deleted: None,
        },
        // The snapshot has neither, so only the time changes.
        Fact::RequestNoted | Fact::EndSeen => run_patch(patch::touched_run(event.at)),
        Fact::RuleDeleted(rule) => EventBody::RunPatch {
            patch: patch::touched_run(event.at),
            rule_added: None,
            rule_deleted: Some(UuidText::of(rule)),
        },
        Fact::PhaseChanged(phase) => run_phase(*phase, None),
        Fact::VerificationStarted { verification, .. } => EventBody::RunPhase {
            phase: Phase::Verify.to_wire(),
            verification_failure: None,
            verification_id: Some(UuidText::of(verification)),
        },
        Fact::VerificationFailed { signature } => run_phase(Phase::Execute, Some(signature)),
        Fact::ModesChanged { mode, global_mode } => EventBody::RunMode {
            mode: mode.to_wire(),
            global_mode: global_mode.to_wire(),
        },
        Fact::Stalled(evidence) => EventBody::RunStalled {
            evidence: stall_evidence(evidence),
        },
        Fact::RunDeleted => EventBody::RunDeleted {},
        Fact::NodeAdded(new) => EventBody::NodePatch {
            patch: patch::whole_node(place, event.at, new),
        },
        Fact::NodeChanged { change, shown } => EventBody::NodePatch {
            patch: patch::changed_node(place, event, change, *shown),
        },
        Fact::NodeProgressed { status, summary } => node_progress(*status, summary, None),
        // Both are recorded in the middle of a turn.
        Fact::SilenceNoticed => node_progress(
            NodeStatus::Running,
            SILENCE_SUMMARY,
            Some(wire::ProgressNotice::Silence),
        ),
        Fact::CompletionClaimed { summary, .. } => node_progress(
            NodeStatus::Running,
            summary,
            Some(wire::ProgressNotice::CompletionClaimed),
        ),
        Fact::NodeLogged(text) => EventBody::NodeLog { text: text.clone() },
        Fact::NodeDeleted { dropped } => EventBody::NodeDeleted {
            dropped: input_ids(dropped),
        },
        Fact::EdgeCreated(edge) | Fact::EdgeChanged(edge) => EventBody::EdgeCreated {
            edge: snapshot::edge_view(edge),
        },
        Fact::EdgeDeleted(edge) => EventBody::EdgeDeleted {
            edge_id: UuidText::of(edge),
        },
        Fact::EnvelopeSent(envelope) => EventBody::HandoffSent {
            envelope: snapshot::envelope_view(place, envelope),
        },
        Fact::EnvelopeHeld { envelope, .. } => EventBody::HandoffHeld {
            envelope: snapshot::envelope_view(place, envelope),
        },
        Fact::EnvelopeRefused { envelope, reason } => EventBody::HandoffRefused {
            payload_id: UuidText::of(envelope),
            reason: reason.clone(),
        },
        Fact::MessageSent(message) => EventBody::MessageUser {
            message: snapshot::message_view(place.run, message),
        },
        Fact::AnswerDelta(delta) => EventBody::AnswerDelta {
            delta: delta.clone(),
        },
        Fact::AnswerFinal {
            content,
            interrupted,
        } => answer_final(content, *interrupted),
        Fact::ThinkingDelta(delta) => EventBody::ThinkingDelta {
            delta: delta.clone(),
        },
        Fact::ThinkingFinal(content) => EventBody::ThinkingFinal {
            content: content.clone(),
        },
        Fact::ToolProposed(call) => EventBody::ToolProposed {
            tool: snapshot::tool_view(call),
        },
        Fact::ToolStarted(call) => EventBody::ToolStarted {
            tool: snapshot::tool_view(call),
        },
        Fact::ToolCompleted { tool, outcome } => tool_completed(*tool, outcome),
        Fact::ApprovalRequested(approval) => approval_requested(approval),
        Fact::ApprovalResolved {
            approval,
            resolution,
        } => approval_resolved(*approval, resolution),
        Fact::ArtifactCreated(artifact) => EventBody::ArtifactCreated {
            artifact: snapshot::artifact_view(place, artifact),
        },
        Fact::TurnStepped(step) => step_of(step).into_body(),
        Fact::UsageReported(report) => telemetry_usage(report),
    }
}

fn run_patch(patch: wire::RunPatch) -> EventBody {
    EventBody::RunPatch {
        patch,
        rule_added: None,
        rule_deleted: None,
    }
}

fn run_phase(phase: Phase, verification_failure: Option<&String>) -> EventBody {
    EventBody::RunPhase {
        phase: phase.to_wire(),
        verification_failure: verification_failure.cloned(),
        verification_id: None,
    }
}

fn node_progress(
    status: NodeStatus,
    summary: &str,
    notice: Option<wire::ProgressNotice>,
) -> EventBody {
    EventBody::NodeProgress {
        status: status.to_wire(),
        summary: summary.to_owned(),
        notice,
    }
}

fn answer_final(content: &str, interrupted: bool) -> EventBody {
    EventBody::AnswerFinal {
        content: content.to_owned(),
        status: if interrupted {
            wire::FinalStatus::Interrupted
        } else {
            wire::FinalStatus::Final
        },
    }
}

/// The evidence has the hashes of the last turn; an old event has only the one that was the same.
fn stall_evidence(evidence: &StallEvidence) -> wire::StallEvidence {
    let stall = &evidence.stall;
    let hash_for = |reason| (stall.reason == reason).then_some(stall.hash).flatten();
    wire::StallEvidence {
        reason: stall.reason.to_wire(),
        count: stall.count,
        summaries: evidence.summaries.clone(),
        turn_ids: stall.turns.iter().map(UuidText::of).collect(),
        output_hash: evidence
            .output
            .or(hash_for(StallReason::SameOutput))
            .map(Hash),
        diff_hash: evidence.diff.or(hash_for(StallReason::SameDiff)).map(Hash),
        envelope_hash: hash_for(StallReason::SameEnvelope).map(Hash),
        verification_failure: evidence.verification_failure.clone(),
    }
}

fn tool_completed(tool: ToolId, outcome: &ToolOutcome) -> EventBody {
    let message = outcome.error.clone();
    EventBody::ToolCompleted {
        tool_id: UuidText::of(tool),
        result: wire::ToolResult {
            ok: outcome.ok,
            output: outcome.output.clone(),
            truncated: outcome.truncated.then_some(true),
            artifact_id: outcome.artifact.map(UuidText::of),
        },
        error: message.map(|message| wire::ToolError { message }),
        duration_ms: outcome.duration_ms,
    }
}

/// The envelope has the node and the turn already, so the body leaves both out.
fn approval_requested(approval: &Approval) -> EventBody {
    EventBody::ApprovalRequested {
        approval_id: UuidText::of(approval.id),
        kind: snapshot::approval_kind(approval),
        tool: snapshot::tool_view(&approval.tool),
        context: approval.context.clone(),
        created_at: Time(approval.created_at),
        expires_at: approval.expires_at.map(Time),
        options: snapshot::answer_options(approval),
    }
}

fn approval_resolved(approval: ApprovalId, resolution: &Resolution) -> EventBody {
    EventBody::ApprovalResolved {
        approval_id: UuidText::of(approval),
        resolution: snapshot::resolution_view(resolution),
    }
}

/// A step of a turn with the details that its kind has.
struct Step {
    status: wire::TurnStatus,
    detail: Option<String>,
    consumed: Option<Vec<UuidText>>,
    requeued: Option<Vec<UuidText>>,
    prompt_kind: Option<wire::PromptKind>,
    mode: Option<wire::RunMode>,
    global_mode: Option<wire::GlobalMode>,
    attempt: Option<u32>,
}

impl Step {
    fn plain(status: wire::TurnStatus) -> Self {
        Self {
            status,
            detail: None,
            consumed: None,
            requeued: None,
            prompt_kind: None,
            mode: None,
            global_mode: None,
            attempt: None,
        }
    }

    fn stopped(status: wire::TurnStatus, detail: &str, requeued: &[InputId]) -> Self {
        Self {
            detail: Some(detail.to_owned()),
            requeued: Some(input_ids(requeued)),
            ..Self::plain(status)
        }
    }

    fn into_body(self) -> EventBody {
        EventBody::TurnStatus {
            status: self.status,
            detail: self.detail,
            consumed: self.consumed,
            requeued: self.requeued,
            prompt_kind: self.prompt_kind,
            mode: self.mode,
            global_mode: self.global_mode,
            attempt: self.attempt,
        }
    }
}

fn step_of(step: &TurnStep) -> Step {
    use wire::TurnStatus as Status;
    match step {
        TurnStep::Started {
            cause: _,
            consumed,
            mode,
            global_mode,
            attempt,
        } => Step {
            consumed: Some(input_ids(consumed)),
            mode: Some(mode.to_wire()),
            global_mode: Some(global_mode.to_wire()),
            attempt: Some(*attempt),
            ..Step::plain(Status::Started)
        },
        TurnStep::WaitingForModel { prompt, .. } => Step {
            prompt_kind: Some(prompt.to_wire()),
            ..Step::plain(Status::WaitingForModel)
        },
        TurnStep::ToolPending => Step::plain(Status::ToolPending),
        TurnStep::AwaitingApproval => Step::plain(Status::AwaitingApproval),
        TurnStep::Completed { .. } => Step::plain(Status::Completed),
        TurnStep::Interrupted {
            detail, requeued, ..
        } => Step::stopped(Status::Interrupted, detail, requeued),
        TurnStep::Failed { detail, requeued } => Step::stopped(Status::Failed, detail, requeued),
    }
}

fn input_ids(ids: &[InputId]) -> Vec<UuidText> {
    ids.iter().copied().map(input_id).collect()
}

fn input_id(id: InputId) -> UuidText {
    match id {
        InputId::Message(id) => UuidText::of(id),
        InputId::Envelope(id) => UuidText::of(id),
    }
}

fn telemetry_usage(report: &UsageReport) -> EventBody {
    let usage = &report.usage;
    EventBody::TelemetryUsage {
        usage: wire::TokensView {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens(),
            cached_tokens: (usage.cached_tokens > 0).then_some(usage.cached_tokens),
        },
        cost_usd: (usage.cost_micro_usd > 0).then(|| snapshot::dollars(usage.cost_micro_usd)),
        cause: report.cause.map(input_id),
    }
}
