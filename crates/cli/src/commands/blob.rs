//! `turnkeep blob`: bytes by their hash.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use clap::Subcommand;
use serde_json::json;
use turnkeep_types::BlobHash;

use super::App;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::names::{BlobName, find_blob};
use crate::session::{Need, Session, read_input};

/// Keep bytes and get them back by their hash
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep blob put picture.png
  turnkeep blob get af1349b9 --output picture.png")]
pub(crate) enum Command {
    Put(PutArgs),
    Get(GetArgs),
}

/// Keep a file's bytes; prints their hash
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep blob put picture.png
  tar c src | turnkeep blob put -")]
pub(crate) struct PutArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

/// Write a blob's bytes to standard output or to a file
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep blob get af1349b9 > picture.png
  turnkeep blob get blob:af1349b9 --output picture.png")]
pub(crate) struct GetArgs {
    /// The blob: the digits of its hash that make it unique, with or without blob:
    #[arg(value_name = "HASH")]
    blob: BlobName,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(command: &Command, app: &mut App) -> Result<()> {
    let need = if matches!(command, Command::Put(_)) {
        Need::Write
    } else {
        Need::Read
    };
    let mut session = Session::open(&app.config()?, need).await?;
    let done = match command {
        Command::Put(args) => put(&mut session.http, &args.file, app).await,
        Command::Get(args) => get(&mut session.http, args, app).await,
    };
    session.close().await;
    done
}

async fn put(http: &mut Http, file: &Path, app: &mut App) -> Result<()> {
    let bytes = Bytes::from(read_input(file)?);
    let hash = BlobHash::of(&bytes);
    let ack = http
        .json(Call::put(
            format!("/v1/blobs/{hash}"),
            "application/octet-stream",
            bytes,
        ))
        .await?;
    if app.out.is_json() {
        app.out.json(&ack)
    } else {
        app.out.line(hash.to_string())
    }
}

async fn get(http: &mut Http, args: &GetArgs, app: &mut App) -> Result<()> {
    let hash = find_blob(http, &args.blob.0).await?;
    let (_, bytes) = http.bytes(Call::get(format!("/v1/blobs/{hash}"))).await?;
    if BlobHash::of(&bytes) != hash {
        let failure = Failure::new(format!("the bytes that came are not blob {hash}"));
        return Err(failure
            .hint("check the store with `turnkeep verify`")
            .into());
    }
    if let Some(path) = &args.output {
        std::fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if app.out.is_json() {
        let mut line = json!({ "hash": hash.to_string(), "bytes": bytes.len() });
        match &args.output {
            Some(path) => line["file"] = json!(path),
            None => line["data_b64"] = BASE64_STANDARD.encode(&bytes).into(),
        }
        return app.out.json(&line);
    }
    match &args.output {
        Some(_) => Ok(()),
        None if std::str::from_utf8(&bytes).is_ok() => app.out.bytes(&bytes),
        None => app
            .out
            .refuse_terminal()
            .and_then(|()| app.out.bytes(&bytes)),
    }
}
