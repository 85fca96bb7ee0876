//! `turnkeep run export`, `import` and `record`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hyper::StatusCode;
use hyper::body::Body as _;
use serde_json::json;
use turnkeep_wire::runs::RunAnswer;

use super::client::{RunsClient, ServerAnswer, run_path};
use super::names::RunName;
use crate::commands::App;
use crate::download::Destination;
use crate::failure::Failure;
use crate::http::{Call, HttpRefusal};
use crate::output::{Style, bytes_text};
use crate::progress::bytes_bar;
use crate::render::run_text::title_text;
use crate::session::read_input;

/// Write a run with its events, files and patches to one zip file
///
/// Unpack it and open index.html to read the run without a server. `turnkeep run import` makes the
/// same run of it elsewhere. It has everything that the agents read and wrote, secrets too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run export @last
  turnkeep run export 3f2a -o refund.zip
  turnkeep run export 3f2a -o refund.zip --force
  turnkeep run export 3f2a -o - | ssh host turnkeep run import -")]
pub(crate) struct RunExportArgs {
    /// The run: its id, a unique head of its id, or @last
    run: RunName,
    /// The file to write, or - for standard output [default: run-ID.zip]
    #[arg(short, long, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Read a run from a file that `turnkeep run export` wrote
///
/// The run keeps its id and its events. It is paused; look at its settings before you resume it:
/// its agents work with the rights and in the directory that the file names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run import run.zip --cwd .
  turnkeep run import run.zip --copy     # beside the run that it was exported from")]
pub(crate) struct RunImportArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Give the run a new id
    #[arg(long)]
    copy: bool,
    /// The directory in which the run goes on [default: the same path as before]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// Write what a run's programs said as a script for the scripted agent
///
/// The script replays the run without a model and without tokens: make turnkeep-agent-script the
/// command of a provider, with the arguments --script FILE, create the same nodes and send the same
/// messages. docs/providers.md has an example.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run record @last script.toml")]
pub(crate) struct RunRecordArgs {
    /// The run: its id, a unique head of its id, or @last
    run: RunName,
    /// The file to write, or - for standard output
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// A file that the server makes from a run.
struct Download<'a> {
    run: &'a RunName,
    /// The route of the run.
    tail: &'static str,
    what: &'static str,
    /// By default it is named after the run.
    file: Option<&'a Path>,
    force: bool,
}

pub(super) async fn run_run_export(args: &RunExportArgs, app: &mut App) -> Result<()> {
    let download = Download {
        run: &args.run,
        tail: "/export",
        what: "exporting",
        file: args.output.as_deref(),
        force: args.force,
    };
    // A script, on the other hand, is text.
    if args.output.as_deref() == Some(Path::new("-")) {
        app.out.refuse_terminal()?;
    }
    download.save(app).await
}

pub(super) async fn run_run_record(args: &RunRecordArgs, app: &mut App) -> Result<()> {
    let download = Download {
        run: &args.run,
        tail: "/record",
        what: "recording",
        file: Some(&args.file),
        force: args.force,
    };
    download.save(app).await
}

impl Download<'_> {
    async fn save(&self, app: &mut App) -> Result<()> {
        let mut client = RunsClient::connect(app).await?;
        let run = client.find_run(Some(self.run)).await?;
        let path = match self.file {
            Some(file) => file.to_owned(),
            None => PathBuf::from(format!("run-{}.zip", head_of(&run))),
        };
        let destination = Destination::new(&path, self.force);
        // Before the server makes the archive, which may take long.
        destination.refuse_taken_name()?;
        let call = Call::get(run_path(&run, self.tail));
        let body = client.http().open(call).await?.into_body();
        let bar = bytes_bar(self.what, body.size_hint().exact(), app.out.is_json());
        let saved = destination.save(body, &bar, &mut app.out).await;
        bar.finish_and_clear();
        let bytes = saved?;
        if destination.file().is_none() {
            return Ok(());
        }
        if app.out.is_json() {
            return app.out.json(&json!({ "file": path, "bytes": bytes }));
        }
        app.out
            .line(format!("wrote {} to {}", bytes_text(bytes), path.display()))
    }
}

/// The part of a run's id that people type.
fn head_of(run: &str) -> &str {
    run.split('-').next().unwrap_or(run)
}

pub(super) async fn run_run_import(args: &RunImportArgs, app: &mut App) -> Result<()> {
    let bytes = read_input(&args.file)?;
    let mut client = RunsClient::connect(app).await?;
    let mut call = Call::post_file("/api/runs/import", "application/zip", bytes.into());
    if args.copy {
        call = call.query("copy", 1);
    }
    if let Some(cwd) = &args.cwd {
        let cwd = cwd
            .canonicalize()
            .with_context(|| format!("cannot use {}", cwd.display()))?;
        call = call.query("cwd", cwd.display());
    }
    let imported: ServerAnswer<RunAnswer> = match client.fetch(call).await {
        Err(error) if is_conflict(&error) => {
            return Failure::new(
                "this server has the run already, or had it before it was deleted",
            )
            .hint("import it under a new id with --copy")
            .fail();
        }
        answer => answer?,
    };
    if app.out.is_json() {
        return app.out.json(&imported.json);
    }
    let run = imported.view.run;
    let short = client.known_runs().await?.short_id(&run.id.0);
    let short_id = app.out.paint(Style::Id, &short);
    let title = title_text(&run.title, run.goal.as_deref());
    let status = run.status.word();
    app.out.line(format!("run {short_id}: {title}, {status}"))?;
    app.out
        .line(format!("`turnkeep run show {short}` shows it"))
}

fn is_conflict(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<HttpRefusal>();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::CONFLICT)
}
