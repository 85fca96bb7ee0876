//! Speed and size of search in one process: the same questions, with the world's own audiences, with all
//! entries in one class, and spread over 200 classes that the reader may all read.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnkeep_ledger::search::{ClassId, Index, Query, Scope};
use turnkeep_ledger::teamworld::{Plan, Question, TeamWorld};

use crate::commands::bench::figures::{Measured, number};
use crate::commands::bench::progress;

/// As many classes as a search must stand.
const MANY: u32 = 200;

/// Rounds over all questions that are measured, after one that is not.
const ROUNDS: usize = 3;

/// Who may read an entry, in one of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Division {
    Own,
    Classes(u32),
}

/// Figures of one division.
#[derive(Debug)]
struct Row {
    name: &'static str,
    build: Duration,
    searches: Measured,
    /// Bytes of the index in memory.
    bytes: usize,
}

/// All figures.
#[derive(Debug)]
pub(super) struct Speed {
    entries: usize,
    text_bytes: usize,
    rows: Vec<Row>,
    checkpoint_bytes: usize,
    encode: Duration,
    decode: Duration,
}

/// Measures a world of this plan.
pub(super) fn measure(plan: &Plan) -> Speed {
    progress(&format!("a world of {} entries", plan.entries));
    let world = TeamWorld::new(plan);
    let mut rows = Vec::new();
    let mut checkpoint = (0, Duration::ZERO, Duration::ZERO);
    let divisions = [
        ("own audiences", Division::Own),
        ("one class", Division::Classes(1)),
        ("200 classes", Division::Classes(MANY)),
    ];
    for (name, division) in divisions {
        progress(&format!("search, {name}"));
        let start = Instant::now();
        let index = build(&world, division);
        let build = start.elapsed();
        rows.push(Row { name, build, searches: search(&world, &index, division), bytes: index.heap_bytes() });
        if division == Division::Own {
            checkpoint = restart(&index);
        }
    }
    let (checkpoint_bytes, encode, decode) = checkpoint;
    let (entries, text_bytes) = (world.entries.len(), world.text_bytes());
    Speed { entries, text_bytes, rows, checkpoint_bytes, encode, decode }
}

fn build(world: &TeamWorld, division: Division) -> Index {
    match division {
        Division::Own => world.index(),
        // Spread without regard to who talks with whom.
        Division::Classes(count) => {
            world.index_by(|entry, _| (entry.wrapping_mul(2_654_435_761) >> 7) % count)
        }
    }
}

fn search(world: &TeamWorld, index: &Index, division: Division) -> Measured {
    let all: Vec<ClassId> = match division {
        Division::Own => Vec::new(),
        Division::Classes(count) => (0..count).map(ClassId).collect(),
    };
    let mut latencies = Vec::new();
    for round in 0..=ROUNDS {
        for question in &world.questions {
            let classes =
                if division == Division::Own { world.readable(question.reader) } else { all.clone() };
            let took = ask(world, index, question, &classes);
            if round > 0 {
                latencies.push(took);
            }
        }
    }
    Measured::of(latencies.iter().sum(), latencies)
}

fn ask(world: &TeamWorld, index: &Index, question: &Question, classes: &[ClassId]) -> Duration {
    let author = question.author.map(|author| world.person_id(author));
    let scope = Scope { classes, at: index.len() };
    let query = Query { text: &question.text, author: author.as_deref(), window: question.window, limit: 10 };
    let start = Instant::now();
    let Ok(hits) = index.search(&scope, &query, world);
    let took = start.elapsed();
    std::hint::black_box(hits);
    took
}

/// Bytes of a checkpoint, and how long it takes to write it to memory and to read it back.
fn restart(index: &Index) -> (usize, Duration, Duration) {
    let start = Instant::now();
    let bytes = index.encode();
    let encode = start.elapsed();
    let start = Instant::now();
    let read = Index::decode(&bytes);
    let decode = start.elapsed();
    assert_eq!(read.map(|index| index.len()).ok(), Some(index.len()), "a checkpoint is read back");
    (bytes.len(), encode, decode)
}

impl Speed {
    fn of_text(&self, bytes: usize) -> f64 {
        number(bytes) / number(self.text_bytes.max(1))
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let megabytes = number(self.text_bytes) / 1e6;
        let mut lines = vec![format!("speed, {} entries, {megabytes:.0} MB of text", self.entries)];
        for row in &self.rows {
            let Measured { p50_ms, p99_ms, rate } = row.searches;
            let (build, size) = (row.build.as_secs_f64(), self.of_text(row.bytes));
            lines.push(format!(
                "  {:14} p50 {p50_ms:.2} ms  p99 {p99_ms:.2} ms  mean {:.2} ms  build {build:.1} s  index {size:.2} x text",
                row.name,
                1e3 / rate
            ));
        }
        lines.push(format!(
            "  checkpoint     {:.2} x text  written in {:.2} s  read in {:.2} s",
            self.of_text(self.checkpoint_bytes),
            self.encode.as_secs_f64(),
            self.decode.as_secs_f64()
        ));
        lines
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "name": row.name, "p50_ms": row.searches.p50_ms, "p99_ms": row.searches.p99_ms,
                "mean_ms": 1e3 / row.searches.rate, "build_s": row.build.as_secs_f64(), "index_bytes": row.bytes,
            })
        });
        json!({
            "entries": self.entries, "text_bytes": self.text_bytes, "rows": rows.collect::<Vec<_>>(),
            "checkpoint_bytes": self.checkpoint_bytes, "encode_s": self.encode.as_secs_f64(),
            "decode_s": self.decode.as_secs_f64(),
        })
    }
}
