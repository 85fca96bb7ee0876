//! The prompt of a turn: kept as artifacts first, then sent.

use bytes::Bytes;
use serde_json::json;
use turnkeep_types::BlobHash;

use crate::effect::Effect;
use crate::fact::TurnStep;
use crate::ids::{AgentTurnId, NodeId};
use crate::prompt::{Prompt, PromptSources, make_prompt};
use crate::rejection::Rejection;
use crate::run::Run;
use crate::turn::TurnStage;
use crate::words::{ArtifactKind, PromptKind};

use super::draft::{ArtifactOwner, NewArtifact};
use super::output::check_open;
use super::{Decision, Draft, Surroundings, turns};

/// Records the prompt of a turn and sends it. The artifacts exist before the program gets a byte.
pub fn send_prompt(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    turn: AgentTurnId,
    sources: &PromptSources,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    check_open(&draft, node, turn)?;
    let known = draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    let open = known.turn.as_ref().ok_or(Rejection::TurnOver)?;
    match open.stage {
        TurnStage::Preparing => {}
        // The user stopped the turn while it was prepared: no program has seen its inputs.
        TurnStage::Interrupting { .. } if open.prompt.is_none() => {
            turns::end_unsent(&mut draft, node, turn);
            return Ok(draft.finish(()));
        }
        TurnStage::Working | TurnStage::Interrupting { .. } => return Err(Rejection::PromptSent),
    }
    let prompt = make_prompt(&draft.run, known, open, sources);
    // A program that cannot resume gets a full prompt, and would not understand the name.
    let session = known.session.id.clone().filter(|_| sources.resumes);
    let sent = Bytes::from(prompt.sent_text());
    keep_prompt(&mut draft, node, turn, &prompt, &sent);
    let waiting = TurnStep::WaitingForModel {
        prompt: prompt.kind,
        prompt_hash: prompt.stable_hash,
        forgets: !sources.resumes,
        base_tree: sources.base_tree.clone(),
    };
    draft.step_turn(node, turn, waiting);
    draft.perform(Effect::SendPrompt {
        node,
        turn,
        session,
        prompt: sent,
    });
    Ok(draft.finish(()))
}

fn keep_prompt(
    draft: &mut Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
    prompt: &Prompt,
    sent: &Bytes,
) {
    let full = Bytes::from(prompt.full_text());
    let mut blocks = json!({
        "system": prompt.system,
        "role": prompt.role,
        "mode": prompt.mode,
        "task": prompt.task,
        "kind": prompt.kind.word(),
        "sentHash": BlobHash::of(sent).to_string(),
        "fullHash": BlobHash::of(&full).to_string(),
        "turnId": turn.to_string(),
    });
    if let Some(own_role) = &prompt.own_role {
        blocks["override"] = own_role.as_str().into();
    }
    let mut files = vec![
        ("prompt.full.txt", full),
        ("prompt.blocks.json", Bytes::from(blocks.to_string())),
    ];
    // Of a full prompt, the text that was sent is the full text.
    if prompt.kind == PromptKind::Delta {
        files.push(("prompt.sent.txt", sent.clone()));
    }
    for (name, content) in files {
        let new = NewArtifact {
            kind: ArtifactKind::Prompt,
            name,
            content,
            diff: None,
        };
        draft.create_artifact(ArtifactOwner::turn(node, turn), new);
    }
}
