//! The ring of a session's completed turns: a new one always fits, the oldest goes silently.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, FoundTurn, SessionId, TurnInfo};

/// What a kept turn takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 512;

/// Whose turn it is; shared by the turns of one registration.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) session: SessionId,
    pub(super) name: Option<String>,
    pub(super) preset: Option<String>,
}

/// The readable text of a turn.
#[derive(Debug)]
enum KeptText {
    Unknown,
    /// The content is the text, as in a profile that reads the screen; it is kept once.
    Content,
    Own(Box<str>),
}

/// A turn as it is kept. Never changes.
#[derive(Debug)]
pub(super) struct KeptTurn {
    pub(super) seq: u64,
    pub(super) info: TurnInfo,
    pub(super) content: Bytes,
    pub(super) raw: Option<Bytes>,
    raw_truncated: bool,
    text: KeptText,
    text_source: Option<String>,
    label: Arc<Label>,
}

impl KeptTurn {
    /// Keeps what a wrapper found, each part cut to `bytes_max`. `info` comes with id and time.
    pub(super) fn new(
        info: TurnInfo,
        seq: u64,
        label: Arc<Label>,
        turn: CompletedTurn,
        bytes_max: usize,
    ) -> Self {
        let is_text = turn.text.as_deref().is_some_and(|text| text.as_bytes() == turn.content);
        let (content, content_cut) = cut(turn.content, bytes_max);
        let (text, text_cut) = match turn.text {
            None => (KeptText::Unknown, false),
            // A cut may fall inside a character; then the text needs its own.
            Some(_) if is_text && std::str::from_utf8(&content).is_ok() => (KeptText::Content, false),
            Some(text) => cut_text(text, bytes_max),
        };
        let (raw, raw_cut) = match turn.raw.map(|raw| cut(raw, bytes_max)) {
            Some((raw, cut)) => (Some(raw), cut),
            None => (None, false),
        };
        let info = TurnInfo {
            byte_length: u32::try_from(content.len()).unwrap_or(u32::MAX),
            interrupted: turn.interrupted,
            truncated: turn.truncated || content_cut || text_cut,
            incomplete: turn.incomplete,
            ..info
        };
        let raw_truncated = turn.raw_truncated || raw_cut;
        Self { seq, info, content, raw, raw_truncated, text, text_source: turn.text_source, label }
    }

    /// Bytes that it takes.
    fn cost(&self) -> usize {
        let text = match &self.text {
            KeptText::Own(text) => text.len(),
            KeptText::Unknown | KeptText::Content => 0,
        };
        let source = self.text_source.as_ref().map_or(0, String::len);
        OVERHEAD_BYTES + self.content.len() + self.raw.as_ref().map_or(0, Bytes::len) + text + source
    }

    /// The turn as it is given out, with its text or, when asked for, with its raw bytes.
    pub(super) fn found(&self, raw: bool) -> FoundTurn {
        let text = match &self.text {
            _ if raw => None,
            KeptText::Unknown => None,
            KeptText::Content => std::str::from_utf8(&self.content).ok().map(str::to_owned),
            KeptText::Own(text) => Some(text.as_ref().to_owned()),
        };
        FoundTurn {
            info: self.info.clone(),
            session: self.label.session.to_string(),
            name: self.label.name.clone(),
            preset: self.label.preset.clone(),
            content: self.content.clone(),
            text,
            text_source: self.text_source.clone(),
            raw: self.raw.clone().filter(|_| raw),
            raw_truncated: raw && self.raw_truncated,
        }
    }
}

/// The head of some bytes, and whether something was cut. What is cut off is not kept in memory.
fn cut(bytes: Bytes, max: usize) -> (Bytes, bool) {
    match bytes.get(..max) {
        Some(head) if head.len() < bytes.len() => (Bytes::copy_from_slice(head), true),
        _ => (bytes, false),
    }
}

fn cut_text(mut text: String, max: usize) -> (KeptText, bool) {
    let end = text.floor_char_boundary(max);
    let is_cut = end < text.len();
    text.truncate(end);
    (KeptText::Own(text.into()), is_cut)
}

/// The turns of one session, oldest in front.
#[derive(Debug, Default)]
pub(super) struct Ring {
    turns: VecDeque<Arc<KeptTurn>>,
    bytes: usize,
}

impl Ring {
    /// Keeps a turn as the newest, dropping the oldest beyond `turns_max`.
    pub(super) fn push(&mut self, turn: KeptTurn, turns_max: usize) {
        while self.turns.len() >= turns_max.max(1) {
            self.evict();
        }
        self.bytes += turn.cost();
        self.turns.push_back(Arc::new(turn));
    }

    /// Drops the oldest turn.
    pub(super) fn evict(&mut self) {
        if let Some(turn) = self.turns.pop_front() {
            self.bytes -= turn.cost();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn latest(&self) -> Option<Arc<KeptTurn>> {
        self.turns.back().cloned()
    }

    pub(super) fn find(&self, seq: u64) -> Option<Arc<KeptTurn>> {
        let at = self.turns.binary_search_by_key(&seq, |turn| turn.seq).ok()?;
        self.turns.get(at).cloned()
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &KeptTurn> {
        self.turns.iter().rev().map(AsRef::as_ref)
    }
}
