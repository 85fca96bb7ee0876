//! `codex`: approvals, interrupts, threads that are not there yet or not any more, and errors.

use serde_json::{Value, json};
use turnkeep_agents::codex::Codex;
use turnkeep_agents::request::{Access, Permissions, StartOptions};
use turnkeep_agents::{Answer, Request, RequestError};

use crate::conversation::{Conversation, answer_to, deny, resumed, start_options};

/// A conversation whose thread is `th`.
fn ready() -> Conversation {
    let mut codex = Conversation::new(Codex::new());
    codex.start();
    codex.prints(json!({"id": 1, "result": {}}));
    codex.prints(json!({"id": 2, "result": {"thread": {"id": "th"}}}));
    codex
}

/// A conversation in the turn `tu`.
fn in_turn() -> Conversation {
    let mut codex = ready();
    codex.send("hello");
    codex.prints(json!({"id": 3, "result": {"turn": {"id": "tu"}}}));
    codex
}

fn notify(method: &str, mut params: Value) -> Value {
    params["threadId"] = json!("th");
    params["turnId"] = json!("tu");
    json!({"method": method, "params": params})
}

fn started(item: Value) -> Value {
    notify("item/started", json!({"item": item}))
}

fn completed(item: Value) -> Value {
    notify("item/completed", json!({"item": item}))
}

fn turn_completed(turn: Value) -> Value {
    json!({"method": "turn/completed", "params": {"threadId": "th", "turn": turn}})
}

fn ask(method: &str, mut params: Value) -> Value {
    params["threadId"] = json!("th");
    params["turnId"] = json!("tu");
    json!({"id": "q", "method": method, "params": params})
}

fn written(lines: &[String]) -> Value {
    serde_json::from_str(lines[0].strip_prefix("write ").unwrap()).unwrap()
}

#[test]
fn each_answer_has_its_decision() {
    let question = ask(
        "item/commandExecution/requestApproval",
        json!({"itemId": "i", "command": "ls", "cwd": "/w"}),
    );
    let rows = [
        (Answer::Allow, "accept"),
        (Answer::AllowAlways, "acceptForSession"),
        (deny(""), "decline"),
    ];
    for (answer, decision) in rows {
        let mut codex = in_turn();
        assert_eq!(
            codex.prints(question.clone()),
            [
                r#"tool i command {"command":"ls","cwd":"/w"}"#,
                r#"ask "q" about i, always: run `ls` in /w"#,
            ]
        );
        let answered = codex.answer(r#""q""#, answer);
        let expect = json!({"jsonrpc": "2.0", "id": "q", "result": {"decision": decision}});
        assert_eq!(written(&answered), expect);
    }
    let mut codex = in_turn();
    codex.prints(question);
    let modified = codex.rejection(answer_to(r#""q""#, Answer::AllowWith(json!({}))));
    assert!(matches!(modified, RequestError::Unsupported(_)));
    codex.answer(r#""q""#, Answer::Allow);
}

#[test]
fn the_reason_of_a_denial_follows_as_input() {
    let mut codex = in_turn();
    codex.prints(ask(
        "item/fileChange/requestApproval",
        json!({"itemId": "i"}),
    ));
    let answered = codex.answer(r#""q""#, deny("write a test first"));
    assert!(
        answered[0].contains(r#""decision":"decline""#),
        "{answered:?}"
    );
    assert!(
        answered[1].contains(r#""method":"turn/steer""#),
        "{answered:?}"
    );
    assert!(answered[1].contains("write a test first"), "{answered:?}");
}

#[test]
fn a_change_of_files_is_described_by_its_item() {
    let mut codex = in_turn();
    codex.prints(started(
        json!({"type": "fileChange", "id": "i", "changes": [
            {"path": "a.rs", "kind": {"type": "update"}, "diff": "@@ -1 +1,2 @@\n-x\n+y\n+z\n"},
            {"path": "new.rs", "kind": {"type": "add"}, "diff": "1\n2\n3\n"},
            {"path": "old.rs", "kind": {"type": "delete"}, "diff": "1\n"},
        ]}),
    ));
    let asked = codex.prints(ask(
        "item/fileChange/requestApproval",
        json!({"itemId": "i"}),
    ));
    let sentence = "change a.rs (+2 −1), new.rs (+3 −0), old.rs (+0 −1)";
    assert_eq!(asked, [format!(r#"ask "q" about i, always: {sentence}"#)]);
    let done = completed(json!({"type": "fileChange", "id": "i", "status": "declined"}));
    assert_eq!(codex.prints(done), [r#"result i error "declined""#]);
}

#[test]
fn rights_and_mcp_tools_have_their_own_answers() {
    let rights = json!({"network": {"enabled": true}});
    let question = ask(
        "item/permissions/requestApproval",
        json!({"itemId": "i", "permissions": rights, "reason": "to download"}),
    );
    let rows = [
        (
            Answer::Allow,
            json!({"permissions": rights, "scope": "turn"}),
        ),
        (
            Answer::AllowAlways,
            json!({"permissions": rights, "scope": "session"}),
        ),
        (deny(""), json!({"permissions": {}})),
    ];
    for (answer, expect) in rows {
        let mut codex = in_turn();
        let asked = codex.prints(question.clone());
        assert!(
            asked[1].ends_with("use request_permissions (to download)"),
            "{asked:?}"
        );
        assert_eq!(written(&codex.answer(r#""q""#, answer))["result"], expect);
    }
    let question = ask(
        "mcpServer/elicitation/request",
        json!({"serverName": "s", "message": "Allow?",
            "_meta": {"codex_approval_kind": "mcp_tool_call"}}),
    );
    let rows = [(Answer::Allow, "accept"), (deny(""), "decline")];
    for (answer, action) in rows {
        let mut codex = in_turn();
        codex.prints(question.clone());
        let answered = codex.answer(r#""q""#, answer);
        assert_eq!(written(&answered)["result"]["action"], action);
    }
}

#[test]
fn other_calls_of_the_program_get_an_error() {
    let mut codex = in_turn();
    for method in [
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
        "x",
    ] {
        let answer = written(&codex.prints(ask(method, json!({}))));
        assert_eq!(answer["error"]["code"], -32601, "{method}");
        assert_eq!(answer["id"], "q");
    }
}

#[test]
fn a_question_of_another_thread_or_turn_is_declined() {
    let method = "item/commandExecution/requestApproval";
    let mut codex = ready();
    let outside = codex.prints(ask(method, json!({"itemId": "i"})));
    assert_eq!(written(&outside)["result"]["decision"], "decline");
    let mut codex = in_turn();
    let mut question = ask(method, json!({"itemId": "i"}));
    question["params"]["turnId"] = json!("an earlier one");
    assert_eq!(
        written(&codex.prints(question))["result"]["decision"],
        "decline"
    );
}

#[test]
fn the_program_withdraws_questions() {
    let mut codex = in_turn();
    codex.prints(ask(
        "item/fileChange/requestApproval",
        json!({"itemId": "i"}),
    ));
    let resolved = |id: Value| notify("serverRequest/resolved", json!({"requestId": id}));
    assert_eq!(codex.prints(resolved(json!(7))), [""; 0]);
    assert_eq!(codex.prints(resolved(json!("q"))), [r#"withdrawn "q""#]);
    assert_eq!(codex.prints(resolved(json!("q"))), [""; 0]);
}

#[test]
fn a_prompt_waits_for_the_thread() {
    let mut codex = Conversation::new(Codex::new());
    codex.start();
    assert_eq!(codex.send("hello"), [""; 0]);
    let opened = codex.prints(json!({"id": 1, "result": {}}));
    assert!(opened[1].contains("thread/start"), "{opened:?}");
    let ready = codex.prints(json!({"id": 2, "result": {"thread": {"id": "th"}}}));
    assert_eq!(ready[0], r#"Session("th")"#);
    assert!(
        ready[1].contains("turn/start") && ready[1].contains("hello"),
        "{ready:?}"
    );
}

#[test]
fn a_waiting_prompt_can_be_interrupted() {
    let mut codex = Conversation::new(Codex::new());
    codex.start();
    codex.send("hello");
    assert_eq!(codex.request(Request::Interrupt), ["ended: NotBegun"]);
    codex.prints(json!({"id": 1, "result": {}}));
    let ready = codex.prints(json!({"id": 2, "result": {"thread": {"id": "th"}}}));
    assert_eq!(ready, [r#"Session("th")"#], "the prompt is not sent");
}

#[test]
fn an_interrupt_waits_for_the_name_of_the_turn() {
    let mut codex = ready();
    codex.send("hello");
    assert_eq!(codex.request(Request::Interrupt), [""; 0]);
    let text = "more".to_owned();
    assert_eq!(
        codex.rejection(Request::Steer { text }),
        RequestError::NoTurn
    );
    let named = codex.prints(json!({"id": 3, "result": {"turn": {"id": "tu"}}}));
    assert_eq!(
        written(&named)["params"],
        json!({"threadId": "th", "turnId": "tu"})
    );
    let started = json!({"method": "turn/started", "params": {"turn": {"id": "tu"}}});
    assert_eq!(codex.prints(started), [""; 0], "interrupted once");
    let ended = codex.prints(turn_completed(json!({"id": "tu", "status": "interrupted"})));
    assert_eq!(ended, ["ended: Interrupted"]);
}

#[test]
fn an_interrupted_turn_that_failed_is_interrupted() {
    let mut codex = in_turn();
    codex.request(Request::Interrupt);
    let ended = codex.prints(turn_completed(json!({"id": "tu", "status": "failed"})));
    assert_eq!(ended, ["ended: Interrupted"]);
}

#[test]
fn errors_end_a_turn_by_their_kind() {
    let limits = json!({"method": "account/rateLimits/updated", "params": {"rateLimits": {
        "primary": {"usedPercent": 100, "resetsAt": 1_753_088_400},
        "secondary": {"usedPercent": 20, "resetsAt": 1_999_999_999},
    }}});
    let rows = [
        (
            json!("usageLimitExceeded"),
            "ended: limited At(Timestamp(1753088400000))",
        ),
        (json!("serverOverloaded"), r#"ended: Unavailable("m")"#),
        (
            json!({"httpConnectionFailed": {"httpStatusCode": 502}}),
            r#"ended: Unavailable("m")"#,
        ),
        (
            json!({"responseStreamDisconnected": {}}),
            r#"ended: Unavailable("m")"#,
        ),
        (
            json!({"httpConnectionFailed": {"httpStatusCode": 401}}),
            r#"ended: Failed("m")"#,
        ),
        (json!("contextWindowExceeded"), r#"ended: Failed("m")"#),
        (json!({}), r#"ended: Failed("m")"#),
        (json!(null), r#"ended: Failed("m")"#),
    ];
    for (info, expect) in rows {
        let mut codex = in_turn();
        codex.prints(limits.clone());
        let error = json!({"message": "m", "codexErrorInfo": info});
        let turn = json!({"id": "tu", "status": "failed", "error": error});
        assert_eq!(codex.prints(turn_completed(turn)), [expect]);
    }
    let mut codex = ready();
    codex.send("hello");
    let refused = codex.prints(json!({"id": 3, "error": {"message": "no"}}));
    assert_eq!(refused, [r#"ended: Failed("no")"#]);
}

#[test]
fn a_passing_error_is_only_progress() {
    let mut codex = in_turn();
    let error = |retries| {
        let error = json!({"message": "stream lost"});
        notify("error", json!({"error": error, "willRetry": retries}))
    };
    assert_eq!(
        codex.prints(error(true)),
        [r#"Progress("tries again: stream lost")"#]
    );
    assert_eq!(codex.prints(error(false)), [r#"Log("stream lost")"#]);
}

#[test]
fn a_lost_thread_is_replaced_and_reported() {
    let mut codex = Conversation::new(Codex::new());
    codex.request(resumed("old"));
    codex.send("a delta prompt");
    let resume = codex.prints(json!({"id": 1, "result": {}}));
    assert!(
        resume[1].contains("thread/resume") && resume[1].contains("old"),
        "{resume:?}"
    );
    let lost = codex.prints(json!({"id": 2, "error": {"message": "no thread old"}}));
    assert!(lost[0].contains("thread/start"), "{lost:?}");
    assert_eq!(
        lost[1..],
        [
            r#"SessionLost("no thread old")"#,
            r#"ended: Unavailable("no thread old")"#
        ]
    );
    codex.send("a full prompt");
    let ready = codex.prints(json!({"id": 3, "result": {"thread": {"id": "new"}}}));
    assert_eq!(ready[0], r#"Session("new")"#);
    assert!(ready[1].contains("a full prompt"), "{ready:?}");
}

#[test]
fn a_program_without_a_thread_fails_every_turn() {
    let mut codex = Conversation::new(Codex::new());
    codex.start();
    codex.send("hello");
    let error = json!({"id": 1, "error": {"message": "not logged in"}});
    let failed = r#"ended: Failed("not logged in")"#;
    assert_eq!(codex.prints(error), [failed, "close input"]);
    assert_eq!(codex.send("again"), [failed]);
}

#[test]
fn other_threads_and_earlier_turns_are_ignored() {
    let mut codex = in_turn();
    let delta = |thread: &str, turn: &str| {
        json!({"method": "item/agentMessage/delta",
            "params": {"threadId": thread, "turnId": turn, "delta": "x"}})
    };
    assert_eq!(codex.prints(delta("th", "tu")), [r#"delta "x""#]);
    assert_eq!(codex.prints(delta("another", "tu")), [""; 0]);
    assert_eq!(codex.prints(delta("th", "earlier")), [""; 0]);
    let earlier = turn_completed(json!({"id": "earlier", "status": "completed"}));
    assert_eq!(codex.prints(earlier), [""; 0]);
    let end = turn_completed(json!({"id": "tu", "status": "completed"}));
    assert_eq!(codex.prints(end.clone()), ["ended: Completed"]);
    assert_eq!(codex.prints(end), [""; 0], "a turn ends once");
}

#[test]
fn the_end_of_the_turn_before_does_not_end_a_turn_without_a_name() {
    let mut codex = in_turn();
    let end = turn_completed(json!({"id": "tu", "status": "completed"}));
    assert_eq!(codex.prints(end.clone()), ["ended: Completed"]);
    codex.send("again");
    assert_eq!(codex.prints(end), [""; 0]);
    let started = |id: &str| json!({"method": "turn/started", "params": {"turn": {"id": id}}});
    codex.prints(started("tu"));
    codex.prints(started("next"));
    let end = turn_completed(json!({"id": "next", "status": "completed"}));
    assert_eq!(codex.prints(end), ["ended: Completed"]);
}

#[test]
fn thoughts_plans_diffs_and_late_tools_are_reported() {
    let mut codex = in_turn();
    let rows = [
        (
            notify("item/reasoning/summaryTextDelta", json!({"delta": "hm"})),
            vec![r#"ThinkingDelta("hm")"#],
        ),
        (
            completed(json!({"type": "reasoning", "id": "r", "summary": ["a", "b"]})),
            vec![r#"ThinkingFinal("a\n\nb")"#],
        ),
        (
            notify("turn/diff/updated", json!({"diff": "+x"})),
            vec![r#"DiffPreview("+x")"#],
        ),
        (
            notify(
                "turn/plan/updated",
                json!({"plan": [
                    {"step": "one", "status": "completed"}, {"step": "two", "status": "inProgress"},
                ]}),
            ),
            vec![r#"Progress("two")"#],
        ),
        (
            completed(json!({"type": "webSearch", "id": "w", "query": "q"})),
            vec![r#"tool w web_search {"query":"q"}"#, "result w None"],
        ),
        (
            started(json!({"type": "contextCompaction", "id": "c"})),
            vec![r#"Progress("compacts its context")"#],
        ),
    ];
    for (message, expect) in rows {
        assert_eq!(codex.prints(message), expect);
    }
}

#[test]
fn input_can_be_added_to_a_turn() {
    let mut codex = in_turn();
    let text = "hurry".to_owned();
    let steered = codex.request(Request::Steer { text });
    let input = json!([{"type": "text", "text": "hurry"}]);
    let expect = json!({"threadId": "th", "input": input, "expectedTurnId": "tu"});
    assert_eq!(written(&steered)["params"], expect);
    let refused = codex.prints(json!({"id": 4, "error": {"message": "too late"}}));
    assert_eq!(refused, [r#"Log("codex rejected Steer: too late")"#]);
}

#[test]
fn the_thread_has_the_sandbox_and_policy_of_its_options() {
    let rows = [
        (
            Access::Write,
            Permissions::Gated,
            "workspace-write",
            "untrusted",
        ),
        (Access::Write, Permissions::Skip, "workspace-write", "never"),
        (
            Access::ReadOnly,
            Permissions::Gated,
            "read-only",
            "on-request",
        ),
        (Access::ReadOnly, Permissions::Skip, "read-only", "never"),
    ];
    for (access, permissions, sandbox, policy) in rows {
        let mut codex = Conversation::new(Codex::new());
        codex.request(Request::Start(StartOptions {
            access,
            permissions,
            ..start_options()
        }));
        let opened = codex.prints(json!({"id": 1, "result": {}}));
        let params = &written(&opened[1..])["params"];
        assert_eq!(params["sandbox"], sandbox);
        assert_eq!(params["approvalPolicy"], policy);
    }
}

#[test]
fn a_look_at_a_running_command_is_no_call() {
    let mut codex = in_turn();
    let interaction = |stdin: &str| {
        let method = "item/commandExecution/terminalInteraction";
        notify(
            method,
            json!({"itemId": "i", "processId": "7", "stdin": stdin}),
        )
    };
    assert_eq!(
        codex.prints(interaction("")),
        ["CommandPolled { call: None }"]
    );
    // It typed something.
    assert_eq!(codex.prints(interaction("q")), [""; 0]);
    codex.prints(turn_completed(json!({"id": "tu", "status": "completed"})));
    assert_eq!(codex.prints(interaction("")), [""; 0]);
}
