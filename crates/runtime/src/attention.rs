//! What waits for a person, oldest first.

use turnkeep_types::Timestamp;

use crate::ids::{AgentTurnId, ApprovalId, NodeId};
use crate::live::LiveRun;
use crate::node::{BlockReason, Node};
use crate::usage::BudgetLevel;
use crate::waits::list_deadlocks;
use crate::words::NodeStatus;

/// The subject of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttentionKind {
    /// A call waits for a decision.
    Approval(ApprovalId),
    /// An agent asked something.
    Question(ApprovalId),
    /// A node goes in circles.
    Stall,
    /// Nodes wait for each other's replies. The item names the first of them.
    Deadlock,
    /// A person stopped a turn before its program had read the inputs, and they wait since then.
    Held,
    /// The last turn of a node failed.
    Failure(AgentTurnId),
    /// A node wrote files that it may not write.
    Violation(AgentTurnId),
    /// Most or all of the budget is used.
    Budget(BudgetLevel),
    /// The run is completed or has failed.
    Finished,
}

/// One thing that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttentionItem {
    pub kind: AttentionKind,
    pub node: Option<NodeId>,
    pub since: Timestamp,
    pub summary: String,
}

/// Everything in a run that waits for a person. Once a person has seen how it ended, only what needs an
/// answer is left: a failed node or a used budget of a run that is over holds up nothing.
pub fn list_attention(run: &LiveRun) -> Vec<AttentionItem> {
    let approvals = run.approvals.values().map(|approval| AttentionItem {
        kind: if approval.blocks_node() {
            AttentionKind::Approval(approval.id)
        } else {
            AttentionKind::Question(approval.id)
        },
        node: Some(approval.node),
        since: approval.created_at,
        summary: approval.context.clone(),
    });
    let is_over = run.has_ended() && run.is_end_seen;
    let nodes = run.nodes().flat_map(items_of_node);
    let nodes = nodes.filter(|item| !is_over || needs_answer(&item.kind));
    // A stable order for equal times: approvals first, because an agent waits for them.
    let of_run = deadlock_items(run).into_iter().chain(items_of_run(run));
    let of_run = of_run.filter(|_| !is_over);
    let mut items: Vec<AttentionItem> = approvals.chain(nodes).chain(of_run).collect();
    items.sort_by_key(|item| item.since);
    items
}

/// Whether only a decision of a person ends it.
fn needs_answer(kind: &AttentionKind) -> bool {
    match kind {
        AttentionKind::Approval(_) | AttentionKind::Question(_) | AttentionKind::Violation(_) => {
            true
        }
        AttentionKind::Stall
        | AttentionKind::Deadlock
        | AttentionKind::Held
        | AttentionKind::Failure(_)
        | AttentionKind::Budget(_)
        | AttentionKind::Finished => false,
    }
}

fn items_of_node(node: &Node) -> Vec<AttentionItem> {
    let item = |kind, since, text: &str| AttentionItem {
        kind,
        node: Some(node.id),
        since,
        summary: format!("{}: {text}", node.name()),
    };
    let state = kind_of_state(node).map(|kind| {
        let text = match kind {
            AttentionKind::Held => describe_held(node.inbox.len()),
            _ => node.summary.clone(),
        };
        item(kind, node.status_since, &text)
    });
    let budget = budget_item(node.budget_level(), node.budget_low_since)
        .map(|budget| item(budget.kind, budget.since, budget.text));
    state.into_iter().chain(budget).collect()
}

/// What is wrong with a node.
fn kind_of_state(node: &Node) -> Option<AttentionKind> {
    match &node.block {
        Some(BlockReason::Stall) => Some(AttentionKind::Stall),
        Some(BlockReason::Violation { turn, .. }) => Some(AttentionKind::Violation(*turn)),
        None if node.status == NodeStatus::Failed => {
            let failed = node.last_turn.as_ref()?;
            Some(AttentionKind::Failure(failed.id))
        }
        None if node.inputs_held && !node.inbox.is_empty() => Some(AttentionKind::Held),
        // The open approvals have items of their own.
        Some(BlockReason::Approvals) | None => None,
    }
}

fn describe_held(inputs: usize) -> String {
    let inputs = match inputs {
        1 => "an input waits".to_owned(),
        more => format!("{more} inputs wait"),
    };
    format!("{inputs} since its turn was stopped: retry, or send a message")
}

/// A budget that a person should look at.
struct BudgetItem {
    kind: AttentionKind,
    since: Timestamp,
    text: &'static str,
}

fn budget_item(level: BudgetLevel, since: Option<Timestamp>) -> Option<BudgetItem> {
    let text = match level {
        BudgetLevel::Fine => return None,
        BudgetLevel::Low => "most of the budget is used",
        BudgetLevel::UsedUp => "the budget is used up",
    };
    Some(BudgetItem {
        kind: AttentionKind::Budget(level),
        since: since?,
        text,
    })
}

fn deadlock_items(run: &LiveRun) -> Vec<AttentionItem> {
    let name_of = |id: &NodeId| run.node(*id).map_or("a deleted node", Node::name);
    let deadlocks = list_deadlocks(run).into_iter();
    deadlocks
        .map(|deadlock| {
            let first = deadlock.nodes.first();
            let names: Vec<&str> = deadlock.nodes.iter().chain(first).map(name_of).collect();
            AttentionItem {
                kind: AttentionKind::Deadlock,
                node: first.copied(),
                since: deadlock.since,
                summary: format!("each waits for the next one's reply: {}", names.join(" → ")),
            }
        })
        .collect()
}

fn items_of_run(run: &LiveRun) -> Vec<AttentionItem> {
    let item = |kind, since, summary: String| AttentionItem {
        kind,
        node: None,
        since,
        summary,
    };
    let budget = budget_item(run.budget_level(), run.budget_low_since)
        .map(|budget| item(budget.kind, budget.since, budget.text.to_owned()));
    let finished = run.has_ended().then(|| {
        let summary = format!("the run is {}", run.status);
        item(AttentionKind::Finished, run.status_since, summary)
    });
    budget.into_iter().chain(finished).collect()
}
