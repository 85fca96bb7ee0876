//! The lines that a program prints in a turn, until they become a file of the turn.
//!
//! A turn may print without end, so the buffer keeps whole lines from its beginning and from its end:
//! the beginning says how the program was started, the end why it stopped. One line stands for what
//! was between them:
//!
//! ```text
//! {"type":"system","session_id":"5e1f"}                          the first 4 MiB
//! …
//! {"turnkeep":{"droppedLines":5120,"droppedBytes":1310720}}
//! …                                                              the last 4 MiB
//! {"type":"result","result":"Done."}
//! ```
//!
//! The buffer is memory of the process. It takes no part of the memory budget: a turn may last for
//! hours, and a large request would time out behind it. The limit of open turns bounds all buffers
//! together.

use std::collections::VecDeque;

use bytes::Bytes;
use turnkeep_runtime::decide::PrintedLines;
use turnkeep_runtime::ids::AgentTurnId;
use turnkeep_runtime::secrets::Secrets;

use super::split_secrets::mask_split_secrets;

/// How much is kept of the beginning of a turn, and as much of its end.
const PART_BYTES_MAX: usize = 4 << 20;

/// The file of a program whose lines are JSON.
pub(super) const JSON_FILE: &str = "provider.jsonl";
/// The file of a program that prints plain text.
pub(super) const TEXT_FILE: &str = "provider.txt";

/// The lines of a node's open turn.
#[derive(Debug)]
pub(super) struct TurnLines {
    turn: Option<AgentTurnId>,
    file: &'static str,
    beginning: Vec<u8>,
    /// A line did not fit there, so the next ones belong to the end.
    beginning_is_full: bool,
    /// Bytes, not lines: a line that is empty must not cost more than its line break.
    end: VecDeque<u8>,
    dropped_lines: u64,
    dropped_bytes: u64,
}

impl Default for TurnLines {
    fn default() -> Self {
        Self {
            turn: None,
            file: JSON_FILE,
            beginning: Vec::new(),
            beginning_is_full: false,
            end: VecDeque::new(),
            dropped_lines: 0,
            dropped_bytes: 0,
        }
    }
}

impl TurnLines {
    /// Says in which file the lines of the program will be.
    pub(super) fn set_file(&mut self, file: &'static str) {
        self.file = file;
    }

    /// Adds a line without its line break. Those of an earlier turn are dropped.
    pub(super) fn add(&mut self, turn: AgentTurnId, line: &[u8]) {
        if self.turn != Some(turn) {
            self.clear();
            self.turn = Some(turn);
        }
        let bytes = line.len() + 1;
        self.beginning_is_full |= self.beginning.len() + bytes > PART_BYTES_MAX;
        if !self.beginning_is_full {
            self.beginning.extend_from_slice(line);
            self.beginning.push(b'\n');
        } else if bytes > PART_BYTES_MAX {
            // The line does not fit, which makes a gap here. The file can mark one gap only, so the
            // end begins again behind this one.
            self.drop_from_end(usize::MAX);
            self.count_dropped(bytes);
        } else {
            self.drop_from_end((self.end.len() + bytes).saturating_sub(PART_BYTES_MAX));
            self.end.extend(line);
            self.end.push_back(b'\n');
        }
    }

    /// Drops the oldest lines of the end: at least so many bytes, or all.
    fn drop_from_end(&mut self, bytes: usize) {
        let mut dropped = 0;
        while dropped < bytes && !self.end.is_empty() {
            let line_break = self.end.iter().position(|byte| *byte == b'\n');
            let line_bytes = line_break.map_or(self.end.len(), |at| at + 1);
            self.end.drain(..line_bytes);
            self.count_dropped(line_bytes);
            dropped += line_bytes;
        }
    }

    fn count_dropped(&mut self, bytes: usize) {
        self.dropped_lines += 1;
        self.dropped_bytes += bytes as u64;
    }

    fn clear(&mut self) {
        *self = Self {
            file: self.file,
            ..Self::default()
        };
    }

    /// Takes the lines of a turn; `None` if it printed none.
    pub(super) fn take(&mut self, turn: AgentTurnId) -> Option<TakenLines> {
        let file = self.file;
        let taken = std::mem::take(self);
        self.file = file;
        (taken.turn == Some(turn)).then_some(TakenLines(taken))
    }

    fn into_content(self) -> Vec<u8> {
        let mut content = self.beginning;
        if self.dropped_lines > 0 {
            let (lines, bytes) = (self.dropped_lines, self.dropped_bytes);
            let mark =
                format!("{{\"turnkeep\":{{\"droppedLines\":{lines},\"droppedBytes\":{bytes}}}}}\n");
            content.extend_from_slice(mark.as_bytes());
        }
        content.extend(self.end);
        content
    }
}

/// The lines of a turn that has ended.
#[derive(Debug)]
pub(super) struct TakenLines(TurnLines);

impl TakenLines {
    /// The lines as they are recorded. It reads all of them several times, so it may take a while.
    pub(super) fn mask(self, secrets: &Secrets) -> PrintedLines {
        let file = self.0.file;
        let content = secrets.mask(Bytes::from(self.0.into_content()));
        let content = mask_split_secrets(content, secrets);
        PrintedLines { file, content }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;

    const LINE_BYTES: usize = 1 << 20;

    fn turn(number: u128) -> AgentTurnId {
        AgentTurnId::from_bits(number)
    }

    /// A line that is a mebibyte with its line break.
    fn long_line(letter: u8) -> Vec<u8> {
        vec![letter; LINE_BYTES - 1]
    }

    fn content(lines: &mut TurnLines) -> Vec<u8> {
        let taken = lines.take(turn(1)).unwrap();
        taken.mask(&Secrets::default()).content.to_vec()
    }

    /// The first letter of each line; the whole line if it is a mark.
    fn outline(lines: &mut TurnLines) -> Vec<String> {
        let content = String::from_utf8(content(lines)).unwrap();
        assert!(content.len() <= 2 * PART_BYTES_MAX + 100);
        let line = |line: &str| match line.strip_prefix("{\"turnkeep\":") {
            Some(mark) => mark.to_owned(),
            None => line[..1].to_owned(),
        };
        content.lines().map(line).collect()
    }

    #[test]
    fn the_lines_of_a_turn_are_kept_as_they_are() {
        let mut lines = TurnLines::default();
        assert!(lines.take(turn(1)).is_none(), "it printed nothing");
        lines.add(turn(7), b"of an earlier turn");
        for line in [&b"{\"a\": 1}\r"[..], b"", b"\xff\xfe no text", b"last"] {
            lines.add(turn(1), line);
        }
        assert_eq!(
            content(&mut lines),
            b"{\"a\": 1}\r\n\n\xff\xfe no text\nlast\n"
        );
        assert!(lines.take(turn(1)).is_none(), "they are taken once");
        lines.set_file(TEXT_FILE);
        lines.add(turn(1), b"x");
        assert!(lines.take(turn(2)).is_none(), "they are of another turn");
        lines.add(turn(1), b"x");
        let taken = lines.take(turn(1)).unwrap();
        assert_eq!(taken.mask(&Secrets::default()).file, TEXT_FILE);
    }

    #[test]
    fn the_middle_of_a_long_turn_is_dropped_by_whole_lines() {
        let mut lines = TurnLines::default();
        for letter in b"abcdefgh" {
            lines.add(turn(1), &long_line(*letter));
        }
        assert_eq!(outline(&mut lines).concat(), "abcdefgh", "it fits exactly");

        for letter in b"abcdefghij" {
            lines.add(turn(1), &long_line(*letter));
        }
        lines.add(turn(1), b"k");
        let mark = "{\"droppedLines\":3,\"droppedBytes\":3145728}}";
        let expect = ["a", "b", "c", "d", mark, "h", "i", "j", "k"];
        assert_eq!(outline(&mut lines), expect);
    }

    #[test]
    fn a_line_that_fits_nowhere_is_dropped_with_what_is_before_it() {
        let mut lines = TurnLines::default();
        lines.add(turn(1), b"a");
        lines.add(turn(1), &vec![b'b'; PART_BYTES_MAX]);
        lines.add(turn(1), b"c");
        let mark = "{\"droppedLines\":1,\"droppedBytes\":4194305}}";
        assert_eq!(outline(&mut lines), ["a", mark, "c"]);

        lines.add(turn(1), b"a");
        lines.add(turn(1), &long_line(b'b').repeat(4));
        lines.add(turn(1), b"c");
        lines.add(turn(1), &vec![b'd'; PART_BYTES_MAX]);
        let mark = "{\"droppedLines\":2,\"droppedBytes\":4194307}}";
        assert_eq!(outline(&mut lines), ["a", "b", mark]);
    }

    #[test]
    fn secrets_are_masked_whatever_is_around_them() {
        let secrets = Secrets::new(["key-12345".to_owned(), "two\nkey-67890".to_owned()]);
        let mut lines = TurnLines::default();
        for line in [
            &b"\xffkey-12345\xff"[..],
            b"two",
            b"key-67890",
            b"{\"text\": \"it is key-\"}",
            b"{\"text\": \"12345, keep it\"}",
        ] {
            lines.add(turn(1), line);
        }
        let masked = lines.take(turn(1)).unwrap().mask(&secrets).content;
        let expect = b"\xff*********\xff\n*************\n\
            {\"text\":\"it is ****\"}\n{\"text\":\"*****, keep it\"}\n";
        assert_eq!(masked, &expect[..], "{}", masked.escape_ascii());
    }
}
