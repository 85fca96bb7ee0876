//! The ring of a session's completed turns: a new turn always fits, and the oldest one is dropped
//! for it. Unprompted texts are kept among the turns, but they are not turns: they are neither the
//! latest one nor counted.
//!
//! Work that takes longer for a larger turn is done outside of the state machine, so that no other
//! connection waits for it: a [`TurnBody`] is made before, a [`HeldTurn`] is copied after.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{CompletedTurn, FoundTurn, SessionId, TurnForm, TurnInfo};

use super::preview;
use crate::detector::render_stream;

/// Roughly what a kept turn takes besides its bytes.
const OVERHEAD_BYTES: usize = 512;

/// The names of a turn's session; shared by the turns of one registration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SessionLabel {
    pub(super) session: SessionId,
    pub(super) name: Option<String>,
    pub(super) preset: Option<String>,
}

/// The readable text of a turn. It is kept as bytes that are UTF-8, so that a sink gets it without
/// a copy.
#[derive(Debug, PartialEq, Eq)]
enum KeptText {
    /// The wrapper sent no text. A sink that wants text gets what the content leaves behind on a
    /// terminal.
    Unknown {
        rendered: Bytes,
    },
    /// The content is the text, as in a screen profile; it is kept once.
    Content,
    Own(Bytes),
}

impl KeptText {
    /// The text, which is the content itself where it was kept once.
    fn bytes<'a>(&'a self, content: &'a Bytes) -> &'a Bytes {
        match self {
            Self::Unknown { rendered: text } | Self::Own(text) => text,
            Self::Content => content,
        }
    }

    /// Renders the content of a wrapper that sent no text.
    fn render_content(content: &Bytes, bytes_max: usize) -> Self {
        let text = render_stream(&with_carriage_returns(content));
        // Most content without a text is text already, and is then kept once.
        let rendered = if text.as_bytes() == content {
            content.clone()
        } else {
            text.into()
        };
        Self::Unknown {
            rendered: truncate_bytes(rendered, bytes_max).0,
        }
    }
}

/// The parts of a completed turn, each cut to the configured limit.
#[derive(Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the turn"
)]
pub(super) struct TurnBody {
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

impl TurnBody {
    /// Takes the parts of a turn out of a wrapper's message, each cut to `bytes_max`.
    pub(super) fn take_from(turn: &mut CompletedTurn, bytes_max: usize) -> Self {
        let is_text = turn
            .text
            .as_deref()
            .is_some_and(|text| text.as_bytes() == turn.content);
        let (content, content_cut) = truncate_bytes(std::mem::take(&mut turn.content), bytes_max);
        let (text, text_cut) = match turn.text.take() {
            None => (KeptText::render_content(&content, bytes_max), false),
            // A cut may fall inside a character; then the text is kept on its own.
            Some(_) if is_text && std::str::from_utf8(&content).is_ok() => {
                (KeptText::Content, false)
            }
            Some(text) => truncate_text(text, bytes_max),
        };
        let (raw, raw_cut) = match turn.raw.take().map(|raw| truncate_bytes(raw, bytes_max)) {
            Some((raw, cut)) => (Some(raw), cut),
            None => (None, false),
        };
        let preview = preview::first_words(text.bytes(&content));
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

/// A turn in a ring. It never changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptTurn {
    pub(super) seq: u64,
    pub(super) info: TurnInfo,
    body: TurnBody,
    label: Arc<SessionLabel>,
}

impl KeptTurn {
    /// Creates a turn; `info` brings its id and time.
    pub(super) fn new(info: TurnInfo, seq: u64, label: Arc<SessionLabel>, body: TurnBody) -> Self {
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

    /// The bytes in this form, without a copy; `None` for raw bytes that were not kept.
    pub(super) fn bytes(&self, form: TurnForm) -> Option<Bytes> {
        let body = &self.body;
        match form {
            TurnForm::Raw => body.raw.clone(),
            TurnForm::Content => Some(body.content.clone()),
            TurnForm::Text => Some(body.text.bytes(&body.content).clone()),
        }
    }

    /// The first words.
    pub(super) fn preview(&self) -> &str {
        &self.body.preview
    }

    /// The memory that the turn takes.
    fn memory_bytes(&self) -> usize {
        let text = match &self.body.text {
            // Counted in full, although it may share its memory with the content.
            KeptText::Own(text) | KeptText::Unknown { rendered: text } => text.len(),
            KeptText::Content => 0,
        };
        let source = self.body.text_source.as_ref().map_or(0, String::len);
        let raw = self.body.raw.as_ref().map_or(0, Bytes::len);
        OVERHEAD_BYTES + self.body.content.len() + raw + text + source + self.body.preview.len()
    }

    fn text(&self) -> Option<String> {
        if matches!(self.body.text, KeptText::Unknown { .. }) {
            return None;
        }
        let text = self.body.text.bytes(&self.body.content);
        std::str::from_utf8(text).ok().map(str::to_owned)
    }
}

/// A turn that is handed out, still shared with its ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTurn {
    pub(super) kept: Arc<KeptTurn>,
    /// Whether its raw bytes are handed out instead of its text.
    pub(super) raw: bool,
}

impl HeldTurn {
    /// The turn's bytes in this form, without a copy; `None` for raw bytes that were not kept.
    pub fn bytes(&self, form: TurnForm) -> Option<Bytes> {
        self.kept.bytes(form)
    }

    /// Copies the turn with its text or, if requested, its raw bytes. The time grows with the turn,
    /// so do not call it while others wait.
    pub fn to_found_turn(&self) -> FoundTurn {
        let Self { kept, raw } = self;
        FoundTurn {
            content: kept.body.content.clone(),
            text: if *raw { None } else { kept.text() },
            raw: kept.body.raw.clone().filter(|_| *raw),
            raw_truncated: *raw && kept.body.raw_truncated,
            ..self.facts()
        }
    }

    /// The turn without its bytes.
    pub fn facts(&self) -> FoundTurn {
        let kept = &self.kept;
        FoundTurn {
            info: kept.info.clone(),
            session: kept.label.session.to_string(),
            name: kept.label.name.clone(),
            preset: kept.label.preset.clone(),
            text_source: kept.body.text_source.clone(),
            raw_truncated: kept.body.raw_truncated,
            ..FoundTurn::default()
        }
    }
}

/// The content with a carriage return before each line feed. Without one, each line would begin
/// where the line before ended.
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

/// The first `max` bytes, and whether bytes were cut off. The copy frees the memory of the rest.
fn truncate_bytes(bytes: Bytes, max: usize) -> (Bytes, bool) {
    match bytes.get(..max) {
        Some(head) if head.len() < bytes.len() => (Bytes::copy_from_slice(head), true),
        _ => (bytes, false),
    }
}

fn truncate_text(mut text: String, max: usize) -> (KeptText, bool) {
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
    /// Adds a turn as the newest and drops the oldest ones beyond `turns_max`.
    pub(super) fn push(&mut self, turn: KeptTurn, turns_max: usize) {
        while self.turns.len() >= turns_max.max(1) {
            self.evict();
        }
        self.bytes += turn.memory_bytes();
        self.turns.push_back(Arc::new(turn));
    }

    /// Drops the oldest turn.
    pub(super) fn evict(&mut self) {
        if let Some(turn) = self.turns.pop_front() {
            self.bytes -= turn.memory_bytes();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The latest turn; unprompted texts do not count.
    pub(super) fn latest(&self) -> Option<Arc<KeptTurn>> {
        self.turns
            .iter()
            .rev()
            .find(|turn| !turn.info.unprompted)
            .cloned()
    }

    /// How many turns the ring holds; unprompted texts do not count.
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
