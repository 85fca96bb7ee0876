//! Twins whose beats are decided: the same requests, with and without what a reader may not see, go
//! through the beat itself, so that clocks, ids, outcomes and verdicts of hidden beats are part of
//! what is compared.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_ledger::config::{Config, Person, Profile};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::{EntryId, Ids, ItemId};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Principal, View, World, as_of, cursor, outcome};
use turnkeep_types::Timestamp;

use crate::story::{name, question, viewer};
use crate::twins::{Dice, PEOPLE, decided, told, worlds};

const START_MS: u64 = 1_794_733_200_000;

/// A line that somebody writes; none as readers is everyone.
#[derive(Clone)]
struct Line {
    author: &'static str,
    readers: Option<Vec<&'static str>>,
    /// Milliseconds after the commit's time.
    ahead_ms: Option<i64>,
    text: String,
}

/// A pocket item in a line. The item that it replaces is counted over the whole story.
#[derive(Clone)]
struct Item {
    line: usize,
    kind: &'static str,
    titled: bool,
    supersedes: Option<usize>,
}

/// A request of the story.
struct Request {
    who: &'static str,
    words: String,
    overrides: Value,
    lines: Vec<Line>,
    items: Vec<Item>,
    notes: bool,
    /// Faults of the bundle, for which it is rejected.
    flaw: Option<(&'static str, Value)>,
    now: Timestamp,
    /// The reader asks with its newest cursor, or with the one before.
    expected: Option<u64>,
    from_start: bool,
}

fn sees(who: &str, line: &Line) -> bool {
    line.readers
        .as_ref()
        .is_none_or(|readers| readers.contains(&who) || line.author == who)
}

/// A world of the story, and what its ids stand for.
struct Stage {
    world: World,
    ids: Ids,
    /// By their numbers in the story; none was never written here.
    entries: Vec<Option<EntryId>>,
    items: Vec<Option<ItemId>>,
    /// The first entry that everyone sees.
    public: Option<EntryId>,
    /// The reader's own requests, as they were sent and answered.
    own: Vec<(String, Option<Value>, Bytes)>,
    told: Vec<String>,
}

impl Stage {
    fn new(profile: Profile, seed: u8) -> Self {
        let start = WorldTime::from_timestamp(Timestamp(START_MS));
        let mut world = World::new(Config::new(name("payments"), profile, start));
        for id in PEOPLE {
            world.apply(Fact::Person(Person::with_id(name(id))));
        }
        let ids = Ids::from_seed(&[seed; 32]);
        let (entries, items, own, told) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            world,
            ids,
            entries,
            items,
            public: None,
            own,
            told,
        }
    }

    /// The bundle of a request, without the lines that are to be left out.
    fn bundle(&self, id: &str, request: &Request, stays: &[bool], commit: &WorldTime) -> Value {
        let place = |line: usize| stays[..line].iter().filter(|stays| **stays).count();
        let kept = request.lines.iter().zip(stays).filter(|(_, stays)| **stays);
        let entries: Vec<_> = kept.map(|(line, _)| entry(id, line, commit)).collect();
        let mut items = Vec::new();
        for item in request.items.iter().filter(|item| stays[item.line]) {
            let old = item.supersedes.map(|old| self.items[old]);
            if old == Some(None) && !item.titled && item.kind == "CALENDAR" {
                // It takes away what was never there.
                continue;
            }
            items.push(json!({
                "kind": item.kind, "entry_index": place(item.line),
                "title": item.titled.then(|| [0, request.lines[item.line].text.len()]),
                "supersedes": old.flatten().map(|old| old.to_string()),
            }));
        }
        let mut bundle = json!({
            "request_id": id, "proposed_by": { "engine": "test", "actor": request.who },
            "wrote": !entries.is_empty(), "entries": entries, "pocket_items": items,
        });
        if let Some(cited) = self.public.filter(|_| request.notes) {
            let note = format!("Knows of {id}.");
            bundle["capsule_notes"] = json!([{ "person_id": request.who, "text": note, "used_entry_ids": [cited.to_string()] }]);
        }
        if let Some((pointer, value)) = &request.flaw {
            bundle[*pointer] = value.clone();
        }
        bundle
    }

    /// Plays a request; what `reader` may not see is left out if this is its twin.
    fn play(&mut self, number: usize, request: &Request, reader: &str, twin: bool) {
        let id = format!("r-{number}");
        let rejected = request.flaw.is_some();
        let stays: Vec<_> = request
            .lines
            .iter()
            .map(|line| !twin || rejected || sees(reader, line))
            .collect();
        let mut envelope = json!({
            "request_id": id, "invoker": { "invoker_id": "test", "invoker_role": "INVOKER" },
            "operator": { "operator_id": "GEORGE", "input_text": request.words }, "mode": { "kind": "BEAT" },
            "declared_overrides": request.overrides,
        });
        let who = principal(request.who);
        let view = self.world.view(who.viewer());
        let count = view.count();
        let expected = request
            .expected
            .map(|back| cursor::write(&view, count - back.min(count)));
        if request.from_start {
            envelope["ui"] = json!({ "stream_cursor": cursor::write(&view, 0) });
        }
        let commit = self.commit_time(request);
        let bundle =
            (!request.lines.is_empty()).then(|| self.bundle(&id, request, &stays, &commit));
        let decision = decided(
            &self.world,
            &who,
            &envelope,
            bundle.as_ref(),
            expected.as_deref(),
            request.now,
            &mut self.ids,
        );
        let own = request.who == reader;
        match decision {
            Ok(decision) => {
                self.note_ids(request, &stays, &decision.facts, rejected);
                decision
                    .facts
                    .into_iter()
                    .for_each(|fact| self.world.apply(fact));
                if own {
                    self.told
                        .push(String::from_utf8(decision.response.to_vec()).unwrap());
                    self.own.push((id, bundle, decision.response));
                }
            }
            Err(fault) => {
                assert!(own, "{id}: {fault}");
                self.told.push(fault.to_string());
                self.entries.extend(request.lines.iter().map(|_| None));
                self.items.extend(request.items.iter().map(|_| None));
            }
        }
        let clock = &self.world.clock;
        self.told.push(format!(
            "{} {} {}",
            clock.time.as_str(),
            clock.timezone,
            clock.paused
        ));
    }

    /// When this request commits if nothing is declared: times ahead are counted from here.
    fn commit_time(&self, request: &Request) -> WorldTime {
        let clock = &self.world.clock.time;
        match self.world.config.profile {
            _ if self.world.clock.paused => clock.clone(),
            Profile::Narrative => clock.plus_seconds(1),
            Profile::Workspace => WorldTime::from_timestamp(request.now).max(clock.clone()),
        }
    }

    /// What was written, under the story's own numbers.
    fn note_ids(&mut self, request: &Request, stays: &[bool], facts: &[Fact], rejected: bool) {
        let mut entries = facts.iter().filter_map(|fact| match fact {
            Fact::Entry(entry) => Some(entry),
            _ => None,
        });
        self.public = self.public.or(entries
            .clone()
            .find(|entry| entry.visible_to.is_none())
            .map(|entry| entry.id));
        let mut operator = entries
            .clone()
            .filter(|entry| entry.author.id.as_str() == "GEORGE")
            .count();
        let items: HashMap<EntryId, ItemId> = facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::Item(item) => Some((item.entry, item.id)),
                _ => None,
            })
            .collect();
        while operator > 0 {
            entries.next();
            operator -= 1;
        }
        let first = self.entries.len();
        let ids = stays
            .iter()
            .map(|stays| (*stays && !rejected).then(|| entries.next().unwrap().id));
        self.entries.extend(ids);
        for item in &request.items {
            let source = self.entries[first + item.line];
            self.items
                .push(source.and_then(|source| items.get(&source).copied()));
        }
    }

    /// Everything that the reader gets at the end, including answers to its repeated requests.
    fn finish(mut self, reader: &str) -> Vec<String> {
        for (id, bundle, body) in &self.own {
            let recorded = self.world.outcome(id).unwrap();
            let again = outcome::replay(&self.world, recorded, bundle.as_ref()).unwrap();
            assert_eq!(
                again, body,
                "{id} is answered as before, whatever was hidden since"
            );
        }
        let world = &self.world;
        let ids: Vec<_> = self
            .entries
            .iter()
            .map(|id| id.unwrap_or(EntryId(7)).to_string())
            .collect();
        let mut asked: Vec<_> = ids
            .chunks(100)
            .map(|ids| question(reader, "LEDGER_GET", &ids.join(" "), json!({})))
            .collect();
        asked.push(question(
            reader,
            "LEDGER_SEARCH",
            "refund migration",
            json!({ "limit": 50 }),
        ));
        asked.push(question(
            reader,
            "LEDGER_SEARCH",
            "",
            json!({ "limit": 200 }),
        ));
        for person in PEOPLE {
            asked.push(question(
                reader,
                "CAPSULE_GET",
                "",
                json!({ "person_id": person }),
            ));
        }
        asked.push(question(reader, "SCENE_PACK_BUILD", "", json!({})));
        self.told
            .extend(told(world, world.position(), reader, &asked));
        let view = world.view(viewer(reader));
        let mut points: Vec<_> = (0..=view.count())
            .map(|place| cursor::write(&view, place))
            .collect();
        let start = WorldTime::from_timestamp(Timestamp(START_MS));
        points.extend(
            [0, 3, 30, 3000].map(|seconds| start.plus_seconds(seconds).as_str().to_owned()),
        );
        for point in points {
            let at = as_of::position(world, &viewer(reader), &point, "as_of").unwrap();
            self.told
                .push(seen_text(&world.view_at(viewer(reader), at)));
        }
        self.told
    }
}

/// What a view of the past shows, in full.
fn seen_text(view: &View<'_>) -> String {
    let seen = as_of::seen(view, 20);
    let entries: Vec<Value> = seen
        .newest
        .entries
        .iter()
        .map(|entry| entry.to_json())
        .collect();
    json!([seen.count, seen.cursor, entries, seen.newest.complete]).to_string()
}

fn principal(who: &str) -> Principal {
    match who {
        "GEORGE" => Principal::Owner,
        _ => Principal::Person {
            id: name(who),
            write: true,
        },
    }
}

fn entry(id: &str, line: &Line, commit: &WorldTime) -> Value {
    let scope = if line.readers.is_some() {
        "PRIVATE"
    } else {
        "PUBLIC"
    };
    let time = line
        .ahead_ms
        .map(|ms| commit.plus_seconds(ms / 1000).as_str().to_owned());
    json!({
        "request_id": id, "author": { "author_id": line.author, "author_class": "PERSON" },
        "visibility": { "scope": scope, "visible_to": line.readers.as_deref().unwrap_or_default() },
        "channel": "PEOPLE", "text": line.text, "created_at_world": time,
    })
}

/// A random request; only the reader is careful about what it has seen. The operator changes
/// earlier items, of which it sees those that `seen` says.
fn request(dice: &mut Dice, reader: &str, seconds: &mut u64, seen: &[bool]) -> Request {
    *seconds += dice.below(600) as u64;
    let who = dice.one(&["GEORGE", "PLANNER", "CODER", "REVIEWER", "Ann"]);
    let authors: &[_] = if who == "GEORGE" {
        PEOPLE
    } else {
        std::slice::from_ref(&who)
    };
    let mut lines: Vec<Line> = Vec::new();
    for _ in 0..dice.below(4) {
        let mut readers = dice.some(&["PLANNER", "CODER", "REVIEWER", "Ann", "GEORGE"], 2);
        readers.sort_unstable();
        readers.dedup();
        let readers = (dice.below(3) > 0).then_some(readers);
        lines.push(Line {
            author: dice.one(authors),
            readers,
            ahead_ms: None,
            text: dice.text(),
        });
    }
    let operator = who == "GEORGE";
    let mut planned = Vec::new();
    for line in 0..lines.len() {
        if dice.below(2) == 0 {
            let supersedes = (!seen.is_empty() && dice.below(2) == 0 && operator)
                .then(|| dice.below(seen.len()));
            let supersedes = supersedes.filter(|old| seen[*old]);
            let kind = dice.one(&["CALENDAR", "MESSAGE"]);
            let titled = kind == "MESSAGE" || supersedes.is_none() || dice.below(2) == 0;
            planned.push(Item {
                line,
                kind,
                titled,
                supersedes,
            });
        }
    }
    let flaw = (dice.below(8) == 0 && !lines.is_empty())
        .then(|| dice.one(&[0, 1, 2]))
        .map(|flaw| {
            [
                ("wrote", json!(false)),
                ("mood", json!(7)),
                ("request_id", json!("x")),
            ][flaw]
                .clone()
        });
    let overrides = match dice.below(12) {
        0 if operator => json!({ "pause_time": true }),
        1 | 2 if operator => json!({ "pause_time": false }),
        3 if operator => json!({ "time": { "timezone": dice.one(&["Europe/Berlin", "UTC"]) } }),
        _ => Value::Null,
    };
    if dice.below(3) == 0 && overrides.is_null() {
        lead(dice, &mut lines);
    }
    Request {
        who,
        words: if operator && dice.below(2) == 0 {
            dice.text()
        } else {
            String::new()
        },
        overrides,
        notes: !operator && !lines.is_empty() && dice.below(6) == 0,
        items: planned,
        lines,
        flaw,
        now: Timestamp(START_MS + 1000 * *seconds),
        expected: (who == reader && !operator && dice.below(2) == 0).then(|| dice.below(2) as u64),
        from_start: who == reader && dice.below(3) == 0,
    }
}

/// Times ahead of the clock. The last line is public and the latest: what is hidden never leads.
fn lead(dice: &mut Dice, lines: &mut [Line]) {
    let mut ahead = 0;
    for line in &mut *lines {
        ahead += 1000 * i64::try_from(dice.below(15)).unwrap();
        line.ahead_ms = Some(ahead);
    }
    if let Some(line) = lines.last_mut() {
        line.readers = None;
    }
}

/// A text in which each id is the number of its first mention.
fn numbered(told: &[String]) -> Vec<String> {
    const DIGITS: usize = 26;
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let mut one = |text: &String| {
        let bytes = text.as_bytes();
        let (mut out, mut at) = (String::new(), 0);
        while at < text.len() {
            let end = at + 2 + DIGITS;
            let is_id = end <= text.len()
                && b"ebicsh".contains(&bytes[at])
                && bytes[at + 1] == b'_'
                && bytes[at + 2..end].iter().all(|byte| is_digit(*byte));
            if is_id {
                let next = numbers.len();
                let number = *numbers.entry(text[at..end].to_owned()).or_insert(next);
                out.extend(["<", &text[at..=at], &number.to_string(), ">"]);
                at = end;
            } else {
                let character = text[at..].chars().next().unwrap();
                out.push(character);
                at += character.len_utf8();
            }
        }
        out
    };
    told.iter().map(&mut one).collect()
}

/// A story without what no reader may be told to have done: a paused world takes no times ahead.
fn story(seed: u64, reader: &str) -> Vec<Request> {
    let mut dice = Dice::of(seed ^ 0x5eed);
    let (mut requests, mut seconds, mut seen, mut paused) = (Vec::new(), 0, Vec::new(), false);
    for _ in 0..8 + dice.below(25) {
        let mut next = request(&mut dice, reader, &mut seconds, &seen);
        if paused {
            next.lines.iter_mut().for_each(|line| line.ahead_ms = None);
        }
        paused = next.overrides["pause_time"].as_bool().unwrap_or(paused);
        seen.extend(
            next.items
                .iter()
                .map(|item| sees("GEORGE", &next.lines[item.line])),
        );
        requests.push(next);
    }
    requests
}

/// Both tellings of a story, and how many lines of it are hidden from the reader.
fn both(seed: u64, reader: &str) -> ([Vec<String>; 2], usize) {
    let profile = if seed.is_multiple_of(2) {
        Profile::Narrative
    } else {
        Profile::Workspace
    };
    let requests = story(seed, reader);
    let told = [(false, 1), (true, 2)].map(|(twin, ids)| {
        let mut stage = Stage::new(profile, ids);
        for (number, request) in requests.iter().enumerate() {
            stage.play(number, request, reader, twin);
        }
        stage.finish(reader)
    });
    let lines = requests
        .iter()
        .filter(|request| request.flaw.is_none())
        .flat_map(|request| &request.lines);
    let hidden: Vec<_> = lines.filter(|line| !sees(reader, line)).collect();
    for line in &hidden {
        let canary = line.text.rsplit(' ').next().unwrap();
        assert!(
            told[0].iter().all(|told| !told.contains(canary)),
            "seed {seed}, reader {reader}: {canary}"
        );
    }
    (told, hidden.len())
}

#[test]
fn n22_hidden_beats_change_no_clock_verdict_answer_or_replay_of_another_s() {
    let mut hidden = 0;
    for seed in 0..worlds() {
        // One reader of each world; the next world has the next.
        for reader in PEOPLE
            .iter()
            .skip(usize::try_from(seed % 4).unwrap())
            .take(1)
        {
            let ([ours, theirs], lines) = both(seed, reader);
            assert_eq!(ours.len(), theirs.len(), "seed {seed}, reader {reader}");
            for (number, (ours, theirs)) in
                numbered(&ours).iter().zip(numbered(&theirs)).enumerate()
            {
                assert_eq!(
                    *ours, theirs,
                    "seed {seed}, reader {reader}, answer {number}"
                );
            }
            hidden += lines;
        }
    }
    assert!(hidden as u64 > worlds() * 5, "{hidden}");
}
