use serde_json::{Value, json};

use super::harness::{Agent, GEMINI, OPENCODE, Workplace, acp_prompt, open_acp_session, texts_at};

fn open(workplace: &Workplace, program: &[&str]) -> (Agent, String) {
    let mut agent = workplace.start(program);
    let session = open_acp_session(&mut agent, workplace, &json!([]));
    (agent, session)
}

fn play(agent: &mut Agent, session: &str, text: &str) -> Vec<Value> {
    let id = agent.send_request("session/prompt", &acp_prompt(session, text));
    agent.read_until(|message| message.get("method").is_none() && message["id"] == id)
}

fn stop_reason(turn: &[Value]) -> &Value {
    &turn.last().unwrap()["result"]["stopReason"]
}

#[test]
fn a_happy_turn_as_gemini() {
    let workplace = Workplace::with_example("happy.toml");
    let (mut agent, session) = open(&workplace, GEMINI);
    let turn = play(&mut agent, &session, "make hello.txt");
    let kinds = texts_at(&turn, "/params/update/sessionUpdate");
    let mut distinct = kinds.clone();
    distinct.dedup();
    let expect = [
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ];
    assert_eq!(distinct, expect);
    assert_eq!(texts_at(&turn, "/params/update/title")[2], "cat hello.txt");
    assert_eq!(
        texts_at(&turn, "/params/update/content/0/content/text"),
        ["hello\n"]
    );
    assert_eq!(stop_reason(&turn), "end_turn");
    let quota = &turn.last().unwrap()["result"]["_meta"]["quota"];
    assert_eq!(quota["token_count"]["input_tokens"], 100);
    assert_eq!(workplace.read("hello.txt"), "hello\n");
    assert!(agent.leave().success());
}

#[test]
fn a_happy_turn_as_opencode() {
    let workplace = Workplace::with_example("happy.toml");
    let (mut agent, session) = open(&workplace, OPENCODE);
    let turn = play(&mut agent, &session, "make hello.txt");
    let statuses = texts_at(&turn, "/params/update/status");
    assert_eq!(statuses[..3], ["pending", "in_progress", "completed"]);
    assert_eq!(
        texts_at(&turn, "/params/update/rawInput/command")[0],
        "cat hello.txt"
    );
    assert_eq!(turn.last().unwrap()["result"]["usage"]["totalTokens"], 150);
    let ids = texts_at(&turn, "/params/update/messageId");
    assert_ne!(ids.first(), ids.last(), "two messages have two ids");
}

fn decide(outcome: &Value) -> Vec<Value> {
    let workplace = Workplace::with_example("permission.toml");
    let (mut agent, session) = open(&workplace, GEMINI);
    let id = agent.send_request("session/prompt", &acp_prompt(&session, "run the tests"));
    let question = agent.read_to_value("/method", "session/request_permission");
    assert_eq!(question["params"]["toolCall"]["title"], "echo 3 passed");
    agent.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}}));
    agent.read_until(|message| message.get("method").is_none() && message["id"] == id)
}

#[test]
fn decisions_of_a_person_are_followed() {
    for option in ["proceed_once", "proceed_always"] {
        let turn = decide(&json!({"outcome": "selected", "optionId": option}));
        assert_eq!(texts_at(&turn, "/params/update/status"), ["completed"]);
        assert_eq!(stop_reason(&turn), "end_turn");
    }
    let turn = decide(&json!({"outcome": "selected", "optionId": "cancel"}));
    assert_eq!(texts_at(&turn, "/params/update/status"), ["failed"]);
    assert_eq!(
        turn.last().unwrap()["error"]["message"],
        "I may not run the tests."
    );
    let turn = decide(&json!({"outcome": "cancelled"}));
    assert_eq!(stop_reason(&turn), "cancelled");
}

#[test]
fn a_session_that_never_asks() {
    let workplace = Workplace::with_example("permission.toml");
    let (mut agent, session) = open(&workplace, &[GEMINI, &["--approval-mode", "yolo"]].concat());
    assert_eq!(
        stop_reason(&play(&mut agent, &session, "run the tests")),
        "end_turn"
    );
    let (mut agent, session) = open(&workplace, GEMINI);
    agent.request(
        "session/set_mode",
        &json!({"sessionId": session, "modeId": "yolo"}),
    );
    assert_eq!(
        stop_reason(&play(&mut agent, &session, "run the tests")),
        "end_turn"
    );
}

#[test]
fn a_prompt_is_cancelled() {
    let workplace = Workplace::new("[[turn]]\nsteps = [{ say = 'a' }, { run = 'exec sleep 600' }]");
    let (mut agent, session) = open(&workplace, GEMINI);
    let id = agent.send_request("session/prompt", &acp_prompt(&session, "go"));
    agent.read_to_value("/params/update/sessionUpdate", "agent_message_chunk");
    let params = json!({"sessionId": session});
    agent.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    assert_eq!(agent.read_response(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_session_is_loaded_by_its_id() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(GEMINI);
    agent.request("initialize", &json!({"protocolVersion": 1}));
    let params = json!({"sessionId": "s-9", "cwd": workplace.path(), "mcpServers": []});
    assert!(agent.request("session/load", &params)["result"].is_object());
    // The rest of the past comes after the response.
    let kinds =
        [agent.read(), agent.read()].map(|past| past["params"]["update"]["sessionUpdate"].clone());
    assert_eq!(kinds, ["agent_message_chunk", "available_commands_update"]);
    assert_eq!(stop_reason(&play(&mut agent, "s-9", "go")), "end_turn");
}

#[test]
fn wrong_requests_get_errors() {
    let workplace = Workplace::with_example("happy.toml");
    let (mut agent, session) = open(&workplace, GEMINI);
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap();
    assert_eq!(code(&agent.request("tea/make", &json!({}))), -32601);
    assert_eq!(
        code(&agent.request("session/prompt", &acp_prompt("nope", "x"))),
        -32602
    );
    assert_eq!(code(&agent.request("session/load", &json!({}))), -32602);
    let empty = json!({"sessionId": session, "prompt": []});
    assert_eq!(code(&agent.request("session/prompt", &empty)), -32602);
    agent.send_text("}{\n");
    assert_eq!(code(&agent.read()), -32700);
    agent.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {}}));
    agent.send(&json!({"jsonrpc": "2.0", "id": 7_000_000, "result": {}}));
    assert_eq!(stop_reason(&play(&mut agent, &session, "go")), "end_turn");
}
