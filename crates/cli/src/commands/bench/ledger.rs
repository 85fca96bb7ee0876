//! `turnkeep bench ledger`: how well and how fast search answers.
//!
//! Quality is measured on TeamWorld, a made-up team's ledger with questions whose answers are known, and
//! on LoCoMo when its file is given; speed and size on a TeamWorld of a million entries. Everything is in
//! memory, and the same seed gives the same figures but for the times.

mod locomo;
mod speed;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use turnkeep_ledger::teamworld::{Kind, Plan, Quality, TeamWorld, measure};

use super::progress;

/// Measure search over a ledger: quality by kind of question and by reader, speed and size
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  turnkeep bench ledger                         quality, then speed at a million entries
  turnkeep bench ledger --large 0 --seed 7      quality alone, of another made-up world
  turnkeep bench ledger --locomo locomo10.json  retrieval on LoCoMo, whose file is not shipped")]
pub(crate) struct Args {
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
    /// Measure only retrieval on LoCoMo, from this file (`locomo10.json`)
    #[arg(long, value_name = "FILE")]
    locomo: Option<PathBuf>,
}

/// Runs the measurements and prints them.
pub(super) fn run(args: &Args, json: bool) -> Result<()> {
    let mut report = match &args.locomo {
        Some(path) => locomo(path)?,
        None => teamworld(args),
    };
    report.lines.insert(0, format!("commit {}", commit()));
    report.json["commit"] = Value::from(commit());
    if json {
        println!("{}", report.json);
    } else {
        println!("{}", report.lines.join("\n"));
    }
    Ok(())
}

/// What was measured, for people and for programs.
#[derive(Debug, Default)]
struct Report {
    lines: Vec<String>,
    json: Value,
}

fn locomo(path: &PathBuf) -> Result<Report> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = locomo::measure(&bytes).with_context(|| format!("{} is not LoCoMo", path.display()))?;
    Ok(Report { lines: found.lines(), json: found.json() })
}

fn teamworld(args: &Args) -> Report {
    progress("a world to ask about");
    let questions = args.questions as usize;
    let plan = Plan { questions, ..Plan::new(args.seed, args.entries as usize) };
    let world = TeamWorld::new(&plan);
    let quality = measure(&world, &world.index());
    let mut report = quality_report(&plan, &world, &quality);
    if args.large > 0 {
        let plan = Plan { questions: questions.min(100), ..Plan::new(args.seed, args.large as usize) };
        let speed = speed::measure(&plan);
        report.lines.extend(speed.lines());
        report.json["speed"] = speed.json();
    }
    report
}

fn quality_report(plan: &Plan, world: &TeamWorld, quality: &Quality) -> Report {
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
        let score = kind.score();
        let (mean, met) = (tally.mean(), tally.mean() >= score.goal);
        let verdict = if met { "yes" } else { "NO" };
        lines.push(format!(
            "  {:18} {:7} {mean:.3}  goal {:.2}  {verdict:3}  {} questions",
            kind.name(),
            score.name,
            score.goal,
            tally.asked
        ));
        lines.push(format!("    {}", by_reader(*kind, world, quality)));
        kinds.push(json!({
            "kind": kind.name(), "score": score.name, "mean": mean, "goal": score.goal, "met": met,
            "questions": tally.asked, "readers": readers(*kind, world, quality),
        }));
    }
    let json = json!({
        "seed": plan.seed, "entries": world.entries.len(), "leaks": quality.leaks, "kinds": kinds,
    });
    Report { lines, json }
}

fn of_readers<'a>(
    kind: Kind,
    world: &'a TeamWorld,
    quality: &'a Quality,
) -> impl Iterator<Item = (&'a String, f64)> {
    let of_kind = quality.readers.iter().filter(move |((other, _), _)| *other == kind);
    of_kind.map(|((_, reader), tally)| (&world.persons[*reader], tally.mean()))
}

fn by_reader(kind: Kind, world: &TeamWorld, quality: &Quality) -> String {
    let readers = of_readers(kind, world, quality).map(|(label, mean)| format!("{label} {mean:.2}"));
    readers.collect::<Vec<_>>().join(", ")
}

fn readers(kind: Kind, world: &TeamWorld, quality: &Quality) -> Value {
    of_readers(kind, world, quality).map(|(label, mean)| (label.clone(), Value::from(mean))).collect()
}

/// The commit of the directory that the benchmark runs in.
fn commit() -> String {
    let git = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let told = git.ok().filter(|output| output.status.success());
    let name = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
