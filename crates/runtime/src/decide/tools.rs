//! Calls of the server's own tools by an agent.
//!
//! A call is checked first and then recorded: a refused one leaves no trace, and its error names
//! the fix. A call that needs a person's approval runs when the approval is given; it is checked
//! again then, because the graph may have changed.

use serde_json::{Value, json};

use crate::approval::ApprovalSubject;
use crate::effect::Effect;
use crate::fact::Fact;
use crate::ids::{AgentTurnId, ApprovalId, NodeId, ToolId};
use crate::node::Node;
use crate::orchestration::{CreateEdge, OrchestrationCall, SendHandoff, SpawnNode};
use crate::rejection::Rejection;
use crate::run::Run;
use crate::tool::ToolCall;
use crate::turn::TurnStage;
use crate::verification::CallPlace;
use crate::words::MessageRole;

use super::gates::{self, Delivered};
use super::graph::{EdgeRequest, NodeRequest};
use super::handoffs::{Handoff, RecordedHandoff};
use super::output::{self, ToolResult, TurnPlace, check_open};
use super::verification::Claimed;
use super::{
    Decision, Draft, Surroundings, approvals, graph, handoffs, schedule, turns, verification,
};

/// A call by an agent.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    pub node: NodeId,
    pub turn: AgentTurnId,
    /// The arguments as the agent gave them, for the record.
    pub args: Value,
    pub call: OrchestrationCall,
}

/// What the agent gets at once.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolAnswer {
    /// The result.
    Done(Value),
    /// The outcome comes later, with [`Effect::AnswerToolCall`].
    Pending {
        /// The call that is answered later.
        tool: ToolId,
        /// The approval that it waits for, if it waits for one.
        approval: Option<ApprovalId>,
    },
}

/// Makes a call, or opens the approval that it needs.
pub fn call_tool(
    run: &Run,
    around: Surroundings<'_>,
    request: ToolRequest,
) -> Result<Decision<ToolAnswer>, Rejection> {
    let mut draft = Draft::new(run, around);
    let ToolRequest {
        node,
        turn,
        args,
        call,
    } = request;
    check_open(&draft, node, turn)?;
    let caller = draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    check_not_stopping(caller)?;
    // Before the checks: what the call made already, such as its alias, would be in its way.
    let repeated = caller.made_calls.find_answer(call.tool_name(), &args);
    let needs_approval = match repeated {
        Some(_) => false,
        None => check_call(&draft, caller, &call)?,
    };
    let tool = ToolCall {
        id: draft.draw_id(),
        name: call.tool_name().to_owned(),
        args,
        provider_id: None,
    };
    let place = CallPlace {
        node,
        turn,
        tool: tool.id,
    };
    // Before the approval, which shows the call. A denied call is completed like any other.
    draft.record_in(node, turn, Fact::ToolProposed(tool.clone()));
    if let Some(answer) = repeated {
        draft.record_in(node, turn, Fact::ToolStarted(tool));
        complete_call(&mut draft, place, &Ok(answer.clone()));
        return Ok(draft.finish(ToolAnswer::Done(answer)));
    }
    if needs_approval {
        let context = describe_call(&call);
        let subject = ApprovalSubject::OrchestrationTool(Box::new(call));
        let approval = approvals::request(&mut draft, node, turn, tool, subject, context);
        let approval = Some(approval);
        return Ok(draft.finish(ToolAnswer::Pending {
            tool: place.tool,
            approval,
        }));
    }
    let answer = run_call(&mut draft, place, tool, call)?;
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(answer))
}

/// Rejects calls of a turn that is being stopped: whoever stopped it expects no further changes.
fn check_not_stopping(caller: &Node) -> Result<(), Rejection> {
    let stage = caller.turn.as_ref().map(|turn| &turn.stage);
    if matches!(stage, Some(TurnStage::Interrupting { .. })) {
        return Err(Rejection::TurnStopping);
    }
    Ok(())
}

/// Rejects a call that must not be made. Returns whether it needs a person's approval.
fn check_call(
    draft: &Draft<'_>,
    caller: &Node,
    call: &OrchestrationCall,
) -> Result<bool, Rejection> {
    if call.changes_graph() && !caller.settings.capabilities.spawn_nodes {
        return Err(Rejection::MayNotSpawn);
    }
    match call {
        OrchestrationCall::SpawnNode(spawn) => {
            let request = spawn_request(caller.id, spawn);
            graph::check_request(&draft.run, &request)?;
            if let Some(input) = &spawn.input {
                handoffs::check_message(input)?;
            }
        }
        OrchestrationCall::CreateEdge(edge) => {
            graph::check_edge(&draft.run, &edge_request(edge))?;
        }
        OrchestrationCall::AskUser { question, .. } if question.trim().is_empty() => {
            return Err(Rejection::Empty("question"));
        }
        OrchestrationCall::CompleteRun { .. } => verification::check_claim(draft, caller)?,
        OrchestrationCall::AskUser { .. } | OrchestrationCall::SendHandoff(_) => {}
    }
    // Only an orchestrator can be trusted to change the graph by itself, whatever a node's own
    // settings say.
    let is_trusted =
        caller.is_orchestrator() && !caller.settings.permissions.spawn_requires_approval;
    Ok(call.changes_graph() && !is_trusted)
}

fn describe_call(call: &OrchestrationCall) -> String {
    match call {
        OrchestrationCall::SpawnNode(spawn) => {
            format!("spawns {} ({})", spawn.settings.label, spawn.settings.role)
        }
        OrchestrationCall::CreateEdge(edge) => format!("connects {} to {}", edge.from, edge.to),
        other => other.tool_name().to_owned(),
    }
}

fn spawn_request(parent: NodeId, spawn: &SpawnNode) -> NodeRequest {
    NodeRequest {
        settings: spawn.settings.clone(),
        parent: Some(parent),
    }
}

/// Makes a call that may be made.
fn run_call(
    draft: &mut Draft<'_>,
    place: CallPlace,
    tool: ToolCall,
    call: OrchestrationCall,
) -> Result<ToolAnswer, Rejection> {
    // A refusal below either drops the draft with this event, or completes the call with an error.
    draft.record_in(place.node, place.turn, Fact::ToolStarted(tool.clone()));
    let result = match call {
        OrchestrationCall::SpawnNode(spawn) => spawn_node(draft, place.node, &spawn)?,
        OrchestrationCall::CreateEdge(edge) => create_edge(draft, &edge)?,
        OrchestrationCall::SendHandoff(handoff) => {
            let sent = send_handoff(draft, place, *handoff)?;
            if sent.delivered == Delivered::Held {
                return Ok(pending(place));
            }
            gates::describe_delivery(&draft.run, sent.id, sent.to)
        }
        OrchestrationCall::AskUser { question, options } => {
            let subject = ApprovalSubject::Question { options };
            let CallPlace { node, turn, .. } = place;
            let approval = approvals::request(draft, node, turn, tool, subject, question);
            json!({"pending": true, "approvalId": approval.to_string()})
        }
        OrchestrationCall::CompleteRun { summary } => {
            match verification::claim_completion(draft, place, &summary) {
                Claimed::Accepted => json!({"accepted": true}),
                Claimed::Verifying => return Ok(pending(place)),
            }
        }
    };
    complete_call(draft, place, &Ok(result.clone()));
    Ok(ToolAnswer::Done(result))
}

/// The call waits for a verification.
fn pending(place: CallPlace) -> ToolAnswer {
    ToolAnswer::Pending {
        tool: place.tool,
        approval: None,
    }
}

fn spawn_node(
    draft: &mut Draft<'_>,
    caller: NodeId,
    spawn: &SpawnNode,
) -> Result<Value, Rejection> {
    let id = graph::record_node(draft, spawn_request(caller, spawn))?;
    let alias = &spawn.settings.alias;
    let mut answer = json!({"nodeId": id.to_string(), "alias": alias});
    let (from, to) = (caller.to_string(), id.to_string());
    // Without an edge the input could not be delivered.
    if spawn.connect || spawn.input.is_some() {
        let edge = graph::record_edge(draft, &plain_edge(&from, &to))?;
        answer["edgeId"] = edge.to_string().into();
    }
    if let Some(input) = &spawn.input {
        let handoff = Handoff {
            from: caller,
            to: &to,
            message: input,
            structured: None,
            artifacts: Vec::new(),
            status: None,
            expectation: None,
            reply_to: None,
            context_pack: None,
        };
        handoffs::record_handoff(draft, handoff, None)?;
    }
    Ok(answer)
}

fn plain_edge<'a>(from: &'a str, to: &'a str) -> EdgeRequest<'a> {
    EdgeRequest {
        from,
        to,
        kind: None,
        label: None,
        bidirectional: None,
        gate: None,
    }
}

fn edge_request(edge: &CreateEdge) -> EdgeRequest<'_> {
    EdgeRequest {
        kind: edge.kind,
        label: edge.label.as_deref(),
        bidirectional: edge.bidirectional,
        ..plain_edge(&edge.from, &edge.to)
    }
}

fn create_edge(draft: &mut Draft<'_>, edge: &CreateEdge) -> Result<Value, Rejection> {
    let edge = graph::record_edge(draft, &edge_request(edge))?;
    Ok(json!({"edgeId": edge.to_string()}))
}

fn send_handoff(
    draft: &mut Draft<'_>,
    place: CallPlace,
    handoff: SendHandoff,
) -> Result<RecordedHandoff, Rejection> {
    let request = Handoff {
        from: place.node,
        to: &handoff.to,
        message: &handoff.message,
        structured: handoff.structured,
        artifacts: handoff.artifacts,
        status: handoff.status,
        expectation: handoff.expectation,
        reply_to: handoff.reply_to,
        context_pack: handoff.context_pack,
    };
    handoffs::record_handoff(draft, request, Some(place.tool))
}

/// Makes a call whose approval was given, and answers it.
pub(super) fn run_approved(draft: &mut Draft<'_>, place: CallPlace, call: &OrchestrationCall) {
    let tool = ToolCall {
        id: place.tool,
        name: call.tool_name().to_owned(),
        // The event that proposed the call has them.
        args: Value::Null,
        provider_id: None,
    };
    // The graph may have changed since the call was made.
    let checked = match draft.run.node(place.node) {
        Some(caller) => check_call(draft, caller, call).map(drop),
        None => Err(Rejection::NodeGone(place.node)),
    };
    let ran = checked.and_then(|()| run_call(draft, place, tool, call.clone()));
    match ran {
        Ok(ToolAnswer::Done(result)) => answer_call(draft, place, Ok(result)),
        Ok(ToolAnswer::Pending { .. }) => {}
        Err(rejection) => {
            let result = Err(rejection.to_string());
            complete_call(draft, place, &result);
            answer_call(draft, place, result);
        }
    }
}

/// Ends a call that was denied or has failed.
pub(super) fn refuse_call(draft: &mut Draft<'_>, place: CallPlace, reason: String) {
    let result = Err(reason);
    complete_call(draft, place, &result);
    answer_call(draft, place, result);
}

/// Tells an agent the outcome of a call that it does not wait for any more.
pub fn deliver_outcome(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    result: &Result<Value, String>,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    send_outcome(&mut draft, node, result);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

fn send_outcome(draft: &mut Draft<'_>, node: NodeId, result: &Result<Value, String>) {
    let content = match result {
        Ok(value) => format!("A call that you made earlier is done: {value}"),
        Err(reason) => format!("A call that you made earlier was refused: {reason}"),
    };
    turns::send_message(draft, node, MessageRole::System, content);
}

/// Answers a call. An agent whose turn is over hears the outcome as a message.
pub(super) fn answer_call(draft: &mut Draft<'_>, place: CallPlace, result: Result<Value, String>) {
    let open = draft
        .run
        .node(place.node)
        .and_then(|node| node.turn.as_ref());
    // Another turn of the node does not know of the call.
    if open.is_none_or(|turn| turn.id != place.turn) {
        send_outcome(draft, place.node, &result);
        return;
    }
    draft.perform(Effect::AnswerToolCall {
        node: place.node,
        tool: place.tool,
        result,
    });
}

/// Records the result of a call, unless the turn is over: then the call was completed with it.
pub(super) fn complete_call(
    draft: &mut Draft<'_>,
    place: CallPlace,
    result: &Result<Value, String>,
) {
    let open = draft
        .run
        .node(place.node)
        .and_then(|node| node.turn.as_ref());
    let tool = open.and_then(|turn| turn.open_tools.get(&place.tool));
    let Some(tool) = tool.cloned() else {
        return;
    };
    let result = ToolResult {
        ok: result.is_ok(),
        output: result.as_ref().ok().map(Value::to_string),
        error: result.as_ref().err().cloned(),
    };
    let CallPlace { node, turn, .. } = place;
    output::complete_tool(draft, TurnPlace { node, turn }, &tool, result);
}
