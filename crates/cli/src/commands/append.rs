//! `turnkeep append`: appends one turn to a context.

use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_types::{TurnId, TypeRef};

use super::App;
use super::registry::bundle_path;
use crate::answer::{number_of, text_of};
use crate::failure::Failure;
use crate::http::{Call, Http, Written};
use crate::names::{BlobName, ContextName, HeadName, TurnName, find_blob};
use crate::output::Style;
use crate::session::{Need, StoreSession, input_name, read_input, with_store};

/// Append a turn to a context
///
/// With --data the turn is JSON by field names, which the registry's type turns into msgpack. With
/// --msgpack the bytes are kept as they are, whether the type is known or not. When the command
/// returns, the turn is durable. The type turnkeep.Note@1, with a text and perhaps a role, is
/// published when it is first used; others are published with `turnkeep registry put`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  echo '{\"text\":\"hi\"}' | turnkeep append 1 --type turnkeep.Note@1 --data -
  turnkeep append ctx:1 --type com.example.Message@1 --data message.json --key step-17
  turnkeep append 1 --type com.example.Blob@1 --msgpack payload.bin --expected-head turn:41
  turnkeep append 1 --type com.example.Message@1 --data message.json --parent turn:7   (branches in place)

Here --data is the turn's. The data directory's --data goes before the command, as in
`turnkeep --data DIR append …`, or into TURNKEEP_DATA.")]
pub(crate) struct AppendArgs {
    /// The context
    context: ContextName,
    /// The turn's type and version
    #[arg(long = "type", value_name = "TYPE@VERSION")]
    declared: Option<TypeRef>,
    #[command(flatten)]
    payload: PayloadArgs,
    /// Append onto this turn instead of the head
    #[arg(long, value_name = "TURN")]
    parent: Option<TurnName>,
    /// Refuse unless this turn is the head; 0: unless the context is empty
    #[arg(long, value_name = "TURN")]
    expected_head: Option<HeadName>,
    /// Idempotency key: the same key again gives the same turn
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Accept --data that lacks fields which its type does not mark optional
    #[arg(long, requires = "data", conflicts_with = "msgpack")]
    allow_missing: bool,
    /// Blob that is the root of a filesystem tree
    #[arg(long, value_name = "HASH")]
    fs_root: Option<BlobName>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct PayloadArgs {
    /// JSON by field names: a file, or - for standard input
    #[arg(long, value_name = "FILE|-", requires = "declared")]
    data: Option<PathBuf>,
    /// Msgpack bytes: a file, or - for standard input
    #[arg(long, value_name = "FILE|-")]
    msgpack: Option<PathBuf>,
}

pub(crate) async fn run_append(args: &AppendArgs, app: &mut App) -> Result<()> {
    // The input is read before a store is opened: a missing file must not leave a new store behind.
    let body = request_body(args)?;
    let append =
        async |session: &mut StoreSession| append_turn(&mut session.http, args, body).await;
    let written = with_store(&app.config()?, Need::Write, append).await?;
    if app.out.is_json() {
        return app.out.json(&written.answer);
    }
    print_ack(args, &written, app)
}

fn print_ack(args: &AppendArgs, written: &Written, app: &mut App) -> Result<()> {
    let ack = &written.answer;
    let turn = format!("turn:{}", text_of(ack, "turn_id"));
    let turn = app.out.paint(Style::Id, &turn);
    let depth = number_of(ack, "depth");
    let done = if written.replayed {
        "already appended"
    } else {
        "appended"
    };
    let context = args.context.0;
    app.out
        .line(format!("{done} {turn} to ctx:{context}, depth {depth}"))
}

async fn append_turn(http: &mut Http, args: &AppendArgs, mut body: Value) -> Result<Written> {
    if let Some(root) = &args.fs_root {
        body["fs_root_hash"] = find_blob(http, &root.0).await?.to_string().into();
    }
    // Only JSON needs the type. Msgpack is stored whether its type is known or not.
    if args.payload.data.is_some() && args.declared.as_ref().is_some_and(is_note) {
        http.bytes(publish_note()).await?;
    }
    let path = format!("/v1/contexts/{}/turns", args.context.0);
    http.write(Call::post(path, &body)).await
}

/// A type for first steps: a newcomer can append without publishing a bundle first.
const NOTE_TYPE: &str = "turnkeep.Note";
const NOTE_BUNDLE_ID: &str = "turnkeep.note#1";
const NOTE_BUNDLE: &str = include_str!("append/note.json");

fn is_note(declared: &TypeRef) -> bool {
    &*declared.id == NOTE_TYPE && declared.version == 1
}

/// Publishes the type of notes. Publishing the same bundle again changes nothing.
fn publish_note() -> Call {
    let bundle = Bytes::from_static(NOTE_BUNDLE.as_bytes());
    Call::put(bundle_path(NOTE_BUNDLE_ID), "application/json", bundle)
}

/// The JSON form of the request, without the blob of `--fs-root`, which only the server can resolve.
fn request_body(args: &AppendArgs) -> Result<Value> {
    let mut body = payload_body(&args.payload)?;
    if let Some(declared) = &args.declared {
        body["type_id"] = (&*declared.id).into();
        body["type_version"] = declared.version.into();
    }
    if args.allow_missing {
        body["allow_missing"] = true.into();
    }
    if let Some(parent) = args.parent {
        body["parent_turn_id"] = parent.0.to_string().into();
    }
    if let Some(head) = args.expected_head {
        body["expected_head_turn_id"] = TurnId::to_wire(head.0).to_string().into();
    }
    if let Some(key) = &args.key {
        body["idempotency_key"] = key.as_str().into();
    }
    Ok(body)
}

fn payload_body(payload: &PayloadArgs) -> Result<Value> {
    match (&payload.data, &payload.msgpack) {
        (Some(path), _) => Ok(json!({ "data": read_json(path)? })),
        (None, Some(path)) => {
            Ok(json!({ "payload_b64": BASE64_STANDARD.encode(read_input(path)?) }))
        }
        (None, None) => Err(Failure::usage("nothing to append: give --data or --msgpack").into()),
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = read_input(path)?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(value),
        Err(error) => Failure::new(format!("{} is not JSON: {error}", input_name(path)))
            .hint("--msgpack takes bytes that are not JSON")
            .fail(),
    }
}
