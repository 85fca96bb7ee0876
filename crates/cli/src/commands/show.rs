//! `turnkeep show`: shows one object, named by its reference.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_types::{BlobHash, TurnId};

use super::{App, ctx, turn};
use crate::http::{Call, Http, HttpRefusal};
use crate::names::{Reference, find_blob, parse_any};
use crate::output::bytes_text;
use crate::render::turn::ShownTurn;
use crate::render::{msgpack, printable};
use crate::session::{Need, StoreSession, with_store};

/// Show a context, a turn, a blob or a captured turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep show turn:345
  turnkeep show ctx:12 --json
  turnkeep show blob:af1349b9   # the digits of its hash that make it unique
  turnkeep show @last           # the latest captured turn")]
pub(crate) struct ShowArgs {
    /// What to show: ctx:N, turn:N, blob:HASH, or a captured turn as SESSION or SESSION:N
    #[arg(value_name = "REF", value_parser = parse_any)]
    object: Reference,
}

pub(crate) async fn run_show(args: &ShowArgs, app: &mut App) -> Result<()> {
    if let Reference::CapturedTurn(name) = &args.object {
        return turn::show_turn(name, app);
    }
    let config = app.config()?;
    let show =
        async |session: &mut StoreSession| show_stored(&mut session.http, &args.object, app).await;
    with_store(&config, Need::Read, show).await
}

async fn show_stored(http: &mut Http, object: &Reference, app: &mut App) -> Result<()> {
    match object {
        Reference::Context(id) => show_context(http, &id.to_string(), app).await,
        Reference::Turn(id) => show_turn(http, *id, app).await,
        Reference::Blob(prefix) => {
            let hash = find_blob(http, prefix).await?;
            show_blob(http, hash, app).await
        }
        // These live in the broker and were handled before the store was opened.
        Reference::Session(_) | Reference::CapturedTurn(_) => Ok(()),
    }
}

async fn show_context(http: &mut Http, id: &str, app: &mut App) -> Result<()> {
    let context = http.json(Call::get(format!("/v1/contexts/{id}"))).await?;
    ctx::print_context(&context, app)
}

async fn show_turn(http: &mut Http, id: TurnId, app: &mut App) -> Result<()> {
    let turn = fetch_turn(http, &id.to_string()).await?;
    if app.out.is_json() {
        return app.out.json(&turn);
    }
    let block = ShownTurn {
        turn: &turn,
        heads: &[],
    }
    .block_lines(&app.out);
    block.iter().try_for_each(|line| app.out.line(line))
}

/// Fetches a turn with its typed view, or only with its bytes where the projection fails: a turn
/// that cannot be projected can still be shown.
pub(super) async fn fetch_turn(http: &mut Http, id: &str) -> Result<Value> {
    let call = |view: &str| Call::get(format!("/v1/turns/{id}")).query("view", view);
    let typed = http.json(call("both").query("include_unknown", 1)).await;
    match typed {
        Err(error) if projection_failed(&error) => http.json(call("raw")).await,
        other => other,
    }
}

/// Whether the server could not make the typed view: the payload does not fit its type, the type is
/// not published, or the payload is damaged.
fn projection_failed(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<HttpRefusal>();
    refused.is_some_and(|refused| matches!(refused.status.as_u16(), 422 | 424 | 500))
}

async fn show_blob(http: &mut Http, hash: BlobHash, app: &mut App) -> Result<()> {
    let (_, bytes) = http.bytes(Call::get(format!("/v1/blobs/{hash}"))).await?;
    let (hash, length) = (hash.to_string(), bytes.len());
    if app.out.is_json() {
        let line = json!({ "content_hash_b3": hash, "uncompressed_len": length });
        return app.out.json(&line);
    }
    let length = bytes_text(length as u64);
    app.out.pairs(&[("Blob", hash), ("Length", length)])?;
    app.out.line("")?;
    for line in content_lines(&bytes) {
        app.out.line(format!("    {line}"))?;
    }
    Ok(())
}

fn content_lines(bytes: &[u8]) -> Vec<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if looks_like_text(text) => text.lines().map(printable).collect(),
        _ => vec![msgpack::show_payload(bytes)],
    }
}

/// Whether a person would call it text. UTF-8 alone does not prove that: short msgpack is often
/// valid UTF-8 by accident.
fn looks_like_text(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r'))
}
