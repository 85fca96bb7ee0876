//! The end of a program's output as plain text, to explain why the program failed.

use std::collections::VecDeque;

const BYTES_MAX: usize = 4 << 10;
const LINES_MAX: usize = 20;
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Keeps the end of the output.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    bytes: VecDeque<u8>,
}

impl LastWords {
    pub(super) fn add(&mut self, output: &[u8]) {
        self.bytes.extend(output);
        let surplus = self.bytes.len().saturating_sub(BYTES_MAX);
        self.bytes.drain(..surplus);
    }

    /// The last lines, without escape sequences and empty lines.
    pub(super) fn read(&self) -> String {
        let text = remove_sequences(self.bytes.iter().copied());
        let text = String::from_utf8_lossy(&text);
        let lines = text.split(['\n', '\r']).map(str::trim_end);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let first = lines.len().saturating_sub(LINES_MAX);
        lines.get(first..).unwrap_or_default().join("\n")
    }
}

fn remove_sequences(mut bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            ESC => skip_sequence(&mut bytes),
            b'\n' | b'\r' | b'\t' => text.push(byte),
            byte if byte >= b' ' => text.push(byte),
            _ => {}
        }
    }
    text
}

/// Skips a sequence whose escape byte was read: `[` to its last letter, `]` to its end mark.
fn skip_sequence(bytes: &mut impl Iterator<Item = u8>) {
    match bytes.next() {
        Some(b'[') => {
            bytes.find(|byte| (0x40..=0x7e).contains(byte));
        }
        Some(b']') => {
            let end = bytes.find(|byte| matches!(*byte, ESC | BEL));
            // The second byte of a long end mark, a backslash, belongs to the mark.
            let rest = usize::from(end == Some(ESC));
            bytes.by_ref().take(rest).for_each(drop);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_empty_lines_are_left_out() {
        let mut words = LastWords::default();
        words.add(b"\x1b]0;title\x07\x1b[31merror:\x1b[0m no file\r\n\r\n");
        words.add(b"\x1b]8;;x\x1b\\second\x07 line\x1b[");
        assert_eq!(words.read(), "error: no file\nsecond line");
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut words = LastWords::default();
        words.add("old\n".repeat(10_000).as_bytes());
        words.add(b"new");
        let text = words.read();
        assert_eq!(text.lines().count(), LINES_MAX);
        assert!(text.ends_with("old\nnew"), "{text}");
    }
}
