//! What a world records. Facts of three families, never mixed: only reality is evidence.
//!
//! A fact says what happened, not what to do; applying facts in order makes the world.

use std::ops::Range;
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::config::{Config, Person};
use crate::entry::Entry;
use crate::ids::{BundleId, EntryId, ItemId, Name, TokenId};
use crate::time::{WorldTime, Zone};

/// The families of records; each has a context of its own in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// What is so: evidence.
    Reality,
    /// What was done with the world.
    Audit,
    /// What was made from evidence.
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
    /// The entries before this one, as many as it says, are one bundle.
    Bundle(BundleCommit),
    /// How a request ended. In reality, or in audit where it left reality alone.
    Outcome(Box<Outcome>),
    /// The world was set up or its configuration changed.
    Config(Box<Config>),
    /// The world began as another's past.
    Forked(Fork),
    /// A person was added or described anew.
    Person(Person),
    /// A token was given to a person.
    Token(Token),
    /// A token counts no more.
    Revoked(TokenId),
    /// Something was done or read that is worth a line.
    Line(AuditLine),
    /// The scene was set anew.
    Scene(Scene),
    /// Somebody noted something about a person.
    Note(Note),
    /// The attached writer began anew.
    Epoch(Box<Epoch>),
}

/// A world's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockState {
    /// Now.
    pub time: WorldTime,
    /// In which zone it is shown.
    pub timezone: Zone,
    /// Whether it stands still.
    pub paused: bool,
}

/// The operator's word about time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeDeclaration {
    /// The time before.
    pub from: WorldTime,
    /// The time from then on, with the zone and the pause.
    pub to: ClockState,
}

/// What a pocket item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// Something planned.
    Calendar,
    /// Something told.
    Message,
}

/// A part of a text, in bytes.
pub type Span = Range<u32>;

/// Something in the pocket. All of its words are parts of its entry's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PocketItem {
    /// Its id.
    pub id: ItemId,
    /// What it is.
    pub kind: ItemKind,
    /// Its source.
    pub entry: EntryId,
    /// Its title; a calendar item without one cancels what it supersedes.
    pub title: Option<Span>,
    /// When it is.
    pub time: Option<WorldTime>,
    /// Where it is.
    pub location: Option<Span>,
    /// More about it.
    pub notes: Option<Span>,
    /// The item that it replaces, for those who see this one.
    pub supersedes: Option<ItemId>,
}

/// Who proposed a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedBy {
    /// With what.
    pub engine: String,
    /// In whose name.
    pub actor: String,
}

/// A committed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleCommit {
    /// Its id.
    pub id: BundleId,
    /// The beat's request.
    pub request: Arc<str>,
    /// Who proposed it.
    pub proposed_by: ProposedBy,
    /// How many entries it has.
    pub entries: u32,
}

/// By which door a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// An invocation: answered by a projection.
    Invocation,
    /// A beat with its own bundle: answered by the bundle and a projection.
    Beat,
}

/// How a request ended: the recipe by which the same answer is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The request.
    pub request: Arc<str>,
    /// Whose it was.
    pub principal: String,
    /// The fingerprint of what was asked.
    pub fingerprint: [u8; 32],
    /// By which door it came.
    pub door: Door,
    /// `CODE: path` where the proposal was rejected.
    pub rejection: Option<String>,
    /// Who looked.
    pub viewer: String,
    /// The cursor that was given.
    pub cursor_before: Option<String>,
    /// How many visible entries were behind the page.
    pub page_start: u64,
    /// The cursor that was given back.
    pub cursor_after: Option<String>,
    /// The world's time afterwards, as the projection shows it.
    pub clock: ClockState,
    /// Whether the beat moved or declared time: a rejected proposal alone does not.
    pub clock_moved: bool,
    /// How many entries the world had afterwards.
    pub position: u32,
    /// The bundle, if one was committed.
    pub bundle: Option<BundleId>,
    /// Whether the pocket was shown.
    pub pocket_available: bool,
    /// By which rules the answer was made; frozen once released.
    pub version: u32,
    /// The BLAKE3 of the answer.
    pub response: [u8; 32],
}

/// A world that shares another's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The world that it was forked from.
    pub from: Name,
    /// How many entries they share.
    pub position: u32,
}

/// A person's token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// Whose it is.
    pub person: Name,
    /// Whether it may write.
    pub write: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// The BLAKE3 of the secret.
    pub secret: [u8; 32],
}

/// A line of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// When, by the server's clock.
    pub at: Timestamp,
    /// Who.
    pub principal: String,
    /// What was done, such as `rejection`, `tool`, `acting-as`, `audit-read`, `store-read`.
    pub what: String,
    /// The request that it belongs to, or none.
    pub request: Option<Arc<str>>,
    /// More, as JSON.
    pub details: String,
}

/// A scene as a writer set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// How many entries the world had.
    pub position: u32,
    /// The words.
    pub text: String,
    /// What they are made from; never empty.
    pub cited: Vec<EntryId>,
}

/// What a writer noted about a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How many entries the world had.
    pub position: u32,
    /// About whom.
    pub person: Name,
    /// The words.
    pub text: String,
    /// What they are made from; never empty.
    pub cited: Vec<EntryId>,
}

/// One life of the attached writer: what it was told at its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// From 1 on.
    pub number: u64,
    /// How many entries the world had.
    pub position: u32,
    /// The anchor, as a scene anchor pack.
    pub anchor: String,
    /// The rehydration pack that it began with, if it was one.
    pub rehydration: Option<String>,
}

impl Fact {
    /// The family of the fact. An outcome that left reality alone is audit.
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
            | Self::Line(_) => Family::Audit,
            Self::Scene(_) | Self::Note(_) | Self::Epoch(_) => Family::Derived,
        }
    }
}

impl Outcome {
    /// A rejected proposal that came with nothing else.
    pub fn leaves_reality_alone(&self) -> bool {
        self.rejection.is_some() && self.bundle.is_none() && !self.clock_moved
    }
}
