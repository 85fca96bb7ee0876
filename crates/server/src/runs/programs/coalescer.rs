//! Joins the small pieces of text that a program prints into events of a useful size.
//!
//! A model prints a few letters at a time. An event for each would fill the log, so pieces wait
//! until there are 4 KiB of them or the flush interval is over; anything else that happens comes
//! after the text before it, so it flushes too.

use turnkeep_runtime::decide::Output;
use turnkeep_runtime::secrets::Secrets;

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
    pub(super) fn add(&mut self, kind: DeltaKind, piece: &str, secrets: &Secrets) -> Vec<Output> {
        let mut due = Vec::new();
        if kind != self.kind {
            due.extend(self.flush());
        }
        self.kind = kind;
        self.text.push_str(piece);
        if self.text.len() >= PIECE_BYTES_MAX {
            due.extend(self.flush_whole_secrets(secrets));
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

    /// Takes the text that waits, but for an end that may be the beginning of a secret: a secret that
    /// is recorded in two pieces could not be masked.
    pub(super) fn flush_whole_secrets(&mut self, secrets: &Secrets) -> Option<Output> {
        let kept_bytes = secrets.unfinished_bytes(&self.text);
        let kept = self.text.split_off(self.text.len() - kept_bytes);
        let flushed = self.flush();
        self.text = kept;
        flushed
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
        let none = Secrets::default();
        let mut coalescer = DeltaCoalescer::default();
        assert!(texts(coalescer.add(DeltaKind::Answer, "a", &none)).is_empty());
        assert!(texts(coalescer.add(DeltaKind::Answer, "b", &none)).is_empty());
        assert_eq!(
            texts(coalescer.add(DeltaKind::Thinking, "c", &none)),
            ["answer ab"]
        );
        let long = "x".repeat(PIECE_BYTES_MAX);
        let due = texts(coalescer.add(DeltaKind::Thinking, &long, &none));
        assert_eq!(due, [format!("thinking c{long}")]);
        assert!(coalescer.flush().is_none());
    }

    #[test]
    fn the_beginning_of_a_secret_waits_for_its_end() {
        let secrets = Secrets::new(["key-12345".to_owned()]);
        let mut coalescer = DeltaCoalescer::default();
        coalescer.add(DeltaKind::Answer, "it is key-1", &secrets);
        let due = coalescer.flush_whole_secrets(&secrets);
        assert!(matches!(due, Some(Output::Answer(text)) if text == "it is "));
        coalescer.add(DeltaKind::Answer, "2345.", &secrets);
        let due = coalescer.flush_whole_secrets(&secrets);
        assert!(matches!(due, Some(Output::Answer(text)) if text == "key-12345."));
        assert!(coalescer.is_empty());
    }
}
