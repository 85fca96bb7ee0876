//! Which piece of a text to show for a query: contiguous bytes, on character boundaries.

use std::collections::HashMap;
use std::ops::Range;

use super::query::Wanted;
use super::words::words;

/// A longer text is shown in part.
pub const EXCERPT_BYTES_MAX: usize = 2048;

/// A place where the query matches.
struct Match {
    place: Range<usize>,
    /// Which of the query's terms or phrases.
    what: usize,
}

/// Shows the pieces of texts that fit one query.
#[derive(Debug)]
pub struct Excerpts<'q> {
    phrases: Vec<&'q str>,
    /// Each term of the query with its number.
    terms: HashMap<String, usize>,
}

impl<'q> Excerpts<'q> {
    /// For this query.
    pub fn of(query: &'q str) -> Self {
        let wanted = Wanted::of(query);
        let terms = wanted
            .terms
            .into_iter()
            .enumerate()
            .map(|(number, wish)| (wish.term, number))
            .collect();
        Self {
            phrases: wanted.phrases,
            terms,
        }
    }

    /// The bytes of `text` to show: all of a short text; of a longer one the piece with the first
    /// phrase, or else with the most different words of the query, the earliest of several.
    pub fn range(&self, text: &str) -> Range<usize> {
        if text.len() <= EXCERPT_BYTES_MAX {
            return 0..text.len();
        }
        let phrase = self.phrases.iter().find_map(|phrase| {
            let start = text.find(phrase)?;
            Some(start..start + phrase.len())
        });
        let kernel = phrase
            .or_else(|| densest(&self.matches(text)))
            .unwrap_or(0..0);
        around(text, kernel)
    }

    fn matches(&self, text: &str) -> Vec<Match> {
        let mut found = Vec::new();
        words(text, |word| {
            if let Some(what) = self.terms.get(word.term) {
                found.push(Match {
                    place: word.place.clone(),
                    what: *what,
                });
            }
        });
        found.sort_by_key(|found| (found.place.start, found.place.end));
        found
    }
}

/// The bytes from the first to the last match of the best piece.
fn densest(matches: &[Match]) -> Option<Range<usize>> {
    let kinds = matches
        .iter()
        .map(|found| found.what + 1)
        .max()
        .unwrap_or(0);
    let mut counts = vec![0_usize; kinds];
    let (mut different, mut end) = (0, 0);
    let mut best: Option<((usize, usize), Range<usize>)> = None;
    for (start, first) in matches.iter().enumerate() {
        while let Some(next) = matches.get(end).filter(|next| {
            next.place.end.saturating_sub(first.place.start) <= EXCERPT_BYTES_MAX || end <= start
        }) {
            counts[next.what] += 1;
            different += usize::from(counts[next.what] == 1);
            end += 1;
        }
        let rank = (different, end - start);
        if best.as_ref().is_none_or(|(best, _)| rank > *best) {
            let last = matches[start..end]
                .iter()
                .map(|found| found.place.end)
                .max()
                .unwrap_or(0);
            best = Some((rank, first.place.start..last));
        }
        counts[first.what] -= 1;
        different -= usize::from(counts[first.what] == 0);
    }
    best.map(|(_, range)| range)
}

/// As much of the text as may be shown, with the kernel in the middle.
pub(super) fn around(text: &str, kernel: Range<usize>) -> Range<usize> {
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
        Excerpts::of(query).range(text)
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
