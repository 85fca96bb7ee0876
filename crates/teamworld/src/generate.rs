//! The world's course: conversations that begin, run beside each other and end, until all is said.

use std::collections::HashMap;

use super::conversation::{Statement, StatementKind, Ticket, stated, talk};
use super::phrasing::{Attribute, ROLES};
use super::random::Random;
use super::{Plan, TeamWorld, WrittenEntry, questions};

pub(super) const DAY: i64 = 24 * 60 * 60 * 1000;

/// Monday 2 November 2026, 08:00 UTC.
const START: i64 = 1_793_606_400_000;

/// People work so long a day.
const WORKDAY: i64 = 10 * 60 * 60 * 1000;

/// Conversations that run at a time.
const PARALLEL: usize = 3;

/// Of a hundred conversations so many are private.
const PRIVATE_PERCENT: usize = 30;

/// Of a hundred entries so many state a fact.
const STATED_PERCENT: usize = 20;

/// About so many entries are written while a ticket is worked on, for each ticket.
const ENTRIES_PER_TICKET: usize = 40;

/// Tickets that are worked on at a time.
const OPEN_TICKETS: usize = 40;

struct Conversation {
    ticket: usize,
    class: u32,
    speakers: Vec<usize>,
    left: usize,
}

/// A world in the making.
struct WorldGenerator {
    random: Random,
    persons: Vec<String>,
    audiences: Vec<Vec<usize>>,
    tickets: Vec<Ticket>,
    entries: Vec<WrittenEntry>,
    statements: Vec<Statement>,
    /// How the ticket is named whenever this is stated.
    known: HashMap<(usize, Attribute), String>,
    time: i64,
    /// Milliseconds between two entries, on average.
    pace: i64,
}

/// Makes the world of a plan.
pub(super) fn generate(plan: &Plan) -> TeamWorld {
    let mut course = WorldGenerator::new(plan);
    let mut running: Vec<Conversation> = (0..PARALLEL).map(|_| course.begin()).collect();
    while course.entries.len() < plan.entries {
        let turn = course.random.below(running.len());
        course.write_entry(&mut running[turn]);
        if running[turn].left == 0 {
            running[turn] = course.begin();
        }
    }
    let WorldGenerator {
        random,
        persons,
        audiences,
        entries,
        statements,
        ..
    } = course;
    let mut world = TeamWorld {
        persons,
        audiences,
        entries,
        questions: Vec::new(),
    };
    world.questions = questions::ask(&world, &statements, plan.questions, random);
    world
}

impl WorldGenerator {
    fn new(plan: &Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let persons: Vec<String> = (0..plan.persons.max(4)).map(label).collect();
        let audiences = audiences(persons.len(), plan.audiences, &mut random);
        let worked = i64::from(plan.weeks.max(1)) * 5 * WORKDAY;
        let pace = (worked / i64::try_from(plan.entries.max(1)).unwrap_or(i64::MAX)).max(1);
        Self {
            random,
            persons,
            audiences,
            tickets: Vec::new(),
            entries: Vec::with_capacity(plan.entries),
            statements: Vec::new(),
            known: HashMap::new(),
            time: START,
            pace,
        }
    }

    /// A new conversation about one of the tickets in work.
    fn begin(&mut self) -> Conversation {
        let wanted = self.entries.len() / ENTRIES_PER_TICKET + OPEN_TICKETS;
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
        let speakers = (0..3).map(|_| *self.random.pick(readers)).collect();
        Conversation {
            ticket: self.random.between(wanted - OPEN_TICKETS, wanted),
            class: u32::try_from(class).unwrap_or(0),
            speakers,
            left: self.random.between(2, 9),
        }
    }

    /// The next entry of a conversation.
    fn write_entry(&mut self, conversation: &mut Conversation) {
        conversation.left -= 1;
        self.pass_time();
        let text = if self.random.percent(STATED_PERCENT) {
            self.state_fact(conversation.ticket)
        } else {
            talk(
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
        let (named, standing) = match self.known.get(&(ticket, attribute)) {
            None => (
                self.tickets[ticket].named(&mut self.random),
                StatementKind::First,
            ),
            Some(named) if disputed => (named.clone(), StatementKind::Dispute),
            Some(named) => (named.clone(), StatementKind::Update),
        };
        self.known
            .entry((ticket, attribute))
            .or_insert_with(|| named.clone());
        let entry = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let text = stated(&named, attribute, standing, &self.persons, &mut self.random);
        self.statements.push(Statement {
            entry,
            ticket,
            attribute,
            standing,
            named,
        });
        text
    }

    fn pass_time(&mut self) {
        let pace = usize::try_from(self.pace).unwrap_or(1);
        self.time += i64::try_from(self.random.below(2 * pace)).unwrap_or(0);
        if (self.time - START).rem_euclid(DAY) > WORKDAY {
            let days = if (self.time - START).div_euclid(DAY) % 7 == 4 {
                3
            } else {
                1
            };
            self.time = START + ((self.time - START).div_euclid(DAY) + days) * DAY;
        }
    }
}

fn label(person: usize) -> String {
    match ROLES.get(person) {
        Some(role) => (*role).to_owned(),
        None => format!(
            "{}{}",
            ROLES[person % ROLES.len()],
            person / ROLES.len() + 1
        ),
    }
}

/// Everybody, and so many smaller circles of two to five.
fn audiences(persons: usize, count: usize, random: &mut Random) -> Vec<Vec<usize>> {
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
