//! Programs that fail, and requests that are wrong.

use serde_json::json;

use crate::team::{PROTOCOLS, Team, make_repository};

const CRASHING: &str = r#"
[[turn]]
when = "crash"
steps = [
    { say = "Oh" },
    { crash = { code = 3, stderr = "boom" } },
]

[[turn]]
repeat = true
steps = [{ say = "Fine." }]
"#;

#[test]
fn a_crash_fails_its_node_with_the_reason_and_the_node_works_again() {
    let team = Team::start(CRASHING);
    make_repository(&team.work());
    for protocol in PROTOCOLS {
        let run = team.new_run(json!({}));
        let skip = json!({"permissions": {"cliPermissionsMode": "skip"}});
        let node = team.add_node(&run, "implementer", protocol, skip);
        team.chat(&run, &node, "crash now");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.failed");
        let failed = team.wait_for(&run, "the end", |event| event["status"] == "turn.failed");
        let detail = failed["detail"].as_str().unwrap();
        assert!(
            detail.contains("status 3") && detail.contains("boom"),
            "{protocol}: {detail}"
        );
        team.chat(&run, &node, "again");
        assert_eq!(
            team.wait_for_turn_end(&run, &node, 2),
            "turn.completed",
            "{protocol}"
        );
    }
}

#[test]
fn wrong_requests_are_answered_and_change_nothing() {
    let team = Team::start(CRASHING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let before = team.events(&run).len();
    let missing = "0b5f1c9e-8a3d-4c55-9a67-0123456789ab";
    let cases = [
        ("GET", format!("/api/runs/{missing}"), json!({}), 404),
        ("GET", "/api/runs/nonsense".to_owned(), json!({}), 404),
        (
            "PATCH",
            format!("/api/runs/{run}"),
            json!({"status": "flying"}),
            400,
        ),
        (
            "POST",
            format!("/api/runs/{run}/chat"),
            json!({"content": "hi"}),
            400,
        ),
        (
            "POST",
            format!("/api/runs/{run}/edges"),
            json!({"from": "a", "to": "b"}),
            404,
        ),
        (
            "POST",
            format!("/api/runs/{run}/nodes"),
            json!({"label": "x"}),
            400,
        ),
        (
            "POST",
            format!("/api/runs/{run}/nodes"),
            json!({"label": "x", "roleTemplate": "../etc", "provider": "claude"}),
            400,
        ),
        (
            "GET",
            format!("/api/runs/{run}/events?limit=0"),
            json!({}),
            400,
        ),
        (
            "GET",
            format!("/api/runs/{run}/events?limit=5000"),
            json!({}),
            400,
        ),
        (
            "GET",
            format!("/api/runs/{run}/events?before=x"),
            json!({}),
            400,
        ),
        (
            "GET",
            format!("/api/runs/{run}/artifacts/..%2Fx"),
            json!({}),
            404,
        ),
        (
            "POST",
            format!("/api/runs/{run}/chat"),
            json!({"content": "x".repeat(5 << 20)}),
            413,
        ),
    ];
    for (method, path, body, expect) in cases {
        let body = (method != "GET").then_some(&body);
        let answered = team.request(method, &path, body);
        assert_eq!(
            answered.status, expect,
            "{method} {path}: {}",
            answered.body
        );
    }
    assert_eq!(team.events(&run).len(), before, "nothing happened");
}

#[test]
fn a_request_with_a_key_is_carried_out_once() {
    let team = Team::start(CRASHING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let path = format!("/api/runs/{run}/nodes");
    let body = json!({"label": "A", "roleTemplate": "implementer", "provider": "claude"});
    let key = [("Idempotency-Key", "k1")];
    let first = team.request_with("POST", &path, Some(&body), &key);
    let second = team.request_with("POST", &path, Some(&body), &key);
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body["node"]["id"], second.body["node"]["id"]);
    let other = json!({"label": "B", "roleTemplate": "implementer", "provider": "claude"});
    assert_eq!(
        team.request_with("POST", &path, Some(&other), &key).status,
        409
    );
}
