//! The facts that a world records, in three families that never mix: only reality is evidence.
//!
//! A fact says what happened, not what to do. Applying the facts in order makes the world.

use std::ops::Range;
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::config::{Config, Person};
use crate::entry::Entry;
use crate::ids::{BundleId, EntryId, ItemId, Name, TokenId};
use crate::time::{WorldTime, Zone};

/// The families of records. Each has a context of its own in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Evidence: entries, times, items and bundles.
    Reality,
    /// What was done with the world.
    Audit,
    /// What was derived from evidence.
    Derived,
}

/// Everything that a world records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An entry.
    Entry(Entry),
    /// The operator declared a time, a zone or a pause.
    Time(TimeDeclaration),
    /// An item of the pocket.
    Item(PocketItem),
    /// The preceding entries, as many as it says, form one bundle.
    Bundle(BundleCommit),
    /// How a request ended. Recorded in the audit if the request left reality alone.
    Outcome(Box<Outcome>),
    /// The world was set up or its configuration changed.
    Config(Box<Config>),
    /// The world began as a fork.
    Forked(Fork),
    /// A person was added or changed.
    Person(Person),
    /// A person got a token.
    Token(Token),
    /// A token was revoked.
    Revoked(TokenId),
    /// Something worth auditing was done or read.
    AuditLine(AuditLine),
    /// The scene was set.
    Scene(Scene),
    /// A writer noted something about a person.
    Note(Note),
    /// A new epoch of the attached writer began.
    Epoch(Box<Epoch>),
}

/// The state of a world's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockState {
    /// The world's time.
    pub time: WorldTime,
    /// The zone in which times are shown.
    pub timezone: Zone,
    /// Whether the clock is paused.
    pub paused: bool,
}

/// A change of the clock by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeDeclaration {
    /// The time before.
    pub from: WorldTime,
    /// The clock from then on, with zone and pause.
    pub to: ClockState,
}

/// The kind of a pocket item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// An appointment.
    Calendar,
    /// A message.
    Message,
}

/// A byte range in a text.
pub type Span = Range<u32>;

/// A pocket item. All of its words are parts of its entry's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PocketItem {
    /// Its id.
    pub id: ItemId,
    /// The kind of item.
    pub kind: ItemKind,
    /// The entry that it comes from.
    pub entry: EntryId,
    /// Its title; a calendar item without one cancels what it supersedes.
    pub title: Option<Span>,
    /// The time of the appointment.
    pub time: Option<WorldTime>,
    /// The place of the appointment.
    pub location: Option<Span>,
    /// Further words.
    pub notes: Option<Span>,
    /// The item that it replaces, for readers who see this one.
    pub supersedes: Option<ItemId>,
}

/// The proposer of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedBy {
    /// The software that wrote it.
    pub engine: String,
    /// The name in which the software acted.
    pub actor: String,
}

/// The record of a committed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleCommit {
    /// Its id.
    pub id: BundleId,
    /// The request of the beat.
    pub request: Arc<str>,
    /// Who proposed it.
    pub proposed_by: ProposedBy,
    /// The number of its entries.
    pub entries: u32,
}

/// The two kinds of requests that write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// An invocation. The answer is a projection.
    Invocation,
    /// A beat with its own bundle. The answer has the bundle and a projection.
    Beat,
}

/// How a request ended. It has everything that is needed to make the same answer again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The request's id.
    pub request: Arc<str>,
    /// The caller's key.
    pub principal: String,
    /// A hash of the request's content.
    pub fingerprint: [u8; 32],
    /// The kind of request.
    pub kind: RequestKind,
    /// `CODE: path`, if the proposal was rejected.
    pub rejection: Option<String>,
    /// The reader for whom the answer was made.
    pub viewer: String,
    /// The cursor in the request.
    pub cursor_before: Option<String>,
    /// How many visible entries come before the page.
    pub page_start: u64,
    /// The cursor in the answer.
    pub cursor_after: Option<String>,
    /// The clock after the beat, as the projection shows it.
    pub clock: ClockState,
    /// Whether the beat moved or declared time. A beat that is only a rejected proposal does not.
    pub clock_moved: bool,
    /// The number of entries after the beat.
    pub position: u32,
    /// The committed bundle, if any.
    pub bundle: Option<BundleId>,
    /// Whether the answer shows the pocket.
    pub pocket_available: bool,
    /// The version of the projection's rules. Released rules never change.
    pub version: u32,
    /// The BLAKE3 hash of the answer.
    pub response: [u8; 32],
}

/// The origin of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The world that was forked.
    pub from: Name,
    /// The number of entries that they share.
    pub position: u32,
}

/// A person's token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// The person who holds it.
    pub person: Name,
    /// Whether it may write.
    pub write: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The BLAKE3 hash of the secret.
    pub secret: [u8; 32],
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// When, by the server's clock.
    pub at: Timestamp,
    /// The caller's key.
    pub principal: String,
    /// The action, such as `rejection`, `tool`, `acting-as`, `audit-read`, `store-read`.
    pub what: String,
    /// The request that it belongs to, if any.
    pub request: Option<Arc<str>>,
    /// Details as JSON.
    pub details: String,
}

/// A scene that a writer set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// The number of entries when it was set.
    pub position: u32,
    /// The text.
    pub text: String,
    /// The entries that it is made from; never empty.
    pub cited: Vec<EntryId>,
}

/// A writer's note about a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The number of entries when it was written.
    pub position: u32,
    /// The person.
    pub person: Name,
    /// The text.
    pub text: String,
    /// The entries that it is made from; never empty.
    pub cited: Vec<EntryId>,
}

/// One epoch of the attached writer: what the writer was sent at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Counted from 1.
    pub number: u64,
    /// The number of entries when it began.
    pub position: u32,
    /// The anchor, as a scene anchor pack.
    pub anchor: String,
    /// The rehydration pack that it began with, if any.
    pub rehydration: Option<String>,
}

impl Fact {
    /// The family of the fact. An outcome that left reality alone belongs to the audit.
    pub fn family(&self) -> Family {
        match self {
            Self::Outcome(outcome) if outcome.leaves_reality_alone() => Family::Audit,
            Self::Entry(_) | Self::Time(_) | Self::Item(_) | Self::Bundle(_) | Self::Outcome(_) => {
                Family::Reality
            }
            Self::Config(_)
            | Self::Forked(_)
            | Self::Person(_)
            | Self::Token(_)
            | Self::Revoked(_)
            | Self::AuditLine(_) => Family::Audit,
            Self::Scene(_) | Self::Note(_) | Self::Epoch(_) => Family::Derived,
        }
    }
}

impl Outcome {
    /// Whether the request was only a rejected proposal.
    pub fn leaves_reality_alone(&self) -> bool {
        self.rejection.is_some() && self.bundle.is_none() && !self.clock_moved
    }
}
