//! What a program reports: in its turn, and between turns.
//!
//! Text, tools and progress belong to the open turn, and a late report of an ended turn is refused.
//! The name of the session, usage and log lines hold for the node, so they are kept at any time.

use serde_json::Value;

use crate::fact::{Fact, TurnStep};
use crate::ids::{AgentTurnId, NodeId};
use crate::input::Input;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::tool::{OpenTool, ToolCall, ToolOutcome};
use crate::turn::{TurnStage, shorten};
use crate::usage::{Usage, UsageReport};
use crate::words::NodeStatus;

use super::{Decision, Draft, Surroundings, limits, long_texts};

/// The most bytes of a tool's output, and of its error, in one event.
const TOOL_TEXT_BYTES_MAX: usize = 32 << 10;

/// Something that a program printed.
#[derive(Debug, Clone)]
pub enum Output {
    /// More text of the answer.
    Answer(String),
    /// A whole message of the answer.
    AnswerFinal(String),
    /// More text of a thought.
    Thinking(String),
    /// A whole thought.
    ThinkingFinal(String),
    /// A tool that the agent wants to use. The program may ask for permission first.
    ToolProposed {
        /// The program's own id of the call.
        provider_id: String,
        /// The name of the tool.
        name: String,
        /// The arguments.
        args: Value,
    },
    /// The program runs the tool.
    ToolStarted {
        /// The program's own id of the call.
        provider_id: String,
    },
    /// The result of a tool.
    ToolCompleted {
        /// The program's own id of the call.
        provider_id: String,
        /// Whether it succeeded.
        ok: bool,
        /// What it printed.
        output: Option<String>,
        /// Why it failed.
        error: Option<String>,
    },
    /// What was used since the last report.
    Usage(Usage),
    /// The name of the session.
    Session(String),
    /// The session cannot be resumed. The next prompt is a full one.
    SessionLost,
    /// What the program does, in a few words.
    Progress(String),
    /// A line of the error output.
    Log(String),
}

impl Output {
    /// Whether it holds for the node also when no turn is open.
    fn outlives_turn(&self) -> bool {
        matches!(
            self,
            Self::Usage(_) | Self::Session(_) | Self::SessionLost | Self::Log(_)
        )
    }
}

/// The turn that a report belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnPlace {
    pub(super) node: NodeId,
    pub(super) turn: AgentTurnId,
}

/// Rejects a report about a turn that is not open any more.
pub(super) fn check_open(
    draft: &Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
) -> Result<(), Rejection> {
    let node = draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    let open = node.turn.as_ref().is_some_and(|open| open.id == turn);
    if open && !draft.run.is_deleted {
        Ok(())
    } else {
        Err(Rejection::TurnOver)
    }
}

/// Records what a program printed in a turn.
pub fn add_output(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    turn: AgentTurnId,
    output: Output,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    match check_open(&draft, node, turn) {
        Ok(()) => record_in_turn(&mut draft, TurnPlace { node, turn }, output),
        // What a turn cost is known after its end, too.
        Err(Rejection::TurnOver) => record_between_turns(&mut draft, node, output)?,
        Err(gone) => return Err(gone),
    }
    Ok(draft.finish(()))
}

/// Records what a program printed while no turn is open. Anything but usage, the session and log
/// lines is refused.
pub fn add_idle_output(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    output: Output,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    record_between_turns(&mut draft, node, output)?;
    Ok(draft.finish(()))
}

fn record_between_turns(
    draft: &mut Draft<'_>,
    node: NodeId,
    output: Output,
) -> Result<(), Rejection> {
    draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    if draft.run.is_deleted || !output.outlives_turn() {
        return Err(Rejection::TurnOver);
    }
    match output {
        Output::Usage(usage) => report_usage(draft, node, None, usage),
        Output::Session(id) => name_session(draft, node, id),
        Output::SessionLost => draft.drop_session(node, true),
        Output::Log(text) => draft.record_for(node, Fact::NodeLogged(text)),
        // `outlives_turn` lets nothing else through.
        _ => {}
    }
    Ok(())
}

fn record_in_turn(draft: &mut Draft<'_>, place: TurnPlace, output: Output) {
    let TurnPlace { node, turn } = place;
    match output {
        Output::Answer(text) => draft.record_in(node, turn, Fact::AnswerDelta(text)),
        Output::AnswerFinal(content) => {
            let fact = Fact::AnswerFinal {
                content: long_texts::cut_answer(draft, place, "answer.txt", content),
                interrupted: false,
            };
            draft.record_in(node, turn, fact);
        }
        Output::Thinking(text) => draft.record_in(node, turn, Fact::ThinkingDelta(text)),
        Output::ThinkingFinal(text) => {
            let text = long_texts::cut_answer(draft, place, "thought.txt", text);
            draft.record_in(node, turn, Fact::ThinkingFinal(text));
        }
        Output::ToolProposed {
            provider_id,
            name,
            args,
        } => {
            let call = ToolCall {
                id: draft.draw_id(),
                name,
                args,
                provider_id: Some(provider_id),
            };
            draft.record_in(node, turn, Fact::ToolProposed(call));
        }
        Output::ToolStarted { provider_id } => {
            if let Some(call) = find_unstarted_tool(draft, node, &provider_id) {
                draft.step_turn(node, turn, TurnStep::ToolPending);
                draft.record_in(node, turn, Fact::ToolStarted(call));
            }
        }
        Output::ToolCompleted {
            provider_id,
            ok,
            output,
            error,
        } => {
            let result = ToolResult { ok, output, error };
            complete_provider_tool(draft, place, &provider_id, result);
        }
        Output::Usage(usage) => report_usage(draft, node, Some(turn), usage),
        Output::Session(id) => name_session(draft, node, id),
        Output::SessionLost => draft.drop_session(node, true),
        Output::Progress(text) => report_progress(draft, place, &text),
        Output::Log(text) => draft.record_in(node, turn, Fact::NodeLogged(text)),
    }
}

fn report_progress(draft: &mut Draft<'_>, place: TurnPlace, text: &str) {
    let node = draft.run.node(place.node);
    let status = node.map_or(NodeStatus::Idle, |node| node.status);
    let summary = shorten(text);
    let fact = Fact::NodeProgressed { status, summary };
    draft.record_in(place.node, place.turn, fact);
}

/// Counts what a turn used for the input that came first: it is why the turn was started.
fn report_usage(draft: &mut Draft<'_>, node: NodeId, turn: Option<AgentTurnId>, usage: Usage) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let cause = open
        .filter(|open| Some(open.id) == turn)
        .and_then(|open| open.consumed.first())
        .map(Input::id);
    let fact = Fact::UsageReported(UsageReport { usage, cause });
    match turn {
        Some(turn) => draft.record_in(node, turn, fact),
        None => draft.record_for(node, fact),
    }
    // At once, not at the end of the turn: other nodes must not start turns meanwhile.
    limits::pause_if_used_up(draft, node);
}

/// The open call with the program's id. `None` if an interrupt or a denial has completed it.
fn find_provider_tool(draft: &Draft<'_>, node: NodeId, provider_id: &str) -> Option<OpenTool> {
    let open = draft.run.node(node)?.turn.as_ref()?;
    let is_meant = |tool: &&OpenTool| tool.call.provider_id.as_deref() == Some(provider_id);
    open.open_tools.values().find(is_meant).cloned()
}

fn find_unstarted_tool(draft: &Draft<'_>, node: NodeId, provider_id: &str) -> Option<ToolCall> {
    let open = find_provider_tool(draft, node, provider_id)?;
    open.started_at.is_none().then_some(open.call)
}

/// How a call ended.
pub(super) struct ToolResult {
    pub(super) ok: bool,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
}

/// Completes the call that the program names.
fn complete_provider_tool(
    draft: &mut Draft<'_>,
    place: TurnPlace,
    provider_id: &str,
    result: ToolResult,
) {
    // A program need not say that it started a tool. One that was denied never ran.
    if result.ok
        && let Some(call) = find_unstarted_tool(draft, place.node, provider_id)
    {
        draft.record_in(place.node, place.turn, Fact::ToolStarted(call));
    }
    let Some(open) = find_provider_tool(draft, place.node, provider_id) else {
        return;
    };
    complete_tool(draft, place, &open, result);
}

/// Records the result of a call that is open.
pub(super) fn complete_tool(
    draft: &mut Draft<'_>,
    place: TurnPlace,
    open: &OpenTool,
    result: ToolResult,
) {
    let began_at = open.started_at.unwrap_or(open.proposed_at);
    let duration_ms = draft.now().0.saturating_sub(began_at.0);
    // Before the cut: half a secret could not be masked.
    let texts = [result.output, result.error].map(|text| text.map(|text| draft.mask(text)));
    let is_long = |text: &String| text.len() > TOOL_TEXT_BYTES_MAX;
    let artifact = texts.iter().flatten().any(is_long).then(|| {
        let both: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
        long_texts::keep_whole(draft, place, "tool-output.txt", both.join("\n"))
    });
    let [output, error] =
        texts.map(|text| text.map(|text| long_texts::cut(text, TOOL_TEXT_BYTES_MAX)));
    let outcome = ToolOutcome {
        ok: result.ok,
        truncated: artifact.is_some(),
        artifact,
        output,
        error,
        duration_ms,
    };
    let tool = open.call.id;
    draft.record_in(
        place.node,
        place.turn,
        Fact::ToolCompleted { tool, outcome },
    );
}

fn name_session(draft: &mut Draft<'_>, id: NodeId, session: String) {
    let Some(node) = draft.run.node(id) else {
        return;
    };
    // A program that is being stopped may name a session that was dropped, and programs repeat the
    // name in every turn.
    let is_known = node.session.id.as_ref() == Some(&session);
    if !is_known && !is_being_stopped(node) {
        draft.name_session(id, session);
    }
}

fn is_being_stopped(node: &Node) -> bool {
    let stage = node.turn.as_ref().map(|turn| &turn.stage);
    matches!(stage, Some(TurnStage::Interrupting { .. }))
}
