//! Approvals: a program asks, a rule or a person answers, and the program hears it.

use serde_json::Value;

use crate::approval::{Approval, ApprovalSubject, Resolution, Rule, RuleMatcher};
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, NodeId};
use crate::node::BlockReason;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::tool::ToolCall;
use crate::words::{Provider, Scope, Verdict};

use super::tools::{self, CallPlace};
use super::{Decision, Draft, Surroundings, schedule, turns};

/// A program that asks whether it may use a tool.
#[derive(Debug, Clone)]
pub struct Permission {
    pub node: NodeId,
    pub turn: AgentTurnId,
    pub tool_name: String,
    pub args: Value,
    /// The program's own id of the call.
    pub provider_id: Option<String>,
    /// One sentence for the person who decides.
    pub context: String,
}

/// What became of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// A rule allows the call.
    AllowedByRule,
    /// A person must decide.
    Waits(ApprovalId),
}

/// Records that a program asks for permission.
pub fn ask_permission(
    run: &Run,
    around: Surroundings<'_>,
    permission: Permission,
) -> Result<Decision<PermissionAnswer>, Rejection> {
    let mut draft = Draft::new(run, around);
    let Permission { node, turn, .. } = permission;
    turns::check_open(&draft, node, turn)?;
    let call = propose(&mut draft, &permission);
    if draft.run.rules.iter().any(|rule| rule.answers(node, &call)) {
        draft.record_in(node, turn, Fact::ToolStarted(call.id));
        let resolution = approved_once();
        draft.perform(Effect::AnswerPermission {
            node,
            call,
            resolution,
        });
        return Ok(draft.finish(PermissionAnswer::AllowedByRule));
    }
    let subject = ApprovalSubject::ProviderTool;
    let approval = request(&mut draft, node, turn, call, subject, permission.context);
    Ok(draft.finish(PermissionAnswer::Waits(approval)))
}

fn approved_once() -> Resolution {
    Resolution {
        verdict: Verdict::Approved,
        modified_args: None,
        reason: None,
        scope: Scope::Once,
    }
}

/// The call that the program asks about: one that it proposed before, or a new one.
fn propose(draft: &mut Draft<'_>, permission: &Permission) -> ToolCall {
    let open = draft
        .run
        .node(permission.node)
        .and_then(|node| node.turn.as_ref());
    let mut tools = open.into_iter().flat_map(|turn| turn.open_tools.values());
    let known = tools.find(|tool| {
        permission.provider_id.is_some() && tool.call.provider_id == permission.provider_id
    });
    if let Some(known) = known {
        return known.call.clone();
    }
    let call = ToolCall {
        id: draft.draw_id(),
        name: permission.tool_name.clone(),
        args: permission.args.clone(),
        provider_id: permission.provider_id.clone(),
    };
    draft.record_in(
        permission.node,
        permission.turn,
        Fact::ToolProposed(call.clone()),
    );
    call
}

/// Opens an approval. Everything but a question blocks the node.
pub(super) fn request(
    draft: &mut Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
    tool: ToolCall,
    subject: ApprovalSubject,
    context: String,
) -> ApprovalId {
    let wait_ms = draft.run.settings.limits.approval_ms;
    let approval = Approval {
        id: draft.draw_id(),
        node,
        turn,
        tool,
        subject,
        context: context.clone(),
        created_at: draft.now(),
        expires_at: (wait_ms > 0).then(|| turnkeep_types::Timestamp(draft.now().0 + wait_ms)),
    };
    let (id, blocks) = (approval.id, approval.blocks_node());
    draft.record_in(node, turn, Fact::ApprovalRequested(Box::new(approval)));
    if blocks {
        draft.step_turn(node, turn, TurnStep::AwaitingApproval);
        let reason = BlockReason::Approvals;
        let summary = format!("waits for approval: {context}");
        draft.change_node(node, NodeChange::Blocked { reason, summary });
    }
    // A person may look elsewhere; a desktop or webhook notification calls them.
    draft.perform(Effect::Notify {
        approval: Some(id),
        text: context,
    });
    id
}

/// Answers an approval for a person. The first answer counts.
pub fn resolve(
    run: &Run,
    around: Surroundings<'_>,
    id: ApprovalId,
    resolution: Resolution,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let Some(approval) = draft.run.approvals.get(&id).cloned() else {
        let earlier = draft.archive.resolution(id).cloned();
        return Err(earlier.map_or(Rejection::UnknownApproval(id), |earlier| {
            Rejection::AlreadyResolved(Box::new(earlier))
        }));
    };
    check_resolution(&draft, &approval, &resolution)?;
    // The rule comes before the answer, so that it holds for whatever the answer sets off.
    add_rule(&mut draft, &approval, &resolution);
    close(&mut draft, id, resolution);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

fn check_resolution(
    draft: &Draft<'_>,
    approval: &Approval,
    resolution: &Resolution,
) -> Result<(), Rejection> {
    if resolution.verdict != Verdict::Modified {
        return Ok(());
    }
    if resolution.modified_args.is_none() {
        return Err(Rejection::NoModifiedArgs);
    }
    let node = draft
        .run
        .node(approval.node)
        .ok_or(Rejection::NodeGone(approval.node))?;
    match &approval.subject {
        // codex takes a yes or a no, but no other arguments.
        ApprovalSubject::ProviderTool if node.settings.provider == Provider::Codex => {
            Err(Rejection::CannotModify(node.program().to_owned()))
        }
        ApprovalSubject::OrchestrationTool(call) => {
            Err(Rejection::CannotModify(call.tool_name().to_owned()))
        }
        ApprovalSubject::ProviderTool | ApprovalSubject::Question { .. } => Ok(()),
    }
}

/// A wider scope makes a rule for later calls like this one.
fn add_rule(draft: &mut Draft<'_>, approval: &Approval, resolution: &Resolution) {
    if resolution.scope == Scope::Once || resolution.verdict != Verdict::Approved {
        return;
    }
    let Some(matcher) = RuleMatcher::for_call(&approval.tool) else {
        return;
    };
    let rule = Rule {
        id: draft.draw_id(),
        node: (resolution.scope == Scope::Node).then_some(approval.node),
        tool: approval.tool.name.clone(),
        matcher,
        created_at: draft.now(),
    };
    draft.record(Fact::RuleAdded(rule));
}

/// Records the answer, lets the node go on when nothing else is open, and tells the program.
pub(super) fn close(draft: &mut Draft<'_>, id: ApprovalId, resolution: Resolution) {
    let Some(approval) = draft.run.approvals.get(&id).cloned() else {
        return;
    };
    let (node, turn, tool) = (approval.node, approval.turn, approval.tool.id);
    let fact = Fact::ApprovalResolved {
        approval: id,
        resolution: resolution.clone(),
    };
    draft.record_in(node, turn, fact);
    unblock_if_free(draft, node);
    match approval.subject {
        ApprovalSubject::ProviderTool => {
            if resolution.verdict != Verdict::Denied {
                draft.record_in(node, turn, Fact::ToolStarted(tool));
            }
            draft.perform(Effect::AnswerPermission {
                node,
                call: approval.tool.clone(),
                resolution,
            });
        }
        ApprovalSubject::OrchestrationTool(ref call) => {
            let place = CallPlace { node, turn, tool };
            if resolution.verdict == Verdict::Denied {
                let reason = resolution.reason;
                let reason = reason.unwrap_or_else(|| "denied by the user".to_owned());
                tools::refuse_call(draft, place, reason);
            } else {
                tools::run_approved(draft, place, call);
            }
        }
        ApprovalSubject::Question { .. } => turns::deliver_answer(draft, node, &resolution),
    }
}

fn unblock_if_free(draft: &mut Draft<'_>, id: NodeId) {
    let is_free = draft.run.node(id).is_some_and(|node| {
        node.open_approvals.is_empty() && node.block == Some(BlockReason::Approvals)
    });
    if is_free {
        draft.change_node(id, NodeChange::Unblocked);
    }
}
