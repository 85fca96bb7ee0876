//! `turnkeep stream`: what is visible in a world, and what becomes so.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::http::{Call, EventStream, Http};
use crate::ledger::{Cast, acting, entries, path, print_entry};
use crate::session::{Need, Session};

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
    let done = show_stream(&mut session.http, args, app).await;
    session.close().await;
    done
}

async fn show_stream(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let cast = Cast::of(http, &args.world).await?;
    if args.follow {
        follow(http, args, &cast, app).await
    } else {
        pages(http, args, &cast, app).await
    }
}

async fn pages(http: &mut Http, args: &Args, cast: &Cast, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    loop {
        let call = Call::get(path(&args.world, "/stream")).query("audience", 1);
        let mut call = acting(call, args.person.as_deref());
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = http.json(call).await?;
        if entries(&page, "/stream/entries").is_empty() {
            return Ok(());
        }
        show(&page, cast, app)?;
        cursor = cursor_after(&page);
    }
}

fn cursor_after(page: &Value) -> Option<String> {
    page.pointer("/stream/cursor_after")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn show(page: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    for entry in entries(page, "/stream/entries") {
        if app.out.is_json() {
            app.out.json(entry)?;
        } else {
            print_entry(entry, cast, &mut app.out)?;
        }
    }
    app.out.flush()
}

async fn follow(http: &Http, args: &Args, cast: &Cast, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    let mut events = EventStream::open(http, subscription(args, cursor.as_deref())).await?;
    loop {
        let Some(event) = events.next().await? else {
            events = EventStream::reopen(http, || subscription(args, cursor.as_deref())).await?;
            continue;
        };
        if event.kind == "projection" {
            show(
                &serde_json::from_str(&event.data).unwrap_or_default(),
                cast,
                app,
            )?;
            cursor = Some(event.id);
        }
    }
}

/// What becomes visible after a cursor.
fn subscription(args: &Args, cursor: Option<&str>) -> Call {
    let call = acting(
        Call::get(path(&args.world, "/subscribe")).query("audience", 1),
        args.person.as_deref(),
    );
    match cursor {
        Some(cursor) => call.query("cursor", cursor),
        None => call,
    }
}
