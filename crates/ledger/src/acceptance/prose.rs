//! The checks of a scene and of notes about persons.
//!
//! The permission is checked before anything is looked up, and the citations last. An unknown, a
//! hidden and a future entry get the same fault.

use super::Terms;
use crate::draft::{BundleDraft, NoteDraft, ProseDraft};
use crate::fault::{Code, Fault};
use crate::ids::{EntryId, Name};
use crate::proposal::{ProposedNote, ProposedScene};

/// Rejects a scene or notes that this writer may not offer, and empty ones.
pub(super) fn check_permission(draft: &BundleDraft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
    if let Some(scene) = &draft.scene {
        // A person's scene would change what other writers are sent.
        if !terms.may_set_scene {
            let message = "the scene is set by the attached writer and by the operator";
            return Err(Fault::new(
                Code::AuthorForbidden,
                scene.node.path.clone(),
                message,
            ));
        }
        check_not_empty(scene)?;
    }
    for note in &draft.notes {
        resolve_person(note, terms)?;
        check_not_empty(&note.prose)?;
    }
    Ok(())
}

/// Accepts the scene and the notes.
pub(super) fn accept(
    draft: &BundleDraft<'_>,
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
        cited: resolve_citations(scene, terms)?,
    })
}

fn accept_note(note: &NoteDraft<'_>, terms: &Terms<'_>) -> Result<ProposedNote, Fault> {
    let cited = resolve_citations(&note.prose, terms)?;
    Ok(ProposedNote {
        person: resolve_person(note, terms)?,
        text: note.prose.text.to_owned(),
        cited,
    })
}

fn check_not_empty(prose: &ProseDraft<'_>) -> Result<(), Fault> {
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

/// The person of a note, if the writer may write as that person.
fn resolve_person(note: &NoteDraft<'_>, terms: &Terms<'_>) -> Result<Name, Fault> {
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

fn resolve_citations(prose: &ProseDraft<'_>, terms: &Terms<'_>) -> Result<Vec<EntryId>, Fault> {
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
