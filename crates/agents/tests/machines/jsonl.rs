//! The protocol for programs that are written for Turnkeep.

use serde_json::{Value, json};
use turnkeep_agents::jsonl::Jsonl;
use turnkeep_agents::request::LineResult;
use turnkeep_agents::{Answer, Request, RequestError};

use crate::conversation::{Conversation, answer_to, deny};

fn in_turn() -> Conversation {
    let mut program = Conversation::new(Jsonl::new());
    assert_eq!(
        program.start(),
        [concat!(
            r#"write {"type":"start","cwd":"/work/demo","sessionId":null,"#,
            r#""permissions":"gated","access":"write"}"#
        )]
    );
    let sent = program.send("hello");
    assert_eq!(sent, [r#"write {"type":"message.user","content":"hello"}"#]);
    program
}

fn status(status: &str) -> Value {
    json!({"type": "turn.status", "status": status})
}

fn question() -> Value {
    json!({"type": "approval.requested", "approvalId": "a",
        "tool": {"id": "t", "name": "command", "args": {"cmd": "ls"}}})
}

#[test]
fn each_line_has_its_event() {
    let rows = [
        (
            json!({"type": "session", "sessionId": "s"}),
            vec![r#"Session("s")"#],
        ),
        (
            json!({"type": "message.assistant.delta", "delta": "x"}),
            vec![r#"delta "x""#],
        ),
        (
            json!({"type": "message.assistant.final", "content": "x"}),
            vec![r#"final "x""#],
        ),
        (
            json!({"type": "message.assistant.thinking.delta", "delta": "x"}),
            vec![r#"ThinkingDelta("x")"#],
        ),
        (
            json!({"type": "message.assistant.thinking.final", "content": "x"}),
            vec![r#"ThinkingFinal("x")"#],
        ),
        (
            json!({"type": "tool.proposed", "tool": {"id": "t", "name": "n", "args": {"a": 1}}}),
            vec![r#"tool t n {"a":1}"#],
        ),
        (
            json!({"type": "tool.completed", "toolId": "t", "result": {"ok": true, "output": "o"}}),
            vec![r#"result t Some("o")"#],
        ),
        (
            json!({"type": "telemetry.usage", "costUsd": 0.5, "usage":
                {"promptTokens": 3, "completionTokens": 2, "cachedTokens": 1}}),
            vec!["usage 3+2 cached 1 cost Some(500000)"],
        ),
        (
            json!({"type": "node.progress", "summary": "p"}),
            vec![r#"Progress("p")"#],
        ),
        (
            json!({"type": "node.log", "text": "l"}),
            vec![r#"Log("l")"#],
        ),
        (json!({"type": "something.new"}), vec![]),
        (json!({}), vec![]),
        (status("turn.started"), vec![]),
        (status("turn.completed"), vec!["ended: Completed"]),
        (status("turn.completed"), vec![]),
    ];
    let mut program = in_turn();
    for (line, expect) in rows {
        assert_eq!(program.prints(line.clone()), expect, "{line}");
    }
    assert_eq!(program.prints_text("not JSON"), [r#"Log("not JSON")"#]);
}

#[test]
fn each_answer_has_its_resolution() {
    let rows = [
        (
            Answer::Allow,
            json!({"status": "approved", "scope": "once"}),
        ),
        (
            Answer::AllowAlways,
            json!({"status": "approved", "scope": "session"}),
        ),
        (
            Answer::AllowWith(json!({"cmd": "ls -a"})),
            json!({"status": "modified", "modifiedArgs": {"cmd": "ls -a"}, "scope": "once"}),
        ),
        (
            deny("no"),
            json!({"status": "denied", "reason": "no", "scope": "once"}),
        ),
    ];
    for (answer, resolution) in rows {
        let mut program = in_turn();
        let asked = program.prints(question());
        assert_eq!(asked[1], "ask a about t, always: run `ls` in /work/demo");
        let answered = program.answer("a", answer);
        let kind = "approval.resolved";
        let expect = json!({"type": kind, "approvalId": "a", "resolution": resolution});
        assert_eq!(answered, [format!("write {expect}")]);
    }
    let mut program = in_turn();
    program.prints(question());
    let withdrawn = json!({"type": "approval.withdrawn", "approvalId": "a"});
    assert_eq!(program.prints(withdrawn), ["withdrawn a"]);
    let late = program.rejection(answer_to("a", Answer::Allow));
    assert_eq!(late, RequestError::UnknownPermission("a".to_owned()));
}

#[test]
fn a_turn_with_calls_goes_on_with_their_results() {
    let mut program = in_turn();
    let call = json!({"tool_call": {"name": "list_nodes", "args": {}}});
    assert_eq!(program.prints(call.clone()), ["call list_nodes {}"]);
    let content = format!("I look.\n```\n{call}\n```\n{call}\n{{\"tool_call\":1}}");
    let message = json!({"type": "message.assistant.final", "content": content});
    let said = program.prints(message);
    assert_eq!(said[0], "call list_nodes {}");
    assert_eq!(said[1], r#"MalformedToolCall("{\"tool_call\":1}")"#);
    assert!(said[2].starts_with(r#"final "I look.\n```"#), "{said:?}");
    assert_eq!(
        program.prints(status("turn.completed")),
        ["AwaitsToolResults"]
    );
    assert_eq!(program.prints(status("turn.completed")), [""; 0]);
    let result = LineResult {
        name: "list_nodes".to_owned(),
        result: Err("no edge".to_owned()),
    };
    let sent = program.request(Request::ToolResults(vec![result]));
    let expect = json!({"type": "tool.results",
        "results": [{"name": "list_nodes", "ok": false, "error": "no edge"}]});
    let mut sent: Value = serde_json::from_str(&sent[0]["write ".len()..]).unwrap();
    let notes = sent.as_object_mut().unwrap().remove("notes").unwrap();
    assert_eq!(sent, expect);
    assert!(
        notes[0].as_str().unwrap().ends_with(r#": {"tool_call":1}"#),
        "{notes}"
    );
    assert_eq!(
        program.prints(status("turn.completed")),
        ["ended: Completed"]
    );
}

#[test]
fn interrupts_failures_and_resets_end_the_turn() {
    let mut program = in_turn();
    assert_eq!(
        program.request(Request::Interrupt),
        [r#"write {"type":"interrupt"}"#]
    );
    assert_eq!(program.request(Request::Interrupt), ["SIGINT"]);
    assert_eq!(
        program.prints(status("turn.failed")),
        ["ended: Interrupted"]
    );
    program.send("again");
    let mut unused = status("turn.interrupted");
    unused["begun"] = json!(false);
    assert_eq!(program.prints(unused), ["ended: NotBegun"]);
    program.send("again");
    let failed = json!({"type": "turn.status", "status": "turn.failed", "httpStatus": 503,
        "detail": "busy"});
    assert_eq!(program.prints(failed), [r#"ended: Unavailable("busy")"#]);
    program.send("again");
    let commands = vec!["/new".to_owned()];
    let reset = program.request(Request::Reset { commands });
    assert_eq!(
        reset,
        [
            "ended: Interrupted",
            r#"write {"type":"reset","commands":["/new"]}"#
        ]
    );
    program.send("again");
    let lost = json!({"type": "session.lost", "detail": "gone"});
    assert_eq!(
        program.prints(lost),
        [r#"SessionLost("gone")"#, r#"ended: Unavailable("gone")"#]
    );
    program.send("again");
    assert!(program.exits(9, "")[0].starts_with("ended: Failed"));
}
