//! Whether a world is sound.

use anyhow::Result;
use serde_json::Value;

use crate::commands::App;
use crate::failure::Unsound;
use crate::http::{Call, Http};
use crate::ledger::{entries, path};
use crate::output::Style;
use crate::render::turn::text_of;
use crate::render::{printable, shorten};

/// How much of a leak is shown.
const LEAK_CHARS_MAX: usize = 100;
/// Why some answers cannot be made again.
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
pub(crate) struct Args {
    /// The world
    world: String,
    /// List verbatim runs that an author could not have seen; a report, never a verdict
    #[arg(long)]
    leaks: bool,
}

pub(super) async fn run(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let call = Call::get(path(&args.world, "/verify")).query("leaks", u8::from(args.leaks));
    let report = http.json(call).await?;
    let sound = report.get("sound").and_then(Value::as_bool) == Some(true);
    if app.out.is_json() {
        app.out.json(&report)?;
    } else {
        print(&report, sound, args.leaks, app)?;
    }
    if sound { Ok(()) } else { Err(Unsound.into()) }
}

fn print(report: &Value, sound: bool, leaks: bool, app: &mut App) -> Result<()> {
    let number = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or_default();
    for fault in entries(report, "/faults") {
        let turn = app
            .out
            .paint(Style::Id, &format!("turn:{}", text_of(fault, "turn_id")));
        app.out
            .line(format!("{turn} {}", printable(text_of(fault, "what"))))?;
    }
    if leaks {
        print_leaks(report, app)?;
    }
    let verdict = if sound {
        app.out.paint(Style::Good, "sound")
    } else {
        app.out.paint(
            Style::Bad,
            &format!("{} faults", entries(report, "/faults").len()),
        )
    };
    let (entries, bundles, answers) = (number("entries"), number("bundles"), number("answers"));
    app.out.line(format!(
        "{verdict}: {entries} entries in {bundles} bundles, {answers} answers made again"
    ))?;
    match number("answers_skipped") {
        0 => Ok(()),
        skipped => app
            .out
            .line(format!("{skipped} answers not made again: {WHY_SKIPPED}")),
    }
}

fn print_leaks(report: &Value, app: &mut App) -> Result<()> {
    if entries(report, "/leaks").is_empty() {
        return app
            .out
            .line("no long run of words that its author could not have seen");
    }
    for leak in entries(report, "/leaks") {
        let at = app.out.paint(Style::Id, text_of(leak, "entry_id"));
        let from = app.out.paint(Style::Id, text_of(leak, "source_entry_id"));
        let text = printable(&shorten(text_of(leak, "text"), LEAK_CHARS_MAX));
        app.out.line(format!(
            "{at} has words of {from}, which its author could not see: {text}"
        ))?;
    }
    Ok(())
}
