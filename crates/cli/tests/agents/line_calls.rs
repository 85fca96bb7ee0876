//! Agents without MCP: the prompt alone tells them how to call the server's tools.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::team::{Team, make_repository, skip};

const TALKING: &str = r#"
[[turn]]
when = "LOOK AROUND"
repeat = true
steps = [
    { call = "list_nodes", args = {} },
    { say = "I have looked." },
]

[[turn]]
repeat = true
steps = [{ say = "Fine." }]
"#;

/// A program that knows only its prompt: it prints the example of `list_nodes` in it, and then its
/// next prompt, which has the results.
const READER: &str = r#"prompt=$(cat)
case "$prompt" in
    *"The results of your tool calls"*) printf 'Seen: %s\n' "$prompt" ;;
    *) printf '%s\n' "$prompt" | sed -n 's/^list_nodes (.*): {/{/p' ;;
esac"#;

/// A program that repeats its prompt.
const ECHO: &str = "exec cat";

fn raw_program(name: &str, script: &str) -> String {
    let args = json!(["-c", script]);
    format!("[providers.{name}]\ncommand = \"/bin/sh\"\nprotocol = \"raw\"\nargs = {args}\n\n")
}

/// An ACP agent that takes no MCP server over HTTP, and a terminal.
fn more_programs(sandbox: &Sandbox) -> String {
    let agent = sandbox.path("turnkeep-agent-script");
    let (agent, script) = (agent.display(), sandbox.path("script.toml"));
    let script = script.display();
    let filter = format!(
        "'{agent}' --script '{script}' --protocol acp acp | sed -u 's/\"http\":true/\"http\":false/'"
    );
    let args = json!(["-c", filter]);
    let terminal = json!(["--script", sandbox.path("script.toml")]);
    format!(
        "[providers.old-acp]\ncommand = \"/bin/sh\"\nprotocol = \"acp\"\nargs = {args}\n\n\
         [providers.terminal]\ncommand = \"{agent}\"\nprotocol = \"pty\"\nargs = {terminal}\n\n\
         {}{}",
        raw_program("reader", READER),
        raw_program("echo", ECHO)
    )
}

fn start() -> (Team, String) {
    let team = Team::start_with(TALKING, more_programs);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    (team, run)
}

/// The calls of a node that were carried out.
fn completed_calls(team: &Team, run: &str, node: &str) -> Vec<Value> {
    let events = team.events(run).into_iter();
    let of_node = events.filter(|event| event["nodeId"] == node);
    of_node
        .filter(|event| event["type"] == "tool.completed")
        .collect()
}

fn last_answer(team: &Team, run: &str, node: &str) -> String {
    let events = team.events(run).into_iter().rev();
    let mut finals = events.filter(|event| event["type"] == "message.assistant.final");
    let last = finals.find(|event| event["nodeId"] == node).unwrap();
    last["content"].as_str().unwrap().to_owned()
}

#[test]
fn only_a_prompt_of_an_agent_without_mcp_has_the_form_of_a_call() {
    let (team, run) = start();
    for (protocol, has_form) in [
        ("raw", true),
        ("jsonl", true),
        ("terminal", true),
        ("acp", true),
        ("claude", false),
        ("codex", false),
        ("gemini", false),
        ("stream-json", false),
    ] {
        let node = team.add_node(&run, "implementer", protocol, skip(protocol));
        team.chat(&run, &node, "Hello");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
        let prompts = team.artifacts_of(&run, &node, "prompt");
        let full = team.read_artifact(&run, &prompts[0]);
        for tool in ["send_handoff", "list_nodes", "read_artifact", "ask_user"] {
            let form = format!("): {{\"tool_call\":{{\"name\":\"{tool}\",\"args\":");
            assert_eq!(full.contains(&form), has_form, "{protocol}: {full}");
        }
    }
}

#[test]
fn a_program_that_knows_only_its_prompt_calls_a_tool() {
    let (team, run) = start();
    let peer = team.add_node(&run, "reviewer", "claude", skip("peer"));
    let reader = team.add_node(&run, "implementer", "reader", skip("reader"));
    team.connect(&run, &reader, &peer);
    team.chat(&run, &reader, "Whom can you reach?");
    assert_eq!(team.wait_for_turn_end(&run, &reader, 1), "turn.completed");
    let answer = last_answer(&team, &run, &reader);
    assert!(answer.contains("\"alias\":\"peer\""), "{answer}");
    // A call that only reads is an event, too.
    let calls = completed_calls(&team, &run, &reader);
    let [called] = &calls[..] else {
        panic!("one call: {calls:#?}");
    };
    let output = called["result"]["output"].as_str().unwrap();
    assert!(output.contains("\"alias\":\"peer\""), "{output}");
}

#[test]
fn a_program_that_repeats_its_prompt_calls_nothing() {
    let (team, run) = start();
    let echo = team.add_node(&run, "orchestrator", "echo", skip("echo"));
    team.chat(&run, &echo, "Say it again");
    assert_eq!(team.wait_for_turn_end(&run, &echo, 1), "turn.completed");
    let answer = last_answer(&team, &run, &echo);
    assert!(answer.contains("\"name\":\"complete_run\""), "{answer}");
    assert_eq!(completed_calls(&team, &run, &echo), [json!(null); 0]);
    assert_eq!(team.show(&run)["nodes"].as_object().unwrap().len(), 1);
}

#[test]
fn an_acp_agent_without_mcp_over_http_calls_tools_by_lines() {
    let (team, run) = start();
    let node = team.add_node(&run, "implementer", "old-acp", skip("old"));
    team.chat(&run, &node, "LOOK AROUND");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    assert_eq!(last_answer(&team, &run, &node), "I have looked.");
    let events = team.events(&run);
    let said = events
        .iter()
        .filter(|event| event["nodeId"] == node.as_str());
    let said: Vec<&Value> = said
        .filter(|event| event["type"] == "message.assistant.final")
        .collect();
    assert_eq!(said.len(), 1, "the line of the call is no text: {said:#?}");
}
