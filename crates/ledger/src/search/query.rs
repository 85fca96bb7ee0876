//! Parses the text of a query into terms to rank by and phrases that must occur.
//!
//! Worked example: `ship "today at 9" PAY-142` has the phrase `today at 9` and the terms `ship`,
//! `today`, `9`, `pay-142`, `pay` and `142`. `at` is a stop word. `pay` and `142` are parts of
//! `pay-142`: when the view has `pay-142`, the parts would count the same match twice, so the
//! ranking drops them ([`QueryTerm::is_covered_by`]).
//!
//! A phrase may cut words at its ends: the phrase `fund fix` occurs in `refund fix`. The functions
//! at the end derive terms that every text with the phrase must have, so that a phrase search need
//! not read every text.

use std::collections::HashMap;
use std::ops::Range;

use super::stem::{is_inside_stop_word, stable_prefix};
use super::words::{Role, TERM_BYTES_MAX, for_each_word};

/// The parsed text of a query.
#[derive(Debug)]
pub(super) struct ParsedQuery<'a> {
    /// In the order of their first occurrence, each once. Words of phrases are included.
    pub(super) terms: Vec<QueryTerm>,
    /// The parts in double quotes, without empty ones.
    pub(super) phrases: Vec<&'a str>,
    /// Whether the text is empty or only white space.
    is_blank: bool,
}

/// A term of the text that later terms may lie in.
struct Whole {
    /// Its number among the terms.
    number: usize,
    range: Range<usize>,
}

/// One term of a query.
#[derive(Debug)]
pub(super) struct QueryTerm {
    pub(super) term: String,
    /// For each occurrence of the term, the numbers of the terms that enclose it there.
    enclosing: Vec<Vec<usize>>,
}

impl QueryTerm {
    /// Whether every occurrence of the term lies inside another term that is known.
    pub(super) fn is_covered_by(&self, is_known: impl Fn(usize) -> bool) -> bool {
        self.enclosing
            .iter()
            .all(|wholes| wholes.iter().any(|whole| is_known(*whole)))
    }
}

impl<'a> ParsedQuery<'a> {
    /// Parses the text of a query. An opening quote that is never closed is ignored.
    pub(super) fn parse(text: &'a str) -> Self {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        // Wholes and parts that later words may still lie in.
        let mut wholes: Vec<Whole> = Vec::new();
        for_each_word(text, |word| {
            // Words come in the order of the text, so a whole that ends here encloses no more.
            wholes.retain(|whole| whole.range.end > word.range.start);
            let mut enclosing = Vec::new();
            for Whole { number, range } in &wholes {
                if range.start <= word.range.start && word.range.end <= range.end {
                    enclosing.push(*number);
                }
            }
            // A repeated term keeps its first number but records each occurrence.
            let number = *numbers.entry(word.term.to_owned()).or_insert_with(|| {
                terms.push(QueryTerm {
                    term: word.term.to_owned(),
                    enclosing: Vec::new(),
                });
                terms.len() - 1
            });
            terms[number].enclosing.push(enclosing);
            if word.role != Role::Piece {
                wholes.push(Whole {
                    number,
                    range: word.range.clone(),
                });
            }
        });
        Self {
            terms,
            phrases: quoted_parts(text),
            is_blank: text.trim().is_empty(),
        }
    }

    /// Whether the text is not blank and yet has nothing to search for: only stop words, or only
    /// punctuation.
    pub(super) fn is_unsearchable(&self) -> bool {
        self.terms.is_empty() && self.phrases.is_empty() && !self.is_blank
    }
}

/// Whether a query's text can find anything: it is blank, or has a term or a phrase.
pub fn can_be_searched(text: &str) -> bool {
    !ParsedQuery::parse(text).is_unsearchable()
}

fn quoted_parts(text: &str) -> Vec<&str> {
    let mut phrases = Vec::new();
    let mut rest = text;
    while let Some((_, after_opening)) = rest.split_once('"') {
        // An opening quote without a closing one is ignored.
        let Some((phrase, after_closing)) = after_opening.split_once('"') else {
            break;
        };
        if !phrase.is_empty() {
            phrases.push(phrase);
        }
        rest = after_closing;
    }
    phrases
}

/// The terms that every text with this phrase has: those of words that the phrase cannot cut.
pub(super) fn certain_terms(phrase: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for_each_word(phrase, |word| {
        // A word at an end of the phrase may be cut there. A whole reaches beyond its parts.
        let is_inside = word.range.start > 0 && word.range.end < phrase.len();
        if is_inside && word.role != Role::Whole {
            terms.push(word.term.to_owned());
        }
    });
    terms
}

/// Returns a piece that some word of every text with this phrase contains: the phrase's longest
/// word with a digit. Such a word is not stemmed, so it is found inside a longer word even where
/// the phrase cuts that word.
pub(super) fn longest_number_piece(phrase: &str) -> Option<String> {
    let mut longest: Option<String> = None;
    for_each_word(phrase, |word| {
        // Indexing removes apostrophes, so a word with one may differ from its term.
        let plain = !phrase[word.range.clone()].contains(['\'', '\u{2019}']);
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
    // A long piece may lie beyond the cut of a long term.
    longest.filter(|longest| longest.len() < TERM_BYTES_MAX / 2)
}

/// Returns a piece that some word of every text with this phrase contains, whatever ending that
/// word has: the stable beginning of the phrase's longest run of letters. Returns `None` when a
/// stop word may contain the run, because stop words have no postings.
pub(super) fn longest_word_piece(phrase: &str) -> Option<String> {
    let runs = phrase.split(|char: char| !char.is_ascii_alphabetic());
    let longest = runs.max_by_key(|run| run.len())?.to_ascii_lowercase();
    // The phrase may end inside an ending, so only the stable beginning of the run is certain.
    let piece = stable_prefix(&longest);
    let is_telling = piece.len() >= WORD_PIECE_BYTES_MIN && longest.len() < TERM_BYTES_MAX / 2;
    (is_telling && !is_inside_stop_word(&longest)).then(|| piece.to_owned())
}

/// A shorter piece occurs in too many words to narrow a search.
const WORD_PIECE_BYTES_MIN: usize = 3;

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
            let wanted = ParsedQuery::parse(text);
            assert_eq!(
                (
                    wanted
                        .terms
                        .iter()
                        .map(|query_term| query_term.term.as_str())
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
            let wanted = ParsedQuery::parse(text);
            let is_known = |number: usize| {
                wanted.terms[number].term == known || known == "readline" && number == 0
            };
            let left = wanted
                .terms
                .iter()
                .filter(|query_term| !query_term.is_covered_by(is_known));
            assert_eq!(
                left.map(|query_term| query_term.term.as_str())
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
