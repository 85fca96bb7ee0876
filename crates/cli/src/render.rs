//! Shows turns and payloads to people.
//!
//! Whatever comes from a payload is outside text: control characters are escaped before they reach a
//! terminal.

mod captured;
pub(crate) mod graph;
pub(crate) mod msgpack;
pub(crate) mod turn;

/// The text with control characters escaped, so that it cannot command the terminal. Keeps tabs.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
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
pub(crate) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(printable("a\tb\u{1b}[2Jc\nd\u{202e}"), "a\tb\\u{1b}[2Jc\\u{a}d\\u{202e}");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüx", 3), "äö…");
    }
}
