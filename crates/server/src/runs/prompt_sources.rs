//! What a prompt is made from besides the state of the run: the role's text, the files that the
//! inputs name, and the end of the conversation if its session was lost.

use std::sync::Arc;

use turnkeep_runtime::Run;
use turnkeep_runtime::ids::{ArtifactId, NodeId};
use turnkeep_runtime::input::Input;
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::prompt::{ArtifactFile, ContextPack, PromptSources};
use turnkeep_wire::transcript::{self, TranscriptItem};

use super::run_handle::RunHandle;
use super::{roles, settings};

/// How many turns of the conversation a program hears again after its session was lost.
const RECAP_TURNS: usize = 4;
/// How many characters of each text it hears.
const RECAP_CHARACTERS_MAX: usize = 2000;
/// How far back the recap looks.
const RECAP_LINES_MAX: usize = 400;

/// What the state says about a prompt.
struct NodeInputs {
    settings: NodeSettings,
    cwd: Option<String>,
    was_lost: bool,
    artifacts: Vec<ArtifactId>,
    context_packs: Vec<ArtifactId>,
}

/// Collects the sources of a node's next prompt.
pub(super) async fn collect(handle: &Arc<RunHandle>, id: NodeId) -> Result<PromptSources, String> {
    let inputs = handle
        .read(|run| read_inputs(run, id))
        .ok_or("the node is gone")?;
    let services = &handle.services;
    let program = services.settings.program_of(&inputs.settings);
    let program = program.map_err(|unknown| unknown.to_string())?;
    let roles_dir = services.settings.roles_dir.clone();
    let (role, cwd) = (inputs.settings.role.clone(), inputs.cwd.clone());
    let template = services
        .run_blocking(move || roles::read(&role, cwd.as_deref(), roles_dir.as_deref()))
        .await
        .map_err(|error| error.to_string())??;
    Ok(PromptSources {
        role: template.text,
        resumes: settings::resumes(program),
        tool_calling: settings::tool_calling(program),
        // A session that goes on still has the conversation.
        recap: if inputs.was_lost {
            read_recap(handle, id).await
        } else {
            None
        },
        files: artifact_files(handle, &inputs.artifacts),
        context_packs: read_packs(handle, &inputs.context_packs).await?,
        base_tree: None,
    })
}

fn read_inputs(run: &Run, id: NodeId) -> Option<NodeInputs> {
    let node = run.live.node(id)?;
    let consumed = node.turn.as_ref().map_or(&[][..], |turn| &turn.consumed);
    let envelopes = || {
        consumed.iter().filter_map(|input| match input {
            Input::Envelope(envelope) => Some(envelope),
            Input::Message(_) => None,
        })
    };
    Some(NodeInputs {
        settings: node.settings.clone(),
        cwd: run.live.settings.cwd.clone(),
        was_lost: node.session.was_lost,
        artifacts: envelopes()
            .flat_map(|envelope| envelope.artifacts.iter().copied())
            .collect(),
        context_packs: envelopes()
            .filter_map(|envelope| envelope.context_pack)
            .collect(),
    })
}

fn artifact_files(handle: &RunHandle, ids: &[ArtifactId]) -> Vec<ArtifactFile> {
    let dir = handle.services.artifacts_dir(handle.id());
    handle.read(|run| {
        let found = ids.iter().filter_map(|id| run.archive.artifact(*id));
        found
            .map(|artifact| ArtifactFile {
                id: artifact.id,
                path: dir
                    .join(format!("{}-{}", artifact.id, artifact.name))
                    .to_string_lossy()
                    .into_owned(),
                bytes: artifact.bytes,
            })
            .collect()
    })
}

/// The context packs of the inputs, each once. A turn without one would work on half of its task, so
/// it is not begun.
async fn read_packs(handle: &RunHandle, ids: &[ArtifactId]) -> Result<Vec<ContextPack>, String> {
    let mut packs: Vec<ContextPack> = Vec::with_capacity(ids.len());
    for id in ids {
        if packs.iter().any(|pack| pack.id == *id) {
            continue;
        }
        let content = handle.read(|run| run.archive.artifact(*id).map(|pack| pack.content));
        let unreadable = |reason: &str| format!("contextpack://{id} cannot be read: {reason}");
        let content = content.ok_or_else(|| unreadable("there is no such artifact"))?;
        let bytes = handle.read_blob(content).await;
        let bytes = bytes.map_err(|error| unreadable(&error.to_string()))?;
        packs.push(ContextPack {
            id: *id,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    Ok(packs)
}

/// The end of a node's conversation. The turn that begins now is not part of it.
async fn read_recap(handle: &Arc<RunHandle>, node: NodeId) -> Option<String> {
    let context = handle.transcript(node).await?;
    let store = handle.services.store.store().clone();
    let read = move || {
        let mut lines = Vec::new();
        for turn in &store.last(context, RECAP_LINES_MAX).ok()? {
            let payload = store.payload(turn).ok()?;
            let item = transcript::decode_item(&turn.declared, &payload.raw().ok()?).ok()?;
            lines.extend(recap_line(&item));
        }
        Some(last_turns(&lines))
    };
    handle.services.run_blocking(read).await.ok()?
}

/// One thing that was said.
struct RecapLine {
    /// Whether the agent said it, which ends a turn of the conversation.
    is_answer: bool,
    text: String,
}

fn recap_line(item: &TranscriptItem) -> Option<RecapLine> {
    let cut = |text: &str| text.chars().take(RECAP_CHARACTERS_MAX).collect::<String>();
    let (is_answer, text) = match item {
        TranscriptItem::UserMessage(message) => {
            (false, format!("{}: {}", message.role, cut(&message.text)))
        }
        TranscriptItem::AssistantMessage(message) => (true, format!("you: {}", cut(&message.text))),
        TranscriptItem::Handoff(handoff) => (
            false,
            format!(
                "handoff {} to {}: {}",
                handoff.from,
                handoff.to,
                cut(&handoff.message)
            ),
        ),
        _ => return None,
    };
    Some(RecapLine { is_answer, text })
}

/// The lines of the last turns, each of which ends with an answer of the agent.
fn last_turns(lines: &[RecapLine]) -> String {
    let answers = lines.iter().enumerate().filter(|(_, line)| line.is_answer);
    let ends: Vec<usize> = answers.map(|(place, _)| place).collect();
    // With answers at 2, 5 and 9, and two turns to show: the answer before them is at 2, so the lines
    // 3 to 9 are shown.
    let before = ends.len().checked_sub(RECAP_TURNS + 1);
    let first = before
        .and_then(|place| ends.get(place))
        .map_or(0, |end| end + 1);
    let last = ends.last().map_or(0, |end| end + 1);
    let told = lines.get(first..last).unwrap_or_default();
    let texts: Vec<&str> = told.iter().map(|line| line.text.as_str()).collect();
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recap_has_the_last_four_turns_and_not_the_one_that_begins() {
        let line = |is_answer, text: &str| RecapLine {
            is_answer,
            text: text.to_owned(),
        };
        let mut lines = Vec::new();
        for turn in 0..6 {
            lines.push(line(false, &format!("question {turn}")));
            lines.push(line(true, &format!("answer {turn}")));
        }
        lines.push(line(false, "the new question"));
        let recap = last_turns(&lines);
        assert!(recap.starts_with("question 2"), "{recap}");
        assert!(recap.ends_with("answer 5"), "{recap}");
        assert_eq!(last_turns(&[line(false, "only a question")]), "");
    }

    #[test]
    fn a_recap_cuts_each_text() {
        let long = transcript::AssistantMessage {
            text: "ä".repeat(RECAP_CHARACTERS_MAX + 1),
            ..transcript::AssistantMessage::default()
        };
        let line = recap_line(&TranscriptItem::AssistantMessage(long)).unwrap();
        assert_eq!(line.text, format!("you: {}", "ä".repeat(2000)));
    }
}
