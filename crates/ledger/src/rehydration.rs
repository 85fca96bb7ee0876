//! Rehydration: what a writer that starts anew is sent of the past.
//!
//! Every word is a verbatim piece of an entry or the anchor's text, all from one view. The pack
//! always fits the given number of JSON bytes: it leaves out the oldest entries. Each section has
//! an equal share, and the bytes that a section does not need go to the newest entries. Building it
//! cannot fail.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::anchor::Anchor;
use crate::capsule::Capsule;
use crate::cursor;
use crate::entry::{AuthorClass, Entry};
use crate::fault::{Code, Fault};
use crate::ids::{CapsuleId, EntryId, Name, RehydrationId, hash_parts};
use crate::json::Node;
use crate::pocket::open_calendar;
use crate::quotation::{self, LISTED_ID_BYTES, Quotation, Space, json_bytes};
use crate::time::WorldTime;
use crate::view::View;

/// The authors of this many newest visible entries count as present.
pub const PRESENT_ENTRIES: usize = 50;
/// Each quoted author gets at least this many bytes of the replay.
const REPLAYED_BYTES_MIN: usize = 128;
/// The sections that get an equal share: replay, appointments, capsules, newest entries.
const SECTIONS: usize = 4;

/// A rehydration of one view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehydration {
    /// A hash of the view, its cursor and the words.
    pub id: RehydrationId,
    /// The time of the newest visible entry.
    pub created_at: WorldTime,
    /// The anchor, the appointments, the capsules of those present, and the newest entries.
    pub text: String,
    /// The last entry of each person who is present.
    pub replay: String,
    /// The quoted entries, in ledger order.
    pub used: Vec<EntryId>,
    /// The capsules that it quotes from.
    pub capsules: Vec<CapsuleId>,
    /// How many visible entries it leaves out. The writer can still search for them.
    pub dropped: u64,
}

/// The authors who are present, each with their last visible entry, the newest first.
fn find_present<'a>(view: &View<'a>) -> Vec<(&'a Name, Quotation<'a>)> {
    let mut met = HashSet::new();
    let mut present = Vec::new();
    for (number, entry) in view.newest_first().take(PRESENT_ENTRIES) {
        let author = &entry.author.id;
        if is_by_person(entry) && met.insert(author) {
            present.push((author, Quotation::beginning(number, entry)));
        }
    }
    present
}

/// Quotes the last entries of those present, as many as get [`REPLAYED_BYTES_MIN`] each. The
/// shortest come first, so that the bytes they do not use go to the longer ones; only the longest
/// are cut.
fn fill_replay<'a>(space: &mut Space, mut last: Vec<Quotation<'a>>) -> Vec<Quotation<'a>> {
    // Fewer authors rather than a few bytes of each. The newest come first.
    last.truncate((space.json_left() / REPLAYED_BYTES_MIN).max(1));
    // The shortest first: what it does not need of its share goes to the longer ones. Of 300 bytes,
    // entries of 20, 150 and 400 bytes get 20, 140 and 140.
    last.sort_by_key(|quotation| quotation.range.len());
    let mut left = last.len();
    let mut replayed = Vec::with_capacity(left);
    for quotation in last {
        let mut share = Space::of_json(space.json_left() / left);
        left -= 1;
        let before = share.json_left();
        replayed.extend(share.fill(std::iter::once(quotation), &mut HashSet::new()));
        space.use_json(before - share.json_left());
    }
    replayed.sort_by_key(|quotation| quotation.number);
    replayed
}

fn is_by_person(entry: &Entry) -> bool {
    matches!(
        entry.author.class,
        AuthorClass::Person | AuthorClass::Operator
    )
}

/// A rehydration that is being built.
struct Builder<'v, 'a> {
    view: &'v View<'a>,
    parts: Vec<String>,
    /// The entries that the text quotes already.
    taken: HashSet<u32>,
    capsules: Vec<CapsuleId>,
}

impl<'a> Builder<'_, 'a> {
    fn push_quotations(&mut self, quotations: &[Quotation<'a>]) {
        if !quotations.is_empty() {
            self.parts.push(quotation::join_texts(quotations));
        }
    }

    /// Adds the anchor's text.
    fn push_anchor(&mut self, anchor: &Anchor) {
        self.taken
            .extend(anchor.used.iter().filter_map(|id| self.view.number_of(*id)));
        if !anchor.text.is_empty() {
            self.parts.push(anchor.text.clone());
        }
    }

    /// Adds the entries of open appointments.
    fn push_appointments(&mut self, space: &mut Space) {
        let sources = open_calendar(self.view, self.view.newest_time())
            .into_iter()
            .rev();
        let sources = sources
            .filter_map(|number| Some(Quotation::beginning(number, self.view.entry_at(number)?)));
        let quotations = space.fill(sources, &mut self.taken);
        self.push_quotations(&quotations);
    }

    /// Adds capsules of those present, each with an equal share.
    fn push_capsules(&mut self, space: &mut Space, present: &[&Name]) {
        for (index, person) in present.iter().enumerate() {
            let mut share = Space::of_json(space.json_left() / (present.len() - index));
            let whole = share.json_left();
            // The pack also lists the capsule's id.
            share.use_json(LISTED_ID_BYTES);
            let capsule = Capsule::build(self.view, person.as_str());
            let quotations = share.fill(capsule.quotations.into_iter().rev(), &mut self.taken);
            // A capsule without a new quotation is not listed, so its share stays for the others.
            if !quotations.is_empty() {
                self.push_quotations(&quotations);
                self.capsules.push(capsule.id);
                space.use_json(whole - share.json_left());
            }
        }
    }

    fn push_newest(&mut self, space: &mut Space) {
        let quotations = space.fill(quotation::quote_newest(self.view), &mut self.taken);
        self.push_quotations(&quotations);
    }
}

impl<'v, 'a> Builder<'v, 'a> {
    fn new(view: &'v View<'a>) -> Self {
        Self {
            view,
            parts: Vec::new(),
            taken: HashSet::new(),
            capsules: Vec::new(),
        }
    }

    fn finish(self, replay: &[Quotation<'_>]) -> Rehydration {
        let (view, text, replay_text) = (
            self.view,
            self.parts.join("\n"),
            quotation::join_texts(replay),
        );
        let numbers: BTreeSet<u32> = self
            .taken
            .into_iter()
            .chain(replay.iter().map(|quotation| quotation.number))
            .collect();
        let used: Vec<EntryId> = numbers
            .iter()
            .filter_map(|n| Some(view.entry_at(*n)?.id))
            .collect();
        Rehydration {
            id: rehydration_id(view, &text, &replay_text),
            created_at: view.newest_time().clone(),
            dropped: view.count().saturating_sub(used.len() as u64),
            text,
            replay: replay_text,
            used,
            capsules: self.capsules,
        }
    }
}

impl Rehydration {
    /// Builds a pack of at most `bytes_max` bytes of JSON for a request. The anchor is the one that
    /// the new epoch begins with.
    pub fn build(view: &View<'_>, anchor: &Anchor, request: &str, bytes_max: usize) -> Self {
        // Measured, not estimated: ids and times have different lengths in different worlds.
        let empty_bytes = Self::empty(view).pack(request).to_string().len();
        // Two bytes for the escaped newline behind the anchor.
        let anchor_bytes = json_bytes(&anchor.text) + 2 + anchor.used.len() * LISTED_ID_BYTES;
        let mut space = Space::of_json(bytes_max.saturating_sub(empty_bytes + anchor_bytes));
        let share = space.json_left() / SECTIONS;
        let mut builder = Builder::new(view);
        builder.push_anchor(anchor);
        // The replay is a field of its own and may repeat entries of the text. The sections of the
        // text share `taken`, so each quotes only what those before it left.
        let (present, last): (Vec<_>, Vec<_>) = find_present(view).into_iter().unzip();
        let replay = fill_section(&mut space, share, |space| fill_replay(space, last));
        fill_section(&mut space, share, |space| builder.push_appointments(space));
        fill_section(&mut space, share, |space| {
            builder.push_capsules(space, &present);
        });
        // The last section uses everything that the others left.
        builder.push_newest(&mut space);
        builder.finish(&replay)
    }

    fn empty(view: &View<'_>) -> Self {
        Builder::new(view).finish(&[])
    }

    /// The rehydration pack as JSON.
    pub fn pack(&self, request: &str) -> Value {
        json!({
            "rehydration_id": self.id.to_string(),
            "request_id": request,
            "created_at_world": self.created_at.as_str(),
            "text": self.text,
            "physical_continuity_replay": self.replay,
            "provenance": {
                "used_entry_ids": quotation::id_texts(&self.used),
                "used_capsule_ids": self.capsules.iter().map(CapsuleId::to_string).collect::<Vec<_>>(),
            },
            "trigger": { "kind": "TOKEN_BUDGET", "threshold": format!("{}%", crate::epoch::THRESHOLD_PERCENT) },
        })
    }
}

/// Lets a section use a share of the space, and subtracts what it used.
fn fill_section<T>(space: &mut Space, share: usize, fill: impl FnOnce(&mut Space) -> T) -> T {
    let mut own = Space::of_json(share);
    let filled = fill(&mut own);
    space.use_json(share - own.json_left());
    filled
}

fn rehydration_id(view: &View<'_>, text: &str, replay: &str) -> RehydrationId {
    let cursor = cursor::write(view, view.count());
    RehydrationId(hash_parts(&[
        "rehydration",
        view.viewer.as_str(),
        &cursor,
        text,
        replay,
    ]))
}

/// Rejects a pack that is not a rehydration of the view: every line must be in one of its sources,
/// all sources must be visible, and its id must match its content.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let (text, replay) = (
        root.field("text")?,
        root.field("physical_continuity_replay")?,
    );
    let id = root.field("rehydration_id")?;
    if id.text()? != rehydration_id(view, text.text()?, replay.text()?).to_string() {
        return Err(id.fault("is not the hash of view and words"));
    }
    let entries = quotation::cited_entries(view, &root)?;
    // The anchor inside the text may quote a scene, which is not an entry.
    let scenes = view.world.scenes().iter().map(|scene| scene.text.as_str());
    let sources: Vec<&str> = entries
        .iter()
        .map(|entry| &*entry.text)
        .chain(scenes)
        .collect();
    [text, replay]
        .iter()
        .filter(|node| node.value != "")
        .try_for_each(|node| quotation::check_lines_verbatim(node, &sources))
}
