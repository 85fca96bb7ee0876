//! The Model Context Protocol: tools by token, and nothing that speaks as the operator.

use serde_json::{Value, json};

use super::{Kind, Team, refused};

async fn ask(team: &Team, kind: Kind, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let reply = team.post(kind, "/mcp", &message).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
    answer
}

async fn tools(team: &Team, kind: Kind) -> Vec<(String, Vec<String>)> {
    let answer = ask(team, kind, "tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    let named = |tool: &Value| {
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        (tool["name"].as_str().unwrap().to_owned(), arguments.keys().cloned().collect())
    };
    tools.iter().map(named).collect()
}

/// What a tool answers, and whether it failed.
async fn call(team: &Team, kind: Kind, tool: &str, arguments: Value) -> (Value, bool) {
    let answer = ask(team, kind, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let result = &answer["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    (text, result["isError"].as_bool().unwrap())
}

#[tokio::test]
async fn tools_follow_the_token() {
    let team = Team::start().await;
    let names = async |kind| tools(&team, kind).await.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let reading = ["ledger_search", "ledger_get", "capsule_get", "scene_pack_build", "ledger_read"];
    assert_eq!(names(Kind::Reader).await, reading);
    assert_eq!(names(Kind::Writer).await, [&reading[..], &["ledger_write"]].concat());
    assert_eq!(
        names(Kind::Owner).await,
        [&reading[..], &["store_contexts", "store_turns", "store_turn"]].concat()
    );
    for kind in [Kind::Reader, Kind::Writer, Kind::Owner] {
        for (tool, arguments) in tools(&team, kind).await {
            let has_world = arguments.iter().any(|name| name == "world");
            assert_eq!(has_world, kind == Kind::Owner && reading.contains(&tool.as_str()), "{tool}");
            for operators in ["input_text", "declared_world_time", "timezone", "pause_time", "as", "operator"]
            {
                assert!(!arguments.iter().any(|name| name == operators), "{tool} {operators}");
            }
        }
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for kind in [Kind::Nobody, Kind::Wrong, Kind::Expired, Kind::Revoked] {
        refused(&team.post(kind, "/mcp", &message).await, 401, "Unauthorized", kind);
    }
    team.stop().await;
}

#[tokio::test]
async fn a_person_reads_searches_and_writes_as_itself() {
    let team = Team::start().await;
    team.say("r-1", "Ship the refund fix today.").await;
    let (written, failed) = call(
        &team,
        Kind::Writer,
        "ledger_write",
        json!({ "text": "The refund blocker.", "visible_to": ["GEORGE"] }),
    )
    .await;
    assert!(!failed, "{written}");
    let entry = &written["bundle"]["entries"][0];
    assert_eq!(
        (&entry["author"]["author_id"], &entry["visibility"]["visible_to"]),
        (&json!("BOB"), &json!(["GEORGE"]))
    );
    let found = async |kind| {
        let (pack, failed) =
            call(&team, kind, "ledger_search", json!({ "query": "refund", "limit": 5 })).await;
        assert!(!failed, "{pack}");
        pack["results"].as_array().unwrap().len()
    };
    assert_eq!((found(Kind::Writer).await, found(Kind::Reader).await), (2, 1));
    let (pack, _) =
        call(&team, Kind::Owner, "ledger_search", json!({ "query": "refund", "world": "team" })).await;
    assert_eq!(pack["results"].as_array().unwrap().len(), 2, "the operator was addressed");
    let id = entry["entry_id"].as_str().unwrap();
    let got = async |kind| {
        call(&team, kind, "ledger_get", json!({ "ids": [id] })).await.0["results"].as_array().unwrap().len()
    };
    assert_eq!((got(Kind::Writer).await, got(Kind::Reader).await), (1, 0));
    let (page, _) = call(&team, Kind::Reader, "ledger_read", json!({ "limit": 1 })).await;
    assert_eq!(page["stream"]["entries"][0]["text"], "Ship the refund fix today.");
    let (next, _) =
        call(&team, Kind::Reader, "ledger_read", json!({ "cursor": page["stream"]["cursor_after"] })).await;
    assert_eq!(next["stream"]["entries"], json!([]));
    let (capsule, failed) = call(&team, Kind::Writer, "capsule_get", json!({ "person_id": "BOB" })).await;
    assert!(!failed && capsule["sections"][0]["text"] == "The refund blocker.", "{capsule}");
    let (scene, failed) = call(&team, Kind::Reader, "scene_pack_build", json!({})).await;
    assert!(!failed && scene["text"] == "Ship the refund fix today.", "{scene}");
    team.stop().await;
}

#[tokio::test]
async fn n33_nobody_speaks_as_the_operator_through_mcp() {
    let team = Team::start().await;
    let before = team.recorded();
    for argument in ["input_text", "declared_world_time", "timezone", "pause_time", "operator", "as", "world"]
    {
        let (answer, failed) =
            call(&team, Kind::Writer, "ledger_write", json!({ "text": "x", argument: "x" })).await;
        assert!(failed && answer["error"]["code"] == "UNKNOWN_FIELD", "{argument}: {answer}");
    }
    let (answer, _) = call(&team, Kind::Reader, "scene_pack_build", json!({ "view": "x" })).await;
    assert_eq!(answer["error"]["message"], "view is not an argument: this tool takes none");
    for (kind, tool) in
        [(Kind::Reader, "ledger_write"), (Kind::Owner, "ledger_write"), (Kind::Writer, "store_turns")]
    {
        let answer =
            ask(&team, kind, "tools/call", json!({ "name": tool, "arguments": { "text": "x" } })).await;
        assert_eq!(answer["error"]["code"], -32602, "{kind:?} {tool}: {answer}");
    }
    assert_eq!(team.recorded(), before);
    team.stop().await;
}

#[tokio::test]
async fn a_tool_that_fails_says_why_in_its_answer() {
    let team = Team::start().await;
    for (tool, arguments, word, path) in [
        ("ledger_write", json!({ "text": "  " }), "TEXT_EMPTY", "text"),
        (
            "ledger_write",
            json!({ "text": "x", "visible_to": ["ANN", "CARL"] }),
            "VISIBILITY_INVALID",
            "visible_to[1]",
        ),
        ("ledger_write", json!({ "text": "x", "visible_to": [] }), "VISIBILITY_INVALID", "visible_to"),
        ("ledger_write", json!({ "text": 7 }), "TOOL_REQUEST_INVALID", "text"),
        ("ledger_write", json!({ "text": "x", "request_id": "" }), "REQUEST_ID_INVALID", "request_id"),
        ("ledger_search", json!({}), "TOOL_REQUEST_INVALID", "query"),
        ("ledger_search", json!({ "query": "x".repeat(4097) }), "TOOL_REQUEST_INVALID", "query"),
        ("ledger_search", json!({ "query": "x", "limit": 201 }), "BAD_LIMIT", "limit"),
        ("ledger_search", json!({ "query": "x", "from": "soon" }), "TIME_FORMAT", "from"),
        ("ledger_get", json!({ "ids": ["x".repeat(4097)] }), "TOOL_REQUEST_INVALID", "ids"),
        ("ledger_read", json!({ "cursor": "x" }), "BAD_CURSOR", "cursor"),
        ("capsule_get", json!({}), "TOOL_REQUEST_INVALID", "person_id"),
    ] {
        let (answer, failed) = call(&team, Kind::Writer, tool, arguments.clone()).await;
        assert!(failed && answer["error"]["code"] == word, "{tool} {arguments}: {answer}");
        assert_eq!(answer["error"]["details"]["path"], path, "{tool}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            !message.contains("tool.") && (message.contains(path) || tool == "ledger_write"),
            "{message}"
        );
    }
    let same = json!({ "text": "once", "request_id": "k" });
    let first = call(&team, Kind::Writer, "ledger_write", same.clone()).await.0;
    let second = call(&team, Kind::Writer, "ledger_write", same).await.0;
    assert_eq!((&first["bundle"], &second["replayed"]), (&second["bundle"], &json!(true)));
    team.stop().await;
}

#[tokio::test]
async fn the_owner_reads_the_store_and_leaves_a_line_where_it_is_a_world_s() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let (page, failed) =
        call(&team, Kind::Owner, "store_contexts", json!({ "label": "turnkeep.ledger.world=team" })).await;
    assert!(!failed, "{page}");
    let context = page["contexts"][0]["context_id"].clone();
    let (page, failed) =
        call(&team, Kind::Owner, "store_turns", json!({ "context_id": context, "limit": 2 })).await;
    assert!(!failed || page["turns"].is_array(), "{page}");
    let (answer, failed) = call(&team, Kind::Owner, "store_turn", json!({ "turn_id": "999" })).await;
    assert!(failed && answer["error"]["code"] == "NotFound", "{answer}");
    let (answer, failed) = call(&team, Kind::Owner, "ledger_read", json!({ "world": "nowhere" })).await;
    assert!(failed && answer["error"]["code"] == "NOT_FOUND", "{answer}");
    team.stop().await;
}

#[tokio::test]
async fn the_protocol_is_spoken_as_its_revisions_say() {
    let team = Team::start().await;
    for (asked, spoken) in
        [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25")]
    {
        let answer = ask(&team, Kind::Reader, "initialize", json!({ "protocolVersion": asked })).await;
        assert_eq!(answer["result"]["protocolVersion"], spoken);
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    assert_eq!(ask(&team, Kind::Reader, "ping", json!({})).await["result"], json!({}));
    assert_eq!(ask(&team, Kind::Reader, "resources/list", json!({})).await["error"]["code"], -32601);
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let reply = team.post(Kind::Reader, "/mcp", &told).await;
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    let odd =
        team.call(Kind::Reader, "POST", "/mcp").header("mcp-protocol-version", "1999-01-01").json(&told);
    assert_eq!(odd.send().await.status, 400);
    let garbage = team.call(Kind::Reader, "POST", "/mcp").body("{").send().await;
    assert_eq!((garbage.status, &garbage.json()["error"]["code"]), (400, &json!(-32700)));
    team.stop().await;
}
