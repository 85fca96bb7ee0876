//! Turns that were open when an earlier server stopped: what they changed, found by their first trees.
//!
//! The event that sent a turn's prompt has the tree before it. So at the next start the windows of all
//! lost turns of a run are opened again as they were, and closed with what the directories have now.
//! Their programs were killed before. What a node may not write is treated as after any turn: restored
//! in a worktree, left for a person in a shared directory. Without this it would be part of the next
//! turn's first tree, and land with the next apply.

use std::sync::Arc;

use turnkeep_runtime::LiveRun;
use turnkeep_runtime::decide::LostChanges;
use turnkeep_runtime::ids::{AgentTurnId, NodeId};
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_runtime::write_scope::WriteScope;
use turnkeep_workspace::TreeName;

use super::Workspaces;
use super::windows::NewWindow;
use crate::runs::run_handle::RunHandle;

/// What the log says about a lost turn.
struct LostTurn {
    node: NodeId,
    turn: AgentTurnId,
    base: TreeName,
    kind: WorkspaceKind,
    scope: WriteScope,
}

impl Workspaces {
    /// What the lost turns of a run changed. A turn whose directory is gone has no changes.
    pub(in crate::runs) async fn finish_lost_turns(
        &self,
        handle: &Arc<RunHandle>,
    ) -> Vec<LostChanges> {
        let mut opened = Vec::new();
        // All windows before the first one is closed: the turns were open together.
        for lost in handle.read_live(find_lost_turns) {
            match self.find_directory(handle, lost.node).await {
                Ok(directory) => {
                    let mut state = self.lock();
                    let new = NewWindow {
                        node: lost.node,
                        directory: directory.path,
                        kind: lost.kind,
                        scope: lost.scope,
                    };
                    state.windows.open(lost.turn, new);
                    state.windows.set_base(lost.turn, lost.base);
                    opened.push((lost.node, lost.turn));
                }
                Err(error) => {
                    let (run, node) = (handle.id(), lost.node);
                    tracing::warn!(%run, %node, %error, "the changes of a lost turn are not known");
                }
            }
        }
        let mut changes = Vec::with_capacity(opened.len());
        for (node, turn) in opened {
            let diff = self.finish_turn(handle, node, turn).await;
            changes.push(LostChanges { turn, diff });
        }
        changes
    }
}

fn find_lost_turns(run: &LiveRun) -> Vec<LostTurn> {
    let lost = run.nodes().filter_map(|node| {
        let turn = node.turn.as_ref()?;
        Some(LostTurn {
            node: node.id,
            turn: turn.id,
            // Without it the program had no prompt, and has changed nothing.
            base: turn.base_tree.as_ref()?.parse().ok()?,
            kind: node.workspace.as_ref()?.kind,
            scope: WriteScope::of(node.settings.capabilities, turn.global_mode),
        })
    });
    lost.collect()
}
