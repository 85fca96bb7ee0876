//! `--follow`: the newest turns, then every append as it happens.
//!
//! The stream of events starts at a position that is asked for before the newest turns are read, so
//! nothing falls between; what was shown already is recognised by its id. A lost stream is opened
//! again after the last event, or after that first position.

use std::time::Duration;

use anyhow::{Context, Result};
use hyper::StatusCode;
use serde_json::Value;
use turnkeep_types::TurnId;

use super::super::App;
use super::super::show::fetch_turn;
use super::{Args, Printer, View, page};
use crate::http::{Call, EventStream, Http, Refused};
use crate::render::turn::{ShownTurn, text_of};

const NEWEST_TURNS: u64 = 10;
/// Tries to open a lost stream again, and the pause between them: a server that restarts may have to
/// read its log.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn show(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let context = args.context.0.to_string();
    let mut position = end_of_feed(http).await?;
    let mut stream = open(http, &context, &position).await?;
    let mut printer = Printer::new(args.oneline);
    let mut last_shown = 0;
    let newest = page(http, View::of(&app.out), &context, None, args.limit.unwrap_or(NEWEST_TURNS)).await?;
    for turn in &newest.turns {
        last_shown = number(turn).max(last_shown);
        printer.turn(&ShownTurn { turn, heads: &[] }, None, &mut app.out)?;
    }
    app.out.flush()?;
    loop {
        let Some(event) = stream.next().await? else {
            stream = reopen(http, &context, &position).await?;
            continue;
        };
        if !event.id.is_empty() {
            position = event.id;
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

/// The position of the last event that there is now.
async fn end_of_feed(http: &mut Http) -> Result<String> {
    let stats = http.json(Call::get("/v1/stats")).await?;
    let events = stats.get("events").and_then(Value::as_u64);
    Ok(events.context("the server does not say how many events it has")?.to_string())
}

/// Opens the stream on a connection of its own, which it keeps busy.
async fn open(http: &Http, context: &str, after: &str) -> Result<EventStream> {
    let call = Call::get(format!("/v1/contexts/{context}/events")).query("after", after);
    let response = Http::new(http.target().clone()).open(call).await?;
    Ok(EventStream::new(response.into_body()))
}

async fn reopen(http: &Http, context: &str, after: &str) -> Result<EventStream> {
    let mut tries = 0;
    loop {
        match open(http, context, after).await {
            Err(error) if tries < TRIES_MAX && may_pass(&error) => {
                tracing::warn!(%error, "the stream of events was lost");
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Whether trying again may help: nobody answered, or whoever did said "later".
fn may_pass(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    refused.is_none_or(|refused| {
        matches!(refused.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    })
}
