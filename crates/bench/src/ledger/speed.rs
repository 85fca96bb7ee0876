//! Speed and size of search in one process: the same questions, with the world's own audiences,
//! with all entries in one class, and spread over 200 classes that the reader may all read.

use std::time::{Duration, Instant};

use turnkeep_ledger::search::{ClassId, Index, Query, Scope};
use turnkeep_teamworld::{Question, TeamWorld};

use super::quality::{WorldTexts, index_by, index_of, readable_classes, window_of};
use crate::figures::{Measured, count_f64};
use crate::report_progress;
use crate::table::Row;

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
struct Figures {
    name: &'static str,
    build: Duration,
    searches: Measured,
    /// Bytes of the index in memory.
    bytes: usize,
}

/// Measures the index of a world.
pub(super) fn measure_search_speed(world: &TeamWorld) -> Vec<Row> {
    let divisions = [
        ("own audiences", Division::Own),
        ("one class", Division::Classes(1)),
        ("200 classes", Division::Classes(MANY)),
    ];
    let mut rows = Vec::new();
    let mut means = Vec::new();
    for (name, division) in divisions {
        report_progress(&format!("search, {name}"));
        let (figures, index) = Figures::measure(name, division, world);
        means.push(figures.mean_ms());
        rows.extend(figures.to_rows(world.text_bytes()));
        // The server keeps checkpoints of the world's own audiences only.
        if division == Division::Own {
            rows.extend(measure_checkpoint(&index, world.text_bytes()));
        }
    }
    if let [_, one, many] = means[..] {
        let name = "search, 200 classes, of one class, by the mean";
        rows.push(Row::times(name, many / one).at_most(2.0));
    }
    rows
}

impl Figures {
    fn measure(name: &'static str, division: Division, world: &TeamWorld) -> (Self, Index) {
        let start = Instant::now();
        let index = build_index(world, division);
        let figures = Self {
            name,
            build: start.elapsed(),
            searches: time_searches(world, &index, division),
            bytes: index.heap_bytes(),
        };
        (figures, index)
    }

    fn mean_ms(&self) -> f64 {
        1e3 / self.searches.rate
    }

    fn to_rows(&self, text_bytes: usize) -> Vec<Row> {
        let name = |what: &str| format!("search, {}, {what}", self.name);
        let share = share_of_text(self.bytes, text_bytes);
        vec![
            Row::millis(&name("p50"), self.searches.p50_ms).at_most(1.0),
            Row::millis(&name("p99"), self.searches.p99_ms).at_most(10.0),
            Row::millis(&name("mean"), self.mean_ms()),
            Row::seconds(&name("index built"), self.build.as_secs_f64()),
            Row::times(&name("index, of the text"), share).at_most(1.5),
        ]
    }
}

fn share_of_text(bytes: usize, text_bytes: usize) -> f64 {
    count_f64(bytes) / count_f64(text_bytes.max(1))
}

fn build_index(world: &TeamWorld, division: Division) -> Index {
    match division {
        Division::Own => index_of(world),
        // Spread without regard to who talks with whom.
        Division::Classes(count) => index_by(world, |entry, _| {
            (entry.wrapping_mul(2_654_435_761) >> 7) % count
        }),
    }
}

fn time_searches(world: &TeamWorld, index: &Index, division: Division) -> Measured {
    let mut latencies = Vec::new();
    for round in 0..=ROUNDS {
        for question in &world.questions {
            let classes: Vec<ClassId> = match division {
                Division::Own => readable_classes(world, question.reader),
                Division::Classes(count) => (0..count).map(ClassId).collect(),
            };
            let took = time_question(world, index, question, &classes);
            // The first round fills the caches.
            if round > 0 {
                latencies.push(took);
            }
        }
    }
    Measured::from_latencies(latencies.iter().sum(), latencies)
}

fn time_question(
    world: &TeamWorld,
    index: &Index,
    question: &Question,
    classes: &[ClassId],
) -> Duration {
    let author = question.author.map(|author| world.person_id(author));
    let scope = Scope {
        classes,
        at: index.len(),
    };
    let query = Query {
        text: &question.text,
        author: author.as_deref(),
        window: window_of(question),
        limit: 10,
        context_max: 10,
    };
    let start = Instant::now();
    let Ok(hits) = index.search(&scope, &query, &WorldTexts(world));
    let took = start.elapsed();
    // Otherwise the compiler could leave the search out.
    std::hint::black_box(hits);
    took
}

/// Bytes of a checkpoint, and how long it takes to write it to memory and to read it back.
fn measure_checkpoint(index: &Index, text_bytes: usize) -> Vec<Row> {
    let start = Instant::now();
    let bytes = index.encode();
    let encode = start.elapsed();
    let start = Instant::now();
    let read = Index::decode(&bytes);
    let decode = start.elapsed();
    assert_eq!(
        read.map(|index| index.len()).ok(),
        Some(index.len()),
        "a checkpoint is read back"
    );
    vec![
        Row::times(
            "index checkpoint, of the text",
            share_of_text(bytes.len(), text_bytes),
        ),
        Row::seconds("index checkpoint, made", encode.as_secs_f64()),
        Row::seconds("index checkpoint, read", decode.as_secs_f64()),
    ]
}
