//! TeamWorld: a generated ledger of a team, with questions whose answers are known, to measure
//! search.
//!
//! The same seed always gives the same world. Persons talk for weeks about tickets, in several
//! conversations at a time, some of them private. They state facts (owner, deadline, port, file,
//! limit, cause), change them, contradict each other, and say much else that shares words with the
//! facts. Each question has a reader and names the entries that answer it among those that the
//! reader may see. Questions of the last kind ask for facts that the reader may not see.
//!
//! It is a tool for tests and for `turnkeep bench ledger`; the server never uses it.

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

/// The parameters of a generated world.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The same seed gives the same world.
    pub seed: u64,
    /// The number of persons, at least 4.
    pub persons: usize,
    /// The number of entries.
    pub entries: usize,
    /// The number of weeks that the entries span.
    pub weeks: u32,
    /// The number of different audiences of private entries.
    pub audiences: usize,
    /// The maximal number of questions of each kind.
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

/// A generated world.
#[derive(Debug)]
pub struct TeamWorld {
    /// The labels of its persons; their ids are these in capitals.
    pub persons: Vec<String>,
    /// The readers of each audience class, by class number. All persons read class 0.
    pub audiences: Vec<Vec<usize>>,
    /// The entries, in order.
    pub entries: Vec<WrittenEntry>,
    /// The questions.
    pub questions: Vec<Question>,
}

/// An entry of the generated world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEntry {
    /// The index of the author.
    pub author: usize,
    /// The number of the audience class.
    pub class: u32,
    /// The time in milliseconds since 1970.
    pub time: i64,
    /// The text.
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
    /// The index of the reader.
    pub reader: usize,
    /// The text of the query.
    pub text: String,
    /// If given, only entries of this person count.
    pub author: Option<usize>,
    /// Only entries of this time count.
    pub window: Window,
    /// The entries that answer it; of an unanswerable question, those that would.
    pub gold: Vec<u32>,
}

impl TeamWorld {
    /// Generates the world of a plan.
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
