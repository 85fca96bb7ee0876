//! The ring of a session's completed turns: a new one always fits, the oldest goes silently. What
//! the program said unprompted is kept among them, but it is no turn: it is neither the latest one
//! nor counted.
//!
//! What takes as long as a turn is large is done outside of the machine, so that nobody waits for
//! it: a
//! [`Body`] is made before, a [`HeldTurn`] is copied after.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, FoundTurn, SessionId, TurnForm, TurnInfo};

use super::preview;
use crate::detector::render_stream;

/// What a kept turn takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 512;

/// Whose turn it is; shared by the turns of one registration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) session: SessionId,
    pub(super) name: Option<String>,
    pub(super) preset: Option<String>,
}

/// The readable text of a turn. Text is kept as bytes that are UTF-8, so that giving it to a sink
/// copies nothing.
#[derive(Debug, PartialEq, Eq)]
enum KeptText {
    /// The wrapper sent none. A sink that wants text gets what the content leaves behind on a
    /// terminal.
    Unknown {
        rendered: Bytes,
    },
    /// The content is the text, as in a profile that reads the screen; it is kept once.
    Content,
    Own(Bytes),
}

impl KeptText {
    /// Makes readable text of the content of a wrapper that sent none.
    fn rendered(content: &Bytes, bytes_max: usize) -> Self {
        let text = render_stream(&with_carriage_returns(content));
        // Most content without a text is text already; then it is kept once.
        let rendered = if text.as_bytes() == content {
            content.clone()
        } else {
            text.into()
        };
        Self::Unknown {
            rendered: cut(rendered, bytes_max).0,
        }
    }
}

/// The parts of a completed turn, each cut to what is kept.
#[derive(Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the turn"
)]
pub(super) struct Body {
    content: Bytes,
    raw: Option<Bytes>,
    raw_truncated: bool,
    text: KeptText,
    preview: Box<str>,
    text_source: Option<String>,
    interrupted: bool,
    truncated: bool,
    incomplete: bool,
    unprompted: bool,
}

impl Body {
    /// Takes what a wrapper found out of its message, each part cut to `bytes_max`.
    pub(super) fn take(turn: &mut CompletedTurn, bytes_max: usize) -> Self {
        let is_text = turn
            .text
            .as_deref()
            .is_some_and(|text| text.as_bytes() == turn.content);
        let (content, content_cut) = cut(std::mem::take(&mut turn.content), bytes_max);
        let (text, text_cut) = match turn.text.take() {
            None => (KeptText::rendered(&content, bytes_max), false),
            // A cut may fall inside a character; then the text needs its own.
            Some(_) if is_text && std::str::from_utf8(&content).is_ok() => {
                (KeptText::Content, false)
            }
            Some(text) => cut_text(text, bytes_max),
        };
        let (raw, raw_cut) = match turn.raw.take().map(|raw| cut(raw, bytes_max)) {
            Some((raw, cut)) => (Some(raw), cut),
            None => (None, false),
        };
        let preview = preview::first_words(match &text {
            KeptText::Unknown { rendered } => rendered,
            KeptText::Content => &content,
            KeptText::Own(text) => text,
        });
        Self {
            content,
            raw,
            raw_truncated: turn.raw_truncated || raw_cut,
            text,
            preview,
            text_source: turn.text_source.take(),
            interrupted: turn.interrupted,
            truncated: turn.truncated || content_cut || text_cut,
            incomplete: turn.incomplete,
            unprompted: turn.unprompted,
        }
    }

    pub(super) fn text_source(&self) -> Option<&str> {
        self.text_source.as_deref()
    }
}

/// A turn as it is kept. Never changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptTurn {
    pub(super) seq: u64,
    pub(super) info: TurnInfo,
    body: Body,
    label: Arc<Label>,
}

impl KeptTurn {
    /// Keeps a turn. `info` comes with id and time.
    pub(super) fn new(info: TurnInfo, seq: u64, label: Arc<Label>, body: Body) -> Self {
        let info = TurnInfo {
            byte_length: u32::try_from(body.content.len()).unwrap_or(u32::MAX),
            interrupted: body.interrupted,
            truncated: body.truncated,
            incomplete: body.incomplete,
            unprompted: body.unprompted,
            ..info
        };
        Self {
            seq,
            info,
            body,
            label,
        }
    }

    /// Its bytes in this form; none where raw bytes are asked for that were not kept. Copies
    /// nothing.
    pub(super) fn bytes(&self, form: TurnForm) -> Option<Bytes> {
        let Body {
            content, raw, text, ..
        } = &self.body;
        match (form, text) {
            (TurnForm::Raw, _) => raw.clone(),
            (TurnForm::Content, _) | (TurnForm::Text, KeptText::Content) => Some(content.clone()),
            (TurnForm::Text, KeptText::Own(text) | KeptText::Unknown { rendered: text }) => {
                Some(text.clone())
            }
        }
    }

    /// Its first words.
    pub(super) fn preview(&self) -> &str {
        &self.body.preview
    }

    /// Bytes that it takes.
    fn cost(&self) -> usize {
        let text = match &self.body.text {
            // Counted in full although it may share its memory with the content.
            KeptText::Own(text) | KeptText::Unknown { rendered: text } => text.len(),
            KeptText::Content => 0,
        };
        let source = self.body.text_source.as_ref().map_or(0, String::len);
        let raw = self.body.raw.as_ref().map_or(0, Bytes::len);
        OVERHEAD_BYTES + self.body.content.len() + raw + text + source + self.body.preview.len()
    }

    fn text(&self) -> Option<String> {
        let text = match &self.body.text {
            KeptText::Unknown { .. } => return None,
            KeptText::Content => &self.body.content,
            KeptText::Own(text) => text,
        };
        std::str::from_utf8(text).ok().map(str::to_owned)
    }
}

/// A turn that is given out, still as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTurn {
    pub(super) kept: Arc<KeptTurn>,
    /// Whether its raw bytes are given instead of its text.
    pub(super) raw: bool,
}

impl HeldTurn {
    /// The turn with a copy of its text or, when they were asked for, with its raw bytes. Takes as
    /// long as the turn is large: not for those who keep others waiting.
    pub fn found(&self) -> FoundTurn {
        let Self { kept, raw } = self;
        FoundTurn {
            info: kept.info.clone(),
            session: kept.label.session.to_string(),
            name: kept.label.name.clone(),
            preset: kept.label.preset.clone(),
            content: kept.body.content.clone(),
            text: if *raw { None } else { kept.text() },
            text_source: kept.body.text_source.clone(),
            raw: kept.body.raw.clone().filter(|_| *raw),
            raw_truncated: *raw && kept.body.raw_truncated,
        }
    }
}

/// Lines as a terminal shows them: without a carriage return each would begin where the one before
/// ended.
fn with_carriage_returns(content: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(content.len());
    for byte in content {
        if *byte == b'\n' && lines.last() != Some(&b'\r') {
            lines.push(b'\r');
        }
        lines.push(*byte);
    }
    lines
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
    text.shrink_to_fit();
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

    /// The latest turn; what was said unprompted is none.
    pub(super) fn latest(&self) -> Option<Arc<KeptTurn>> {
        self.turns
            .iter()
            .rev()
            .find(|turn| !turn.info.unprompted)
            .cloned()
    }

    /// How many turns there are; what was said unprompted does not count.
    pub(super) fn turn_count(&self) -> usize {
        self.turns
            .iter()
            .filter(|turn| !turn.info.unprompted)
            .count()
    }

    pub(super) fn find(&self, seq: u64) -> Option<Arc<KeptTurn>> {
        let at = self
            .turns
            .binary_search_by_key(&seq, |turn| turn.seq)
            .ok()?;
        self.turns.get(at).cloned()
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &KeptTurn> {
        self.turns.iter().rev().map(AsRef::as_ref)
    }
}
