//! `--follow`: the newest turns, then every append as it happens.
//!
//! The stream of events starts at a position that is asked for before the newest turns are read, so
//! nothing falls between; what was shown already is recognised by its id. A lost stream is opened
//! again after the last event, or after that first position.

use anyhow::{Context, Result};
use serde_json::Value;
use turnkeep_types::TurnId;

use super::super::App;
use super::super::show::fetch_turn;
use super::{Args, Printer, View, page};
use crate::http::{Call, EventStream, Http};
use crate::render::turn::{ShownTurn, text_of};

const NEWEST_TURNS: u64 = 10;

pub(super) async fn show(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let context = args.context.0.to_string();
    let mut position = end_of_feed(http).await?;
    let mut stream = EventStream::open(http, events(&context, &position)).await?;
    let mut printer = Printer::new(args.oneline);
    let mut last_shown = 0;
    let newest = page(
        http,
        View::of(&app.out),
        &context,
        None,
        args.limit.unwrap_or(NEWEST_TURNS),
    )
    .await?;
    for turn in &newest.turns {
        last_shown = number(turn).max(last_shown);
        printer.turn(&ShownTurn { turn, heads: &[] }, None, &mut app.out)?;
    }
    app.out.flush()?;
    loop {
        let Some(event) = stream.next().await? else {
            stream = EventStream::reopen(http, || events(&context, &position)).await?;
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
        printer.turn(
            &ShownTurn {
                turn: &turn,
                heads: &[],
            },
            None,
            &mut app.out,
        )?;
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
    Ok(events
        .context("the server does not say how many events it has")?
        .to_string())
}

/// The events of a context after a position.
fn events(context: &str, after: &str) -> Call {
    Call::get(format!("/v1/contexts/{context}/events")).query("after", after)
}
