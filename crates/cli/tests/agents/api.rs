//! The HTTP surface of runs with real programs behind it: what is refused, what waits for capacity,
//! what a person asks for.

use std::fs;

use serde_json::{Value, json};

use crate::team::{Team, make_repository, skip};

const SCRIPT: &str = r#"
[[turn]]
when = ["WAIT FOR IT"]
repeat = true
steps = [
    { say = "I wait." },
    { wait_for_file = "SANDBOX/go" },
    { say = "I waited." },
]

[[turn]]
repeat = true
steps = [{ say = "Noted." }]
"#;

fn is_text(event: &Value) -> bool {
    event["type"] == "message.assistant.delta" || event["type"] == "message.assistant.final"
}

#[test]
fn an_automatic_run_that_found_no_free_turn_is_prompted_when_one_is_free() {
    let team = Team::start_with(SCRIPT, |_| "[runs]\nopen_turns_max = 1\n".to_owned());
    let busy = team.new_run(json!({}));
    let worker = team.add_node(&busy, "implementer", "claude", skip("worker"));
    team.chat(&busy, &worker, "WAIT FOR IT");
    team.wait_for(&busy, "the only turn", is_text);
    let waiting = team.new_run(json!({"mode": "AUTO"}));
    let lead = team.add_node(&waiting, "orchestrator", "claude", skip("lead"));
    assert_eq!(team.show_node(&waiting, &lead)["status"], "idle");
    fs::write(team.sandbox.path("go"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&waiting, &lead, 1), "turn.completed");
}

#[test]
fn a_request_that_makes_no_sense_is_refused_and_changes_nothing() {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({}));
    team.patch(&format!("/api/runs/{run}"), &json!({"status": "paused"}));
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    let before = (team.show(&run), team.events(&run).len());
    let nobody = "0b5f1c9e-8a3d-4c55-9a67-0123456789ab";
    let check = |method: &str, path: &str, body: Value, expect: u16| {
        let path = path.replace("RUN", &format!("/api/runs/{run}"));
        let answered = team.request(method, &path, Some(&body));
        assert_eq!(
            answered.status, expect,
            "{method} {path}: {}",
            answered.body
        );
        let error = &answered.body["error"];
        assert!(
            error["message"].is_string() && error["details"].is_object(),
            "{error}"
        );
    };
    let node = |more: Value| {
        let mut node = json!({"label": "x", "roleTemplate": "docs", "provider": "claude"});
        for (name, value) in more.as_object().unwrap() {
            node[name] = value.clone();
        }
        node
    };
    check("PATCH", "RUN", json!({"status": "asleep"}), 400);
    check("PATCH", "RUN", json!({"status": "queued"}), 409);
    check("PATCH", "RUN", json!({"cwd": "/"}), 400);
    check("POST", "/api/runs", json!({"mode": "MANUAL"}), 400);
    check("POST", "/api/runs", json!({"cwd": "/no/such/place"}), 400);
    check("POST", "RUN/nodes", node(json!({"alias": "A"})), 409);
    check("POST", "RUN/nodes", node(json!({"alias": "../a"})), 400);
    check(
        "POST",
        "RUN/nodes",
        node(json!({"roleTemplate": "../../etc/passwd"})),
        400,
    );
    check(
        "POST",
        "RUN/nodes",
        node(json!({"roleTemplate": "pilot"})),
        400,
    );
    check("POST", "RUN/nodes", node(json!({"provider": "none"})), 400);
    check(
        "PATCH",
        &format!("RUN/nodes/{a}"),
        json!({"status": "running"}),
        400,
    );
    check("POST", &format!("RUN/nodes/{a}/dance"), json!({}), 404);
    check(
        "POST",
        "RUN/edges",
        json!({"from": "a", "to": "nobody"}),
        404,
    );
    check("POST", "RUN/edges", json!({"from": "a", "to": "a"}), 400);
    check(
        "POST",
        "RUN/chat",
        json!({"content": "x".repeat(5_000_000)}),
        413,
    );
    check("POST", "RUN/chat", json!({"content": ""}), 400);
    check(
        "POST",
        "RUN/chat",
        json!({"content": "x", "nodeId": "nobody"}),
        404,
    );
    check("DELETE", &format!("RUN/edges/{nobody}"), json!({}), 404);
    check("GET", "RUN/events?limit=0", json!({}), 400);
    check("GET", "RUN/events?limit=5000", json!({}), 400);
    check("GET", "RUN/events?before=x", json!({}), 400);
    check("GET", "RUN/events?before=1&after=1", json!({}), 400);
    check("GET", "RUN/events?nodeId=..%2F..", json!({}), 404);
    check(
        "GET",
        "RUN/artifacts/..%2F..%2Fevents.jsonl?raw=1",
        json!({}),
        404,
    );
    check("GET", &format!("RUN/artifacts/{nobody}"), json!({}), 404);
    check("GET", &format!("/api/runs/{nobody}"), json!({}), 404);
    check("GET", "/api/runs/..%2F..", json!({}), 404);
    check("GET", "/api/fs?path=%2F..%2F..%2Fetc", json!({}), 403);
    check("GET", "/api/roles/..%2Fx", json!({}), 400);
    check("PUT", "/api/teams/..%2Fx", json!({"text": ""}), 400);
    check(
        "POST",
        &format!("/api/approvals/{nobody}/resolve"),
        json!({"status": "approved"}),
        404,
    );
    check(
        "POST",
        "/api/approvals/x/resolve",
        json!({"status": "approved"}),
        404,
    );
    check("DELETE", &format!("/api/rules/{nobody}"), json!({}), 404);
    let after = (team.show(&run), team.events(&run).len());
    assert_eq!(after, before, "nothing happened");
}

#[test]
fn the_files_of_a_run_are_repaired_at_the_start_and_a_bad_one_stops_no_other() {
    let mut team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    team.chat(&run, &node, "hello");
    team.wait_for_turn_end(&run, &node, 1);
    team.check_event_file(&run);
    let artifacts = team.artifacts_of(&run, &node, "prompt");
    let paths: Vec<&str> = artifacts
        .iter()
        .filter_map(|made| made["path"].as_str())
        .collect();
    let [first, .., last] = paths[..] else {
        panic!("too few artifacts: {paths:?}");
    };
    let expect = fs::read(last).unwrap();
    team.kill();
    // The first cannot be written, because a directory has its name; the last is missing.
    fs::remove_file(first).unwrap();
    fs::create_dir_all(format!("{first}/in the way")).unwrap();
    fs::remove_file(last).unwrap();
    let events = team.run_dir(&run).join("events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    fs::write(&events, &text[..text.len() - 10]).unwrap();
    team.restart();
    team.check_event_file(&run);
    assert_eq!(fs::read(last).unwrap(), expect);
}

#[test]
fn a_run_whose_directory_vanished_has_failed() {
    let team = Team::start(SCRIPT);
    let work = team.sandbox.path("elsewhere");
    fs::create_dir(&work).unwrap();
    let run = team.new_run(json!({"cwd": work}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    fs::remove_dir(&work).unwrap();
    team.chat(&run, &node, "hello");
    let failed = team.wait_for(&run, "the end", |event| {
        event["patch"]["status"] == "failed" && event["type"] == "run.patch"
    });
    assert_eq!(failed["nodeId"], Value::Null);
}

#[test]
fn a_person_verifies_a_run_without_completing_it() {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(json!({"verify": ["test -f done.txt"]}));
    team.add_node(&run, "implementer", "claude", skip("a"));
    let path = format!("/api/runs/{run}/verify");
    let refused = team.post(&path, &json!({}));
    assert_eq!(refused["ok"], false, "{refused}");
    fs::write(team.work().join("done.txt"), "").unwrap();
    let key = [("Idempotency-Key", "verify it")];
    let passed = team.request_with("POST", &path, Some(&json!({})), &key);
    assert_eq!(
        (passed.status, &passed.body["ok"]),
        (200, &json!(true)),
        "{}",
        passed.body
    );
    let again = team.request_with("POST", &path, Some(&json!({})), &key);
    assert_eq!(again.body, passed.body, "it is not run again");
    let report = &passed.body["artifact"];
    assert_eq!(
        (&report["kind"], &report["name"]),
        (&json!("report"), &json!("verification.json"))
    );
    assert_eq!(team.show(&run)["status"], "running");
}

#[test]
fn the_doctor_shows_the_settings_of_runs() {
    let team = Team::start_with(SCRIPT, |_| {
        "[runs]\nstall_after = 7\nverify = [\"make test\"]\n\
         [runs.notify]\nwebhook = \"https://hooks.example/secret\"\n"
            .to_owned()
    });
    let config = team.sandbox.path("config.toml");
    let arguments = ["--config", config.to_str().unwrap(), "doctor"];
    let said = team.sandbox.output(&arguments, b"");
    let said = String::from_utf8(said.stdout).unwrap();
    for (name, value) in [
        ("runs.stall_after", "7"),
        ("runs.verify", "make test"),
        ("runs.turn_end_ms", "7200000"),
        ("runs.notify.webhook", "https://hooks.example/…"),
        ("providers.claude", "turnkeep-agent-script"),
    ] {
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name} in\n{said}"));
        assert!(line.contains(value), "{line}");
    }
    assert!(!said.contains("secret"), "{said}");
}
