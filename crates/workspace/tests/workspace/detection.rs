//! Which directories count as repositories.

use std::fs;

use turnkeep_workspace::{Detection, Workspace};

use crate::support::{Fixture, git};

fn check(fixture: &Fixture, below: &str, expect: bool) {
    let workspace = fixture.open_at(&fixture.cwd.join(below));
    let detection = workspace.detection();
    assert_eq!(workspace.has_repository(), expect, "{below}: {detection:?}");
}

#[test]
fn a_repository_with_a_commit_is_found_from_any_directory_in_it() {
    let fixture = Fixture::git(&[("a/b/c.txt", "1\n"), (".gitignore", "out/\n")]);
    fs::create_dir_all(fixture.cwd.join("out/deep")).unwrap();
    fs::create_dir_all(fixture.cwd.join("new")).unwrap();
    check(&fixture, "", true);
    check(&fixture, "a", true);
    check(&fixture, "a/b", true);
    check(&fixture, "new", true);
    check(&fixture, "out", false);
    check(&fixture, "out/deep", false);
    check(&fixture, ".git", false);
}

#[test]
fn other_directories_are_plain_and_say_why() {
    let fixture = Fixture::plain();
    check(&fixture, "", false);
    git(&fixture.cwd, &["init", "-q", "empty"]);
    check(&fixture, "empty", false);
    git(&fixture.cwd, &["init", "-q", "--bare", "bare"]);
    check(&fixture, "bare", false);
    let workspace = fixture.open_at(&fixture.cwd.join("empty"));
    let Detection::Plain(reason) = workspace.detection() else {
        panic!("it has no commit");
    };
    assert!(reason.contains("no commit"), "{reason}");
    assert!(workspace.as_git().is_err());
}

#[test]
fn a_damaged_repository_is_plain() {
    let fixture = Fixture::git(&[("a", "1\n")]);
    fs::write(fixture.cwd.join(".git/HEAD"), "garbage").unwrap();
    check(&fixture, "", false);
    let fixture = Fixture::git(&[("a", "1\n")]);
    fs::remove_dir_all(fixture.cwd.join(".git/objects")).unwrap();
    check(&fixture, "", false);
}

#[test]
fn without_git_everything_is_plain() {
    let mut fixture = Fixture::git(&[("a", "1\n")]);
    fixture.settings.git_program = "/nonexistent/git".into();
    check(&fixture, "", false);
    assert_eq!(fixture.tree().as_str().len(), 64);
}

#[test]
fn a_missing_directory_is_an_error() {
    let fixture = Fixture::plain();
    let missing = fixture.cwd.join("missing");
    let opened = Workspace::open(&fixture.settings, fixture.blobs.clone(), &missing);
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("missing"), "{error}");
}
