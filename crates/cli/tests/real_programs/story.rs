//! One story with each program: it answers, asks for permission, is interrupted, hands work off and
//! goes on after a restart of the server.

use std::fs;

use serde_json::{Value, json};

use crate::model::{COMPLETION_TOKENS, PROMPT_TOKENS, Reply, Topic};
use crate::office::{Office, TurnSeen};
use crate::programs::{CLAUDE, CODEX, GEMINI, RealProgram};

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn claude_plays_the_story() {
    play_story(CLAUDE);
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn codex_plays_the_story() {
    play_story(CODEX);
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn gemini_plays_the_story() {
    play_story(GEMINI);
}

fn topics() -> Vec<Topic> {
    let topic = |when, replies| Topic { when, replies };
    let handoff = json!({"to": "implementer", "message": "Count the files"});
    vec![
        topic(
            "Greet me",
            vec![Reply::Say("Hello from the scripted model.")],
        ),
        topic(
            "Write the file",
            vec![
                Reply::Run("printf hello > hello.txt"),
                Reply::Say("It is written."),
            ],
        ),
        topic(
            "Remove the file",
            vec![Reply::Run("rm hello.txt"), Reply::Say("Then it stays.")],
        ),
        topic(
            "Change the file",
            vec![
                Reply::Run("printf wrong > hello.txt"),
                Reply::Say("It is changed."),
            ],
        ),
        topic(
            "Talk for long",
            vec![Reply::SayAndWait("Once upon a time ")],
        ),
        topic(
            "Split the work",
            vec![
                Reply::Call {
                    tool: "send_handoff",
                    args: handoff,
                },
                Reply::Say("It is handed off."),
            ],
        ),
        topic("Count the files", vec![Reply::Say("There are two files.")]),
        topic("What did I ask", vec![Reply::Say("For a greeting.")]),
    ]
}

fn play_story(program: RealProgram) {
    let office = Office::open(&[program], topics());
    let mut office = office.begin(json!({"goal": "Look after the files"}));
    let worker = office.add_node(program, "implementer");
    greet(&office, &worker);
    approve(&office, &worker);
    deny(&office, &worker, program);
    modify(&office, &worker, program);
    interrupt(&office, &worker);
    hand_off(&office, &worker, program);
    remember_after_restart(&mut office, &worker, program);
}

/// Sends a message and waits for the end of its turn.
fn ask(office: &Office, node: &str, message: &str) -> TurnSeen {
    let seq = office.last_seq();
    office.chat(node, message);
    office.wait_for_turn(seq, node)
}

/// Sends a message and waits until the program asks for permission.
fn ask_until_question(office: &Office, node: &str, message: &str) -> (u64, Value) {
    let seq = office.last_seq();
    office.chat(node, message);
    let asked = office.wait_for(seq, "question", |event| {
        event["type"] == "approval.requested"
    });
    assert_eq!(office.show_node(node)["status"], "blocked");
    (seq, asked)
}

fn check_text(turn: &TurnSeen, text: &str, status: &str) {
    let deltas = turn.of_type("message.assistant.delta");
    let deltas: String = deltas
        .iter()
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert!(deltas.contains(text.trim()), "{deltas}");
    let finals = turn.of_type("message.assistant.final");
    let last = finals.last().unwrap();
    assert_eq!(last["content"].as_str().unwrap().trim(), text.trim());
    assert_eq!(last["status"], status);
}

fn greet(office: &Office, node: &str) {
    let turn = ask(office, node, "Greet me");
    assert_eq!(turn.end, "turn.completed", "{:#?}", turn.events);
    check_text(&turn, "Hello from the scripted model.", "final");
    let usage = &turn.only("telemetry.usage")["usage"];
    assert_eq!(usage["promptTokens"], PROMPT_TOKENS);
    assert_eq!(usage["completionTokens"], COMPLETION_TOKENS);
    assert_eq!(turn.diff()["metadata"]["filesChanged"], json!([]));
    let session = &office.show_node(node)["session"]["sessionId"];
    assert!(session.is_string(), "{session}");
}

fn approve(office: &Office, node: &str) {
    let (seq, asked) = ask_until_question(office, node, "Write the file");
    let context = asked["context"].as_str().unwrap();
    assert!(context.contains("printf hello > hello.txt"), "{context}");
    office.resolve(&asked, &json!({"status": "approved"}));
    let turn = office.wait_for_turn(seq, node);
    assert_eq!(turn.end, "turn.completed", "{:#?}", turn.events);
    assert_eq!(turn.only("tool.completed")["result"]["ok"], true);
    check_text(&turn, "It is written.", "final");
    let written = fs::read_to_string(office.team.work().join("hello.txt")).unwrap();
    assert_eq!(written, "hello");
    assert_eq!(
        turn.diff()["metadata"]["filesChanged"],
        json!(["hello.txt"])
    );
}

fn deny(office: &Office, node: &str, program: RealProgram) {
    let (seq, asked) = ask_until_question(office, node, "Remove the file");
    let reason = "The file is still needed.";
    office.resolve(&asked, &json!({"status": "denied", "reason": reason}));
    let turn = office.wait_for_turn(seq, node);
    assert_eq!(turn.end, "turn.completed", "{:#?}", turn.events);
    assert_eq!(turn.only("tool.completed")["result"]["ok"], false);
    assert!(office.team.work().join("hello.txt").exists());
    if program.passes_reasons {
        let heard = format!("{:?}", office.model.last_asked().entries);
        assert!(heard.contains(reason), "{heard}");
    }
}

fn modify(office: &Office, node: &str, program: RealProgram) {
    let (seq, asked) = ask_until_question(office, node, "Change the file");
    let mut args = asked["tool"]["args"].clone();
    args["command"] = json!("printf changed > hello.txt");
    let answered = office.resolve(&asked, &json!({"status": "modified", "modifiedArgs": args}));
    if !program.edits_args {
        assert_eq!(answered.status, 422, "{}", answered.body);
        office.resolve(&asked, &json!({"status": "denied"}));
    }
    let turn = office.wait_for_turn(seq, node);
    assert_eq!(turn.end, "turn.completed", "{:#?}", turn.events);
    let content = fs::read_to_string(office.team.work().join("hello.txt")).unwrap();
    let expect = if program.edits_args {
        "changed"
    } else {
        "hello"
    };
    assert_eq!(content, expect);
}

fn interrupt(office: &Office, node: &str) {
    let seq = office.last_seq();
    office.chat(node, "Talk for long");
    office.wait_for(seq, "text", |event| {
        event["type"] == "message.assistant.delta"
    });
    let path = office.of_run(&format!("/nodes/{node}/interrupt"));
    office.team.post(&path, &json!({}));
    let turn = office.wait_for_turn(seq, node);
    assert_eq!(turn.end, "turn.interrupted", "{:#?}", turn.events);
    check_text(&turn, "Once upon a time", "interrupted");
}

fn hand_off(office: &Office, worker: &str, program: RealProgram) {
    let lead = office.add_node(program, "orchestrator");
    office.team.connect(&office.run, &lead, worker);
    let seq = office.last_seq();
    let led = ask(office, &lead, "Split the work");
    assert_eq!(led.end, "turn.completed", "{:#?}", led.events);
    for done in led.of_type("tool.completed") {
        assert_eq!(done["result"]["ok"], true, "{done:#?}");
    }
    let worked = office.wait_for_turn(seq, worker);
    assert_eq!(worked.end, "turn.completed", "{:#?}", worked.events);
    check_text(&worked, "There are two files.", "final");
    // The worker's answer is the report that the lead gets.
    let report = office.wait_for(seq, "report", |event| {
        event["type"] == "handoff.sent" && event["envelope"]["fromNodeId"] == worker
    });
    assert_eq!(report["envelope"]["meta"]["synthesized"], true);
    office.wait_for_turn(report["seq"].as_u64().unwrap(), &lead);
}

/// The program goes on with its session. One that has lost it gets the last turns with the prompt.
fn remember_after_restart(office: &mut Office, node: &str, program: RealProgram) {
    let session = office.show_node(node)["session"]["sessionId"].clone();
    office.restart();
    office.team.resume(&office.run);
    let seq = office.last_seq();
    office.chat(node, "What did I ask");
    // A turn that loses its session is interrupted, and the message is read again.
    let answered = office.wait_for(seq, "answer", |event| {
        event["type"] == "message.assistant.final" && event["nodeId"] == node
    });
    assert_eq!(answered["content"], "For a greeting.", "{answered:#}");
    let asked = office.model.last_asked();
    assert!(asked.mentions("Count the files"), "{:#?}", asked.entries);
    if program.resumes_at_once {
        assert_eq!(office.show_node(node)["session"]["sessionId"], session);
    }
}
