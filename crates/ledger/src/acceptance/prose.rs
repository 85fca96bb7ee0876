//! The checks of offered prose: the scene and the notes about persons.
//!
//! Who may offer it is asked before anything is looked up; what it cites is asked last. An entry
//! that is unknown, one that is hidden and one that is yet to come get the same answer.

use super::Terms;
use crate::draft::{Draft, NoteDraft, ProseDraft};
use crate::fault::{Code, Fault};
use crate::ids::{EntryId, Name};
use crate::proposal::{ProposedNote, ProposedScene};

/// Whether the writer may offer this prose at all, and whether it is any.
pub(super) fn may_be_offered(draft: &Draft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
    if let Some(scene) = &draft.scene {
        if !terms.may_set_scene {
            let message = "the scene is set by the attached writer and by the operator";
            return Err(Fault::new(
                Code::AuthorForbidden,
                scene.node.path.clone(),
                message,
            ));
        }
        not_empty(scene)?;
    }
    draft.notes.iter().try_for_each(|note| {
        person(note, terms)?;
        not_empty(&note.prose)
    })
}

/// Accepts the scene and the notes.
pub(super) fn accept(
    draft: &Draft<'_>,
    terms: &Terms<'_>,
) -> Result<(Option<ProposedScene>, Vec<ProposedNote>), Fault> {
    let scene = draft
        .scene
        .as_ref()
        .map(|scene| accept_scene(scene, terms))
        .transpose()?;
    let notes = draft
        .notes
        .iter()
        .map(|note| accept_note(note, terms))
        .collect::<Result<_, _>>()?;
    Ok((scene, notes))
}

fn accept_scene(scene: &ProseDraft<'_>, terms: &Terms<'_>) -> Result<ProposedScene, Fault> {
    Ok(ProposedScene {
        text: scene.text.to_owned(),
        cited: cited(scene, terms)?,
    })
}

fn accept_note(note: &NoteDraft<'_>, terms: &Terms<'_>) -> Result<ProposedNote, Fault> {
    let cited = cited(&note.prose, terms)?;
    Ok(ProposedNote {
        person: person(note, terms)?,
        text: note.prose.text.to_owned(),
        cited,
    })
}

fn not_empty(prose: &ProseDraft<'_>) -> Result<(), Fault> {
    if prose.text.trim().is_empty() {
        let path = format!("{}.text", prose.node.path);
        return Err(Fault::new(
            Code::TextEmpty,
            path,
            "must hold more than white space",
        ));
    }
    Ok(())
}

/// A person whom the writer may author.
fn person(note: &NoteDraft<'_>, terms: &Terms<'_>) -> Result<Name, Fault> {
    let known = terms
        .people
        .resolve(note.person, terms.config.registry)
        .ok();
    known
        .filter(|name| terms.grant.covers_person(name))
        .ok_or_else(|| {
            let path = format!("{}.person_id", note.prose.node.path);
            Fault::new(
                Code::AuthorForbidden,
                path,
                "is nobody in whose name this writer may write",
            )
        })
}

fn cited(prose: &ProseDraft<'_>, terms: &Terms<'_>) -> Result<Vec<EntryId>, Fault> {
    let invalid = |at: &str, message: &'static str| {
        Fault::new(
            Code::ProvenanceInvalid,
            format!("{}.used_entry_ids{at}", prose.node.path),
            message,
        )
    };
    if prose.cited.is_empty() {
        return Err(invalid("", "must cite at least one entry"));
    }
    let entry = |(index, id): (usize, &&str)| {
        let found = id.parse().ok().filter(|&id| (terms.cites)(id));
        found.ok_or_else(|| invalid(&format!("[{index}]"), "is no entry that could be cited"))
    };
    prose.cited.iter().enumerate().map(entry).collect()
}
