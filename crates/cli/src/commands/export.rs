//! `turnkeep export`: everything, in one file.
//!
//! An export holds every payload, so the file is its owner's alone (mode 0600), whatever the umask.
//! It is written beside its place under a name that was free, and gets its own name when it is
//! complete. Nothing that was there before is opened, followed or replaced, unless `--force` says
//! so.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use indicatif::ProgressBar;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::App;
use crate::data_dir::random_bytes;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::output::bytes_text;
use crate::progress::bytes_bar;
use crate::session::{Need, Session};

/// The mode of an export: only its owner may read it.
const PRIVATE_MODE: u32 = 0o600;

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
pub(crate) struct Args {
    /// Where to write: a file that is not there yet, or - for standard output
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Replace the file if it is there; a symbolic link is replaced, not followed
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let to_stdout = args.file == Path::new("-");
    if !to_stdout && !args.force && args.file.symlink_metadata().is_ok() {
        return Err(is_taken(&args.file));
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
    app.out.line(format!(
        "exported {} to {}",
        bytes_text(bytes),
        args.file.display()
    ))
}

async fn export(http: &mut Http, args: &Args, to_stdout: bool, app: &mut App) -> Result<u64> {
    let stats = http.json(Call::get("/v1/stats")).await?;
    let bar = bytes_bar(
        "exporting",
        stats.get("log_bytes").and_then(Value::as_u64),
        app.out.is_json(),
    );
    let body = http.open(Call::get("/v1/export")).await?.into_body();
    let copied = if to_stdout {
        copy(body, &bar, |bytes| app.out.bytes(bytes)).await
    } else {
        to_file(body, &bar, args).await
    };
    bar.finish_and_clear();
    copied
}

async fn to_file(body: Incoming, bar: &ProgressBar, args: &Args) -> Result<u64> {
    let Unfinished { path, mut file } = Unfinished::create_beside(&args.file)?;
    let cannot = || format!("cannot write {}", path.display());
    let copied = copy(body, bar, |bytes| {
        file.write_all(bytes).with_context(cannot)
    })
    .await;
    let done = copied.and_then(|bytes| {
        file.sync_all().with_context(cannot)?;
        publish(&path, args)?;
        Ok(bytes)
    });
    if done.is_err() && fs::remove_file(&path).is_err() {
        tracing::warn!(part = %path.display(), "the unfinished file could not be removed");
    }
    done
}

/// A new file that does not have its final name yet.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    /// Creates a file beside `target`, under a name that nobody else uses or can guess.
    fn create_beside(target: &Path) -> Result<Self> {
        let random: String = hex::encode(random_bytes()?).chars().take(16).collect();
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{random}.part"));
        let path = PathBuf::from(name);
        // `create_new` neither opens what is there nor follows a link, also if it was made just
        // now.
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_MODE)
            .open(&path);
        let file = created.with_context(|| format!("cannot write {}", path.display()))?;
        // The umask may have taken the owner's own bits away.
        file.set_permissions(Permissions::from_mode(PRIVATE_MODE))
            .with_context(|| format!("cannot set the mode of {}", path.display()))?;
        Ok(Self { path, file })
    }
}

/// Gives the complete file its name. Without `--force`, a file that appeared meanwhile stays.
fn publish(part: &Path, args: &Args) -> Result<()> {
    let cannot = || format!("cannot write {}", args.file.display());
    if args.force {
        fs::rename(part, &args.file).with_context(cannot)?;
    } else {
        match renameat_with(CWD, part, CWD, &args.file, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(is_taken(&args.file)),
            // The file system cannot do it in one step; a hard link refuses a taken name as well.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                link_and_remove(part, &args.file)?;
            }
            Err(errno) => return Err(errno).with_context(cannot),
        }
    }
    sync_parent(&args.file).with_context(cannot)
}

fn link_and_remove(part: &Path, target: &Path) -> Result<()> {
    match fs::hard_link(part, target) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(is_taken(target)),
        linked => linked.with_context(|| format!("cannot write {}", target.display()))?,
    }
    fs::remove_file(part).with_context(|| format!("cannot remove {}", part.display()))
}

/// Makes the new name durable.
fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn is_taken(path: &Path) -> anyhow::Error {
    let failure = Failure::new(format!("{} is there already", path.display()));
    failure
        .hint("choose another name, or replace it with --force")
        .into()
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
