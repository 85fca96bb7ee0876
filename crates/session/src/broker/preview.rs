//! The first words of a turn, by which a person recognises it in a list. Any bytes are valid input.

use turnkeep_types::broker::PREVIEW_BYTES_MAX;

/// How much of a text is searched for its first words, since it may begin with many empty lines.
const SEARCHED_BYTES_MAX: usize = 4096;

/// The first words in one line: white space is one blank, other control characters are left out.
///
/// `"\n  First line.\n\nSecond"` gives `"First line. Second"`.
pub(super) fn first_words(text: &[u8]) -> Box<str> {
    let head = text.get(..SEARCHED_BYTES_MAX).unwrap_or(text);
    let head = String::from_utf8_lossy(head);
    let mut words = String::new();
    for word in head.split_whitespace() {
        let is_shown = |c: &char| !c.is_control() && *c != char::REPLACEMENT_CHARACTER;
        let word: String = word.chars().filter(is_shown).collect();
        if !words.is_empty() && !word.is_empty() {
            words.push(' ');
        }
        words.push_str(&word);
        if words.len() > PREVIEW_BYTES_MAX {
            words.truncate(words.floor_char_boundary(PREVIEW_BYTES_MAX));
            break;
        }
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_stand_in_one_line() {
        let long = "word ".repeat(100);
        for (text, expect) in [
            (&b""[..], ""),
            (b"\n \r\n", ""),
            (b"\n  First line.\n\n\tSecond\x1b", "First line. Second"),
            (b"\x07 bell", "bell"),
            ("äöü".as_bytes(), "äöü"),
            (b"half a character \xc3", "half a character"),
            (long.as_bytes(), &long[..PREVIEW_BYTES_MAX]),
            ("ä".repeat(200).as_bytes(), &"ä".repeat(80)),
        ] {
            assert_eq!(&*first_words(text), expect, "{}", text.escape_ascii());
        }
    }
}
