//! Random requests: what somebody means to do, and the JSON that says so.

use serde_json::{Value, json};
use turnkeep_ledger::ids::Ids;
use turnkeep_ledger::time::WorldTime;
use turnkeep_types::Timestamp;

use super::reference::Reference;

pub(super) const OPERATOR: &str = "GEORGE";
const PEOPLE: [&str; 3] = ["PLANNER", "CODER", "REVIEWER"];
const WORDS: [&str; 8] = [
    "refund",
    "fix",
    "\r\n",
    "é😀",
    "later that day",
    "\"quoted\"",
    "mood: 7",
    " ",
];

/// Chance with a seed.
pub(super) struct Dice(Ids);

impl Dice {
    pub(super) fn of(seed: u64) -> Self {
        Self(Ids::from_seed(blake3::hash(&seed.to_le_bytes()).as_bytes()))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.draw() % end as u128).unwrap()
    }

    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn place(&mut self, up_to: u64) -> u64 {
        self.below(usize::try_from(up_to).unwrap() + 1) as u64
    }

    fn text(&mut self) -> String {
        let words: Vec<_> = (0..=self.below(5)).map(|_| self.one(&WORDS)).collect();
        format!("{}.{:04x}", words.join(" "), self.below(1 << 16))
    }
}

/// A line that somebody means to write; none as readers is everyone.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) author: &'static str,
    pub(super) readers: Option<Vec<&'static str>>,
    /// A given time, and how it is written.
    pub(super) time: Option<(i64, String)>,
    pub(super) text: String,
}

/// Something planned or told in a line.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) calendar: bool,
    pub(super) line: usize,
    pub(super) title: Option<(usize, usize)>,
    pub(super) time: Option<i64>,
    /// The number of an earlier item. An unknown number stands for an item that does not exist.
    pub(super) supersedes: Option<usize>,
}

/// What is wrong with a bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flaw {
    pub(super) code: &'static str,
    spoil: fn(&mut Value, i64),
}

/// A bundle that somebody means to bring.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub(super) lines: Vec<Line>,
    pub(super) items: Vec<Item>,
    pub(super) flaw: Option<Flaw>,
}

/// A request that somebody means to make.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) who: &'static str,
    pub(super) words: String,
    pub(super) declared: Option<i64>,
    pub(super) zone: Option<&'static str>,
    pub(super) pause: Option<bool>,
    /// None is an invocation.
    pub(super) offer: Option<Offer>,
    /// The place from which the stream is wanted.
    pub(super) from: Option<u64>,
    /// The place behind which nothing may have come.
    pub(super) expected: Option<u64>,
}

fn last(bundle: &mut Value) -> &mut Value {
    bundle["entries"]
        .as_array_mut()
        .unwrap()
        .last_mut()
        .unwrap()
}

/// Each spoils a bundle of at least one line in one way; the number is a time that is out of reach.
const FLAWS: &[Flaw] = &[
    Flaw {
        code: "REQUEST_MISMATCH",
        spoil: |bundle, _| bundle["request_id"] = "other".into(),
    },
    Flaw {
        code: "WROTE_MISMATCH",
        spoil: |bundle, _| bundle["wrote"] = false.into(),
    },
    Flaw {
        code: "ID_PRESET",
        spoil: |bundle, _| last(bundle)["entry_id"] = "x".into(),
    },
    Flaw {
        code: "UNKNOWN_FIELD",
        spoil: |bundle, _| last(bundle)["mood"] = 7.into(),
    },
    Flaw {
        code: "AUTHOR_UNKNOWN",
        spoil: |bundle, _| last(bundle)["author"]["author_id"] = "NOBODY".into(),
    },
    Flaw {
        code: "AUTHOR_FORBIDDEN",
        spoil: |bundle, _| last(bundle)["author"]["author_id"] = OPERATOR.into(),
    },
    Flaw {
        code: "CHANNEL_INVALID",
        spoil: |bundle, _| last(bundle)["channel"] = "XP_GAIN".into(),
    },
    Flaw {
        code: "VISIBILITY_INVALID",
        spoil: |bundle, _| {
            last(bundle)["visibility"] = json!({ "scope": "PRIVATE", "visible_to": [] });
        },
    },
    Flaw {
        code: "TIME_FORMAT",
        spoil: |bundle, _| last(bundle)["created_at_world"] = 7.into(),
    },
    Flaw {
        code: "TIME_INCONSISTENT",
        spoil: |bundle, time| last(bundle)["created_at_world"] = written(time, false).into(),
    },
    Flaw {
        code: "TEXT_EMPTY",
        spoil: |bundle, _| last(bundle)["text"] = " \n\u{2003}".into(),
    },
    Flaw {
        code: "POCKET_INVALID",
        spoil: |bundle, _| {
            bundle["pocket_items"] = json!([{ "kind": "MESSAGE", "entry_index": 64 }]);
        },
    },
];

/// A time as a caller writes it, with one offset or the other.
fn written(time: i64, east: bool) -> String {
    let shift = if east { 2 * 3_600_000 } else { 0 };
    let stamp = Timestamp(u64::try_from(time + shift).unwrap());
    let text = WorldTime::from_timestamp(stamp).as_str().to_owned();
    if east {
        text.replace('Z', "+02:00")
    } else {
        text
    }
}

impl Plan {
    /// Words to everyone, or a bundle of one or more lines, that no other request can stand in the
    /// way of.
    pub(super) fn plain(dice: &mut Dice, id: String) -> Self {
        let who = dice.one(&[OPERATOR, "PLANNER", "CODER", "REVIEWER"]);
        let lines: Vec<_> = (0..=dice.below(3)).map(|_| line(dice, who)).collect();
        let offer = Some(Offer {
            lines,
            items: Vec::new(),
            flaw: None,
        });
        Self {
            id,
            who,
            words: String::new(),
            declared: None,
            zone: None,
            pause: None,
            offer,
            from: None,
            expected: None,
        }
    }

    /// Anything that may be asked of a world in this state.
    pub(super) fn any(dice: &mut Dice, id: String, world: &Reference, wall: i64) -> Self {
        let mut plan = Self::plain(dice, id);
        let seen = world.count(plan.who);
        if plan.who == OPERATOR {
            plan.speak(dice, world);
        }
        if plan.who == OPERATOR && dice.once_in(2) {
            plan.offer = None;
        } else {
            let commit = world.commit(wall, plan.declared);
            plan.elaborate(dice, world, commit);
            plan.expected = dice.once_in(4).then(|| seen - dice.place(1).min(seen));
        }
        // Which of two faults comes first is not part of the rules.
        if plan.declared.is_some_and(|time| time < world.time) {
            plan.expected = None;
        }
        plan.from = dice.once_in(3).then(|| dice.place(seen));
        plan
    }

    fn speak(&mut self, dice: &mut Dice, world: &Reference) {
        if !dice.once_in(3) {
            self.words = dice.text();
        }
        if dice.once_in(5) {
            let seconds = dice.one(&[-1, 0, 1, 90, 10_800]);
            self.declared = Some(world.time + 1000 * seconds);
        }
        self.zone = dice
            .once_in(8)
            .then(|| dice.one(&["Europe/Berlin", "Asia/Tokyo", "UTC"]));
        self.pause = dice.once_in(6).then(|| !world.paused || dice.once_in(4));
    }

    /// Times, items, silence or a flaw.
    fn elaborate(&mut self, dice: &mut Dice, world: &Reference, commit: i64) {
        let Some(offer) = self.offer.as_mut() else {
            return;
        };
        match dice.below(6) {
            0 => offer.lines.clear(),
            1 => offer.flaw = Some(dice.one(FLAWS)),
            _ => {
                if !world.paused && dice.once_in(3) {
                    give_times(dice, &mut offer.lines, commit);
                }
                if dice.once_in(2) {
                    offer.items = items(dice, &offer.lines, world);
                }
            }
        }
    }

    /// The envelope, with the cursor of the place from which the stream is wanted.
    pub(super) fn envelope(&self, east: bool, cursor: Option<String>) -> Value {
        let mut envelope = super::envelope(&self.id, &self.words);
        if self.declared.is_some() || self.zone.is_some() || self.pause.is_some() {
            let time = self.declared.map(|time| written(time, east));
            envelope["declared_overrides"] = json!({
                "time": { "declared_world_time": time, "timezone": self.zone }, "pause_time": self.pause,
            });
        }
        if let Some(cursor) = cursor {
            envelope["ui"] = json!({ "stream_cursor": cursor });
        }
        envelope
    }

    /// The bundle, if one is brought. Items are named by `ids`; a time out of reach is `beyond`.
    pub(super) fn bundle(&self, ids: &[String], beyond: i64) -> Option<Value> {
        let offer = self.offer.as_ref()?;
        let entries: Vec<_> = offer
            .lines
            .iter()
            .map(|line| entry(&self.id, line))
            .collect();
        let mut bundle = json!({
            "bundle_id": null, "request_id": self.id, "proposed_by": { "engine": "test", "actor": self.who },
            "wrote": !entries.is_empty(), "entries": entries,
        });
        if !offer.items.is_empty() {
            bundle["pocket_items"] = offer
                .items
                .iter()
                .map(|item| item_json(item, ids))
                .collect();
        }
        if let Some(flaw) = &offer.flaw {
            (flaw.spoil)(&mut bundle, beyond);
        }
        Some(bundle)
    }
}

fn line(dice: &mut Dice, who: &'static str) -> Line {
    let author = if who == OPERATOR {
        dice.one(&["PLANNER", "CODER", "REVIEWER", "WORLD"])
    } else {
        who
    };
    let mut readers: Vec<_> = (0..=dice.below(2))
        .map(|_| dice.one(&[PEOPLE[0], PEOPLE[1], OPERATOR]))
        .collect();
    readers.sort_unstable();
    readers.dedup();
    Line {
        author,
        readers: dice.once_in(2).then_some(readers),
        time: None,
        text: dice.text(),
    }
}

/// The last lines get times that never go back; the very last is public, so that nothing hidden
/// leads.
fn give_times(dice: &mut Dice, lines: &mut [Line], commit: i64) {
    let mut time = commit;
    let from = dice.below(lines.len());
    for line in &mut lines[from..] {
        time += 1000 * i64::try_from(dice.below(20)).unwrap();
        line.time = Some((time, written(time, dice.once_in(2))));
    }
    if let Some(line) = lines.last_mut() {
        line.readers = None;
    }
}

/// One thing of each line at most, in the order of the lines.
fn items(dice: &mut Dice, lines: &[Line], world: &Reference) -> Vec<Item> {
    let mut items = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if dice.once_in(3) {
            continue;
        }
        let calendar = dice.once_in(2);
        // Four digits in hexadecimal end every text.
        let title = (line.text.len() - 4, line.text.len());
        // Mostly one that there is, hidden or not.
        let supersedes = dice
            .once_in(2)
            .then(|| dice.below(world.items() + 1 - usize::from(world.items() > 0)));
        let cancels = supersedes.is_some() && dice.once_in(3);
        let titled = if calendar { !cancels } else { dice.once_in(2) };
        let time = (calendar && dice.once_in(2)).then_some(world.time + 3_600_000);
        items.push(Item {
            calendar,
            line: number,
            title: titled.then_some(title),
            time,
            supersedes,
        });
    }
    items
}

fn entry(id: &str, line: &Line) -> Value {
    let (class, channel) = if line.author == "WORLD" {
        ("WORLD", "VOICE")
    } else {
        ("PERSON", "PEOPLE")
    };
    let scope = if line.readers.is_some() {
        "PRIVATE"
    } else {
        "PUBLIC"
    };
    let mut entry = json!({
        "request_id": id, "author": { "author_id": line.author, "author_class": class },
        "visibility": { "scope": scope, "visible_to": line.readers.as_deref().unwrap_or_default() },
        "channel": channel, "text": line.text,
    });
    if let Some((_, time)) = &line.time {
        entry["created_at_world"] = time.as_str().into();
    }
    entry
}

fn item_json(item: &Item, ids: &[String]) -> Value {
    let unknown = || format!("i_{}", "0".repeat(26));
    json!({
        "kind": if item.calendar { "CALENDAR" } else { "MESSAGE" },
        "entry_index": item.line,
        "title": item.title.map(|(start, end)| [start, end]),
        "time": item.time.map(|time| written(time, false)),
        "supersedes": item.supersedes.map(|old| ids.get(old).cloned().unwrap_or_else(unknown)),
    })
}
