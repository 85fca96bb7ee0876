//! Scene anchors: what a writer is sent once, so that later requests need only name it.
//!
//! The anchor of a view is the last scene that cites only visible entries, or else the newest
//! visible entries verbatim. Nothing is invented: an empty ledger has an empty anchor. Id and time
//! come from the view alone, so hidden entries change neither. Building an anchor cannot fail.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::cursor;
use crate::fact::Scene;
use crate::fault::{Code, Fault};
use crate::ids::{AnchorId, EntryId, hash_parts};
use crate::json::Node;
use crate::quotation::{self, LISTED_ID_BYTES, Space, json_bytes};
use crate::time::WorldTime;
use crate::view::View;

/// A longer anchor leaves the older entries out. A longer scene is not used.
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
    /// The entries that the text is made from, in ledger order if it quotes them.
    pub used: Vec<EntryId>,
}

impl Anchor {
    /// Builds the anchor of a view.
    pub fn build(view: &View<'_>) -> Self {
        Self::fill(view, Space::of_text(ANCHOR_BYTES_MAX))
    }

    /// Builds an anchor whose pack for a request takes at most this many bytes of JSON.
    pub fn build_within(view: &View<'_>, request: &str, json_bytes: usize) -> Self {
        let empty_bytes = Self::new(view, String::new(), Vec::new())
            .pack(request)
            .to_string()
            .len();
        let space = Space::of_text(ANCHOR_BYTES_MAX);
        Self::fill(view, space.and_json(json_bytes.saturating_sub(empty_bytes)))
    }

    fn fill(view: &View<'_>, mut space: Space) -> Self {
        let scene = standing_scene(view).map(|(_, scene)| scene);
        if let Some(scene) = scene.filter(|scene| is_usable(scene, space)) {
            return Self::new(view, scene.text.clone(), scene.cited.clone());
        }
        // No scene is usable, so the newest entries stand in for it.
        let quoted = space.fill(quotation::quote_newest(view), &mut HashSet::new());
        let used = quoted.iter().map(|quotation| quotation.entry.id).collect();
        Self::new(view, quotation::join_texts(&quoted), used)
    }

    fn new(view: &View<'_>, text: String, used: Vec<EntryId>) -> Self {
        let id = AnchorId(hash_parts(&[
            "anchor",
            view.viewer.as_str(),
            &cursor::write(view, view.count()),
            &text,
        ]));
        Self {
            id,
            created_at: view.newest_time().clone(),
            text,
            used,
        }
    }

    /// The scene anchor pack as JSON.
    pub fn pack(&self, request: &str) -> Value {
        json!({
            "scene_anchor_id": self.id.to_string(),
            "request_id": request,
            "created_at_world": self.created_at.as_str(),
            "text": self.text,
            "provenance": { "used_entry_ids": quotation::id_texts(&self.used) },
        })
    }
}

/// Whether a scene can be the anchor. A scene with an empty text records that the writer's text was
/// not accepted.
fn is_usable(scene: &Scene, space: Space) -> bool {
    let bytes = json_bytes(&scene.text) + scene.cited.len() * LISTED_ID_BYTES;
    !scene.text.is_empty() && scene.text.len() <= ANCHOR_BYTES_MAX && bytes <= space.json_left()
}

/// The last scene that the view may know of, and how many scenes were set before it.
pub(crate) fn standing_scene<'a>(view: &View<'a>) -> Option<(usize, &'a Scene)> {
    let known = |scene: &Scene| view.covers(scene.position) && may_see_all(view, &scene.cited);
    view.world
        .scenes()
        .iter()
        .enumerate()
        .rev()
        .find(|(_, scene)| known(scene))
}

/// Whether at least one entry is cited and all cited entries are visible.
pub(crate) fn may_see_all(view: &View<'_>, cited: &[EntryId]) -> bool {
    !cited.is_empty() && cited.iter().all(|id| view.entry(*id).is_some())
}

/// Rejects a pack that is not an anchor of the view. Its text must be a visible scene's or verbatim
/// from visible entries, and its id must match its content.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let used = quotation::cited_entries(view, &root)?;
    let text = root.field("text")?;
    if text.text()?.is_empty() != used.is_empty() {
        return Err(text.fault("has words if and only if it has sources"));
    }
    let id = hash_parts(&[
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
        quotation::check_lines_verbatim(&text, &sources)
    }
}
