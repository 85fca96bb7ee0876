//! Programs without a protocol: answers, calls of tools by lines, interrupts and exits.

use serde_json::json;
use turnkeep_agents::raw::Raw;
use turnkeep_agents::request::LineResult;
use turnkeep_agents::{Answer, Request, RequestError};

use crate::conversation::{Conversation, answer_to};

const CALL: &str = r#"{"tool_call":{"name":"list_nodes","args":{}}}"#;

fn in_turn() -> Conversation {
    let mut program = Conversation::new(Raw::new());
    program.start();
    let sent = program.send("hello\nthere");
    assert_eq!(sent, ["write hello\nthere", "close input"]);
    program
}

fn results() -> Request {
    Request::ToolResults(vec![LineResult {
        name: "list_nodes".to_owned(),
        result: Ok(json!([])),
    }])
}

#[test]
fn the_output_is_the_answer_and_the_exit_ends_the_turn() {
    let mut program = in_turn();
    assert_eq!(program.prints_text("one\r\n"), [r#"delta "one""#]);
    assert_eq!(program.prints_text("two"), [r#"delta "\ntwo""#]);
    assert_eq!(
        program.exits(0, ""),
        [r#"final "one\ntwo""#, "ended: Completed"]
    );
    assert_eq!(program.exits(0, ""), [""; 0]);
    assert_eq!(program.prints_text("late"), [r#"Log("late")"#]);
    program.send("again");
    assert_eq!(program.exits(0, ""), ["ended: Completed"]);
}

#[test]
fn a_turn_with_calls_goes_on_with_their_results() {
    let mut program = in_turn();
    program.prints_text("I will look.");
    assert_eq!(program.prints_text(CALL), ["call list_nodes {}"]);
    let malformed = program.prints_text(r#"{"tool_call":5}"#);
    assert_eq!(malformed, [r#"MalformedToolCall("{\"tool_call\":5}")"#]);
    assert_eq!(program.rejection(results()), RequestError::NoTurn);
    let paused = program.exits(0, "");
    assert_eq!(paused, [r#"final "I will look.""#, "AwaitsToolResults"]);
    let sent = program.request(results());
    assert!(
        sent[0].contains(r#"{"tool_result":{"name":"list_nodes","ok":true"#),
        "{sent:?}"
    );
    assert!(
        sent[0].contains("This line is not a tool call."),
        "{sent:?}"
    );
    assert_eq!(sent[1], "close input");
    assert_eq!(
        program.rejection(results()),
        RequestError::NoTurn,
        "sent once"
    );
    program.prints_text("Done.");
    assert_eq!(
        program.exits(0, ""),
        [r#"final "Done.""#, "ended: Completed"]
    );
}

#[test]
fn an_answer_with_too_many_calls_is_cut() {
    let mut program = in_turn();
    let calls = (0..100).flat_map(|_| program.prints_text(CALL));
    assert_eq!(calls.count(), 64);
    let malformed = (0..100).flat_map(|_| program.prints_text(r#"{"tool_call":5}"#));
    assert_eq!(malformed.count(), 16);
    program.exits(0, "");
    let sent = program.request(results());
    assert!(sent[0].contains("Only the first 64 calls"), "{sent:?}");
}

#[test]
fn an_open_fence_does_not_reach_into_the_next_answer() {
    let mut program = in_turn();
    program.prints_text(CALL);
    program.prints_text("```");
    assert_eq!(program.prints_text(CALL).len(), 1, "text in a fence");
    program.exits(0, "");
    program.request(results());
    assert_eq!(program.prints_text(CALL), ["call list_nodes {}"]);
}

#[test]
fn a_turn_that_waits_for_results_can_be_interrupted() {
    let mut program = in_turn();
    program.prints_text(CALL);
    program.exits(0, "");
    assert_eq!(program.request(Request::Interrupt), ["ended: Interrupted"]);
    assert_eq!(program.rejection(results()), RequestError::NoTurn);
}

#[test]
fn an_interrupt_is_a_signal() {
    let mut program = in_turn();
    program.prints_text("half");
    assert_eq!(program.request(Request::Interrupt), ["SIGINT"]);
    assert_eq!(program.exits(0, ""), ["ended: Interrupted"]);
    assert_eq!(program.rejection(Request::Interrupt), RequestError::NoTurn);
}

#[test]
fn a_failed_exit_fails_the_turn() {
    let failed = in_turn().exits(1, "no model");
    let reason = "the program exited with status 1: no model";
    assert_eq!(failed, [format!("ended: Failed({reason:?})")]);
    let limited = in_turn().exits(1, "HTTP 429 Too Many Requests");
    assert_eq!(limited, ["ended: limited Unknown"]);
}

#[test]
fn nothing_can_be_approved_or_added() {
    let mut program = in_turn();
    let answer = program.rejection(answer_to("q", Answer::Allow));
    assert_eq!(answer, RequestError::UnknownPermission("q".to_owned()));
    let text = String::new();
    let steer = program.rejection(Request::Steer { text });
    assert!(matches!(steer, RequestError::Unsupported(_)));
    assert!(program.machine().features().one_turn_per_process);
}
