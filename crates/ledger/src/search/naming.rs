//! Finds where a text names a person: the name as whole words, ignoring case and accents.
//!
//! Word boundaries are those of the index. So an entry that names a person has the name's words as
//! terms, and [`Index::entries_naming`] only visits entries with the rarest of them.

use std::ops::Range;

use super::fold::{CharKind, char_kind, fold, fold_all, is_hangul};
use super::index::Index;
use super::index_view::{IndexView, RarestTerm};
use super::stem::stop_word_number;
use super::stops::StopBlocks;
use super::words::{Role, for_each_word, for_each_word_and_stop};
use super::{Scope, excerpt};

/// A folded name to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    folded: String,
    /// Whether a word must begin or end where the name does: a name may start with punctuation.
    begins: bool,
    ends: bool,
}

impl Mention {
    /// Prepares a name. An empty name matches nothing.
    pub fn new(name: &str) -> Self {
        let mut folded = String::new();
        fold_all(name, &mut folded);
        let in_words =
            |char: Option<char>| char.is_some_and(|char| is_word(char) || is_apostrophe(char));
        Self {
            folded,
            begins: in_words(name.chars().next()),
            ends: in_words(name.chars().next_back()),
        }
    }

    /// The byte range of the first place where a text has the name as whole words.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        let head = *self.folded.as_bytes().first()?;
        let mut letter = String::new();
        // An ASCII letter folds to its lower case. Any other character may fold to anything.
        let may_begin = |byte: u8| byte.to_ascii_lowercase() == head || byte >= 0xc0;
        text.bytes()
            .enumerate()
            .filter(|(_, byte)| may_begin(*byte))
            .find_map(|(start, _)| {
                let (before, rest) = text.split_at(start);
                // The cheap tests come first: most positions fail here.
                if differs_early(rest, &self.folded) || self.begins && !begins_word(before) {
                    return None;
                }
                let end = start + match_length(rest, &self.folded, &mut letter)?;
                (!self.ends || ends_word(&text[end..])).then_some(start..end)
            })
    }
}

/// The byte range to show of a text for the first of these mentions: all of a short text.
pub fn excerpt_naming(text: &str, mentions: &[Mention]) -> Range<usize> {
    if text.len() <= excerpt::EXCERPT_BYTES_MAX {
        return 0..text.len();
    }
    let first = mentions
        .iter()
        .filter_map(|mention| mention.find(text))
        .min_by_key(|place| place.start);
    excerpt::widen_range(text, first.unwrap_or(0..0))
}

/// Whether the first byte in which the texts differ is ASCII in both, which proves that their
/// folded forms differ. It is a cheap test before [`match_length`].
fn differs_early(text: &str, folded: &str) -> bool {
    let pairs = text.bytes().zip(folded.bytes());
    let first = pairs
        .into_iter()
        .find(|(one, other)| one.to_ascii_lowercase() != *other);
    first.is_some_and(|(one, other)| one.is_ascii() && other.is_ascii())
}

/// The length of the folded name at the start of a text, including accents behind its last letter.
fn match_length(text: &str, folded: &str, letter: &mut String) -> Option<usize> {
    let mut rest = folded;
    for (at, char) in text.char_indices() {
        letter.clear();
        fold(char, letter);
        // The name is complete at the next character that is not a combining accent.
        if rest.is_empty() && !letter.is_empty() {
            return Some(at);
        }
        rest = rest.strip_prefix(letter.as_str())?;
        // A combining accent alone does not start a name.
        if at == 0 && letter.is_empty() {
            return None;
        }
    }
    rest.is_empty().then_some(text.len())
}

fn is_apostrophe(char: char) -> bool {
    char_kind(char) == CharKind::Apostrophe
}

/// Whether a character belongs to words that are separated by spaces.
fn is_word(char: char) -> bool {
    char_kind(char) == CharKind::Word || is_hangul(char)
}

/// More apostrophes in a row count as punctuation. The limit keeps a text of apostrophes from
/// taking quadratic time.
const APOSTROPHES_MAX: usize = 4;

/// Whether a word may begin behind this text: not behind `O'`, but behind a lone `'`.
fn begins_word(before: &str) -> bool {
    let last = before
        .chars()
        .rev()
        .take(APOSTROPHES_MAX + 1)
        .find(|char| !is_apostrophe(*char));
    !last.is_some_and(is_word)
}

/// Whether a word may end before this text: before `'s` and `'`, not before `'Brien`.
fn ends_word(after: &str) -> bool {
    let tail = skip_apostrophes(after);
    let possessive = tail.len() < after.len();
    let tail = tail
        .strip_prefix(['s', 'S'])
        .filter(|_| possessive)
        .unwrap_or(tail);
    !skip_apostrophes(tail).starts_with(is_word)
}

/// The text behind its leading apostrophes.
fn skip_apostrophes(text: &str) -> &str {
    let run = text
        .chars()
        .take(APOSTROPHES_MAX)
        .take_while(|char| is_apostrophe(*char));
    &text[run.map(char::len_utf8).sum()..]
}

impl Index {
    /// The newest `count` entries that may name a person so, the newest first. An entry with the
    /// name is among them or older than all of them; the caller checks the texts.
    pub fn entries_naming(&self, scope: &Scope<'_>, name: &str, count: usize) -> Vec<u32> {
        let view = IndexView::new(self, scope);
        match rarest_word(&view, name) {
            // The name consists of stop words, which have no postings.
            None => {
                let stops = stop_words_of(name);
                newest_with_stops(&view, &stops).take(count).collect()
            }
            Some(RarestTerm::Missing) => Vec::new(),
            Some(RarestTerm::Known(term)) => view.newest_with(term, view.at).take(count).collect(),
        }
    }
}

/// The numbers of the stop words in a name.
fn stop_words_of(name: &str) -> Vec<usize> {
    let mut stops = Vec::new();
    for_each_word_and_stop(name, |word| {
        if word.role == Role::Stop {
            stops.extend(stop_word_number(word.term));
        }
    });
    stops
}

/// The visible entries that may have all of these stop words, the newest first. It skips blocks of
/// entries without them.
fn newest_with_stops<'v>(
    view: &'v IndexView<'_>,
    stops: &'v [usize],
) -> impl Iterator<Item = u32> + 'v {
    let mut before = view.at;
    std::iter::from_fn(move || {
        loop {
            let entry = view.last_before(before)?;
            if stops
                .iter()
                .all(|stop| view.index.stops.may_have(*stop, entry))
            {
                before = entry;
                return Some(entry);
            }
            // No entry of this block has all words, so the whole block is skipped.
            before = StopBlocks::block_before(entry);
        }
    })
}

/// The rarest of the words that every text with the name has; `None` when no word is certain.
fn rarest_word(view: &IndexView<'_>, name: &str) -> Option<RarestTerm> {
    let mut certain = Vec::new();
    for_each_word(name, |word| {
        let mut chars = name[word.range.clone()].chars();
        // In a script without spaces, a single character forms a pair with the next character of
        // the text, so the character alone may not be a term there.
        let alone = chars
            .next()
            .is_some_and(|char| char_kind(char) == CharKind::Dense)
            && chars.next().is_none();
        if word.role == Role::Part && !alone {
            certain.push(view.index.terms.find(word.term));
        }
    });
    view.rarest_term(certain.into_iter())
}

#[cfg(test)]
mod tests {
    use super::super::{ClassId, Document};
    use super::*;

    /// A text, a name, and what of the text names it.
    const CASES: &[(&str, &str, Option<&str>)] = &[
        ("Ask REBECCA.", "REBECCA", Some("REBECCA")),
        ("rebecca went", "REBECCA", Some("rebecca")),
        ("Rebecca's coat", "REBECCA", Some("Rebecca")),
        ("rebeccas coat", "REBECCA", None),
        ("O'Ann said", "Ann", None),
        ("'Ann' said", "Ann", Some("Ann")),
        ("Ann'x", "Ann", None),
        ("Annie, Ann", "Ann", Some("Ann")),
        ("Joann", "Ann", None),
        ("to Mary Ann, today", "mary ann", Some("Mary Ann")),
        ("Mary\nAnn", "Mary Ann", None),
        ("José", "Jose", Some("José")),
        ("Jose\u{301} x", "José", Some("Jose\u{301}")),
        ("CODER-2 and x", "CODER-2", Some("CODER-2")),
        ("agent.7's", "agent.7", Some("agent.7")),
        ("田中さんは", "田中", Some("田中")),
        ("田中さん", "田", Some("田")),
        ("a田中b", "田中", Some("田中")),
        ("민수 왔다", "민수", Some("민수")),
        ("김민수 왔다", "민수", None),
        ("Will will", "will", Some("Will")),
        ("it is the end", "the", Some("the")),
        ("C++ rocks", "C++", Some("C++")),
        ("Straße", "STRASSE", Some("Straße")),
        ("x 🎉 y", "🎉", Some("🎉")),
        ("nobody", "", None),
        ("Anné Anne", "Anne", Some("Anné")),
        ("Ann\u{301}e", "anne", Some("Ann\u{301}e")),
        ("annex anné\u{301}! anne", "ANNÉ", Some("anné\u{301}")),
    ];

    #[test]
    fn names_are_whole_words_without_case_and_marks() {
        for (text, name, wanted) in CASES {
            assert_eq!(
                Mention::new(name).find(text).map(|place| &text[place]),
                *wanted,
                "{name} in {text}"
            );
        }
    }

    #[test]
    fn every_entry_that_names_somebody_is_found_by_the_index() {
        let mut index = Index::new();
        for (number, (text, ..)) in CASES.iter().enumerate() {
            let class = ClassId(u32::try_from(number % 3).unwrap());
            index.push(&Document {
                class,
                author: "x",
                label: "",
                text,
                time: 0,
                date: "",
            });
        }
        let classes = [ClassId(0), ClassId(1), ClassId(2)];
        for (_, name, _) in CASES {
            let named: Vec<u32> = (0..index.len())
                .rev()
                .filter(|number| Mention::new(name).find(CASES[*number as usize].0).is_some())
                .collect();
            let scope = Scope {
                classes: &classes,
                at: index.len(),
            };
            let found = index.entries_naming(&scope, name, usize::MAX);
            assert_eq!(
                index.entries_naming(&scope, name, 2),
                found[..found.len().min(2)]
            );
            assert!(found.is_sorted_by(|one, other| one > other));
            assert!(
                named.iter().all(|number| found.contains(number)),
                "{name}: {named:?} in {found:?}"
            );
        }
        let half = index.entries_naming(
            &Scope {
                classes: &classes[..1],
                at: 7,
            },
            "Ann",
            100,
        );
        assert!(
            half.iter().all(|number| number % 3 == 0 && *number < 7),
            "{half:?}"
        );
    }

    #[test]
    fn a_long_text_is_shown_around_the_mention() {
        let text = format!("{} Annie and Ann {}", "x ".repeat(4000), "y ".repeat(4000));
        let place = excerpt_naming(&text, &["Bob", "Ann"].map(Mention::new));
        assert!(text[place].contains("and Ann y"));
        assert_eq!(excerpt_naming(&text, &[Mention::new("Bob")]), 0..2048);
    }
}
