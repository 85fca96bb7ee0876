//! The texts of entries: statements about tickets, and the talk around them.

use super::phrasing::{
    Attribute, CHATTER, DISTRACTIONS, FAULTS, NOUNS, PROJECTS, QUALITIES, phrasing_of,
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
        let id = format!("{}-{}", random.pick_word(PROJECTS), 100 + number);
        Self {
            id,
            topic: format!(
                "{} {} {}",
                random.pick_word(QUALITIES),
                random.pick_word(NOUNS),
                random.pick_word(NOUNS)
            ),
        }
    }

    /// A name for the ticket, mostly its id. Some names share no word with others, so a search for
    /// one of them must not need the id.
    pub(super) fn name_in_talk(&self, random: &mut Random) -> String {
        match random.below(4) {
            0 => format!("{} ({})", self.id, self.topic),
            1 => format!("the {}", self.topic),
            _ => self.id.clone(),
        }
    }
}

/// How a statement relates to the earlier statements of the same fact.
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
    pub(super) kind: StatementKind,
    /// The ticket as it is named there.
    pub(super) named: String,
}

/// Fills the gaps of a template, except `{s}` and `{v}`, which the caller fills.
pub(super) fn fill_template(template: &str, persons: &[String], random: &mut Random) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let gap = &rest[at..(at + 3).min(rest.len())];
        match gap {
            "{n}" => out.push_str(&random.between(2, 4000).to_string()),
            "{w}" => out.push_str(random.pick_word(NOUNS)),
            "{f}" => out.push_str(&file_name(random)),
            "{h}" => out.push_str(&commit_hash(random)),
            "{p}" => out.push_str(random.pick_word(persons)),
            _ => out.push_str(gap),
        }
        rest = &rest[at + gap.len()..];
    }
    out + rest
}

fn commit_hash(random: &mut Random) -> String {
    format!("{:07x}", random.below(1 << 28))
}

fn file_name(random: &mut Random) -> String {
    let ending = random.pick_word(&["rs", "ts", "go", "md"]);
    format!(
        "src/{}/{}_{}.{ending}",
        random.pick_word(NOUNS),
        random.pick_word(NOUNS),
        random.pick_word(NOUNS)
    )
}

/// A value for an attribute.
fn make_value(attribute: Attribute, persons: &[String], random: &mut Random) -> String {
    match attribute {
        Attribute::Owner => random.pick_word(persons).to_owned(),
        Attribute::Deadline => format!(
            "2027-{:02}-{:02}",
            random.between(1, 7),
            random.between(1, 29)
        ),
        Attribute::Port => random.between(1024, 65_536).to_string(),
        Attribute::File => file_name(random),
        Attribute::Limit => {
            format!(
                "{} {}",
                random.between(2, 5000),
                random.pick_word(&["requests", "seconds", "megabytes", "rows"])
            )
        }
        Attribute::Cause => format!(
            "{} {} {}",
            random.pick_word(FAULTS),
            random.pick_word(NOUNS),
            random.pick_word(NOUNS)
        ),
    }
}

/// Writes a statement about a ticket.
pub(super) fn phrase_statement(
    named: &str,
    attribute: Attribute,
    kind: StatementKind,
    persons: &[String],
    random: &mut Random,
) -> String {
    let phrasing = phrasing_of(attribute);
    let template = random.pick_word(match kind {
        StatementKind::First => phrasing.stated,
        StatementKind::Update => phrasing.updated,
        StatementKind::Dispute => phrasing.disputed,
    });
    let value = make_value(attribute, persons, random);
    let mut text = template.replace("{s}", named).replace("{v}", &value);
    // A fact in the middle of other words is harder to find than a sentence of its own.
    if random.percent(25) {
        let more = fill_template(random.pick_word(CHATTER), persons, random);
        text = if random.percent(50) {
            format!("{text} {more}")
        } else {
            format!("{more} {text}")
        };
    }
    text
}

/// Writes an entry that states no fact. Two of five are about the ticket and share its words with
/// the statements, so that a search by the ticket alone finds too much.
pub(super) fn phrase_talk(ticket: &Ticket, persons: &[String], random: &mut Random) -> String {
    let text = if random.percent(40) {
        fill_template(random.pick_word(DISTRACTIONS), persons, random)
            .replace("{s}", &ticket.name_in_talk(random))
    } else {
        fill_template(random.pick_word(CHATTER), persons, random)
    };
    if random.percent(30) {
        format!(
            "{text} {}",
            fill_template(random.pick_word(CHATTER), persons, random)
        )
    } else {
        text
    }
}
