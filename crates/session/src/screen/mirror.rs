//! A mirror of a shared terminal: produces bytes that bring any terminal to what this one shows.
//!
//! The emulator is avt, not the one that text is gathered with: it can write down everything that
//! later bytes depend on, both screens, margins, character sets, saved cursors and a half-read
//! sequence, where the other one knows only what is visible. Its price is one character per cell:
//! combining marks are missing from a repaint until the program prints them again.
//!
//! Memory is limited: no scrollback, and strings without an end take none. It never fails: invalid
//! text is shown as a terminal shows it.

use super::Size;

/// The largest mirrored window, in either direction: its repaint, with different colours in every
/// cell, still fits in a message of the broker.
const SIDE_MAX: u16 = 500;

/// Ends a half-read sequence and resets a terminal to the state in which a repaint begins: the main
/// screen, empty, without margins, with the ordinary character sets and modes.
const BEGIN: &str = "\x18\x1b\\\x1b[?2026l\x1b[?1049l\x1b[!p\x1b[?6l\x1b[r\x1b[4l\x1b[20l\x1b[?1l\x1b[?7h\
                     \x1b(B\x1b)B\x0f\x1b[m\x1b[?25h\x1b[H\x1b[2J";

/// An emulated terminal that can be painted elsewhere.
pub struct Mirror {
    terminal: avt::Terminal,
    size: Size,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

impl Mirror {
    /// Creates an empty terminal. A side of zero cells counts as one, a huge one is limited.
    pub fn new(size: Size) -> Self {
        let size = clamp_size(size);
        Self {
            terminal: empty_terminal(size),
            size,
            partial: Vec::new(),
        }
    }

    /// Applies bytes that the program wrote.
    pub fn feed(&mut self, bytes: &[u8]) {
        let joined;
        let mut rest = bytes;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            rest = &joined;
        }
        for chunk in rest.utf8_chunks() {
            self.terminal.feed(chunk.valid());
            rest = rest.get(chunk.valid().len()..).unwrap_or_default();
            // The last bytes may be the begin of a character whose rest comes with the next call.
            if rest.len() == chunk.invalid().len() && is_unfinished(rest) {
                self.partial = rest.to_vec();
            } else if !chunk.invalid().is_empty() {
                self.terminal.feed(char::REPLACEMENT_CHARACTER);
            }
            rest = rest.get(chunk.invalid().len()..).unwrap_or_default();
        }
    }

    /// Applies a new window size.
    pub fn resize(&mut self, size: Size) {
        self.size = clamp_size(size);
        self.terminal
            .resize(self.size.cols.into(), self.size.rows.into());
    }

    /// Empties the terminal after a gap in the bytes: what it showed may be wrong.
    pub fn forget(&mut self) {
        *self = Self::new(self.size);
    }

    /// The size of the window.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Bytes that bring any terminal of this size to what is shown here, so that the program's next
    /// bytes mean the same in both.
    pub fn repaint(&self) -> Vec<u8> {
        let mut bytes = BEGIN.as_bytes().to_vec();
        for c in self.terminal.dump().chars() {
            match c {
                // Not every terminal knows the one-character form of these controls.
                '\u{80}'..='\u{9f}' => {
                    bytes.extend([0x1b, u8::try_from(u32::from(c)).unwrap_or_default() - 0x40]);
                }
                _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        bytes.extend_from_slice(&self.partial);
        bytes
    }
}

fn empty_terminal(size: Size) -> avt::Terminal {
    let made = avt::Terminal::new(size.cols.into(), size.rows.into());
    made.expect("a size within bounds has no side of zero")
}

fn clamp_size(size: Size) -> Size {
    Size {
        cols: size.cols.clamp(1, SIDE_MAX),
        rows: size.rows.clamp(1, SIDE_MAX),
    }
}

/// Whether these bytes, which are not a character, may be the beginning of one.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: Size = Size { cols: 12, rows: 4 };

    fn rows(mirror: &Mirror) -> Vec<String> {
        mirror
            .terminal
            .screen()
            .visible_lines()
            .map(|line| line.text().trim_end().to_owned())
            .collect()
    }

    fn mirror_of(bytes: &[u8]) -> Mirror {
        let mut mirror = Mirror::new(SIZE);
        mirror.feed(bytes);
        mirror
    }

    /// Another terminal that showed something else, was painted, and got the rest.
    fn painted(before: &[u8], rest: &[u8]) -> Mirror {
        let mut other = mirror_of(b"\x1b[?1049h\x1b[2;3r\x1b[?6h\x1b(0\x1b[7mnoise\x1b]0;half");
        other.feed(&mirror_of(before).repaint());
        other.feed(rest);
        other
    }

    #[test]
    fn a_repaint_at_any_byte_leads_to_the_same_screen() {
        for stream in [
            &b"one\r\ntwo\x1b[31mthree\x1b[m\r\n\xe2\x82\xac\xff!"[..],
            b"main\x1b[?1049h\x1b[Halt\x1b[2;2Hx\x1b[?1049l back",
            b"\x1b[2;3r\x1b[3;1Ha\r\nb\r\nc\x1b[rd",
            b"\x1b(0lqqk\x1b(B\x1b7\x1b[4;4H\x1b8z",
            b"0123456789ABcd\x1b[?25l\x1b]0;title\x1b\\\x1bP1q~\x1b\\e",
            b"\x1b[?2026hpaint\x1b[?2026l\xf0\x9f\x98\x80ok\x1b[5D\x1b[K",
        ] {
            let whole = mirror_of(stream);
            for cut in 0..=stream.len() {
                let (before, rest) = stream.split_at(cut);
                let found = painted(before, rest);
                assert_eq!(
                    rows(&found),
                    rows(&whole),
                    "{} cut at {cut}",
                    stream.escape_ascii()
                );
                assert_eq!(
                    found.terminal.dump(),
                    whole.terminal.dump(),
                    "{} cut at {cut}",
                    stream.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn a_size_is_kept_and_absurd_ones_are_limited() {
        let mut mirror = mirror_of(b"hello");
        mirror.resize(Size {
            cols: 0,
            rows: u16::MAX,
        });
        assert_eq!(
            mirror.size(),
            Size {
                cols: 1,
                rows: SIDE_MAX
            }
        );
        mirror.forget();
        assert_eq!(
            mirror.size(),
            Size {
                cols: 1,
                rows: SIDE_MAX
            }
        );
        assert!(rows(&mirror).iter().all(String::is_empty));
    }

    #[test]
    fn a_string_without_end_takes_no_memory() {
        for start in [&b"\x1b]0;"[..], b"\x1bP", b"\x1b_", b"\x1b[1"] {
            let mut mirror = mirror_of(start);
            mirror.feed(&vec![b'1'; 1 << 20]);
            assert!(mirror.repaint().len() < 4096, "{}", start.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..300, cols in 0u16..20) {
            let mut mirror = mirror_of(&bytes);
            let (before, rest) = bytes.split_at(cut.min(bytes.len()));
            let mut cut = mirror_of(before);
            cut.feed(rest);
            prop_assert_eq!(mirror.repaint(), cut.repaint());
            mirror.resize(Size { cols, rows: 3 });
            mirror.feed(&bytes);
            mirror.repaint();
        }
    }
}
