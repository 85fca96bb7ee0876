//! The table of errors: each row is a shape that a real program reports.

use super::*;

/// The kind of end in one word, with the reset time of a limit.
fn name_of(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Completed => "completed".to_owned(),
        TurnEnd::Interrupted | TurnEnd::NotBegun => "interrupted".to_owned(),
        TurnEnd::Failed(_) => "failed".to_owned(),
        TurnEnd::Unavailable(_) => "unavailable".to_owned(),
        TurnEnd::RateLimited { reset, .. } => match reset {
            LimitReset::Unknown => "limited".to_owned(),
            LimitReset::At(until) => format!("limited until {}", until.0),
            LimitReset::After(wait) => format!("limited for {} s", wait.as_secs()),
        },
    }
}

fn check_message(message: &str, expect: &str) {
    let error = ProviderError {
        message,
        ..ProviderError::default()
    };
    assert_eq!(name_of(&classify(&error)), expect, "{message}");
}

#[test]
fn a_sentence_says_what_to_do() {
    let rows = [
        (
            r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}"#,
            "unavailable",
        ),
        ("API Error (529 Overloaded) · Retrying", "unavailable"),
        ("API Error: 500 Internal server error", "unavailable"),
        ("API Error: 429 rate_limit_error", "limited"),
        ("API Error: 401 Invalid API key", "failed"),
        ("API Error: 400 prompt is too long: 529 tokens", "failed"),
        ("API Error: Connection error.", "unavailable"),
        ("API Error (Request timed out.)", "unavailable"),
        (
            "Claude AI usage limit reached|1753088400",
            "limited until 1753088400000",
        ),
        ("Claude AI usage limit reached|soon", "limited"),
        (
            "Claude AI usage limit reached|99999999999999999999999",
            "limited",
        ),
        (
            "You've hit your usage limit. Try again at 3:40 PM.",
            "limited",
        ),
        (
            "You've hit your limit · resets 3pm (Europe/Berlin)",
            "limited",
        ),
        (
            "Quota exceeded. Your quota will reset after 13h44m29s.",
            "limited for 49469 s",
        ),
        (
            "You exceeded your current quota. Please retry in 7205.5s.",
            "limited for 7206 s",
        ),
        (
            "Rate limit reached for requests. Please try again in 20s.",
            "limited for 20 s",
        ),
        (
            r#"{"error":{"code":429,"details":[{"retryDelay":"1m30s"}]}}"#,
            "limited for 90 s",
        ),
        ("Too many requests, try again in a while", "limited"),
        (
            "Too many requests, retry in 99999999999999999999s",
            "limited",
        ),
        ("Too many requests, retry in 9999999999s", "limited"),
        ("Too many requests, retry in 1.s", "limited for 1 s"),
        ("Too many requests, retry in s", "limited"),
        ("Too many requests, retry in 500ms", "limited"),
        (
            "Too many requests, retry after 2 minutes 5 seconds.",
            "limited for 125 s",
        ),
        (
            "You have exhausted your daily quota on this model.",
            "limited",
        ),
        ("We're currently experiencing high demand", "unavailable"),
        (
            "Selected model is at capacity. Please try a different model.",
            "unavailable",
        ),
        ("stream disconnected before completion: eof", "unavailable"),
        (
            "[API Error: You have exhausted your capacity on this model.]",
            "limited",
        ),
        ("got status: 503 . Service Unavailable", "unavailable"),
        ("got status: RESOURCE_EXHAUSTED", "limited"),
        (
            "request to https://example.com failed, reason: connect ECONNREFUSED",
            "unavailable",
        ),
        ("TypeError: fetch failed", "unavailable"),
        ("HTTP/1.1 429", "limited"),
        ("error 1 of 2: 503", "failed"),
        ("Not logged in · Please run /login", "failed"),
        ("error on line 503 of the input", "failed"),
        ("the test suite has 429 failures", "failed"),
        ("", "failed"),
    ];
    for (message, expect) in rows {
        check_message(message, expect);
    }
}

#[test]
fn a_status_counts_more_than_a_code_and_a_code_more_than_a_sentence() {
    let rows = [
        (Some(429), "", "anything", "limited"),
        (Some(529), "", "anything", "unavailable"),
        (Some(503), "badRequest", "rate limit", "unavailable"),
        (Some(400), "httpConnectionFailed", "overloaded", "failed"),
        (Some(200), "serverOverloaded", "", "unavailable"),
        (Some(u64::MAX), "", "overloaded", "unavailable"),
        (None, "usageLimitExceeded", "", "limited"),
        (None, "httpConnectionFailed", "", "unavailable"),
        (None, "responseStreamDisconnected", "", "unavailable"),
        (
            None,
            "contextWindowExceeded",
            "the server is overloaded",
            "failed",
        ),
        (None, "unauthorized", "connection error", "failed"),
        (None, "other", "connection error", "unavailable"),
        (None, "rate_limit", "", "limited"),
        (None, "server_error", "", "unavailable"),
    ];
    for (status, code, message, expect) in rows {
        let error = ProviderError {
            status,
            code,
            message,
            resets_at: None,
        };
        let end = classify(&error);
        assert_eq!(name_of(&end), expect, "{status:?} {code} {message}");
    }
}

#[test]
fn a_reported_reset_time_counts_more_than_the_sentence() {
    let error = ProviderError {
        message: "usage limit reached|1753088400",
        resets_at: Some(Timestamp(7)),
        ..ProviderError::default()
    };
    assert_eq!(name_of(&classify(&error)), "limited until 7");
    assert_eq!(reset_time_from_seconds(0), None);
    assert_eq!(reset_time_from_seconds(u64::MAX), None);
}

#[test]
fn an_exit_is_explained_by_its_status_and_the_error_output() {
    let rows = [
        (Some(1), "", "failed", "the program exited with status 1"),
        (None, "", "failed", "the program was killed"),
        (
            Some(2),
            "no such flag\n",
            "failed",
            "the program exited with status 2: no such flag",
        ),
        (Some(1), "connect ECONNRESET", "unavailable", ""),
        (Some(1), "HTTP 429", "limited", ""),
    ];
    for (code, errors, expect, reason) in rows {
        let exit = Exit {
            code,
            last_errors: errors.to_owned(),
        };
        let end = classify_exit(&exit);
        assert_eq!(name_of(&end), expect, "{errors}");
        if let TurnEnd::Failed(said) = end {
            assert_eq!(said, reason);
        }
    }
}

#[test]
fn a_long_reason_is_cut() {
    let message = "é".repeat(REASON_CHARACTERS_MAX * 2);
    let error = ProviderError {
        message: &message,
        ..ProviderError::default()
    };
    let TurnEnd::Failed(reason) = classify(&error) else {
        panic!("an unknown error is permanent");
    };
    assert_eq!(reason.chars().count(), REASON_CHARACTERS_MAX + 1);
}
