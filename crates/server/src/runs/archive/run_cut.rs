//! A run as it is at one moment: how far its events and its transcripts go.

use turnkeep_runtime::ids::NodeId;
use turnkeep_store::Store;
use turnkeep_types::{ContextId, TurnId};

use super::ArchiveError;
use crate::runs::{RunError, RunHandle};

/// How far the contexts of a run go. All of them end with the same decision.
#[derive(Debug, Clone)]
pub(super) struct RunCut {
    pub(super) events: ContextId,
    pub(super) last_seq: u64,
    pub(super) transcripts: Vec<TranscriptCut>,
}

/// How far the transcript of a node goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct TranscriptCut {
    pub(super) node: NodeId,
    pub(super) context: ContextId,
    pub(super) head: TurnId,
    pub(super) turns: u32,
}

impl RunCut {
    /// Cuts a run here. Nothing is appended while the heads are read.
    pub(super) async fn take(handle: &RunHandle) -> Result<Self, ArchiveError> {
        let store = handle.services.store.store();
        let cut = handle
            .read_log(|log| {
                let last_seq = handle.read_live(|run| run.last_seq);
                let mut transcripts = Vec::new();
                for (node, context) in log.transcripts() {
                    transcripts.extend(cut_transcript(store, node, context)?);
                }
                Ok::<_, RunError>(Self {
                    events: log.events(),
                    last_seq,
                    transcripts,
                })
            })
            .await;
        let cut = cut.ok_or(RunError::UnknownRun(handle.id()))??;
        Ok(cut)
    }
}

/// A transcript without turns is left out.
fn cut_transcript(
    store: &Store,
    node: NodeId,
    context: ContextId,
) -> Result<Option<TranscriptCut>, RunError> {
    let found = store.context(context)?;
    Ok(found.head.map(|head| TranscriptCut {
        node,
        context,
        head,
        turns: found.head_depth + 1,
    }))
}
