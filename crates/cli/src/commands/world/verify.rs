//! `turnkeep world verify`: checks a world's records against each other.

use anyhow::Result;
use serde_json::Value;

use crate::answer::{is_true, list_at, number_of, text_of};
use crate::commands::App;
use crate::failure::ProblemsReported;
use crate::http::{Call, Http};
use crate::ledger::world_path;
use crate::output::Style;
use crate::render::{printable, shorten_to_chars};

/// How much of a leak is shown.
const LEAK_CHARS_MAX: usize = 100;
/// Why the check cannot compute some answers again.
const WHY_SKIPPED: &str =
    "they show a bundle that was refused or wrote nothing as it was sent, which is not recorded";

/// Check everything that a world recorded against itself
///
/// Bundles, order, times, provenance, packs, excerpts and the answers that were given. Exits with 1
/// if anything does not fit. `turnkeep verify` checks the log beneath.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world verify payments
  turnkeep world verify payments --leaks      also list words that an author could not have seen")]
pub(crate) struct WorldVerifyArgs {
    /// The world
    world: String,
    /// List verbatim runs that an author could not have seen; a report, never a verdict
    #[arg(long)]
    leaks: bool,
}

pub(super) async fn run_world_verify(
    http: &mut Http,
    args: &WorldVerifyArgs,
    app: &mut App,
) -> Result<()> {
    let call = Call::get(world_path(&args.world, "/verify")).query("leaks", u8::from(args.leaks));
    let report = http.json(call).await?;
    let sound = is_true(&report, "sound");
    if app.out.is_json() {
        app.out.json(&report)?;
    } else {
        print_report(&report, sound, args.leaks, app)?;
    }
    if sound {
        Ok(())
    } else {
        Err(ProblemsReported.into())
    }
}

fn print_report(report: &Value, sound: bool, leaks: bool, app: &mut App) -> Result<()> {
    let faults = list_at(report, "/faults");
    for fault in faults {
        print_fault(fault, app)?;
    }
    if leaks {
        print_leaks(report, app)?;
    }
    let verdict = if sound {
        app.out.paint(Style::Good, "sound")
    } else {
        let count = format!("{} faults", faults.len());
        app.out.paint(Style::Bad, &count)
    };
    let entries = number_of(report, "entries");
    let bundles = number_of(report, "bundles");
    let answers = number_of(report, "answers");
    app.out.line(format!(
        "{verdict}: {entries} entries in {bundles} bundles, {answers} answers made again"
    ))?;
    match number_of(report, "answers_skipped") {
        0 => Ok(()),
        skipped => app
            .out
            .line(format!("{skipped} answers not made again: {WHY_SKIPPED}")),
    }
}

fn print_fault(fault: &Value, app: &mut App) -> Result<()> {
    let turn = format!("turn:{}", text_of(fault, "turn_id"));
    let turn = app.out.paint(Style::Id, &turn);
    let what = printable(text_of(fault, "what"));
    app.out.line(format!("{turn} {what}"))
}

fn print_leaks(report: &Value, app: &mut App) -> Result<()> {
    if list_at(report, "/leaks").is_empty() {
        return app
            .out
            .line("no long run of words that its author could not have seen");
    }
    for leak in list_at(report, "/leaks") {
        let at = app.out.paint(Style::Id, text_of(leak, "entry_id"));
        let from = app.out.paint(Style::Id, text_of(leak, "source_entry_id"));
        let text = printable(&shorten_to_chars(text_of(leak, "text"), LEAK_CHARS_MAX));
        app.out.line(format!(
            "{at} has words of {from}, which its author could not see: {text}"
        ))?;
    }
    Ok(())
}
