use serde_json::{Value, json};

use super::harness::{Agent, CODEX, Workplace, codex_prompt, open_codex_thread, texts_at};

fn open(workplace: &Workplace) -> (Agent, String) {
    let mut agent = workplace.start(CODEX);
    let params = json!({"cwd": workplace.path(), "approvalPolicy": "on-request"});
    let thread = open_codex_thread(&mut agent, &params);
    (agent, thread)
}

fn read_turn(agent: &mut Agent) -> Vec<Value> {
    agent.read_until(|message| message["method"] == "turn/completed")
}

fn play(agent: &mut Agent, thread: &str, text: &str) -> Vec<Value> {
    agent.send_request("turn/start", &codex_prompt(thread, text));
    read_turn(agent)
}

fn status_of(turn: &[Value]) -> &str {
    turn.last().unwrap()["params"]["turn"]["status"]
        .as_str()
        .unwrap()
}

#[test]
fn a_happy_turn_has_items_and_usage() {
    let workplace = Workplace::with_example("happy.toml");
    let (mut agent, thread) = open(&workplace);
    let turn = play(&mut agent, &thread, "make hello.txt");
    let completed: Vec<&Value> = turn
        .iter()
        .filter(|message| message["method"] == "item/completed")
        .collect();
    let kinds: Vec<&str> = completed
        .iter()
        .map(|m| m["params"]["item"]["type"].as_str().unwrap())
        .collect();
    let expect = [
        "userMessage",
        "reasoning",
        "agentMessage",
        "fileChange",
        "commandExecution",
        "agentMessage",
    ];
    assert_eq!(kinds, expect);
    let command = &completed[4]["params"]["item"];
    assert_eq!(command["command"], "/bin/bash -lc 'cat hello.txt'");
    assert_eq!(command["aggregatedOutput"], "hello\n");
    assert_eq!(command["exitCode"], 0);
    assert_eq!(
        completed[3]["params"]["item"]["changes"][0]["path"],
        "hello.txt"
    );
    let said: String = turn
        .iter()
        .filter(|message| message["method"] == "item/agentMessage/delta")
        .filter_map(|message| message["params"]["delta"].as_str())
        .collect();
    assert_eq!(said, "I will create it.The file hello.txt now exists.");
    let usage = turn
        .iter()
        .find(|m| m["method"] == "thread/tokenUsage/updated")
        .unwrap();
    assert_eq!(usage["params"]["tokenUsage"]["last"]["totalTokens"], 150);
    assert_eq!(status_of(&turn), "completed");
    let last = turn.last().unwrap();
    assert_eq!(
        last["params"]["turn"]["items"][0]["text"],
        "The file hello.txt now exists."
    );
    assert_eq!(workplace.read("hello.txt"), "hello\n");

    let turn = play(&mut agent, &thread, "more");
    let usage = turn
        .iter()
        .find(|m| m["method"] == "thread/tokenUsage/updated")
        .unwrap();
    assert_eq!(usage["params"]["tokenUsage"]["total"]["totalTokens"], 300);
    assert!(agent.leave().success());
}

fn decide(decision: &Value) -> Vec<Value> {
    let workplace = Workplace::with_example("permission.toml");
    let (mut agent, thread) = open(&workplace);
    agent.send_request("turn/start", &codex_prompt(&thread, "run the tests"));
    let question = agent.read_to_value("/method", "item/commandExecution/requestApproval");
    assert_eq!(question["params"]["reason"], "Run the tests?");
    assert_eq!(
        question["params"]["command"],
        "/bin/bash -lc 'echo 3 passed'"
    );
    agent.send(&json!({"id": question["id"], "result": {"decision": decision}}));
    read_turn(&mut agent)
}

#[test]
fn decisions_of_a_person_are_followed() {
    for accept in [
        json!("accept"),
        json!("acceptForSession"),
        json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}}),
    ] {
        let turn = decide(&accept);
        assert_eq!(turn[0]["method"], "serverRequest/resolved");
        assert_eq!(texts_at(&turn, "/params/item/status"), ["completed"]);
        assert_eq!(status_of(&turn), "completed");
    }
    let turn = decide(&json!("decline"));
    assert_eq!(texts_at(&turn, "/params/item/status"), ["declined"]);
    assert_eq!(status_of(&turn), "failed");
    let turn = decide(&json!("cancel"));
    assert_eq!(status_of(&turn), "interrupted");
}

#[test]
fn files_are_asked_about_in_their_own_way() {
    let script = "[[turn]]\nsteps = [{ write = 'a/b.txt', content = 'x', ask = true }]";
    let workplace = Workplace::new(script);
    let (mut agent, thread) = open(&workplace);
    agent.send_request("turn/start", &codex_prompt(&thread, "go"));
    let question = agent.read_to_value("/method", "item/fileChange/requestApproval");
    agent.send(&json!({"id": question["id"], "result": {"decision": "accept"}}));
    assert_eq!(status_of(&read_turn(&mut agent)), "completed");
    assert_eq!(workplace.read("a/b.txt"), "x");
}

#[test]
fn nothing_is_asked_under_the_policy_never() {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = workplace.start(CODEX);
    let params = json!({"cwd": workplace.path(), "approvalPolicy": "never"});
    let thread = open_codex_thread(&mut agent, &params);
    assert_eq!(
        status_of(&play(&mut agent, &thread, "run the tests")),
        "completed"
    );
}

#[test]
fn a_turn_can_be_steered_and_interrupted() {
    let script =
        "[[turn]]\nsteps = [{ wait_for_file = 'go' }, { say = 'Re: {{steer}}' }, 'silence']";
    let workplace = Workplace::new(script);
    let log = workplace.path().join("log");
    let mut agent = workplace.start(&[CODEX, &["--log", log.to_str().unwrap()]].concat());
    let thread = open_codex_thread(&mut agent, &json!({"cwd": workplace.path()}));
    let response = agent.request("turn/start", &codex_prompt(&thread, "first"));
    let turn_id = response["result"]["turn"]["id"].clone();
    let mut steer = codex_prompt(&thread, "second");
    steer["expectedTurnId"] = json!("another");
    assert!(agent.request("turn/steer", &steer)["error"].is_object());
    steer["expectedTurnId"] = turn_id.clone();
    assert_eq!(
        agent.request("turn/steer", &steer)["result"]["turnId"],
        turn_id
    );
    assert!(agent.request("turn/start", &codex_prompt(&thread, "third"))["error"].is_object());
    workplace.write("go", "");
    agent.read_to_value("/params/delta", "Re: second");
    let params = json!({"threadId": thread, "turnId": turn_id});
    let id = agent.send_request("turn/interrupt", &params);
    let turn = read_turn(&mut agent);
    assert!(
        turn.iter()
            .any(|message| message["id"] == id && message["result"] == json!({}))
    );
    assert_eq!(status_of(&turn), "interrupted");
    assert!(agent.request("turn/interrupt", &params)["error"].is_object());
    assert!(agent.request("turn/steer", &steer)["error"].is_object());
    assert_eq!(workplace.read("log/0001.txt"), "first");
    assert_eq!(workplace.read("log/0002.txt"), "second");
}

#[test]
fn a_thread_is_resumed_by_its_id() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(CODEX);
    agent.request(
        "initialize",
        &json!({"clientInfo": {"name": "t", "version": "0"}}),
    );
    let params = json!({"threadId": "th-1", "cwd": workplace.path()});
    let response = agent.request("thread/resume", &params);
    assert_eq!(response["result"]["thread"]["id"], "th-1");
    assert_eq!(status_of(&play(&mut agent, "th-1", "go")), "completed");
}

#[test]
fn wrong_requests_get_errors() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(CODEX);
    let error = |answer: &Value| answer["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        error(&agent.request("thread/start", &json!({}))),
        "Not initialized"
    );
    let thread = open_codex_thread(&mut agent, &json!({}));
    assert_eq!(
        error(&agent.request("initialize", &json!({}))),
        "Already initialized"
    );
    assert!(error(&agent.request("tea/make", &json!({}))).contains("unknown variant `tea/make`"));
    assert_eq!(
        error(&agent.request("turn/start", &json!({}))),
        "missing field `threadId`"
    );
    let unknown = codex_prompt("nope", "x");
    assert_eq!(
        error(&agent.request("turn/start", &unknown)),
        "thread not found: nope"
    );
    let empty = json!({"threadId": thread, "input": []});
    assert_eq!(
        error(&agent.request("turn/start", &empty)),
        "the input has no text"
    );
    agent.send_text("}{\n[]\n7\n{\"id\":99}\n");
    for _ in 0..3 {
        assert_eq!(agent.read()["error"]["code"], -32700);
    }
    assert_eq!(status_of(&play(&mut agent, &thread, "go")), "completed");
}
