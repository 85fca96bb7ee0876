//! LoCoMo: long conversations with questions, each with the turns that answer it.
//!
//! Each conversation is a ledger of its own and each turn an entry, with the speaker's name as its
//! label and the caption of a picture behind its text. A turn's time is that of its session and
//! half a minute more for each turn before it. Asked are the questions of categories 1 to 4 with at
//! least one turn that exists as evidence. The file is not shipped: its licence does not allow it.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result, bail};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use turnkeep_ledger::search::{ClassId, Document, Index, Query, Scope, Window, date_words};

use crate::figures::count_f64;

/// Milliseconds between two turns.
const TURN_MILLIS: i64 = 30_000;

/// Sessions that a conversation can have.
const SESSIONS_MAX: usize = 1000;

/// Hits that are looked at.
const DEPTH: usize = 200;

const ALL: ClassId = ClassId(0);

/// A conversation as a ledger.
#[derive(Debug, Default)]
struct Conversation {
    index: Index,
    texts: Vec<String>,
    /// By turn, its session.
    sessions: Vec<usize>,
    turns: HashMap<String, u32>,
}

/// What the questions of one kind came to.
#[derive(Debug, Clone, Copy, Default)]
struct RetrievalTally {
    asked: usize,
    recall: [f64; 3],
    any: f64,
    rank: f64,
    session: f64,
}

/// The depths at which recall is taken.
const RECALLS: [usize; 3] = [5, 10, 20];

/// The figures of all conversations.
#[derive(Debug, Default)]
pub(super) struct Retrieval {
    conversations: usize,
    turns: usize,
    all: RetrievalTally,
    kinds: BTreeMap<&'static str, RetrievalTally>,
}

/// Reads the file and asks all its questions.
pub(super) fn measure_retrieval(bytes: &[u8]) -> Result<Retrieval> {
    let file: Value = serde_json::from_slice(bytes)?;
    let samples = file.as_array().context("it is no list of conversations")?;
    let mut found = Retrieval::default();
    for sample in samples {
        let conversation = Conversation::parse(sample.get("conversation").unwrap_or(&Value::Null));
        found.conversations += 1;
        found.turns += conversation.texts.len();
        let questions = sample.get("qa").and_then(Value::as_array);
        for question in questions.into_iter().flatten() {
            found.ask_question(&conversation, question);
        }
    }
    if found.all.asked == 0 {
        bail!("it has no question with evidence");
    }
    Ok(found)
}

fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or("")
}

impl Conversation {
    fn parse(value: &Value) -> Self {
        let mut conversation = Self::default();
        let mut next = DateTime::constant(2023, 1, 1, 9, 0, 0, 0);
        for session in 1..SESSIONS_MAX {
            let told = date_time(text_of(value, &format!("session_{session}_date_time")));
            let turns = value.get(format!("session_{session}"));
            // A number may be missing, and later ones may still follow.
            let Some(turns) = turns.and_then(Value::as_array) else {
                continue;
            };
            // A session without a readable time follows the one before by a day.
            let start = told.unwrap_or(next);
            next = start
                .checked_add(jiff::Span::new().days(1))
                .unwrap_or(start);
            for (number, turn) in turns.iter().enumerate() {
                conversation.add_turn(session, start, number, turn);
            }
        }
        conversation
    }

    fn add_turn(&mut self, session: usize, start: DateTime, number: usize, turn: &Value) {
        let (speaker, text) = (text_of(turn, "speaker"), turn_text(turn));
        let begun = start.to_zoned(TimeZone::UTC);
        let begun = begun.map_or(0, |time| time.timestamp().as_millisecond());
        let document = Document {
            class: ALL,
            author: speaker,
            label: speaker,
            text: &text,
            time: begun + i64::try_from(number).unwrap_or(0) * TURN_MILLIS,
            date: &date_words(start.date()),
        };
        let entry = self.index.push(&document);
        self.turns.insert(text_of(turn, "dia_id").to_owned(), entry);
        self.sessions.push(session);
        self.texts.push(text);
    }

    /// The turns that a question names as evidence: `D1:3`, some of them several in one text.
    fn evidence_turns(&self, question: &Value) -> Vec<u32> {
        let texts = question.get("evidence").and_then(Value::as_array);
        let mut turns = Vec::new();
        for text in texts.into_iter().flatten().filter_map(Value::as_str) {
            let names = text.split([';', ',', ' ']).filter(|name| !name.is_empty());
            // Some of the file's names belong to no turn; they are left out.
            turns.extend(names.filter_map(|name| self.turns.get(name.trim())));
        }
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    fn search_turns(&self, text: &str) -> Vec<u32> {
        let scope = Scope {
            classes: &[ALL],
            at: self.index.len(),
        };
        // A quote in a question is no phrase that somebody looks for.
        let text = text.replace('"', " ");
        let query = Query {
            text: &text,
            author: None,
            window: Window::default(),
            limit: DEPTH,
            context_max: DEPTH,
        };
        let Ok(hits) = self.index.search(&scope, &query, &self.texts[..]);
        hits.into_iter().map(|hit| hit.entry).collect()
    }
}

/// What was said, and what a picture beside it shows.
fn turn_text(turn: &Value) -> String {
    let (said, caption) = (text_of(turn, "text"), text_of(turn, "blip_caption"));
    if caption.is_empty() {
        said.to_owned()
    } else {
        format!("{said} {caption}")
    }
}

/// Reads a time such as `1:56 pm on 8 May, 2023`.
fn date_time(text: &str) -> Option<DateTime> {
    let (clock, day) = text.split_once(" on ")?;
    Some(parse_date(day)?.to_datetime(parse_clock(clock)?))
}

/// Reads `1:56 pm`.
fn parse_clock(text: &str) -> Option<Time> {
    let (clock, half) = text.trim().split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let is_afternoon = half.eq_ignore_ascii_case("pm");
    // 12 am is midnight and 12 pm is noon, so 12 counts as 0 in both halves.
    let hour = hour.parse::<i8>().ok()?.rem_euclid(12) + if is_afternoon { 12 } else { 0 };
    Time::new(hour, minute.parse().ok()?, 0, 0).ok()
}

/// Reads `8 May, 2023`.
fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.split([' ', ',']).filter(|part| !part.is_empty());
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    Date::new(year.parse().ok()?, month_number(month)?, day.parse().ok()?).ok()
}

fn month_number(name: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = name.get(..3)?.to_lowercase();
    let place = MONTHS.iter().position(|month| *month == start)?;
    i8::try_from(place + 1).ok()
}

/// What a category is called; those that have no evidence are not asked.
fn kind_name(category: &Value) -> Option<&'static str> {
    match category.as_u64()? {
        1 => Some("multi-hop"),
        2 => Some("time"),
        3 => Some("open"),
        4 => Some("single fact"),
        _ => None,
    }
}

impl Retrieval {
    fn ask_question(&mut self, conversation: &Conversation, question: &Value) {
        let gold = conversation.evidence_turns(question);
        let kind = question.get("category").and_then(kind_name);
        let Some(kind) = kind.filter(|_| !gold.is_empty()) else {
            return;
        };
        let hits = conversation.search_turns(text_of(question, "question"));
        for tally in [&mut self.all, self.kinds.entry(kind).or_default()] {
            tally.add_question(&hits, &gold, &conversation.sessions);
        }
    }

    /// For people.
    pub(super) fn to_lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "LoCoMo: {} conversations, {} turns",
            self.conversations, self.turns
        )];
        lines.push(self.all.to_line("all"));
        lines.extend(self.kinds.iter().map(|(kind, tally)| tally.to_line(kind)));
        lines
            .push("  goals        R@10 0.77  any@10 0.77  MRR 0.59  session any@5 0.92".to_owned());
        lines
    }

    /// For programs.
    pub(super) fn to_json(&self) -> Value {
        let kinds = self.kinds.iter();
        let kinds: serde_json::Map<_, _> = kinds
            .map(|(kind, tally)| ((*kind).to_owned(), tally.to_json()))
            .collect();
        json!({ "conversations": self.conversations, "turns": self.turns, "all": self.all.to_json(), "kinds": kinds })
    }
}

impl RetrievalTally {
    fn mean(&self, sum: f64) -> f64 {
        sum / count_f64(self.asked.max(1))
    }

    fn add_question(&mut self, hits: &[u32], gold: &[u32], sessions: &[usize]) {
        let found_within = |depth: usize| {
            let first = hits.iter().take(depth);
            count_f64(first.filter(|hit| gold.contains(hit)).count())
        };
        self.asked += 1;
        for (sum, depth) in self.recall.iter_mut().zip(RECALLS) {
            *sum += found_within(depth) / count_f64(gold.len());
        }
        // At least one of the right turns among the first ten.
        self.any += found_within(10).min(1.0);
        let first = hits.iter().position(|hit| gold.contains(hit));
        self.rank += first.map_or(0.0, |place| 1.0 / count_f64(place + 1));
        self.session += f64::from(u8::from(finds_session(hits, gold, sessions)));
    }

    fn to_line(self, name: &str) -> String {
        let [r5, r10, r20] = self.recall.map(|sum| self.mean(sum));
        let any = self.mean(self.any);
        let rank = self.mean(self.rank);
        let session = self.mean(self.session);
        let asked = self.asked;
        format!(
            "  {name:12} R@5 {r5:.3}  R@10 {r10:.3}  R@20 {r20:.3}  any@10 {any:.3}  MRR {rank:.3}  session any@5 {session:.3}  {asked} questions"
        )
    }

    fn to_json(self) -> Value {
        let [r5, r10, r20] = self.recall.map(|sum| self.mean(sum));
        json!({
            "questions": self.asked, "r5": r5, "r10": r10, "r20": r20, "any10": self.mean(self.any),
            "mrr": self.mean(self.rank), "session_any5": self.mean(self.session),
        })
    }
}

/// Whether one of the first five different sessions among the hits has evidence.
fn finds_session(hits: &[u32], gold: &[u32], sessions: &[usize]) -> bool {
    let session = |turn: &u32| sessions.get(*turn as usize).copied();
    let mut first: Vec<usize> = Vec::new();
    for found in hits.iter().filter_map(session) {
        if !first.contains(&found) && first.len() < 5 {
            first.push(found);
        }
    }
    gold.iter()
        .filter_map(session)
        .any(|wanted| first.contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        for (text, expect) in [
            ("1:56 pm on 8 May, 2023", Some("2023-05-08T13:56:00")),
            ("12:05 am on 31 December, 2022", Some("2022-12-31T00:05:00")),
            ("12:30 pm on 1 June, 2023", Some("2023-06-01T12:30:00")),
            ("on", None),
            ("25:99 pm on 40 Foo, x", None),
            ("", None),
        ] {
            assert_eq!(
                date_time(text).map(|time| time.to_string()).as_deref(),
                expect,
                "{text}"
            );
        }
    }

    #[test]
    fn a_file_is_measured_and_oddities_are_passed_over() {
        let file = json!([
            {
                "conversation": {
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": [
                        { "speaker": "Coder", "dia_id": "D1:1", "text": "The parser is done." },
                        { "speaker": "Tester", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red kite" },
                    ],
                    "session_2": [{ "speaker": "Coder", "dia_id": "D2:1", "text": 7 }, null],
                    "session_3_date_time": "nonsense",
                    "session_3": "nonsense",
                },
                "qa": [
                    { "question": "Who saw a \"kite\"?", "category": 4, "evidence": ["D1:2"] },
                    { "question": "What is done?", "category": 1, "evidence": ["D1:1; D9:9", "D2:1"] },
                    { "question": "Nothing", "category": 5, "evidence": ["D1:1"] },
                    { "question": "Nothing", "category": 2, "evidence": ["D7:1"] },
                    { "category": "x" },
                ],
            },
            7,
        ]);
        let found = measure_retrieval(file.to_string().as_bytes()).unwrap();
        assert_eq!(
            (found.conversations, found.turns, found.all.asked),
            (2, 4, 2)
        );
        assert!((found.kinds["single fact"].recall[0] - 1.0).abs() < 1e-9);
        assert!(found.kinds["multi-hop"].recall[0] >= 0.5);
        assert_eq!(found.to_lines().len(), 5);
        for bad in [&b"{}"[..], b"[]", b"[1]", b"nonsense"] {
            assert!(measure_retrieval(bad).is_err());
        }
    }
}
