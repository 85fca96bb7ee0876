//! Scene anchors: what a writer is told once, so that it need not be told again.
//!
//! A view's anchor is the last scene that was set from entries which the view may see, or else the
//! newest visible entries verbatim. Nothing is made up: an empty ledger has an empty anchor. Id and
//! time come from the view alone, so hidden writes move neither. It cannot fail.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::cursor;
use crate::fact::Scene;
use crate::fault::{Code, Fault};
use crate::ids::{AnchorId, EntryId, hash_of};
use crate::json::Node;
use crate::quotation::{self, LISTED_ID_BYTES, Space, json_bytes};
use crate::time::WorldTime;
use crate::view::View;

/// A longer anchor leaves the older entries out; a longer scene is not used.
pub const ANCHOR_BYTES_MAX: usize = 8 << 10;

/// The anchor of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// A hash of the view, its cursor and the text.
    pub id: AnchorId,
    /// The time of the newest visible entry.
    pub created_at: WorldTime,
    /// The words.
    pub text: String,
    /// What they are made from, in ledger order if they are quoted.
    pub used: Vec<EntryId>,
}

impl Anchor {
    /// The anchor of a view.
    pub fn of(view: &View<'_>) -> Self {
        Self::within(view, Space::of_text(ANCHOR_BYTES_MAX))
    }

    /// The anchor of a view whose pack for a request takes at most so many bytes as JSON.
    pub fn of_at_most(view: &View<'_>, request: &str, json_bytes: usize) -> Self {
        let bare = Self::new(view, String::new(), Vec::new())
            .pack(request)
            .to_string()
            .len();
        Self::within(
            view,
            Space::of_text(ANCHOR_BYTES_MAX).and_json(json_bytes.saturating_sub(bare)),
        )
    }

    fn within(view: &View<'_>, mut space: Space) -> Self {
        let scene = standing_scene(view).map(|(_, scene)| scene);
        if let Some(scene) = scene.filter(|scene| fits(scene, space)) {
            return Self::new(view, scene.text.clone(), scene.cited.clone());
        }
        let quoted = space.fill(quotation::newest(view), &mut HashSet::new());
        let used = quoted.iter().map(|quotation| quotation.entry.id).collect();
        Self::new(view, quotation::join(&quoted), used)
    }

    fn new(view: &View<'_>, text: String, used: Vec<EntryId>) -> Self {
        let id = AnchorId(hash_of(&[
            "anchor",
            view.viewer.as_str(),
            &cursor::write(view, view.count()),
            &text,
        ]));
        Self {
            id,
            created_at: view.time().clone(),
            text,
            used,
        }
    }

    /// The scene anchor pack.
    pub fn pack(&self, request: &str) -> Value {
        json!({
            "scene_anchor_id": self.id.to_string(),
            "request_id": request,
            "created_at_world": self.created_at.as_str(),
            "text": self.text,
            "provenance": { "used_entry_ids": quotation::listed(&self.used) },
        })
    }
}

/// Whether a scene may stand. One without words was offered and not taken: the mechanical text
/// stands.
fn fits(scene: &Scene, space: Space) -> bool {
    let bytes = json_bytes(&scene.text) + scene.cited.len() * LISTED_ID_BYTES;
    !scene.text.is_empty() && scene.text.len() <= ANCHOR_BYTES_MAX && bytes <= space.json()
}

/// The last scene that the view may know of, and how many scenes were set before it.
pub(crate) fn standing_scene<'a>(view: &View<'a>) -> Option<(usize, &'a Scene)> {
    let known = |scene: &Scene| view.reaches(scene.position) && may_see_all(view, &scene.cited);
    view.world
        .scenes()
        .iter()
        .enumerate()
        .rev()
        .find(|(_, scene)| known(scene))
}

/// Whether something was cited and all of it is visible.
pub(crate) fn may_see_all(view: &View<'_>, cited: &[EntryId]) -> bool {
    !cited.is_empty() && cited.iter().all(|id| view.entry(*id).is_some())
}

/// Refuses a pack that is no anchor of the view: other words than a scene's or than entries',
/// entries that the view may not see, words from nowhere.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let used = quotation::used(view, &root)?;
    let text = root.field("text")?;
    if text.text()?.is_empty() != used.is_empty() {
        return Err(text.fault("has words if and only if it has sources"));
    }
    let id = hash_of(&[
        "anchor",
        view.viewer.as_str(),
        &cursor::write(view, view.count()),
        text.text()?,
    ]);
    let given = root.field("scene_anchor_id")?;
    if given.text()? != AnchorId(id).to_string() {
        return Err(given.fault("is not the hash of view and text"));
    }
    if view
        .world
        .scenes()
        .iter()
        .any(|scene| scene.text == *text.value && may_see_all(view, &scene.cited))
    {
        return Ok(());
    }
    let sources: Vec<&str> = used.iter().map(|entry| &*entry.text).collect();
    if sources.is_empty() {
        Ok(())
    } else {
        quotation::lines_are_verbatim(&text, &sources)
    }
}
