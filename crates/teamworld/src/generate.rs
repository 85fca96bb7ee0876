//! Writes the entries of a world: several conversations run at a time, and a new one begins when
//! one ends.

use std::collections::HashMap;

use super::conversation::{Statement, StatementKind, Ticket, phrase_statement, phrase_talk};
use super::phrasing::{Attribute, ROLES};
use super::random::Random;
use super::{Plan, TeamWorld, WrittenEntry, questions};

pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Monday 2 November 2026, 08:00 UTC.
const START_MS: i64 = 1_793_606_400_000;

/// The hours of a day in which people write: ten.
const WORKDAY_MS: i64 = 10 * 60 * 60 * 1000;

/// Conversations that run at a time. Neighbouring entries are then mostly about different tickets,
/// as in a real ledger.
const CONVERSATIONS_AT_A_TIME: usize = 3;

/// The share of private conversations.
const PRIVATE_PERCENT: usize = 30;

/// The share of entries that state a fact.
const STATEMENT_PERCENT: usize = 20;

/// How many entries of the world there are for each ticket.
const ENTRIES_PER_TICKET: usize = 40;

/// Tickets that people talk about at a time. Older ones are not mentioned again.
const TICKETS_IN_WORK: usize = 40;

struct Conversation {
    ticket: usize,
    class: u32,
    speakers: Vec<usize>,
    entries_left: usize,
}

/// A world in the making.
struct WorldGenerator {
    random: Random,
    persons: Vec<String>,
    audiences: Vec<Vec<usize>>,
    tickets: Vec<Ticket>,
    entries: Vec<WrittenEntry>,
    statements: Vec<Statement>,
    /// The name of the ticket in all statements of one fact: a question uses it too.
    known: HashMap<(usize, Attribute), String>,
    time: i64,
    /// Milliseconds between two entries, on average.
    pace: i64,
}

/// Makes the world of a plan.
pub(super) fn generate_world(plan: &Plan) -> TeamWorld {
    let mut generator = WorldGenerator::new(plan);
    let mut running: Vec<Conversation> = (0..CONVERSATIONS_AT_A_TIME)
        .map(|_| generator.begin_conversation())
        .collect();
    while generator.entries.len() < plan.entries {
        let turn = generator.random.below(running.len());
        generator.write_entry(&mut running[turn]);
        if running[turn].entries_left == 0 {
            running[turn] = generator.begin_conversation();
        }
    }
    let WorldGenerator {
        random,
        persons,
        audiences,
        entries,
        statements,
        ..
    } = generator;
    let mut world = TeamWorld {
        persons,
        audiences,
        entries,
        questions: Vec::new(),
    };
    world.questions = questions::make_questions(&world, &statements, plan.questions, random);
    world
}

impl WorldGenerator {
    fn new(plan: &Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let persons: Vec<String> = (0..plan.persons.max(4)).map(person_label).collect();
        let audiences = make_audiences(persons.len(), plan.audiences, &mut random);
        // Five days a week: the entries then span the weeks of the plan, without the weekends.
        let worked = i64::from(plan.weeks.max(1)) * 5 * WORKDAY_MS;
        let pace = (worked / i64::try_from(plan.entries.max(1)).unwrap_or(i64::MAX)).max(1);
        Self {
            random,
            persons,
            audiences,
            tickets: Vec::new(),
            entries: Vec::with_capacity(plan.entries),
            statements: Vec::new(),
            known: HashMap::new(),
            time: START_MS,
            pace,
        }
    }

    /// Begins a conversation about one of the tickets in work.
    fn begin_conversation(&mut self) -> Conversation {
        let wanted = self.entries.len() / ENTRIES_PER_TICKET + TICKETS_IN_WORK;
        while self.tickets.len() < wanted {
            let ticket = Ticket::new(self.tickets.len(), &mut self.random);
            self.tickets.push(ticket);
        }
        let private = self.random.percent(PRIVATE_PERCENT);
        let class = if private {
            self.random.between(1, self.audiences.len())
        } else {
            0
        };
        let readers = &self.audiences[class];
        // The same reader may be drawn twice, so some conversations have two speakers.
        let speakers = (0..3).map(|_| *self.random.pick(readers)).collect();
        Conversation {
            ticket: self.random.between(wanted - TICKETS_IN_WORK, wanted),
            class: u32::try_from(class).unwrap_or(0),
            speakers,
            entries_left: self.random.between(2, 9),
        }
    }

    /// Writes the next entry of a conversation.
    fn write_entry(&mut self, conversation: &mut Conversation) {
        conversation.entries_left -= 1;
        self.pass_time();
        let text = if self.random.percent(STATEMENT_PERCENT) {
            self.state_fact(conversation.ticket)
        } else {
            phrase_talk(
                &self.tickets[conversation.ticket],
                &self.persons,
                &mut self.random,
            )
        };
        let author = *self.random.pick(&conversation.speakers);
        self.entries.push(WrittenEntry {
            author,
            class: conversation.class,
            time: self.time,
            text,
        });
    }

    fn state_fact(&mut self, ticket: usize) -> String {
        let attribute = *self.random.pick(&Attribute::ALL);
        let disputed = self.random.percent(25);
        let (named, kind) = match self.known.get(&(ticket, attribute)) {
            None => (
                self.tickets[ticket].name_in_talk(&mut self.random),
                StatementKind::First,
            ),
            Some(named) if disputed => (named.clone(), StatementKind::Dispute),
            Some(named) => (named.clone(), StatementKind::Update),
        };
        self.known
            .entry((ticket, attribute))
            .or_insert_with(|| named.clone());
        let entry = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let text = phrase_statement(&named, attribute, kind, &self.persons, &mut self.random);
        self.statements.push(Statement {
            entry,
            ticket,
            attribute,
            kind,
            named,
        });
        text
    }

    /// Moves the clock to the time of the next entry: on average by `pace`, and never out of the
    /// working hours.
    fn pass_time(&mut self) {
        let pace = usize::try_from(self.pace).unwrap_or(1);
        self.time += i64::try_from(self.random.below(2 * pace)).unwrap_or(0);
        let since_start = self.time - START_MS;
        if since_start.rem_euclid(DAY_MS) <= WORKDAY_MS {
            return;
        }
        let day = since_start.div_euclid(DAY_MS);
        // The first day is a Monday, so day 4 of a week is a Friday: the next workday is Monday.
        let days_until_work = if day % 7 == 4 { 3 } else { 1 };
        self.time = START_MS + (day + days_until_work) * DAY_MS;
    }
}

fn person_label(person: usize) -> String {
    match ROLES.get(person) {
        Some(role) => (*role).to_owned(),
        None => format!(
            "{}{}",
            ROLES[person % ROLES.len()],
            person / ROLES.len() + 1
        ),
    }
}

/// All persons as class 0, and `count` smaller circles of up to five.
fn make_audiences(persons: usize, count: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut audiences = vec![(0..persons).collect::<Vec<_>>()];
    for _ in 0..count.max(1) {
        let mut circle: Vec<usize> = (0..random.between(2, 6))
            .map(|_| random.below(persons))
            .collect();
        circle.sort_unstable();
        circle.dedup();
        audiences.push(circle);
    }
    audiences
}
