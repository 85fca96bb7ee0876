//! Questions about the statements of a world, with their answers.

use std::collections::HashMap;

use super::conversation::{Statement, StatementKind};
use super::phrasing::{Attribute, phrasing_of};
use super::random::Random;
use super::{Question, QuestionKind, TeamWorld, TimeWindow, WrittenEntry};

/// A question about more statements than this has no clear answer.
const GOLD_MAX: usize = 3;

/// How far a time window reaches before and after the answer: an hour.
const WINDOW_MILLIS: i64 = 60 * 60 * 1000;

/// The material from which questions are made.
struct QuestionMaker<'a> {
    world: &'a TeamWorld,
    statements: &'a [Statement],
    by_fact: HashMap<(usize, Attribute), Vec<usize>>,
    random: Random,
}

/// Makes up to `count` questions of each kind.
pub(super) fn make_questions(
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
    let mut maker = QuestionMaker {
        world,
        statements,
        by_fact,
        random,
    };
    let mut questions = Vec::new();
    for kind in QuestionKind::ALL {
        // Not every statement suits every kind, so many are tried for each question.
        let tries = (0..count * 50).filter_map(|_| maker.make_question(kind));
        questions.extend(tries.take(count));
    }
    questions
}

impl<'a> QuestionMaker<'a> {
    fn make_question(&mut self, kind: QuestionKind) -> Option<Question> {
        if self.statements.is_empty() {
            return None;
        }
        let statement = self.random.pick(self.statements).clone();
        let class = self.entry_of(&statement).class;
        let readers = &self.world.audiences[class as usize];
        let reader = *self.random.pick(readers);
        match kind {
            QuestionKind::Quote => self.ask_quote(&statement, reader),
            QuestionKind::Keyword => self.ask_keyword(&statement, reader),
            QuestionKind::Author => self.ask_by_author(&statement, reader),
            QuestionKind::Window => self.ask_in_window(&statement, reader),
            QuestionKind::Paraphrase => self.ask_paraphrase(&statement, reader),
            QuestionKind::Latest => self.ask_latest(&statement, reader),
            QuestionKind::Unanswerable => self.ask_unanswerable(&statement),
        }
    }

    fn entry_of(&self, statement: &Statement) -> &'a WrittenEntry {
        &self.world.entries[statement.entry as usize]
    }

    /// The statements of the same fact that a reader may see, in order.
    fn visible_statements(&self, statement: &Statement, reader: usize) -> Vec<&Statement> {
        let same = &self.by_fact[&(statement.ticket, statement.attribute)];
        let sees = |other: &&Statement| {
            self.world.audiences[self.entry_of(other).class as usize].contains(&reader)
        };
        same.iter()
            .map(|number| &self.statements[*number])
            .filter(sees)
            .collect()
    }

    /// The entries of these statements, unless they are too many for a clear answer.
    fn few_entries<'s>(statements: impl IntoIterator<Item = &'s Statement>) -> Option<Vec<u32>> {
        let gold: Vec<u32> = statements
            .into_iter()
            .map(|statement| statement.entry)
            .collect();
        (1..=GOLD_MAX).contains(&gold.len()).then_some(gold)
    }

    fn plain_question(kind: QuestionKind, reader: usize, text: String, gold: Vec<u32>) -> Question {
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
    fn ask_quote(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
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
        // The same words may stand in several entries, and each of them is an answer.
        let reads: Vec<u32> = self.world.readable_classes(reader).collect();
        let holds = |said: &WrittenEntry| reads.contains(&said.class) && said.text.contains(&piece);
        let entries = (0..).zip(&self.world.entries);
        let gold: Vec<u32> = entries
            .filter(|(_, said)| holds(said))
            .map(|(number, _)| number)
            .collect();
        Some(Self::plain_question(
            QuestionKind::Quote,
            reader,
            text,
            gold,
        ))
    }

    /// The ticket as the statement names it, and one word that all phrasings of the attribute
    /// share.
    fn keywords_of(statement: &Statement) -> String {
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

    fn ask_keyword(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let gold = Self::few_entries(self.visible_statements(statement, reader))?;
        Some(Self::plain_question(
            QuestionKind::Keyword,
            reader,
            Self::keywords_of(statement),
            gold,
        ))
    }

    fn ask_by_author(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let author = self.entry_of(statement).author;
        let mut same = self.visible_statements(statement, reader);
        same.retain(|other| self.entry_of(other).author == author);
        let question = Self::plain_question(
            QuestionKind::Author,
            reader,
            Self::keywords_of(statement),
            Self::few_entries(same)?,
        );
        Some(Question {
            author: Some(author),
            ..question
        })
    }

    fn ask_in_window(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let time = self.entry_of(statement).time;
        let window = TimeWindow {
            from: Some(time - WINDOW_MILLIS),
            to: Some(time + WINDOW_MILLIS),
        };
        let mut same = self.visible_statements(statement, reader);
        same.retain(|other| window.contains(self.entry_of(other).time));
        let question = Self::plain_question(
            QuestionKind::Window,
            reader,
            Self::keywords_of(statement),
            Self::few_entries(same)?,
        );
        Some(Question { window, ..question })
    }

    fn ask_paraphrase(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let gold = Self::few_entries(self.visible_statements(statement, reader))?;
        let template = *self
            .random
            .pick(phrasing_of(statement.attribute).paraphrase);
        Some(Self::plain_question(
            QuestionKind::Paraphrase,
            reader,
            template.replace("{s}", &statement.named),
            gold,
        ))
    }

    /// The last statement that is no dispute; at least one was made before it.
    fn ask_latest(&mut self, statement: &Statement, reader: usize) -> Option<Question> {
        let visible = self.visible_statements(statement, reader);
        let (last, before) = visible.split_last()?;
        // After a dispute it is open which statement holds.
        if last.kind != StatementKind::Update || before.is_empty() || visible.len() > GOLD_MAX + 1 {
            return None;
        }
        let gold = vec![last.entry];
        let text = phrasing_of(statement.attribute)
            .latest
            .replace("{s}", &statement.named);
        Some(Self::plain_question(
            QuestionKind::Latest,
            reader,
            text,
            gold,
        ))
    }

    fn ask_unanswerable(&mut self, statement: &Statement) -> Option<Question> {
        let readers = &self.world.audiences[self.entry_of(statement).class as usize];
        let others: Vec<usize> = (0..self.world.persons.len())
            .filter(|person| !readers.contains(person))
            .collect();
        if others.is_empty() {
            return None;
        }
        // The right answer to this reader is nothing. The hidden entry is named all the same, so that a
        // leak of just this entry is found.
        let reader = *self.random.pick(&others);
        Some(Self::plain_question(
            QuestionKind::Unanswerable,
            reader,
            Self::keywords_of(statement),
            vec![statement.entry],
        ))
    }
}
