//! What becomes of a turn when the provider's limit is reached.

use serde_json::{Value, json};

use crate::model::{Reply, Topic};
use crate::office::Office;
use crate::programs::{CLAUDE, CODEX, GEMINI, RealProgram};

const DEFAULT_WAIT_SECONDS: i64 = 15 * 60;

/// Checks that the node waits so long after an answer with the status 429 and this body.
fn check_limit(program: RealProgram, body: Value, wait_seconds: i64) {
    let limit = Reply::Refuse { status: 429, body };
    let topic = Topic {
        when: "Greet me",
        replies: vec![limit],
    };
    let office = Office::open(&[program], vec![topic]);
    let office = office.begin(json!({"goal": "Look after the files"}));
    let node = office.add_node(program, "implementer");
    let seq = office.last_seq();
    office.chat(&node, "Greet me");
    let turn = office.wait_for_turn(seq, &node);
    assert_eq!(turn.end, "turn.interrupted", "{:#?}", turn.events);
    let ended = turn.events.last().unwrap();
    let requeued = ended["requeued"].as_array().unwrap();
    assert_eq!(requeued.len(), 1, "the message waits");
    let shown = office.show_node(&node);
    let waits = seconds_of_day(&shown["retryAt"]) - seconds_of_day(&ended["ts"]);
    assert_eq!(waits.rem_euclid(24 * 60 * 60), wait_seconds, "{shown:#?}");
}

/// The seconds of a time like `2026-01-02T03:04:05.678Z` since midnight.
fn seconds_of_day(time: &Value) -> i64 {
    let clock = time
        .as_str()
        .unwrap()
        .split(['T', '.', 'Z'])
        .nth(1)
        .unwrap();
    let parts = clock.split(':').map(|part| part.parse::<i64>().unwrap());
    parts.fold(0, |sum, part| sum * 60 + part)
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn claude_waits_for_its_provider() {
    let message = "This request would exceed the rate limit of your organization.";
    let error = json!({"type": "rate_limit_error", "message": message});
    check_limit(
        CLAUDE,
        json!({"type": "error", "error": error}),
        DEFAULT_WAIT_SECONDS,
    );
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn codex_waits_for_its_provider() {
    let message = "The usage limit has been reached";
    let error = json!({"type": "usage_limit_reached", "message": message, "plan_type": "plus"});
    check_limit(CODEX, json!({"error": error}), DEFAULT_WAIT_SECONDS);
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn gemini_waits_until_its_quota_resets() {
    let message = "Quota exceeded. Your quota will reset after 3h2m1s.";
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "QUOTA_EXHAUSTED",
        "domain": "cloudcode-pa.googleapis.com",
    });
    let error = json!({"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED",
        "details": [info]});
    check_limit(GEMINI, json!({"error": error}), 3 * 3600 + 2 * 60 + 1);
}
