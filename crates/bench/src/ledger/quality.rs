//! Measures how well search answers the questions of a generated world.
//!
//! TeamWorld is plain data. This module builds the search index of a world, asks the world's
//! questions and scores the answers against those that the world knows to be right.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use turnkeep_ledger::search::{
    ClassId, Document, Hit, Index, Query, Scope, Texts, Window, date_words,
};
use turnkeep_teamworld::{Question, QuestionKind, TeamWorld};

/// How many hits of each search count at most.
const DEPTH: usize = 20;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// The scores of the questions so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// The number of questions.
    pub(super) asked: usize,
    /// The sum of their scores, each between 0 and 1.
    pub(super) sum: f64,
}

impl Tally {
    /// The mean.
    #[expect(clippy::cast_precision_loss, reason = "a count of questions")]
    pub(super) fn mean(&self) -> f64 {
        if self.asked == 0 {
            0.0
        } else {
            self.sum / self.asked as f64
        }
    }

    fn add(&mut self, score: f64) {
        self.asked += 1;
        self.sum += score;
    }
}

/// The measure of a kind of question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    /// Its name.
    pub(super) name: &'static str,
    /// How many of the first hits count.
    pub(super) depth: usize,
    /// The mean that search should reach.
    pub(super) goal: f64,
}

/// The measure of a kind: the part of the right answers among the first hits. For unanswerable
/// questions it is the part without a leak.
pub(super) fn score_of(kind: QuestionKind) -> Score {
    let (name, depth, goal) = match kind {
        QuestionKind::Quote => ("R@1", 1, 0.99),
        QuestionKind::Keyword | QuestionKind::Author | QuestionKind::Window => ("R@5", 5, 0.95),
        QuestionKind::Paraphrase => ("R@10", 10, 0.60),
        QuestionKind::Latest => ("top 3", 3, 0.90),
        QuestionKind::Unanswerable => ("no leak", DEPTH, 1.0),
    };
    Score { name, depth, goal }
}

/// How the questions of a world were answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Quality {
    /// By kind.
    pub(super) kinds: BTreeMap<QuestionKind, Tally>,
    /// By kind and reader.
    pub(super) readers: BTreeMap<(QuestionKind, usize), Tally>,
    /// Hits that their reader may not see, in all questions.
    pub(super) leaks: usize,
}

/// Asks all questions of a world.
pub(super) fn measure_quality(world: &TeamWorld, index: &Index) -> Quality {
    let mut quality = Quality::default();
    for question in &world.questions {
        let hits = search_answer(world, index, question, DEPTH);
        let score = score_hits(question, &hits);
        let by_reader = (question.kind, question.reader);
        quality.kinds.entry(question.kind).or_default().add(score);
        quality.readers.entry(by_reader).or_default().add(score);
        let hidden = |hit: &&Hit| !may_see(world, question.reader, hit.entry);
        quality.leaks += hits.iter().filter(hidden).count();
    }
    quality
}

/// Whether the world itself allows a reader to see an entry. Search must agree.
fn may_see(world: &TeamWorld, reader: usize, entry: u32) -> bool {
    let said = world.entries.get(entry as usize);
    let readers = said.and_then(|said| world.audiences.get(said.class as usize));
    readers.is_some_and(|readers| readers.contains(&reader))
}

/// Searches for the answer to a question.
fn search_answer(world: &TeamWorld, index: &Index, question: &Question, limit: usize) -> Vec<Hit> {
    let classes = readable_classes(world, question.reader);
    let author = question.author.map(|author| world.person_id(author));
    let scope = Scope {
        classes: &classes,
        at: index.len(),
    };
    let query = Query {
        text: &question.text,
        author: author.as_deref(),
        window: window_of(question),
        limit,
        context_max: limit,
    };
    let Ok(hits) = index.search(&scope, &query, &WorldTexts(world));
    hits
}

#[expect(clippy::cast_precision_loss, reason = "a handful of hits")]
fn score_hits(question: &Question, hits: &[Hit]) -> f64 {
    let depth = score_of(question.kind).depth;
    let counted = hits.iter().take(depth);
    let found = counted
        .filter(|hit| question.gold.contains(&hit.entry))
        .count();
    match question.kind {
        QuestionKind::Unanswerable => f64::from(u8::from(found == 0)),
        // A question with more right answers than hits count can still score 1.
        _ => found as f64 / question.gold.len().clamp(1, depth) as f64,
    }
}

/// The classes that a person may read, as search takes them.
pub(super) fn readable_classes(world: &TeamWorld, person: usize) -> Vec<ClassId> {
    world.readable_classes(person).map(ClassId).collect()
}

/// The time window of a question, as search takes it.
pub(super) fn window_of(question: &Question) -> Window {
    Window {
        from: question.window.from,
        to: question.window.to,
    }
}

/// The index of all entries of a world.
pub(super) fn index_of(world: &TeamWorld) -> Index {
    index_by(world, |_, class| class)
}

/// The index of all entries, each in the class that `class` returns for the entry's number and its
/// own class.
pub(super) fn index_by(world: &TeamWorld, class: impl Fn(u32, u32) -> u32) -> Index {
    let persons = 0..world.persons.len();
    let ids: Vec<String> = persons.map(|person| world.person_id(person)).collect();
    let mut index = Index::new();
    // Entries come in order of time, so the words of a date are made once a day, not a million
    // times.
    let (mut known_day, mut date) = (i64::MIN, String::new());
    for (number, said) in (0..).zip(&world.entries) {
        let day = said.time.div_euclid(DAY_MILLIS);
        if day != known_day {
            (known_day, date) = (day, date_of(said.time));
        }
        index.push(&Document {
            class: ClassId(class(number, said.class)),
            author: &ids[said.author],
            label: &world.persons[said.author],
            text: &said.text,
            time: said.time,
            date: &date,
        });
    }
    index
}

/// The words of the date of a time, in UTC.
fn date_of(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    date_words(jiff::tz::TimeZone::UTC.to_datetime(time).date())
}

/// The texts of a world, from which search cuts its excerpts.
pub(super) struct WorldTexts<'a>(pub(super) &'a TeamWorld);

impl Texts for WorldTexts<'_> {
    type Error = Infallible;

    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error> {
        let said = self.0.entries.get(entry as usize);
        Ok(Cow::Borrowed(said.map_or("", |said| &said.text)))
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_teamworld::Plan;

    use super::*;

    #[test]
    fn search_reaches_its_goals() {
        for seed in [1, 2, 3] {
            let world = TeamWorld::new(&Plan::new(seed, 20_000));
            let quality = measure_quality(&world, &index_of(&world));
            let mut missed = Vec::new();
            for (kind, tally) in &quality.kinds {
                let score = score_of(*kind);
                println!(
                    "seed {seed}: {} {} {:.3}",
                    kind.name(),
                    score.name,
                    tally.mean()
                );
                if tally.mean() < score.goal {
                    missed.push(format!(
                        "{} {:.3} < {}",
                        kind.name(),
                        tally.mean(),
                        score.goal
                    ));
                }
            }
            assert_eq!(quality.leaks, 0, "seed {seed}");
            assert!(missed.is_empty(), "seed {seed}: {missed:?}");
        }
    }
}
