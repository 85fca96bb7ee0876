//! OSC 52: the clipboard of the terminal that the bytes end up in, also over SSH.
//!
//! ```text
//! plain  ESC ] 52 ; c ; BASE64 ESC \
//! tmux   ESC P tmux; (the same with every ESC doubled) ESC \
//! ```
//!
//! Terminals silently drop sequences that are too long for them, so content that some of them would
//! drop is rejected here. Reading is rejected too: nearly every terminal disables the query for its
//! clipboard.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::{ClipboardError, DesktopError};
use super::{Adapter, ClipboardProvider};

/// Some terminals drop a sequence of more than 100 000 bytes; this much content stays below.
const CONTENT_BYTES_MAX: usize = 74_991;

/// Which program reads the sequence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Osc52Framing {
    /// The terminal itself.
    Plain,
    /// A tmux that lets sequences through (`allow-passthrough on`).
    Tmux,
}

/// The clipboard of a terminal.
#[derive(Debug)]
pub struct Osc52 {
    terminal: PathBuf,
    framing: Osc52Framing,
}

impl Osc52 {
    /// The clipboard of the terminal at a path such as `/dev/tty`.
    pub fn new(terminal: impl Into<PathBuf>, framing: Osc52Framing) -> Self {
        Self {
            terminal: terminal.into(),
            framing,
        }
    }

    /// The bytes that set the clipboard.
    pub fn sequence(content: &[u8], framing: Osc52Framing) -> Vec<u8> {
        let plain = format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(content));
        match framing {
            Osc52Framing::Plain => plain.into_bytes(),
            Osc52Framing::Tmux => {
                format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")).into_bytes()
            }
        }
    }
}

impl ClipboardProvider for Osc52 {
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError> {
        // A terminal would drop it without any error.
        if content.len() > CONTENT_BYTES_MAX {
            return Err(ClipboardError::TooLarge {
                bytes: content.len(),
                max: CONTENT_BYTES_MAX,
            });
        }
        let opened = OpenOptions::new().write(true).open(&self.terminal);
        let written = opened
            .and_then(|mut terminal| terminal.write_all(&Self::sequence(content, self.framing)));
        let what = format!("cannot write to the terminal {}", self.terminal.display());
        Ok(written.map_err(DesktopError::io(what))?)
    }

    fn read(&mut self) -> Result<Vec<u8>, ClipboardError> {
        Err(ClipboardError::WriteOnly {
            adapter: Adapter::Osc52,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_framed_for_whoever_reads_it() {
        for (content, framing, expect) in [
            ("hi", Osc52Framing::Plain, "\x1b]52;c;aGk=\x1b\\"),
            ("", Osc52Framing::Plain, "\x1b]52;c;\x1b\\"),
            (
                "hi",
                Osc52Framing::Tmux,
                "\x1bPtmux;\x1b\x1b]52;c;aGk=\x1b\x1b\\\x1b\\",
            ),
        ] {
            let sequence = Osc52::sequence(content.as_bytes(), framing);
            assert_eq!(String::from_utf8(sequence).unwrap(), expect);
        }
    }

    #[test]
    fn what_a_terminal_would_drop_silently_is_refused_aloud() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut clipboard = Osc52::new(file.path(), Osc52Framing::Plain);
        clipboard.write(&vec![b'x'; CONTENT_BYTES_MAX]).unwrap();
        assert!(std::fs::metadata(file.path()).unwrap().len() <= 100_000);
        let error = clipboard
            .write(&vec![b'x'; CONTENT_BYTES_MAX + 1])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "74992 bytes are more than the 74991 that this clipboard carries"
        );
        let error = clipboard.read().unwrap_err();
        assert_eq!(
            error.to_string(),
            "osc52 can write a clipboard but not read it"
        );
    }

    #[test]
    fn a_terminal_that_is_not_there_is_named() {
        let error = Osc52::new("/nowhere/tty", Osc52Framing::Plain)
            .write(b"x")
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write to the terminal /nowhere/tty: "),
            "{error}"
        );
    }
}
