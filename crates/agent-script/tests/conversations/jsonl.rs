use serde_json::{Value, json};

use super::harness::{Agent, JSONL, Workplace, texts_at};

fn open(workplace: &Workplace, permissions: &str) -> Agent {
    let mut agent = workplace.start(JSONL);
    agent.send(
        &json!({"type": "start", "cwd": workplace.path(), "sessionId": "s-1",
        "permissions": permissions, "access": "write"}),
    );
    assert_eq!(agent.read(), json!({"type": "session", "sessionId": "s-1"}));
    agent
}

fn read_turn(agent: &mut Agent) -> Vec<Value> {
    agent.read_until(|line| line["type"] == "turn.status")
}

fn play(agent: &mut Agent, text: &str) -> Vec<Value> {
    agent.send(&json!({"type": "message.user", "content": text}));
    read_turn(agent)
}

fn status_of(turn: &[Value]) -> &Value {
    &turn.last().unwrap()["status"]
}

#[test]
fn a_happy_turn() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = open(&workplace, "gated");
    let turn = play(&mut agent, "make hello.txt");
    let finals = turn
        .iter()
        .filter(|line| line["type"] == "message.assistant.final");
    let finals: Vec<&Value> = finals.map(|line| &line["content"]).collect();
    assert_eq!(
        finals,
        ["I will create it.", "The file hello.txt now exists."]
    );
    assert_eq!(texts_at(&turn, "/tool/name"), ["write_file", "command"]);
    assert_eq!(texts_at(&turn, "/result/output")[1], "hello\n");
    let usage = turn
        .iter()
        .find(|line| line["type"] == "telemetry.usage")
        .unwrap();
    assert_eq!(usage["usage"]["promptTokens"], 100);
    assert_eq!(usage["costUsd"], 0.0014);
    assert_eq!(status_of(&turn), "turn.completed");
    agent.send(&json!({"type": "reset", "commands": ["/new"]}));
    let session = agent.read();
    assert_eq!(session["type"], "session");
    assert_ne!(session["sessionId"], "s-1");
    assert!(agent.leave().success());
}

fn resolve(resolution: &Value) -> Vec<Value> {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = open(&workplace, "gated");
    agent.send(&json!({"type": "message.user", "content": "run the tests"}));
    let question = agent.read_to_value("/type", "approval.requested");
    assert_eq!(question["tool"]["args"], json!({"cmd": "echo 3 passed"}));
    agent.send(
        &json!({"type": "approval.resolved", "approvalId": question["approvalId"],
        "resolution": resolution}),
    );
    read_turn(&mut agent)
}

#[test]
fn resolutions_are_followed() {
    let turn = resolve(&json!({"status": "approved"}));
    assert_eq!(texts_at(&turn, "/result/output"), ["3 passed\n"]);
    let turn = resolve(&json!({"status": "modified", "modifiedArgs": {"cmd": "echo other"}}));
    assert_eq!(texts_at(&turn, "/result/output"), ["other\n"]);
    let turn = resolve(&json!({"status": "denied", "reason": "no"}));
    assert_eq!(texts_at(&turn, "/error/message"), ["no"]);
    assert_eq!(status_of(&turn), "turn.failed");
}

#[test]
fn a_session_that_skips_permissions() {
    let workplace = Workplace::with_example("permission.toml");
    let turn = play(&mut open(&workplace, "skip"), "run the tests");
    assert!(turn.iter().all(|line| line["type"] != "approval.requested"));
    assert_eq!(status_of(&turn), "turn.completed");
}

#[test]
fn calls_travel_in_the_protocol() {
    let script = "[[turn]]\nsteps = [{ say = 'a' }, { call = 'spawn_node', args = { label = 'x' } }, \
                  { say = 'got {{result.nodeId}}' }, { call = 'bad', else = [{ say = 'E: {{result}}' }] }]";
    let workplace = Workplace::new(script);
    let mut agent = open(&workplace, "gated");
    agent.send(&json!({"type": "message.user", "content": "go"}));
    let call = agent.read_to(|line| line.get("tool_call").is_some());
    assert_eq!(
        call,
        json!({"tool_call": {"name": "spawn_node", "args": {"label": "x"}}})
    );
    // The call is complete; the turn waits for its result.
    agent.read_to_value("/status", "turn.completed");
    let result = json!({"name": "spawn_node", "ok": true, "result": {"nodeId": "n1"}});
    agent.send(&json!({"type": "tool.results", "results": [result], "malformed": []}));
    agent.read_to_value("/content", "got n1");
    agent.read_to(|line| line.get("tool_call").is_some());
    agent.read_to_value("/status", "turn.completed");
    let result = json!({"name": "bad", "ok": false, "error": "unknown"});
    agent.send(&json!({"type": "tool.results", "results": [result], "malformed": []}));
    let turn = read_turn(&mut agent);
    assert_eq!(texts_at(&turn, "/content"), ["E: unknown"]);
    assert_eq!(status_of(&turn), "turn.completed");
}

#[test]
fn an_interrupt_withdraws_the_question() {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = open(&workplace, "gated");
    agent.send(&json!({"type": "message.user", "content": "run the tests"}));
    let question = agent.read_to_value("/type", "approval.requested");
    agent.send(&json!({"type": "interrupt"}));
    let turn = read_turn(&mut agent);
    let withdrawn = turn
        .iter()
        .find(|line| line["type"] == "approval.withdrawn")
        .unwrap();
    assert_eq!(withdrawn["approvalId"], question["approvalId"]);
    assert_eq!(status_of(&turn), "turn.interrupted");
}

#[test]
fn strange_lines_are_survived() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = open(&workplace, "gated");
    agent.send_text("{\n[]\n{\"type\":1}\n{\"type\":\"news\"}\n{\"type\":\"approval.resolved\"}\n");
    agent.send(&json!({"type": "interrupt"}));
    let turn = play(&mut agent, "go");
    assert_eq!(turn[0]["type"], "node.log");
    assert_eq!(status_of(&turn), "turn.completed");
}
