//! TeamWorld: a generated ledger of a team, with questions whose answers are known, to measure
//! search.
//!
//! The same seed always gives the same world. Persons talk for weeks about tickets, in several
//! conversations at a time, some of them private. They state facts (owner, deadline, port, file,
//! limit, cause), change them, contradict each other, and say much else that shares words with the
//! facts. Each question has a reader and names the entries that answer it among those that the
//! reader may see. Questions of the last kind ask for facts that the reader may not see.
//!
//! It is a tool for `turnkeep bench ledger` and for the tests of search; the server never uses it.
//! The crate depends on no other crate, so the ledger's own tests can use it too.

mod conversation;
mod generate;
mod phrasing;
mod questions;
mod random;

#[cfg(test)]
mod tests;

pub use random::Random;

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
    /// All kinds, in the order of the reports.
    pub const ALL: [Self; 7] = [
        Self::Quote,
        Self::Keyword,
        Self::Author,
        Self::Window,
        Self::Paraphrase,
        Self::Latest,
        Self::Unanswerable,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quote => "exact quote",
            Self::Keyword => "keyword",
            Self::Author => "author-filtered",
            Self::Window => "time-window",
            Self::Paraphrase => "paraphrase",
            Self::Latest => "latest of updates",
            Self::Unanswerable => "unanswerable",
        }
    }
}

/// A stretch of time in milliseconds since 1970; an end that is missing is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first millisecond.
    pub from: Option<i64>,
    /// The first millisecond after it.
    pub to: Option<i64>,
}

impl TimeWindow {
    /// Whether a time lies in the stretch.
    pub fn contains(self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }
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
    pub window: TimeWindow,
    /// The entries that answer it; of an unanswerable question, those that would.
    pub gold: Vec<u32>,
}

impl TeamWorld {
    /// Generates the world of a plan.
    pub fn new(plan: &Plan) -> Self {
        generate::generate_world(plan)
    }

    /// A person's id.
    pub fn person_id(&self, person: usize) -> String {
        self.persons
            .get(person)
            .map_or_else(String::new, |label| label.to_uppercase())
    }

    /// The numbers of the classes that a person may read.
    pub fn readable_classes(&self, person: usize) -> impl Iterator<Item = u32> {
        let classes = (0..).zip(&self.audiences);
        classes
            .filter(move |(_, readers)| readers.contains(&person))
            .map(|(class, _)| class)
    }

    /// The bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.entries.iter().map(|said| said.text.len()).sum()
    }
}
