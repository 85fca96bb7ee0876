//! Finds the repository of a directory, and gives git a private directory to work with.
//!
//! Git reads its configuration, attributes and excludes from its directory (`GIT_DIR`). The commands
//! that read or write files use a *private* one in our state directory, together with the objects of
//! the user's repository:
//!
//! | file | content |
//! |---|---|
//! | `config` | no filters, no hooks; the user's `fileMode`, `symlinks`, `ignoreCase`, `excludesFile` |
//! | `info/attributes` | switches all conversions off, so that trees hold the bytes of the disk |
//! | `info/exclude` | the user's own excludes, and our temporary directories |
//! | `indexes/` | one index per workspace |
//!
//! So the user's index, HEAD and stash are never opened for writing, and no clean or smudge filter
//! runs, whatever an agent wrote to `.git/config`. A file that a filter manages, such as one of
//! Git LFS, is recorded as it is on disk.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use turnkeep_types::BlobHash;

use crate::error::WorkspaceError;
use crate::git::GitCall;
use crate::landing::STAGING_PREFIX;
use crate::settings::Settings;
use crate::tree::is_object_id;

const ATTRIBUTES: &str = "* !text !eol !filter !ident !working-tree-encoding !diff !merge\n";

/// What a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// A part of a git repository that has a commit.
    Repository,
    /// Anything else, with the reason in words.
    Plain(String),
}

/// The repository around a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) settings: Settings,
    /// The top directory of the working tree.
    pub(crate) top: PathBuf,
    /// Where the workspace is below the top, with a slash at its end; empty if it is the top.
    pub(crate) prefix: Vec<u8>,
    /// The git directory that all worktrees share.
    pub(crate) common_dir: PathBuf,
    /// The git directory of this working tree.
    pub(crate) git_dir: PathBuf,
    /// Our own git directory for this repository.
    pub(crate) private_dir: PathBuf,
    is_sha256: bool,
}

/// What looking for a repository found.
pub(crate) enum Search {
    Found(Box<Repository>),
    NotFound(String),
}

/// Looks for the repository of a directory.
pub(crate) fn find_repository(settings: &Settings, dir: &Path) -> Result<Search, WorkspaceError> {
    if !dir.is_dir() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        return Err(WorkspaceError::file("open", dir)(missing));
    }
    let found = match ask_git(settings, dir) {
        Ok(found) => found,
        // Git is missing, the repository is damaged, or it belongs to another user.
        Err(error @ (WorkspaceError::GitMissing { .. } | WorkspaceError::GitFailed { .. })) => {
            return Ok(Search::NotFound(error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let Some(repository) = found else {
        return Ok(Search::NotFound("it is not in a working tree".to_owned()));
    };
    if let Err(error) = repository.read_head() {
        return Ok(Search::NotFound(format!("it has no commit: {error}")));
    }
    // A repository that ignores the whole directory would show an empty workspace.
    if repository.ignores_workspace(dir)? {
        return Ok(Search::NotFound("the repository ignores it".to_owned()));
    }
    repository.prepare_private_dir(dir)?;
    Ok(Search::Found(Box::new(repository)))
}

/// Asks git where the repository is. This is the one command that reads the user's own
/// configuration, which may name the directories that are safe to use. It runs no other program.
fn ask_git(settings: &Settings, dir: &Path) -> Result<Option<Repository>, WorkspaceError> {
    let answer = GitCall::new(settings, dir)
        .args(["rev-parse", "--path-format=absolute"])
        .args(["--is-inside-work-tree", "--show-object-format"])
        .args(["--git-common-dir", "--absolute-git-dir"])
        .args(["--show-prefix", "--show-toplevel"])
        // The last one fails inside a bare repository or a `.git` directory.
        .run()?;
    Ok(parse_answer(settings, &answer.stdout))
}

/// Reads the six lines of the answer. A directory whose name has a line break yields more lines, and
/// then the workspace counts as plain.
fn parse_answer(settings: &Settings, answer: &[u8]) -> Option<Repository> {
    let lines: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').collect();
    let [b"true", format, common_dir, git_dir, prefix, top, b""] = lines.as_slice() else {
        return None;
    };
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let common_dir = path(common_dir);
    let key = short_key(&common_dir);
    Some(Repository {
        settings: settings.clone(),
        top: path(top),
        prefix: prefix.to_vec(),
        git_dir: path(git_dir),
        private_dir: settings.state_dir.join("repositories").join(key),
        common_dir,
        is_sha256: *format == b"sha256",
    })
}

/// A short file name that stands for a path.
pub(crate) fn short_key(path: &Path) -> String {
    let hash = BlobHash::of(path.as_os_str().as_bytes()).to_string();
    hash.get(..32).unwrap_or_default().to_owned()
}

impl Repository {
    /// A command on the user's repository itself, for references and worktrees.
    pub(crate) fn user_git(&self) -> GitCall {
        GitCall::new(&self.settings, &self.common_dir)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", "Turnkeep")
            .env("GIT_AUTHOR_EMAIL", "turnkeep@localhost")
            .env("GIT_COMMITTER_NAME", "Turnkeep")
            .env("GIT_COMMITTER_EMAIL", "turnkeep@localhost")
    }

    /// A command on the user's objects with our own configuration, and with an index and a working
    /// tree that the caller chooses.
    pub(crate) fn private_git(&self, work_tree: &Path, index: &Path) -> GitCall {
        GitCall::new(&self.settings, work_tree)
            .env("GIT_DIR", &self.private_dir)
            .env("GIT_OBJECT_DIRECTORY", self.common_dir.join("objects"))
            .env("GIT_WORK_TREE", work_tree)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
    }

    /// A command that reads or writes objects and needs neither an index nor files.
    pub(crate) fn object_git(&self) -> GitCall {
        self.private_git(&self.private_dir, &self.private_dir.join("no-index"))
    }

    /// The commit that is checked out.
    pub(crate) fn read_head(&self) -> Result<String, WorkspaceError> {
        let call = self
            .user_git()
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        check_object_id(call.run_for_line()?, "git rev-parse")
    }

    /// The value of a reference, if it exists.
    pub(crate) fn read_ref(&self, name: &str) -> Result<Option<String>, WorkspaceError> {
        let call = self
            .user_git()
            .args(["rev-parse", "--verify", "--quiet", name])
            .accept_code(1);
        let line = call.run_for_line()?;
        Ok(is_object_id(&line).then_some(line))
    }

    /// The object id that stands for no object.
    pub(crate) fn zero_id(&self) -> String {
        "0".repeat(if self.is_sha256 { 64 } else { 40 })
    }

    /// The workspace's place in a working tree of the repository.
    pub(crate) fn workspace_in(&self, top: &Path) -> PathBuf {
        match self.prefix.strip_suffix(b"/") {
            Some(prefix) => top.join(OsStr::from_bytes(prefix)),
            // Joining an empty path would add a slash.
            None => top.to_owned(),
        }
    }

    fn ignores_workspace(&self, dir: &Path) -> Result<bool, WorkspaceError> {
        if self.prefix.is_empty() {
            return Ok(false);
        }
        let call = GitCall::new(&self.settings, dir)
            // This command refuses to run with literal paths.
            .env("GIT_LITERAL_PATHSPECS", "0")
            .args(["check-ignore", "--quiet", "."])
            .accept_code(1);
        Ok(call.run()?.code == 0)
    }

    fn prepare_private_dir(&self, dir: &Path) -> Result<(), WorkspaceError> {
        for part in ["refs", "objects", "info", "indexes"] {
            let part = self.private_dir.join(part);
            fs::create_dir_all(&part).map_err(WorkspaceError::file("create", &part))?;
        }
        let user_excludes = fs::read(self.common_dir.join("info/exclude")).unwrap_or_default();
        let own_excludes = format!("\n{STAGING_PREFIX}*/\n").into_bytes();
        self.write_private("config", &self.compose_config(dir)?)?;
        self.write_private("info/attributes", ATTRIBUTES.as_bytes())?;
        self.write_private("info/exclude", &[user_excludes, own_excludes].concat())?;
        // Git does not accept a directory without HEAD as a repository. The branch need not exist.
        self.write_private("HEAD", b"ref: refs/heads/none\n")?;
        self.remove_abandoned_copies();
        Ok(())
    }

    /// Removes temporary indexes of processes that were killed. One process at a time uses the state
    /// directory, so those of other processes are abandoned.
    fn remove_abandoned_copies(&self) {
        let own = format!(".{}-", std::process::id());
        let entries = fs::read_dir(self.private_dir.join("indexes"));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains(".tmp") && !name.contains(&own) {
                // Whatever stays only takes space.
                fs::remove_file(entry.path()).unwrap_or_default();
            }
        }
    }

    /// The private configuration, with the few settings of the user that say what the file system
    /// can do.
    fn compose_config(&self, dir: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let answer = GitCall::new(&self.settings, dir)
            .args(["config", "-z", "--get-regexp"])
            .arg(r"^core\.(filemode|symlinks|ignorecase|excludesfile)$")
            .accept_code(1)
            .run()?;
        // A setting that is not listed here has git's default, whatever the user's file says.
        let mut config = b"[core]\n\tbare = false\n\tprotectHFS = true\n".to_vec();
        let version: &[u8] = if self.is_sha256 { b"1" } else { b"0" };
        config.extend([b"\trepositoryFormatVersion = ", version, b"\n"].concat());
        for setting in answer.stdout.split(|byte| *byte == 0) {
            push_setting(&mut config, setting);
        }
        if self.is_sha256 {
            config.extend(b"[extensions]\n\tobjectFormat = sha256\n");
        }
        Ok(config)
    }

    /// Writes a private file if its content differs. The rename keeps a command of another thread
    /// from reading half a file.
    fn write_private(&self, name: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        let path = self.private_dir.join(name);
        if fs::read(&path).is_ok_and(|existing| existing == content) {
            return Ok(());
        }
        replace_file(&path, content)
    }
}

/// Replaces a file of the state directory as a whole.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<(), WorkspaceError> {
    let temporary = unique_sibling(path);
    fs::write(&temporary, content).map_err(WorkspaceError::file("write", &temporary))?;
    fs::rename(&temporary, path).map_err(WorkspaceError::file("replace", path))
}

/// A name beside a file that no other thread and no other process uses.
pub(crate) fn unique_sibling(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}.tmp", std::process::id()));
    PathBuf::from(name)
}

/// Adds one setting, which git prints as `key`, a line break and the value.
fn push_setting(config: &mut Vec<u8>, setting: &[u8]) {
    let mut parts = setting.splitn(2, |byte| *byte == b'\n');
    let (Some(key), Some(value)) = (parts.next(), parts.next()) else {
        return;
    };
    let Some(name) = key.strip_prefix(b"core.") else {
        return;
    };
    // A value with a line break or a quote would need escapes; no such path is worth them.
    if value
        .iter()
        .any(|byte| matches!(byte, b'\n' | b'"' | b'\\'))
    {
        return;
    }
    config.extend([b"\t", name, b" = \"", value, b"\"\n"].concat());
}

/// Checks an object id that git printed.
pub(crate) fn check_object_id(id: String, command: &str) -> Result<String, WorkspaceError> {
    if is_object_id(&id) {
        Ok(id)
    } else {
        Err(WorkspaceError::GitOutputUnexpected {
            command: command.to_owned(),
            what: "object id",
        })
    }
}
