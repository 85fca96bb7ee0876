//! Directories, repositories and a store in memory for the tests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use turnkeep_types::{BlobHash, Timestamp};
use turnkeep_workspace::{
    BlobStore, Diff, GitWorkspace, LandOutcome, Settings, SnapshotLimits, TreeName, TreePath,
    Workspace,
};

pub(crate) const RUN: &str = "0d9c2f7e-1111-4222-8333-444455556666";

/// A time at which every file of a test has been still for a long while.
pub(crate) const LATER: Timestamp = Timestamp(u64::MAX / 2);

#[derive(Default)]
pub(crate) struct MemoryBlobs(Mutex<BTreeMap<BlobHash, Vec<u8>>>);

impl MemoryBlobs {
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

impl BlobStore for MemoryBlobs {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobHash> {
        let hash = BlobHash::of(bytes);
        self.0.lock().unwrap().insert(hash, bytes.to_vec());
        Ok(hash)
    }

    fn get(&self, hash: &BlobHash) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(hash).cloned())
    }

    fn contains(&self, hash: &BlobHash) -> io::Result<bool> {
        Ok(self.0.lock().unwrap().contains_key(hash))
    }
}

/// One file of a directory in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestFile {
    Text(Vec<u8>),
    Program(Vec<u8>),
    Link(Vec<u8>),
}

pub(crate) fn text(content: &str) -> TestFile {
    TestFile::Text(content.as_bytes().to_vec())
}

pub(crate) type TestFiles = BTreeMap<Vec<u8>, TestFile>;

pub(crate) fn files(list: &[(&str, &str)]) -> TestFiles {
    let file = |(path, content): &(&str, &str)| (path.as_bytes().to_vec(), text(content));
    list.iter().map(file).collect()
}

/// A temporary directory with a workspace and our own directories beside it.
pub(crate) struct Fixture {
    pub(crate) root: tempfile::TempDir,
    pub(crate) cwd: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) blobs: Arc<MemoryBlobs>,
}

impl Fixture {
    /// An empty directory.
    pub(crate) fn plain() -> Self {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let cwd = base.join("cwd");
        fs::create_dir(&cwd).unwrap();
        let settings = Settings {
            state_dir: base.join("state"),
            worktrees_dir: base.join("worktrees"),
            private_dirs: vec![base.join("cwd/.data")],
            git_program: PathBuf::from("git"),
            git_time_limit: Duration::from_mins(2),
            limits: SnapshotLimits::default(),
        };
        Self {
            root,
            cwd,
            settings,
            blobs: Arc::default(),
        }
    }

    /// A repository with one commit of these files.
    pub(crate) fn git(list: &[(&str, &str)]) -> Self {
        let fixture = Self::plain();
        write_files(&fixture.cwd, &files(list));
        git(&fixture.cwd, &["init", "-q", "-b", "main"]);
        git(&fixture.cwd, &["add", "-A"]);
        git(
            &fixture.cwd,
            &["commit", "-q", "--allow-empty", "-m", "first"],
        );
        fixture
    }

    pub(crate) fn open(&self) -> Workspace {
        self.open_at(&self.cwd)
    }

    pub(crate) fn open_at(&self, directory: &Path) -> Workspace {
        Workspace::open(&self.settings, self.blobs.clone(), directory).unwrap()
    }

    pub(crate) fn open_git(&self) -> GitWorkspace {
        self.open().as_git().unwrap().clone()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        write_files(&self.cwd, &files(&[(path, content)]));
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.cwd.join(path)).unwrap()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.cwd.join(path)).unwrap();
    }

    pub(crate) fn tree(&self) -> TreeName {
        tree_of(&self.open())
    }
}

pub(crate) fn tree_of(workspace: &Workspace) -> TreeName {
    workspace.snapshot(LATER, None).unwrap().tree
}

pub(crate) fn path(text: &str) -> TreePath {
    text.parse().unwrap()
}

pub(crate) fn paths(texts: &[&str]) -> Vec<TreePath> {
    texts.iter().copied().map(path).collect()
}

pub(crate) fn patch_text(diff: &Diff) -> String {
    String::from_utf8_lossy(&diff.patch).into_owned()
}

/// A git command as the user would run it.
pub(crate) fn git_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "User");
        command.env(format!("GIT_{role}_EMAIL"), "user@example.org");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_ALLOW_PROTOCOL", "file");
    command
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_command(directory, arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Replaces everything in a directory but `.git`.
pub(crate) fn replace_files(directory: &Path, wanted: &TestFiles) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    write_files(directory, wanted);
}

pub(crate) fn write_files(directory: &Path, wanted: &TestFiles) {
    for (path, file) in wanted {
        let target = directory.join(OsStr::from_bytes(path));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let mode = match file {
            TestFile::Link(to) => {
                std::os::unix::fs::symlink(OsStr::from_bytes(to), &target).unwrap();
                continue;
            }
            TestFile::Text(_) => 0o644,
            TestFile::Program(_) => 0o755,
        };
        let (TestFile::Text(bytes) | TestFile::Program(bytes) | TestFile::Link(bytes)) = file;
        fs::write(&target, bytes).unwrap();
        fs::set_permissions(&target, PermissionsExt::from_mode(mode)).unwrap();
    }
}

/// All files below a directory but `.git`.
pub(crate) fn read_files(directory: &Path) -> TestFiles {
    let mut found = TestFiles::new();
    collect_files(directory, directory, &mut found);
    found
}

fn collect_files(root: &Path, directory: &Path, found: &mut TestFiles) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() == ".git" {
            continue;
        }
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            collect_files(root, &path, found);
            continue;
        }
        let file = if about.is_symlink() {
            TestFile::Link(
                fs::read_link(&path)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
            )
        } else if about.permissions().mode() & 0o100 != 0 {
            TestFile::Program(fs::read(&path).unwrap())
        } else {
            TestFile::Text(fs::read(&path).unwrap())
        };
        let below = path.strip_prefix(root).unwrap();
        found.insert(below.as_os_str().as_bytes().to_vec(), file);
    }
}

/// What the user has in a repository beside files: HEAD, index, configuration, stash, branches and
/// reflogs, except for the references that we own.
pub(crate) fn user_state(repository: &Path) -> BTreeMap<String, Vec<u8>> {
    let git_dir = repository.join(".git");
    let mut state = BTreeMap::new();
    for name in ["HEAD", "index", "config", "info/exclude", "packed-refs"] {
        let content = fs::read(git_dir.join(name)).unwrap_or_default();
        state.insert(name.to_owned(), content);
    }
    for folder in ["refs", "logs", "hooks"] {
        for (path, file) in read_files(&git_dir.join(folder)) {
            let path = format!("{folder}/{}", String::from_utf8(path).unwrap());
            let (TestFile::Text(content) | TestFile::Program(content) | TestFile::Link(content)) =
                file;
            if !path.contains("turnkeep") {
                state.insert(path, content);
            }
        }
    }
    state
}

/// Makes the repository run a program wherever git lets it: hooks, filters, the file system monitor.
/// Each of them would create the returned file.
pub(crate) fn set_traps(repository: &Path) -> PathBuf {
    let marker = repository.parent().unwrap().join("trap-was-sprung");
    let trap = format!("touch {}; cat", marker.display());
    for name in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-commit",
        "post-commit",
    ] {
        let hook = repository.join(".git/hooks").join(name);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (name, value) in [
        ("filter.trap.clean", trap.as_str()),
        ("filter.trap.smudge", &trap),
        ("filter.trap.process", &trap),
        ("filter.trap.required", "true"),
        ("diff.trap.command", &trap),
        ("diff.trap.textconv", &trap),
        ("merge.trap.driver", &trap),
        ("core.fsmonitor", &trap),
        ("core.pager", &trap),
        ("diff.external", &trap),
    ] {
        let config = repository.join(".git/config");
        let (section, key) = name.rsplit_once('.').unwrap();
        let section = match section.split_once('.') {
            Some((kind, driver)) => format!("[{kind} \"{driver}\"]"),
            None => format!("[{section}]"),
        };
        let all = fs::read_to_string(&config).unwrap();
        let all = format!("{all}{section}\n\t{key} = \"{value}\"\n");
        fs::write(&config, all).unwrap();
    }
    marker
}

/// Restores what the files had in `base`, and expects that none of them stands in the way.
pub(crate) fn revert(workspace: &Workspace, base: &TreeName, head: &TreeName) {
    let outcome = workspace.revert(base, head, None).unwrap();
    assert!(matches!(outcome, LandOutcome::Landed { .. }), "{outcome:?}");
}
