//! `--follow`: the newest turns, then every append as it happens.
//!
//! The stream of events is opened before the newest turns are read, so nothing falls between; what
//! was shown already is recognised by its id. A lost stream is opened again after the last event.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use turnkeep_types::TurnId;

use super::super::App;
use super::super::show::fetch_turn;
use super::{Args, Printer, View, page};
use crate::http::{Call, EventStream, Http};
use crate::render::turn::{ShownTurn, text_of};

const NEWEST_TURNS: u64 = 10;
/// Tries to open a lost stream again, and the pause between them.
const TRIES_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn show(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let context = args.context.0.to_string();
    let mut stream = open(http, &context, None).await?;
    let mut printer = Printer::new(args.oneline);
    let mut last_shown = 0;
    let newest = page(http, View::of(&app.out), &context, None, args.limit.unwrap_or(NEWEST_TURNS)).await?;
    for turn in &newest.turns {
        last_shown = number(turn).max(last_shown);
        printer.turn(&ShownTurn { turn, heads: &[] }, None, &mut app.out)?;
    }
    app.out.flush()?;
    let mut position = None;
    loop {
        let Some(event) = stream.next().await? else {
            stream = reopen(http, &context, position.clone()).await?;
            continue;
        };
        if !event.id.is_empty() {
            position = Some(event.id);
        }
        let appended: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if event.kind != "turn.appended" || number(&appended) <= last_shown {
            continue;
        }
        last_shown = number(&appended);
        let turn = fetch_turn(http, text_of(&appended, "turn_id")).await?;
        printer.turn(&ShownTurn { turn: &turn, heads: &[] }, None, &mut app.out)?;
        app.out.flush()?;
    }
}

fn number(turn: &Value) -> u64 {
    text_of(turn, "turn_id").parse().map_or(0, TurnId::get)
}

/// Opens the stream on a connection of its own, which it keeps busy.
async fn open(http: &Http, context: &str, after: Option<String>) -> Result<EventStream> {
    let mut call = Call::get(format!("/v1/contexts/{context}/events"));
    if let Some(after) = after {
        call = call.query("after", after);
    }
    let response = Http::new(http.target().clone()).open(call).await?;
    Ok(EventStream::new(response.into_body()))
}

async fn reopen(http: &Http, context: &str, after: Option<String>) -> Result<EventStream> {
    let mut tries = 0;
    loop {
        match open(http, context, after.clone()).await {
            Err(error) if tries < TRIES_MAX => {
                tracing::warn!(%error, "the stream of events was lost");
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}
