//! `turnkeep bench ledger`: how well search answers, and how fast a world does.
//!
//! Quality is measured on TeamWorld, a made-up team's ledger with questions whose answers are
//! known, and on LoCoMo when its file is given. Speed and size are measured on a TeamWorld of a
//! million entries: the index alone, the world in this process, and the world behind a server. The
//! same seed gives the same figures but for the times. Files are in a scratch directory that is
//! removed.

mod locomo;
mod made;
mod quality;
mod served;
mod speed;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use turnkeep_teamworld::{Plan, QuestionKind, TeamWorld};

use self::quality::{Quality, Tally, index_of, measure_quality, score_of};
use super::report::{describe_machine, write_section};
use super::report_progress;
use super::scratch::ScratchDir;
use super::table::Table;

/// Measure a ledger: the quality of search, and the speed and size of a world of a million entries
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  turnkeep bench ledger                         quality, then speed at a million entries
  turnkeep bench ledger --quick                 see that it works; the figures mean nothing
  turnkeep bench ledger --large 0 --seed 7      quality alone, of another made-up world
  turnkeep bench ledger --locomo locomo10.json  retrieval on LoCoMo, whose file is not shipped
  turnkeep bench ledger --write docs/performance.md")]
pub(crate) struct BenchLedgerArgs {
    /// Run everything once and tiny, to see that it works
    #[arg(long)]
    quick: bool,
    /// The made-up world's seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Entries of the world that quality is measured on
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=2_000_000))]
    entries: u32,
    /// Questions of each kind
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    questions: u32,
    /// Entries of the world that speed is measured on; 0 leaves it out
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4_000_000))]
    large: u32,
    /// Where to write; must be on the disk in question [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the tables into the part of this file that is kept for them
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Measure only retrieval on LoCoMo, from this file (`locomo10.json`)
    #[arg(long, value_name = "FILE")]
    locomo: Option<PathBuf>,
}

/// Between these two lines of the document the tables are.
const MARKS: [&str; 2] = ["<!-- ledger -->\n", "<!-- /ledger -->\n"];

/// How much to do, resolved from the arguments.
struct LedgerEffort {
    quality: Plan,
    speed: Option<Plan>,
    load: served::BeatLoad,
}

impl LedgerEffort {
    fn from_args(args: &BenchLedgerArgs) -> Self {
        let plan = |entries: u32, questions: u32| Plan {
            questions: questions as usize,
            ..Plan::new(args.seed, entries as usize)
        };
        if args.quick {
            return Self {
                quality: plan(400, 5),
                speed: Some(plan(5000, 2)),
                load: served::BeatLoad {
                    beats: 5,
                    time: Duration::from_millis(100),
                },
            };
        }
        // Each question is asked several times in several indexes; more would only take longer.
        let questions = args.questions.min(100);
        Self {
            quality: plan(args.entries, args.questions),
            speed: (args.large > 0).then(|| plan(args.large, questions)),
            load: served::BeatLoad {
                beats: 500,
                time: Duration::from_secs(5),
            },
        }
    }
}

/// Runs the measurements and prints them.
pub(super) fn run_bench_ledger(args: &BenchLedgerArgs, json: bool) -> Result<()> {
    let mut report = match &args.locomo {
        Some(path) => measure_locomo(path)?,
        None => measure_teamworld(args)?,
    };
    report
        .lines
        .insert(0, format!("commit {}", current_commit()));
    report.json["commit"] = Value::from(current_commit());
    if json {
        println!("{}", report.json);
    } else {
        println!("{}", report.lines.join("\n"));
        let table = report.table.as_ref().map(Table::to_text);
        print!("{}", table.unwrap_or_default());
    }
    match &args.write {
        Some(path) => write_tables(path, &report),
        None => Ok(()),
    }
}

/// What was measured, for people and for programs.
#[derive(Debug, Default)]
struct LedgerReport {
    lines: Vec<String>,
    table: Option<Table>,
    json: Value,
}

/// Puts the tables where the document keeps them.
fn write_tables(path: &Path, report: &LedgerReport) -> Result<()> {
    let table = report.table.as_ref().map(Table::to_markdown);
    let (table, lines) = (table.unwrap_or_default(), report.lines.join("\n"));
    let machine = describe_machine();
    let section = format!("```text\n{lines}\n```\n\n{table}\n{machine}.\n");
    write_section(path, MARKS, &section)
}

fn measure_locomo(path: &PathBuf) -> Result<LedgerReport> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = locomo::measure_retrieval(&bytes)
        .with_context(|| format!("{} is not LoCoMo", path.display()))?;
    Ok(LedgerReport {
        lines: found.to_lines(),
        table: None,
        json: found.to_json(),
    })
}

fn measure_teamworld(args: &BenchLedgerArgs) -> Result<LedgerReport> {
    let effort = LedgerEffort::from_args(args);
    report_progress("a world to ask about");
    let world = TeamWorld::new(&effort.quality);
    let quality = measure_quality(&world, &index_of(&world));
    let mut report = quality_report(&effort.quality, &world, &quality);
    if let Some(plan) = &effort.speed {
        let table = measure_speed(args, plan, effort.load)?;
        report.json["rows"] = table.to_json()["rows"].clone();
        report.table = Some(table);
    }
    Ok(report)
}

fn measure_speed(args: &BenchLedgerArgs, plan: &Plan, load: served::BeatLoad) -> Result<Table> {
    report_progress(&format!("a world of {} entries", plan.entries));
    let team = TeamWorld::new(plan);
    let mut table = Table::new(!args.quick);
    table.add_rows(speed::measure_search_speed(&team));
    let scratch = ScratchDir::create(args.dir.as_deref())?;
    let data = scratch.create_folder("ledger")?;
    table.add_rows(world::measure_world(&team, &data)?);
    table.add_rows(served::measure_served(&team, &data, load)?);
    Ok(table)
}

fn quality_report(plan: &Plan, world: &TeamWorld, quality: &Quality) -> LedgerReport {
    let mut lines = vec![format!(
        "TeamWorld, seed {}: {} entries, {} persons, {} audiences, {} leaks",
        plan.seed,
        world.entries.len(),
        world.persons.len(),
        world.audiences.len(),
        quality.leaks
    )];
    let mut kinds = Vec::new();
    for (kind, tally) in &quality.kinds {
        lines.push(kind_line(*kind, tally));
        lines.push(format!("    {}", readers_text(*kind, world, quality)));
        let readers = readers_json(*kind, world, quality);
        kinds.push(kind_json(*kind, tally, &readers));
    }
    let json = json!({
        "seed": plan.seed, "entries": world.entries.len(), "leaks": quality.leaks, "kinds": kinds,
    });
    LedgerReport {
        lines,
        table: None,
        json,
    }
}

fn kind_line(kind: QuestionKind, tally: &Tally) -> String {
    let (score, mean) = (score_of(kind), tally.mean());
    let verdict = if mean >= score.goal { "yes" } else { "NO" };
    format!(
        "  {:18} {:7} {mean:.3}  goal {:.2}  {verdict:3}  {} questions",
        kind.name(),
        score.name,
        score.goal,
        tally.asked
    )
}

fn kind_json(kind: QuestionKind, tally: &Tally, readers: &Value) -> Value {
    let (score, mean) = (score_of(kind), tally.mean());
    json!({
        "kind": kind.name(), "score": score.name, "mean": mean, "goal": score.goal,
        "met": mean >= score.goal, "questions": tally.asked, "readers": readers,
    })
}

/// The mean score of each reader in questions of one kind, by the reader's name.
fn means_of_readers<'a>(
    kind: QuestionKind,
    world: &'a TeamWorld,
    quality: &'a Quality,
) -> impl Iterator<Item = (&'a String, f64)> {
    let readers = quality.readers.iter();
    let of_kind = readers.filter(move |((other, _), _)| *other == kind);
    of_kind.map(|((_, reader), tally)| (&world.persons[*reader], tally.mean()))
}

fn readers_text(kind: QuestionKind, world: &TeamWorld, quality: &Quality) -> String {
    let readers =
        means_of_readers(kind, world, quality).map(|(label, mean)| format!("{label} {mean:.2}"));
    readers.collect::<Vec<_>>().join(", ")
}

fn readers_json(kind: QuestionKind, world: &TeamWorld, quality: &Quality) -> Value {
    means_of_readers(kind, world, quality)
        .map(|(label, mean)| (label.clone(), Value::from(mean)))
        .collect()
}

/// The commit of the directory that the benchmark runs in.
pub(super) fn current_commit() -> String {
    // The figures are only useful with the commit that they belong to.
    let git = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    let told = git.ok().filter(|output| output.status.success());
    let name = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
