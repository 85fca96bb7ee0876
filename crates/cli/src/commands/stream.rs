//! `turnkeep stream`: what is visible in a world, and what becomes so.

use std::time::Duration;

use anyhow::Result;
use hyper::StatusCode;
use serde_json::Value;

use super::App;
use crate::http::{Call, EventStream, Http, Refused};
use crate::ledger::{acting, entries, path, print_entry};
use crate::session::{Need, Session};

/// Tries to open a lost stream again, and the pause between them.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

/// Show the stream of a world
///
/// It shows what the operator may see or, with --as, exactly what that person may see.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep stream payments
  turnkeep stream payments --as CODER --follow
  turnkeep stream payments --json | jq -r .text")]
pub(crate) struct Args {
    /// The world
    world: String,
    /// With whose eyes
    #[arg(long = "as", value_name = "PERSON")]
    person: Option<String>,
    /// Start behind this cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Go on as it grows
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut session = if args.follow {
        Session::served(&config).await?
    } else {
        Session::open(&config, Need::Read).await?
    };
    let done = if args.follow {
        follow(&session.http, args, app).await
    } else {
        pages(&mut session.http, args, app).await
    };
    session.close().await;
    done
}

async fn pages(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    loop {
        let mut call = acting(Call::get(path(&args.world, "/stream")), args.person.as_deref());
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = http.json(call).await?;
        if entries(&page, "/stream/entries").is_empty() {
            return Ok(());
        }
        show(&page, app)?;
        cursor = cursor_after(&page);
    }
}

fn cursor_after(page: &Value) -> Option<String> {
    page.pointer("/stream/cursor_after").and_then(Value::as_str).map(str::to_owned)
}

fn show(page: &Value, app: &mut App) -> Result<()> {
    for entry in entries(page, "/stream/entries") {
        if app.out.is_json() {
            app.out.json(entry)?;
        } else {
            print_entry(entry, &mut app.out)?;
        }
    }
    app.out.flush()
}

async fn follow(http: &Http, args: &Args, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    let mut events = open(http, args, cursor.as_deref()).await?;
    loop {
        let Some(event) = events.next().await? else {
            events = reopen(http, args, cursor.as_deref()).await?;
            continue;
        };
        if event.kind == "projection" {
            show(&serde_json::from_str(&event.data).unwrap_or_default(), app)?;
            cursor = Some(event.id);
        }
    }
}

/// Opens the stream on a connection of its own, which it keeps busy.
async fn open(http: &Http, args: &Args, cursor: Option<&str>) -> Result<EventStream> {
    let mut call = acting(Call::get(path(&args.world, "/subscribe")), args.person.as_deref());
    if let Some(cursor) = cursor {
        call = call.query("cursor", cursor);
    }
    let response = Http::new(http.target().clone()).open(call).await?;
    Ok(EventStream::new(response.into_body()))
}

async fn reopen(http: &Http, args: &Args, cursor: Option<&str>) -> Result<EventStream> {
    let mut tries = 0;
    loop {
        match open(http, args, cursor).await {
            Err(error) if tries < TRIES_MAX && may_pass(&error) => {
                tracing::warn!(%error, "the stream was lost");
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
