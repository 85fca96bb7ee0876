//! `turnkeep up --demo`: what is in it, that its run goes on however a person answers, and that
//! nothing is left of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::team::{Team, is_completion, is_turn_end, names};

/// A demo that is filled.
struct Demo {
    team: Team,
    /// What its tour points at.
    things: Value,
}

/// What a person does in the demo.
#[derive(Debug, Clone, Copy)]
enum Act {
    Continue,
    Approve,
    Deny,
    Answer(&'static str),
}

impl Demo {
    fn start() -> Self {
        let team = Team::start_demo();
        // The answer comes when the demo is filled.
        let things = team.get("/v1/demo");
        Self { team, things }
    }

    fn thing(&self, name: &str) -> &str {
        self.things[name].as_str().unwrap()
    }

    fn run(&self) -> &str {
        self.thing("run")
    }

    /// What waits for the person: kind and node.
    fn waiting(&self) -> Vec<[String; 2]> {
        let answer = self.team.get("/api/attention");
        let items = answer["items"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        items
            .map(|item| [text(&item["kind"]), text(&item["nodeId"])])
            .collect()
    }

    fn act(&self, act: Act) {
        match act {
            Act::Continue => self.team.resume(self.run()),
            Act::Approve => self.resolve("tool", &json!({"status": "approved"})),
            Act::Deny => self.resolve("tool", &json!({"status": "denied", "reason": "keep it"})),
            Act::Answer(answer) => {
                let args = json!({"answer": answer});
                self.resolve(
                    "question",
                    &json!({"status": "modified", "modifiedArgs": args}),
                );
            }
        }
    }

    fn resolve(&self, kind: &str, answer: &Value) {
        let open = self.team.get("/api/approvals");
        let mut open = open["approvals"].as_array().unwrap().iter();
        let is_meant =
            |item: &&Value| (item["approval"]["kind"] == "question") == (kind == "question");
        let id = open.find(is_meant).unwrap()["approval"]["approvalId"].clone();
        let path = format!("/api/approvals/{}/resolve", id.as_str().unwrap());
        self.team.post(&path, answer);
    }

    /// Does everything in this order, and waits until the run is completed.
    fn finish(&self, acts: &[Act]) {
        for act in acts {
            assert_eq!(self.team.show(self.run())["phase"], "EXECUTE", "{acts:?}");
            self.act(*act);
        }
        let what = format!("the completion after {acts:?}");
        self.team.wait_for(self.run(), &what, is_completion);
    }

    fn shop(&self) -> PathBuf {
        self.team.show(self.run())["cwd"].as_str().unwrap().into()
    }
}

#[test]
fn a_demo_is_filled_can_be_finished_and_leaves_nothing_behind() {
    let mut demo = Demo::start();
    check_inbox(&demo);
    check_verifications(&demo);
    check_why(&demo);
    check_ledger(&demo);
    check_history(&demo);
    check_session(&demo);
    demo.finish(&[
        Act::Continue,
        Act::Approve,
        Act::Answer("Round the discount up"),
    ]);
    check_apply(&demo);
    let left = demo.team.sandbox.path("tmp");
    assert_eq!(fs::read_dir(&left).unwrap().count(), 1);
    demo.team.terminate();
    assert_eq!(fs::read_dir(&left).unwrap().count(), 0, "it is removed");
}

/// An approval, a question and a stall wait, and nothing else.
fn check_inbox(demo: &Demo) {
    let waiting: BTreeSet<[String; 2]> = demo.waiting().into_iter().collect();
    let lead = node_called(demo, "lead");
    let expect = [
        ["approval", demo.thing("approval_node")],
        ["question", &lead],
        ["stall", demo.thing("node_stalled")],
    ];
    assert_eq!(waiting, expect.map(|item| item.map(str::to_owned)).into());
    assert_eq!(demo.team.show(demo.run())["pausedReason"], "stall");
    let events = demo.team.events(demo.run());
    assert!(!names(&events).contains(&"turn.failed".to_owned()));
}

fn node_called(demo: &Demo, alias: &str) -> String {
    let run = demo.team.show(demo.run());
    let nodes = run["nodes"].as_object().unwrap();
    let (id, _) = nodes
        .iter()
        .find(|(_, node)| node["alias"] == alias)
        .unwrap();
    id.clone()
}

/// A verification failed, and the one after the correction passed.
fn check_verifications(demo: &Demo) {
    let events = demo.team.events(demo.run());
    let reports: Vec<Value> = events
        .iter()
        .filter(|event| event["artifact"]["name"] == "verification.json")
        .map(|event| demo.team.read_artifact(demo.run(), &event["artifact"]))
        .map(|text| serde_json::from_str::<Value>(&text).unwrap()["ok"].clone())
        .collect();
    assert_eq!(reports, [json!(false), json!(true)]);
}

/// The line was added by an agent, and its causes lead to a person.
fn check_why(demo: &Demo) {
    let events = demo.team.events(demo.run());
    let file = demo.thing("file");
    let mut diffs = events
        .iter()
        .map(|event| &event["artifact"])
        .filter(|artifact| {
            let files = artifact["metadata"]["filesChanged"].as_array();
            artifact["kind"] == "diff" && files.is_some_and(|files| files.contains(&json!(file)))
        });
    let diff = diffs.next_back().unwrap()["id"].as_str().unwrap();
    let line = &demo.things["line"];
    let reference = format!("artifact:%2F%2F{diff}%23{file}:{line}");
    let why = demo.team.get(&format!("/v1/refs/{reference}/why"));
    let chain = why["chain"].as_array().unwrap().iter();
    let kinds: Vec<&str> = chain.map(|link| link["kind"].as_str().unwrap()).collect();
    let expect = [
        "line", "diff", "turn", "prompt", "handoff", "turn", "prompt", "message", "person",
    ];
    assert_eq!(kinds, expect, "{why:#}");
    assert_eq!(why["complete"], true);
}

/// Four people, the entries that two of them see, and a calendar.
fn check_ledger(demo: &Demo) {
    let world = format!("/v1/worlds/{}", demo.thing("world"));
    let persons = demo.team.get(&format!("{world}/persons"));
    assert_eq!(persons["persons"].as_array().unwrap().len(), 4, "{persons}");
    let seen = |index: usize| -> BTreeSet<String> {
        let person = demo.things["persons"][index].as_str().unwrap();
        let page = demo
            .team
            .get(&format!("{world}/stream?limit=200&as={person}"));
        assert!(
            !page["pocket"]["calendar"]["items"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        let entries = page["stream"]["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let (first, second) = (seen(0), seen(1));
    assert!(
        first.intersection(&second).count() >= 3,
        "{first:#?} {second:#?}"
    );
    assert!(first.difference(&second).count() >= 2, "{first:#?}");
    assert!(second.difference(&first).count() >= 2, "{second:#?}");
}

/// A context with turns of three versions, and two forks of it.
fn check_history(demo: &Demo) {
    let context = demo.thing("context");
    let page = demo
        .team
        .get(&format!("/v1/contexts/{context}/turns?limit=50"));
    let turns = page["turns"].as_array().unwrap().iter();
    let versions: BTreeSet<u64> = turns
        .map(|turn| turn["declared_type"]["type_version"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, BTreeSet::from([1, 2, 3]), "{page:#}");
    let listed = demo.team.get("/v1/contexts?label=topic=discount");
    assert_eq!(listed["contexts"].as_array().unwrap().len(), 3);
}

fn check_session(demo: &Demo) {
    let answer = demo.team.get("/v1/sessions");
    let [session] = answer["sessions"].as_array().unwrap().as_slice() else {
        panic!("{answer:#}")
    };
    assert_eq!(
        (&session["name"], &session["shared"]),
        (&json!("demo"), &json!(true))
    );
    assert_eq!(session["turns"], 2, "{session:#}");
}

/// The work lands in the repository, and the check passes there.
fn check_apply(demo: &Demo) {
    let applied = demo
        .team
        .post(&format!("/api/runs/{}/apply", demo.run()), &json!({}));
    let files = ["README.md", "old-prices.txt", "price.sh", "receipt.sh"];
    assert_eq!(applied["applied"], json!(files));
    assert_eq!(applied["verified"], true, "{applied}");
    let shop = demo.shop();
    let mut check = Command::new("sh");
    assert!(
        check
            .arg("check.sh")
            .current_dir(&shop)
            .status()
            .unwrap()
            .success()
    );
    assert!(!shop.join("old-prices.txt").exists());
}

#[test]
fn the_run_of_a_demo_goes_on_in_whatever_order_a_person_answers() {
    let demo = Demo::start();
    let settled =
        |event: &Value| event["nodeId"] == demo.thing("approval_node") && is_turn_end(event);
    demo.act(Act::Answer("Neither, please."));
    demo.act(Act::Deny);
    let mut socket = demo.team.watch(demo.run(), 0);
    // The first turn changed the receipt, the second one was denied.
    socket.read_until("the first turn", settled);
    socket.read_until("the denied turn", settled);
    demo.finish(&[Act::Continue]);
    assert!(demo.shop().join("old-prices.txt").exists());
}

#[test]
fn a_demo_has_no_place_for_the_users_own_files() {
    let sandbox = Sandbox::new();
    for option in ["--data", "--config"] {
        let output = sandbox.output(&["up", "--demo", option, "mine"], b"");
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains(&format!("--demo does not go with {option}")),
            "{said}"
        );
    }
    assert!(!sandbox.path("mine").exists());
}

#[test]
fn only_a_demo_has_things_for_a_tour() {
    let team = Team::start("");
    assert_eq!(team.request("GET", "/v1/demo", None).status, 404);
}
