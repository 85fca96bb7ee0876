//! Integration of several nodes' work.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use turnkeep_workspace::{
    CreateWorktree, FileConflict, Integrated, IntegrationOutcome, NodeChanges, TreeName,
};

use crate::diffs::any_state;
use crate::support::{
    Fixture, RUN, TestFile, TestFiles, files, git, path, read_files, replace_files, set_traps,
    tree_of, user_state, write_files,
};

/// A node in its worktree.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) directory: PathBuf,
    pub(crate) base: TreeName,
}

impl Node {
    pub(crate) fn create(fixture: &Fixture, name: &'static str) -> Self {
        let worktree = fixture.open_git().create_worktree(CreateWorktree {
            run: RUN,
            node: name,
            branch: &format!("turnkeep/{name}"),
        });
        let worktree = worktree.unwrap();
        Self {
            name,
            directory: worktree.directory,
            base: worktree.base_tree,
        }
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        write_files(&self.directory, &files(&[(path, content)]));
    }

    pub(crate) fn changes(&self, fixture: &Fixture) -> NodeChanges {
        NodeChanges {
            name: self.name.to_owned(),
            base_tree: self.base.clone(),
            head_tree: tree_of(&fixture.open_at(&self.directory)),
        }
    }
}

pub(crate) fn integrate(fixture: &Fixture, nodes: &[&Node]) -> IntegrationOutcome {
    let changes: Vec<NodeChanges> = nodes.iter().map(|node| node.changes(fixture)).collect();
    fixture.open_git().integrate(&changes).unwrap()
}

/// Checks an integrated tree out where a verification would run.
fn check_out(fixture: &Fixture, integrated: &Integrated) -> PathBuf {
    let checked_out = fixture
        .open_git()
        .check_out_integration(RUN, &integrated.tree);
    checked_out.unwrap()
}

pub(crate) fn expect_integrated(outcome: IntegrationOutcome) -> Integrated {
    match outcome {
        IntegrationOutcome::Integrated(integrated) => integrated,
        IntegrationOutcome::Conflicts(conflicts) => panic!("{conflicts:?}"),
    }
}

pub(crate) fn expect_conflicts(outcome: IntegrationOutcome) -> Vec<FileConflict> {
    match outcome {
        IntegrationOutcome::Conflicts(conflicts) => conflicts,
        IntegrationOutcome::Integrated(integrated) => panic!("{integrated:?}"),
    }
}

pub(crate) const TEN_LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn the_work_of_two_nodes_and_the_user_comes_together() {
    let fixture = Fixture::git(&[("shared", TEN_LINES), ("a", "1\n"), ("gone", "x\n")]);
    let marker = set_traps(&fixture.cwd);
    fixture.write("dirty", "uncommitted\n");
    let (a, b) = (Node::create(&fixture, "A"), Node::create(&fixture, "B"));
    let before = user_state(&fixture.cwd);
    a.write("shared", &TEN_LINES.replace("2\n", "two\n"));
    a.write("from-a", "1\n");
    fs::remove_file(a.directory.join("gone")).unwrap();
    b.write("shared", &TEN_LINES.replace("9\n", "nine\n"));
    b.write("dir/from-b", "1\n");
    fixture.write("a", "the user goes on\n");
    let integrated = expect_integrated(integrate(&fixture, &[&a, &b]));
    let merged = TEN_LINES.replace("2\n", "two\n").replace("9\n", "nine\n");
    let expect = files(&[
        ("shared", &merged),
        ("a", "the user goes on\n"),
        ("dirty", "uncommitted\n"),
        ("from-a", "1\n"),
        ("dir/from-b", "1\n"),
    ]);
    let directory = check_out(&fixture, &integrated);
    assert_eq!(read_files(&directory), expect);
    assert_eq!(tree_of(&fixture.open_at(&directory)), integrated.tree);
    assert_eq!(integrated.base_tree, fixture.tree());
    assert!(!marker.exists());
    assert_eq!(user_state(&fixture.cwd), before);
}

#[test]
fn the_integration_directory_is_updated_in_place() {
    let fixture = Fixture::git(&[("a", "1\n"), (".gitignore", "build/\n")]);
    let node = Node::create(&fixture, "A");
    node.write("x", "1\n");
    node.write("y", "1\n");
    let first = check_out(&fixture, &expect_integrated(integrate(&fixture, &[&node])));
    // What a verification leaves behind: ignored files stay, others go.
    write_files(
        &first,
        &files(&[("build/cache", "fast"), ("junk/f", "x"), ("a", "?")]),
    );
    fs::remove_file(node.directory.join("y")).unwrap();
    node.write("x", "2\n");
    let merged = expect_integrated(integrate(&fixture, &[&node]));
    assert!(first.join("junk").exists(), "a merge touches no file");
    let second = check_out(&fixture, &merged);
    assert_eq!(first, second);
    let expect = files(&[
        ("a", "1\n"),
        ("x", "2\n"),
        ("build/cache", "fast"),
        (".gitignore", "build/\n"),
    ]);
    assert_eq!(read_files(&second), expect);
    assert_eq!(git(&second, &["status", "--porcelain"]), "");
    // The same work again gives the same tree.
    assert_eq!(expect_integrated(integrate(&fixture, &[&node])), merged);
}

#[test]
fn without_nodes_the_integration_tree_is_the_directory_itself() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    fixture.write("new", "1\n");
    let integrated = expect_integrated(integrate(&fixture, &[]));
    assert_eq!(integrated.tree, fixture.tree());
    assert_eq!(integrated.base_tree, integrated.tree);
}

#[test]
fn conflicts_name_the_files_and_the_nodes() {
    let base = [
        ("f", TEN_LINES),
        ("d/x", "1\n"),
        ("bin", "\0one"),
        ("mode", "1\n"),
    ];
    let both = |a: &'static [(&str, &str)], b: &'static [(&str, &str)]| {
        let fixture = Fixture::git(&base);
        let nodes = [Node::create(&fixture, "A"), Node::create(&fixture, "B")];
        for (node, edits) in nodes.iter().zip([a, b]) {
            for (path, content) in edits {
                // An empty content stands for a removal.
                let file = node.directory.join(path);
                if content.is_empty() {
                    fs::remove_file(&file).unwrap();
                    fs::remove_dir(file.parent().unwrap()).unwrap_or_default();
                } else {
                    node.write(path, content);
                }
            }
        }
        let outcome = integrate(&fixture, &[&nodes[0], &nodes[1]]);
        assert_eq!(read_files(&fixture.cwd), files(&base));
        expect_conflicts(outcome)
    };
    let check = |conflicts: Vec<FileConflict>, at: &str, nodes: &[&str]| {
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
        assert_eq!(conflicts[0].path, path(at));
        assert_eq!(conflicts[0].nodes, nodes);
    };
    check(both(&[("f", "a\n")], &[("f", "b\n")]), "f", &["A", "B"]);
    check(both(&[("f", "")], &[("f", "b\n")]), "f", &["A", "B"]);
    check(both(&[("f", "a\n")], &[("f", "")]), "f", &["A", "B"]);
    check(
        both(&[("new", "a\n")], &[("new", "b\n")]),
        "new",
        &["A", "B"],
    );
    check(
        both(&[("bin", "\0a")], &[("bin", "\0b")]),
        "bin",
        &["A", "B"],
    );
    check(
        both(&[("n", "a\n")], &[("n/below", "b\n")]),
        "n/below",
        &["A", "B"],
    );
    check(
        both(&[("n/below", "a\n")], &[("n", "b\n")]),
        "n",
        &["A", "B"],
    );
}

#[test]
fn a_node_conflicts_with_the_users_own_edit() {
    let fixture = Fixture::git(&[("f", "1\n")]);
    let node = Node::create(&fixture, "A");
    node.write("f", "node\n");
    fixture.write("f", "user\n");
    let conflicts = expect_conflicts(integrate(&fixture, &[&node]));
    assert_eq!(
        conflicts,
        [FileConflict {
            path: path("f"),
            nodes: vec!["A".to_owned()]
        }]
    );
    assert_eq!(fixture.read("f"), "user\n");
}

#[test]
fn modes_and_contents_merge_apart() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::git(&[("f", "1\n")]);
    let (a, b) = (Node::create(&fixture, "A"), Node::create(&fixture, "B"));
    fs::set_permissions(a.directory.join("f"), PermissionsExt::from_mode(0o755)).unwrap();
    b.write("f", "2\n");
    let integrated = expect_integrated(integrate(&fixture, &[&a, &b]));
    let merged = read_files(&check_out(&fixture, &integrated));
    assert_eq!(
        merged.get(b"f".as_slice()),
        Some(&TestFile::Program(b"2\n".to_vec()))
    );
}

#[test]
fn a_subdirectory_integrates_at_its_place() {
    let mut fixture = Fixture::git(&[("app/a", "1\n"), ("lib/b", "1\n")]);
    fixture.cwd = fixture.cwd.join("app");
    let node = Node::create(&fixture, "A");
    node.write("a", "2\n");
    let integrated = expect_integrated(integrate(&fixture, &[&node]));
    let directory = check_out(&fixture, &integrated);
    assert_eq!(read_files(&directory), files(&[("a", "2\n")]));
    assert!(directory.ends_with("integration/app"));
}

/// What a merge must give for a path that at most one side changed, or that both changed alike.
/// `Err` if both changed it differently.
fn merge_by_model<'a>(
    base: Option<&'a TestFile>,
    a: Option<&'a TestFile>,
    b: Option<&'a TestFile>,
) -> Result<Option<&'a TestFile>, ()> {
    match () {
        () if a == b || b == base => Ok(a),
        () if a == base => Ok(b),
        () => Err(()),
    }
}

fn check_merge(base: &TestFiles, states: [&TestFiles; 2]) {
    let fixture = Fixture::git(&[]);
    replace_files(&fixture.cwd, base);
    let nodes = [Node::create(&fixture, "A"), Node::create(&fixture, "B")];
    for (node, state) in nodes.iter().zip(states) {
        replace_files(&node.directory, state);
    }
    let outcome = integrate(&fixture, &[&nodes[0], &nodes[1]]);
    assert_eq!(&read_files(&fixture.cwd), base, "the user's files stay");
    let [a, b] = states;
    let paths: BTreeSet<&Vec<u8>> = base.keys().chain(a.keys()).chain(b.keys()).collect();
    let model = |path: &Vec<u8>| merge_by_model(base.get(path), a.get(path), b.get(path));
    match outcome {
        IntegrationOutcome::Integrated(integrated) => {
            let merged = read_files(&check_out(&fixture, &integrated));
            for path in paths {
                if let Ok(expect) = model(path) {
                    assert_eq!(
                        merged.get(path),
                        expect,
                        "{}",
                        String::from_utf8_lossy(path)
                    );
                }
            }
        }
        IntegrationOutcome::Conflicts(conflicts) => {
            for conflict in conflicts {
                let path = conflict.path.as_bytes().to_vec();
                let is_directory_elsewhere = paths.iter().any(|other| {
                    other.starts_with(&[&path[..], b"/"].concat())
                        || path.starts_with(&[&other[..], b"/"].concat())
                });
                assert!(
                    model(&path).is_err() || is_directory_elsewhere,
                    "{conflict:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 15, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_keeps_every_change_that_nothing_contradicts(
        base in any_state(),
        a in any_state(),
        b in any_state(),
    ) {
        check_merge(&base, [&a, &b]);
    }
}
