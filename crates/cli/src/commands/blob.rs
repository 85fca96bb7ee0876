//! `turnkeep blob`: keeps bytes and returns them by their hash.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use clap::Subcommand;
use serde_json::{Value, json};
use turnkeep_types::BlobHash;

use super::App;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::names::{BlobName, find_blob};
use crate::session::{Need, StoreSession, read_input, with_store};

/// Keep bytes and get them back by their hash
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep blob put picture.png
  turnkeep blob get af1349b9 --output picture.png")]
pub(crate) enum BlobCommand {
    Put(BlobPutArgs),
    Get(BlobGetArgs),
}

/// Keep a file's bytes; prints their hash
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep blob put picture.png
  tar c src | turnkeep blob put -")]
pub(crate) struct BlobPutArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

/// Write a blob's bytes to standard output or to a file
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep blob get af1349b9 > picture.png
  turnkeep blob get blob:af1349b9 --output picture.png")]
pub(crate) struct BlobGetArgs {
    /// The blob: the digits of its hash that make it unique, with or without blob:
    #[arg(value_name = "HASH")]
    blob: BlobName,
    /// Write to this file; - is standard output, as without it
    #[arg(short, long, value_name = "FILE|-")]
    output: Option<PathBuf>,
}

impl BlobGetArgs {
    /// The file; none for standard output.
    fn file(&self) -> Option<&Path> {
        self.output
            .as_deref()
            .filter(|path| *path != Path::new("-"))
    }
}

pub(crate) async fn run_blob(command: &BlobCommand, app: &mut App) -> Result<()> {
    let need = if matches!(command, BlobCommand::Put(_)) {
        Need::Write
    } else {
        Need::Read
    };
    let config = app.config()?;
    let work = async |session: &mut StoreSession| match command {
        BlobCommand::Put(args) => put_blob(&mut session.http, &args.file, app).await,
        BlobCommand::Get(args) => get_blob(&mut session.http, args, app).await,
    };
    with_store(&config, need, work).await
}

async fn put_blob(http: &mut Http, file: &Path, app: &mut App) -> Result<()> {
    let bytes = Bytes::from(read_input(file)?);
    // The client computes the name, so the server can detect a transfer that went wrong.
    let hash = BlobHash::of(&bytes);
    let call = Call::put(blob_path(hash), "application/octet-stream", bytes);
    let ack = http.json(call).await?;
    if app.out.is_json() {
        app.out.json(&ack)
    } else {
        app.out.line(hash.to_string())
    }
}

async fn get_blob(http: &mut Http, args: &BlobGetArgs, app: &mut App) -> Result<()> {
    let hash = find_blob(http, &args.blob.0).await?;
    let bytes = fetch_blob(http, hash).await?;
    if let Some(path) = args.file() {
        std::fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if app.out.is_json() {
        return app.out.json(&blob_json(hash, &bytes, args));
    }
    if args.file().is_some() {
        return Ok(());
    }
    // Text may go to a terminal. Other bytes may hold sequences that command it.
    if std::str::from_utf8(&bytes).is_err() {
        app.out.refuse_terminal()?;
    }
    app.out.bytes(&bytes)
}

fn blob_path(hash: BlobHash) -> String {
    format!("/v1/blobs/{hash}")
}

async fn fetch_blob(http: &mut Http, hash: BlobHash) -> Result<Bytes> {
    let (_, bytes) = http.bytes(Call::get(blob_path(hash))).await?;
    // The server checks the bytes too. This also catches damage on the way and a wrong server.
    if BlobHash::of(&bytes) != hash {
        let message = format!("the server sent other bytes than those of blob {hash}");
        return Failure::new(message)
            .hint("check the store with `turnkeep verify`")
            .fail();
    }
    Ok(bytes)
}

fn blob_json(hash: BlobHash, bytes: &[u8], args: &BlobGetArgs) -> Value {
    let mut line = json!({ "hash": hash.to_string(), "bytes": bytes.len() });
    match args.file() {
        Some(path) => line["file"] = json!(path),
        None => line["data_b64"] = BASE64_STANDARD.encode(bytes).into(),
    }
    line
}
