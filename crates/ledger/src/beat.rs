//! Beats: decides what one request adds to a world, from the world before it.
//!
//! [`decide`] takes values and returns facts; it changes nothing. The operator's own words are
//! committed whatever becomes of a proposal. A rejected proposal adds only its outcome and an
//! audit line. The answer is made here too, from the world and the staged entries, because the
//! recorded outcome contains the hash of the answer.
//!
//! Worked example: the operator writes "Hello" and the attached writer proposes one entry with an
//! unknown author. The facts are, in this order: the operator's entry, the bundle commit, the
//! outcome with the rejection, and an audit line about it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use crate::acceptance::{self, Actor, Terms};
use crate::clock::{self, Declared};
use crate::cursor;
use crate::entry::{Author, AuthorClass, Channel, Entry};
use crate::envelope::Envelope;
use crate::fact::{
    AuditLine, BundleCommit, ClockState, Fact, Note, Outcome, PocketItem, ProposedBy, RequestKind,
    Scene, TimeDeclaration,
};
use crate::fault::{Code, Fault};
use crate::ids::{BundleId, EntryId, Ids, ItemId, Name};
use crate::lint;
use crate::outcome::{self, WrittenBundle};
use crate::principal::{CitableEntries, Grant, Principal};
use crate::projection::{self, Frame, Projection};
use crate::proposal::{Proposal, ProposedEntry, ProposedItem, ProposedNote, ProposedScene};
use crate::staged::Staged;
use crate::time::WorldTime;
use crate::view::View;
use crate::world::World;

#[cfg(test)]
mod tests;

/// The engine of a bundle that only has the operator's words.
const ENGINE: &str = "turnkeep";

/// A bundle that a writer proposes, and its permissions.
#[derive(Debug, Clone)]
pub struct Offer<'a> {
    /// The bundle as it was sent.
    pub bundle: &'a Value,
    /// The required actor of the bundle.
    pub actor: Actor<'a>,
    /// The authors in whose names the writer may write.
    pub grant: Grant,
    /// The entries that it may cite.
    pub citable: CitableEntries,
    /// Whether the writer may set the scene.
    pub may_set_scene: bool,
}

/// A request that may write.
pub struct Beat<'a> {
    /// The caller.
    pub principal: &'a Principal,
    /// The kind of request.
    pub kind: RequestKind,
    /// The request itself.
    pub envelope: &'a Envelope,
    /// A hash of the request's content, by which a repetition is recognized.
    pub fingerprint: [u8; 32],
    /// The proposal of a writer, if there is one.
    pub offer: Option<Offer<'a>>,
    /// If given, the request is rejected when a visible entry came after this cursor.
    pub expected_cursor: Option<&'a str>,
    /// The server's clock.
    pub now: Timestamp,
}

/// The result of a beat.
#[derive(Debug)]
pub struct Decision {
    /// The facts to record, in order, in one append.
    pub facts: Vec<Fact>,
    /// The answer.
    pub response: Bytes,
    /// Whether the caller's own bundle was rejected.
    pub rejected: bool,
}

/// Decides a beat. A fault leaves no trace in the world.
pub fn decide(world: &World, beat: &Beat<'_>, ids: &mut Ids) -> Result<Decision, Fault> {
    let Admitted {
        view,
        page_start,
        declared,
        commit,
    } = admit(world, beat)?;
    let verdict = beat
        .offer
        .as_ref()
        .map(|offer| accept_offer(world, beat, offer, &declared, &commit))
        .transpose();
    // A rejected proposal is not a fault of the request: the operator's part still counts.
    let (proposal, rejection) = match verdict {
        Ok(proposal) => (proposal, None),
        Err(fault) => (None, Some(fault)),
    };
    let mut builder = BeatBuilder::new(world, beat, &declared, commit, ids);
    builder.add_proposal(world, beat, proposal, ids);
    builder.record_rejection(beat, rejection);
    Ok(builder.finish(&view, beat, page_start))
}

/// Returns the fault that [`decide`] would return for any proposal, so that the server does not ask
/// the writer for nothing.
pub fn check_request(world: &World, beat: &Beat<'_>) -> Result<(), Fault> {
    admit(world, beat).map(drop)
}

/// A request without faults, and what was derived from it.
struct Admitted<'a> {
    view: View<'a>,
    page_start: u64,
    declared: Declared,
    commit: WorldTime,
}

fn admit<'a>(world: &'a World, beat: &Beat<'_>) -> Result<Admitted<'a>, Fault> {
    // Callers see which fault comes first, so the order of these checks must not change.
    beat.envelope.check_invoker(&world.config, &world.people)?;
    let view = world.view(beat.principal.viewer());
    check_expected(&view, beat.expected_cursor)?;
    let page_start = page_start(&view, beat.envelope.cursor.as_deref())?;
    let declared = declared_by(world, beat.envelope)?;
    let commit = clock::commit_time(&world.clock, world.config.clock, beat.now, &declared)?;
    Ok(Admitted {
        view,
        page_start,
        declared,
        commit,
    })
}

fn declared_by(world: &World, envelope: &Envelope) -> Result<Declared, Fault> {
    Ok(Declared {
        time: envelope.declared_instant(&world.clock.timezone)?,
        timezone: envelope.timezone.clone(),
        pause: envelope.pause,
    })
}

/// The clock as it would be if only the operator's part of a request were committed now. The
/// attached writer is sent this time.
pub fn clock_at(world: &World, envelope: &Envelope, now: Timestamp) -> Result<ClockState, Fault> {
    let declared = declared_by(world, envelope)?;
    let commit = clock::commit_time(&world.clock, world.config.clock, now, &declared)?;
    Ok(clock::clock_after(&world.clock, &declared, &commit, None))
}

/// Rejects cursors that are not valid in a view. A cursor that was valid once stays valid, so a
/// repeated request never fails this check.
pub fn check_cursors(
    view: &View<'_>,
    envelope: &Envelope,
    expected: Option<&str>,
) -> Result<(), Fault> {
    page_start(view, envelope.cursor.as_deref())?;
    expected.map_or(Ok(()), |given| {
        cursor::read(view, given, "expected_cursor").map(drop)
    })
}

fn check_expected(view: &View<'_>, expected: Option<&str>) -> Result<(), Fault> {
    let place = expected
        .map(|given| cursor::read(view, given, "expected_cursor"))
        .transpose()?;
    match place {
        Some(place) if place < view.count() => {
            let message = "something that you can see was written since: read it and decide again";
            Err(Fault::new(Code::HeadMoved, "expected_cursor", message))
        }
        Some(_) | None => Ok(()),
    }
}

/// The place where the page of the answer begins. Without a cursor the answer shows only the beat's
/// own entries.
fn page_start(view: &View<'_>, given: Option<&str>) -> Result<u64, Fault> {
    given.map_or(Ok(view.count()), |given| {
        cursor::read(view, given, "ui.stream_cursor")
    })
}

/// Accepts or rejects the proposal of a writer.
fn accept_offer(
    world: &World,
    beat: &Beat<'_>,
    offer: &Offer<'_>,
    declared: &Declared,
    commit: &WorldTime,
) -> Result<Proposal, Fault> {
    let is_citable = |number: u32| offer.citable.includes(world, number);
    let sees = |id: EntryId| world.number_of(id).is_some_and(is_citable);
    let sees_item = |id: ItemId| world.item(id).is_some_and(|row| is_citable(row.entry));
    // Time stands still in a paused world, so no entry may be ahead of it.
    let ahead_seconds = if world.clock.paused {
        0
    } else {
        acceptance::AHEAD_SECONDS_MAX
    };
    let terms = Terms {
        config: &world.config,
        people: &world.people,
        request: &beat.envelope.request_id,
        actor: offer.actor,
        grant: &offer.grant,
        earliest: &earliest_entry_time(world, beat.envelope, commit),
        commit,
        ahead_seconds,
        zone: declared.timezone.as_ref().unwrap_or(&world.clock.timezone),
        may_set_scene: offer.may_set_scene,
        cites: &sees,
        item: &sees_item,
    };
    acceptance::accept(offer.bundle, &terms)
}

/// The earliest time that a writer may give its entries: any time since it was asked, but not
/// earlier than the last entry.
fn earliest_entry_time(world: &World, envelope: &Envelope, commit: &WorldTime) -> WorldTime {
    // The operator's entry comes first and has the commit's time.
    if envelope.speaks_as_operator() {
        return commit.clone();
    }
    let thinking = i64::try_from(world.config.limits.writer_seconds).unwrap_or(i64::MAX);
    let asked_at = commit.plus_seconds(-thinking.max(acceptance::AHEAD_SECONDS_MAX));
    world.clock.time.clone().max(asked_at)
}

/// An audit line about a beat.
fn audit_line(beat: &Beat<'_>, what: &str, details: &Value) -> Fact {
    Fact::AuditLine(AuditLine {
        at: beat.now,
        principal: beat.principal.key(),
        what: what.to_owned(),
        request: Some(Arc::clone(&beat.envelope.request_id)),
        details: details.to_string(),
    })
}

fn make_item(id: ItemId, entry: EntryId, item: ProposedItem) -> PocketItem {
    PocketItem {
        id,
        kind: item.kind,
        entry,
        title: item.title,
        time: item.time,
        location: item.location,
        notes: item.notes,
        supersedes: item.supersedes,
    }
}

/// The operator's text as an entry, which everyone may see. Without a time of its own, it gets the
/// time of the commit.
fn operator_words(text: &str) -> ProposedEntry {
    ProposedEntry {
        author: Author {
            class: AuthorClass::Operator,
            id: Name::operator(),
        },
        visible_to: None,
        channel: Channel::User,
        time: None,
        text: text.to_owned(),
        reply_to: None,
    }
}

/// The facts of a beat, while they are collected.
struct BeatBuilder {
    commit: WorldTime,
    clock: ClockState,
    declaration: Option<TimeDeclaration>,
    bundle: BundleId,
    proposed_by: ProposedBy,
    entries: Vec<Entry>,
    items: Vec<PocketItem>,
    derived: Vec<Fact>,
    audit: Vec<Fact>,
    rejection: Option<String>,
    declared: Declared,
    before: ClockState,
}

impl BeatBuilder {
    /// Starts with the operator's part: the text and the declared time.
    fn new(
        world: &World,
        beat: &Beat<'_>,
        declared: &Declared,
        commit: WorldTime,
        ids: &mut Ids,
    ) -> Self {
        let bundle = BundleId(ids.draw());
        let remarks = beat.envelope.remarks();
        let remarks = remarks.map(|said| audit_line(beat, "remarks", &said));
        let mut builder = Self {
            clock: clock::clock_after(&world.clock, declared, &commit, None),
            declaration: None,
            commit,
            bundle,
            proposed_by: ProposedBy {
                engine: ENGINE.to_owned(),
                actor: beat.envelope.invoker_id.clone(),
            },
            entries: Vec::new(),
            items: Vec::new(),
            derived: Vec::new(),
            audit: remarks.into_iter().collect(),
            rejection: None,
            declared: declared.clone(),
            before: world.clock.clone(),
        };
        if !beat.envelope.input_text.is_empty() {
            let words = operator_words(&beat.envelope.input_text);
            let entry = builder.make_entry(world, beat, words, ids);
            builder.entries.push(entry);
        }
        builder
    }

    fn make_entry(
        &self,
        world: &World,
        beat: &Beat<'_>,
        proposed: ProposedEntry,
        ids: &mut Ids,
    ) -> Entry {
        Entry {
            id: EntryId(ids.draw()),
            bundle: self.bundle,
            request: Arc::clone(&beat.envelope.request_id),
            time: proposed.time.unwrap_or_else(|| self.commit.clone()),
            // The label of today: a person who is renamed later keeps it on old entries.
            label: world.label_of(proposed.author.class, proposed.author.id.as_str()),
            author: proposed.author,
            visible_to: proposed.visible_to,
            channel: proposed.channel,
            text: proposed.text.into(),
            reply_to: proposed.reply_to,
        }
    }

    /// Adds the writer's part, if it was accepted.
    fn add_proposal(
        &mut self,
        world: &World,
        beat: &Beat<'_>,
        proposal: Option<Proposal>,
        ids: &mut Ids,
    ) {
        let Some(proposal) = proposal else { return };
        self.proposed_by = proposal.proposed_by;
        let first = self.entries.len();
        for proposed in proposal.entries {
            self.entries
                .push(self.make_entry(world, beat, proposed, ids));
        }
        for item in proposal.items {
            // Item indexes count the proposal's entries, which come behind the operator's own.
            if let Some(source) = self.entries.get(first + item.entry_index) {
                let id = ItemId(ids.draw());
                self.items.push(make_item(id, source.id, item));
            }
        }
        self.add_derived(self.position_after(world), proposal.scene, proposal.notes);
        // Only public entries move the clock: otherwise a hidden entry would show in the time.
        let last_public = self
            .entries
            .iter()
            .rev()
            .find(|entry| entry.visible_to.is_none());
        let last_public = last_public.map(|entry| &entry.time);
        self.clock = clock::clock_after(&self.before, &self.declared, &self.commit, last_public);
    }

    /// Adds the scene and the notes. `position` lies behind the beat's own entries, which they may
    /// describe.
    fn add_derived(
        &mut self,
        position: u32,
        scene: Option<ProposedScene>,
        notes: Vec<ProposedNote>,
    ) {
        if let Some(scene) = scene {
            self.derived.push(Fact::Scene(Scene {
                position,
                text: lint::text_to_record(scene.text),
                cited: scene.cited,
            }));
        }
        for note in notes {
            self.derived.push(Fact::Note(Note {
                position,
                person: note.person,
                text: lint::text_to_record(note.text),
                cited: note.cited,
            }));
        }
    }

    /// Records a rejection. If the request has nothing else, the clock does not move.
    fn record_rejection(&mut self, beat: &Beat<'_>, rejection: Option<Fault>) {
        let Some(fault) = rejection else { return };
        self.rejection = Some(fault.reason());
        let details = json!({ "reason": fault.reason(), "message": fault.message });
        self.audit.push(audit_line(beat, "rejection", &details));
        // Otherwise a writer whose proposals are all rejected would still move a step clock.
        if self.entries.is_empty() && !self.declared.is_some() {
            self.clock = self.before.clone();
        }
    }

    fn moved_time(&self) -> bool {
        self.rejection.is_none() || !self.entries.is_empty() || self.declared.is_some()
    }

    fn finish(mut self, view: &View<'_>, beat: &Beat<'_>, page_start: u64) -> Decision {
        if self.declared.is_some() {
            self.declaration = Some(TimeDeclaration {
                from: self.before.time.clone(),
                to: self.clock.clone(),
            });
        }
        let commit = self.bundle_commit(beat);
        let bundle = commit.as_ref().map(|commit| commit.id);
        let projection = self.project(view, beat, page_start, bundle);
        let form = self.bundle_form(beat, commit.as_ref());
        let response = outcome::encode_response(form, projection.value);
        let outcome = Outcome {
            request: Arc::clone(&beat.envelope.request_id),
            principal: beat.principal.key(),
            fingerprint: beat.fingerprint,
            kind: beat.kind,
            rejection: self.rejection.clone(),
            viewer: view.viewer.as_str().to_owned(),
            cursor_before: beat.envelope.cursor.clone(),
            page_start,
            cursor_after: projection.cursor_after,
            clock: self.clock.clone(),
            clock_moved: self.moved_time(),
            position: self.position_after(view.world),
            bundle,
            pocket_available: view.world.config.pocket_available,
            version: projection::VERSION,
            response: *blake3::hash(&response).as_bytes(),
        };
        let rejected = self.rejection.is_some() && beat.kind == RequestKind::Beat;
        Decision {
            facts: self.into_facts(commit, outcome),
            response,
            rejected,
        }
    }

    /// The projection of the answer. It shows the new entries, which are not in the world yet.
    fn project(
        &self,
        view: &View<'_>,
        beat: &Beat<'_>,
        page_start: u64,
        bundle: Option<BundleId>,
    ) -> Projection {
        let frame = Frame {
            request: &beat.envelope.request_id,
            cursor_before: beat.envelope.cursor.as_deref(),
            start: page_start,
            clock: &self.clock,
            pocket_available: view.world.config.pocket_available,
            bundle,
            staged: Staged {
                entries: &self.entries,
                items: &self.items,
            },
            limit: projection::PAGE_ENTRIES_MAX,
            audiences: false,
        };
        projection::project(view, &frame)
    }

    /// The bundle in the answer, if the caller sent one.
    fn bundle_form(&self, beat: &Beat<'_>, commit: Option<&BundleCommit>) -> Option<Value> {
        // The caller of an invocation did not send a bundle: the attached writer did.
        if beat.kind != RequestKind::Beat {
            return None;
        }
        let offer = beat.offer.as_ref()?;
        let written = commit.map(|commit| WrittenBundle {
            commit,
            entries: &self.entries,
            items: &self.items,
        });
        let rejection = self.rejection.as_deref();
        let form = outcome::bundle_form(offer.bundle, rejection, written, &self.proposed_by);
        Some(form)
    }

    /// The number of entries in the world after the beat.
    fn position_after(&self, world: &World) -> u32 {
        world.position() + u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    fn bundle_commit(&self, beat: &Beat<'_>) -> Option<BundleCommit> {
        (!self.entries.is_empty()).then(|| BundleCommit {
            id: self.bundle,
            request: Arc::clone(&beat.envelope.request_id),
            proposed_by: self.proposed_by.clone(),
            entries: u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
        })
    }

    /// All facts in the order in which they are recorded.
    fn into_facts(self, commit: Option<BundleCommit>, outcome: Outcome) -> Vec<Fact> {
        let mut facts = Vec::with_capacity(self.entries.len() + self.items.len() + 4);
        // Entries come before their bundle commit, which counts them, and the outcome comes last of
        // reality, because `apply` takes the clock from it.
        facts.extend(self.declaration.map(Fact::Time));
        facts.extend(self.entries.into_iter().map(Fact::Entry));
        facts.extend(self.items.into_iter().map(Fact::Item));
        facts.extend(commit.map(Fact::Bundle));
        facts.push(Fact::Outcome(Box::new(outcome)));
        facts.extend(self.audit);
        facts.extend(self.derived);
        facts
    }
}
