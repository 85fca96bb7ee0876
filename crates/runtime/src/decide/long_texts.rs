//! Texts of a program that are too long for an event: the event has the beginning, and an artifact of
//! the turn has all of it.
//!
//! An event is sent to every reader of a run and is a record of the store, which has a limit. A program
//! knows neither.

use bytes::Bytes;

use crate::ids::ArtifactId;
use crate::words::ArtifactKind;

use super::Draft;
use super::draft::{ArtifactOwner, NewArtifact};
use super::output::TurnPlace;

/// An event has at most so much of an answer or a thought.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What becomes of a text that is too long.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongText {
    /// The name of the artifact that has all of it.
    pub(super) name: &'static str,
    /// How many bytes the event has at most.
    pub(super) max: usize,
}

/// A text as its event has it.
pub(super) struct KeptText {
    pub(super) text: String,
    /// Everything, if the text is only the beginning.
    pub(super) artifact: Option<ArtifactId>,
}

/// Cuts a text that is too long for an event, and keeps all of it as an artifact.
pub(super) fn keep(
    draft: &mut Draft<'_>,
    place: TurnPlace,
    text: String,
    long: LongText,
) -> KeptText {
    if text.len() <= long.max {
        let artifact = None;
        return KeptText { text, artifact };
    }
    let end = text.floor_char_boundary(long.max);
    let beginning = text.get(..end).unwrap_or_default().to_owned();
    let whole = NewArtifact {
        kind: ArtifactKind::Log,
        name: long.name,
        content: Bytes::from(text),
        diff: None,
    };
    let owner = ArtifactOwner::turn(place.node, place.turn);
    KeptText {
        text: beginning,
        artifact: Some(draft.create_artifact(owner, whole)),
    }
}

/// The same for an answer or a thought, whose event has no field that names the artifact: a note
/// behind the beginning names it.
pub(super) fn keep_answer(draft: &mut Draft<'_>, place: TurnPlace, text: String) -> String {
    let long = LongText {
        name: "answer.txt",
        max: ANSWER_BYTES_MAX,
    };
    let bytes = text.len();
    let KeptText { text, artifact } = keep(draft, place, text, long);
    match artifact {
        Some(artifact) => {
            format!("{text}\n\n(Cut: the artifact {artifact} has all {bytes} bytes.)")
        }
        None => text,
    }
}
