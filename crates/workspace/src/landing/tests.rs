use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use turnkeep_types::Timestamp;

use super::*;
use crate::plain_snapshot::{BlobStore, take_snapshot};
use crate::plain_trees::PlainTrees;
use crate::settings::{Settings, SnapshotLimits};

#[derive(Default)]
struct MemoryBlobs(Mutex<BTreeMap<BlobHash, Vec<u8>>>);

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

/// The files of a directory, by path.
type Files = BTreeMap<String, String>;

const BASE: &[(&str, &str)] = &[
    ("edited", "old\n"),
    ("dir/removed", "old\n"),
    ("dir/kept", "same\n"),
    ("to-directory", "file\n"),
    ("to-file/x", "below\n"),
];

const HEAD: &[(&str, &str)] = &[
    ("edited", "new\n"),
    ("dir/kept", "same\n"),
    ("added/deep/er", "new\n"),
    ("to-directory/x", "below\n"),
    ("to-file", "file\n"),
];

/// A directory with the base files, and the changes that lead to the head.
struct Setup {
    directory: tempfile::TempDir,
    trees: PlainTrees,
    changes: Vec<TreeChange>,
}

fn files(list: &[(&str, &str)]) -> Files {
    let own = |(path, content): &(&str, &str)| ((*path).to_owned(), (*content).to_owned());
    list.iter().map(own).collect()
}

fn write(directory: &Path, path: &str, content: &str) {
    let file = directory.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

fn write_all(directory: &Path, files: &Files) {
    for (path, content) in files {
        write(directory, path, content);
    }
}

fn read_all(directory: &Path) -> Files {
    let mut found = Files::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path
                    .strip_prefix(directory)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn set_up() -> Setup {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: state.path().join("state"),
        worktrees_dir: state.path().join("worktrees"),
        private_dirs: Vec::new(),
        git_program: "git".into(),
        git_time_limit: std::time::Duration::from_mins(1),
        limits: SnapshotLimits::default(),
    };
    let blobs: Arc<MemoryBlobs> = Arc::default();
    let record = |list| {
        let directory = tempfile::tempdir().unwrap();
        write_all(directory.path(), &files(list));
        let root = RootDir::open(directory.path()).unwrap();
        let snapshot = take_snapshot(&settings, blobs.as_ref(), &root, Timestamp(0)).unwrap();
        (directory, snapshot.tree)
    };
    let (directory, base) = record(BASE);
    let (_, head) = record(HEAD);
    let trees = PlainTrees {
        blobs: blobs.clone(),
    };
    let changes = trees.list_changes(&base, &head).unwrap();
    assert_eq!(changes.len(), 7);
    Setup {
        directory,
        trees,
        changes,
    }
}

impl Setup {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn land(&self, before_move: &mut BeforeMove<'_>) -> Result<LandOutcome, WorkspaceError> {
        land_changes(self.path(), &self.trees, &self.changes, before_move)
    }
}

/// Counts the moves and interferes at one of them.
fn at_move(
    number: usize,
    mut act: impl FnMut() -> io::Result<()>,
) -> impl FnMut(&TreePath) -> io::Result<()> {
    let mut count = 0;
    move |_| {
        count += 1;
        if count == number { act() } else { Ok(()) }
    }
}

fn empty_directories(directory: &Path) -> usize {
    let mut found = 0;
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        let entries: Vec<_> = fs::read_dir(next)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        found += usize::from(entries.is_empty());
        pending.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    found
}

#[test]
fn all_changes_land() {
    let setup = set_up();
    let LandOutcome::Landed { paths, .. } = setup.land(&mut |_| Ok(())).unwrap() else {
        panic!("nothing is in the way");
    };
    assert_eq!(paths.len(), 7);
    assert_eq!(read_all(setup.path()), files(HEAD));
    assert_eq!(empty_directories(setup.path()), 0);
}

#[test]
fn a_failure_at_any_move_puts_everything_back() {
    for number in 1..=7 {
        let setup = set_up();
        let mut fail = at_move(number, || Err(io::Error::other("disk full")));
        let error = setup.land(&mut fail).unwrap_err().to_string();
        assert!(error.contains("disk full"), "{error}");
        assert_eq!(read_all(setup.path()), files(BASE), "move {number}");
        assert_eq!(empty_directories(setup.path()), 0, "move {number}");
    }
}

#[test]
fn a_crash_at_any_move_is_undone_at_the_next_start() {
    for number in 1..=7 {
        let setup = set_up();
        let mut crash = at_move(number, || panic!("crash at move {number}"));
        let crashed = catch_unwind(AssertUnwindSafe(|| setup.land(&mut crash)));
        assert!(crashed.is_err());
        let recovery = recover_interrupted(setup.path()).unwrap();
        assert_eq!(recovery.undone.len(), 7);
        assert_eq!(read_all(setup.path()), files(BASE), "move {number}");
        // Nothing is left to do, and the landing can be repeated.
        assert_eq!(
            recover_interrupted(setup.path()).unwrap(),
            Recovery::default()
        );
        let again = setup.land(&mut |_| Ok(())).unwrap();
        assert!(matches!(again, LandOutcome::Landed { .. }), "{again:?}");
        assert_eq!(read_all(setup.path()), files(HEAD));
    }
}

#[test]
fn an_edit_between_check_and_move_is_kept() {
    // At the first move, no file has moved yet; at the last one, all others have.
    for number in [1, 7] {
        for (path, content) in [
            ("edited", "by the user\n"),
            ("dir/removed", "by the user\n"),
            ("added/deep/er", "by the user\n"),
        ] {
            let setup = set_up();
            let directory = setup.path().to_owned();
            let mut edit = at_move(number, || {
                write(&directory, path, content);
                Ok(())
            });
            let landed = setup.land(&mut edit).unwrap();
            let now = read_all(setup.path());
            assert_eq!(
                now.get(path).map(String::as_str),
                Some(content),
                "{path} at {number}"
            );
            if let LandOutcome::Conflicts { paths } = landed {
                let mut expect = files(BASE);
                expect.insert(path.to_owned(), content.to_owned());
                assert_eq!(now, expect, "{path} at {number}: {paths:?}");
            }
        }
    }
}

#[test]
fn a_file_removed_between_check_and_move_is_a_conflict() {
    let setup = set_up();
    let file = setup.path().join("edited");
    let mut remove = at_move(1, || fs::remove_file(&file));
    let landed = setup.land(&mut remove).unwrap();
    let paths = vec!["edited".parse().unwrap()];
    assert_eq!(landed, LandOutcome::Conflicts { paths });
    let mut expect = files(BASE);
    expect.remove("edited");
    assert_eq!(read_all(setup.path()), expect);
}

#[test]
fn a_directory_replaced_by_a_link_is_not_written_through() {
    let setup = set_up();
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "removed", "old\n");
    let directory = setup.path().join("dir");
    let mut replace = at_move(1, || {
        fs::rename(&directory, setup.path().join("moved"))?;
        std::os::unix::fs::symlink(elsewhere.path(), &directory)
    });
    let landed = setup.land(&mut replace).unwrap();
    assert!(matches!(landed, LandOutcome::Conflicts { .. }));
    assert_eq!(read_all(elsewhere.path()), files(&[("removed", "old\n")]));
}

#[test]
fn a_read_only_directory_changes_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let setup = set_up();
    let locked = setup.path().join("dir");
    fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
    let landed = setup.land(&mut |_| Ok(()));
    let found = read_all(setup.path());
    fs::set_permissions(&locked, PermissionsExt::from_mode(0o755)).unwrap();
    // The superuser writes everywhere.
    if landed.is_err() {
        assert_eq!(found, files(BASE));
    } else {
        assert_eq!(found, files(HEAD));
    }
}

#[test]
fn a_crash_inside_an_exchange_is_undone() {
    let directory = tempfile::tempdir().unwrap();
    let root = RootDir::open(directory.path()).unwrap();
    let print = |content: &str| {
        Some(fingerprint(&FileContent {
            mode: FileMode::Regular,
            bytes: content.as_bytes().to_vec(),
        }))
    };
    let step = Step {
        path: "f".parse().unwrap(),
        before: print("old\n"),
        after: print("new\n"),
    };
    for (in_place, staged, expect) in [
        ("old\n", Some(("0.new", "new\n")), "old\n"),
        ("new\n", Some(("0.new", "old\n")), "old\n"),
        ("new\n", Some(("0.old", "old\n")), "old\n"),
        // The user wrote the file before or after the exchange.
        ("new\n", Some(("0.new", "user\n")), "user\n"),
        ("user\n", Some(("0.old", "old\n")), "user\n"),
        ("user\n", Some(("0.new", "new\n")), "user\n"),
    ] {
        let staging = Staging::create(&root).unwrap();
        journal::write(&staging, std::slice::from_ref(&step), &BTreeSet::new()).unwrap();
        write(directory.path(), "f", in_place);
        if let Some((name, content)) = staged {
            write(&staging.path, name, content);
        }
        recover_interrupted(directory.path()).unwrap();
        let found = read_all(directory.path());
        assert_eq!(found, files(&[("f", expect)]), "{in_place:?} {staged:?}");
    }
}

#[test]
fn two_edits_of_the_user_are_both_kept() {
    let directory = tempfile::tempdir().unwrap();
    let root = RootDir::open(directory.path()).unwrap();
    let step = Step {
        path: "f".parse().unwrap(),
        before: None,
        after: None,
    };
    let staging = Staging::create(&root).unwrap();
    journal::write(&staging, &[step], &BTreeSet::new()).unwrap();
    // The file that was taken out of the way was not the expected one, and another one came.
    write(&staging.path, "0.old", "first edit\n");
    write(directory.path(), "f", "second edit\n");
    let error = recover_interrupted(directory.path()).unwrap_err();
    let WorkspaceError::RollbackIncomplete(aside) = error else {
        panic!("{error}");
    };
    assert_eq!(
        fs::read_to_string(aside.join("0.old")).unwrap(),
        "first edit\n"
    );
    assert_eq!(
        fs::read_to_string(directory.path().join("f")).unwrap(),
        "second edit\n"
    );
    assert_eq!(
        recover_interrupted(directory.path()).unwrap(),
        Recovery::default()
    );
}
