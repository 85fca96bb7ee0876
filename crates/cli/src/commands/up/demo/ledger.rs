//! The demo's ledger: the team of the run as its people, private entries and a calendar.
//!
//! The nodes of the run adopt these people by their names, so the handoffs of the run become entries
//! beside the ones that are written here.

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::{Value, json};
use turnkeep_types::Clock;

use crate::http::{Call, Http};
use crate::ledger::{beat_envelope, world_path};
use crate::local::WallClock;

/// The name of the ledger.
pub(super) const WORLD: &str = "shop";
/// Two people who do not see the same entries.
pub(super) const COMPARED_PERSONS: [&str; 2] = ["pricing", "receipt"];

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MORNING_MS: u64 = 10 * 60 * 60 * 1000;

/// Id, label and what is said of the person.
const PERSONS: [[&str; 3]; 4] = [
    ["lead", "Lead", "Splits the work and completes the run."],
    ["pricing", "Pricing", "Changes price.sh."],
    ["receipt", "Receipt", "Changes receipt.sh."],
    ["reviewer", "Reviewer", "Reads what the others changed."],
];

const ORDER: &str = "From next week on, ten or more pieces of one item cost 10 % less. \
    Customers should find the discount on the receipt.";

/// An entry that a person writes.
struct PersonsEntry {
    author: &'static str,
    /// Who may see it besides the author; everyone if this is empty.
    readers: &'static [&'static str],
    text: &'static str,
    /// A date that the entry brings into the calendar.
    date: Option<Date>,
}

/// A date of the calendar. Its title and place are words of the entry.
struct Date {
    title: &'static str,
    location: Option<&'static str>,
    /// How many days from now.
    days: u64,
}

const ENTRIES: [PersonsEntry; 7] = [
    PersonsEntry {
        author: "lead",
        readers: &[],
        text: "pricing computes the discount, receipt names it, and reviewer reads both.",
        date: None,
    },
    PersonsEntry {
        author: "reviewer",
        readers: &[],
        text: "Review of the discount: tomorrow at ten, in the back office.",
        date: Some(Date {
            title: "Review of the discount",
            location: Some("in the back office"),
            days: 1,
        }),
    },
    PersonsEntry {
        author: "pricing",
        readers: &["reviewer"],
        text: "Please look at 11 plums before the review: 10 % of 935 is no whole number of cents.",
        date: None,
    },
    PersonsEntry {
        author: "reviewer",
        readers: &["pricing"],
        text: "I will. README.md says nothing about half a cent.",
        date: None,
    },
    PersonsEntry {
        author: "receipt",
        readers: &["lead"],
        text: "No program reads old-prices.txt any more. May I delete it?",
        date: None,
    },
    PersonsEntry {
        author: "lead",
        readers: &["receipt"],
        text: "Yes, when the operator agrees.",
        date: None,
    },
    PersonsEntry {
        author: "lead",
        readers: &[],
        text: "First day of the discount: in one week, when the shop opens.",
        date: Some(Date {
            title: "First day of the discount",
            location: None,
            days: 7,
        }),
    },
];

/// Makes the ledger and writes its entries.
pub(super) async fn fill_ledger(http: &mut Http) -> Result<()> {
    let persons = PERSONS.map(|[id, label, identity]| {
        json!({"person_id": id, "display_label": label, "identity": identity})
    });
    let world = json!({"world_id": WORLD, "profile": "WORKSPACE", "persons": persons});
    http.json(Call::post("/v1/worlds", &world)).await?;
    let words = beat_envelope("demo-order", ORDER);
    let path = world_path(WORLD, "/invocations");
    http.json(Call::post(path, &words)).await?;
    for (number, entry) in ENTRIES.iter().enumerate() {
        let request = format!("demo-{number}");
        let body = json!({
            "envelope": beat_envelope(&request, ""),
            "bundle": bundle_of(entry, &request)?,
        });
        let call = Call::post(world_path(WORLD, "/beats"), &body).query("as", entry.author);
        http.json(call).await?;
    }
    Ok(())
}

fn bundle_of(entry: &PersonsEntry, request: &str) -> Result<Value> {
    let visibility = if entry.readers.is_empty() {
        json!({"scope": "PUBLIC"})
    } else {
        json!({"scope": "PRIVATE", "visible_to": entry.readers})
    };
    let mut bundle = json!({
        "request_id": request,
        "proposed_by": {"engine": "turnkeep-demo", "actor": entry.author},
        "entries": [{
            "request_id": request,
            "author": {"author_id": entry.author, "author_class": "PERSON"},
            "visibility": visibility,
            "channel": "PEOPLE",
            "text": entry.text,
        }],
        "wrote": true,
    });
    if let Some(date) = &entry.date {
        bundle["pocket_items"] = json!([calendar_item(date, entry.text)?]);
    }
    Ok(bundle)
}

fn calendar_item(date: &Date, text: &str) -> Result<Value> {
    let location = date.location.map(|words| range_of(words, text));
    Ok(json!({
        "kind": "CALENDAR",
        "entry_index": 0,
        "title": range_of(date.title, text)?,
        "time": morning_after(date.days)?,
        "location": location.transpose()?,
    }))
}

/// Where words stand in a text, in bytes.
fn range_of(words: &str, text: &str) -> Result<[usize; 2]> {
    let start = text
        .find(words)
        .context("an entry lacks the words of its date")?;
    Ok([start, start + words.len()])
}

/// Ten in the morning (UTC), so many days from now.
fn morning_after(days: u64) -> Result<String> {
    let today = WallClock.now().0 / DAY_MS;
    let millis = (today + days) * DAY_MS + MORNING_MS;
    let time = Timestamp::from_millisecond(i64::try_from(millis)?)?;
    Ok(time.to_string())
}
