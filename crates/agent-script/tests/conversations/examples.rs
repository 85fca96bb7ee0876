//! The team of `examples/team.toml`: an orchestrator, and two implementers at the same time.

use serde_json::{Value, json};

use super::harness::{Agent, CLAUDE, GEMINI, Workplace, acp_prompt, open_acp_session};
use super::mcp_server::{AnswerForm, McpServer};

fn answer(tool: &str, args: &Value) -> Value {
    let structured = match tool {
        "spawn_node" => {
            let label = args["label"].as_str().unwrap();
            json!({"nodeId": format!("node of {label}")})
        }
        _ => json!({"accepted": true}),
    };
    json!({"content": [], "structuredContent": structured})
}

fn start_orchestrator(workplace: &Workplace, server: &McpServer) -> Agent {
    let config = json!({"mcpServers": {"turnkeep": {"type": "http", "url": server.url}}});
    workplace.start(&[CLAUDE, &["--mcp-config", &config.to_string()]].concat())
}

#[test]
fn a_team_works_from_one_script() {
    let server = McpServer::start(AnswerForm::Json, answer);
    let workplace = Workplace::with_example("team.toml");
    let mut orchestrator = start_orchestrator(&workplace, &server);
    let turn = orchestrator.claude_turn("You are the orchestrator. Build it.");
    assert_eq!(turn.last().unwrap()["result"], "Both are at work.");
    let handoffs: Vec<Value> = server.calls().into_iter().map(|(_, args)| args).collect();
    assert_eq!(handoffs[2]["to"], "node of Implementer A");
    assert_eq!(handoffs[3]["to"], "node of Implementer B");

    // Neither turn can end before the other has begun.
    let mut parser = workplace.start(CLAUDE);
    let mut printer = workplace.start(GEMINI);
    parser.send_claude_prompt(handoffs[2]["message"].as_str().unwrap());
    let session = open_acp_session(&mut printer, &workplace, &json!([]));
    let message = handoffs[3]["message"].as_str().unwrap();
    let id = printer.send_request("session/prompt", &acp_prompt(&session, message));
    assert_eq!(
        printer.read_response(id)["result"]["stopReason"],
        "end_turn"
    );
    let report = parser.read_to_value("/type", "result");
    assert_eq!(report["result"], "The parser is ready.");

    let reports = "Reports: The parser is ready. The printer is ready.";
    let turn = orchestrator.claude_turn(reports);
    assert_eq!(turn.last().unwrap()["result"], "All done.");
    let (tool, args) = server.calls().pop().unwrap();
    assert_eq!((tool.as_str(), &args["ok"]), ("complete_run", &json!(true)));
}
