//! Patches: `git apply` turns the base into the head.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use proptest::prelude::*;
use turnkeep_workspace::{ChangeKind, Diff};

use crate::support::{
    Fixture, TestFile, TestFiles, files, git_command, patch_text, path, read_files, replace_files,
    revert, text, tree_of,
};

/// Records two states and compares them.
fn diff_states(fixture: &Fixture, base: &TestFiles, head: &TestFiles) -> Diff {
    let workspace = fixture.open();
    replace_files(&fixture.cwd, base);
    let base = tree_of(&workspace);
    replace_files(&fixture.cwd, head);
    let head = tree_of(&workspace);
    workspace.diff(&base, &head).unwrap()
}

fn apply_patch(directory: &Path, patch: &[u8]) -> Result<(), String> {
    let mut child = git_command(directory, &["apply", "-"])
        .env("GIT_CEILING_DIRECTORIES", directory)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(patch).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Applies a patch to a copy of the base with git.
fn check_patch(diff: &Diff, base: &TestFiles, head: &TestFiles) {
    let copy = tempfile::tempdir().unwrap();
    replace_files(copy.path(), base);
    if !diff.is_empty() {
        let applied = apply_patch(copy.path(), &diff.patch);
        assert_eq!(applied, Ok(()), "{}", patch_text(diff));
    }
    assert_eq!(&read_files(copy.path()), head, "{}", patch_text(diff));
}

fn both_kinds() -> [Fixture; 2] {
    [Fixture::git(&[]), Fixture::plain()]
}

#[test]
fn git_applies_patches_of_every_kind_of_change() {
    let long: Vec<String> = (0..100).map(|n| format!("line {n}\n")).collect();
    let long = long.concat();
    let edited = long
        .replace("line 10\n", "ten\n")
        .replace("line 14\n", "")
        .replace("line 80\n", "line 80\nmore\n");
    let program = |content: &str| TestFile::Program(content.as_bytes().to_vec());
    let link = |target: &str| TestFile::Link(target.as_bytes().to_vec());
    let binary = TestFile::Text((0..=255).cycle().take(70_000).collect());
    let table: Vec<(Option<TestFile>, Option<TestFile>)> = vec![
        (None, Some(text("new\n"))),
        (Some(text("gone\n")), None),
        (None, Some(text(""))),
        (Some(text("")), None),
        (Some(text(&long)), Some(text(&edited))),
        (Some(text("a")), Some(text("a\n"))),
        (Some(text("a\n")), Some(text("b"))),
        (Some(text("same\n")), Some(program("same\n"))),
        (Some(program("old\n")), Some(text("new\n"))),
        (Some(text("file\n")), Some(link("target"))),
        (Some(link("one")), Some(link("two"))),
        (Some(link("one")), None),
        (None, Some(binary.clone())),
        (Some(binary.clone()), None),
        (Some(binary), Some(text("text now\n"))),
        (Some(text("x\0y")), Some(text("x\0z"))),
    ];
    for fixture in both_kinds() {
        for (before, after) in &table {
            for name in ["dir/sp ace", "tab\tand \"quote\"\nü"] {
                let state = |file: &Option<TestFile>| {
                    let file = file.clone().map(|file| (name.as_bytes().to_vec(), file));
                    let other = (b"other".to_vec(), text("unchanged\n"));
                    file.into_iter().chain([other]).collect::<TestFiles>()
                };
                let (base, head) = (state(before), state(after));
                let diff = diff_states(&fixture, &base, &head);
                check_patch(&diff, &base, &head);
                let touched = diff.touched_paths();
                assert_eq!(touched.len(), 1);
                assert_eq!(touched[0].as_bytes(), name.as_bytes());
                assert!(diff.is_complete);
            }
        }
    }
}

#[test]
fn a_diff_counts_lines_and_names_renames() {
    let content = "one\ntwo\nthree\nfour\n";
    for fixture in both_kinds() {
        let base = files(&[("old name", content), ("a", "1\n2\n3\n"), ("b", "x\n")]);
        let head = files(&[("dir/new", content), ("a", "1\nzwei\n3\n4\n")]);
        let diff = diff_states(&fixture, &base, &head);
        check_patch(&diff, &base, &head);
        assert_eq!(diff.summary, "3 files changed, +2 -2");
        let renamed = diff.files.iter().find(|file| file.path == path("dir/new"));
        let from = path("old name");
        assert_eq!(renamed.unwrap().kind, ChangeKind::Renamed { from });
        assert!(patch_text(&diff).contains("rename from old name\nrename to dir/new\n"));
        let unchanged = diff_states(&fixture, &head, &head);
        assert!(unchanged.is_empty() && unchanged.patch.is_empty());
        assert_eq!(unchanged.summary, "no changes");
    }
}

#[test]
fn a_file_that_moves_and_becomes_executable_is_applied_whole() {
    for fixture in both_kinds() {
        let base = files(&[("a", "same\n")]);
        let program = TestFile::Program(b"same\n".to_vec());
        let head: TestFiles = [(b"b".to_vec(), program)].into();
        check_patch(&diff_states(&fixture, &base, &head), &base, &head);
    }
}

#[test]
fn a_large_binary_file_of_a_plain_directory_is_only_mentioned() {
    let fixture = Fixture::plain();
    let large = TestFile::Text(vec![0; (1 << 20) + 1]);
    let head: TestFiles = [(b"big".to_vec(), large)].into();
    let diff = diff_states(&fixture, &files(&[]), &head);
    assert!(!diff.is_complete);
    assert!(patch_text(&diff).ends_with("Binary files a/big and b/big differ\n"));
}

fn any_file() -> impl Strategy<Value = TestFile> {
    let content = prop_oneof![
        "([abc]\n){0,12}",
        "([abc]\n){0,30}[ab]",
        "[a-c\\x00\n]{0,40}",
    ];
    prop_oneof![
        6 => content.clone().prop_map(|content| TestFile::Text(content.into_bytes())),
        2 => content.prop_map(|content| TestFile::Program(content.into_bytes())),
        1 => "[a-z]{1,5}".prop_map(|target| TestFile::Link(target.into_bytes())),
    ]
}

pub(crate) fn any_state() -> impl Strategy<Value = TestFiles> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "dir/a",
        "dir/sub/x",
        "dir",
        "c",
        "c/d",
        "e f",
        "ü",
    ]);
    let name = name.prop_map(|name| name.as_bytes().to_vec());
    prop::collection::btree_map(name, any_file(), 0..6).prop_map(without_files_as_directories)
}

/// Leaves out files inside a directory that is also a file.
fn without_files_as_directories(state: TestFiles) -> TestFiles {
    let names: Vec<Vec<u8>> = state.keys().cloned().collect();
    let is_below = |path: &[u8], above: &[u8]| path.starts_with(&[above, b"/"].concat());
    let is_free = |path: &[u8]| !names.iter().any(|above| is_below(path, above));
    state
        .into_iter()
        .filter(|(path, _)| is_free(path))
        .collect()
}

/// Both ways to get from one state to another: git applies the patch, and we write the files.
fn check_states(fixture: &Fixture, base: &TestFiles, head: &TestFiles) {
    let diff = diff_states(fixture, base, head);
    check_patch(&diff, base, head);
    let workspace = fixture.open();
    let head_tree = tree_of(&workspace);
    replace_files(&fixture.cwd, base);
    let base_tree = tree_of(&workspace);
    revert(&workspace, &head_tree, &base_tree);
    assert_eq!(&read_files(&fixture.cwd), head);
    assert_eq!(tree_of(&workspace), head_tree);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_plain_state_can_become_any_other(base in any_state(), head in any_state()) {
        check_states(&Fixture::plain(), &base, &head);
    }

    #[test]
    fn any_state_of_a_repository_can_become_any_other(base in any_state(), head in any_state()) {
        check_states(&Fixture::git(&[]), &base, &head);
    }
}
