//! `--follow`: shows the newest turns, then every append as it happens.
//!
//! The stream of events starts at a position that is fetched before the newest turns are, so no
//! turn is missed. A turn that was already shown is recognised by its id. A broken stream is opened
//! again after the last event, or after that first position.

use anyhow::{Context, Result};
use serde_json::Value;
use turnkeep_types::TurnId;

use super::super::App;
use super::super::show::fetch_turn;
use super::{LogArgs, PageView, TurnPrinter, fetch_page};
use crate::answer::text_of;
use crate::http::{Call, EventStream, Http};
use crate::output::Output;
use crate::render::turn::ShownTurn;

const NEWEST_TURNS: u64 = 10;

pub(super) async fn follow_context(http: &mut Http, args: &LogArgs, app: &mut App) -> Result<()> {
    let context = args.context.0.to_string();
    // The position comes first: an append between the two requests is then in the stream, and
    // perhaps also on the page, but never in neither.
    let mut position = end_of_feed(http).await?;
    let mut stream = EventStream::open(http, events_after(&context, &position)).await?;
    let mut follower = Follower {
        printer: TurnPrinter::new(args.oneline),
        last_shown: 0,
    };
    let view = PageView::for_output(&app.out);
    let limit = args.limit.unwrap_or(NEWEST_TURNS);
    for turn in &fetch_page(http, view, &context, None, limit).await?.turns {
        follower.print_turn(turn, &mut app.out)?;
    }
    loop {
        // A person or a program waits for each turn, so none may stay in the buffer.
        app.out.flush()?;
        let Some(event) = stream.next().await? else {
            stream = EventStream::reopen(http, || events_after(&context, &position)).await?;
            continue;
        };
        if event.kind == "turn.appended" {
            follower.show_appended(&event.data, http, app).await?;
        }
        // A notice such as "you were too slow" has no position of its own.
        if !event.id.is_empty() {
            position = event.id;
        }
    }
}

/// Prints turns and remembers the newest, because the first page and the stream may overlap.
struct Follower {
    printer: TurnPrinter,
    last_shown: u64,
}

impl Follower {
    /// Shows the turn that an event announces, unless the first page had it.
    async fn show_appended(&mut self, event: &str, http: &mut Http, app: &mut App) -> Result<()> {
        let appended: Value = serde_json::from_str(event).unwrap_or_default();
        if turn_number(&appended) <= self.last_shown {
            return Ok(());
        }
        // The event has the turn's ids only, not its content.
        let turn = fetch_turn(http, text_of(&appended, "turn_id")).await?;
        self.print_turn(&turn, &mut app.out)
    }

    fn print_turn(&mut self, turn: &Value, out: &mut Output) -> Result<()> {
        self.last_shown = self.last_shown.max(turn_number(turn));
        let shown = ShownTurn { turn, heads: &[] };
        self.printer.print_turn(&shown, None, out)
    }
}

fn turn_number(turn: &Value) -> u64 {
    text_of(turn, "turn_id").parse().map_or(0, TurnId::get)
}

/// The position of the store's last event.
async fn end_of_feed(http: &mut Http) -> Result<String> {
    let stats = http.json(Call::get("/v1/stats")).await?;
    let events = stats.get("events").and_then(Value::as_u64);
    Ok(events
        .context("the server does not say how many events it has")?
        .to_string())
}

/// The events of a context after a position.
fn events_after(context: &str, after: &str) -> Call {
    Call::get(format!("/v1/contexts/{context}/events")).query("after", after)
}
