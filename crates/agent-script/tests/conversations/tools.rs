//! Calls of orchestration tools, handed over in each protocol's own way.

use serde_json::{Value, json};

use super::harness::{
    Agent, CLAUDE, CODEX, OPENCODE, Workplace, acp_prompt, codex_prompt, open_acp_session,
    open_codex_thread, texts_at,
};
use super::mcp_server::{AnswerForm, McpServer};

const SCRIPT: &str = "
[[turn]]
steps = [
    { call = 'spawn_node', args = { label = 'A' }, save = 'a' },
    { call = 'send_handoff', args = { to = '{{a.nodeId}}' }, else = [{ say = 'no: {{result}}' }] },
    { call = 'nothing', else = [{ say = 'error: {{result}}' }] },
]
";

fn answer(tool: &str, args: &Value) -> Value {
    match tool {
        "spawn_node" => json!({"content": [{"type": "text", "text": "{\"nodeId\":\"n-1\"}"}]}),
        "send_handoff" => json!({"isError": true, "content": [{"type": "text",
            "text": format!("no edge to {}", args["to"].as_str().unwrap())}]}),
        _ => json!({"rpcError": {"code": -32602, "message": "unknown tool"}}),
    }
}

fn check_calls(server: &McpServer, token: &str) {
    let calls = server.calls();
    assert_eq!(calls[0], ("spawn_node".to_owned(), json!({"label": "A"})));
    assert_eq!(calls[1], ("send_handoff".to_owned(), json!({"to": "n-1"})));
    let seen = server.seen();
    let methods: Vec<&str> = seen
        .iter()
        .map(|seen| seen.message["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        methods[..3],
        ["initialize", "notifications/initialized", "tools/call"]
    );
    assert!(
        seen.iter()
            .all(|seen| seen.authorization == format!("Bearer {token}"))
    );
    assert!(seen.iter().all(|seen| seen.revision == "2025-06-18"));
    assert!(seen[1..].iter().all(|seen| seen.session == "session-7"));
}

#[test]
fn claude_finds_the_server_in_a_file() {
    let server = McpServer::start(AnswerForm::Json, answer);
    let workplace = Workplace::new(SCRIPT);
    let headers = json!({"Authorization": "Bearer ${NODE_TOKEN}"});
    let entry = json!({"type": "http", "url": server.url, "headers": headers});
    workplace.write(
        "mcp.json",
        &json!({"mcpServers": {"turnkeep": entry}}).to_string(),
    );
    let mut command = workplace.command(&[CLAUDE, &["--mcp-config", "mcp.json"]].concat());
    let turn = Agent::start(command.env("NODE_TOKEN", "t-1")).claude_turn("go");
    check_calls(&server, "t-1");
    assert_eq!(turn[0]["mcp_servers"][0]["name"], "turnkeep");
    let names = texts_at(&turn, "/message/content/0/name");
    assert_eq!(names[0], "mcp__turnkeep__spawn_node");
    let results = texts_at(&turn, "/message/content/0/content");
    assert_eq!(
        results,
        ["{\"nodeId\":\"n-1\"}", "no edge to n-1", "unknown tool"]
    );
    let texts = texts_at(&turn, "/message/content/0/text");
    assert_eq!(texts, ["no: no edge to n-1", "error: unknown tool"]);
}

#[test]
fn codex_finds_the_server_in_its_configuration() {
    for in_thread in [false, true] {
        let server = McpServer::start(AnswerForm::Events, answer);
        let workplace = Workplace::new(SCRIPT);
        let url = format!("mcp_servers.tk.url=\"{}\"", server.url);
        let token = "mcp_servers.tk.bearer_token_env_var=\"NODE_TOKEN\"";
        let overrides = ["-c", url.as_str(), "-c", token];
        let arguments = if in_thread {
            CODEX.to_vec()
        } else {
            [&overrides, CODEX].concat()
        };
        let mut agent = Agent::start(workplace.command(&arguments).env("NODE_TOKEN", "t-2"));
        let entry = json!({"url": server.url, "bearer_token_env_var": "NODE_TOKEN"});
        let config = if in_thread {
            json!({"mcp_servers.tk": entry})
        } else {
            Value::Null
        };
        let params = json!({"cwd": workplace.path(), "config": config});
        let thread = open_codex_thread(&mut agent, &params);
        agent.send_request("turn/start", &codex_prompt(&thread, "go"));
        let turn = agent.read_until(|message| message["method"] == "turn/completed");
        check_calls(&server, "t-2");
        let items: Vec<&Value> = turn
            .iter()
            .filter(|m| m["method"] == "item/completed")
            .map(|m| &m["params"]["item"])
            .filter(|item| item["type"] == "mcpToolCall")
            .collect();
        assert_eq!(items[0]["server"], "tk");
        assert_eq!(items[0]["result"]["structuredContent"]["nodeId"], "n-1");
        assert_eq!(items[1]["status"], "failed");
        assert_eq!(items[1]["error"]["message"], "no edge to n-1");
    }
}

#[test]
fn an_acp_session_brings_its_servers() {
    let server = McpServer::start(AnswerForm::Json, answer);
    let workplace = Workplace::new(SCRIPT);
    let mut agent = workplace.start(OPENCODE);
    let headers = json!([{"name": "Authorization", "value": "Bearer t-3"}]);
    let servers = json!([{"name": "stdio", "command": "x", "args": [], "env": []},
        {"type": "http", "name": "turnkeep", "url": server.url, "headers": headers}]);
    let session = open_acp_session(&mut agent, &workplace, &servers);
    let id = agent.send_request("session/prompt", &acp_prompt(&session, "go"));
    let turn = agent.read_until(|m| m.get("method").is_none() && m["id"] == id);
    check_calls(&server, "t-3");
    let title = &texts_at(&turn, "/params/update/title")[1];
    assert_eq!(title, "spawn_node (turnkeep MCP Server)");
}

#[test]
fn a_missing_server_fails_the_call_only() {
    let workplace = Workplace::new(SCRIPT);
    let entry = json!({"mcpServers": {"gone": {"url": "http://127.0.0.1:9/mcp"}}}).to_string();
    let turn = workplace
        .start(&[CLAUDE, &["--mcp-config", &entry]].concat())
        .claude_turn("go");
    let results = texts_at(&turn, "/message/content/0/content");
    assert!(
        results[0].contains("cannot reach http://127.0.0.1:9/mcp"),
        "{results:?}"
    );
    // The second step needs an answer of the first.
    let text = turn.last().unwrap()["result"].as_str().unwrap();
    assert!(text.starts_with("{{a.nodeId}} is not in"), "{text}");
}

#[test]
fn without_a_server_calls_are_lines_of_text() {
    let workplace = Workplace::new(SCRIPT);
    let mut agent = workplace.start(CLAUDE);
    let turn = agent.claude_turn("go");
    let call = "{\"tool_call\":{\"name\":\"spawn_node\",\"args\":{\"label\":\"A\"}}}\n";
    assert_eq!(turn.last().unwrap()["result"], call);
    let turn = agent.claude_turn("{\"tool_result\":{\"ok\":true,\"result\":{\"nodeId\":\"n-5\"}}}");
    let call = "{\"tool_call\":{\"name\":\"send_handoff\",\"args\":{\"to\":\"n-5\"}}}\n";
    assert_eq!(turn.last().unwrap()["result"], call);
}
