//! Approvals: a program asks, a rule or a person answers, and the program hears it.

use std::sync::Arc;

use serde_json::Value;

use crate::approval::{self, Approval, ApprovalSubject, Resolution, Rule, RuleMatcher};
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, NodeId, RuleId};
use crate::live::LiveRun;
use crate::node::BlockReason;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::tool::{ToolCall, ToolOutcome};
use crate::turn::TurnStage;
use crate::verification::CallPlace;
use crate::words::{GlobalMode, Provider, Scope, Verdict};

use super::output::check_open;
use super::turns::AfterStop;
use super::{Decision, Draft, Surroundings, chat, schedule, tools, turns};

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
    /// Whether the program can remember a yes for the rest of its session.
    pub can_allow_always: bool,
}

/// What became of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// A rule allows the call.
    AllowedByRule,
    /// A person must decide.
    Waits(ApprovalId),
    /// The turn is being stopped, or the node may not do it.
    Denied,
}

/// Records that a program asks for permission.
pub fn ask_permission(
    run: &Run,
    around: Surroundings<'_>,
    permission: Permission,
) -> Result<Decision<PermissionAnswer>, Rejection> {
    let mut draft = Draft::new(run, around);
    let Permission { node, turn, .. } = permission;
    check_open(&draft, node, turn)?;
    let call = propose(&mut draft, &permission);
    if is_stopping(&draft, node) {
        deny_at_once(&mut draft, node, turn, call, "the turn is being stopped");
        return Ok(draft.finish(PermissionAnswer::Denied));
    }
    // Before the rules: a rule for the whole run must not give a node a right that it lacks.
    // The question may say more than the call that was proposed before.
    let is_command = [&call.args, &permission.args]
        .into_iter()
        .any(approval::runs_command);
    if is_command && !may_run_commands(&draft, node) {
        let reason = "this node may not run commands (`runCommands` is false)";
        deny_at_once(&mut draft, node, turn, call, reason);
        return Ok(draft.finish(PermissionAnswer::Denied));
    }
    if is_allowed_by_rule(&draft, node, &call) {
        draft.step_turn(node, turn, TurnStep::ToolPending);
        draft.record_in(node, turn, Fact::ToolStarted(call.clone()));
        let resolution = approved_once();
        draft.perform(Effect::AnswerPermission {
            node,
            call,
            resolution,
        });
        return Ok(draft.finish(PermissionAnswer::AllowedByRule));
    }
    let subject = ApprovalSubject::ProviderTool {
        can_allow_always: permission.can_allow_always,
    };
    let approval = request(&mut draft, node, turn, call, subject, permission.context);
    Ok(draft.finish(PermissionAnswer::Waits(approval)))
}

/// Whether a rule allows a call. The mode of the turn counts, not that of the run: a change of the
/// mode holds from the next turn on.
fn is_allowed_by_rule(draft: &Draft<'_>, node: NodeId, call: &ToolCall) -> bool {
    let mode = mode_of_turn(draft, node);
    let mut rules = draft.run.rules.iter();
    rules.any(|rule| rule.answers(node, mode, call))
}

fn mode_of_turn(draft: &Draft<'_>, node: NodeId) -> GlobalMode {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    open.map_or(draft.run.global_mode, |turn| turn.global_mode)
}

fn is_stopping(draft: &Draft<'_>, node: NodeId) -> bool {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    open.is_some_and(|turn| matches!(turn.stage, TurnStage::Interrupting { .. }))
}

fn may_run_commands(draft: &Draft<'_>, node: NodeId) -> bool {
    let node = draft.run.node(node);
    node.is_some_and(|node| node.settings.capabilities.run_commands)
}

/// Denies a call without asking a person. In a turn that is being stopped a question would block the
/// node, and the program would not end before it is answered.
fn deny_at_once(
    draft: &mut Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
    call: ToolCall,
    reason: &str,
) {
    let (tool, outcome) = (call.id, ToolOutcome::abandoned(reason));
    draft.record_in(node, turn, Fact::ToolCompleted { tool, outcome });
    draft.perform(Effect::AnswerPermission {
        node,
        call,
        resolution: Resolution::denied(reason),
    });
}

/// A program that does not wait for a permission any more.
#[derive(Debug, Clone)]
pub struct WithdrawnPermission {
    pub node: NodeId,
    pub turn: AgentTurnId,
    /// The program's own id of the call.
    pub provider_id: String,
    /// Why, for the record.
    pub reason: String,
}

/// Denies the approval of a call that the program has given up. An answer would reach no one, and the
/// node would wait for it.
pub fn withdraw_permission(
    run: &Run,
    around: Surroundings<'_>,
    withdrawn: &WithdrawnPermission,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let is_meant = |approval: &Approval| {
        let provider_id = approval.tool.provider_id.as_ref();
        approval.turn == withdrawn.turn
            && matches!(approval.subject, ApprovalSubject::ProviderTool { .. })
            && provider_id == Some(&withdrawn.provider_id)
    };
    let mut open = draft.run.approvals.values();
    let found = open.find(|approval| is_meant(approval));
    let id = found.map(|approval| approval.id);
    let id = id.ok_or(Rejection::NoPermissionAsked)?;
    close(&mut draft, id, Resolution::denied(&withdrawn.reason));
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Denies all approvals of a node that is deleted. Unlike other answers these reach no one, so they
/// make no message.
pub(super) fn withdraw_all(draft: &mut Draft<'_>, node: NodeId, reason: &str) {
    let approvals = draft.run.approvals.values();
    let of_node = approvals.filter(|approval| approval.node == node);
    let open: Vec<Arc<Approval>> = of_node.cloned().collect();
    for approval in open {
        let resolved = Fact::ApprovalResolved {
            approval: approval.id,
            resolution: Resolution::denied(reason),
        };
        draft.record_in(node, approval.turn, resolved);
    }
    unblock_if_free(draft, node);
}

fn approved_once() -> Resolution {
    Resolution {
        verdict: Verdict::Approved,
        modified_args: None,
        reason: None,
        scope: Scope::Once,
        // Only the program gets this answer: a call that a rule allows opens no approval.
        by: None,
    }
}

/// The call that the program asks about: one that it proposed before, or a new one.
fn propose(draft: &mut Draft<'_>, permission: &Permission) -> ToolCall {
    let open = draft
        .run
        .node(permission.node)
        .and_then(|node| node.turn.as_ref());
    let mut tools = open.into_iter().flat_map(|turn| turn.open_tools.values());
    // Some programs announce a call before they ask about it.
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
    record_resolution(&mut draft, id, resolution)?;
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Answers an approval for a person and stops the turn that asked. It is one decision, so that the
/// program cannot go on between the two.
pub fn resolve_and_interrupt(
    run: &Run,
    around: Surroundings<'_>,
    id: ApprovalId,
    resolution: Resolution,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    let approval = record_resolution(&mut draft, id, resolution)?;
    let node = draft.run.node(approval.node);
    // A question may outlive its turn, and a later turn must not be stopped for it.
    let is_open = node.and_then(|node| node.turn.as_ref());
    if is_open.is_some_and(|turn| turn.id == approval.turn) {
        let reason = "interrupted by the user";
        turns::interrupt(&mut draft, approval.node, reason, AfterStop::Hold);
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// Whether an answer to an approval may bring other arguments. `fixed_programs` are as in
/// [`check_changed_args`].
pub fn takes_changed_args(run: &LiveRun, approval: &Approval, fixed_programs: &[String]) -> bool {
    match approval.subject {
        ApprovalSubject::Question { .. } => true,
        ApprovalSubject::OrchestrationTool(_) => false,
        ApprovalSubject::ProviderTool { .. } => run.node(approval.node).is_some_and(|node| {
            let is_fixed = |program: &String| program == node.program();
            !has_fixed_args(node.settings.provider) && !fixed_programs.iter().any(is_fixed)
        }),
    }
}

/// Whether all programs of this kind take a yes or a no, but no other arguments.
fn has_fixed_args(provider: Provider) -> bool {
    matches!(provider, Provider::Codex | Provider::Gemini)
}

/// Rejects changed arguments for a program that takes a yes or a no, but no other arguments.
/// `fixed_programs` names those programs: only the server knows the protocols of the user's own ones.
/// Whatever else is wrong with an answer, [`resolve`] says.
pub fn check_changed_args(
    run: &Run,
    id: ApprovalId,
    resolution: &Resolution,
    fixed_programs: &[String],
) -> Result<(), Rejection> {
    let args = resolution.modified_args.as_ref();
    let changes = resolution.verdict == Verdict::Modified && args.is_some_and(Value::is_object);
    let approval = run.live.approvals.get(&id).filter(|_| changes);
    let asked = approval
        .filter(|approval| matches!(approval.subject, ApprovalSubject::ProviderTool { .. }));
    match asked.and_then(|approval| run.live.node(approval.node)) {
        Some(node)
            if fixed_programs
                .iter()
                .any(|program| program == node.program()) =>
        {
            Err(Rejection::CannotModify(node.program().to_owned()))
        }
        _ => Ok(()),
    }
}

fn record_resolution(
    draft: &mut Draft<'_>,
    id: ApprovalId,
    mut resolution: Resolution,
) -> Result<Arc<Approval>, Rejection> {
    let Some(approval) = draft.run.approvals.get(&id).cloned() else {
        let earlier = draft.archive.resolution(id).cloned();
        return Err(earlier.map_or(Rejection::UnknownApproval(id), |earlier| {
            Rejection::AlreadyResolved(Box::new(earlier))
        }));
    };
    // A refused answer leaves the approval open, so that the person can give another one.
    check_arguments(draft, &approval, &resolution)?;
    // An empty object stands for none in the other answers.
    resolution.modified_args = resolution
        .modified_args
        .filter(|_| resolution.verdict == Verdict::Modified);
    check_scope(&approval, &resolution)?;
    // The rule comes before the answer, so that it holds for whatever the answer sets off.
    add_rule(draft, &approval, &resolution);
    // An answer is a message to the agent, and reopens a run as any other does.
    let is_question = matches!(approval.subject, ApprovalSubject::Question { .. });
    if is_question && resolution.verdict != Verdict::Denied {
        chat::reopen(draft);
    }
    close(draft, id, resolution);
    Ok(approval)
}

/// Deletes a rule. Later calls like it are asked about again.
pub fn delete_rule(
    run: &Run,
    around: Surroundings<'_>,
    id: RuleId,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    if !draft.run.rules.iter().any(|rule| rule.id == id) {
        return Err(Rejection::UnknownRule(id));
    }
    draft.record(Fact::RuleDeleted(id));
    Ok(draft.finish(()))
}

fn check_arguments(
    draft: &Draft<'_>,
    approval: &Approval,
    resolution: &Resolution,
) -> Result<(), Rejection> {
    let args = resolution.modified_args.as_ref();
    if resolution.verdict != Verdict::Modified {
        // Somebody who changes a call must not find that it ran unchanged.
        return match args {
            Some(args) if !is_nothing(args) => Err(Rejection::UnusedModifiedArgs),
            _ => Ok(()),
        };
    }
    // Arguments are always an object; a program would not take anything else, and would wait.
    let Some(args) = args.filter(|args| args.is_object()) else {
        return Err(Rejection::NoModifiedArgs);
    };
    let node = draft
        .run
        .node(approval.node)
        .ok_or(Rejection::NodeGone(approval.node))?;
    match &approval.subject {
        ApprovalSubject::ProviderTool { .. } if has_fixed_args(node.settings.provider) => {
            Err(Rejection::CannotModify(node.program().to_owned()))
        }
        ApprovalSubject::OrchestrationTool(call) => {
            Err(Rejection::CannotModify(call.tool_name().to_owned()))
        }
        ApprovalSubject::Question { .. } if args.get("answer").is_none_or(is_nothing) => {
            Err(Rejection::NoAnswer)
        }
        ApprovalSubject::ProviderTool { .. } | ApprovalSubject::Question { .. } => Ok(()),
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The scopes that a person may give an approval of the call as it is.
pub fn possible_scopes(approval: &Approval) -> Vec<Scope> {
    // An answer to a question holds for that question alone.
    if matches!(approval.subject, ApprovalSubject::Question { .. }) {
        return vec![Scope::Once];
    }
    let is_possible = |scope: &Scope| {
        let approved = Resolution {
            scope: *scope,
            ..approved_once()
        };
        check_scope(approval, &approved).is_ok()
    };
    Scope::ALL.iter().copied().filter(is_possible).collect()
}

/// Rejects a wider scope that nothing could keep. A person who gives it relies on it.
fn check_scope(approval: &Approval, resolution: &Resolution) -> Result<(), Rejection> {
    let has_subject = !matches!(approval.subject, ApprovalSubject::Question { .. });
    let is_lasting = resolution.is_lasting_consent() && has_subject;
    if !is_lasting || lasting_matcher(approval, resolution).is_some() {
        return Ok(());
    }
    // The program's own memory is that of one node, and it remembers the call that it asked about.
    let can_remember = matches!(
        approval.subject,
        ApprovalSubject::ProviderTool {
            can_allow_always: true
        }
    );
    match (can_remember, resolution.verdict, resolution.scope) {
        (true, Verdict::Approved, Scope::Node) => Ok(()),
        (true, Verdict::Approved, _) => Err(Rejection::NoRulePossible {
            instead: "approve it once, or for this node (`node`)",
        }),
        _ => Err(Rejection::NoRulePossible {
            instead: "approve it once",
        }),
    }
}

/// What later calls must have in common with an approved one, if its approval is to last.
fn lasting_matcher(approval: &Approval, resolution: &Resolution) -> Option<RuleMatcher> {
    let is_of_program = matches!(approval.subject, ApprovalSubject::ProviderTool { .. });
    (is_of_program && resolution.is_lasting_consent())
        .then(|| RuleMatcher::for_args(allowed_args(approval, resolution)))?
}

/// The arguments that a person allows: those of the call, unless the person has changed them.
fn allowed_args<'a>(approval: &'a Approval, resolution: &'a Resolution) -> &'a Value {
    let changed = resolution.modified_args.as_ref();
    changed.unwrap_or(&approval.tool.args)
}

/// A wider scope makes a rule for later calls like this one. Where none can be made, the program
/// remembers the answer.
fn add_rule(draft: &mut Draft<'_>, approval: &Approval, resolution: &Resolution) {
    let Some(matcher) = lasting_matcher(approval, resolution) else {
        return;
    };
    let mode = mode_of_turn(draft, approval.node);
    let rule = Rule {
        id: draft.draw_id(),
        node: (resolution.scope == Scope::Node).then_some(approval.node),
        tool: approval.tool.name.clone(),
        matcher,
        created_at: draft.now(),
        holds_in_planning: mode == GlobalMode::Planning,
    };
    draft.record(Fact::RuleAdded(rule));
}

/// Records the answer, lets the node go on when nothing else is open, and tells the program.
pub(super) fn close(draft: &mut Draft<'_>, id: ApprovalId, resolution: Resolution) {
    // Closing one approval may close others with it.
    let Some(approval) = draft.run.approvals.get(&id).cloned() else {
        return;
    };
    let (node, turn, tool) = (approval.node, approval.turn, approval.tool.id);
    let fact = Fact::ApprovalResolved {
        approval: id,
        resolution: resolution.clone(),
    };
    draft.record_in(node, turn, fact);
    // Before the tool starts: clients show the node at work from then on.
    unblock_if_free(draft, node);
    match approval.subject {
        ApprovalSubject::ProviderTool { .. } => {
            if resolution.verdict != Verdict::Denied {
                let args = resolution.modified_args.clone();
                let call = ToolCall {
                    args: args.unwrap_or_else(|| approval.tool.args.clone()),
                    ..approval.tool.clone()
                };
                draft.record_in(node, turn, Fact::ToolStarted(call));
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
