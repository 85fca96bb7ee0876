//! What waits for a person, oldest first.

use turnkeep_types::Timestamp;

use crate::ids::{AgentTurnId, ApprovalId, NodeId};
use crate::live::LiveRun;
use crate::node::{BlockReason, Node};
use crate::usage::BudgetLevel;
use crate::words::{NodeStatus, RunStatus};

/// The subject of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttentionKind {
    /// A call waits for a decision.
    Approval(ApprovalId),
    /// An agent asked something.
    Question(ApprovalId),
    /// A node goes in circles.
    Stall,
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

/// Everything in a run that waits for a person.
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
    let nodes = run.nodes().filter_map(item_of_node);
    let mut items: Vec<AttentionItem> = approvals.chain(nodes).chain(items_of_run(run)).collect();
    items.sort_by_key(|item| item.since);
    items
}

fn item_of_node(node: &Node) -> Option<AttentionItem> {
    let kind = match &node.block {
        Some(BlockReason::Stall) => AttentionKind::Stall,
        Some(BlockReason::Violation { turn, .. }) => AttentionKind::Violation(*turn),
        None if node.status == NodeStatus::Failed => {
            AttentionKind::Failure(node.last_turn.as_ref()?.id)
        }
        // The open approvals have items of their own.
        Some(BlockReason::Approvals) | None => return None,
    };
    Some(AttentionItem {
        kind,
        node: Some(node.id),
        since: node.last_activity_at,
        summary: format!("{}: {}", node.name(), node.summary),
    })
}

fn items_of_run(run: &LiveRun) -> Vec<AttentionItem> {
    let item = |kind, summary: String| AttentionItem {
        kind,
        node: None,
        since: run.updated_at,
        summary,
    };
    let mut items = Vec::new();
    match run.settings.budget.level(&run.usage) {
        BudgetLevel::Fine => {}
        BudgetLevel::Low => {
            let summary = "most of the budget is used".to_owned();
            items.push(item(AttentionKind::Budget(BudgetLevel::Low), summary));
        }
        BudgetLevel::UsedUp => {
            let summary = "the budget is used up".to_owned();
            items.push(item(AttentionKind::Budget(BudgetLevel::UsedUp), summary));
        }
    }
    if matches!(run.status, RunStatus::Completed | RunStatus::Failed) {
        items.push(item(
            AttentionKind::Finished,
            format!("the run is {}", run.status),
        ));
    }
    items
}
