//! Verification, apply and revert, compared byte by byte with the user's directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, make_repository, skip};

const SCRIPT: &str = r#"
[[turn]]
when = "BUILD IT"
repeat = true
steps = [
    { run = "sh SANDBOX/build.sh" },
    { say = "Built." },
]

[[turn]]
when = "WRITE A"
repeat = true
steps = [
    { write = "a.txt", content = "from a\n" },
    { say = "a is written." },
]

[[turn]]
when = "WRITE MINE"
steps = [
    { write = "mine.txt", content = "of the node\n" },
    { say = "Written." },
]

[[turn]]
when = "WORK SLOWLY"
steps = [
    { write = "a.txt", content = "from a\n" },
    { touch = "SANDBOX/wrote" },
    { wait_for_file = "SANDBOX/go-on" },
    { write = "later.txt", content = "from a\n" },
    { say = "Written." },
]

[[turn]]
when = "WAIT"
steps = [
    { touch = "SANDBOX/waits" },
    { wait_for_file = "SANDBOX/go-on" },
    { say = "Waited." },
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

/// Two writers in a repository, so that each has a worktree.
fn start(settings: Value) -> (Team, String, [String; 2]) {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(settings);
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    let b = team.add_node(&run, "implementer", "claude", skip("b"));
    (team, run, [a, b])
}

fn play(team: &Team, run: &str, node: &str, content: &str) {
    team.chat(run, node, content);
    assert_eq!(team.wait_for_turn_end(run, node, 1), "turn.completed");
}

fn apply(team: &Team, run: &str) -> Value {
    team.post(&format!("/api/runs/{run}/apply"), &json!({}))
}

/// Runs the commands of the run, and returns the report.
fn verify(team: &Team, run: &str) -> Value {
    let verified = team.post(&format!("/api/runs/{run}/verify"), &json!({}));
    let report = team.read_artifact(run, &verified["artifact"]);
    serde_json::from_str(&report).unwrap()
}

fn turn_of(team: &Team, run: &str, node: &str) -> String {
    let diffs = team.artifacts_of(run, node, "diff");
    let turn = &diffs.last().unwrap()["metadata"]["turnId"];
    turn.as_str().unwrap().to_owned()
}

fn git(dir: &Path, args: &[&str], index: Option<&Path>) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The tree of the user's directory as git itself makes it, with an index of our own.
fn tree_of(team: &Team) -> String {
    let index = team.sandbox.path("index-of-the-test");
    fs::remove_file(&index).unwrap_or_default();
    git(&team.work(), &["add", "--all"], Some(&index));
    git(&team.work(), &["write-tree"], Some(&index))
}

/// Every file of the user's directory: its mode, and its content or target.
fn read_all(team: &Team) -> BTreeMap<String, (u32, Vec<u8>)> {
    let names = git(
        &team.work(),
        &["ls-files", "--cached", "--others", "--deduplicate"],
        None,
    );
    let read = |name: &str| {
        let path = team.work().join(name);
        let about = fs::symlink_metadata(&path).ok()?;
        let content = if about.is_symlink() {
            OsString::from(fs::read_link(&path).unwrap()).into_vec()
        } else {
            fs::read(&path).unwrap()
        };
        Some((name.to_owned(), (about.mode() & 0o170_100, content)))
    };
    names.lines().filter_map(read).collect()
}

/// Files of every kind, of which the build changes each.
fn write_all_kinds(team: &Team) {
    let work = team.work();
    fs::write(work.join("tool.sh"), "#!/bin/sh\n").unwrap();
    fs::write(work.join("crlf.txt"), "one\r\ntwo\r\n").unwrap();
    fs::write(work.join("gone.txt"), "goes\n").unwrap();
    fs::write(work.join("blob.bin"), b"\0\xff\x01before").unwrap();
    fs::write(work.join("no-newline"), "end").unwrap();
    symlink("crlf.txt", work.join("link")).unwrap();
    let build = r"
        chmod +x tool.sh
        printf 'one\r\n2\r\n' > crlf.txt
        rm gone.txt
        printf '\000\376\001after' > blob.bin
        printf 'another end' > no-newline
        ln -sfn blob.bin link
        ln -s tool.sh new-link
        mkdir deep && printf '#!/bin/sh\n' > deep/new.sh && chmod +x deep/new.sh
    ";
    fs::write(team.sandbox.path("build.sh"), build).unwrap();
}

#[test]
fn exactly_the_verified_tree_lands_and_a_revert_restores_every_byte() {
    let (team, run, [a, b]) = start(json!({"verify": ["test -x deep/new.sh"]}));
    write_all_kinds(&team);
    let before = (tree_of(&team), read_all(&team));
    play(&team, &run, &a, "BUILD IT");
    assert_eq!(read_all(&team), before.1, "nothing lands by itself");
    // The other node works all the time.
    team.chat(&run, &b, "WAIT");
    wait_until("b does not work", || team.sandbox.path("waits").exists());

    let report = verify(&team, &run);
    assert_eq!(report["ok"], true, "{report}");
    let applied = apply(&team, &run);
    assert_eq!(applied["verified"], true, "{applied}");
    assert_eq!(applied["tree"], report["tree"]);
    assert_eq!(applied["tree"], tree_of(&team), "byte for byte");
    let all = [
        "blob.bin",
        "crlf.txt",
        "deep/new.sh",
        "gone.txt",
        "link",
        "new-link",
        "no-newline",
        "tool.sh",
    ];
    assert_eq!(applied["applied"], json!(all));

    let turn = turn_of(&team, &run, &a);
    let reverted = team.post(&format!("/api/runs/{run}/turns/{turn}/revert"), &json!({}));
    assert_eq!(reverted["paths"], json!(all));
    assert_eq!((tree_of(&team), read_all(&team)), before);
    fs::write(team.sandbox.path("go-on"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&run, &b, 1), "turn.completed");
}

#[test]
fn a_verification_keeps_its_tree_while_the_run_is_applied() {
    let (team, run, [a, _]) = start(json!({}));
    let gate = team.sandbox.path("gate");
    let made = Command::new("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    let file = |name: &str| team.sandbox.path(name);
    // Reading the gate waits until the test has written to it.
    let command = format!(
        "cat mine.txt > {first}; cat {gate}; cat mine.txt > {last}; test ! -e new.txt",
        first = file("seen-first").display(),
        gate = gate.display(),
        last = file("seen-last").display(),
    );
    team.patch(&format!("/api/runs/{run}"), &json!({"verify": [command]}));
    fs::write(team.work().join("mine.txt"), "one\n").unwrap();
    play(&team, &run, &a, "WRITE A");
    let (report, applied) = std::thread::scope(|scope| {
        let report = scope.spawn(|| verify(&team, &run));
        wait_until("the command does not run", || file("seen-first").exists());
        fs::write(team.work().join("mine.txt"), "two\n").unwrap();
        fs::write(team.work().join("new.txt"), "new\n").unwrap();
        let applied = apply(&team, &run);
        fs::write(&gate, "").unwrap();
        (report.join().unwrap(), applied)
    });
    assert_eq!(applied["applied"], json!(["a.txt"]));
    assert_eq!(report["ok"], true, "{report}");
    for name in ["seen-first", "seen-last"] {
        assert_eq!(fs::read_to_string(file(name)).unwrap(), "one\n", "{name}");
    }
    let tree = report["tree"].as_str().unwrap();
    let of_report = format!("{tree}:mine.txt");
    assert_eq!(
        git(&team.work(), &["cat-file", "-p", &of_report], None),
        "one"
    );
    assert_eq!(applied["verified"], false, "the user's edit came later");
    assert_ne!(applied["tree"], tree);
}

#[test]
fn the_newest_verification_of_a_tree_counts() {
    let (team, run, [a, _]) = start(json!({}));
    let broken = team.sandbox.path("broken");
    let command = format!("test ! -e {}", broken.display());
    team.patch(&format!("/api/runs/{run}"), &json!({"verify": [command]}));
    play(&team, &run, &a, "WRITE A");
    let first = verify(&team, &run);
    assert_eq!(
        (&first["ok"], &first["scope"]),
        (&json!(true), &json!("run"))
    );
    fs::write(&broken, "").unwrap();
    let second = verify(&team, &run);
    assert_eq!(
        (&second["ok"], &second["tree"]),
        (&json!(false), &first["tree"])
    );
    assert_eq!(apply(&team, &run)["verified"], false);
}

#[test]
fn a_directory_without_git_has_a_verified_tree_too() {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({"verify": ["test -f a.txt"]}));
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    play(&team, &run, &a, "WRITE A");
    let report = verify(&team, &run);
    let applied = apply(&team, &run);
    assert_eq!(applied["tree"], report["tree"], "{report}");
    assert_eq!(applied["verified"], true);
    fs::write(team.work().join("a.txt"), "edited\n").unwrap();
    assert_eq!(apply(&team, &run)["verified"], false);
}

#[test]
fn a_turn_can_be_reverted_after_a_garbage_collection() {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    // No commit has this text.
    let mine = team.work().join("mine.txt");
    fs::write(&mine, "uncommitted\n").unwrap();
    play(&team, &run, &node, "WRITE MINE");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "of the node\n");
    git(&team.work(), &["gc", "--quiet", "--prune=now"], None);
    let turn = turn_of(&team, &run, &node);
    let revert = format!("/api/runs/{run}/turns/{turn}/revert");
    assert_eq!(team.post(&revert, &json!({}))["paths"], json!(["mine.txt"]));
    assert_eq!(fs::read_to_string(&mine).unwrap(), "uncommitted\n");
}

#[test]
fn a_second_revert_changes_nothing_and_the_run_remembers_the_first() {
    let (team, run, [a, _]) = start(json!({}));
    play(&team, &run, &a, "WRITE A");
    apply(&team, &run);
    let turn = turn_of(&team, &run, &a);
    let revert = format!("/api/runs/{run}/turns/{turn}/revert");
    let first = team.post(&revert, &json!({}));
    assert_eq!(first, json!({"paths": ["a.txt"]}));
    let second = team.post(&revert, &json!({}));
    assert_eq!(second, json!({"paths": [], "already": ["a.txt"]}));
    assert!(!team.work().join("a.txt").exists());
    // The diff of the turn stays as it is; a file of the run says what became of it.
    let artifacts = team.get(&format!("/api/runs/{run}/artifacts"));
    let artifacts = artifacts["artifacts"].as_array().unwrap();
    let noted: Vec<&Value> = artifacts
        .iter()
        .filter(|artifact| artifact["name"] == "revert.json")
        .collect();
    assert_eq!(noted.len(), 1, "{noted:#?}");
    let metadata = &noted[0]["metadata"];
    assert_eq!(
        (&metadata["turnId"], &metadata["filesChanged"]),
        (&json!(turn), &json!(["a.txt"]))
    );
    // Somebody else's file is still a conflict.
    fs::write(team.work().join("a.txt"), "of the user\n").unwrap();
    let refused = team.request("POST", &revert, Some(&json!({})));
    assert_eq!(refused.status, 409, "{}", refused.body);
    let kept = fs::read_to_string(team.work().join("a.txt")).unwrap();
    assert_eq!(kept, "of the user\n");
}

#[test]
fn a_repeated_request_lands_nothing_twice_and_gets_the_first_answer() {
    let (mut team, run, [a, _]) = start(json!({}));
    play(&team, &run, &a, "WRITE A");
    let turn = turn_of(&team, &run, &a);
    let at = |tail: &str| format!("/api/runs/{run}{tail}");
    let revert = at(&format!("/turns/{turn}/revert"));
    let post = |team: &Team, path: &str, key: &str, body: &Value| {
        team.request_with("POST", path, Some(body), &[("Idempotency-Key", key)])
    };
    let check_repeats = |team: &Team, path: &str, key: &str, first: &Value| {
        let again = post(team, path, key, &json!({}));
        assert_eq!((again.status, &again.body), (200, first), "{path}");
        let reused = post(team, path, key, &json!({"other": true}));
        assert_eq!(reused.status, 409, "{path}: {}", reused.body);
    };
    let applied = post(&team, &at("/apply"), "k1", &json!({})).body;
    assert_eq!(applied["applied"], json!(["a.txt"]));
    check_repeats(&team, &at("/apply"), "k1", &applied);
    let reverted = post(&team, &revert, "k2", &json!({})).body;
    assert_eq!(reverted["paths"], json!(["a.txt"]));
    fs::write(team.work().join("a.txt"), "of the user\n").unwrap();
    check_repeats(&team, &revert, "k2", &reverted);
    team.restart();
    check_repeats(&team, &at("/apply"), "k1", &applied);
    check_repeats(&team, &revert, "k2", &reverted);
    let kept = fs::read_to_string(team.work().join("a.txt")).unwrap();
    assert_eq!(kept, "of the user\n", "a repeat changes no file");
}

#[test]
fn work_that_was_applied_during_a_turn_is_not_applied_again() {
    let (team, run, [a, _]) = start(json!({}));
    team.chat(&run, &a, "WORK SLOWLY");
    wait_until("a does not write", || team.sandbox.path("wrote").exists());
    assert_eq!(apply(&team, &run)["applied"], json!(["a.txt"]));
    // The user goes on with the file while the node still works.
    fs::write(team.work().join("a.txt"), "edited\n").unwrap();
    assert_eq!(apply(&team, &run)["applied"], json!([]));
    fs::write(team.sandbox.path("go-on"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
    assert_eq!(apply(&team, &run)["applied"], json!(["later.txt"]));
    let kept = fs::read_to_string(team.work().join("a.txt")).unwrap();
    assert_eq!(kept, "edited\n");
}

#[test]
fn a_taken_branch_is_left_alone_and_the_node_shows_its_own() {
    let (team, run, [a, b]) = start(json!({}));
    let taken = format!("turnkeep/{}/a", &run[..8]);
    git(&team.work(), &["branch", &taken], None);
    play(&team, &run, &a, "WRITE A");
    play(&team, &run, &b, "Look around");
    let branch = |node: &str| team.show_node(&run, node)["workspace"]["branch"].clone();
    assert_eq!(branch(&a), format!("{taken}-2"));
    assert_eq!(branch(&b), format!("turnkeep/{}/b", &run[..8]));
    let list = git(&team.work(), &["worktree", "list", "--porcelain"], None);
    for node in [&a, &b] {
        let line = format!("branch refs/heads/{}", branch(node).as_str().unwrap());
        assert!(list.lines().any(|known| known == line), "{line}: {list}");
    }
    apply(&team, &run);
    for node in [&a, &b] {
        let workspace = team.show_node(&run, node)["workspace"].clone();
        assert_eq!(workspace, json!({"kind": "worktree"}), "its branch is gone");
    }
    team.chat(&run, &a, "WRITE A");
    team.wait_for_turn_end(&run, &a, 2);
    assert_eq!(
        branch(&a),
        format!("{taken}-2"),
        "the next one has a branch"
    );
}

#[test]
fn the_store_has_the_files_of_a_turn_outside_git() {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    play(&team, &run, &node, "WRITE A");
    let contexts = team.get("/v1/contexts");
    let contexts = contexts["contexts"].as_array().unwrap();
    let of_events = contexts.iter().find(|context| {
        let labels = &context["labels"];
        labels["turnkeep.run"] == run.as_str() && labels["turnkeep.node"].is_null()
    });
    let head = of_events.unwrap()["head_turn_id"].as_str().unwrap();
    let listed = team.get(&format!("/v1/turns/{head}/fs"));
    let diffs = team.artifacts_of(&run, &node, "diff");
    assert_eq!(listed["hash"], diffs[0]["metadata"]["headTree"]);
    let entries = listed["entries"].as_array().unwrap();
    assert!(
        entries.iter().any(|entry| entry["name"] == "a.txt"),
        "{listed}"
    );
}
