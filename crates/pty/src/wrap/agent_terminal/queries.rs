//! Answers what programs ask their terminal: a program that gets no answer may wait for it.
//!
//! | question | answer |
//! |---|---|
//! | `ESC [ c` what are you? | a plain terminal with colours |
//! | `ESC [ 5 n` are you well? | yes |
//! | `ESC [ 6 n` where is the cursor? | in the first cell |
//! | `OSC 7501 ; ?` do you know status reports? | yes |
//!
//! Everything else is left unanswered, as old terminals do.

use super::super::output_scanner::{OutputScanner, STATUS_ANSWER};

/// The questions, each with its answer.
const ANSWERS: [(&[u8], &[u8]); 4] = [
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[5n", b"\x1b[0n"),
    (b"\x1b[6n", b"\x1b[1;1R"),
];
/// The length of the longest question. One may be cut between two pieces of output.
const QUESTION_BYTES_MAX: usize = 4;

/// Reads a program's output for what it asks and for the modes that it sets.
#[derive(Debug, Default)]
pub(super) struct TerminalQueries {
    scanner: OutputScanner,
    /// The end of the last piece.
    tail: Vec<u8>,
}

impl TerminalQueries {
    /// Takes a piece of output and returns the answers.
    pub(super) fn answer(&mut self, output: &[u8]) -> Vec<u8> {
        self.scanner.feed(output);
        let mut answers = STATUS_ANSWER.repeat(self.scanner.take_queries());
        let kept = self.tail.len();
        self.tail.extend_from_slice(output);
        for (question, answer) in ANSWERS {
            let windows = self.tail.windows(question.len()).enumerate();
            // A question that ends in the old part was answered with it.
            let found =
                windows.filter(|(at, bytes)| *bytes == question && at + question.len() > kept);
            answers.extend(answer.repeat(found.count()));
        }
        let rest = self.tail.len().saturating_sub(QUESTION_BYTES_MAX - 1);
        self.tail.drain(..rest);
        answers
    }

    /// Whether the program takes pastes between marks.
    pub(super) fn takes_paste_marks(&self) -> bool {
        self.scanner.is_bracketed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expect: &[u8]) {
        let mut queries = TerminalQueries::default();
        let answers = pieces.iter().map(|piece| queries.answer(piece));
        let answers: Vec<u8> = answers.flatten().collect();
        assert_eq!(
            answers.escape_ascii().to_string(),
            expect.escape_ascii().to_string()
        );
    }

    #[test]
    fn each_question_is_answered_once_wherever_it_is_cut() {
        check(&[b"text \x1b[6n more"], b"\x1b[1;1R");
        check(&[b"\x1b", b"[", b"6", b"n", b"x"], b"\x1b[1;1R");
        check(&[b"\x1b[6n\x1b[6n", b"", b"n"], b"\x1b[1;1R\x1b[1;1R");
        check(&[b"\x1b[c"], b"\x1b[?62;22c");
        check(&[b"\x1b]7501;?\x1b\\"], b"\x1b]7501;?\x1b\\");
        check(&[b"\x1b[>c \x1b[?6n [6n"], b"");
    }
}
