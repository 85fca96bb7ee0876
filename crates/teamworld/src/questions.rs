//! Questions with their answers, drawn from what was stated.

use std::collections::HashMap;

use super::conversation::{Statement, StatementKind};
use super::phrasing::{Attribute, phrasing};
use super::random::Random;
use super::{Question, QuestionKind, TeamWorld, TimeWindow, WrittenEntry};

/// A question about more statements than this has no clear answer.
const GOLD_MAX: usize = 3;

/// So far around an answer a window reaches: an hour.
const WINDOW_MILLIS: i64 = 60 * 60 * 1000;

/// All that is known when questions are made up.
struct QuestionMaker<'a> {
    world: &'a TeamWorld,
    statements: &'a [Statement],
    by_fact: HashMap<(usize, Attribute), Vec<usize>>,
    random: Random,
}

/// Up to `count` questions of each kind.
pub(super) fn ask(
    world: &TeamWorld,
    statements: &[Statement],
    count: usize,
    random: Random,
) -> Vec<Question> {
    let mut by_fact: HashMap<_, Vec<usize>> = HashMap::new();
    for (number, statement) in statements.iter().enumerate() {
        by_fact
            .entry((statement.ticket, statement.attribute))
            .or_default()
            .push(number);
    }
    let mut asker = QuestionMaker {
        world,
        statements,
        by_fact,
        random,
    };
    let mut questions = Vec::new();
    for kind in QuestionKind::ALL {
        // Not every statement suits every kind.
        let tries = (0..count * 50).filter_map(|_| asker.question(kind));
        questions.extend(tries.take(count));
    }
    questions
}

impl<'a> QuestionMaker<'a> {
    fn question(&mut self, kind: QuestionKind) -> Option<Question> {
        if self.statements.is_empty() {
            return None;
        }
        let statement = self.random.pick(self.statements).clone();
        let class = self.entry_of(&statement).class;
        let readers = &self.world.audiences[class as usize];
        let reader = *self.random.pick(readers);
        match kind {
            QuestionKind::Quote => self.quote(&statement, reader),
            QuestionKind::Keyword => self.keyword(&statement, reader),
            QuestionKind::Author => self.by_author(&statement, reader),
            QuestionKind::Window => self.in_window(&statement, reader),
            QuestionKind::Paraphrase => self.paraphrase(&statement, reader),
            QuestionKind::Latest => self.latest(&statement, reader),
            QuestionKind::Unanswerable => self.unanswerable(&statement),
        }
    }

    fn entry_of(&self, statement: &Statement) -> &'a WrittenEntry {
        &self.world.entries[statement.entry as usize]
    }

    /// The statements of the same fact that a reader may see, in order.
    fn visible(&self, statement: &Statement, reader: usize) -> Vec<&Statement> {
        let same = &self.by_fact[&(statement.ticket, statement.attribute)];
        let sees = |other: &&Statement| {
            self.world.audiences[self.entry_of(other).class as usize].contains(&reader)
        };
        same.iter()
            .map(|number| &self.statements[*number])
            .filter(sees)
            .collect()
    }

    /// The answer's entries, if they are few enough.
    fn gold<'s>(statements: impl IntoIterator<Item = &'s Statement>) -> Option<Vec<u32>> {
        let gold: Vec<u32> = statements
            .into_iter()
            .map(|statement| statement.entry)
            .collect();
        (1..=GOLD_MAX).contains(&gold.len()).then_some(gold)
    }

    fn plain(kind: QuestionKind, reader: usize, text: String, gold: Vec<u32>) -> Question {
        Question {
            kind,
            reader,
            text,
            author: None,
            window: TimeWindow::default(),
            gold,
        }
    }

    /// A piece of the text in quotes, at least five words long; or all of it without.
    fn quote(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let text = &self.entry_of(statement).text;
        let spaces = text.match_indices(' ').map(|(at, _)| at + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(spaces).collect();
        let last = starts.len().checked_sub(5)?;
        let first = starts[self.random.below(last + 1)];
        let (text, piece) = if self.random.percent(50) {
            (format!("\"{}\"", &text[first..]), text[first..].to_owned())
        } else {
            (text.clone(), text.clone())
        };
        let reads: Vec<u32> = self.world.readable(reader).collect();
        let holds = |said: &WrittenEntry| reads.contains(&said.class) && said.text.contains(&piece);
        let entries = (0..).zip(&self.world.entries);
        let gold: Vec<u32> = entries
            .filter(|(_, said)| holds(said))
            .map(|(number, _)| number)
            .collect();
        Some(Self::plain(QuestionKind::Quote, reader, text, gold))
    }

    /// The ticket as the statement names it, and one word that all phrasings of the attribute
    /// share.
    fn words(statement: &Statement) -> String {
        let word = match statement.attribute {
            Attribute::Owner => "owner",
            Attribute::Deadline => "deadline",
            Attribute::Port => "port",
            Attribute::File => "file code",
            Attribute::Limit => "limit",
            Attribute::Cause => "cause",
        };
        format!("{} {word}", statement.named)
    }

    fn keyword(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let gold = Self::gold(self.visible(statement, reader))?;
        Some(Self::plain(
            QuestionKind::Keyword,
            reader,
            Self::words(statement),
            gold,
        ))
    }

    fn by_author(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let author = self.entry_of(statement).author;
        let mut same = self.visible(statement, reader);
        same.retain(|other| self.entry_of(other).author == author);
        let question = Self::plain(
            QuestionKind::Author,
            reader,
            Self::words(statement),
            Self::gold(same)?,
        );
        Some(Question {
            author: Some(author),
            ..question
        })
    }

    fn in_window(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let time = self.entry_of(statement).time;
        let window = TimeWindow {
            from: Some(time - WINDOW_MILLIS),
            to: Some(time + WINDOW_MILLIS),
        };
        let mut same = self.visible(statement, reader);
        same.retain(|other| window.contains(self.entry_of(other).time));
        let question = Self::plain(
            QuestionKind::Window,
            reader,
            Self::words(statement),
            Self::gold(same)?,
        );
        Some(Question { window, ..question })
    }

    fn paraphrase(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let gold = Self::gold(self.visible(statement, reader))?;
        let template = *self.random.pick(phrasing(statement.attribute).paraphrase);
        Some(Self::plain(
            QuestionKind::Paraphrase,
            reader,
            template.replace("{s}", &statement.named),
            gold,
        ))
    }

    /// The last statement that is no dispute; at least one was made before it.
    fn latest(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let visible = self.visible(statement, reader);
        let (last, before) = visible.split_last()?;
        if last.standing != StatementKind::Update
            || before.is_empty()
            || visible.len() > GOLD_MAX + 1
        {
            return None;
        }
        let gold = vec![last.entry];
        let text = phrasing(statement.attribute)
            .latest
            .replace("{s}", &statement.named);
        Some(Self::plain(QuestionKind::Latest, reader, text, gold))
    }

    fn unanswerable(&mut self, statement: &Statement) -> Option<Question> {
        let readers = &self.world.audiences[self.entry_of(statement).class as usize];
        let others: Vec<usize> = (0..self.world.persons.len())
            .filter(|person| !readers.contains(person))
            .collect();
        if others.is_empty() {
            return None;
        }
        let reader = *self.random.pick(&others);
        Some(Self::plain(
            QuestionKind::Unanswerable,
            reader,
            Self::words(statement),
            vec![statement.entry],
        ))
    }
}
