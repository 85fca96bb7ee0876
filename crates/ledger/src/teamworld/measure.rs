//! Measures how well a search answers the questions of a world.

use std::collections::BTreeMap;

use super::{Question, QuestionKind, TeamWorld};
use crate::search::{Hit, Index, Query, Scope};

/// How many hits of each search count at most.
const DEPTH: usize = 20;

/// The scores of the questions so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// The number of questions.
    pub asked: usize,
    /// The sum of their scores, each between 0 and 1.
    pub sum: f64,
}

impl Tally {
    /// The mean.
    #[expect(clippy::cast_precision_loss, reason = "a count of questions")]
    pub fn mean(&self) -> f64 {
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
pub struct Score {
    /// Its name.
    pub name: &'static str,
    /// How many of the first hits count.
    pub depth: usize,
    /// The mean that search should reach.
    pub goal: f64,
}

impl QuestionKind {
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

    /// The measure: the part of the answers among the first hits. For unanswerable questions it is
    /// the part without a leak.
    pub fn score(self) -> Score {
        let (name, depth, goal) = match self {
            Self::Quote => ("R@1", 1, 0.99),
            Self::Keyword | Self::Author | Self::Window => ("R@5", 5, 0.95),
            Self::Paraphrase => ("R@10", 10, 0.60),
            Self::Latest => ("top 3", 3, 0.90),
            Self::Unanswerable => ("no leak", DEPTH, 1.0),
        };
        Score { name, depth, goal }
    }
}

/// How the questions of a world were answered.
#[derive(Debug, Clone, Default)]
pub struct Quality {
    /// By kind.
    pub kinds: BTreeMap<QuestionKind, Tally>,
    /// By kind and reader.
    pub readers: BTreeMap<(QuestionKind, usize), Tally>,
    /// Hits that their reader may not see, in all questions.
    pub leaks: usize,
}

/// Asks all questions of a world.
pub fn measure(world: &TeamWorld, index: &Index) -> Quality {
    let mut quality = Quality::default();
    for question in &world.questions {
        let hits = answer(world, index, question, DEPTH);
        let score = score(question, &hits);
        quality.kinds.entry(question.kind).or_default().add(score);
        quality
            .readers
            .entry((question.kind, question.reader))
            .or_default()
            .add(score);
        let hidden = |hit: &&Hit| !sees(world, question.reader, hit.entry);
        quality.leaks += hits.iter().filter(hidden).count();
    }
    quality
}

fn sees(world: &TeamWorld, reader: usize, entry: u32) -> bool {
    let class = world
        .entries
        .get(entry as usize)
        .map(|said| said.class as usize);
    class
        .and_then(|class| world.audiences.get(class))
        .is_some_and(|readers| readers.contains(&reader))
}

/// Searches for the answer to a question.
pub(super) fn answer(
    world: &TeamWorld,
    index: &Index,
    question: &Question,
    limit: usize,
) -> Vec<Hit> {
    let classes = world.readable(question.reader);
    let author = question.author.map(|author| world.person_id(author));
    let scope = Scope {
        classes: &classes,
        at: index.len(),
    };
    let query = Query {
        text: &question.text,
        author: author.as_deref(),
        window: question.window,
        limit,
        context_max: limit,
    };
    let Ok(hits) = index.search(&scope, &query, world);
    hits
}

#[expect(clippy::cast_precision_loss, reason = "a handful of hits")]
fn score(question: &Question, hits: &[Hit]) -> f64 {
    let depth = question.kind.score().depth;
    let found = hits
        .iter()
        .take(depth)
        .filter(|hit| question.gold.contains(&hit.entry))
        .count();
    match question.kind {
        QuestionKind::Unanswerable => f64::from(u8::from(found == 0)),
        _ => found as f64 / question.gold.len().clamp(1, depth) as f64,
    }
}
