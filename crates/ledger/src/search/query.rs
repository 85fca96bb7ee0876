//! A query's text, taken apart: terms to rank by and phrases that must be there.

use std::collections::HashMap;
use std::ops::Range;

use super::stem::{is_in_a_stop, kept};
use super::words::{Role, TERM_BYTES_MAX, words};

/// A query's text, taken apart.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// In the order in which they first occur, those of the phrases included; each once.
    pub(super) terms: Vec<Wish>,
    /// What stood in double quotes, not empty.
    pub(super) phrases: Vec<&'a str>,
    /// Whether nothing is asked for.
    is_blank: bool,
}

/// A term of a query.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) term: String,
    /// For each time that it occurs, the terms that it is a part of there.
    inside: Vec<Vec<usize>>,
}

impl Wish {
    /// Whether it only occurs as a part of terms of which one is known each time.
    pub(super) fn is_said_by(&self, is_known: impl Fn(usize) -> bool) -> bool {
        self.inside
            .iter()
            .all(|wholes| wholes.iter().any(|whole| is_known(*whole)))
    }
}

impl<'a> Wanted<'a> {
    /// Takes a query's text apart. A quote that is never closed is only a sign.
    pub(super) fn of(text: &'a str) -> Self {
        let mut terms: Vec<Wish> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        // What may still have parts to come.
        let mut wholes: Vec<(usize, Range<usize>)> = Vec::new();
        words(text, |word| {
            wholes.retain(|(_, place)| place.end > word.place.start);
            let holds = |place: &Range<usize>| {
                place.start <= word.place.start && word.place.end <= place.end
            };
            let inside = wholes
                .iter()
                .filter(|(_, place)| holds(place))
                .map(|(number, _)| *number)
                .collect();
            let number = *numbers.entry(word.term.to_owned()).or_insert_with(|| {
                terms.push(Wish {
                    term: word.term.to_owned(),
                    inside: Vec::new(),
                });
                terms.len() - 1
            });
            terms[number].inside.push(inside);
            if word.role != Role::Piece {
                wholes.push((number, word.place.clone()));
            }
        });
        Self {
            terms,
            phrases: phrases(text),
            is_blank: text.trim().is_empty(),
        }
    }

    /// Whether something is asked for that no entry can be found by: stop words, or signs between
    /// words.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.terms.is_empty() && self.phrases.is_empty() && !self.is_blank
    }
}

/// Whether a query's text can find anything: it is empty, or has a word that is looked for, or a
/// phrase.
pub fn can_be_searched(text: &str) -> bool {
    !Wanted::of(text).is_out_of_reach()
}

fn phrases(text: &str) -> Vec<&str> {
    let pieces: Vec<&str> = text.split('"').collect();
    let closed = (pieces.len() - 1) / 2;
    pieces
        .into_iter()
        .skip(1)
        .step_by(2)
        .take(closed)
        .filter(|phrase| !phrase.is_empty())
        .collect()
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

/// A piece that a word of every text with this phrase holds: the phrase's longest word with a digit
/// in it, which has no ending to lose, so that what was cut off at the phrase's ends can be
/// anything.
pub(super) fn cut_number(phrase: &str) -> Option<String> {
    let mut longest: Option<String> = None;
    words(phrase, |word| {
        let plain = !phrase[word.place.clone()].contains(['\'', '\u{2019}']);
        let counts = word.role == Role::Part
            && plain
            && word.term.contains(|char: char| char.is_ascii_digit());
        if counts
            && longest
                .as_ref()
                .is_none_or(|longest| longest.len() < word.term.len())
        {
            longest = Some(word.term.to_owned());
        }
    });
    longest.filter(|longest| longest.len() < TERM_BYTES_MAX / 2)
}

/// A piece that a word of every text with this phrase holds, whatever ending that word has: the
/// beginning of the phrase's longest run of letters. Nothing is known of one that words which say
/// nothing may hold.
pub(super) fn cut_word(phrase: &str) -> Option<String> {
    let runs = phrase.split(|char: char| !char.is_ascii_alphabetic());
    let longest = runs.max_by_key(|run| run.len())?.to_ascii_lowercase();
    let piece = kept(&longest);
    let is_telling = piece.len() >= CUT_WORD_BYTES_MIN && longest.len() < TERM_BYTES_MAX / 2;
    (is_telling && !is_in_a_stop(&longest)).then(|| piece.to_owned())
}

/// A shorter piece is in too many words.
const CUT_WORD_BYTES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_make_phrases() {
        for (text, terms, phrases) in [
            ("", &[][..], &[][..]),
            ("refund the Refunds", &["refund"], &[]),
            (
                r#"ship "today at 9" soon"#,
                &["ship", "today", "9", "soon"],
                &["today at 9"],
            ),
            (r#""a b" "c"#, &["b", "c"], &["a b"]),
            (r#""" x"#, &["x"], &[]),
            (r#""one""two""#, &["one", "two"], &["one", "two"]),
        ] {
            let wanted = Wanted::of(text);
            assert_eq!(
                (
                    wanted
                        .terms
                        .iter()
                        .map(|wish| wish.term.as_str())
                        .collect::<Vec<_>>(),
                    &wanted.phrases[..]
                ),
                (terms.to_vec(), phrases),
                "{text}"
            );
        }
    }

    #[test]
    fn what_has_neither_words_nor_phrases_cannot_be_searched() {
        for (text, can_be) in [
            ("", true),
            (" \n", true),
            ("refund", true),
            ("\"the\"", true),
            ("東", true),
            ("the", false),
            ("of and", false),
            ("???", false),
            ("€ -> +", false),
            ("\"\"", false),
        ] {
            assert_eq!(can_be_searched(text), can_be, "{text}");
        }
    }

    #[test]
    fn parts_of_a_known_whole_are_said_by_it() {
        for (text, known, expect) in [
            ("pay-142 port", "pay-142", "pay-142 port"),
            ("pay-142 port", "pay", "pay-142 pay 142 port"),
            ("pay-142 pay", "pay-142", "pay-142 pay"),
            ("src/a/x.rs", "src/a/x.rs", "src/a/x.rs"),
            ("src/ab/x.rs", "x.rs", "src/ab/x.rs x.rs src ab"),
            ("readLine", "readline", "readlin"),
            ("readLine", "", "readlin read line"),
            ("東京", "東京", "東京"),
            ("東京", "", "東京 東 京"),
        ] {
            let wanted = Wanted::of(text);
            let is_known = |number: usize| {
                wanted.terms[number].term == known || known == "readline" && number == 0
            };
            let left = wanted
                .terms
                .iter()
                .filter(|wish| !wish.is_said_by(is_known));
            assert_eq!(
                left.map(|wish| wish.term.as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
                expect,
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
