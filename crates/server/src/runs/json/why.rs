//! Why a run does not go on, as clients see it.

use turnkeep_runtime::hold::Hold;
use turnkeep_runtime::waits::{Explanation, Owner, Wait, WaitReason};
use turnkeep_types::Timestamp;
use turnkeep_wire::json::Time;
use turnkeep_wire::runs::{self as wire, UuidText, WaitKind};

use super::words::SameWord;

/// An explanation, with the age of each wait.
pub(crate) fn why_graph(explanation: &Explanation, now: Timestamp) -> wire::WhyGraph {
    let waits = explanation.waits.iter();
    let deadlocks = explanation.deadlocks.iter();
    wire::WhyGraph {
        waits: waits.map(|wait| wait_view(wait, now)).collect(),
        root_causes: root_causes(&explanation.waits),
        deadlocks: deadlocks
            .map(|circle| circle.iter().map(UuidText::of).collect())
            .collect(),
    }
}

/// The waits that end the chains: no other node can end them. A node without input stops only a run
/// in which nothing else waits.
fn root_causes(waits: &[Wait]) -> Vec<u64> {
    let is_end = |wait: &Wait| !matches!(wait.owner, Owner::Node(_));
    let is_idle = |wait: &Wait| wait.reason == WaitReason::NoInput;
    let all_idle = waits.iter().all(is_idle);
    let numbered = (0..).zip(waits);
    numbered
        .filter(|(_, wait)| is_end(wait) && (all_idle || !is_idle(wait)))
        .map(|(place, _)| place)
        .collect()
}

fn wait_view(wait: &Wait, now: Timestamp) -> wire::WaitView {
    let view = wire::WaitView {
        reason: kind_of(&wait.reason),
        since: Time(wait.since),
        age_ms: now.0.saturating_sub(wait.since.0),
        owner: owner_view(&wait.owner),
        node_id: wait.node.map(UuidText::of),
        run_status: None,
        paused_reason: None,
        approval_id: None,
        payload_id: None,
        turn_id: None,
        detail: None,
        paths: None,
        until: None,
    };
    match &wait.reason {
        WaitReason::RunStopped { status, paused } => wire::WaitView {
            run_status: Some(status.to_wire()),
            paused_reason: paused.map(SameWord::to_wire),
            ..view
        },
        WaitReason::Approval(id) | WaitReason::Question(id) => wire::WaitView {
            approval_id: Some(UuidText::of(id)),
            ..view
        },
        WaitReason::Reply(question) => wire::WaitView {
            payload_id: Some(UuidText::of(question)),
            ..view
        },
        WaitReason::Failure { turn, text } => wire::WaitView {
            turn_id: Some(UuidText::of(turn)),
            detail: Some(text.clone()),
            ..view
        },
        WaitReason::Violation(paths) => wire::WaitView {
            paths: Some(paths.iter().cloned().collect()),
            ..view
        },
        WaitReason::Held(Hold::FanIn { until } | Hold::RetryAt(until)) => wire::WaitView {
            until: Some(Time(*until)),
            ..view
        },
        WaitReason::Verification
        | WaitReason::NoNodes
        | WaitReason::NoInput
        | WaitReason::Preparing
        | WaitReason::Working
        | WaitReason::Interrupting
        | WaitReason::Stall
        | WaitReason::Held(_) => view,
    }
}

fn kind_of(reason: &WaitReason) -> WaitKind {
    match reason {
        WaitReason::RunStopped { .. } => WaitKind::RunStopped,
        WaitReason::Verification => WaitKind::Verification,
        WaitReason::NoNodes => WaitKind::NoNodes,
        WaitReason::NoInput => WaitKind::NoInput,
        WaitReason::Preparing => WaitKind::Preparing,
        WaitReason::Working => WaitKind::Working,
        WaitReason::Interrupting => WaitKind::Interrupting,
        WaitReason::Approval(_) => WaitKind::Approval,
        WaitReason::Question(_) => WaitKind::Question,
        WaitReason::Stall => WaitKind::Stall,
        WaitReason::Failure { .. } => WaitKind::Failure,
        WaitReason::Violation(_) => WaitKind::Violation,
        WaitReason::Reply(_) => WaitKind::Reply,
        WaitReason::Held(hold) => kind_of_hold(hold),
    }
}

fn kind_of_hold(hold: &Hold) -> WaitKind {
    match hold {
        Hold::RunStopped => WaitKind::RunStopped,
        Hold::TurnOpen => WaitKind::TurnOpen,
        Hold::Blocked => WaitKind::Blocked,
        Hold::NoInput => WaitKind::NoInput,
        Hold::Interrupted => WaitKind::Interrupted,
        Hold::AwaitsReplies(_) => WaitKind::Reply,
        Hold::FanIn { .. } => WaitKind::FanIn,
        Hold::RetryAt(_) => WaitKind::RetryAt,
        Hold::ProgramParked => WaitKind::ProgramParked,
        Hold::RunFull => WaitKind::RunFull,
        Hold::ServerFull => WaitKind::ServerFull,
        Hold::ProgramFull => WaitKind::ProgramFull,
    }
}

fn owner_view(owner: &Owner) -> wire::OwnerView {
    let view = |kind| wire::OwnerView {
        kind,
        node_id: None,
        program: None,
    };
    match owner {
        Owner::Person => view(wire::OwnerKind::Person),
        Owner::Daemon => view(wire::OwnerKind::Daemon),
        Owner::Node(node) => wire::OwnerView {
            node_id: Some(UuidText::of(node)),
            ..view(wire::OwnerKind::Node)
        },
        Owner::Program(program) => wire::OwnerView {
            program: Some(program.clone()),
            ..view(wire::OwnerKind::Program)
        },
    }
}
