//! `turnkeep run export`, `import` and `record`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body as _;
use serde_json::json;
use turnkeep_wire::runs::RunAnswer;

use super::client::{RunsClient, ServerAnswer, run_path};
use super::names::RunName;
use crate::commands::App;
use crate::failure::Failure;
use crate::http::{Call, HttpRefusal};
use crate::output::{Style, bytes_text};
use crate::progress::bytes_bar;
use crate::render::run_text::one_line;
use crate::session::read_input;

/// Transcripts may hold secrets: only their owner may read the file.
const PRIVATE_MODE: u32 = 0o600;

/// Write a run with its events, files and patches to one zip file
///
/// Unpack it and open index.html to read the run without a server. `turnkeep run import` makes the
/// same run of it elsewhere. It has everything that the agents read and wrote, secrets too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run export @last
  turnkeep run export 3f2a -o refund.zip
  turnkeep run export 3f2a -o refund.zip --force")]
pub(crate) struct RunExportArgs {
    /// The run: its id, a unique head of its id, or @last
    run: RunName,
    /// The file to write [default: run-ID.zip]
    #[arg(short, long, value_name = "FILE")]
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
    /// The file; - reads standard input
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
    /// The file to write
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
        let mut target = TargetFile::create(&path, self.force)?;
        let call = Call::get(run_path(&run, self.tail));
        let response = client.http().open(call).await?;
        let total = response.body().size_hint().exact();
        let bar = bytes_bar(self.what, total, app.out.is_json());
        let mut body = response.into_body();
        // An export may be larger than memory.
        while let Some(frame) = body.frame().await {
            let frame = frame.context("the server's answer broke off: nothing was written")?;
            if let Some(data) = frame.data_ref() {
                target.write(data)?;
                bar.inc(data.len() as u64);
            }
        }
        bar.finish_and_clear();
        let bytes = target.finish()?;
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

/// A file that appears under its name when it is complete.
struct TargetFile<'a> {
    path: &'a Path,
    part: PathBuf,
    file: File,
    bytes: u64,
    force: bool,
    is_done: bool,
}

impl<'a> TargetFile<'a> {
    fn create(path: &'a Path, force: bool) -> Result<Self> {
        // Before the server makes the file, which may take a while.
        if !force && path.symlink_metadata().is_ok() {
            return Err(exists_error(path));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(PRIVATE_MODE);
        let file = options.open(&part);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            path,
            part,
            file,
            bytes: 0,
            force,
            is_done: false,
        })
    }

    fn write(&mut self, data: &[u8]) -> Result<()> {
        self.bytes += data.len() as u64;
        let written = self.file.write_all(data);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the file its name. Returns its length.
    fn finish(mut self) -> Result<u64> {
        let synced = self.file.sync_all();
        synced.with_context(|| format!("cannot write {}", self.path.display()))?;
        // A link fails if the name was taken meanwhile; a rename would replace that file.
        let named = if self.force {
            fs::rename(&self.part, self.path)
        } else {
            fs::hard_link(&self.part, self.path)
        };
        match named {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(exists_error(self.path));
            }
            Err(error) => {
                let cannot = || format!("cannot write {}", self.path.display());
                return Err(error).with_context(cannot);
            }
        }
        self.is_done = self.force;
        Ok(self.bytes)
    }
}

impl Drop for TargetFile<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // After an error, or because the file has its own name now.
            fs::remove_file(&self.part).ok();
        }
    }
}

fn exists_error(path: &Path) -> anyhow::Error {
    Failure::new(format!("{} exists already", path.display()))
        .hint("choose another name, or replace it with --force")
        .into()
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
    let title = one_line(&run.title);
    let status = run.status.word();
    app.out.line(format!("run {short_id}: {title}, {status}"))?;
    app.out
        .line(format!("`turnkeep run show {short}` shows it"))
}

fn is_conflict(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<HttpRefusal>();
    refusal.is_some_and(|refusal| refusal.status == StatusCode::CONFLICT)
}
