//! `claude`: permissions, interrupts, errors and what must not become an event.

use serde_json::{Value, json};
use turnkeep_agents::claude::Claude;
use turnkeep_agents::{Answer, Request, RequestError};

use crate::conversation::{Conversation, answer_to, deny, resumed};

fn in_turn() -> Conversation {
    let mut claude = Conversation::new(Claude::new());
    claude.start();
    claude.send("hello");
    claude
}

fn tool_use(id: &str) -> Value {
    let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
    json!({"type": "assistant", "message": {"content": [block]}})
}

fn tool_result(id: &str, content: Value, is_error: bool) -> Value {
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error,
    });
    json!({"type": "user", "message": {"content": [block]}})
}

fn question(id: &str, suggestions: Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": {"command": "ls"},
        "tool_use_id": "t1",
        "permission_suggestions": suggestions,
    }})
}

fn failed_result(reason: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": true, "result": reason})
}

/// The decision inside the control response that an answer makes the machine write.
fn decision_for(answer: Answer) -> Value {
    let rule = json!({"type": "addRules", "rules": [1], "destination": "localSettings"});
    let mode = json!({"type": "setMode", "mode": "acceptEdits"});
    let mut claude = in_turn();
    claude.prints(question("q1", json!([rule, mode])));
    let written = claude.answer("q1", answer);
    let written = written[0].strip_prefix("write ").unwrap();
    let message: Value = serde_json::from_str(written).unwrap();
    assert_eq!(message["type"], "control_response");
    assert_eq!(message["response"]["request_id"], "q1");
    message["response"]["response"].clone()
}

#[test]
fn each_answer_has_its_decision() {
    let input = json!({"command": "ls"});
    assert_eq!(
        decision_for(Answer::Allow),
        json!({"behavior": "allow", "updatedInput": input})
    );
    assert_eq!(
        decision_for(Answer::AllowWith(json!({"command": "ls -a"}))),
        json!({"behavior": "allow", "updatedInput": {"command": "ls -a"}})
    );
    // Only the suggested rules, and only for this session.
    let rule = json!({"type": "addRules", "rules": [1], "destination": "session"});
    assert_eq!(
        decision_for(Answer::AllowAlways),
        json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [rule]})
    );
    assert_eq!(
        decision_for(deny("use cargo")),
        json!({"behavior": "deny", "message": "use cargo"})
    );
    assert_eq!(
        decision_for(deny(" "))["message"],
        "A person denied this call."
    );
}

#[test]
fn a_question_is_answered_once() {
    let mut claude = in_turn();
    let asked = claude.prints(question("q1", json!([])));
    assert_eq!(
        asked,
        [
            r#"tool t1 Bash {"command":"ls"}"#,
            "ask q1 about t1, once: run `ls` in /work/demo",
        ]
    );
    let bad_args = answer_to("q1", Answer::AllowWith(json!([])));
    assert_eq!(claude.rejection(bad_args), RequestError::ArgsNotAnObject);
    claude.answer("q1", Answer::Allow);
    let again = claude.rejection(answer_to("q1", Answer::Allow));
    assert_eq!(again, RequestError::UnknownPermission("q1".to_owned()));
}

#[test]
fn a_question_can_be_withdrawn() {
    let mut claude = in_turn();
    claude.prints(question("q1", json!([])));
    let cancel = json!({"type": "control_cancel_request", "request_id": "q1"});
    assert_eq!(claude.prints(cancel.clone()), ["withdrawn q1"]);
    assert_eq!(claude.prints(cancel), [""; 0]);
    assert!(matches!(
        claude.rejection(answer_to("q1", Answer::Allow)),
        RequestError::UnknownPermission(_)
    ));
}

#[test]
fn a_question_outside_a_turn_is_denied_at_once() {
    let mut claude = Conversation::new(Claude::new());
    claude.start();
    let written = claude.prints(question("q1", json!([])));
    assert!(written[0].contains(r#""behavior":"deny""#), "{written:?}");
}

#[test]
fn control_requests_that_we_do_not_offer_get_an_error() {
    let mut claude = in_turn();
    let hook = json!({"type": "control_request", "request_id": "h",
        "request": {"subtype": "hook_callback"}});
    let written = claude.prints(hook);
    assert!(
        written[0].contains(r#""subtype":"error","request_id":"h""#),
        "{written:?}"
    );
}

#[test]
fn an_interrupt_is_a_request_first_and_a_signal_then() {
    let mut claude = in_turn();
    claude.prints(tool_use("t1"));
    let asked = claude.request(Request::Interrupt);
    assert!(asked[0].contains(r#""subtype":"interrupt""#), "{asked:?}");
    assert_eq!(claude.request(Request::Interrupt), ["SIGINT"]);
    let note = json!({"type": "user", "message": {"content": [
        {"type": "text", "text": "[Request interrupted by user]"},
    ]}});
    assert_eq!(claude.prints(note), [""; 0]);
    let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true});
    assert_eq!(
        claude.prints(result.clone()),
        [
            r#"result t1 error "the turn ended before the tool reported a result""#,
            "ended: Interrupted",
        ]
    );
    assert_eq!(claude.prints(result), [""; 0], "a turn ends once");
    assert_eq!(claude.rejection(Request::Interrupt), RequestError::NoTurn);
}

/// Version 2.1.197 prints the half message as if it were whole.
#[test]
fn a_message_that_an_interrupt_cut_off_is_not_whole() {
    let mut claude = in_turn();
    let delta = json!({"type": "stream_event", "event": {"delta": {"text": "Once upon "}}});
    assert_eq!(claude.prints(delta), [r#"delta "Once upon ""#]);
    claude.request(Request::Interrupt);
    let confirmed = json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": "turnkeep-2",
    }});
    assert_eq!(claude.prints(confirmed), [""; 0]);
    let half = json!({"type": "assistant", "message": {"content": [
        {"type": "text", "text": "Once upon "},
    ], "stop_reason": null}});
    assert_eq!(claude.prints(half), [""; 0]);
    let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true});
    assert_eq!(claude.prints(result), ["ended: Interrupted"]);
}

#[test]
fn a_rejected_interrupt_becomes_a_signal() {
    let mut claude = in_turn();
    claude.request(Request::Interrupt);
    let error = json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": "turnkeep-2", "error": "no",
    }});
    assert_eq!(
        claude.prints(error),
        [r#"Log("a control request failed: no")"#, "SIGINT"]
    );
    assert_eq!(claude.exits(130, ""), ["ended: Interrupted"]);
}

#[test]
fn a_turn_that_finished_before_the_interrupt_is_completed() {
    let mut claude = in_turn();
    claude.request(Request::Interrupt);
    let result = json!({"type": "result", "subtype": "success", "result": "done"});
    assert_eq!(
        claude.prints(result),
        [r#"final "done""#, "ended: Completed"]
    );
}

#[test]
fn errors_end_a_turn_by_their_kind() {
    let rows = [
        (
            "API Error: 529 Overloaded",
            r#"ended: Unavailable("API Error: 529 Overloaded")"#,
        ),
        (
            "usage limit reached|1753088400",
            "ended: limited At(Timestamp(1753088400000))",
        ),
        ("Invalid API key", r#"ended: Failed("Invalid API key")"#),
    ];
    for (reason, expect) in rows {
        assert_eq!(in_turn().prints(failed_result(reason)), [expect]);
    }
    let max_turns = json!({"type": "result", "subtype": "error_max_turns", "errors": ["a", "b"]});
    assert_eq!(in_turn().prints(max_turns), [r#"ended: Failed("a; b")"#]);
    let status = json!({"type": "result", "is_error": true, "api_error_status": 503});
    assert!(in_turn().prints(status)[0].starts_with("ended: Unavailable"));
}

#[test]
fn the_reset_time_of_a_limit_comes_from_its_own_record() {
    let mut claude = in_turn();
    claude.prints(json!({"type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": 1_753_088_400}}));
    let ended = claude.prints(failed_result("You've hit your limit"));
    assert_eq!(ended, ["ended: limited At(Timestamp(1753088400000))"]);
}

#[test]
fn the_text_of_an_error_is_not_an_answer() {
    let mut claude = in_turn();
    let message = json!({"content": [{"type": "text", "text": "API Error: 500"}]});
    let record = json!({"type": "assistant", "error": "server_error", "message": message});
    assert_eq!(claude.prints(record), [""; 0]);
}

#[test]
fn a_subagent_has_tools_but_no_answer() {
    let mut claude = in_turn();
    let mut record = tool_use("t9");
    record["parent_tool_use_id"] = json!("t1");
    let text = json!({"type": "text", "text": "from a subagent"});
    record["message"]["content"]
        .as_array_mut()
        .unwrap()
        .push(text);
    assert_eq!(claude.prints(record), [r#"tool t9 Bash {"command":"ls"}"#]);
    let result = tool_result(
        "t9",
        json!([{"type": "text", "text": "a"}, {"text": "b"}]),
        false,
    );
    assert_eq!(claude.prints(result), [r#"result t9 Some("a\nb")"#]);
}

#[test]
fn a_denied_tool_completes_with_the_reason() {
    let mut claude = in_turn();
    claude.prints(tool_use("t1"));
    let result = tool_result("t1", json!("denied by a person"), true);
    assert_eq!(
        claude.prints(result.clone()),
        [r#"result t1 error "denied by a person""#]
    );
    assert_eq!(claude.prints(result), [""; 0], "a tool completes once");
}

#[test]
fn costs_are_totals_of_the_process() {
    let mut claude = in_turn();
    let result = |total: f64| {
        json!({"type": "result", "subtype": "success", "total_cost_usd": total, "usage":
            {"input_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 4}})
    };
    let first = claude.prints(result(0.5));
    assert_eq!(first[0], "usage 10+0 cached 5 cost Some(500000)");
    claude.send("again");
    let second = claude.prints(result(0.75));
    assert_eq!(second[0], "usage 10+0 cached 5 cost Some(250000)");
    claude.send("after a reset of the totals");
    let third = claude.prints(result(0.25));
    assert_eq!(third[0], "usage 10+0 cached 5 cost Some(250000)");
}

#[test]
fn a_lost_session_is_reported_before_the_turn_ends() {
    let expect = |reason: &str| {
        let reason = format!("{reason:?}");
        [
            format!("SessionLost({reason})"),
            format!("ended: Unavailable({reason})"),
        ]
    };
    let reason = "No conversation found with session ID: s1";
    let mut by_result = Conversation::new(Claude::new());
    by_result.request(resumed("s1"));
    by_result.send("hello");
    let mut result = failed_result(reason);
    result["session_id"] = json!("never-written");
    assert_eq!(by_result.prints(result), expect(reason));
    assert_eq!(by_result.exits(1, reason), [""; 0], "lost once");
    let mut by_exit = Conversation::new(Claude::new());
    by_exit.request(resumed("s1"));
    by_exit.send("hello");
    assert_eq!(by_exit.exits(1, reason), expect(reason));
}

#[test]
fn a_session_that_looks_like_a_flag_has_no_name() {
    let mut claude = in_turn();
    let init = |name: &str| json!({"type": "system", "subtype": "init", "session_id": name});
    assert_eq!(
        claude.prints(init("--dangerously-skip-permissions")),
        [""; 0]
    );
    assert_eq!(claude.prints(init("a b")), [""; 0]);
    assert_eq!(claude.prints(init("s-1")), [r#"Session("s-1")"#]);
    assert_eq!(claude.prints(init("s-1")), [""; 0], "named once");
}

#[test]
fn requests_out_of_order_are_rejected() {
    let mut claude = Conversation::new(Claude::new());
    let prompt = Request::Send {
        prompt: String::new(),
    };
    assert_eq!(claude.rejection(prompt.clone()), RequestError::NotStarted);
    claude.start();
    assert_eq!(claude.rejection(resumed("s")), RequestError::AlreadyStarted);
    claude.send("hello");
    assert_eq!(claude.rejection(prompt), RequestError::TurnOpen);
    let text = String::new();
    let steer = claude.rejection(Request::Steer { text });
    assert!(matches!(steer, RequestError::Unsupported(_)));
    let results = claude.rejection(Request::ToolResults(Vec::new()));
    assert_eq!(results, RequestError::NoTurn);
    let commands = Vec::new();
    let reset = claude.request(Request::Reset { commands });
    assert_eq!(reset, ["ended: Interrupted", "close input"]);
}

#[test]
fn an_exit_ends_the_turn_with_its_status_and_errors() {
    let ended = in_turn().exits(3, "bad flag");
    let reason = "the program exited with status 3: bad flag";
    assert_eq!(ended, [format!("ended: Failed({reason:?})")]);
    let mut idle = Conversation::new(Claude::new());
    idle.start();
    assert_eq!(idle.exits(3, "bad flag"), [""; 0]);
}

#[test]
fn a_look_at_a_running_command_is_told_before_its_result() {
    let mut claude = in_turn();
    let poll = |id: &str| {
        let input = json!({"bash_id": "b1"});
        let block = json!({"type": "tool_use", "id": id, "name": "BashOutput", "input": input});
        json!({"type": "assistant", "message": {"content": [block]}})
    };
    claude.prints(poll("t1"));
    let running = "<status>running</status>";
    assert_eq!(
        claude.prints(tool_result("t1", json!(running), false)),
        [
            r#"CommandPolled { call: Some("t1") }"#,
            r#"result t1 Some("<status>running</status>")"#,
        ]
    );
    claude.prints(poll("t2"));
    let done = "<status>completed</status>";
    assert_eq!(
        claude.prints(tool_result("t2", json!(done), false)),
        [r#"result t2 Some("<status>completed</status>")"#]
    );
}
