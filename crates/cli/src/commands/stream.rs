//! `turnkeep stream`: shows the entries that a person may see, and those that become visible.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::answer::{list_at, text_at};
use crate::http::{Call, EventStream, Http};
use crate::ledger::{Cast, call_as, print_entry, world_path};
use crate::session::{Need, StoreSession};

/// Show the stream of a world
///
/// It shows what the operator may see or, with --as, exactly what that person may see.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep stream payments
  turnkeep stream payments --as CODER --follow
  turnkeep stream payments --json | jq -r .text")]
pub(crate) struct StreamArgs {
    /// The world
    world: String,
    /// Read as this person
    #[arg(long = "as", value_name = "PERSON")]
    person: Option<String>,
    /// Start after this cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Keep printing new entries
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run_stream(args: &StreamArgs, app: &mut App) -> Result<()> {
    let config = app.config()?;
    // A command that waits for news must not hold the lock that others need to write them.
    let mut session = if args.follow {
        StoreSession::open_served(&config).await?
    } else {
        StoreSession::open(&config, Need::Read).await?
    };
    let done = show_stream(&mut session.http, args, app).await;
    session.close().await;
    done
}

async fn show_stream(http: &mut Http, args: &StreamArgs, app: &mut App) -> Result<()> {
    let cast = Cast::load(http, &args.world).await?;
    if args.follow {
        follow_stream(http, args, &cast, app).await
    } else {
        show_pages(http, args, &cast, app).await
    }
}

async fn show_pages(http: &mut Http, args: &StreamArgs, cast: &Cast, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    loop {
        let call = Call::get(world_path(&args.world, "/stream"))
            .query("audience", 1)
            .query_if("cursor", cursor.as_ref());
        let call = call_as(call, args.person.as_deref());
        let page = http.json(call).await?;
        if list_at(&page, "/stream/entries").is_empty() {
            return Ok(());
        }
        show_page(&page, cast, app)?;
        cursor = text_at(&page, "/stream/cursor_after");
    }
}

fn show_page(page: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    for entry in list_at(page, "/stream/entries") {
        if app.out.is_json() {
            app.out.json(entry)?;
        } else {
            print_entry(entry, cast, &mut app.out)?;
        }
    }
    app.out.flush()
}

async fn follow_stream(http: &Http, args: &StreamArgs, cast: &Cast, app: &mut App) -> Result<()> {
    let mut cursor = args.cursor.clone();
    let mut events = EventStream::open(http, subscribe_call(args, cursor.as_deref())).await?;
    loop {
        let Some(event) = events.next().await? else {
            events = EventStream::reopen(http, || subscribe_call(args, cursor.as_deref())).await?;
            continue;
        };
        if event.kind == "projection" {
            let page = serde_json::from_str(&event.data).unwrap_or_default();
            show_page(&page, cast, app)?;
            cursor = Some(event.id);
        }
    }
}

/// Subscribes to the entries after a cursor.
fn subscribe_call(args: &StreamArgs, cursor: Option<&str>) -> Call {
    let call = Call::get(world_path(&args.world, "/subscribe"))
        .query("audience", 1)
        .query_if("cursor", cursor);
    call_as(call, args.person.as_deref())
}
