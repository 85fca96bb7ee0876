//! Joins the small pieces of text that a program prints into events of a useful size.
//!
//! A model prints a few letters at a time. An event for each would fill the log, so pieces wait
//! until there are 4 KiB of them or the flush interval is over; anything else that happens comes
//! after the text before it, so it flushes too.

use turnkeep_runtime::decide::Output;

/// The size at which waiting text is passed on.
const PIECE_BYTES_MAX: usize = 4 << 10;

/// Text that waits, of an answer or of a thought.
#[derive(Debug, Default)]
pub(super) struct DeltaCoalescer {
    kind: DeltaKind,
    text: String,
}

/// What a piece of text belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DeltaKind {
    #[default]
    Answer,
    Thinking,
}

impl DeltaCoalescer {
    /// Adds a piece. Returns text that is due now.
    pub(super) fn add(&mut self, kind: DeltaKind, piece: &str) -> Vec<Output> {
        let mut due = Vec::new();
        if kind != self.kind {
            due.extend(self.flush());
        }
        self.kind = kind;
        self.text.push_str(piece);
        if self.text.len() >= PIECE_BYTES_MAX {
            due.extend(self.flush());
        }
        due
    }

    /// Takes the text that waits.
    pub(super) fn flush(&mut self) -> Option<Output> {
        if self.text.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.text);
        Some(match self.kind {
            DeltaKind::Answer => Output::Answer(text),
            DeltaKind::Thinking => Output::Thinking(text),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(outputs: Vec<Output>) -> Vec<String> {
        let text = |output| match output {
            Output::Answer(text) => format!("answer {text}"),
            Output::Thinking(text) => format!("thinking {text}"),
            other => format!("{other:?}"),
        };
        outputs.into_iter().map(text).collect()
    }

    #[test]
    fn small_pieces_wait_and_another_kind_or_size_flushes() {
        let mut coalescer = DeltaCoalescer::default();
        assert!(texts(coalescer.add(DeltaKind::Answer, "a")).is_empty());
        assert!(texts(coalescer.add(DeltaKind::Answer, "b")).is_empty());
        assert_eq!(
            texts(coalescer.add(DeltaKind::Thinking, "c")),
            ["answer ab"]
        );
        let long = "x".repeat(PIECE_BYTES_MAX);
        let due = texts(coalescer.add(DeltaKind::Thinking, &long));
        assert_eq!(due, [format!("thinking c{long}")]);
        assert!(coalescer.flush().is_none());
    }
}
