//! Epochs of the attached writer: what its process was sent, and what it must be sent next.
//!
//! An epoch is the lifetime of the writer's process. The server sends the scene anchor once in
//! full, and afterwards only its id. It sends a new anchor when the process has just started, when
//! the writer's context is full, or when the scene was set. The ledger itself counts the exchanged
//! bytes, at the end of each beat; no words in a text can ask for a rehydration. Nothing here can
//! fail, so no beat waits for it.

use serde_json::{Value, json};

use crate::anchor::{Anchor, standing_scene};
use crate::config::Limits;
use crate::fact::{AuditLine, Epoch};
use crate::fault::{Code, Fault};
use crate::ids::AnchorId;
use crate::rehydration::Rehydration;
use crate::view::View;

/// At this part of its limit the writer's context counts as full.
pub const THRESHOLD_PERCENT: u64 = 80;
/// How many bytes count as one token.
pub const TOKEN_BYTES: u64 = 3;

/// The bytes of JSON that a new process is sent: half of the limit, so that it has space to work.
fn start_bytes_max(limits: &Limits) -> usize {
    usize::try_from(limits.writer_tokens.saturating_mul(TOKEN_BYTES) / 2).unwrap_or(usize::MAX)
}

/// The part of these for the anchor, which a rehydration quotes once more.
fn anchor_bytes_max(limits: &Limits) -> usize {
    start_bytes_max(limits) / 4
}

/// What the writer's process was sent so far. A new process starts with an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterMemory {
    bytes: u64,
    sent: Option<SentAnchor>,
}

/// The anchor that the process knows, and the scene that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SentAnchor {
    anchor: AnchorId,
    /// The index of the scene, if there was one.
    scene: Option<usize>,
}

/// Why the writer is sent a full anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorReason {
    /// Its process has just started.
    Started,
    /// Its context is full. The process ends, and the next one begins with a rehydration.
    Full,
    /// The scene was set. The process goes on.
    SceneSet,
}

/// What the writer is sent before the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorUpdate {
    /// Only the id of the anchor that it knows.
    Unchanged(AnchorId),
    /// A new anchor, which must be recorded first.
    New(Box<NewAnchor>),
}

/// A new anchor, perhaps with a rehydration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnchor {
    /// Why it is sent.
    pub reason: AnchorReason,
    /// What is recorded and sent. After [`AnchorReason::SceneSet`] it keeps the epoch's number.
    pub epoch: Epoch,
    /// The figures of the rehydration, if there is one.
    pub carried: Option<RehydrationCounts>,
    sent: SentAnchor,
}

/// How many visible entries a rehydration quotes and leaves out. The writer can still search for
/// the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RehydrationCounts {
    /// Quoted entries.
    pub entries: u64,
    /// Entries left out.
    pub dropped: u64,
}

impl RehydrationCounts {
    /// The `what` of an audit line about a rehydration.
    pub const LINE: &str = "rehydration";

    /// The details of such a line.
    pub fn to_json(self, epoch: u64) -> Value {
        json!({ "epoch": epoch, "carried_entries": self.entries, "dropped_entries": self.dropped })
    }

    /// Parses an audit line about a rehydration; `None` for any other line.
    pub(crate) fn from_line(line: &AuditLine) -> Option<Self> {
        let details: Value =
            (line.what == Self::LINE).then(|| serde_json::from_str(&line.details).ok())??;
        let number = |key: &str| details.get(key)?.as_u64();
        Some(Self {
            entries: number("carried_entries")?,
            dropped: number("dropped_entries")?,
        })
    }
}

impl WriterMemory {
    /// Counts bytes that were sent to the writer or received from it.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// The exchanged bytes as tokens.
    pub fn tokens(&self) -> u64 {
        self.bytes.div_ceil(TOKEN_BYTES)
    }

    /// Whether the writer's context counts as full.
    pub fn is_full(&self, limits: &Limits) -> bool {
        // In 128 bits, because a configured limit may be close to the maximum of 64.
        u128::from(self.tokens()) * 100
            >= u128::from(limits.writer_tokens) * u128::from(THRESHOLD_PERCENT)
    }

    /// Decides what the writer is sent with this request, by the writer's own view.
    pub fn next_anchor(&self, view: &View<'_>, request: &str) -> AnchorUpdate {
        let scene = standing_scene(view).map(|(index, _)| index);
        let reason = match self.sent {
            None => AnchorReason::Started,
            // Before the scene: a full context needs a new process, which gets the new scene anyway.
            Some(_) if self.is_full(&view.world.config.limits) => AnchorReason::Full,
            Some(sent) if sent.scene != scene => AnchorReason::SceneSet,
            Some(sent) => return AnchorUpdate::Unchanged(sent.anchor),
        };
        AnchorUpdate::New(Box::new(NewAnchor::build(view, request, reason, scene)))
    }

    /// Notes that a recorded anchor was sent.
    pub fn record_sent(&mut self, new: &NewAnchor) {
        // A new scene goes to the same process, which still has everything from before.
        if new.reason != AnchorReason::SceneSet {
            self.bytes = 0;
        }
        self.sent = Some(new.sent);
    }
}

impl NewAnchor {
    fn build(view: &View<'_>, request: &str, reason: AnchorReason, scene: Option<usize>) -> Self {
        let limits = &view.world.config.limits;
        let anchor = Anchor::build_within(view, request, anchor_bytes_max(limits));
        let pack = anchor.pack(request).to_string();
        let left = start_bytes_max(limits).saturating_sub(pack.len());
        let rehydration = (reason == AnchorReason::Full)
            .then(|| Rehydration::build(view, &anchor, request, left));
        // A set scene stays in the same process and thus in the same epoch.
        let last = view.world.epoch().map_or(0, |epoch| epoch.number);
        let epoch = Epoch {
            number: if reason == AnchorReason::SceneSet {
                last
            } else {
                last + 1
            },
            position: view.position(),
            anchor: pack,
            rehydration: rehydration
                .as_ref()
                .map(|made| made.pack(request).to_string()),
        };
        let carried = rehydration.map(|made| RehydrationCounts {
            entries: made.used.len() as u64,
            dropped: made.dropped,
        });
        Self {
            reason,
            epoch,
            carried,
            sent: SentAnchor {
                anchor: anchor.id,
                scene,
            },
        }
    }
}

/// Rejects an epoch whose packs are not valid at the view that it was made from.
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
