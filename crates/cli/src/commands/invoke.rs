//! `turnkeep invoke`: the operator speaks.

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use crate::http::{Call, Http, Written};
use crate::ledger::{Cast, entries, envelope, fresh_id, path, print_entry};
use crate::render::printable;
use crate::render::turn::date_text;
use crate::session::{Need, Session};

/// Speak as the operator in a world, and see what came of it
///
/// The world's attached writer is asked, if it has one. Words never move time; the options do.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep invoke payments \"Ship the refund fix today.\"
  turnkeep invoke story \"\" --time 2026-11-16T09:00:00Z       nothing is said, a day passes
  turnkeep invoke story \"Wait.\" --pause")]
pub(crate) struct Args {
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

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let request = args.key.clone().map_or_else(fresh_id, Ok)?;
    let body = body(args, &request);
    let mut session = Session::open(&app.config()?, Need::Write).await?;
    let done = speak(&mut session.http, args, &body).await;
    session.close().await;
    let (
        Written {
            answer: projection,
            replayed,
            writer_failed,
        },
        cast,
    ) = done?;
    if let Some(why) = writer_failed {
        eprintln!(
            "note: the world's writer failed and added nothing: {}; `turnkeep world audit {}` tells more",
            printable(&why),
            printable(&args.world)
        );
    }
    if app.out.is_json() {
        return app.out.json(&projection);
    }
    if replayed {
        app.out
            .line("already done; this is what was answered then:")?;
    }
    let shown = entries(&projection, "/stream/entries");
    if shown.is_empty() {
        let time = projection
            .pointer("/pocket/clock/world_time")
            .and_then(Value::as_str);
        let time = time.map(|time| format!("; the world's time is {}", date_text(time)));
        return app
            .out
            .line(format!("nothing new{}", time.unwrap_or_default()));
    }
    shown
        .iter()
        .try_for_each(|entry| print_entry(entry, &cast, &mut app.out))
}

async fn speak(http: &mut Http, args: &Args, body: &Value) -> Result<(Written, Cast)> {
    let cast = Cast::of(http, &args.world).await?;
    let written = http
        .write(Call::post(path(&args.world, "/invocations"), body))
        .await?;
    Ok((written, cast))
}

fn body(args: &Args, request: &str) -> Value {
    let mut body = envelope(request, &args.text);
    let pause = if args.pause {
        Some(true)
    } else {
        args.resume.then_some(false)
    };
    if args.time.is_some() || args.timezone.is_some() || pause.is_some() {
        body["declared_overrides"] = json!({
            "time": { "declared_world_time": args.time, "timezone": args.timezone },
            "pause_time": pause,
        });
    }
    body
}
