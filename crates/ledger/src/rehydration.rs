//! Rehydration: what a writer that begins anew is told of the past.
//!
//! Everything is a verbatim piece of an entry or the anchor's own words, from one view. The builder
//! always fits: it is given the bytes that the pack may take as JSON, and leaves out the oldest.
//! Each part has a share of them, and what a part does not need goes to the newest entries. It
//! cannot fail.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::anchor::Anchor;
use crate::capsule::Capsule;
use crate::cursor;
use crate::entry::{AuthorClass, Entry};
use crate::fault::{Code, Fault};
use crate::ids::{CapsuleId, EntryId, Name, RehydrationId, hash_of};
use crate::json::Node;
use crate::pocket::open_calendar;
use crate::quotation::{self, LISTED_ID_BYTES, Quotation, Space, json_bytes};
use crate::time::WorldTime;
use crate::view::View;

/// Whoever wrote one of so many newest visible entries is present.
pub const PRESENT_ENTRIES: usize = 50;
/// Whoever is quoted in the replay gets at least so many bytes of the pack.
const REPLAYED_BYTES_MIN: usize = 128;
/// The parts that get an equal share: the replay, what is planned, the capsules, the newest
/// entries.
const SHARES: usize = 4;

/// What a writer that begins anew is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehydration {
    /// A hash of the view, its cursor and the words.
    pub id: RehydrationId,
    /// The time of the newest visible entry.
    pub created_at: WorldTime,
    /// The anchor, what is planned, what is known of those present, the newest entries.
    pub text: String,
    /// The last that each of those present said or did.
    pub replay: String,
    /// What was quoted, in ledger order.
    pub used: Vec<EntryId>,
    /// The capsules that were quoted from.
    pub capsules: Vec<CapsuleId>,
    /// How many visible entries were left out; each can still be found.
    pub dropped: u64,
}

/// Those who are present, with the last visible entry of each, the newest first.
fn present<'a>(view: &View<'a>) -> Vec<(&'a Name, Quotation<'a>)> {
    let mut met = HashSet::new();
    let persons = view
        .newest_first()
        .take(PRESENT_ENTRIES)
        .filter(|(_, entry)| is_somebody(entry));
    let last = persons.filter(|(_, entry)| met.insert(&entry.author.id));
    last.map(|(number, entry)| (&entry.author.id, Quotation::beginning(number, entry)))
        .collect()
}

/// The last words of as many of those present as get [`REPLAYED_BYTES_MIN`] each, the newest first.
/// Whoever said little leaves room to the others; the longest are cut.
fn replay<'a>(space: &mut Space, mut last: Vec<Quotation<'a>>) -> Vec<Quotation<'a>> {
    last.truncate((space.json() / REPLAYED_BYTES_MIN).max(1));
    last.sort_by_key(|quotation| quotation.range.len());
    let mut left = last.len();
    let mut replayed: Vec<_> = last
        .into_iter()
        .flat_map(|quotation| {
            let mut own = Space::of_json(space.json() / left);
            left -= 1;
            let whole = own.json();
            let filled = own.fill(std::iter::once(quotation), &mut HashSet::new());
            space.spend(whole - own.json());
            filled
        })
        .collect();
    replayed.sort_by_key(|quotation| quotation.number);
    replayed
}

fn is_somebody(entry: &Entry) -> bool {
    matches!(
        entry.author.class,
        AuthorClass::Person | AuthorClass::Operator
    )
}

/// What is being put together.
struct Draft<'v, 'a> {
    view: &'v View<'a>,
    parts: Vec<String>,
    /// What the text quotes.
    taken: HashSet<u32>,
    capsules: Vec<CapsuleId>,
}

impl<'a> Draft<'_, 'a> {
    fn push(&mut self, quotations: &[Quotation<'a>]) {
        if !quotations.is_empty() {
            self.parts.push(quotation::join(quotations));
        }
    }

    /// The anchor as it is sent.
    fn anchor(&mut self, anchor: &Anchor) {
        self.taken
            .extend(anchor.used.iter().filter_map(|id| self.view.number_of(*id)));
        if !anchor.text.is_empty() {
            self.parts.push(anchor.text.clone());
        }
    }

    /// The sources of what is planned.
    fn planned(&mut self, space: &mut Space) {
        let sources = open_calendar(self.view, self.view.time()).into_iter().rev();
        let sources = sources
            .filter_map(|number| Some(Quotation::beginning(number, self.view.numbered(number)?)));
        let quotations = space.fill(sources, &mut self.taken);
        self.push(&quotations);
    }

    /// What is known of those present, as much of each as of the others.
    fn persons(&mut self, space: &mut Space, present: &[&Name]) {
        for (index, person) in present.iter().enumerate() {
            let mut share = Space::of_json(space.json() / (present.len() - index));
            let whole = share.json();
            share.spend(LISTED_ID_BYTES);
            let capsule = Capsule::of(self.view, person.as_str());
            let quotations = share.fill(capsule.quotations.into_iter().rev(), &mut self.taken);
            if !quotations.is_empty() {
                self.push(&quotations);
                self.capsules.push(capsule.id);
                space.spend(whole - share.json());
            }
        }
    }

    fn newest(&mut self, space: &mut Space) {
        let quotations = space.fill(quotation::newest(self.view), &mut self.taken);
        self.push(&quotations);
    }
}

impl Rehydration {
    /// What the view knows, in a pack for a request that takes at most so many bytes as JSON. The
    /// anchor is the one that the new epoch begins with; its words come first.
    pub fn of(view: &View<'_>, anchor: &Anchor, request: &str, bytes_max: usize) -> Self {
        let bare = Self::bare(view).pack(request).to_string().len();
        let anchored = json_bytes(&anchor.text) + 2 + anchor.used.len() * LISTED_ID_BYTES;
        let mut space = Space::of_json(bytes_max.saturating_sub(bare + anchored));
        let share = space.json() / SHARES;
        let mut draft = Draft {
            view,
            parts: Vec::new(),
            taken: HashSet::new(),
            capsules: Vec::new(),
        };
        draft.anchor(anchor);
        let (present, last): (Vec<_>, Vec<_>) = present(view).into_iter().unzip();
        let replay = part(&mut space, share, |space| replay(space, last));
        part(&mut space, share, |space| draft.planned(space));
        part(&mut space, share, |space| draft.persons(space, &present));
        draft.newest(&mut space);
        Self::done(draft, &replay)
    }

    fn bare(view: &View<'_>) -> Self {
        let draft = Draft {
            view,
            parts: Vec::new(),
            taken: HashSet::new(),
            capsules: Vec::new(),
        };
        Self::done(draft, &[])
    }

    fn done(draft: Draft<'_, '_>, replay: &[Quotation<'_>]) -> Self {
        let (view, text, replay_text) =
            (draft.view, draft.parts.join("\n"), quotation::join(replay));
        let numbers: BTreeSet<u32> = draft
            .taken
            .into_iter()
            .chain(replay.iter().map(|quotation| quotation.number))
            .collect();
        let used: Vec<EntryId> = numbers
            .iter()
            .filter_map(|n| Some(view.numbered(*n)?.id))
            .collect();
        Self {
            id: id_of(view, &text, &replay_text),
            created_at: view.time().clone(),
            dropped: view.count().saturating_sub(used.len() as u64),
            text,
            replay: replay_text,
            used,
            capsules: draft.capsules,
        }
    }

    /// The rehydration pack.
    pub fn pack(&self, request: &str) -> Value {
        json!({
            "rehydration_id": self.id.to_string(),
            "request_id": request,
            "created_at_world": self.created_at.as_str(),
            "text": self.text,
            "physical_continuity_replay": self.replay,
            "provenance": {
                "used_entry_ids": quotation::listed(&self.used),
                "used_capsule_ids": self.capsules.iter().map(CapsuleId::to_string).collect::<Vec<_>>(),
            },
            "trigger": { "kind": "TOKEN_BUDGET", "threshold": format!("{}%", crate::epoch::THRESHOLD_PERCENT) },
        })
    }
}

/// Lets a part use a share of the space, and takes away what it used.
fn part<T>(space: &mut Space, share: usize, fill: impl FnOnce(&mut Space) -> T) -> T {
    let mut own = Space::of_json(share);
    let filled = fill(&mut own);
    space.spend(share - own.json());
    filled
}

fn id_of(view: &View<'_>, text: &str, replay: &str) -> RehydrationId {
    let cursor = cursor::write(view, view.count());
    RehydrationId(hash_of(&[
        "rehydration",
        view.viewer.as_str(),
        &cursor,
        text,
        replay,
    ]))
}

/// Refuses a pack that is no rehydration of the view: with a line that is in none of its sources,
/// an entry that the view may not see, or the id of other words.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let (text, replay) = (
        root.field("text")?,
        root.field("physical_continuity_replay")?,
    );
    let id = root.field("rehydration_id")?;
    if id.text()? != id_of(view, text.text()?, replay.text()?).to_string() {
        return Err(id.fault("is not the hash of view and words"));
    }
    let entries = quotation::used(view, &root)?;
    let scenes = view.world.scenes().iter().map(|scene| scene.text.as_str());
    let sources: Vec<&str> = entries
        .iter()
        .map(|entry| &*entry.text)
        .chain(scenes)
        .collect();
    [text, replay]
        .iter()
        .filter(|node| node.value != "")
        .try_for_each(|node| quotation::lines_are_verbatim(node, &sources))
}
