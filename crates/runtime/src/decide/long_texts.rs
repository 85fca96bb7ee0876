//! Shortens the texts of a program that are too long for an event. An artifact of the turn has the whole
//! text.
//!
//! An event is sent to every reader of a run and is a record of the store, which has a limit. A program
//! knows neither.

use bytes::Bytes;

use crate::ids::ArtifactId;
use crate::turn::UNFINISHED_BYTES_MAX;
use crate::words::ArtifactKind;

use super::Draft;
use super::draft::{ArtifactOwner, NewArtifact};
use super::output::TurnPlace;

/// The most bytes of an answer or a thought in one event.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Shortens a text to a number of bytes.
pub(super) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
    text
}

/// Keeps a whole text as a file of the turn.
pub(super) fn keep_whole(
    draft: &mut Draft<'_>,
    place: TurnPlace,
    name: &str,
    text: String,
) -> ArtifactId {
    let whole = NewArtifact {
        kind: ArtifactKind::Log,
        name,
        content: Bytes::from(text),
        diff: None,
    };
    draft.create_artifact(ArtifactOwner::turn(place.node, place.turn), whole)
}

/// Shortens an answer or a thought. Its event has no field for the artifact, so a note behind the text
/// names it.
pub(super) fn cut_answer(
    draft: &mut Draft<'_>,
    place: TurnPlace,
    name: &str,
    text: String,
) -> String {
    if text.len() <= ANSWER_BYTES_MAX {
        return text;
    }
    // Before the cut: half a secret could not be masked.
    let text = draft.mask(text);
    let bytes = text.len();
    // The end of a longer one that came in pieces was not remembered.
    let how_much = if bytes >= UNFINISHED_BYTES_MAX {
        "the first"
    } else {
        "all"
    };
    let artifact = keep_whole(draft, place, name, text.clone());
    let beginning = cut(text, ANSWER_BYTES_MAX);
    format!("{beginning}\n\n(Cut: the artifact {artifact} has {how_much} {bytes} bytes.)")
}
