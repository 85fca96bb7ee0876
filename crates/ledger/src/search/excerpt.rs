//! Selects the piece of a text to show for a query: contiguous bytes on character boundaries.
//!
//! A short text is shown whole. Of a longer text, the piece with the first phrase is shown, or the
//! piece with the most different terms of the query.

use std::collections::HashMap;
use std::ops::Range;

use super::query::ParsedQuery;
use super::words::for_each_word;

/// Longer texts are shown in part.
pub const EXCERPT_BYTES_MAX: usize = 2048;

/// A place where a term of the query matches.
struct Match {
    range: Range<usize>,
    /// The number of the term.
    what: usize,
}

/// Selects excerpts for one query.
#[derive(Debug)]
pub struct Excerpts<'q> {
    phrases: Vec<&'q str>,
    /// Each term of the query with its number.
    terms: HashMap<String, usize>,
}

impl<'q> Excerpts<'q> {
    /// Prepares excerpts for this query.
    pub fn new(query: &'q str) -> Self {
        let parsed = ParsedQuery::parse(query);
        let terms = parsed
            .terms
            .into_iter()
            .enumerate()
            .map(|(number, query_term)| (query_term.term, number))
            .collect();
        Self {
            phrases: parsed.phrases,
            terms,
        }
    }

    /// The byte range of `text` to show. Of several equally good pieces, the earliest.
    pub fn range(&self, text: &str) -> Range<usize> {
        if text.len() <= EXCERPT_BYTES_MAX {
            return 0..text.len();
        }
        let phrase = self.phrases.iter().find_map(|phrase| {
            let start = text.find(phrase)?;
            Some(start..start + phrase.len())
        });
        let kernel = phrase
            .or_else(|| find_densest(&self.find_matches(text)))
            .unwrap_or(0..0);
        widen_range(text, kernel)
    }

    fn find_matches(&self, text: &str) -> Vec<Match> {
        let mut found = Vec::new();
        for_each_word(text, |word| {
            if let Some(what) = self.terms.get(word.term) {
                found.push(Match {
                    range: word.range.clone(),
                    what: *what,
                });
            }
        });
        found.sort_by_key(|found| (found.range.start, found.range.end));
        found
    }
}

/// How good a piece is. The order of the fields is the order in which they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PieceRank {
    different_terms: usize,
    matches: usize,
}

/// A piece of a text.
struct Piece {
    rank: PieceRank,
    range: Range<usize>,
}

/// The bytes from the first to the last match of the best piece. A window slides over the matches:
/// for each first match, it includes all matches that fit into one excerpt.
fn find_densest(matches: &[Match]) -> Option<Range<usize>> {
    let kinds = matches
        .iter()
        .map(|found| found.what + 1)
        .max()
        .unwrap_or(0);
    let mut counts = vec![0_usize; kinds];
    let (mut different, mut end) = (0, 0);
    let mut best: Option<Piece> = None;
    for (start, first) in matches.iter().enumerate() {
        // `end <= start` takes at least one match, even one that is longer than an excerpt.
        while let Some(next) = matches.get(end).filter(|next| {
            next.range.end.saturating_sub(first.range.start) <= EXCERPT_BYTES_MAX || end <= start
        }) {
            counts[next.what] += 1;
            different += usize::from(counts[next.what] == 1);
            end += 1;
        }
        let rank = PieceRank {
            different_terms: different,
            matches: end - start,
        };
        // Only a better rank replaces the best piece, so the earlier window wins a tie.
        if best.as_ref().is_none_or(|best| rank > best.rank) {
            // Matches overlap, so the last one to start is not always the last one to end.
            let last = matches[start..end]
                .iter()
                .map(|found| found.range.end)
                .max()
                .unwrap_or(0);
            best = Some(Piece {
                rank,
                range: first.range.start..last,
            });
        }
        counts[first.what] -= 1;
        different -= usize::from(counts[first.what] == 0);
    }
    best.map(|piece| piece.range)
}

/// Widens the range to the length of an excerpt, with the range in the middle.
pub(super) fn widen_range(text: &str, kernel: Range<usize>) -> Range<usize> {
    // A range longer than an excerpt starts the excerpt and is cut at its end.
    let spare = EXCERPT_BYTES_MAX.saturating_sub(kernel.len());
    let start = kernel
        .start
        .saturating_sub(spare / 2)
        .min(text.len() - EXCERPT_BYTES_MAX);
    let start = text.ceil_char_boundary(start).min(text.len());
    start..text.floor_char_boundary(start + EXCERPT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, query: &str) -> Range<usize> {
        Excerpts::new(query).range(text)
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(excerpt("short", "nothing of it"), 0..5);
        assert_eq!(excerpt("", "x"), 0..0);
        assert_eq!(excerpt(&"x".repeat(2048), ""), 0..2048);
    }

    #[test]
    fn the_piece_holds_the_best_match() {
        let fill = "lorem ipsum dolor ".repeat(300);
        let text = format!(
            "refund {fill}refund deadline {fill}the Deadline of refund PAY-142 {fill}exact, Quote {fill}"
        );
        for (query, expect) in [
            ("refund", "refund lorem"),
            ("deadline refunds", "refund deadline"),
            ("refund deadline pay-142", "Deadline of refund PAY-142"),
            (r#"refund "exact, Quote""#, "exact, Quote"),
            ("nothing like it", "refund lorem"),
        ] {
            let range = excerpt(&text, query);
            assert!(range.len() <= EXCERPT_BYTES_MAX, "{query}");
            assert!(
                text[range.clone()].contains(expect),
                "{query}: {}",
                &text[range]
            );
        }
    }

    #[test]
    fn cuts_are_on_characters() {
        let text = "é".repeat(3000) + " needle " + &"😀".repeat(2000);
        for query in ["needle", "", "😀", "\"é needle\""] {
            let range = excerpt(&text, query);
            assert!(range.len() <= EXCERPT_BYTES_MAX && range.len() > EXCERPT_BYTES_MAX - 8);
            assert!(
                text.is_char_boundary(range.start) && text.is_char_boundary(range.end),
                "{query}"
            );
        }
        assert!(text[excerpt(&text, "needle")].contains("needle"));
    }

    #[test]
    fn a_match_longer_than_the_piece_starts_it() {
        let text = format!("{} \"{}\"", "x ".repeat(4000), "y".repeat(4000));
        let range = excerpt(&text, &format!("\"{}\"", "y".repeat(3000)));
        assert_eq!(range, 8002..8002 + 2048);
    }
}
