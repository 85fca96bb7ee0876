//! TeamWorld: a made-up team's ledger with questions whose answers are known, to measure search by.
//!
//! A seed gives the same world for ever: persons talk for weeks about tickets, several
//! conversations at a time, a part of them in private. They state facts (owner, deadline, port,
//! file, limit, cause), change them, contradict each other, and say much that shares words with the
//! facts. Each question has a reader, and names the entries that answer it among those that the
//! reader may see; those of the last kind ask for what the reader may not see.
//!
//! It is a tool for tests and for `turnkeep bench ledger`; nothing in a product's path uses it.

mod conversation;
mod generate;
mod measure;
mod phrasing;
mod questions;
pub(crate) mod random;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::convert::Infallible;

pub use measure::{Quality, Score, Tally, measure};

use crate::search::{ClassId, Document, Index, Texts, Window, date_words};

/// What to make.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The same seed, the same world.
    pub seed: u64,
    /// How many persons there are, at least 4.
    pub persons: usize,
    /// How many entries they write.
    pub entries: usize,
    /// How many weeks they take.
    pub weeks: u32,
    /// How many different audiences private entries have.
    pub audiences: usize,
    /// How many questions of each kind to ask, at most.
    pub questions: usize,
}

impl Plan {
    /// A team of twelve over six weeks, with 30 audiences and 300 questions of each kind.
    pub fn new(seed: u64, entries: usize) -> Self {
        Self {
            seed,
            persons: 12,
            entries,
            weeks: 6,
            audiences: 30,
            questions: 300,
        }
    }
}

/// A made-up world.
#[derive(Debug)]
pub struct TeamWorld {
    /// The labels of its persons; their ids are these in capitals.
    pub persons: Vec<String>,
    /// Who reads each audience class, by class number; class 0 is read by all.
    pub audiences: Vec<Vec<usize>>,
    /// What was written, in order.
    pub entries: Vec<WrittenEntry>,
    /// What is asked.
    pub questions: Vec<Question>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    /// By whom.
    pub author: usize,
    /// To whom.
    pub class: u32,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// What.
    pub text: String,
}

/// What makes a question hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionKind {
    /// A piece of the answer word for word, in every second question in quotes.
    Quote,
    /// The ticket and some words of the answer.
    Keyword,
    /// Words, and who wrote it.
    Author,
    /// Words, and when it was written.
    Window,
    /// A question in other words than the answer's; only the ticket or its topic is the same.
    Paraphrase,
    /// The last of several statements about the same thing.
    Latest,
    /// What this reader may not see.
    Unanswerable,
}

impl QuestionKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Quote,
        Self::Keyword,
        Self::Author,
        Self::Window,
        Self::Paraphrase,
        Self::Latest,
        Self::Unanswerable,
    ];
}

/// A question with its answer.
#[derive(Debug, Clone)]
pub struct Question {
    /// What makes it hard.
    pub kind: QuestionKind,
    /// Who asks.
    pub reader: usize,
    /// In which words.
    pub text: String,
    /// Only entries of this person.
    pub author: Option<usize>,
    /// Only entries of this time.
    pub window: Window,
    /// The entries that answer it; of an unanswerable one, those that would.
    pub gold: Vec<u32>,
}

impl TeamWorld {
    /// Makes the world of a plan.
    pub fn new(plan: &Plan) -> Self {
        generate::generate(plan)
    }

    /// A person's id.
    pub fn person_id(&self, person: usize) -> String {
        self.persons
            .get(person)
            .map_or_else(String::new, |label| label.to_uppercase())
    }

    /// The classes that a person may read.
    pub fn readable(&self, person: usize) -> Vec<ClassId> {
        let reads = |readers: &Vec<usize>| readers.contains(&person);
        (0..)
            .zip(&self.audiences)
            .filter(|(_, readers)| reads(readers))
            .map(|(class, _)| ClassId(class))
            .collect()
    }

    /// The bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.entries.iter().map(|said| said.text.len()).sum()
    }

    /// The index of all entries, each in the class that `class` gives for its number and its own
    /// class.
    pub fn index_by(&self, class: impl Fn(u32, u32) -> u32) -> Index {
        let ids: Vec<String> = (0..self.persons.len())
            .map(|person| self.person_id(person))
            .collect();
        let mut index = Index::new();
        let (mut day, mut date) = (i64::MIN, String::new());
        for (number, said) in (0..).zip(&self.entries) {
            if said.time.div_euclid(generate::DAY) != day {
                day = said.time.div_euclid(generate::DAY);
                date = date_of(said.time);
            }
            index.push(&Document {
                class: ClassId(class(number, said.class)),
                author: &ids[said.author],
                label: &self.persons[said.author],
                text: &said.text,
                time: said.time,
                date: &date,
            });
        }
        index
    }

    /// The index of all entries.
    pub fn index(&self) -> Index {
        self.index_by(|_, class| class)
    }
}

/// The words of the date of a time, in UTC.
pub(crate) fn date_of(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    date_words(jiff::tz::TimeZone::UTC.to_datetime(time).date())
}

impl Texts for TeamWorld {
    type Error = Infallible;

    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error> {
        Ok(Cow::Borrowed(
            self.entries
                .get(entry as usize)
                .map_or("", |said| &said.text),
        ))
    }
}
