//! The Agent Client Protocol: choices of permissions, cancellation, sessions, modes and tools.

use serde_json::{Value, json};
use turnkeep_agents::acp::Acp;
use turnkeep_agents::request::{Access, LineResult, McpServer, Permissions, StartOptions};
use turnkeep_agents::{Answer, Request, RequestError};

use crate::conversation::{Conversation, answer_to, deny, resumed, start_options};

fn capable() -> Value {
    json!({"id": 1, "result": {"agentCapabilities": {
        "loadSession": true, "mcpCapabilities": {"http": true},
    }}})
}

/// A conversation whose session is `s`.
fn ready_with(options: StartOptions) -> Conversation {
    let mut agent = Conversation::new(Acp::new());
    agent.request(Request::Start(options));
    agent.prints(capable());
    agent.prints(json!({"id": 2, "result": {"sessionId": "s"}}));
    agent
}

fn in_turn_with(options: StartOptions) -> Conversation {
    let mut agent = ready_with(options);
    agent.send("hello");
    agent
}

fn in_turn() -> Conversation {
    in_turn_with(start_options())
}

fn update(update: Value) -> Value {
    json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
}

fn chunk(kind: &str, message: Option<&str>, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    update(json!({"sessionUpdate": kind, "messageId": message, "content": content}))
}

fn tool(kind: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = json!(kind);
    fields["toolCallId"] = json!("t");
    update(fields)
}

fn question(kinds: &[&str], tool_call: Value) -> Value {
    let option = |kind: &&str| json!({"optionId": format!("my {kind}"), "kind": kind});
    let options: Vec<Value> = kinds.iter().map(option).collect();
    json!({"id": 7, "method": "session/request_permission",
        "params": {"sessionId": "s", "options": options, "toolCall": tool_call}})
}

fn written(line: &str) -> Value {
    serde_json::from_str(line.strip_prefix("write ").unwrap()).unwrap()
}

/// The chosen option, or the outcome without one.
fn outcome_of(line: &str) -> String {
    let answer = written(line);
    let outcome = &answer["result"]["outcome"];
    let choice = outcome["optionId"].as_str().or(outcome["outcome"].as_str());
    choice.unwrap().to_owned()
}

const ALL: &[&str] = &["allow_always", "allow_once", "reject_once", "reject_always"];

#[test]
fn each_answer_picks_the_nearest_choice() {
    let rows = [
        (ALL, Answer::Allow, "my allow_once"),
        (ALL, Answer::AllowAlways, "my allow_always"),
        (ALL, deny("no"), "my reject_once"),
        (&["allow_always"], Answer::Allow, "my allow_always"),
        (&["allow_once"], Answer::AllowAlways, "my allow_once"),
        (&["reject_always"], deny(""), "my reject_always"),
        (&["allow_once"], deny(""), "cancelled"),
    ];
    for (kinds, answer, expect) in rows {
        let mut agent = in_turn();
        agent.prints(question(kinds, json!({"toolCallId": "t"})));
        let answered = agent.answer("7", answer);
        assert_eq!(outcome_of(&answered[0]), expect);
    }
    let mut agent = in_turn();
    agent.prints(question(&["reject_once"], json!({"toolCallId": "t"})));
    for answer in [Answer::Allow, Answer::AllowWith(json!({}))] {
        let rejection = agent.rejection(answer_to("7", answer));
        assert!(matches!(rejection, RequestError::Unsupported(_)));
    }
    let answered = agent.answer("7", deny(""));
    assert_eq!(outcome_of(&answered[0]), "my reject_once");
}

#[test]
fn a_denied_call_is_completed_at_once() {
    let mut agent = in_turn();
    agent.prints(question(ALL, json!({"toolCallId": "t"})));
    let answered = agent.answer("7", deny("use cargo"));
    assert_eq!(answered[1..], [r#"result t error "use cargo""#]);
    let failed = tool("tool_call_update", json!({"status": "failed"}));
    assert_eq!(agent.prints(failed), [""; 0]);
    let mut agent = in_turn();
    agent.prints(question(ALL, json!({})));
    assert_eq!(
        agent.answer("7", deny(""))[1..],
        [r#"result 7 error "denied""#]
    );
}

#[test]
fn the_narrowest_choice_is_taken() {
    let option = |id: &str| json!({"optionId": id, "kind": "allow_always"});
    let wide = ["proceed_always_server", "proceed_always_and_save"].map(option);
    let rows = [
        (
            vec![
                wide[0].clone(),
                option("proceed_always_tool"),
                wide[1].clone(),
            ],
            "proceed_always_tool",
        ),
        (wide.to_vec(), "proceed_always_server"),
    ];
    for (options, expect) in rows {
        let mut agent = in_turn();
        let mut asked = question(&[], json!({"toolCallId": "t"}));
        asked["params"]["options"] = json!(options);
        agent.prints(asked);
        let answered = agent.answer("7", Answer::AllowAlways);
        assert_eq!(outcome_of(&answered[0]), expect);
    }
}

#[test]
fn a_question_describes_the_command_or_the_files() {
    let rows = [
        (
            json!({"kind": "execute", "title": "ls", "rawInput": {"command": "ls -a"}}),
            "run `ls -a` in /work/demo",
        ),
        (
            json!({"kind": "execute", "title": "ls"}),
            "run `ls` in /work/demo",
        ),
        (
            json!({"kind": "edit", "title": "Edit", "content": [
                {"type": "diff", "path": "a.rs", "oldText": "1\n2", "newText": "1\n3\n4"},
                {"type": "diff", "path": "b.rs", "newText": "1"},
            ]}),
            "change a.rs (+2 −1), b.rs (+1 −0)",
        ),
        (
            json!({"kind": "fetch", "title": "get a page"}),
            "use get a page",
        ),
        (json!({}), "use tool"),
    ];
    for (mut call, expect) in rows {
        call["toolCallId"] = json!("t");
        let asked = in_turn().prints(question(ALL, call));
        assert_eq!(asked[1], format!("ask 7 about t, always: {expect}"));
    }
}

#[test]
fn an_agent_that_must_not_ask_is_answered_at_once() {
    let rows = [
        (Access::Write, "my allow_once"),
        (Access::ReadOnly, "my reject_once"),
    ];
    for (access, expect) in rows {
        let mut agent = in_turn_with(StartOptions {
            access,
            permissions: Permissions::Skip,
            ..start_options()
        });
        let lines = agent.prints(question(ALL, json!({"toolCallId": "t"})));
        assert!(lines[0].starts_with("tool t"), "{lines:?}");
        assert_eq!(outcome_of(&lines[1]), expect);
    }
}

#[test]
fn a_question_outside_the_turn_is_cancelled() {
    let call = json!({"toolCallId": "t"});
    let outside = ready_with(start_options()).prints(question(ALL, call.clone()));
    assert_eq!(outcome_of(&outside[0]), "cancelled");
    let mut agent = in_turn();
    let mut other = question(ALL, call);
    other["params"]["sessionId"] = json!("another");
    assert_eq!(outcome_of(&agent.prints(other)[0]), "cancelled");
}

#[test]
fn an_interrupt_cancels_the_turn_and_its_questions() {
    let mut agent = in_turn();
    agent.prints(chunk("agent_message_chunk", None, "half a "));
    agent.prints(question(ALL, json!({"toolCallId": "t"})));
    let interrupted = agent.request(Request::Interrupt);
    assert_eq!(written(&interrupted[0])["method"], "session/cancel");
    assert_eq!(interrupted[1], "withdrawn 7");
    assert_eq!(outcome_of(&interrupted[2]), "cancelled");
    agent.prints(chunk("agent_message_chunk", None, "sentence"));
    let stopped = json!({"id": 3, "result": {"stopReason": "cancelled"}});
    assert_eq!(
        agent.prints(stopped.clone()),
        [
            r#"result t error "the turn ended before the tool reported a result""#,
            "ended: Interrupted",
        ]
    );
    assert_eq!(agent.prints(stopped), [""; 0], "a turn ends once");
}

#[test]
fn a_prompt_that_waits_for_the_session_is_not_sent_after_an_interrupt() {
    let mut agent = Conversation::new(Acp::new());
    agent.start();
    agent.send("hello");
    assert_eq!(agent.request(Request::Interrupt), ["ended: NotBegun"]);
    agent.prints(capable());
    let ready = agent.prints(json!({"id": 2, "result": {"sessionId": "s"}}));
    assert_eq!(ready, [r#"Session("s")"#]);
}

/// Gemini CLI says first that the session is loaded, and repeats its past then.
#[test]
fn a_past_that_comes_after_the_session_is_ready_is_no_answer() {
    let mut agent = Conversation::new(Acp::new());
    agent.request(resumed("s"));
    agent.send("hello");
    agent.prints(capable());
    agent.prints(json!({"id": 2, "result": {}}));
    let commands = update(json!({"sessionUpdate": "available_commands_update"}));
    for past in [
        chunk("user_message_chunk", None, "an old question"),
        chunk("agent_message_chunk", None, "an old answer"),
        commands,
    ] {
        assert_eq!(agent.prints(past), [""; 0]);
    }
    let answer = chunk("agent_message_chunk", None, "new");
    assert_eq!(agent.prints(answer), [r#"delta "new""#]);
    assert_eq!(
        agent.prints(json!({"id": 3, "result": {"stopReason": "end_turn"}})),
        [r#"final "new""#, "ended: Completed"]
    );
}

/// Gemini CLI does not wait until it has repeated the past: some of it comes before the response, and
/// nobody knows how much.
#[test]
fn a_past_around_the_response_is_no_answer() {
    let past = [
        chunk("user_message_chunk", None, "an old question"),
        chunk("agent_message_chunk", None, "an old answer"),
        chunk("user_message_chunk", None, "another question"),
        chunk("agent_message_chunk", None, "another answer"),
        update(json!({"sessionUpdate": "available_commands_update"})),
    ];
    for early in 0..=past.len() {
        let mut agent = Conversation::new(Acp::new());
        agent.request(resumed("s"));
        agent.send("hello");
        let mut initialized = capable();
        initialized["result"]["agentInfo"] = json!({"name": "gemini-cli"});
        agent.prints(initialized);
        for update in &past[..early] {
            assert_eq!(agent.prints(update.clone()), [""; 0], "{early}");
        }
        agent.prints(json!({"id": 2, "result": {}}));
        for update in &past[early..] {
            assert_eq!(agent.prints(update.clone()), [""; 0], "{early}");
        }
        let answer = chunk("agent_message_chunk", None, "new");
        assert_eq!(agent.prints(answer), [r#"delta "new""#], "{early}");
    }
}

#[test]
fn stop_reasons_and_errors_end_a_turn_by_their_kind() {
    let rows = [
        (
            json!({"result": {"stopReason": "end_turn"}}),
            "ended: Completed",
        ),
        (
            json!({"result": {"stopReason": "cancelled"}}),
            "ended: Interrupted",
        ),
        (
            json!({"result": {"stopReason": "refusal"}}),
            r#"ended: Failed("the model refused to continue")"#,
        ),
        (
            json!({"result": {}}),
            r#"ended: Failed("the agent stopped: ")"#,
        ),
        (
            json!({"error": {"code": 429, "message": "slow down"}}),
            "ended: limited Unknown",
        ),
        (
            json!({"error": {"code": 429, "message": "Your quota will reset after 1h1s."}}),
            "ended: limited After(3601s)",
        ),
        (
            json!({"error": {"code": -32603, "message": "Internal error",
                "data": {"details": "fetch failed"}}}),
            r#"ended: Unavailable("Internal error: fetch failed")"#,
        ),
        (
            json!({"error": {"code": -32000, "message": "Authentication required"}}),
            r#"ended: Failed("log in to the agent program first: Authentication required")"#,
        ),
        (
            json!({"error": {"code": -32800, "message": "stop"}}),
            "ended: Interrupted",
        ),
    ];
    for (mut response, expect) in rows {
        response["id"] = json!(3);
        assert_eq!(in_turn().prints(response), [expect]);
    }
    let mut agent = in_turn();
    agent.request(Request::Interrupt);
    let error = json!({"id": 3, "error": {"code": -32603, "message": "aborted"}});
    assert_eq!(agent.prints(error), ["ended: Interrupted"]);
}

#[test]
fn calls_about_files_and_terminals_get_an_error() {
    let mut agent = in_turn();
    for method in ["fs/read_text_file", "terminal/create", "x"] {
        let call = json!({"id": "f", "method": method, "params": {}});
        let answer = written(&agent.prints(call)[0]);
        assert_eq!(answer["error"]["code"], -32601, "{method}");
        assert_eq!(answer["id"], "f");
    }
}

#[test]
fn a_message_ends_where_something_else_begins() {
    let mut agent = in_turn();
    agent.prints(chunk("agent_thought_chunk", None, "hm"));
    assert_eq!(
        agent.prints(chunk("agent_message_chunk", Some("1"), "one")),
        [r#"ThinkingFinal("hm")"#, r#"delta "one""#]
    );
    assert_eq!(
        agent.prints(chunk("agent_message_chunk", Some("2"), "two")),
        [r#"final "one""#, r#"delta "two""#]
    );
    assert_eq!(
        agent.prints(tool(
            "tool_call",
            json!({"kind": "read", "status": "in_progress"})
        )),
        [r#"final "two""#, r#"tool t read {"toolKind":"read"}"#]
    );
}

#[test]
fn a_tool_is_proposed_when_its_arguments_are_known() {
    let mut agent = in_turn();
    let pending = json!({"status": "pending", "title": "edit", "kind": "edit", "rawInput": {}});
    assert_eq!(agent.prints(tool("tool_call", pending)), [""; 0]);
    let running = json!({"status": "in_progress", "locations": [{"path": "a"}]});
    assert_eq!(
        agent.prints(tool("tool_call_update", running)),
        [r#"tool t edit {"title":"edit","path":"a","toolKind":"edit"}"#]
    );
    let failed = json!({"status": "failed", "content": [
        {"type": "content", "content": {"type": "text", "text": "no such file"}},
    ]});
    assert_eq!(
        agent.prints(tool("tool_call_update", failed.clone())),
        [r#"result t error "no such file""#]
    );
    assert_eq!(agent.prints(tool("tool_call_update", failed)), [""; 0]);
}

#[test]
fn a_loaded_session_repeats_its_past_unheard() {
    let mut agent = Conversation::new(Acp::new());
    agent.request(resumed("s"));
    agent.send("hello");
    let load = agent.prints(capable());
    assert_eq!(written(&load[0])["method"], "session/load");
    assert_eq!(written(&load[0])["params"]["sessionId"], "s");
    assert_eq!(
        agent.prints(chunk("agent_message_chunk", None, "past")),
        [""; 0]
    );
    let ready = agent.prints(json!({"id": 2, "result": {}}));
    assert_eq!(ready[0], r#"Session("s")"#);
    assert_eq!(written(&ready[1])["method"], "session/prompt");
}

#[test]
fn a_session_is_resumed_where_the_agent_can() {
    let mut agent = Conversation::new(Acp::new());
    agent.request(resumed("s"));
    let abilities = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let resume = agent.prints(json!({"id": 1, "result": {"agentCapabilities": abilities}}));
    assert_eq!(written(&resume[0])["method"], "session/resume");
}

#[test]
fn a_lost_session_is_replaced_and_reported() {
    let mut agent = Conversation::new(Acp::new());
    agent.request(resumed("old"));
    agent.send("a delta prompt");
    agent.prints(capable());
    let lost = agent.prints(json!({"id": 2, "error": {"message": "unknown"}}));
    assert_eq!(written(&lost[0])["method"], "session/new");
    assert_eq!(
        lost[1..],
        [
            r#"SessionLost("unknown")"#,
            r#"ended: Unavailable("unknown")"#
        ]
    );
    let ready = agent.prints(json!({"id": 3, "result": {"sessionId": "new"}}));
    assert_eq!(ready, [r#"Session("new")"#]);
    let mut unable = Conversation::new(Acp::new());
    unable.request(resumed("old"));
    let lost = unable.prints(json!({"id": 1, "result": {}}));
    assert!(lost[1].starts_with("SessionLost"), "{lost:?}");
    assert!(!unable.machine().features().resume);
    assert!(!unable.machine().features().mcp);
}

#[test]
fn a_program_without_a_session_fails_every_turn() {
    let mut agent = Conversation::new(Acp::new());
    agent.start();
    agent.send("hello");
    let error = json!({"id": 1, "error": {"code": -32603, "message": "broken"}});
    let failed = r#"ended: Failed("broken")"#;
    assert_eq!(agent.prints(error), [failed, "close input"]);
    assert_eq!(agent.send("again"), [failed]);
}

#[test]
fn the_mode_is_set_before_the_prompt() {
    let modes = json!({"currentModeId": "default", "availableModes": [
        {"id": "default"}, {"id": "yolo"}, {"id": "plan"},
    ]});
    let options = json!([{"id": "m", "category": "mode", "currentValue": "build", "options": [
        {"value": "build"}, {"value": "plan"},
    ]}]);
    let by_mode = json!({"sessionId": "s", "modes": modes});
    let by_option = json!({"sessionId": "s", "configOptions": options});
    let rows = [
        (
            &by_mode,
            Access::ReadOnly,
            Permissions::Gated,
            Some(r#""modeId":"plan""#),
        ),
        (
            &by_mode,
            Access::ReadOnly,
            Permissions::Skip,
            Some(r#""modeId":"plan""#),
        ),
        (
            &by_mode,
            Access::Write,
            Permissions::Skip,
            Some(r#""modeId":"yolo""#),
        ),
        (&by_mode, Access::Write, Permissions::Gated, None),
        (
            &by_option,
            Access::ReadOnly,
            Permissions::Gated,
            Some(r#""configId":"m","value":"plan""#),
        ),
        (&by_option, Access::Write, Permissions::Skip, None),
    ];
    for (session, access, permissions, expect) in rows {
        let mut agent = Conversation::new(Acp::new());
        agent.request(Request::Start(StartOptions {
            access,
            permissions,
            ..start_options()
        }));
        agent.send("hello");
        agent.prints(capable());
        let opened = agent.prints(json!({"id": 2, "result": session}));
        match expect {
            None => assert!(opened[1].contains("session/prompt"), "{opened:?}"),
            Some(expect) => {
                assert!(opened[1].contains(expect), "{opened:?}");
                let ready = agent.prints(json!({"id": 3, "result": {}}));
                assert!(ready[0].contains("session/prompt"), "{ready:?}");
            }
        }
    }
}

#[test]
fn the_token_travels_in_the_session() {
    let mut agent = Conversation::new(Acp::new());
    agent.request(Request::Start(StartOptions {
        mcp: Some(McpServer {
            name: "turnkeep".to_owned(),
            url: "http://127.0.0.1:1/mcp".to_owned(),
            token: "secret".to_owned(),
        }),
        ..start_options()
    }));
    let opened = agent.prints(capable());
    let header = json!({"name": "Authorization", "value": "Bearer secret"});
    let server = json!({"type": "http", "name": "turnkeep", "url": "http://127.0.0.1:1/mcp",
        "headers": [header]});
    assert_eq!(written(&opened[0])["params"]["mcpServers"], json!([server]));
}

#[test]
fn costs_are_totals_of_the_session() {
    let mut agent = in_turn();
    let cost = |amount: f64, currency: &str| {
        let cost = json!({"amount": amount, "currency": currency});
        update(json!({"sessionUpdate": "usage_update", "cost": cost}))
    };
    assert!(!agent.machine().features().cost);
    assert_eq!(
        agent.prints(cost(0.5, "USD")),
        ["usage 0+0 cached 0 cost Some(500000)"]
    );
    assert_eq!(agent.prints(cost(0.5, "USD")), [""; 0]);
    assert_eq!(
        agent.prints(cost(0.75, "USD")),
        ["usage 0+0 cached 0 cost Some(250000)"]
    );
    assert_eq!(agent.prints(cost(9.0, "EUR")), [""; 0]);
    assert!(agent.machine().features().cost);
}

/// A turn of an agent that takes no MCP server over HTTP.
fn in_turn_without_mcp() -> Conversation {
    let mut agent = Conversation::new(Acp::new());
    agent.start();
    agent.prints(json!({"id": 1, "result": {"agentCapabilities": {"loadSession": true}}}));
    agent.prints(json!({"id": 2, "result": {"sessionId": "s"}}));
    agent.send("hello");
    agent
}

const CALL: &str = r#"{"tool_call":{"name":"list_nodes","args":{}}}"#;

#[test]
fn an_agent_without_mcp_calls_tools_by_lines_of_its_text() {
    let mut agent = in_turn_without_mcp();
    // A call may come in pieces.
    let (begin, rest) = CALL.split_at(12);
    agent.prints(chunk("agent_message_chunk", None, "I look.\n"));
    agent.prints(chunk("agent_message_chunk", None, begin));
    agent.prints(chunk("agent_message_chunk", None, rest));
    let stop = json!({"id": 3, "result": {"stopReason": "end_turn"}});
    assert_eq!(
        agent.prints(stop),
        [
            "call list_nodes {}",
            "final \"I look.\"",
            "AwaitsToolResults"
        ]
    );
    let results = vec![LineResult {
        name: "list_nodes".to_owned(),
        result: Ok(json!({"nodes": []})),
    }];
    let sent = agent.request(Request::ToolResults(results.clone()));
    let prompt = written(&sent[0]);
    assert_eq!(prompt["method"], "session/prompt");
    let text = prompt["params"]["prompt"][0]["text"].as_str().unwrap();
    assert!(text.contains(r#"{"nodes":[]}"#), "{text}");
    assert_eq!(
        agent.rejection(Request::ToolResults(results)),
        RequestError::NoTurn,
        "once"
    );
    agent.prints(chunk("agent_message_chunk", None, "Nobody is here."));
    let stop = json!({"id": 4, "result": {"stopReason": "end_turn"}});
    let expect = ["final \"Nobody is here.\"", "ended: Completed"];
    assert_eq!(agent.prints(stop), expect);
}

#[test]
fn calls_in_thoughts_in_fences_and_of_agents_with_mcp_are_text() {
    let stop = || json!({"id": 3, "result": {"stopReason": "end_turn"}});
    let fenced = format!("```\n{CALL}\n```");
    let mut agent = in_turn_without_mcp();
    agent.prints(chunk("agent_thought_chunk", None, CALL));
    agent.prints(chunk("agent_message_chunk", None, &fenced));
    assert_eq!(agent.prints(stop()).last().unwrap(), "ended: Completed");

    let mut agent = in_turn();
    agent.prints(chunk("agent_message_chunk", None, CALL));
    let expect = [format!("final {CALL:?}"), "ended: Completed".to_owned()];
    assert_eq!(agent.prints(stop()), expect);
}

#[test]
fn a_turn_that_waits_for_results_is_interrupted_at_once() {
    let mut agent = in_turn_without_mcp();
    agent.prints(chunk("agent_message_chunk", None, CALL));
    agent.prints(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    assert_eq!(agent.request(Request::Interrupt), ["ended: Interrupted"]);
    // The next turn begins without the calls of this one.
    agent.send("again");
    agent.prints(chunk("agent_message_chunk", None, "Fine."));
    let stop = json!({"id": 4, "result": {"stopReason": "end_turn"}});
    assert_eq!(agent.prints(stop).last().unwrap(), "ended: Completed");
}
