//! Landing the integrated tree, and taking turns back.

use std::fs;

use turnkeep_workspace::{ApplyOutcome, ApplyTree, Integrated, LandOutcome};

use crate::integration::{Node, TEN_LINES, expect_integrated, integrate};
use crate::support::{
    Fixture, RUN, TestFile, files, git, path, paths, read_files, replace_files, revert, tree_of,
    user_state,
};

fn apply(fixture: &Fixture, integrated: &Integrated) -> ApplyOutcome {
    let apply = ApplyTree {
        base: &integrated.base_tree,
        tree: &integrated.tree,
    };
    fixture.open_git().apply(apply).unwrap()
}

#[test]
fn apply_lands_exactly_the_integrated_tree() {
    let fixture = Fixture::git(&[
        ("f", TEN_LINES),
        ("gone/x", "1\n"),
        (".gitignore", "*.log\n"),
    ]);
    fixture.write("staged", "1\n");
    git(&fixture.cwd, &["add", "staged"]);
    fixture.write("user.log", "ignored\n");
    let (a, b) = (Node::create(&fixture, "A"), Node::create(&fixture, "B"));
    a.write("f", &TEN_LINES.replace("2\n", "two\n"));
    fs::remove_file(a.directory.join("gone/x")).unwrap();
    b.write("f", &TEN_LINES.replace("9\n", "nine\n"));
    b.write("new/dir/file", "1\n");
    let before = user_state(&fixture.cwd);
    let integrated = expect_integrated(integrate(&fixture, &[&a, &b]));
    let applied = apply(&fixture, &integrated);
    let expect = paths(&["f", "gone/x", "new/dir/file"]);
    assert_eq!(applied, ApplyOutcome::Applied { paths: expect });
    assert_eq!(fixture.tree(), integrated.tree);
    assert_eq!(fixture.read("user.log"), "ignored\n");
    assert!(!fixture.cwd.join("gone").exists());
    assert_eq!(user_state(&fixture.cwd), before);
    // Nothing is new the second time, whatever base the caller names for the nodes.
    let again = expect_integrated(integrate(&fixture, &[&a, &b]));
    assert_eq!(
        apply(&fixture, &again),
        ApplyOutcome::Applied { paths: Vec::new() }
    );
    // More work of one node: only that lands.
    let a = Node {
        base: a.changes(&fixture).head_tree,
        ..a
    };
    a.write("more", "1\n");
    let more = expect_integrated(integrate(&fixture, &[&a]));
    let expect = paths(&["more"]);
    assert_eq!(
        apply(&fixture, &more),
        ApplyOutcome::Applied { paths: expect }
    );
}

#[test]
fn a_directory_that_moved_on_is_integrated_again() {
    let fixture = Fixture::git(&[("f", "1\n"), ("g", "1\n")]);
    let node = Node::create(&fixture, "A");
    node.write("f", "2\n");
    let integrated = expect_integrated(integrate(&fixture, &[&node]));
    fixture.write("g", "edited in between\n");
    let ApplyOutcome::MovedOn { tree, paths: moved } = apply(&fixture, &integrated) else {
        panic!("the directory changed");
    };
    assert_eq!((tree, moved), (fixture.tree(), paths(&["g"])));
    assert_eq!(fixture.read("f"), "1\n");
    let integrated = expect_integrated(integrate(&fixture, &[&node]));
    apply(&fixture, &integrated);
    assert_eq!(fixture.read("f"), "2\n");
    assert_eq!(fixture.read("g"), "edited in between\n");
}

#[test]
fn an_ignored_file_in_the_way_is_a_conflict() {
    let fixture = Fixture::git(&[("f", "1\n"), (".gitignore", "*.log\n")]);
    let node = Node::create(&fixture, "A");
    node.write("f", "2\n");
    node.write("x.log", "forced\n");
    git(&node.directory, &["add", "-f", "x.log"]);
    git(&node.directory, &["commit", "-q", "-a", "-m", "work"]);
    fixture.write("x.log", "precious\n");
    let integrated = expect_integrated(integrate(&fixture, &[&node]));
    let applied = apply(&fixture, &integrated);
    assert_eq!(
        applied,
        ApplyOutcome::Conflicts {
            paths: paths(&["x.log"])
        }
    );
    assert_eq!(fixture.read("x.log"), "precious\n");
    assert_eq!(fixture.read("f"), "1\n");
}

#[test]
fn reverting_a_turn_restores_its_files_and_no_others() {
    for fixture in [Fixture::git(&[("x", "")]), Fixture::plain()] {
        let workspace = fixture.open();
        replace_files(
            &fixture.cwd,
            &files(&[("a", "1\n"), ("b", "1\n"), ("other", "1\n")]),
        );
        let base = tree_of(&workspace);
        fixture.write("a", "2\n");
        fixture.remove("b");
        fixture.write("new", "2\n");
        let head = tree_of(&workspace);
        fixture.write("other", "edited later\n");
        let reverted = workspace.revert(&base, &head, None).unwrap();
        assert_eq!(
            reverted,
            LandOutcome::Landed {
                paths: paths(&["a", "b", "new"]),
                unchanged: Vec::new(),
            }
        );
        let expect = files(&[("a", "1\n"), ("b", "1\n"), ("other", "edited later\n")]);
        assert_eq!(read_files(&fixture.cwd), expect);
        // The same again finds everything done. Somebody may have restored a part by hand.
        for restored in [&[][..], &["b"]] {
            for name in restored {
                fixture.remove(name);
                fixture.write("a", "2\n");
            }
            let again = workspace.revert(&base, &head, None).unwrap();
            let LandOutcome::Landed { paths, unchanged } = again else {
                panic!("{again:?}");
            };
            assert_eq!(paths.len() + unchanged.len(), 3, "{paths:?} {unchanged:?}");
            assert_eq!(read_files(&fixture.cwd), expect);
        }
    }
}

#[test]
fn a_revert_is_refused_if_a_file_changed_since() {
    for fixture in [Fixture::git(&[("x", "")]), Fixture::plain()] {
        let workspace = fixture.open();
        replace_files(&fixture.cwd, &files(&[("a", "1\n"), ("b", "1\n")]));
        let base = tree_of(&workspace);
        replace_files(
            &fixture.cwd,
            &files(&[("a", "2\n"), ("b", "2\n"), ("c", "2\n")]),
        );
        let head = tree_of(&workspace);
        fixture.write("b", "edited since\n");
        fixture.remove("c");
        let now = read_files(&fixture.cwd);
        let refused = workspace.revert(&base, &head, None).unwrap();
        assert_eq!(
            refused,
            // `c` is missing, as it was before the turn.
            LandOutcome::Conflicts {
                paths: paths(&["b"])
            }
        );
        assert_eq!(read_files(&fixture.cwd), now);
        // Path by path: the others can be reverted, one after the other.
        let one = workspace
            .revert(&base, &head, Some(&paths(&["a"])))
            .unwrap();
        assert_eq!(
            one,
            LandOutcome::Landed {
                paths: vec![path("a")],
                unchanged: Vec::new(),
            }
        );
        assert_eq!(fixture.read("a"), "1\n");
        assert_eq!(fixture.read("b"), "edited since\n");
    }
}

#[test]
fn what_a_node_may_not_write_is_restored_in_its_worktree() {
    let fixture = Fixture::git(&[("src/x", "1\n"), ("docs/plan.md", "1\n")]);
    let node = Node::create(&fixture, "planner");
    node.write("src/x", "forbidden\n");
    node.write("src/new", "forbidden\n");
    node.write("docs/plan.md", "allowed\n");
    let head = node.changes(&fixture).head_tree;
    let workspace = fixture.open_at(&node.directory);
    let violations = paths(&["src/new", "src/x"]);
    let restored = workspace
        .revert(&node.base, &head, Some(&violations))
        .unwrap();
    let unchanged = Vec::new();
    let paths = violations;
    assert_eq!(restored, LandOutcome::Landed { paths, unchanged });
    let expect = files(&[("src/x", "1\n"), ("docs/plan.md", "allowed\n")]);
    assert_eq!(read_files(&node.directory), expect);
}

#[test]
fn permissions_that_no_tree_knows_survive() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::plain();
    fixture.write("secret", "1\n");
    let file = fixture.cwd.join("secret");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let workspace = fixture.open();
    let base = tree_of(&workspace);
    fs::write(&file, "2\n").unwrap();
    let head = tree_of(&workspace);
    revert(&workspace, &base, &head);
    assert_eq!(fixture.read("secret"), "1\n");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_parent_directory_that_became_a_link_is_never_written_through() {
    for fixture in [Fixture::git(&[("x", "")]), Fixture::plain()] {
        let workspace = fixture.open();
        replace_files(&fixture.cwd, &files(&[("dir/a", "1\n")]));
        let base = tree_of(&workspace);
        replace_files(&fixture.cwd, &files(&[("dir/a", "2\n")]));
        let head = tree_of(&workspace);
        let elsewhere = fixture.root.path().join("elsewhere");
        fs::rename(fixture.cwd.join("dir"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, fixture.cwd.join("dir")).unwrap();
        let refused = workspace.revert(&base, &head, None).unwrap();
        assert_eq!(
            refused,
            LandOutcome::Conflicts {
                paths: paths(&["dir/a"])
            }
        );
        assert_eq!(read_files(&elsewhere), files(&[("a", "2\n")]));
        let link = TestFile::Link(elsewhere.to_str().unwrap().into());
        assert_eq!(read_files(&fixture.cwd), [(b"dir".to_vec(), link)].into());
        fs::remove_dir_all(&elsewhere).unwrap();
    }
}

#[test]
fn everything_together_leaves_the_users_repository_alone() {
    let fixture = Fixture::git(&[("f", "1\n")]);
    fixture.write("f", "stashed\n");
    git(&fixture.cwd, &["stash", "-q"]);
    let before = user_state(&fixture.cwd);
    let node = Node::create(&fixture, "A");
    node.write("f", "2\n");
    let changes = node.changes(&fixture);
    let integrated = expect_integrated(integrate(&fixture, &[&node]));
    apply(&fixture, &integrated);
    let workspace = fixture.open();
    revert(&workspace, &integrated.base_tree, &integrated.tree);
    let remove = turnkeep_workspace::RemoveWorktree {
        run: RUN,
        node: "A",
        applied: &[changes.head_tree],
    };
    // A worktree outlives the run's snapshots.
    workspace.as_git().unwrap().forget_run(RUN).unwrap();
    assert!(node.directory.exists());
    workspace.as_git().unwrap().remove_worktree(remove).unwrap();
    workspace.as_git().unwrap().forget_run(RUN).unwrap();
    assert!(!fixture.settings.worktrees_dir.join(RUN).exists());
    assert_eq!(user_state(&fixture.cwd), before);
    assert_eq!(git(&fixture.cwd, &["status", "--porcelain"]), "");
    assert_eq!(
        git(
            &fixture.cwd,
            &["for-each-ref", "refs/turnkeep", "refs/heads/turnkeep"]
        ),
        ""
    );
}
