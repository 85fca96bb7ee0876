//! Finds the fill that zsh and fish print so that a prompt begins a row of its own: a mark (`%`,
//! `#`, `⏎`) and blanks up to the right edge, both erased again. Output without a line feed ends
//! where the mark begins.
//!
//! Only the shape counts: a coloured sign or none, a run of blanks, and two returns to the left
//! edge.

use regex::bytes::Regex;
use std::sync::LazyLock;

static FILL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mark = r"(?:(?:\x1b\[[0-9;]*m)+[\x21-\x7e\x80-\xff]{1,8}(?:\x1b\[[0-9;]*m|\x1b\(B)*)?";
    Regex::new(&format!(r"(?-u){mark} {{10,}}\r[^\r\n]{{0,24}}\r")).ok()
});

/// The index at which the last fill of a line begins.
pub(super) fn fill_start(line: &[u8]) -> Option<usize> {
    FILL.as_ref()?
        .find_iter(line)
        .last()
        .map(|found| found.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_told_by_its_shape_and_begins_at_its_mark() {
        let blanks = " ".repeat(79);
        let zsh = |text: &str| {
            format!("{text}\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m{blanks}\r \r\r\x1b[0mdemo% ")
        };
        let fish = |text: &str| format!("{text}\x1b[2m⏎\x1b(B\x1b[m{blanks}\r⏎ \r\x1b[Kdemo> ");
        for (line, start) in [
            (zsh(""), Some(0)),
            (zsh("no line feed"), Some(12)),
            (zsh("\x1b[31mred"), Some(8)),
            (fish(""), Some(0)),
            (fish("no line feed"), Some(12)),
            (format!("no mark{blanks}\r \rdemo% "), Some(7)),
            (format!("100%{blanks}\rdone"), None),
            ("a b\r\r".to_owned(), None),
        ] {
            assert_eq!(fill_start(line.as_bytes()), start, "{line:?}");
        }
    }
}
