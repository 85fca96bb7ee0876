//! Classifies characters and folds them to lower case without accents.
//!
//! Folding works on single characters without context, so a piece of a text folds to a piece of the
//! folded text. Phrase search relies on it.

/// The role of a character in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharKind {
    /// Part of a word.
    Word,
    /// Part of a script without spaces, or of Korean: pairs of these are the words.
    Dense,
    /// A word by itself, such as an emoji.
    Sign,
    /// Joins words into an identifier when it has words on both sides, as in `src/pay.rs` and
    /// `PAY-142`.
    Joiner,
    /// Occurs inside words: `don't`.
    Apostrophe,
    /// Between words.
    Space,
}

/// The role of a character.
pub(super) fn char_kind(char: char) -> CharKind {
    match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' => CharKind::Word,
        '/' | '-' | '_' | '.' | ':' | '\\' | '@' => CharKind::Joiner,
        '\'' | '\u{2019}' => CharKind::Apostrophe,
        _ if char.is_ascii() => CharKind::Space,
        // Before the letters: characters of dense scripts are alphanumeric, too.
        _ if is_dense(char) => CharKind::Dense,
        _ if is_mark(char) || char.is_alphanumeric() => CharKind::Word,
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => CharKind::Sign,
        _ => CharKind::Space,
    }
}

/// Han, kana, Thai, Lao, Burmese and Khmer, and Hangul.
fn is_dense(char: char) -> bool {
    is_hangul(char)
        || matches!(char,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Syllables of Korean, which has spaces between words and endings without end at them.
pub(super) fn is_hangul(char: char) -> bool {
    matches!(char, '\u{ac00}'..='\u{d7a3}')
}

/// Marks that go with the letter before them and are left out, and signs that only choose a form.
fn is_mark(char: char) -> bool {
    matches!(char,
        '\u{0300}'..='\u{036f}' | '\u{0591}'..='\u{05c7}' | '\u{064b}'..='\u{065f}' | '\u{0670}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}')
        || is_virama(char)
}

/// Signs of Indic scripts that join two letters of a word.
fn is_virama(char: char) -> bool {
    matches!(
        char,
        '\u{094d}'
            | '\u{09cd}'
            | '\u{0a4d}'
            | '\u{0acd}'
            | '\u{0b4d}'
            | '\u{0bcd}'
            | '\u{0c4d}'
            | '\u{0ccd}'
            | '\u{0d4d}'
    )
}

/// The letters from U+00C0 to U+017F without their marks; `*` keeps the letter.
const LATIN: &[u8; 192] = b"aaaaaa*ceeeeiiiidnooooo*ouuuuy**aaaaaa*ceeeeiiiidnooooo*ouuuuy*y\
aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii**jjkkkllllllllllnnnnnnnnnoooooo**rrrrrrssssssss\
ttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/// Appends the folded form of a text.
pub(super) fn fold_all(text: &str, out: &mut String) {
    if text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        out[start..].make_ascii_lowercase();
    } else {
        text.chars().for_each(|char| fold(char, out));
    }
}

/// Appends the folded form of a character.
pub(super) fn fold(char: char, out: &mut String) {
    match char {
        _ if char.is_ascii() => out.push(char.to_ascii_lowercase()),
        '\u{2019}' => out.push('\''),
        '\u{df}' | '\u{1e9e}' => out.push_str("ss"),
        '\u{c0}'..='\u{17f}' => match LATIN[char as usize - 0xc0] {
            b'*' => out.extend(char.to_lowercase()),
            letter => out.push(char::from(letter)),
        },
        // Greek writes a sigma at the end of a word differently.
        '\u{3c2}' => out.push('\u{3c3}'),
        _ if is_mark(char) && !is_virama(char) => {}
        _ => out.extend(
            char.to_lowercase()
                .filter(|lower| !is_mark(*lower) || is_virama(*lower)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_drops_case_and_marks() {
        for (text, expect) in [
            ("Refund", "refund"),
            ("CAFÉ", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("Straße", "strasse"),
            ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
            ("Łódź", "lodz"),
            ("İ", "i"),
            ("Æther Øre", "æther ore"),
            ("Žižek ſ", "zizek s"),
            ("Привет", "привет"),
        ] {
            let mut folded = String::new();
            fold_all(text, &mut folded);
            assert_eq!(folded, expect, "{text}");
        }
    }
}
