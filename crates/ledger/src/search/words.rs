//! From a text to its terms, with the place of each.
//!
//! A run of letters, digits and joiners is an identifier: `src/pay/refund.rs` gives the whole, each
//! segment between slashes that has parts of its own (`refund.rs`), and the parts `src`, `pay`,
//! `refund`, `rs`; `parseHeader` gives the whole, `parse` and `header`. Parts are stemmed, wholes
//! are not. Scripts without spaces, and Korean, whose words take endings of every kind, give each
//! pair of neighbouring characters, and each character as a piece of its pairs. Stop words give
//! nothing, and letters that are only hyphenated, as in `well-known`, have no whole: people write
//! them either way.
//!
//! Invariant: a part that lies strictly inside a piece of a text, with a character on both sides,
//! is a part of the whole text too, with the same terms. Phrases rely on it.

use std::ops::Range;

use super::fold::{Kind, fold_all, kind};
use super::stem::{is_stop, stem};

/// A longer term is cut, in texts and in queries alike.
pub(super) const TERM_BYTES_MAX: usize = 64;

/// What part of an identifier a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A word, or a word between two joiners.
    Part,
    /// A piece of a part: `header` of `parseHeader`, whose place is that of the part, or a
    /// character of a pair.
    Piece,
    /// Several parts together.
    Whole,
    /// A part that says nothing. Only [`all_words`] gives these.
    Stop,
}

/// A term at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Folded, and stemmed unless it is a whole.
    pub(super) term: &'a str,
    /// Its bytes in the text.
    pub(super) place: Range<usize>,
    /// What it is.
    pub(super) role: Role,
}

/// Gives each term of a text to `each`, in the order of the text.
pub(super) fn words(text: &str, mut each: impl FnMut(&Word<'_>)) {
    all_words(text, |word| {
        if word.role != Role::Stop {
            each(word);
        }
    });
}

/// The same with the words that say nothing.
pub(super) fn all_words(text: &str, mut each: impl FnMut(&Word<'_>)) {
    let mut scanner = Scanner {
        text,
        term: String::new(),
        each: &mut each,
    };
    let mut run: Option<usize> = None;
    let mut after_dense = false;
    for (at, char) in text.char_indices() {
        let kind = kind(char);
        if matches!(kind, Kind::Word | Kind::Joiner | Kind::Apostrophe) {
            run.get_or_insert(at);
        } else if let Some(start) = run.take() {
            scanner.run(start..at);
        }
        match kind {
            Kind::Dense => scanner.dense(at, char, after_dense),
            Kind::Sign => scanner.emit(
                at..at + char.len_utf8(),
                at..at + char.len_utf8(),
                Role::Part,
            ),
            Kind::Word | Kind::Joiner | Kind::Apostrophe | Kind::Space => {}
        }
        after_dense = kind == Kind::Dense;
    }
    if let Some(start) = run {
        scanner.run(start..text.len());
    }
}

struct Scanner<'a, F: FnMut(&Word<'_>)> {
    text: &'a str,
    term: String,
    each: &'a mut F,
}

fn is_joiner(char: char) -> bool {
    kind(char) == Kind::Joiner
}

/// Whether joined words are more than hyphenated ones.
fn is_identifier(run: &str) -> bool {
    run.contains(is_joiner)
        && run.contains(|char: char| char != '-' && (is_joiner(char) || char.is_numeric()))
}

impl<F: FnMut(&Word<'_>)> Scanner<'_, F> {
    /// A character of a script without spaces: a word together with the next one, and a piece of
    /// it; a word alone if it is alone.
    fn dense(&mut self, at: usize, char: char, after_dense: bool) {
        let end = at + char.len_utf8();
        let next = self.text[end..]
            .chars()
            .next()
            .filter(|next| kind(*next) == Kind::Dense);
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

    /// A run of word characters, joiners and apostrophes.
    fn run(&mut self, run: Range<usize>) {
        if self.text[run.clone()].contains(is_joiner) {
            let whole = self.trimmed(run.clone());
            if is_identifier(&self.text[whole.clone()]) {
                self.emit(whole.clone(), whole.clone(), Role::Whole);
                if self.text[whole.clone()].contains('/') {
                    self.segments(whole);
                }
            }
            let mut start = run.start;
            for (at, joiner) in self.text[run.clone()].match_indices(is_joiner) {
                self.part(start..run.start + at);
                start = run.start + at + joiner.len();
            }
            self.part(start..run.end);
        } else {
            self.part(run);
        }
    }

    fn trimmed(&self, run: Range<usize>) -> Range<usize> {
        let outside = |char| matches!(kind(char), Kind::Joiner | Kind::Apostrophe);
        let text = &self.text[run.clone()];
        let start = run.start + text.len() - text.trim_start_matches(outside).len();
        start..(start.max(run.start + text.trim_end_matches(outside).len()))
    }

    fn segments(&mut self, whole: Range<usize>) {
        let mut start = whole.start;
        let ends = self.text[whole.clone()]
            .match_indices('/')
            .map(|(at, _)| whole.start + at);
        let ends: Vec<usize> = ends.chain([whole.end]).collect();
        for end in ends {
            let segment = self.trimmed(start..end);
            if is_identifier(&self.text[segment.clone()]) {
                self.emit(segment.clone(), segment, Role::Whole);
            }
            start = end + 1;
        }
    }

    /// Word characters and apostrophes between joiners.
    fn part(&mut self, part: Range<usize>) {
        let text = &self.text[part.clone()];
        if text.is_empty() {
            return;
        }
        self.emit(part.clone(), part.clone(), Role::Part);
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

    /// Folds the bytes at `from` and gives the term out.
    fn emit(&mut self, from: Range<usize>, place: Range<usize>, role: Role) {
        self.term.clear();
        fold_all(&self.text[from], &mut self.term);
        if role != Role::Whole {
            if self.term.contains('\'') {
                without_apostrophes(&mut self.term);
            }
            if is_stop(&self.term) {
                return (self.each)(&Word {
                    term: &self.term,
                    place,
                    role: Role::Stop,
                });
            }
            stem(&mut self.term);
        }
        self.term
            .truncate(self.term.floor_char_boundary(TERM_BYTES_MAX));
        if !self.term.is_empty() {
            (self.each)(&Word {
                term: &self.term,
                place,
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
        words(text, |word| out.push(word.term.to_owned()));
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
            words(text, |word| {
                all.push((word.term.to_owned(), word.place.clone()));
            });
            let bounds: Vec<usize> = text
                .char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .collect();
            for (index, start) in bounds.iter().enumerate() {
                for end in &bounds[index..] {
                    words(&text[*start..*end], |word| {
                        let inside = word.place.start > 0 && word.place.end < end - start;
                        let place = word.place.start + start..word.place.end + start;
                        if word.role != Role::Whole && inside {
                            assert!(
                                all.contains(&(word.term.to_owned(), place)),
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
        words(&long, |word| {
            assert!(word.term.len() <= TERM_BYTES_MAX && word.term.starts_with("eee"));
        });
    }
}
