//! Notes: what the server has to say about a node and what is no output of its program.

use bytes::Bytes;

use crate::artifact::{DiffSummary, REVERT_NAME};
use crate::fact::Fact;
use crate::ids::{AgentTurnId, NodeId};
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::Run;
use crate::words::ArtifactKind;

use super::draft::{ArtifactOwner, NewArtifact};
use super::{Decision, Draft, Surroundings};

/// Records a note about a node. Nothing else changes. The node may be deleted: its worktree can
/// outlive it.
pub fn note_node(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    text: &str,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    draft.record_for(node, Fact::NodeLogged(text.to_owned()));
    Ok(draft.finish(()))
}

/// Files of a turn that a person took back.
#[derive(Debug, Clone)]
pub struct TurnReverted {
    pub node: NodeId,
    pub turn: AgentTurnId,
    /// The files that no note names yet.
    pub files: Vec<String>,
    /// The answer to the person's request.
    pub answer: Bytes,
}

/// Records which files of a turn a person took back, as a file of the run: the diff of the turn still
/// names them, and clients must not say that the directory has its changes. The caller's key names it.
pub fn note_revert(run: &Run, around: Surroundings<'_>, reverted: &TurnReverted) -> Decision<()> {
    let mut draft = Draft::new(run, around);
    let TurnReverted {
        node,
        turn,
        files,
        answer,
    } = reverted;
    let count = match files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let summary = DiffSummary {
        turn: Some(*turn),
        files_changed: files.clone(),
        summary: format!("{count} of a turn taken back"),
        ..DiffSummary::default()
    };
    let new = NewArtifact {
        kind: ArtifactKind::Report,
        name: REVERT_NAME,
        content: answer.clone(),
        diff: Some(summary),
    };
    // Of no turn: the node's turn is over, and an open one must not count it as its own work.
    let node = Some(*node);
    let artifact = draft.create_artifact(ArtifactOwner { node, turn: None }, new);
    draft.note_made(MadeId::Artifact(artifact));
    draft.finish(())
}
