//! `turnkeep invoke`: records the operator's words in a world and shows the answer.

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use crate::answer::{list_at, text_at};
use crate::http::{Call, Written};
use crate::ledger::{Cast, beat_envelope, fresh_id, print_entries, world_path};
use crate::render::printable;
use crate::render::turn::date_text;
use crate::session::{Need, StoreSession, with_store};

/// Speak as the operator in a world, and show the answer
///
/// The world's attached writer is asked, if it has one. Words never move time; the options do.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep invoke payments \"Ship the refund fix today.\"
  turnkeep invoke story \"\" --time 2026-11-16T09:00:00Z       nothing is said, a day passes
  turnkeep invoke story \"Wait.\" --pause")]
pub(crate) struct InvokeArgs {
    /// The world
    world: String,
    /// The words; empty says nothing
    text: String,
    /// Declare the world's time: with an offset, or local
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Declare the zone in which the world's time is shown
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Time stands still after this
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// Time moves again
    #[arg(long)]
    resume: bool,
    /// The request's id: the same again gives the same answer
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub(crate) async fn run_invoke(args: &InvokeArgs, app: &mut App) -> Result<()> {
    let request = args.key.clone().map_or_else(fresh_id, Ok)?;
    let body = invocation_body(args, &request);
    let send = async |session: &mut StoreSession| {
        let cast = Cast::load(&mut session.http, &args.world).await?;
        let call = Call::post(world_path(&args.world, "/invocations"), &body);
        let written = session.http.write(call).await?;
        Ok(Invoked { written, cast })
    };
    let Invoked { written, cast } = with_store(&app.config()?, Need::Write, send).await?;
    // The words were recorded although the writer failed, so this is a note and not an error.
    if let Some(why) = &written.writer_failed {
        eprintln!("{}", writer_failed_note(why, &args.world));
    }
    if app.out.is_json() {
        return app.out.json(&written.answer);
    }
    if written.replayed {
        app.out
            .line("already done; this is what was answered then:")?;
    }
    print_projection(&written.answer, &cast, app)
}

fn writer_failed_note(why: &str, world: &str) -> String {
    format!(
        "note: the world's writer failed and added nothing: {}; `turnkeep world audit {}` tells more",
        printable(why),
        printable(world)
    )
}

/// The answer to an invocation, and the people in its world.
struct Invoked {
    written: Written,
    cast: Cast,
}

fn print_projection(projection: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    let entries = list_at(projection, "/stream/entries");
    if entries.is_empty() {
        let line = match text_at(projection, "/pocket/clock/world_time") {
            Some(time) => format!("nothing new; the world's time is {}", date_text(&time)),
            None => "nothing new".to_owned(),
        };
        return app.out.line(line);
    }
    print_entries(entries, cast, &mut app.out)
}

fn invocation_body(args: &InvokeArgs, request: &str) -> Value {
    let mut body = beat_envelope(request, &args.text);
    let pause = if args.pause {
        Some(true)
    } else {
        args.resume.then_some(false)
    };
    // Without an option the envelope has no overrides, and time moves by the world's own rule.
    if args.time.is_some() || args.timezone.is_some() || pause.is_some() {
        body["declared_overrides"] = json!({
            "time": { "declared_world_time": args.time, "timezone": args.timezone },
            "pause_time": pause,
        });
    }
    body
}
