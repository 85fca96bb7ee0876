//! `turnkeep export`: writes the whole store to one file.
//!
//! An export holds every payload, so only its owner may read the file (mode 0600), whatever the
//! umask is. The command writes under an unused name in the same directory and renames the file
//! when it is complete. It opens, follows and replaces no existing file, unless `--force` is given.

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
use crate::session::{Need, StoreSession, with_store};

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
pub(crate) struct ExportArgs {
    /// Where to write: a file that is not there yet, or - for standard output
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Replace the file if it is there; a symbolic link is replaced, not followed
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run_export(args: &ExportArgs, app: &mut App) -> Result<()> {
    let to_stdout = args.file == Path::new("-");
    // An early check for a better error. The rename checks again, because a file may appear
    // meanwhile.
    if !to_stdout && !args.force && args.file.symlink_metadata().is_ok() {
        return Err(name_taken_error(&args.file));
    }
    if to_stdout {
        app.out.refuse_terminal()?;
    }
    let config = app.config()?;
    let export = async |session: &mut StoreSession| {
        export_store(&mut session.http, args, to_stdout, app).await
    };
    let bytes = with_store(&config, Need::Read, export).await?;
    if to_stdout {
        return Ok(());
    }
    if app.out.is_json() {
        return app.out.json(&json!({ "file": args.file, "bytes": bytes }));
    }
    let (size, file) = (bytes_text(bytes), args.file.display());
    app.out.line(format!("exported {size} to {file}"))
}

async fn export_store(
    http: &mut Http,
    args: &ExportArgs,
    to_stdout: bool,
    app: &mut App,
) -> Result<u64> {
    // Only for the progress bar. The export's length is not known before its end.
    let stats = http.json(Call::get("/v1/stats")).await?;
    let log_bytes = stats.get("log_bytes").and_then(Value::as_u64);
    let bar = bytes_bar("exporting", log_bytes, app.out.is_json());
    let body = http.open(Call::get("/v1/export")).await?.into_body();
    let copied = if to_stdout {
        copy_body(body, &bar, |bytes| app.out.bytes(bytes)).await
    } else {
        export_to_file(body, &bar, args).await
    };
    bar.finish_and_clear();
    copied
}

async fn export_to_file(body: Incoming, bar: &ProgressBar, args: &ExportArgs) -> Result<u64> {
    let UnfinishedFile { path, mut file } = UnfinishedFile::create_beside(&args.file)?;
    let cannot = || format!("cannot write {}", path.display());
    let copied = copy_body(body, bar, |bytes| {
        file.write_all(bytes).with_context(cannot)
    })
    .await;
    let done = copied.and_then(|bytes| {
        // Content first, then the name: after a crash the name must not belong to an empty file.
        file.sync_all().with_context(cannot)?;
        publish_part(&path, args)?;
        Ok(bytes)
    });
    if done.is_err() && fs::remove_file(&path).is_err() {
        tracing::warn!(part = %path.display(), "the unfinished file could not be removed");
    }
    done
}

/// A new file that does not have its final name yet.
struct UnfinishedFile {
    path: PathBuf,
    file: File,
}

impl UnfinishedFile {
    /// Creates a file in the directory of `target`, under a name that no other program uses or can
    /// guess.
    fn create_beside(target: &Path) -> Result<Self> {
        let random = hex::encode(random_bytes::<8>()?);
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{random}.part"));
        let path = PathBuf::from(name);
        // `create_new` neither opens an existing file nor follows a link, even one that was
        // created a moment ago.
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
fn publish_part(part: &Path, args: &ExportArgs) -> Result<()> {
    let cannot = || format!("cannot write {}", args.file.display());
    if args.force {
        fs::rename(part, &args.file).with_context(cannot)?;
    } else {
        rename_to_free_name(part, &args.file)?;
    }
    sync_parent(&args.file).with_context(cannot)
}

fn rename_to_free_name(part: &Path, target: &Path) -> Result<()> {
    match renameat_with(CWD, part, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(name_taken_error(target)),
        // The file system cannot rename without replacing. A hard link refuses a taken name as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_and_remove(part, target),
        Err(errno) => Err(errno).with_context(|| format!("cannot write {}", target.display())),
    }
}

fn link_and_remove(part: &Path, target: &Path) -> Result<()> {
    match fs::hard_link(part, target) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(name_taken_error(target));
        }
        linked => linked.with_context(|| format!("cannot write {}", target.display()))?,
    }
    fs::remove_file(part).with_context(|| format!("cannot remove {}", part.display()))
}

/// Makes the new name durable.
fn sync_parent(path: &Path) -> std::io::Result<()> {
    // The parent of a bare name is the empty path, which cannot be opened.
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn name_taken_error(path: &Path) -> anyhow::Error {
    Failure::new(format!("{} exists already", path.display()))
        .hint("choose another name, or replace it with --force")
        .into()
}

async fn copy_body(
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
