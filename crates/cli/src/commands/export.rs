//! `turnkeep export`: everything, in one file.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::App;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::output::bytes_text;
use crate::progress::bytes_bar;
use crate::session::{Need, Session};

/// Write the whole store to one portable file
///
/// Works while the server runs, as a hot backup: the file holds everything that was acknowledged
/// before the export began. The file appears under its name only when it is complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep export backup.turnkeep
  turnkeep export - | zstd > backup.turnkeep.zst
  turnkeep --server https://store.example.org:9010 --tls-ca ca.pem export backup.turnkeep")]
pub(crate) struct Args {
    /// Where to write: a file that is not there yet, or - for standard output
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let to_stdout = args.file == Path::new("-");
    if !to_stdout && !args.force && args.file.exists() {
        let failure = Failure::new(format!("{} is there already", args.file.display()));
        return Err(failure.hint("choose another name, or replace it with --force").into());
    }
    if to_stdout {
        app.out.refuse_terminal()?;
    }
    let mut session = Session::open(&app.config()?, Need::Read).await?;
    let done = export(&mut session.http, args, to_stdout, app).await;
    session.close().await;
    let bytes = done?;
    if to_stdout {
        return Ok(());
    }
    if app.out.is_json() {
        return app.out.json(&json!({ "file": args.file, "bytes": bytes }));
    }
    app.out.line(format!("exported {} to {}", bytes_text(bytes), args.file.display()))
}

async fn export(http: &mut Http, args: &Args, to_stdout: bool, app: &mut App) -> Result<u64> {
    let stats = http.json(Call::get("/v1/stats")).await?;
    let bar = bytes_bar("exporting", stats.get("log_bytes").and_then(Value::as_u64), app.out.is_json());
    let body = http.open(Call::get("/v1/export")).await?.into_body();
    let copied = if to_stdout {
        copy(body, &bar, |bytes| app.out.bytes(bytes)).await
    } else {
        to_file(body, &bar, &args.file).await
    };
    bar.finish_and_clear();
    copied
}

async fn to_file(body: Incoming, bar: &ProgressBar, path: &Path) -> Result<u64> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let cannot = || format!("cannot write {}", part.display());
    let mut file = File::create(&part).with_context(cannot)?;
    let copied = copy(body, bar, |bytes| file.write_all(bytes).with_context(cannot)).await;
    let done = copied.and_then(|bytes| {
        file.sync_all().with_context(cannot)?;
        fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(bytes)
    });
    if done.is_err() && fs::remove_file(&part).is_err() {
        tracing::warn!(part = %part.display(), "the unfinished file could not be removed");
    }
    done
}

async fn copy(
    mut body: Incoming,
    bar: &ProgressBar,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Failure::new(format!("the export broke off: {error}"))
                .hint("`turnkeep verify` tells whether the log is damaged; damaged frames are not exported")
        })?;
        if let Some(data) = frame.data_ref() {
            write(data)?;
            bytes += data.len() as u64;
            bar.set_position(bytes);
        }
    }
    Ok(bytes)
}
