//! Splits a text into its terms and gives the byte range of each.
//!
//! A run of letters, digits and joiners is an identifier. `src/pay/refund.rs` gives the whole, the
//! path segment `refund.rs` because it has parts of its own, and the parts `src`, `pay`, `refund`
//! and `rs`. `parseHeader` gives the whole and the pieces `parse` and `header`. Parts are stemmed,
//! wholes are not. Words that are only hyphenated, such as `well-known`, have no whole, because
//! people write them either way. Stop words give no term.
//!
//! Scripts without spaces give each pair of adjacent characters as a word, and each character as a
//! piece of its pairs. Korean has spaces but too many endings to stem, so it is treated the same.
//!
//! Invariant: a part strictly inside a piece of a text, with a character on both sides, has the
//! same terms in the piece as in the text. Phrase search relies on it.

use std::ops::Range;

use super::fold::{CharKind, char_kind, fold_all};
use super::stem::{is_stop_word, stem};

/// Longer terms are cut to this length, in texts and in queries.
pub(super) const TERM_BYTES_MAX: usize = 64;

/// How a term relates to its identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A word, or a word between two joiners.
    Part,
    /// A piece of a part: `header` in `parseHeader`, or one character of a pair. The range is that
    /// of the part.
    Piece,
    /// Several parts together.
    Whole,
    /// A stop word. Only [`for_each_word_and_stop`] gives these.
    Stop,
}

/// A term and its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Folded, and stemmed unless it is a whole.
    pub(super) term: &'a str,
    pub(super) range: Range<usize>,
    pub(super) role: Role,
}

/// Calls `each` for every term of a text, in the order of the text.
pub(super) fn for_each_word(text: &str, mut each: impl FnMut(&Word<'_>)) {
    for_each_word_and_stop(text, |word| {
        if word.role != Role::Stop {
            each(word);
        }
    });
}

/// Like [`for_each_word`], with stop words.
pub(super) fn for_each_word_and_stop(text: &str, mut each: impl FnMut(&Word<'_>)) {
    let mut scanner = Scanner {
        text,
        term: String::new(),
        each: &mut each,
    };
    // The start of the current run of word characters, joiners and apostrophes.
    let mut run: Option<usize> = None;
    let mut after_dense = false;
    for (at, char) in text.char_indices() {
        let kind = char_kind(char);
        if matches!(
            kind,
            CharKind::Word | CharKind::Joiner | CharKind::Apostrophe
        ) {
            run.get_or_insert(at);
        } else if let Some(start) = run.take() {
            scanner.scan_run(start..at);
        }
        match kind {
            CharKind::Dense => scanner.scan_dense(at, char, after_dense),
            CharKind::Sign => scanner.emit(
                at..at + char.len_utf8(),
                at..at + char.len_utf8(),
                Role::Part,
            ),
            CharKind::Word | CharKind::Joiner | CharKind::Apostrophe | CharKind::Space => {}
        }
        after_dense = kind == CharKind::Dense;
    }
    if let Some(start) = run {
        scanner.scan_run(start..text.len());
    }
}

struct Scanner<'a, F: FnMut(&Word<'_>)> {
    text: &'a str,
    term: String,
    each: &'a mut F,
}

fn is_joiner(char: char) -> bool {
    char_kind(char) == CharKind::Joiner
}

/// Whether joined words are more than hyphenated ones: they have a digit or another joiner.
fn is_identifier(run: &str) -> bool {
    run.contains(is_joiner)
        && run.contains(|char: char| char != '-' && (is_joiner(char) || char.is_numeric()))
}

impl<F: FnMut(&Word<'_>)> Scanner<'_, F> {
    /// Emits a character of a script without spaces: with its successor as a pair, and alone as a
    /// piece. A single character is a part of its own.
    fn scan_dense(&mut self, at: usize, char: char, after_dense: bool) {
        let end = at + char.len_utf8();
        let next = self.text[end..]
            .chars()
            .next()
            .filter(|next| char_kind(*next) == CharKind::Dense);
        if let Some(next) = next {
            let pair = at..end + next.len_utf8();
            self.emit(pair.clone(), pair, Role::Part);
        }
        let is_alone = next.is_none() && !after_dense;
        self.emit(
            at..end,
            at..end,
            if is_alone { Role::Part } else { Role::Piece },
        );
    }

    /// Emits the terms of a run of word characters, joiners and apostrophes.
    fn scan_run(&mut self, run: Range<usize>) {
        if self.text[run.clone()].contains(is_joiner) {
            let whole = self.trim_joiners(run.clone());
            // The whole comes before its parts, because the query parser looks for enclosing terms.
            if is_identifier(&self.text[whole.clone()]) {
                self.emit(whole.clone(), whole.clone(), Role::Whole);
                if self.text[whole.clone()].contains('/') {
                    self.emit_segments(whole);
                }
            }
            let mut start = run.start;
            for (at, joiner) in self.text[run.clone()].match_indices(is_joiner) {
                self.scan_part(start..run.start + at);
                start = run.start + at + joiner.len();
            }
            self.scan_part(start..run.end);
        } else {
            self.scan_part(run);
        }
    }

    /// Drops joiners and apostrophes at both ends.
    fn trim_joiners(&self, run: Range<usize>) -> Range<usize> {
        let outside = |char| matches!(char_kind(char), CharKind::Joiner | CharKind::Apostrophe);
        let text = &self.text[run.clone()];
        let start = run.start + text.len() - text.trim_start_matches(outside).len();
        start..(start.max(run.start + text.trim_end_matches(outside).len()))
    }

    /// Emits the segments of a path that are identifiers themselves.
    fn emit_segments(&mut self, whole: Range<usize>) {
        let mut start = whole.start;
        let ends = self.text[whole.clone()]
            .match_indices('/')
            .map(|(at, _)| whole.start + at);
        let ends: Vec<usize> = ends.chain([whole.end]).collect();
        for end in ends {
            let segment = self.trim_joiners(start..end);
            if is_identifier(&self.text[segment.clone()]) {
                self.emit(segment.clone(), segment, Role::Whole);
            }
            start = end + 1;
        }
    }

    /// Emits a part between joiners, and its camel-case pieces.
    fn scan_part(&mut self, part: Range<usize>) {
        let text = &self.text[part.clone()];
        if text.is_empty() {
            return;
        }
        self.emit(part.clone(), part.clone(), Role::Part);
        // Without an upper-case or other character behind the first, there is no camel case.
        if text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) {
            return;
        }
        let mut start = 0;
        let mut last_lower = false;
        for (at, char) in text.char_indices() {
            if last_lower && char.is_uppercase() {
                self.emit(
                    part.start + start..part.start + at,
                    part.clone(),
                    Role::Piece,
                );
                start = at;
            }
            last_lower = char.is_lowercase();
        }
        if start > 0 {
            self.emit(part.start + start..part.end, part, Role::Piece);
        }
    }

    /// Folds and stems the bytes at `from` and passes the term on.
    fn emit(&mut self, from: Range<usize>, range: Range<usize>, role: Role) {
        self.term.clear();
        fold_all(&self.text[from], &mut self.term);
        if role != Role::Whole {
            // Apostrophes go before the stop-word check: the list has `dont`, not `don't`.
            if self.term.contains('\'') {
                without_apostrophes(&mut self.term);
            }
            if is_stop_word(&self.term) {
                return (self.each)(&Word {
                    term: &self.term,
                    range,
                    role: Role::Stop,
                });
            }
            stem(&mut self.term);
        }
        self.term
            // Cuts texts and queries alike, so a long word still matches itself.
            .truncate(self.term.floor_char_boundary(TERM_BYTES_MAX));
        if !self.term.is_empty() {
            (self.each)(&Word {
                term: &self.term,
                range,
                role,
            });
        }
    }
}

/// `anna's` becomes `anna`, `don't` becomes `dont`.
fn without_apostrophes(term: &mut String) {
    let trimmed = term.trim_matches('\'');
    let base = trimmed.strip_suffix("'s").unwrap_or(trimmed);
    *term = base.replace('\'', "");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> String {
        let mut out = Vec::new();
        for_each_word(text, |word| out.push(word.term.to_owned()));
        out.join(" ")
    }

    #[test]
    fn texts_become_terms() {
        for (text, expect) in [
            ("", ""),
            ("The refund, please!", "refund pleas"),
            ("PAY-142", "pay-142 pay 142"),
            (
                "see src/pay/refund.rs.",
                "see src/pay/refund.rs refund.rs src pay refund rs",
            ),
            ("port 8443, 0x1f", "port 8443 0x1f"),
            ("parseHeader()", "parsehead pars header"),
            ("HTTPServer", "httpserver"),
            ("Anna's don't 'quoted'", "anna quot"),
            ("15:00", "15:00 15 00"),
            ("--- ... -", ""),
            ("-x- _y_", "x y"),
            (
                "a well-known well_known",
                "well known well_known well known",
            ),
            ("a@b.example", "a@b.example b exampl"),
            ("東京都へ", "東京 東 京都 京 都へ 都 へ"),
            ("한국어 api", "한국 한 국어 국 어 api"),
            ("a東b", "東 b"),
            ("done 🎉🎉", "done 🎉 🎉"),
            ("Café cafe\u{301}", "cafe cafe"),
            ("std::mem", "std::mem std mem"),
        ] {
            assert_eq!(terms(text), expect, "{text}");
        }
    }

    #[test]
    fn a_part_inside_a_piece_of_a_text_is_a_part_of_the_text() {
        let texts = [
            "fix src/pay/refund.rs: Anna's 'parseHeader' isn't-done x'y 東京都へ行く PAY-142/b don't",
            "-a-b' c/d.e f'g h--i ''j k🎉l é\u{301}m n\u{2019}s",
        ];
        for text in texts {
            let mut all = Vec::new();
            for_each_word(text, |word| {
                all.push((word.term.to_owned(), word.range.clone()));
            });
            let bounds: Vec<usize> = text
                .char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .collect();
            for (index, start) in bounds.iter().enumerate() {
                for end in &bounds[index..] {
                    for_each_word(&text[*start..*end], |word| {
                        let inside = word.range.start > 0 && word.range.end < end - start;
                        let range = word.range.start + start..word.range.end + start;
                        if word.role != Role::Whole && inside {
                            assert!(
                                all.contains(&(word.term.to_owned(), range)),
                                "{word:?} in {:?}",
                                &text[*start..*end]
                            );
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn long_terms_are_cut_on_a_character() {
        let long = "é".repeat(40) + &"ж".repeat(40);
        for_each_word(&long, |word| {
            assert!(word.term.len() <= TERM_BYTES_MAX && word.term.starts_with("eee"));
        });
    }
}
