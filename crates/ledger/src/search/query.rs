//! A query's text, taken apart: terms to rank by and phrases that must be there.

use super::words::{Role, words};

/// A query's text, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    /// Terms in the order in which they first occur, those of the phrases included; each once.
    pub(super) terms: Vec<String>,
    /// What stood in double quotes, not empty.
    pub(super) phrases: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Takes a query's text apart. A quote that is never closed is only a sign.
    pub(super) fn of(text: &'a str) -> Self {
        let mut terms: Vec<String> = Vec::new();
        words(text, |word| {
            if !terms.iter().any(|term| term == word.term) {
                terms.push(word.term.to_owned());
            }
        });
        Self { terms, phrases: phrases(text) }
    }
}

fn phrases(text: &str) -> Vec<&str> {
    let pieces: Vec<&str> = text.split('"').collect();
    let closed = (pieces.len() - 1) / 2;
    pieces.into_iter().skip(1).step_by(2).take(closed).filter(|phrase| !phrase.is_empty()).collect()
}

/// Terms that every text with this phrase has: those of the words that the phrase does not cut.
pub(super) fn certain_terms(phrase: &str) -> Vec<String> {
    let mut terms = Vec::new();
    words(phrase, |word| {
        let inside = word.place.start > 0 && word.place.end < phrase.len();
        if inside && word.role != Role::Whole {
            terms.push(word.term.to_owned());
        }
    });
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_make_phrases() {
        for (text, terms, phrases) in [
            ("", &[][..], &[][..]),
            ("refund the Refunds", &["refund"], &[]),
            (r#"ship "today at 9" now"#, &["ship", "today", "9", "now"], &["today at 9"]),
            (r#""a b" "c"#, &["b", "c"], &["a b"]),
            (r#""" x"#, &["x"], &[]),
            (r#""one""two""#, &["one", "two"], &["one", "two"]),
        ] {
            let wanted = Wanted::of(text);
            assert_eq!(
                (wanted.terms.iter().map(String::as_str).collect::<Vec<_>>(), &wanted.phrases[..]),
                (terms.to_vec(), phrases),
                "{text}"
            );
        }
    }

    #[test]
    fn words_at_the_ends_of_a_phrase_are_not_certain() {
        for (phrase, expect) in [
            ("fund", &[][..]),
            ("fund fix blo", &["fix"]),
            (" fund fix.", &["fund", "fix"]),
            ("pay/refund.rs", &["refund"]),
            ("x of the y", &[]),
        ] {
            assert_eq!(certain_terms(phrase), expect, "{phrase}");
        }
    }
}
