//! `turnkeep export`: writes the whole store to one file.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use crate::download::{BrokenAnswer, Destination};
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::output::bytes_text;
use crate::progress::bytes_bar;
use crate::session::{Need, StoreSession, with_store};

/// Write the whole store to one portable file
///
/// Works while the server runs, as a hot backup: the file holds everything that was acknowledged
/// before the export began. The file appears under its name only when it is complete, and only its
/// owner may read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep export backup.turnkeep
  turnkeep export - | zstd > backup.turnkeep.zst
  turnkeep --server https://store.example.org:9010 --tls-ca ca.pem export backup.turnkeep")]
pub(crate) struct ExportArgs {
    /// Where to write: a file that is not there yet, or - for standard output
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Replace the file if it is there; a symbolic link is replaced, not followed
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run_export(args: &ExportArgs, app: &mut App) -> Result<()> {
    let destination = Destination::new(&args.file, args.force);
    // Before the store is opened: reading it for nothing may take long.
    destination.refuse_taken_name()?;
    if destination.file().is_none() {
        app.out.refuse_terminal()?;
    }
    let config = app.config()?;
    let export =
        async |session: &mut StoreSession| export_store(&mut session.http, destination, app).await;
    let bytes = with_store(&config, Need::Read, export).await?;
    let Some(file) = destination.file() else {
        return Ok(());
    };
    if app.out.is_json() {
        return app.out.json(&json!({ "file": file, "bytes": bytes }));
    }
    let (size, file) = (bytes_text(bytes), file.display());
    app.out.line(format!("exported {size} to {file}"))
}

async fn export_store(http: &mut Http, destination: Destination<'_>, app: &mut App) -> Result<u64> {
    // Only for the progress bar. The export's length is not known before its end.
    let stats = http.json(Call::get("/v1/stats")).await?;
    let log_bytes = stats.get("log_bytes").and_then(Value::as_u64);
    let bar = bytes_bar("exporting", log_bytes, app.out.is_json());
    let body = http.open(Call::get("/v1/export")).await?.into_body();
    let saved = destination.save(body, &bar, &mut app.out).await;
    bar.finish_and_clear();
    saved.map_err(explain_broken_export)
}

/// The server ends an export early where the log is damaged.
fn explain_broken_export(error: anyhow::Error) -> anyhow::Error {
    let Some(broken) = error.downcast_ref::<BrokenAnswer>() else {
        return error;
    };
    Failure::new(broken.to_string())
        .hint("`turnkeep verify` tells whether the log is damaged; damaged frames are not exported")
        .into()
}
