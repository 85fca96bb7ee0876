//! Who says what: tickets, what was stated about them, and the talk of a conversation.

use super::phrasing::{
    Attribute, CHATTER, DISTRACTIONS, FAULTS, NOUNS, PROJECTS, QUALITIES, phrasing,
};
use super::random::Random;

/// A ticket that people talk about.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    /// Such as `PAY-142`.
    pub(super) id: String,
    /// Such as `nightly refund rounding`.
    pub(super) topic: String,
}

impl Ticket {
    /// The ticket with this number.
    pub(super) fn new(number: usize, random: &mut Random) -> Self {
        let id = format!("{}-{}", random.word(PROJECTS), 100 + number);
        Self {
            id,
            topic: format!(
                "{} {} {}",
                random.word(QUALITIES),
                random.word(NOUNS),
                random.word(NOUNS)
            ),
        }
    }

    /// The ticket as somebody would name it: mostly by its id.
    pub(super) fn named(&self, random: &mut Random) -> String {
        match random.below(4) {
            0 => format!("{} ({})", self.id, self.topic),
            1 => format!("the {}", self.topic),
            _ => self.id.clone(),
        }
    }
}

/// What a statement is to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    First,
    Update,
    Dispute,
}

/// A fact that somebody stated.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) entry: u32,
    pub(super) ticket: usize,
    pub(super) attribute: Attribute,
    pub(super) standing: StatementKind,
    /// The ticket as it is named there.
    pub(super) named: String,
}

/// Fills the gaps of a template but `{s}` and `{v}`.
pub(super) fn fill(template: &str, persons: &[String], random: &mut Random) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let gap = &rest[at..(at + 3).min(rest.len())];
        match gap {
            "{n}" => out.push_str(&random.between(2, 4000).to_string()),
            "{w}" => out.push_str(random.word(NOUNS)),
            "{f}" => out.push_str(&file(random)),
            "{h}" => out.push_str(&commit(random)),
            "{p}" => out.push_str(random.word(persons)),
            _ => out.push_str(gap),
        }
        rest = &rest[at + gap.len()..];
    }
    out + rest
}

fn commit(random: &mut Random) -> String {
    format!("{:07x}", random.below(1 << 28))
}

fn file(random: &mut Random) -> String {
    let ending = random.word(&["rs", "ts", "go", "md"]);
    format!(
        "src/{}/{}_{}.{ending}",
        random.word(NOUNS),
        random.word(NOUNS),
        random.word(NOUNS)
    )
}

/// A value for an attribute.
fn value(attribute: Attribute, persons: &[String], random: &mut Random) -> String {
    match attribute {
        Attribute::Owner => random.word(persons).to_owned(),
        Attribute::Deadline => format!(
            "2027-{:02}-{:02}",
            random.between(1, 7),
            random.between(1, 29)
        ),
        Attribute::Port => random.between(1024, 65_536).to_string(),
        Attribute::File => file(random),
        Attribute::Limit => {
            format!(
                "{} {}",
                random.between(2, 5000),
                random.word(&["requests", "seconds", "megabytes", "rows"])
            )
        }
        Attribute::Cause => format!(
            "{} {} {}",
            random.word(FAULTS),
            random.word(NOUNS),
            random.word(NOUNS)
        ),
    }
}

/// A statement about a ticket, in words.
pub(super) fn stated(
    named: &str,
    attribute: Attribute,
    standing: StatementKind,
    persons: &[String],
    random: &mut Random,
) -> String {
    let phrasing = phrasing(attribute);
    let template = random.word(match standing {
        StatementKind::First => phrasing.stated,
        StatementKind::Update => phrasing.updated,
        StatementKind::Dispute => phrasing.disputed,
    });
    let value = value(attribute, persons, random);
    let mut text = template.replace("{s}", named).replace("{v}", &value);
    if random.percent(25) {
        let more = fill(random.word(CHATTER), persons, random);
        text = if random.percent(50) {
            format!("{text} {more}")
        } else {
            format!("{more} {text}")
        };
    }
    text
}

/// Talk: in two of five cases about the ticket.
pub(super) fn talk(ticket: &Ticket, persons: &[String], random: &mut Random) -> String {
    let text = if random.percent(40) {
        fill(random.word(DISTRACTIONS), persons, random).replace("{s}", &ticket.named(random))
    } else {
        fill(random.word(CHATTER), persons, random)
    };
    if random.percent(30) {
        format!("{text} {}", fill(random.word(CHATTER), persons, random))
    } else {
        text
    }
}
