//! What waits for a person, with what the person can do about it.

use std::collections::BTreeSet;

use turnkeep_runtime::attention::{self, AttentionKind, list_attention};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::node::Node;
use turnkeep_runtime::run::TurnConflicts;
use turnkeep_runtime::words::RunStatus;
use turnkeep_runtime::{LiveRun, Run};
use turnkeep_wire::json::Time;
use turnkeep_wire::runs::{self as wire, AttentionAction as Action, UuidText};

/// How many files in conflict are named.
const FILES_NAMED_MAX: usize = 20;

/// Everything in a run that waits for a person, oldest first.
pub(crate) fn attention_items(run: &Run) -> Vec<wire::AttentionItem> {
    let items = list_attention(&run.live);
    let items = items.into_iter().map(|item| item_view(&run.live, item));
    let conflicts = run.live.nodes().filter_map(|node| conflict_of(run, node));
    let mut items: Vec<wire::AttentionItem> = items.chain(conflicts).collect();
    items.sort_by_key(|item| item.since.0);
    items
}

/// The files that another node wrote during the node's last turn, too. The next turn of the node ends
/// the item: it begins with what the files are then.
fn conflict_of(run: &Run, node: &Node) -> Option<wire::AttentionItem> {
    let turn = node.last_turn.as_ref()?.id;
    let conflicts = run.archive.conflicts_of_turn(turn)?;
    let is_settled = run.live.status == RunStatus::Completed || run.live.is_end_seen;
    (!is_settled).then(|| wire::AttentionItem {
        target: format!("turn:{turn}"),
        kind: wire::AttentionKind::Conflict,
        run_id: UuidText::of(run.live.id),
        since: Time(conflicts.since),
        summary: describe_conflicts(run, node, conflicts),
        actions: vec![Action::Revert, Action::Chat],
        node_id: Some(UuidText::of(node.id)),
        node_label: Some(node.settings.label.clone()),
        node_alias: node.settings.alias.clone(),
    })
}

fn describe_conflicts(run: &Run, node: &Node, conflicts: &TurnConflicts) -> String {
    let name_of = |id: &NodeId| match run.live.node(*id) {
        Some(node) => node.name().to_owned(),
        None => "a deleted node".to_owned(),
    };
    let describe = |(path, nodes): (&String, &BTreeSet<NodeId>)| {
        let names: Vec<String> = nodes.iter().map(name_of).collect();
        format!("{path} (with {})", names.join(", "))
    };
    let files = conflicts.files.iter().take(FILES_NAMED_MAX).map(describe);
    let mut files: Vec<String> = files.collect();
    match conflicts.files.len() - files.len() {
        0 => {}
        more => files.push(format!("{more} more")),
    }
    format!(
        "{}: written by several nodes at the same time: {}",
        node.name(),
        files.join(", ")
    )
}

fn item_view(run: &LiveRun, item: attention::AttentionItem) -> wire::AttentionItem {
    let settings = item.node.and_then(|id| Some(&run.node(id)?.settings));
    wire::AttentionItem {
        target: target_of(run, &item),
        kind: kind_of(&item.kind),
        run_id: UuidText::of(run.id),
        since: Time(item.since),
        summary: item.summary,
        actions: actions_for(run, &item.kind),
        node_id: item.node.map(UuidText::of),
        node_label: settings.map(|settings| settings.label.clone()),
        node_alias: settings.and_then(|settings| settings.alias.clone()),
    }
}

/// The object that the item is about. A node has at most one stall, and a node or a run
/// one budget.
fn target_of(run: &LiveRun, item: &attention::AttentionItem) -> String {
    match (&item.kind, item.node) {
        (AttentionKind::Approval(id) | AttentionKind::Question(id), _) => format!("approval:{id}"),
        (AttentionKind::Failure(turn) | AttentionKind::Violation(turn), _) => {
            format!("turn:{turn}")
        }
        (
            AttentionKind::Stall
            | AttentionKind::Deadlock
            | AttentionKind::Held
            | AttentionKind::Budget(_),
            Some(node),
        ) => format!("node:{node}"),
        _ => format!("run:{}", run.id),
    }
}

fn kind_of(kind: &AttentionKind) -> wire::AttentionKind {
    match kind {
        AttentionKind::Approval(_) => wire::AttentionKind::Approval,
        AttentionKind::Question(_) => wire::AttentionKind::Question,
        // Something stands still until a person acts. `why` tells them apart.
        AttentionKind::Stall | AttentionKind::Deadlock | AttentionKind::Held => {
            wire::AttentionKind::Stall
        }
        AttentionKind::Failure(_) => wire::AttentionKind::Failure,
        AttentionKind::Violation(_) => wire::AttentionKind::Violation,
        AttentionKind::Budget(_) => wire::AttentionKind::Budget,
        AttentionKind::Finished => wire::AttentionKind::Finished,
    }
}

fn actions_for(run: &LiveRun, kind: &AttentionKind) -> Vec<Action> {
    let actions: &[Action] = match kind {
        AttentionKind::Approval(_) => &[Action::Approve, Action::Deny],
        AttentionKind::Question(_) => &[Action::Answer],
        AttentionKind::Stall => &[Action::Continue, Action::Chat, Action::Reset],
        // No turn waits to be continued: one of the nodes needs a word, or a new session.
        AttentionKind::Deadlock => &[Action::Chat, Action::Reset],
        AttentionKind::Failure(_) | AttentionKind::Held => &[Action::Retry, Action::Chat],
        AttentionKind::Violation(_) => &[Action::Keep, Action::Revert],
        AttentionKind::Budget(_) => &[Action::ChangeBudget],
        // A failed run has nothing that is ready to apply.
        AttentionKind::Finished if run.status == RunStatus::Failed => {
            &[Action::Resume, Action::Chat, Action::Dismiss]
        }
        AttentionKind::Finished => &[Action::Apply, Action::Chat, Action::Dismiss],
    };
    actions.to_vec()
}
