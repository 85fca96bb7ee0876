use serde_json::{Value, json};

use super::harness::{Agent, CLAUDE, Workplace, texts_at};

fn result_of(messages: &[Value]) -> &Value {
    messages.last().unwrap()
}

/// Answers the next permission request.
fn answer_question(agent: &mut Agent, response: &Value) -> Value {
    let question = agent.read_to_value("/request/subtype", "can_use_tool");
    let response = json!({"subtype": "success", "request_id": question["request_id"],
        "response": response});
    agent.send(&json!({"type": "control_response", "response": response}));
    question
}

fn read_result(agent: &mut Agent) -> Vec<Value> {
    agent.read_until(|message| message["type"] == "result")
}

#[test]
fn a_happy_turn_streams_works_and_costs() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(CLAUDE);
    let initialize = json!({"subtype": "initialize", "hooks": null});
    agent.send(&json!({"type": "control_request", "request_id": "i1", "request": initialize}));
    let response = agent.read_to_value("/type", "control_response");
    assert_eq!(response["response"]["request_id"], "i1");
    assert_eq!(response["response"]["subtype"], "success");

    let turn = agent.claude_turn("make hello.txt");
    assert_eq!(turn[0]["subtype"], "init");
    let session = turn[0]["session_id"].as_str().unwrap();
    assert!(turn.iter().all(|message| message["session_id"] == session));
    assert_eq!(
        texts_at(&turn, "/event/delta/thinking").concat(),
        "A file is missing."
    );
    let said = texts_at(&turn, "/event/delta/text");
    assert_eq!(said[..3], ["I will c", "reate it", "."]);
    assert_eq!(
        texts_at(&turn, "/message/content/0/name"),
        ["Write", "Bash"]
    );
    let results = texts_at(&turn, "/message/content/0/content");
    assert_eq!(
        results,
        ["File created successfully at: hello.txt", "hello"]
    );
    let result = result_of(&turn);
    assert_eq!(result["result"], "The file hello.txt now exists.");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["usage"]["input_tokens"], 100);
    assert_eq!(result["total_cost_usd"], 0.0014);
    assert_eq!(workplace.read("hello.txt"), "hello\n");

    let turn = agent.claude_turn("and again?");
    assert_eq!(turn[0]["session_id"], session);
    assert_eq!(result_of(&turn)["result"], "You said: and again?");
    assert_eq!(
        result_of(&turn)["total_cost_usd"],
        0.0028,
        "money is counted over the session"
    );
    assert!(agent.leave().success());
}

#[test]
fn without_partial_messages_only_whole_ones_come() {
    let workplace = Workplace::with_example("happy.toml");
    let arguments: Vec<&str> = CLAUDE
        .iter()
        .copied()
        .filter(|a| *a != "--include-partial-messages")
        .collect();
    let turn = workplace.start(&arguments).claude_turn("go");
    assert!(turn.iter().all(|message| message["type"] != "stream_event"));
    let texts = texts_at(&turn, "/message/content/0/text");
    assert_eq!(
        texts,
        ["I will create it.", "The file hello.txt now exists."]
    );
}

#[test]
fn a_permission_is_asked_for_and_may_change_the_command() {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("run the tests");
    let allow = json!({"behavior": "allow", "updatedInput": {"command": "echo changed"}});
    let question = answer_question(&mut agent, &allow);
    assert_eq!(question["request"]["tool_name"], "Bash");
    assert_eq!(question["request"]["input"]["command"], "echo 3 passed");
    let turn = read_result(&mut agent);
    assert_eq!(texts_at(&turn, "/message/content/0/content"), ["changed"]);
    assert_eq!(result_of(&turn)["result"], "They printed: changed\n");
}

#[test]
fn a_denied_permission_takes_the_else_branch() {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("run the tests");
    answer_question(
        &mut agent,
        &json!({"behavior": "deny", "message": "not now"}),
    );
    let turn = read_result(&mut agent);
    assert_eq!(texts_at(&turn, "/message/content/0/content"), ["not now"]);
    let result = result_of(&turn);
    assert_eq!(result["result"], "I may not run the tests.");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[test]
fn a_denial_may_stop_the_turn() {
    let workplace = Workplace::with_example("permission.toml");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("run the tests");
    let deny = json!({"behavior": "deny", "message": "stop", "interrupt": true});
    answer_question(&mut agent, &deny);
    let turn = read_result(&mut agent);
    assert_eq!(result_of(&turn)["subtype"], "error_during_execution");
}

#[test]
fn permissions_depend_on_the_mode() {
    let workplace = Workplace::with_example("permission.toml");
    let skip = [CLAUDE, &["--dangerously-skip-permissions"]].concat();
    let turn = workplace.start(&skip).claude_turn("run the tests");
    assert_eq!(result_of(&turn)["result"], "They printed: 3 passed\n");
    // Without a host that answers, the tool is denied.
    let turn = workplace
        .start(&CLAUDE[..CLAUDE.len() - 2])
        .claude_turn("run the tests");
    assert_eq!(result_of(&turn)["result"], "I may not run the tests.");
    // The command line may allow single tools.
    let allowed = [CLAUDE, &["--allowedTools", "Read,Bash"]].concat();
    let turn = workplace.start(&allowed).claude_turn("run the tests");
    assert_eq!(result_of(&turn)["result"], "They printed: 3 passed\n");
    // The mode may change in mid-session.
    let mut agent = workplace.start(CLAUDE);
    let mode = json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"});
    agent.send(&json!({"type": "control_request", "request_id": "m", "request": mode}));
    let turn = agent.claude_turn("run the tests");
    assert_eq!(result_of(&turn)["result"], "They printed: 3 passed\n");
}

fn send_interrupt(agent: &mut Agent) {
    let request = json!({"subtype": "interrupt"});
    agent.send(&json!({"type": "control_request", "request_id": "stop", "request": request}));
}

#[test]
fn an_interrupt_stops_a_turn_at_any_step() {
    let steps = [
        "'silence'",
        "{ wait = 600000 }",
        "{ wait_for_file = 'never' }",
        "{ run = 'exec sleep 600' }",
        "{ run = 'true', ask = true }",
        "{ say = 'abcdefgh', chunk = 1, pause = 600000 }",
    ];
    for step in steps {
        let script = format!("[[turn]]\nsteps = [{{ say = 'begun' }}, {step}]\n[[turn]]\n");
        let workplace = Workplace::new(&script);
        let mut agent = workplace.start(CLAUDE);
        agent.send_claude_prompt("go");
        agent.read_to_value("/event/delta/text", "begun");
        send_interrupt(&mut agent);
        let turn = read_result(&mut agent);
        let answers: Vec<&Value> = turn
            .iter()
            .filter(|m| m["type"] == "control_response")
            .collect();
        assert_eq!(answers.len(), 1, "{step}");
        assert_eq!(answers[0]["response"]["request_id"], "stop", "{step}");
        let result = result_of(&turn);
        assert_eq!(result["subtype"], "error_during_execution", "{step}");
        assert_eq!(result["is_error"], true, "{step}");
        let note = texts_at(&turn, "/message/content/0/text").join(" ");
        assert!(
            note.contains("[Request interrupted by user"),
            "{step}: {note}"
        );
        let turn = agent.claude_turn("again");
        assert_eq!(
            result_of(&turn)["subtype"],
            "success",
            "{step}: the next turn works"
        );
    }
}

#[test]
fn an_open_question_is_withdrawn_by_an_interrupt() {
    let workplace = Workplace::new("[[turn]]\nsteps = [{ run = 'true', ask = true }]");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("go");
    let question = agent.read_to_value("/request/subtype", "can_use_tool");
    send_interrupt(&mut agent);
    let withdrawn = agent.read_to_value("/type", "control_cancel_request");
    assert_eq!(withdrawn["request_id"], question["request_id"]);
    let turn = read_result(&mut agent);
    assert_eq!(texts_at(&turn, "/message/content/0/text").len(), 1);
}

#[test]
fn an_interrupt_of_nothing_is_answered() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(CLAUDE);
    send_interrupt(&mut agent);
    let answer = agent.read();
    assert_eq!(answer["response"]["request_id"], "stop");
    let turn = agent.claude_turn("go");
    assert_eq!(result_of(&turn)["is_error"], false);
}

#[test]
fn a_resumed_session_keeps_its_id() {
    let workplace = Workplace::with_example("happy.toml");
    let id = "11111111-2222-4333-8444-555555555555";
    let resumed = [CLAUDE, &["--resume", id]].concat();
    assert_eq!(
        workplace.start(&resumed).claude_turn("go")[0]["session_id"],
        id
    );
    let new = [CLAUDE, &["--session-id", id]].concat();
    assert_eq!(workplace.start(&new).claude_turn("go")[0]["session_id"], id);
    let first = workplace.start(CLAUDE).claude_turn("go")[0]["session_id"].clone();
    let second = workplace.start(CLAUDE).claude_turn("go")[0]["session_id"].clone();
    assert_ne!(first, second);
}

#[test]
fn strange_input_is_survived() {
    let workplace = Workplace::with_example("happy.toml");
    let mut agent = workplace.start(CLAUDE);
    agent.send_text("no json\n\n[1,2]\n\"text\"\n{\"type\":7}\n{\"type\":\"user\"}\n");
    agent.send_text("{\"type\":\"control_response\",\"response\":{\"request_id\":\"x\"}}\n");
    agent.send_text("{\"type\":\"control_request\"}\n");
    assert_eq!(agent.read()["response"]["subtype"], "error");
    let request = json!({"subtype": "make_coffee"});
    agent.send(&json!({"type": "control_request", "request_id": "c", "request": request}));
    let answer = agent.read();
    assert_eq!(answer["response"]["subtype"], "error");
    assert_eq!(answer["response"]["request_id"], "c");
    let turn = agent.claude_turn("go");
    assert_eq!(result_of(&turn)["is_error"], false);
}

#[test]
fn prompts_sent_early_are_played_in_order_after_the_input_closed() {
    let workplace = Workplace::new("[[turn]]\nrepeat = true\nsteps = [{ say = 'Re: {{prompt}}' }]");
    let mut agent = workplace.start(CLAUDE);
    agent.send_claude_prompt("one");
    agent.send_claude_prompt("two");
    agent.close_input();
    assert_eq!(result_of(&read_result(&mut agent))["result"], "Re: one");
    assert_eq!(result_of(&read_result(&mut agent))["result"], "Re: two");
    assert!(agent.wait().success());
}
