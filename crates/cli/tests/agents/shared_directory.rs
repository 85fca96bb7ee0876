//! A directory without a repository, in which a node, its sibling and the user write at the same time.
//!
//! The node may write documents only. Whatever it writes besides, nothing in the directory may change
//! by itself: a file may be the sibling's or the user's. These tests try to lose such a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::team::{Team, is_turn_end, skip};

const SCRIPT: &str = r#"
[[turn]]
when = ["(planner) of run"]
repeat = true
steps = [
    { write = "docs/plan.md", content = "plan\n" },
    { write = "src/x", content = "of the planner\n" },
    { touch = "SANDBOX/planner-wrote" },
    { wait_for_file = "SANDBOX/planner-may-end" },
    { say = "Planned." },
]

[[turn]]
when = ["(sibling) of run"]
steps = [
    { wait_for_file = "SANDBOX/planner-wrote" },
    { write = "src/y", content = "of the sibling\n" },
    { write = "src/old-y", content = "changed by the sibling\n" },
    { touch = "SANDBOX/sibling-wrote" },
    { wait_for_file = "SANDBOX/sibling-may-end" },
    { say = "Written." },
]
"#;

/// When the sibling's turn ends, seen from the user's writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SiblingEnds {
    Before,
    After,
}

struct Shared {
    team: Team,
    run: String,
    planner: String,
    sibling: String,
    /// The directory as it is when all have written.
    written: BTreeMap<String, String>,
}

impl Shared {
    /// Lets the planner write, then the sibling, then the user. The planner's turn is open all the
    /// time; the sibling's begins after the planner has written.
    fn write_all(order: SiblingEnds) -> Self {
        let team = Team::start(SCRIPT);
        let work = team.work();
        fs::create_dir(work.join("src")).unwrap();
        for name in ["src/old-y", "src/old-z", "src/gone"] {
            fs::write(work.join(name), "before\n").unwrap();
        }
        let run = team.new_run(json!({}));
        let planner = team.add_node(&run, "planner", "claude", skip("planner"));
        let sibling = team.add_node(&run, "implementer", "codex", skip("sibling"));
        team.chat(&run, &planner, "Plan");
        wait_for_file(&team, "planner-wrote");
        team.chat(&run, &sibling, "Write");
        wait_for_file(&team, "sibling-wrote");
        let mut shared = Self {
            team,
            run,
            planner,
            sibling,
            written: BTreeMap::new(),
        };
        if order == SiblingEnds::Before {
            shared.end_sibling();
        }
        fs::write(work.join("src/z"), "of the user\n").unwrap();
        fs::write(work.join("src/old-z"), "changed by the user\n").unwrap();
        fs::remove_file(work.join("src/gone")).unwrap();
        shared.written = read_all(&work);
        shared
    }

    fn end_sibling(&self) {
        self.end_turn("sibling-may-end", &self.sibling);
    }

    fn end_planner(&self) {
        self.end_turn("planner-may-end", &self.planner);
    }

    fn end_turn(&self, file: &str, node: &str) {
        fs::write(self.team.sandbox.path(file), "").unwrap();
        self.team.wait_for(&self.run, "the end", |event| {
            event["nodeId"] == node && is_turn_end(event)
        });
    }

    fn diff(&self) -> Value {
        let diffs = self.team.artifacts_of(&self.run, &self.planner, "diff");
        diffs.last().unwrap().clone()
    }

    /// The route that keeps or reverts files of the planner's turn.
    fn turn_route(&self, action: &str) -> String {
        let turn = self.diff()["metadata"]["turnId"]
            .as_str()
            .unwrap()
            .to_owned();
        format!("/api/runs/{}/turns/{turn}/{action}", self.run)
    }
}

/// Waits for a file that an agent makes.
fn wait_for_file(team: &Team, name: &str) {
    let path = team.sandbox.path(name);
    let deadline = std::time::Instant::now() + crate::team::ANSWER_MAX;
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "no file {name}");
        std::thread::yield_now();
    }
}

/// Every file below a directory with its content.
fn read_all(dir: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn no_byte_of_a_shared_directory_changes_by_itself() {
    let all = [
        "src/gone",
        "src/old-y",
        "src/old-z",
        "src/x",
        "src/y",
        "src/z",
    ];
    for (order, forbidden) in [
        // The planner or the user wrote these, and no one else.
        (
            SiblingEnds::Before,
            &["src/gone", "src/old-z", "src/x", "src/z"][..],
        ),
        // The sibling was at work when the user wrote, so it may have written the user's files, too.
        (SiblingEnds::After, &["src/x"]),
    ] {
        let shared = Shared::write_all(order);
        shared.end_planner();
        if order == SiblingEnds::After {
            shared.end_sibling();
        }
        assert_eq!(read_all(&shared.team.work()), shared.written, "{order:?}");
        let others: Vec<&str> = all
            .into_iter()
            .filter(|path| !forbidden.contains(path))
            .collect();
        check_report(&shared, forbidden, &others);
    }
}

/// The planner is blocked because of the forbidden files; the others are shared.
fn check_report(shared: &Shared, forbidden: &[&str], others: &[&str]) {
    let metadata = shared.diff()["metadata"].clone();
    assert_eq!(metadata["violation"], json!(forbidden), "{metadata}");
    assert_eq!(metadata["shared"], json!(others), "{metadata}");
    let node = shared.team.show_node(&shared.run, &shared.planner);
    assert_eq!(node["status"], "blocked");
    assert_eq!(node["block"]["paths"], json!(forbidden), "{node}");
    let sibling = shared.team.show_node(&shared.run, &shared.sibling);
    assert_eq!(sibling["status"], "idle");
    let attention = shared.team.get("/api/attention");
    let items = attention["items"].as_array().unwrap();
    let of_planner = items
        .iter()
        .filter(|item| item["nodeId"] == shared.planner.as_str());
    let kinds: Vec<&Value> = of_planner.map(|item| &item["kind"]).collect();
    // The planner may not write the files that it shares, so they are no conflict.
    assert_eq!(kinds, ["violation"], "{attention}");
    assert_eq!(metadata["conflicts"], Value::Null, "{metadata}");
}

/// Two writers in one directory.
const WRITERS: &str = r#"
[[turn]]
when = ["(a) of run", "Write"]
steps = [
    { write = "both.txt", content = "of a\n" },
    { touch = "SANDBOX/a-wrote" },
    { wait_for_file = "SANDBOX/a-may-end" },
    { say = "Written." },
]

[[turn]]
when = ["(b) of run", "Write"]
steps = [
    { touch = "SANDBOX/b-runs" },
    { wait_for_file = "SANDBOX/b-may-write" },
    { write = "both.txt", content = "of b\n" },
    { touch = "SANDBOX/b-wrote" },
    { wait_for_file = "SANDBOX/b-may-end" },
    { say = "Written, too." },
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

/// Two nodes in one file at a time, also if the second one begins after the first one has written, and
/// writes when the first one's turn is over.
#[test]
fn two_nodes_in_one_file_are_a_conflict_of_both() {
    for b_is_late in [false, true] {
        let team = Team::start(WRITERS);
        let run = team.new_run(json!({}));
        let nodes =
            ["a", "b"].map(|alias| team.add_node(&run, "implementer", "claude", skip(alias)));
        let begin = |node: &str, file: &str| {
            team.chat(&run, node, "Write");
            wait_for_file(&team, file);
        };
        let allow = |file: &str| fs::write(team.sandbox.path(file), "").unwrap();
        if b_is_late {
            begin(&nodes[0], "a-wrote");
            begin(&nodes[1], "b-runs");
            allow("a-may-end");
            team.wait_for_turn_end(&run, &nodes[0], 1);
            assert_eq!(
                conflicts(&team),
                Vec::<Value>::new(),
                "b has written nothing"
            );
        } else {
            begin(&nodes[1], "b-runs");
            begin(&nodes[0], "a-wrote");
        }
        allow("b-may-write");
        wait_for_file(&team, "b-wrote");
        allow("a-may-end");
        allow("b-may-end");
        for node in &nodes {
            assert_eq!(team.wait_for_turn_end(&run, node, 1), "turn.completed");
        }
        check_conflicts(&team, &run, &nodes);
        // The next turn begins with what the file is then.
        team.chat(&run, &nodes[0], "Go on");
        team.wait_for_turn_end(&run, &nodes[0], 2);
        let open = conflicts(&team);
        assert_eq!(open.len(), 1, "{open:#?}");
        assert_eq!(open[0]["nodeId"], nodes[1].as_str());
    }
}

fn conflicts(team: &Team) -> Vec<Value> {
    let mut attention = team.get("/api/attention");
    let Value::Array(items) = attention["items"].take() else {
        panic!("a list")
    };
    let of_kind = items.into_iter();
    of_kind.filter(|item| item["kind"] == "conflict").collect()
}

fn check_conflicts(team: &Team, run: &str, nodes: &[String; 2]) {
    let items = conflicts(team);
    for node in nodes {
        let item = items.iter().find(|item| item["nodeId"] == node.as_str());
        let item = item.unwrap_or_else(|| panic!("both have one: {items:#?}"));
        assert!(item["summary"].to_string().contains("both.txt"), "{item}");
    }
    // Whoever ends last knows of both.
    let last = team.events(run).into_iter().rfind(is_turn_end).unwrap();
    let (own, other) = match nodes
        .iter()
        .position(|node| last["nodeId"] == node.as_str())
    {
        Some(0) => (&nodes[0], &nodes[1]),
        _ => (&nodes[1], &nodes[0]),
    };
    let metadata = team.artifacts_of(run, own, "diff")[0]["metadata"].clone();
    let turn = team.artifacts_of(run, other, "diff")[0]["metadata"]["turnId"].clone();
    assert_eq!(metadata["shared"], json!(["both.txt"]), "{metadata}");
    let expect = json!([{"path": "both.txt", "nodeId": other, "turnId": turn}]);
    assert_eq!(metadata["conflicts"], expect);
}

#[test]
fn keep_and_revert_decide_about_one_file_at_a_time() {
    let shared = Shared::write_all(SiblingEnds::Before);
    shared.end_planner();
    let (team, work) = (&shared.team, shared.team.work());
    let mut expected = read_all(&work);
    let (revert, keep) = (shared.turn_route("revert"), shared.turn_route("keep"));

    let reverted = team.post(&revert, &json!({"paths": ["src/x"]}));
    assert_eq!(reverted["paths"], json!(["src/x"]));
    expected.remove("src/x");
    assert_eq!(read_all(&work), expected, "only that file is gone");

    fs::write(work.join("src/z"), "edited since\n").unwrap();
    let refused = team.request("POST", &revert, Some(&json!({"paths": ["src/z"]})));
    assert_eq!(refused.status, 409, "{}", refused.body);
    expected.insert("src/z".to_owned(), "edited since\n".to_owned());
    assert_eq!(read_all(&work), expected, "a file that changed since stays");

    for path in ["src/z", "src/old-z", "src/gone"] {
        let blocked = team.show_node(&shared.run, &shared.planner);
        assert_eq!(
            blocked["status"], "blocked",
            "until the last file is decided"
        );
        team.post(&keep, &json!({"paths": [path]}));
    }
    assert_eq!(read_all(&work), expected);
    let node = team.show_node(&shared.run, &shared.planner);
    assert_eq!(node["status"], "idle", "{node}");
}

/// The writer works first, then the watcher, who may write documents only.
const REVERTED_MEANWHILE: &str = r#"
[[turn]]
when = ["(writer) of run"]
steps = [
    { write = "src/x", content = "of the writer\n" },
    { say = "Written." },
]

[[turn]]
when = ["(watcher) of run"]
steps = [
    { write = "docs/notes.md", content = "notes\n" },
    { touch = "SANDBOX/watching" },
    { wait_for_file = "SANDBOX/watcher-may-end" },
    { say = "Watched." },
]
"#;

/// What a person takes back while another node works is no change of that node.
#[test]
fn a_revert_during_a_turn_is_not_the_work_of_its_node() {
    let team = Team::start(REVERTED_MEANWHILE);
    let run = team.new_run(json!({}));
    let writer = team.add_node(&run, "implementer", "claude", skip("writer"));
    let watcher = team.add_node(&run, "reviewer", "codex", skip("watcher"));
    team.chat(&run, &writer, "Write");
    assert_eq!(team.wait_for_turn_end(&run, &writer, 1), "turn.completed");
    team.chat(&run, &watcher, "Watch");
    wait_for_file(&team, "watching");
    let of_writer = team.artifacts_of(&run, &writer, "diff").remove(0);
    let turn = of_writer["metadata"]["turnId"].as_str().unwrap().to_owned();
    let revert = format!("/api/runs/{run}/turns/{turn}/revert");
    assert_eq!(team.post(&revert, &json!({}))["paths"], json!(["src/x"]));
    fs::write(team.sandbox.path("watcher-may-end"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&run, &watcher, 1), "turn.completed");
    let of_watcher = team.artifacts_of(&run, &watcher, "diff").remove(0);
    let metadata = &of_watcher["metadata"];
    assert_eq!(metadata["shared"], json!(["src/x"]), "{metadata:#}");
    assert_eq!(metadata["violation"], Value::Null, "{metadata:#}");
    assert_eq!(team.show_node(&run, &watcher)["status"], "idle");
}

/// A revert of the whole turn leaves the files of the sibling alone: nothing proves that they belong
/// to this turn.
#[test]
fn reverting_the_turn_spares_what_it_shares() {
    let shared = Shared::write_all(SiblingEnds::Before);
    shared.end_planner();
    let work = shared.team.work();
    shared.team.post(&shared.turn_route("revert"), &json!({}));
    let files = read_all(&work);
    assert_eq!(files.get("src/x"), None, "{files:?}");
    assert_eq!(files["src/y"], "of the sibling\n");
    assert_eq!(files["src/old-y"], "changed by the sibling\n");
}

#[test]
fn an_interrupt_or_a_crash_in_the_turn_loses_no_file_either() {
    let shared = Shared::write_all(SiblingEnds::After);
    let Shared {
        mut team,
        run,
        planner,
        written,
        ..
    } = shared;
    let interrupt = format!("/api/runs/{run}/nodes/planner/interrupt");
    team.post(&interrupt, &json!({}));
    assert_eq!(
        team.wait_for_turn_end(&run, &planner, 1),
        "turn.interrupted"
    );
    assert_eq!(read_all(&team.work()), written, "after an interrupt");
    // The sibling's turn is still open.
    team.kill();
    assert_eq!(read_all(&team.work()), written, "after a crash");
    team.restart();
    assert_eq!(team.show(&run)["status"], "paused");
    assert_eq!(read_all(&team.work()), written, "after a restart");
}
