//! The life of an attached writer: what it was told, how full it is, and what it is to be told
//! next.
//!
//! An epoch is the life of the writer's process. Its anchor is told once, in full; afterwards only
//! its id, until the writer begins anew, is full, or the scene was set. How full it is is the
//! ledger's own count of bytes, taken at the boundary of a beat; no words ask for a rehydration.
//! Nothing here can fail, so no beat waits for it.

use serde_json::{Value, json};

use crate::anchor::{Anchor, standing_scene};
use crate::config::Limits;
use crate::fact::{AuditLine, Epoch};
use crate::fault::{Code, Fault};
use crate::ids::AnchorId;
use crate::rehydration::Rehydration;
use crate::view::View;

/// So much of its limit is as much as a writer is asked to hold.
pub const THRESHOLD_PERCENT: u64 = 80;
/// A token is counted as so many bytes.
pub const TOKEN_BYTES: u64 = 3;

/// The part of its limit, in bytes of JSON, that a writer is told when it begins anew: half.
fn told_bytes_max(limits: &Limits) -> usize {
    usize::try_from(limits.writer_tokens.saturating_mul(TOKEN_BYTES) / 2).unwrap_or(usize::MAX)
}

/// The part of that for the anchor, which a rehydration quotes once more.
fn anchor_bytes_max(limits: &Limits) -> usize {
    told_bytes_max(limits) / 4
}

/// What is known of a writer while its process runs. A new process has a new life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    bytes: u64,
    told: Option<Told>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    anchor: AnchorId,
    scene: Option<usize>,
}

/// Why a writer is told an anchor in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its process has just begun.
    Begun,
    /// It is full: its process is to end, and the next one begins with a rehydration.
    Full,
    /// The scene was set anew; its process goes on.
    Scene,
}

/// What a writer is to be told before it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Only which anchor it is.
    Same(AnchorId),
    /// An anchor, and perhaps a rehydration, that must be recorded first.
    New(Box<Beginning>),
}

/// A new anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// Why.
    pub why: Why,
    /// What is to be recorded and told. A set scene keeps the epoch's number.
    pub epoch: Epoch,
    /// What a rehydration took along, if it is one.
    pub carried: Option<Carried>,
    told: Told,
}

/// What a rehydration took along of the entries that its view shows. The others can still be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Entries that it quotes.
    pub entries: u64,
    /// Entries that it leaves out.
    pub dropped: u64,
}

impl Carried {
    /// What a line of audit is called that holds one.
    pub const LINE: &str = "rehydration";

    /// The details of such a line, about an epoch.
    pub fn to_json(self, epoch: u64) -> Value {
        json!({ "epoch": epoch, "carried_entries": self.entries, "dropped_entries": self.dropped })
    }

    /// What a line of audit says of a rehydration, if it is about one.
    pub(crate) fn read(line: &AuditLine) -> Option<Self> {
        let details: Value =
            (line.what == Self::LINE).then(|| serde_json::from_str(&line.details).ok())??;
        let number = |key: &str| details.get(key)?.as_u64();
        Some(Self {
            entries: number("carried_entries")?,
            dropped: number("dropped_entries")?,
        })
    }
}

impl Life {
    /// Counts what was sent to the writer or came from it.
    pub fn exchanged(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// What was exchanged, in tokens.
    pub fn tokens(&self) -> u64 {
        self.bytes.div_ceil(TOKEN_BYTES)
    }

    /// Whether the writer holds as much as it is asked to.
    pub fn is_full(&self, limits: &Limits) -> bool {
        u128::from(self.tokens()) * 100
            >= u128::from(limits.writer_tokens) * u128::from(THRESHOLD_PERCENT)
    }

    /// What the writer is to be told at the beat of this request, seen with the writer's view.
    pub fn due(&self, view: &View<'_>, request: &str) -> Due {
        let scene = standing_scene(view).map(|(index, _)| index);
        let why = match self.told {
            None => Why::Begun,
            Some(_) if self.is_full(&view.world.config.limits) => Why::Full,
            Some(told) if told.scene != scene => Why::Scene,
            Some(told) => return Due::Same(told.anchor),
        };
        Due::New(Box::new(Beginning::of(view, request, why, scene)))
    }

    /// Takes over what was recorded: from now on the writer has been told.
    pub fn begin(&mut self, beginning: &Beginning) {
        if beginning.why != Why::Scene {
            self.bytes = 0;
        }
        self.told = Some(beginning.told);
    }
}

impl Beginning {
    fn of(view: &View<'_>, request: &str, why: Why, scene: Option<usize>) -> Self {
        let limits = &view.world.config.limits;
        let anchor = Anchor::of_at_most(view, request, anchor_bytes_max(limits));
        let pack = anchor.pack(request).to_string();
        let left = told_bytes_max(limits).saturating_sub(pack.len());
        let rehydration = (why == Why::Full).then(|| Rehydration::of(view, &anchor, request, left));
        let last = view.world.epoch().map_or(0, |epoch| epoch.number);
        let epoch = Epoch {
            number: if why == Why::Scene { last } else { last + 1 },
            position: view.at(),
            anchor: pack,
            rehydration: rehydration
                .as_ref()
                .map(|made| made.pack(request).to_string()),
        };
        let carried = rehydration.map(|made| Carried {
            entries: made.used.len() as u64,
            dropped: made.dropped,
        });
        Self {
            why,
            epoch,
            carried,
            told: Told {
                anchor: anchor.id,
                scene,
            },
        }
    }
}

/// Refuses an epoch whose packs are not what they say, at the view that it was made from.
pub fn validate(view: &View<'_>, epoch: &Epoch) -> Result<(), Fault> {
    let read = |text: &str| -> Result<Value, Fault> {
        serde_json::from_str(text).map_err(|e| Fault::new(Code::PackInvalid, "", e.to_string()))
    };
    crate::anchor::validate(view, &read(&epoch.anchor)?)?;
    match &epoch.rehydration {
        Some(pack) => crate::rehydration::validate(view, &read(pack)?),
        None => Ok(()),
    }
}
