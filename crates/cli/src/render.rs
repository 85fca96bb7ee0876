//! Shows turns and payloads to people.
//!
//! Whatever comes from a payload is outside text: control characters are escaped before they reach
//! a terminal.

mod captured;
pub(crate) mod graph;
pub(crate) mod msgpack;
pub(crate) mod run_event;
pub(crate) mod run_screen;
pub(crate) mod run_text;
mod transcript;
pub(crate) mod turn;

/// The text with control characters escaped, so that it cannot command the terminal. Keeps tabs.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // A bidi control can make a text look like another one.
        if (c.is_control() && c != '\t') || is_bidi_control(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters that reorder what stands around them.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first `max` characters, with an ellipsis if there are more.
pub(crate) fn shorten_to_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(max.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// How many columns a terminal takes for a text.
pub(crate) fn text_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// The head of a text that fits in so many columns, with an ellipsis if that is not all of it.
pub(crate) fn shorten_to_columns(text: &str, columns: usize) -> String {
    if text_columns(text) <= columns {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut left = columns.saturating_sub(1);
    for c in text.chars() {
        match left.checked_sub(char_columns(c)) {
            // A wide character does not fit into a single column, so the text may end one column
            // early.
            Some(rest) => left = rest,
            None => break,
        }
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// The columns of one character. East Asian characters and pictures take two, marks that stand on
/// the character before them take none.
fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_its_columns_end() {
        for (text, columns, expect) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}te\u{301}", 3, "e\u{301}te\u{301}"),
            ("abc", 0, ""),
        ] {
            let shown = shorten_to_columns(text, columns);
            assert_eq!(shown, expect);
            assert!(text_columns(&shown) <= columns, "{shown}");
        }
    }

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(
            printable("a\tb\u{1b}[2Jc\nd\u{202e}"),
            "a\tb\\u{1b}[2Jc\\u{a}d\\u{202e}"
        );
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten_to_chars("äöü", 3), "äöü");
        assert_eq!(shorten_to_chars("äöüx", 3), "äö…");
    }
}
