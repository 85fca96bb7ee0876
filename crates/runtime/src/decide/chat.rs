//! Messages from a person to a node. A message is never lost: it waits in the inbox whatever the
//! state of the run, and reopens a run that had ended.

use crate::approval::Resolution;
use crate::fact::{Fact, NodeChange};
use crate::ids::{ApprovalId, MessageId, NodeId};
use crate::input::Message;
use crate::node::{BlockReason, Node};
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::{Run, RunSettings};
use crate::words::{MessageRole, PausedReason, Phase, RunStatus};

use super::turns::AfterStop;
use super::{Decision, Draft, Surroundings, approvals, find_node, schedule, turns};

/// The longest message.
pub const CHAT_BYTES_MAX: usize = 1 << 20;
/// A title has at most so many characters of the goal's first line.
const TITLE_CHARACTERS_MAX: usize = 80;
const SUPERSEDED: &str = "superseded by a message";

/// A message from a person.
#[derive(Debug, Clone, Copy)]
pub struct Chat<'a> {
    pub content: &'a str,
    /// The node's id or alias. Without one the message goes to the node that leads.
    pub node: Option<&'a str>,
    /// Whether it stops an open turn.
    pub interrupt: bool,
}

/// Sends a message to a node.
pub fn chat(
    run: &Run,
    around: Surroundings<'_>,
    chat: Chat<'_>,
) -> Result<Decision<MessageId>, Rejection> {
    check_content(chat.content)?;
    let mut draft = Draft::new(run, around);
    let node = find_receiver(&draft, chat.node)?;
    // Before the message: clients see the run open before they see who opened it.
    reopen(&mut draft);
    let id = draft.draw_id();
    let message = Message {
        id,
        node,
        role: MessageRole::User,
        content: chat.content.to_owned(),
        interrupt: chat.interrupt,
        created_at: draft.now(),
    };
    draft.record_for(node, Fact::MessageSent(message));
    draft.change_node(node, NodeChange::InboxCounted);
    draft.note_made(MadeId::Message(id));
    set_goal(&mut draft, chat.content);
    // Before the interrupt, which stops only a node that works.
    go_on_after_stall(&mut draft, node);
    if chat.interrupt {
        interrupt_for_message(&mut draft, node);
    }
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(id))
}

fn check_content(content: &str) -> Result<(), Rejection> {
    if content.trim().is_empty() {
        return Err(Rejection::Empty("content"));
    }
    if content.len() > CHAT_BYTES_MAX {
        return Err(Rejection::TooLarge {
            what: "the message",
            bytes: content.len(),
            max: CHAT_BYTES_MAX,
            hint: "put it into a file and name the file",
        });
    }
    Ok(())
}

/// The node that is meant: the named one, else the only orchestrator, else the only node.
fn find_receiver(draft: &Draft<'_>, name: Option<&str>) -> Result<NodeId, Rejection> {
    if let Some(name) = name {
        return find_node(&draft.run, name).map(|node| node.id);
    }
    let nodes: Vec<&Node> = draft.run.nodes().collect();
    let leaders: Vec<&Node> = nodes
        .iter()
        .copied()
        .filter(|node| node.is_orchestrator())
        .collect();
    match (leaders.as_slice(), nodes.as_slice()) {
        ([only], _) | ([], [only]) => Ok(only.id),
        ([], []) => Err(Rejection::NoNodes),
        _ => {
            let names = nodes.iter().map(|node| node.name().to_owned());
            Err(Rejection::AmbiguousNode(names.collect()))
        }
    }
}

/// A run that had ended works again.
pub(super) fn reopen(draft: &mut Draft<'_>) {
    if !matches!(draft.run.status, RunStatus::Completed | RunStatus::Failed) {
        return;
    }
    draft.record(Fact::RunStatusChanged {
        status: RunStatus::Running,
        paused_reason: None,
    });
    // A verification that somebody asked for goes on, and leads to EXECUTE when it ends.
    if draft.run.verification.is_none() {
        draft.record(Fact::PhaseChanged(Phase::Execute));
    }
}

/// The first message is the goal of a run that was created without one. A title that a person chose
/// stays.
fn set_goal(draft: &mut Draft<'_>, content: &str) {
    if draft.run.settings.goal.is_some() {
        return;
    }
    let mut settings = RunSettings {
        goal: Some(content.to_owned()),
        ..(*draft.run.settings).clone()
    };
    if settings.title.is_empty() {
        settings.title = title_of(content);
    }
    draft.record(Fact::RunConfigured(Box::new(settings)));
}

/// The title of a run: the first line of its goal, cut to a length that lists can show.
pub(super) fn title_of(goal: &str) -> String {
    let line = goal.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default()
        .chars()
        .take(TITLE_CHARACTERS_MAX)
        .collect()
}

/// A message is new guidance: a run that was paused because its nodes went in circles goes on.
fn go_on_after_stall(draft: &mut Draft<'_>, node: NodeId) {
    if draft.run.paused_reason == Some(PausedReason::Stall) {
        let stalled: Vec<NodeId> = stalled_nodes(draft);
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Running,
            paused_reason: None,
        });
        for id in stalled {
            draft.change_node(id, NodeChange::Unblocked);
        }
    } else if is_stalled(draft, node) {
        draft.change_node(node, NodeChange::Unblocked);
    }
}

fn stalled_nodes(draft: &Draft<'_>) -> Vec<NodeId> {
    let stalled = draft
        .run
        .nodes()
        .filter(|node| node.block == Some(BlockReason::Stall));
    stalled.map(|node| node.id).collect()
}

fn is_stalled(draft: &Draft<'_>, node: NodeId) -> bool {
    let node = draft.run.node(node);
    node.is_some_and(|node| node.block == Some(BlockReason::Stall))
}

/// Denies the approvals that the node waits for, so that its turn goes on, or stops its turn.
fn interrupt_for_message(draft: &mut Draft<'_>, id: NodeId) {
    let Some(node) = draft.run.node(id) else {
        return;
    };
    let approvals: Vec<ApprovalId> = node.open_approvals.iter().copied().collect();
    let has_turn = node.turn.is_some();
    for approval in &approvals {
        approvals::close(draft, *approval, Resolution::denied(SUPERSEDED));
    }
    if approvals.is_empty() && has_turn {
        let reason = "interrupted by a message";
        turns::interrupt(draft, id, reason, AfterStop::Restart);
    }
}
