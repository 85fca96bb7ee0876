//! Worktrees of nodes: their content, crashes while they are made, and what protects them.

use std::fs;
use std::path::{Path, PathBuf};

use turnkeep_workspace::{CreateWorktree, RemoveWorktree, WorkspaceError, Worktree};

use crate::support::{
    Fixture, RUN, TestFile, files, git, read_files, revert, set_traps, tree_of, user_state,
};

const NODE: &str = "11111111-2222-4333-8444-555555555555";
const OTHER_NODE: &str = "99999999-2222-4333-8444-555555555555";

fn create(fixture: &Fixture, node: &str) -> Worktree {
    let create = CreateWorktree {
        run: RUN,
        node,
        branch: "turnkeep/0d9c2f7e/Builder-A",
    };
    fixture.open_git().create_worktree(create).unwrap()
}

fn remove(
    fixture: &Fixture,
    applied: &[turnkeep_workspace::TreeName],
) -> Result<(), WorkspaceError> {
    fixture.open_git().remove_worktree(RemoveWorktree {
        run: RUN,
        node: NODE,
        applied,
    })
}

/// Git's own directory of the worktree.
fn admin_dir(directory: &Path) -> PathBuf {
    PathBuf::from(git(directory, &["rev-parse", "--absolute-git-dir"]))
}

fn dirty_repository() -> Fixture {
    let fixture = Fixture::git(&[("a", "1\n"), ("b", "1\n"), (".gitignore", "*.log\n")]);
    fixture.write("a", "uncommitted\n");
    fixture.write("new/file", "untracked\n");
    fixture.write("x.log", "ignored\n");
    fixture.remove("b");
    fixture
}

#[test]
fn a_worktree_begins_with_the_users_uncommitted_files() {
    let fixture = dirty_repository();
    let before = user_state(&fixture.cwd);
    let worktree = create(&fixture, NODE);
    assert_eq!(worktree.branch, "turnkeep/0d9c2f7e/Builder-A");
    assert_eq!(worktree.base_tree, fixture.tree());
    let mut expect = read_files(&fixture.cwd);
    expect.remove(b"x.log".as_slice());
    assert_eq!(read_files(&worktree.directory), expect);
    assert_eq!(git(&worktree.directory, &["status", "--porcelain"]), "");
    let branch = git(&worktree.directory, &["rev-parse", "--abbrev-ref", "HEAD"]);
    assert_eq!(branch, worktree.branch);
    let parent = git(&worktree.directory, &["rev-parse", "HEAD^"]);
    assert_eq!(parent, git(&fixture.cwd, &["rev-parse", "main"]));
    assert_eq!(
        tree_of(&fixture.open_at(&worktree.directory)),
        worktree.base_tree
    );
    assert_eq!(user_state(&fixture.cwd), before);
    assert!(
        worktree
            .directory
            .starts_with(&fixture.settings.worktrees_dir)
    );
}

#[test]
fn making_a_worktree_again_returns_the_same_one() {
    let fixture = dirty_repository();
    let first = create(&fixture, NODE);
    fs::write(first.directory.join("work"), "of the node\n").unwrap();
    fixture.write("a", "changed later\n");
    assert_eq!(create(&fixture, NODE), first);
    assert!(first.directory.join("work").exists());
    let other = create(&fixture, OTHER_NODE);
    assert_ne!(other.directory, first.directory);
    assert_eq!(other.branch, "turnkeep/0d9c2f7e/Builder-A-2");
}

#[test]
fn a_crash_while_a_worktree_is_made_is_repaired() {
    let fixture = dirty_repository();
    let first = create(&fixture, NODE);
    let content = read_files(&first.directory);
    let crash = |what: &str, damage: &dyn Fn(&Path)| {
        fs::remove_file(first.directory.with_extension("complete")).unwrap();
        damage(&first.directory);
        assert_eq!(create(&fixture, NODE), first, "{what}");
        assert_eq!(read_files(&first.directory), content, "{what}");
        let status = git(&first.directory, &["status", "--porcelain"]);
        assert_eq!(status, "", "{what}");
    };
    crash("before the files were complete", &|directory| {
        fs::remove_file(admin_dir(directory).join("index")).unwrap();
        fs::remove_file(directory.join("a")).unwrap();
    });
    crash(
        "registered and locked, but without a directory",
        &|directory| {
            fs::write(admin_dir(directory).join("locked"), "initializing").unwrap();
            fs::remove_dir_all(directory).unwrap();
        },
    );
    crash("git does not know the directory", &|directory| {
        fs::remove_dir_all(admin_dir(directory)).unwrap();
    });
    crash("without a link to git", &|directory| {
        fs::remove_file(directory.join(".git")).unwrap();
    });
}

#[test]
fn a_program_that_damages_its_worktree_loses_no_work() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    let worktree = create(&fixture, NODE);
    let work = worktree.directory.join("work");
    let link = worktree.directory.join(".git");
    fs::write(&work, "unapplied\n").unwrap();
    let admin = admin_dir(&worktree.directory);
    // The link is gone or leads to another worktree: it is repaired.
    let other = create(&fixture, OTHER_NODE);
    let elsewhere = format!("gitdir: {}\n", admin_dir(&other.directory).display());
    for content in [None, Some("garbage"), Some(elsewhere.as_str())] {
        fs::remove_file(&link).unwrap();
        if let Some(content) = content {
            fs::write(&link, content).unwrap();
        }
        assert_eq!(create(&fixture, NODE), worktree);
        assert!(work.exists());
        fs::write(&link, content.unwrap_or_default()).unwrap();
        let refused = remove(&fixture, &[]);
        assert!(matches!(refused, Err(WorkspaceError::HoldsChanges { .. })));
    }
    assert!(admin_dir(&other.directory).exists());
    // Git has forgotten the worktree: nothing is done to it.
    fs::remove_dir_all(admin).unwrap();
    let create = CreateWorktree {
        run: RUN,
        node: NODE,
        branch: "turnkeep/x",
    };
    let made = fixture.open_git().create_worktree(create);
    assert!(matches!(made, Err(WorkspaceError::Disconnected(_))));
    assert!(matches!(
        remove(&fixture, &[]),
        Err(WorkspaceError::Disconnected(_))
    ));
    assert!(work.exists());
}

#[test]
fn repositories_with_long_object_ids_work_too() {
    let fixture = Fixture::plain();
    let init = ["init", "-q", "-b", "main", "--object-format=sha256"];
    git(&fixture.cwd, &init);
    fixture.write("a", "1\n");
    git(&fixture.cwd, &["add", "-A"]);
    git(&fixture.cwd, &["commit", "-q", "-m", "first"]);
    fixture.write("b", "untracked\n");
    let worktree = create(&fixture, NODE);
    assert_eq!(worktree.base_tree.as_str().len(), 64);
    fs::write(worktree.directory.join("a"), "2\n").unwrap();
    let workspace = fixture.open_at(&worktree.directory);
    let head = tree_of(&workspace);
    let diff = workspace.diff(&worktree.base_tree, &head).unwrap();
    assert_eq!(diff.summary, "1 file changed, +1 -1");
    revert(&workspace, &worktree.base_tree, &head);
    remove(&fixture, &[]).unwrap();
}

#[test]
fn a_branch_of_the_user_with_the_same_name_stays() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    git(&fixture.cwd, &["branch", "turnkeep/0d9c2f7e/Builder-A"]);
    let before = git(&fixture.cwd, &["rev-parse", "turnkeep/0d9c2f7e/Builder-A"]);
    let worktree = create(&fixture, NODE);
    assert_eq!(worktree.branch, "turnkeep/0d9c2f7e/Builder-A-2");
    assert_eq!(
        git(&fixture.cwd, &["rev-parse", "turnkeep/0d9c2f7e/Builder-A"]),
        before
    );
}

#[test]
fn a_worktree_of_a_subdirectory_opens_at_the_same_place() {
    let mut fixture = Fixture::git(&[("app/a", "1\n"), ("lib/b", "1\n")]);
    fixture.write("app/new", "untracked\n");
    fixture.write("lib/b", "not part of the workspace\n");
    fixture.cwd = fixture.cwd.join("app");
    let worktree = create(&fixture, NODE);
    assert_eq!(
        read_files(&worktree.directory),
        files(&[("a", "1\n"), ("new", "untracked\n")])
    );
    let lib = worktree.directory.parent().unwrap().join("lib/b");
    assert_eq!(fs::read_to_string(lib).unwrap(), "1\n");
    assert_eq!(
        tree_of(&fixture.open_at(&worktree.directory)),
        fixture.tree()
    );
}

#[test]
fn a_worktree_with_unapplied_changes_is_not_removed() {
    let fixture = dirty_repository();
    let worktree = create(&fixture, NODE);
    fs::write(worktree.directory.join("a"), "work\n").unwrap();
    let error = remove(&fixture, &[]).unwrap_err();
    let WorkspaceError::HoldsChanges { files, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(files, ["a"]);
    let head = tree_of(&fixture.open_at(&worktree.directory));
    remove(&fixture, &[head]).unwrap();
    assert!(!worktree.directory.exists());
    assert_eq!(git(&fixture.cwd, &["branch", "--list", "turnkeep/*"]), "");
    assert_eq!(
        git(&fixture.cwd, &["worktree", "list", "--porcelain"])
            .matches("worktree ")
            .count(),
        1
    );
    // Removing it again is no error.
    remove(&fixture, &[]).unwrap();
}

#[test]
fn a_worktree_is_found_without_being_made() {
    let fixture = dirty_repository();
    let find = || fixture.open_git().find_worktree(RUN, NODE).unwrap();
    assert_eq!(find(), None);
    let worktree = create(&fixture, NODE);
    assert_eq!(find(), Some(worktree.clone()));
    let base = worktree.base_tree.clone();
    fixture.write("a", "the user goes on\n");
    assert_eq!(find().unwrap().base_tree, base, "its base stays");
    remove(&fixture, &[]).unwrap();
    assert_eq!(find(), None);
    assert_ne!(create(&fixture, NODE).base_tree, base, "a new one is new");
}

#[test]
fn a_branch_with_commits_of_the_node_stays() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    let worktree = create(&fixture, NODE);
    fs::write(worktree.directory.join("a"), "work\n").unwrap();
    git(&worktree.directory, &["commit", "-q", "-a", "-m", "work"]);
    let head = tree_of(&fixture.open_at(&worktree.directory));
    remove(&fixture, &[head]).unwrap();
    let kept = git(&fixture.cwd, &["show", &format!("{}:a", worktree.branch)]);
    assert_eq!(kept, "work");
}

#[test]
fn a_file_that_no_snapshot_holds_protects_its_worktree() {
    let mut fixture = Fixture::git(&[("a", "1\n")]);
    fixture.settings.limits.file_bytes_max = 10;
    let worktree = create(&fixture, NODE);
    fs::write(worktree.directory.join("result"), "longer than the limit").unwrap();
    assert!(matches!(
        remove(&fixture, &[]),
        Err(WorkspaceError::HoldsChanges { .. })
    ));
}

#[test]
fn nothing_outside_our_directory_is_deleted() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    let worktree = create(&fixture, NODE);
    let valuable = fixture.root.path().join("valuable");
    fs::rename(&worktree.directory, &valuable).unwrap();
    std::os::unix::fs::symlink(&valuable, &worktree.directory).unwrap();
    assert!(matches!(
        remove(&fixture, &[]),
        Err(WorkspaceError::NotOurs(_))
    ));
    assert!(valuable.join("a").exists());
    for bad in ["..", "", "-x", "a/b", "integration", "."] {
        let create = CreateWorktree {
            run: RUN,
            node: bad,
            branch: "turnkeep/x",
        };
        let made = fixture.open_git().create_worktree(create);
        assert!(matches!(made, Err(WorkspaceError::BadName(..))), "{bad}");
    }
}

#[test]
fn files_that_a_filter_manages_are_copied_without_the_filter() {
    // As Git LFS does: the commit has a pointer, the disk has the content.
    let fixture = Fixture::git(&[
        ("big.bin", "pointer\n"),
        (".gitattributes", "*.bin filter=trap\n"),
    ]);
    let marker = set_traps(&fixture.cwd);
    fixture.write("big.bin", "the content itself\n");
    let before = user_state(&fixture.cwd);
    let worktree = create(&fixture, NODE);
    let copied = read_files(&worktree.directory);
    let expect = TestFile::Text(b"the content itself\n".to_vec());
    assert_eq!(copied.get(b"big.bin".as_slice()), Some(&expect));
    remove(&fixture, &[]).unwrap();
    assert!(!marker.exists());
    assert_eq!(user_state(&fixture.cwd), before);
}

#[test]
fn submodules_are_carried_along_and_stay_empty() {
    let inner = Fixture::git(&[("inner.txt", "1\n")]);
    let fixture = Fixture::git(&[("a", "1\n")]);
    let source = inner.cwd.to_str().unwrap();
    git(
        &fixture.cwd,
        &["submodule", "--quiet", "add", source, "sub"],
    );
    git(&fixture.cwd, &["commit", "-q", "-m", "with a submodule"]);
    let base = fixture.tree();
    // A change inside the submodule is not the workspace's.
    fixture.write("sub/inner.txt", "2\n");
    assert_eq!(fixture.tree(), base);
    git(
        &fixture.cwd.join("sub"),
        &["commit", "-q", "-a", "-m", "moved"],
    );
    assert_eq!(fixture.tree(), base);
    let worktree = create(&fixture, NODE);
    assert_eq!(
        fs::read_dir(worktree.directory.join("sub"))
            .unwrap()
            .count(),
        0
    );
    assert_eq!(tree_of(&fixture.open_at(&worktree.directory)), base);
    remove(&fixture, &[]).unwrap();
}
