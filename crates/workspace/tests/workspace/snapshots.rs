//! What a snapshot holds, in repositories and elsewhere.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use turnkeep_workspace::{SkipReason, SnapshotName, TreeName, WorkspaceError};

use crate::support::{
    Fixture, LATER, RUN, TestFile, files, git, git_command, patch_text, read_files, replace_files,
    revert, set_traps, text, tree_of, user_state, write_files,
};

/// What git itself would record, with a copy of the user's index.
fn tree_by_git(fixture: &Fixture) -> String {
    let index = fixture.root.path().join("user-index");
    let add = |arguments: &[&str]| {
        let mut command = git_command(&fixture.cwd, arguments);
        let output = command.env("GIT_INDEX_FILE", &index).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    add(&["read-tree", "HEAD"]);
    add(&["add", "-A"]);
    add(&["write-tree"])
}

fn list_tree(fixture: &Fixture, tree: &TreeName) -> String {
    git(
        &fixture.cwd,
        &["ls-tree", "-r", "--name-only", tree.as_str()],
    )
}

#[test]
fn a_snapshot_has_uncommitted_and_untracked_files_and_leaves_the_user_alone() {
    let fixture = Fixture::git(&[
        ("kept.txt", "same\n"),
        ("edited.txt", "old\n"),
        ("gone.txt", "x\n"),
        (".gitignore", "*.log\n"),
    ]);
    fixture.write("edited.txt", "stashed\n");
    git(&fixture.cwd, &["stash", "-q"]);
    fixture.write("edited.txt", "staged\n");
    git(&fixture.cwd, &["add", "edited.txt"]);
    fixture.write("edited.txt", "on disk\n");
    fixture.write("dir/new.txt", "untracked\n");
    fixture.write("noise.log", "ignored\n");
    fixture.write("secret", "excluded\n");
    fixture.remove("gone.txt");
    fs::write(fixture.cwd.join(".git/info/exclude"), "secret\n").unwrap();
    let before = user_state(&fixture.cwd);
    let tree = fixture.tree();
    assert_eq!(
        list_tree(&fixture, &tree),
        ".gitignore\ndir/new.txt\nedited.txt\nkept.txt"
    );
    assert_eq!(tree.as_str(), tree_by_git(&fixture));
    assert_eq!(user_state(&fixture.cwd), before);
    // Again with the saved index, after changes of every kind.
    fixture.write("gone.txt", "back\n");
    fixture.remove("dir/new.txt");
    fixture.write("kept.txt", "now edited\n");
    assert_eq!(fixture.tree().as_str(), tree_by_git(&fixture));
    assert_eq!(user_state(&fixture.cwd), before);
}

#[test]
fn every_kind_of_file_and_name_is_recorded() {
    for fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        let mut wanted = files(&[
            ("-dash", "1"),
            ("sp ace", "2"),
            ("*[x]?", "3"),
            ("ü/ö", "4"),
        ]);
        wanted.insert(b"new\nline\"quote\\".to_vec(), text("5"));
        wanted.insert(b"not-utf8-\xff\xfe".to_vec(), text("6"));
        wanted.insert(
            b"program".to_vec(),
            TestFile::Program(b"#!/bin/sh\n".to_vec()),
        );
        wanted.insert(b"link".to_vec(), TestFile::Link(b"nowhere/at all".to_vec()));
        wanted.insert(b"out".to_vec(), TestFile::Link(b"/etc".to_vec()));
        wanted.insert(b"empty".to_vec(), text(""));
        wanted.insert(b"binary".to_vec(), TestFile::Text(vec![0, 1, 255]));
        let workspace = fixture.open();
        let base = tree_of(&workspace);
        replace_files(&fixture.cwd, &wanted);
        let head = tree_of(&workspace);
        replace_files(&fixture.cwd, &files(&[]));
        let empty = tree_of(&workspace);
        let landed = workspace.revert(&head, &empty, None).unwrap();
        assert_eq!(read_files(&fixture.cwd), wanted, "{landed:?}");
        let paths = workspace.diff(&base, &head).unwrap().touched_paths();
        for path in paths {
            assert_eq!(path.to_string().parse(), Ok(path));
        }
    }
}

#[test]
fn files_and_directories_can_take_each_others_place() {
    for fixture in [Fixture::git(&[("x", "")]), Fixture::plain()] {
        let states = [
            files(&[("a", "file\n"), ("b/c/d", "deep\n")]),
            files(&[("a/b", "below\n"), ("b", "file\n")]),
            files(&[("a", "file\n"), ("b/c/d", "deep\n")]),
            files(&[("b/c", "up\n")]),
        ];
        let workspace = fixture.open();
        let mut trees = Vec::new();
        for state in &states {
            replace_files(&fixture.cwd, state);
            trees.push(tree_of(&workspace));
        }
        assert_eq!(trees[0], trees[2]);
        for (tree, state) in trees.iter().zip(&states) {
            let current = tree_of(&workspace);
            revert(&workspace, tree, &current);
            assert_eq!(&read_files(&fixture.cwd), state);
        }
    }
}

#[test]
fn a_directory_that_became_a_link_is_not_followed() {
    for fixture in [Fixture::git(&[("dir/a", "1\n")]), Fixture::plain()] {
        let workspace = fixture.open();
        replace_files(&fixture.cwd, &files(&[("dir/a", "1\n")]));
        let base = tree_of(&workspace);
        let elsewhere = fixture.root.path().join("elsewhere");
        write_files(&elsewhere, &files(&[("a", "not ours\n")]));
        fs::remove_dir_all(fixture.cwd.join("dir")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, fixture.cwd.join("dir")).unwrap();
        let head = tree_of(&workspace);
        let diff = workspace.diff(&base, &head).unwrap();
        let touched: Vec<String> = diff
            .touched_paths()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(touched, ["dir", "dir/a"]);
        assert!(!patch_text(&diff).contains("not ours"));
        revert(&workspace, &base, &head);
        assert_eq!(read_files(&fixture.cwd), files(&[("dir/a", "1\n")]));
        assert_eq!(read_files(&elsewhere), files(&[("a", "not ours\n")]));
    }
}

#[test]
fn a_quick_second_write_of_the_same_length_is_seen() {
    for fixture in [Fixture::git(&[("a", "0000\n")]), Fixture::plain()] {
        let workspace = fixture.open();
        let mut seen = std::collections::BTreeSet::new();
        for number in 1000..1020 {
            fixture.write("a", &format!("{number}\n"));
            seen.insert(
                workspace
                    .snapshot(turnkeep_types::Timestamp(0), None)
                    .unwrap()
                    .tree,
            );
        }
        assert_eq!(seen.len(), 20);
    }
}

#[test]
fn no_program_of_the_repositorys_configuration_runs() {
    let fixture = Fixture::git(&[
        ("a.bin", "one\n"),
        (".gitattributes", "* filter=trap diff=trap merge=trap\n"),
    ]);
    let marker = set_traps(&fixture.cwd);
    let workspace = fixture.open();
    let before = user_state(&fixture.cwd);
    let name = SnapshotName {
        run: RUN,
        turn: "t1",
    };
    let base = workspace.snapshot(LATER, Some(name)).unwrap().tree;
    fixture.write("a.bin", "two\n");
    fixture.write("b.bin", "new\n");
    let head = workspace.snapshot(LATER, Some(name)).unwrap().tree;
    let diff = workspace.diff(&base, &head).unwrap();
    assert!(patch_text(&diff).contains("-one\n+two\n"));
    revert(&workspace, &base, &head);
    assert_eq!(fixture.read("a.bin"), "one\n");
    assert!(!marker.exists());
    assert_eq!(user_state(&fixture.cwd), before);
    // The traps do work: the user's own git springs them.
    fixture.write("a.bin", "three\n");
    let mut command = git_command(&fixture.cwd, &["add", "a.bin"]);
    command.output().unwrap();
    assert!(marker.exists());
}

#[test]
fn line_ends_are_recorded_as_they_are_on_disk() {
    let fixture = Fixture::git(&[
        ("a.txt", "x\n"),
        (".gitattributes", "* text=auto eol=crlf\n"),
    ]);
    fixture.write("a.txt", "x\r\ny\r\n");
    let tree = fixture.tree();
    let blob = git(
        &fixture.cwd,
        &["cat-file", "blob", &format!("{tree}:a.txt")],
    );
    assert_eq!(blob, "x\r\ny");
}

#[test]
fn snapshots_of_a_turn_are_kept_under_one_reference() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    let workspace = fixture.open();
    let name = SnapshotName {
        run: RUN,
        turn: "t-1",
    };
    fixture.write("a", "2\n");
    let base = workspace.snapshot(LATER, Some(name)).unwrap().tree;
    fixture.write("a", "3\n");
    let head = workspace.snapshot(LATER, Some(name)).unwrap().tree;
    let reference = format!("refs/turnkeep/{RUN}/t-1");
    git(&fixture.cwd, &["gc", "-q", "--prune=now"]);
    let show = |what: &str| {
        git(
            &fixture.cwd,
            &["rev-parse", &format!("{reference}{what}^{{tree}}")],
        )
    };
    assert_eq!(show(""), head.as_str());
    assert_eq!(show("^"), base.as_str());
    // The same snapshot again, as after a crash, adds nothing.
    let commit = git(&fixture.cwd, &["rev-parse", &reference]);
    workspace.snapshot(LATER, Some(name)).unwrap();
    assert_eq!(git(&fixture.cwd, &["rev-parse", &reference]), commit);
    workspace.as_git().unwrap().forget_run(RUN).unwrap();
    assert_eq!(git(&fixture.cwd, &["for-each-ref", "refs/turnkeep"]), "");
    let bad = SnapshotName {
        run: "../x",
        turn: "t",
    };
    let error = workspace.snapshot(LATER, Some(bad)).unwrap_err();
    assert!(matches!(error, WorkspaceError::BadName(..)));
}

#[test]
fn a_subdirectory_is_a_workspace_of_its_own() {
    let fixture = Fixture::git(&[("app/a", "1\n"), ("other/b", "1\n")]);
    let workspace = fixture.open_at(&fixture.cwd.join("app"));
    let base = tree_of(&workspace);
    assert_eq!(list_tree(&fixture, &base), "a");
    fixture.write("other/b", "2\n");
    assert_eq!(tree_of(&workspace), base);
    fixture.write("app/new", "x\n");
    let head = tree_of(&workspace);
    assert_eq!(list_tree(&fixture, &head), "a\nnew");
    fs::remove_dir_all(fixture.cwd.join("app")).unwrap();
    fs::create_dir(fixture.cwd.join("app")).unwrap();
    let empty = tree_of(&workspace);
    assert_eq!(list_tree(&fixture, &empty), "");
    revert(&workspace, &head, &empty);
    assert_eq!(fixture.read("app/new"), "x\n");
    assert_eq!(fixture.read("other/b"), "2\n");
}

#[test]
fn a_tracked_file_counts_even_if_it_is_ignored() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    let base = fixture.tree();
    fixture.write("out.log", "1\n");
    fixture.write(".gitignore", "*.log\n");
    git(&fixture.cwd, &["add", "-f", "out.log", ".gitignore"]);
    git(&fixture.cwd, &["commit", "-q", "-m", "second"]);
    let head = fixture.tree();
    assert_ne!(head, base);
    assert_eq!(
        head.as_str(),
        git(&fixture.cwd, &["rev-parse", "HEAD^{tree}"])
    );
}

#[test]
fn large_files_and_nested_repositories_are_left_out_and_listed() {
    let mut fixture = Fixture::git(&[("tracked", "small\n")]);
    fixture.settings.limits.file_bytes_max = 10;
    let base = fixture.tree();
    fixture.write("big", "more than ten bytes\n");
    fixture.write("tracked", "more than ten bytes\n");
    fixture.write("nested/x", "1\n");
    fs::create_dir(fixture.cwd.join("git~1")).unwrap();
    git(&fixture.cwd.join("nested"), &["init", "-q"]);
    let snapshot = fixture.open().snapshot(LATER, None).unwrap();
    assert_eq!(
        snapshot.tree, base,
        "the tracked file must not look deleted"
    );
    let mut skipped: Vec<(&str, SkipReason)> = snapshot
        .skipped
        .iter()
        .map(|skipped| (skipped.path.as_str(), skipped.reason))
        .collect();
    skipped.sort_by_key(|(path, _)| *path);
    let expect = [
        ("big", SkipReason::TooLarge),
        ("nested/", SkipReason::NestedRepository),
        ("tracked", SkipReason::TooLarge),
    ];
    assert_eq!(skipped, expect);
}

#[test]
fn an_unreadable_file_is_left_out_and_listed() {
    use std::os::unix::fs::PermissionsExt;
    for fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        fixture.write("locked", "x\n");
        let locked = fixture.cwd.join("locked");
        fs::set_permissions(&locked, PermissionsExt::from_mode(0o000)).unwrap();
        if fs::read(&locked).is_ok() {
            // The superuser reads everything.
            continue;
        }
        let skipped = fixture.open().snapshot(LATER, None).unwrap().skipped;
        assert_eq!(skipped[0].path, "locked");
        assert_eq!(skipped[0].reason, SkipReason::Unreadable);
    }
}

#[test]
fn pipes_are_left_out() {
    for fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        let base = fixture.tree();
        let make_pipe = |name: &str| {
            let mut command = std::process::Command::new("mkfifo");
            let made = command.arg(fixture.cwd.join(name)).status().unwrap();
            assert!(made.success());
        };
        make_pipe("pipe");
        assert_eq!(fixture.tree(), base);
        // In the place of a tracked file.
        if fixture.cwd.join("a").exists() {
            fixture.remove("a");
            make_pipe("a");
            let snapshot = fixture.open().snapshot(LATER, None).unwrap();
            assert_eq!(snapshot.tree, base);
            assert_eq!(snapshot.skipped[0].path, "a");
        }
    }
}

#[test]
fn limits_are_clear_errors() {
    for mut fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        replace_files(
            &fixture.cwd,
            &files(&[("1", "x"), ("2", "x"), ("3", "xxx")]),
        );
        let defaults = fixture.settings.limits;
        fixture.settings.limits.files_max = 2;
        let error = fixture.open().snapshot(LATER, None).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::TooManyFiles { max: 2 }),
            "{error}"
        );
        fixture.settings.limits = defaults;
        fixture.settings.limits.total_bytes_max = 4;
        let error = fixture.open().snapshot(LATER, None).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::TooManyBytes { max: 4 }),
            "{error}"
        );
        fixture.settings.limits = defaults;
        fixture.open().snapshot(LATER, None).unwrap();
    }
}

#[test]
fn our_own_directories_inside_the_workspace_are_left_out() {
    for mut fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        fixture.settings.state_dir = fixture.cwd.join(".turnkeep/st*te");
        fixture.settings.worktrees_dir = fixture.cwd.join("work trees");
        fs::create_dir_all(&fixture.settings.worktrees_dir).unwrap();
        fs::create_dir_all(&fixture.settings.state_dir).unwrap();
        let base = fixture.tree();
        fixture.write("work trees/x", "1\n");
        assert_eq!(fixture.tree(), base);
        fixture.write(".turnkeep/roles/x.md", "1\n");
        assert_ne!(fixture.tree(), base);
    }
}

#[test]
fn threads_can_take_snapshots_of_one_directory() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    for number in 0..50 {
        fixture.write(&format!("f{number}"), "x\n");
    }
    let workspace = fixture.open();
    let trees: Vec<TreeName> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| tree_of(&workspace)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(trees.iter().all(|tree| *tree == trees[0]));
    assert_eq!(trees[0].as_str(), tree_by_git(&fixture));
    let indexes = fixture.settings.state_dir.join("repositories");
    let left_over = read_files(&indexes)
        .into_keys()
        .filter(|path| path.ends_with(b".tmp") || path.ends_with(b".lock"));
    assert_eq!(left_over.count(), 0);
}

#[test]
fn a_damaged_private_index_only_costs_time() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    fixture.write("b", "2\n");
    let tree = fixture.tree();
    let state = fixture.settings.state_dir.join("repositories");
    for (path, file) in read_files(&state) {
        if matches!(file, TestFile::Text(bytes) if bytes.starts_with(b"DIRC")) {
            fs::write(state.join(std::ffi::OsStr::from_bytes(&path)), "garbage").unwrap();
        }
    }
    assert_eq!(fixture.tree(), tree);
}

#[test]
fn the_cache_of_a_plain_directory_is_not_trusted_blindly() {
    let fixture = Fixture::plain();
    fixture.write("a", "1\n");
    fixture.write(".git/x", "never\n");
    let tree = fixture.tree();
    // From the cache.
    assert_eq!(fixture.tree(), tree);
    // The store was replaced, and the cache was not.
    fixture.blobs.clear();
    assert_eq!(fixture.tree(), tree);
    let workspace = fixture.open();
    fixture.write("a", "2\n");
    let head = tree_of(&workspace);
    assert!(patch_text(&workspace.diff(&tree, &head).unwrap()).contains("-1\n+2\n"));
    fixture.blobs.clear();
    let error = workspace.diff(&tree, &head).unwrap_err();
    assert!(matches!(error, WorkspaceError::MissingBlob(_)));
}

#[test]
fn the_callers_data_inside_the_workspace_is_no_part_of_it() {
    for fixture in [Fixture::git(&[("a", "1\n")]), Fixture::plain()] {
        fixture.write("a", "1\n");
        let before = fixture.tree();
        // The fixture's settings name this directory.
        fixture.write(".data/log/1", "records\n");
        assert_eq!(fixture.tree(), before);
        fixture.write("dir/.data/x", "another one of that name\n");
        assert_ne!(fixture.tree(), before);
    }
}
