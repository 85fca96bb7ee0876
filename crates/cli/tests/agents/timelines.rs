//! The order of events that clients may rely on.
//!
//! A timeline has a line for each event, with the fields that matter. The events must come in this
//! order; others may come between them.

use serde_json::{Value, json};

use crate::team::{Team, is_completion, is_turn_end, make_repository, skip};

const SCRIPT: &str = r#"
[agent]
usage = { input = 100, output = 50 }

[[turn]]
when = "WRITE IT"
repeat = true
steps = [
    { say = "I look." },
    { run = "echo looked" },
    { say = "Done." },
]

[[turn]]
when = "ASK FIRST"
repeat = true
steps = [
    { run = "echo it ran", ask = true },
    { say = "Done." },
]

[[turn]]
when = "TALK FOR LONG"
repeat = true
steps = [
    { say = "Once upon a time" },
    { wait_for_file = "SANDBOX/never" },
]

[[turn]]
when = "WORK FOR LONG"
repeat = true
steps = [
    { run = "sleep 600" },
    { say = "Done." },
]

[[turn]]
when = ["(lead) of run", "CLAIM IT"]
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true }, else = [
        { write = "fixed.txt", content = "fixed\n" },
        { call = "complete_run", args = { summary = "Now it is", ok = true } },
    ] },
    { say = "Done." },
]

[[turn]]
repeat = true
steps = [{ say = "Noted." }]
"#;

/// The protocols that report every step of a turn.
const DETAILED: [&str; 6] = ["claude", "codex", "gemini", "acp", "stream-json", "jsonl"];

/// Programs of these protocols can ask.
const ASKING: [&str; 5] = ["claude", "codex", "gemini", "acp", "jsonl"];

const MESSAGE: &str = "
    message.user
    node.patch patch.inboxCount=1
    turn.status status=turn.started
    node.patch patch.status=running patch.inboxCount=0
    artifact.created artifact.name=prompt.full.txt
    artifact.created artifact.name=prompt.blocks.json
    turn.status status=waiting_for_model
    message.assistant.delta
    tool.proposed
    tool.started
    tool.completed result.ok=true
    message.assistant.final status=final
    telemetry.usage
    artifact.created artifact.name=diff.patch
    turn.status status=turn.completed
    node.patch patch.status=idle patch.summary=Done.
";

const QUESTION: &str = "
    tool.proposed
    approval.requested
    turn.status status=awaiting_approval
    node.patch patch.status=blocked
    approval.resolved resolution.status=approved
    node.patch patch.status=running
    tool.started
    tool.completed result.ok=true
    turn.status status=turn.completed
";

const INTERRUPTED_TEXT: &str = "
    message.assistant.delta
    message.assistant.final status=interrupted
    artifact.created artifact.name=diff.patch
    turn.status status=turn.interrupted
    node.patch patch.status=idle
";

const INTERRUPTED_TOOL: &str = "
    tool.started
    tool.completed result.ok=false
    artifact.created artifact.name=diff.patch
    turn.status status=turn.interrupted
    node.patch patch.status=idle
";

const KILLED: &str = "
    run.patch patch.status=paused patch.pausedReason=daemon-restart
    turn.status status=turn.interrupted
    approval.resolved resolution.status=denied resolution.reason=provider-restarted
    node.patch patch.status=idle patch.inboxCount=1
";

const COMPLETED: &str = "
    run.phase phase=VERIFY
    artifact.created artifact.name=verification.json
    handoff.sent envelope.payload.status.ok=false
    run.phase phase=EXECUTE
    run.phase phase=VERIFY
    artifact.created artifact.name=verification.json
    run.phase phase=DOCS_SYNC
    run.phase phase=DONE
    run.patch patch.status=completed
";

const REOPENED: &str = "
    run.patch patch.status=running
    run.phase phase=EXECUTE
    message.user
    turn.status status=turn.started
";

/// Checks that events come in this order.
fn check_timeline(events: &[Value], timeline: &str, what: &str) {
    let mut rest = events.iter();
    for line in timeline.lines().map(str::trim) {
        let mut words = line.split(' ');
        let Some(kind) = words.next().filter(|kind| !kind.is_empty()) else {
            continue;
        };
        let fields: Vec<(&str, &str)> = words.map(|word| word.split_once('=').unwrap()).collect();
        let fits = |event: &Value| {
            event["type"] == kind
                && fields.iter().all(|(path, expected)| {
                    let pointer = format!("/{}", path.replace('.', "/"));
                    let found = event.pointer(&pointer);
                    found.is_some_and(|found| text_of(found) == *expected)
                })
        };
        assert!(
            rest.any(fits),
            "{what}: `{line}` does not come in its place: {events:#?}"
        );
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Sends a message to a new node, and returns the run and the node.
fn begin(team: &Team, protocol: &str, settings: Value, message: &str) -> (String, String) {
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", protocol, settings);
    team.chat(&run, &node, message);
    (run, node)
}

fn gated() -> Value {
    json!({"alias": "node", "permissions": {"cliPermissionsMode": "gated"}})
}

/// Waits until a node is at rest after its first turn.
fn wait_for_rest(team: &Team, run: &str, node: &str) {
    let mut socket = team.watch(run, 0);
    socket.read_until("the end of the turn", is_turn_end);
    socket.read_until("the rest", |event| {
        event["nodeId"] == node && event["patch"]["status"] == "idle"
    });
}

#[test]
fn a_message_a_turn_and_its_end_come_in_order() {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    for protocol in DETAILED {
        let (run, node) = begin(&team, protocol, skip("node"), "WRITE IT");
        wait_for_rest(&team, &run, &node);
        check_timeline(&team.events(&run), MESSAGE, protocol);
    }
}

#[test]
fn a_question_its_answer_and_its_tool_come_in_order() {
    let team = Team::start(SCRIPT);
    for protocol in ASKING {
        let (run, node) = begin(&team, protocol, gated(), "ASK FIRST");
        let asked = team.wait_for(&run, "the question", |event| {
            event["type"] == "approval.requested"
        });
        team.resolve(&asked, &json!({"status": "approved"}));
        wait_for_rest(&team, &run, &node);
        check_timeline(&team.events(&run), QUESTION, protocol);
    }
}

#[test]
fn an_interrupt_ends_what_is_open_in_order() {
    let team = Team::start(SCRIPT);
    for protocol in DETAILED {
        for (message, begun, timeline) in [
            ("TALK FOR LONG", "message.assistant.delta", INTERRUPTED_TEXT),
            ("WORK FOR LONG", "tool.started", INTERRUPTED_TOOL),
        ] {
            // One program sends the rest of its message whole when it is interrupted; the other one
            // shows a tool that it does not ask about when the tool has ended.
            let is_different = [("jsonl", "TALK FOR LONG"), ("gemini", "WORK FOR LONG")]
                .contains(&(protocol, message));
            if is_different {
                continue;
            }
            let (run, node) = begin(&team, protocol, skip("node"), message);
            team.wait_for(&run, begun, |event| event["type"] == begun);
            let path = format!("/api/runs/{run}/nodes/{node}/interrupt");
            team.post(&path, &json!({}));
            wait_for_rest(&team, &run, &node);
            check_timeline(
                &team.events(&run),
                timeline,
                &format!("{protocol} {message}"),
            );
        }
    }
}

#[test]
fn a_kill_ends_what_is_open_in_order() {
    for protocol in ASKING {
        let mut team = Team::start(SCRIPT);
        let (run, node) = begin(&team, protocol, gated(), "ASK FIRST");
        team.wait_for(&run, "the question", |event| {
            event["type"] == "approval.requested"
        });
        team.chat(&run, &node, "And then this");
        let before = team.events(&run).len();
        team.kill();
        team.restart();
        let events = team.events(&run);
        check_timeline(&events[before..], KILLED, protocol);
    }
}

#[test]
fn a_claim_a_failure_and_the_completion_come_in_order() {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(json!({"verify": ["test -f fixed.txt"]}));
    let lead = json!({"alias": "lead", "capabilities": {"writeCode": true},
        "permissions": {"cliPermissionsMode": "skip"}});
    let lead = team.add_node(&run, "orchestrator", "claude", lead);
    team.add_node(&run, "docs", "codex", skip("docs"));
    team.patch(&format!("/api/runs/{run}"), &json!({"docsNode": "docs"}));
    team.chat(&run, &lead, "CLAIM IT");
    team.wait_for(&run, "the completion", is_completion);
    let events = team.events(&run);
    check_timeline(&events, COMPLETED, "the claim");
}

#[test]
fn a_message_to_a_run_that_has_ended_reopens_it_in_order() {
    let team = Team::start(SCRIPT);
    for status in ["completed", "failed"] {
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", "claude", skip("node"));
        team.patch(&format!("/api/runs/{run}"), &json!({"status": status}));
        let before = team.events(&run).len();
        team.chat(&run, &node, "One more thing");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
        check_timeline(&team.events(&run)[before..], REOPENED, status);
        assert_eq!(team.show(&run)["status"], "running");
    }
}
