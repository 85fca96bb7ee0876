//! The Model Context Protocol: tools by token, and nothing that speaks as the operator.

use serde_json::{Value, json};

use super::{Kind, Team, envelope, refused};
use crate::client::{Reply, within};

pub(super) async fn ask(team: &Team, kind: Kind, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let reply = team.post(kind, "/mcp", &message).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(7))
    );
    answer
}

async fn tools(team: &Team, kind: Kind) -> Vec<(String, Vec<String>)> {
    let answer = ask(team, kind, "tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    let named = |tool: &Value| {
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        (
            tool["name"].as_str().unwrap().to_owned(),
            arguments.keys().cloned().collect(),
        )
    };
    tools.iter().map(named).collect()
}

/// What a tool answers, and whether it failed.
pub(super) async fn call(team: &Team, kind: Kind, tool: &str, arguments: Value) -> (Value, bool) {
    let answer = ask(
        team,
        kind,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
    .await;
    let result = &answer["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    (text, result["isError"].as_bool().unwrap())
}

#[tokio::test]
async fn tools_follow_the_token() {
    let team = Team::start().await;
    let names = async |kind| {
        tools(&team, kind)
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    let reading = [
        "whoami",
        "ledger_read",
        "ledger_search",
        "ledger_get",
        "ledger_pocket",
        "capsule_get",
        "scene_pack_build",
    ];
    assert_eq!(names(Kind::Reader).await, reading);
    assert_eq!(
        names(Kind::Writer).await,
        [&reading[..], &["ledger_write"]].concat()
    );
    assert_eq!(
        names(Kind::Owner).await,
        [
            &reading[..],
            &["store_contexts", "store_turns", "store_turn"]
        ]
        .concat()
    );
    for kind in [Kind::Reader, Kind::Writer, Kind::Owner] {
        for (tool, arguments) in tools(&team, kind).await {
            let has_world = arguments.iter().any(|name| name == "world");
            assert_eq!(
                has_world,
                kind == Kind::Owner && reading.contains(&tool.as_str()),
                "{tool}"
            );
            for operators in [
                "input_text",
                "declared_world_time",
                "timezone",
                "pause_time",
                "as",
                "operator",
            ] {
                assert!(
                    !arguments.iter().any(|name| name == operators),
                    "{tool} {operators}"
                );
            }
        }
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for kind in [Kind::Nobody, Kind::Wrong, Kind::Expired, Kind::Revoked] {
        refused(
            &team.post(kind, "/mcp", &message).await,
            401,
            "Unauthorized",
            kind,
        );
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
    let entry = &written["entries"][0];
    assert_eq!(entry["audience"], "only you and GEORGE (Operator)");
    assert!(
        !written.to_string().contains("refund"),
        "the words are not sent back: {written}"
    );
    let found = async |kind| {
        let (pack, failed) = call(
            &team,
            kind,
            "ledger_search",
            json!({ "query": "refund", "limit": 5 }),
        )
        .await;
        assert!(!failed, "{pack}");
        pack["results"].as_array().unwrap().len()
    };
    assert_eq!(
        (found(Kind::Writer).await, found(Kind::Reader).await),
        (2, 1)
    );
    let (pack, _) = call(
        &team,
        Kind::Owner,
        "ledger_search",
        json!({ "query": "refund", "world": "team" }),
    )
    .await;
    assert_eq!(
        pack["results"].as_array().unwrap().len(),
        2,
        "the operator was addressed"
    );
    let id = entry["entry_id"].as_str().unwrap();
    let got = async |kind| {
        call(&team, kind, "ledger_get", json!({ "ids": [id] }))
            .await
            .0["results"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((got(Kind::Writer).await, got(Kind::Reader).await), (1, 0));
    let (page, _) = call(&team, Kind::Reader, "ledger_read", json!({ "limit": 1 })).await;
    assert_eq!(
        page["stream"]["entries"][0]["text"],
        "Ship the refund fix today."
    );
    let (next, _) = call(
        &team,
        Kind::Reader,
        "ledger_read",
        json!({ "cursor": page["stream"]["cursor_after"] }),
    )
    .await;
    assert_eq!(next["stream"]["entries"], json!([]));
    let (capsule, failed) = call(
        &team,
        Kind::Writer,
        "capsule_get",
        json!({ "person_id": "BOB" }),
    )
    .await;
    assert!(
        !failed && capsule["sections"][0]["text"] == "The refund blocker.",
        "{capsule}"
    );
    let (scene, failed) = call(&team, Kind::Reader, "scene_pack_build", json!({})).await;
    assert!(
        !failed && scene["text"] == "Ship the refund fix today.",
        "{scene}"
    );
    team.stop().await;
}

#[tokio::test]
async fn n33_nobody_speaks_as_the_operator_through_mcp() {
    let team = Team::start().await;
    let before = team.recorded();
    for argument in [
        "input_text",
        "declared_world_time",
        "timezone",
        "pause_time",
        "operator",
        "as",
        "world",
    ] {
        let (answer, failed) = call(
            &team,
            Kind::Writer,
            "ledger_write",
            json!({ "text": "x", argument: "x" }),
        )
        .await;
        assert!(
            failed && answer["error"]["code"] == "UNKNOWN_FIELD",
            "{argument}: {answer}"
        );
    }
    let (answer, _) = call(
        &team,
        Kind::Reader,
        "scene_pack_build",
        json!({ "view": "x" }),
    )
    .await;
    assert_eq!(
        answer["error"]["message"],
        "view is not an argument here; these are: max_bytes"
    );
    for (kind, tool) in [
        (Kind::Reader, "ledger_write"),
        (Kind::Owner, "ledger_write"),
        (Kind::Writer, "store_turns"),
    ] {
        let answer = ask(
            &team,
            kind,
            "tools/call",
            json!({ "name": tool, "arguments": { "text": "x" } }),
        )
        .await;
        assert_eq!(answer["error"]["code"], -32602, "{kind:?} {tool}: {answer}");
    }
    assert_eq!(team.recorded(), before);
    team.stop().await;
}

#[tokio::test]
async fn a_tool_that_fails_says_why_in_its_answer() {
    let team = Team::start().await;
    for (tool, arguments, word, path) in [
        (
            "ledger_write",
            json!({ "text": "  " }),
            "TEXT_EMPTY",
            "text",
        ),
        (
            "ledger_write",
            json!({ "text": "x", "visible_to": ["ANN", "CARL"] }),
            "VISIBILITY_INVALID",
            "visible_to[1]",
        ),
        (
            "ledger_write",
            json!({ "text": "x", "visible_to": [] }),
            "VISIBILITY_INVALID",
            "visible_to",
        ),
        (
            "ledger_write",
            json!({ "text": 7 }),
            "TOOL_REQUEST_INVALID",
            "text",
        ),
        (
            "ledger_write",
            json!({ "text": "x", "request_id": "" }),
            "REQUEST_ID_INVALID",
            "request_id",
        ),
        ("ledger_search", json!({}), "TOOL_REQUEST_INVALID", "query"),
        (
            "ledger_search",
            json!({ "query": "x".repeat(4097) }),
            "TOOL_REQUEST_INVALID",
            "query",
        ),
        (
            "ledger_search",
            json!({ "query": "x", "limit": 201 }),
            "BAD_LIMIT",
            "limit",
        ),
        (
            "ledger_search",
            json!({ "query": "x", "from": "soon" }),
            "TIME_FORMAT",
            "from",
        ),
        (
            "ledger_get",
            json!({ "ids": ["x".repeat(4097)] }),
            "TOOL_REQUEST_INVALID",
            "ids",
        ),
        (
            "ledger_read",
            json!({ "cursor": "x" }),
            "BAD_CURSOR",
            "cursor",
        ),
        (
            "capsule_get",
            json!({}),
            "TOOL_REQUEST_INVALID",
            "person_id",
        ),
    ] {
        let (answer, failed) = call(&team, Kind::Writer, tool, arguments.clone()).await;
        assert!(
            failed && answer["error"]["code"] == word,
            "{tool} {arguments}: {answer}"
        );
        assert_eq!(answer["error"]["details"]["path"], path, "{tool}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            !message.contains("tool.") && message.contains(path),
            "{message}"
        );
    }
    for (arguments, sentence) in [
        (
            json!({ "text": "  " }),
            "nothing was written: the text holds nothing but white space (TEXT_EMPTY: text)",
        ),
        (
            json!({ "entries": [{ "text": "a" }, { "text": "b", "visible_to": [] }] }),
            "nothing was written: the audience names somebody who is not a person of this world, or does not fit \
             the scope (VISIBILITY_INVALID: entries[1].visible_to)",
        ),
        (
            json!({ "text": "x", "calendar": [{ "title": "x", "time": "soon" }] }),
            "nothing was written: a calendar item or a message does not fit its entry (POCKET_INVALID: calendar[0].time)",
        ),
    ] {
        let (answer, _) = call(&team, Kind::Writer, "ledger_write", arguments).await;
        assert_eq!(answer["error"]["message"], sentence);
    }
    let same = json!({ "text": "once", "request_id": "k" });
    let first = call(&team, Kind::Writer, "ledger_write", same.clone())
        .await
        .0;
    let second = call(&team, Kind::Writer, "ledger_write", same).await.0;
    assert_eq!(
        (&first["entries"], &second["replayed"]),
        (&second["entries"], &json!(true))
    );
    team.stop().await;
}

#[tokio::test]
async fn the_owner_reads_the_store_and_leaves_a_line_where_it_is_a_world_s() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let label = "turnkeep.ledger.world=team";
    let listed = async |arguments| {
        let (page, failed) = call(&team, Kind::Owner, "store_contexts", arguments).await;
        assert!(!failed, "{page}");
        page
    };
    let page = listed(json!({ "label": label })).await;
    assert_eq!(page["contexts"], json!([]), "a world's are left out");
    let page = listed(json!({ "label": label, "worlds": true })).await;
    let context = page["contexts"][0]["context_id"].clone();
    let (page, failed) = call(
        &team,
        Kind::Owner,
        "store_turns",
        json!({ "context_id": context, "limit": 2 }),
    )
    .await;
    assert!(!failed || page["turns"].is_array(), "{page}");
    let (answer, failed) = call(
        &team,
        Kind::Owner,
        "store_turn",
        json!({ "turn_id": "999" }),
    )
    .await;
    assert!(failed && answer["error"]["code"] == "NotFound", "{answer}");
    let (answer, failed) = call(
        &team,
        Kind::Owner,
        "ledger_read",
        json!({ "world": "nowhere" }),
    )
    .await;
    assert!(failed && answer["error"]["code"] == "NotFound", "{answer}");
    team.stop().await;
}

#[tokio::test]
async fn the_protocol_is_spoken_as_its_revisions_say() {
    let team = Team::start().await;
    for (asked, spoken) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let answer = ask(
            &team,
            Kind::Reader,
            "initialize",
            json!({ "protocolVersion": asked }),
        )
        .await;
        assert_eq!(answer["result"]["protocolVersion"], spoken);
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    assert_eq!(
        ask(&team, Kind::Reader, "ping", json!({})).await["result"],
        json!({})
    );
    assert_eq!(
        ask(&team, Kind::Reader, "resources/list", json!({})).await["error"]["code"],
        -32601
    );
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let reply = team.post(Kind::Reader, "/mcp", &told).await;
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    let odd = team
        .call(Kind::Reader, "POST", "/mcp")
        .header("mcp-protocol-version", "1999-01-01")
        .json(&told);
    let odd = odd.send().await;
    assert_eq!(
        (odd.status, &odd.json()["error"]["code"]),
        (400, &json!(-32022))
    );
    let garbage = team
        .call(Kind::Reader, "POST", "/mcp")
        .body("{")
        .send()
        .await;
    assert_eq!(
        (garbage.status, &garbage.json()["error"]["code"]),
        (400, &json!(-32700))
    );
    team.stop().await;
}

/// A world with labels, and what BOB and the operator said in it.
pub(super) async fn labelled() -> Team {
    let team = Team::start().await;
    for person in [
        json!({ "person_id": "CAROL", "display_label": "Carol the reviewer", "aliases": ["Caz"] }),
        json!({ "person_id": "DAN", "display_label": "Dan", "aliases": ["D"] }),
        json!({ "person_id": "DORA", "display_label": "Dora", "aliases": ["D"] }),
    ] {
        let added = team
            .post(Kind::Owner, "/v1/worlds/team/persons", &person)
            .await;
        assert_eq!(added.status, 201, "{}", added.text());
    }
    team.say("r-1", "Ship the refund fix today.").await;
    team
}

pub(super) async fn write(team: &Team, arguments: Value) -> Value {
    let (answer, failed) = call(team, Kind::Writer, "ledger_write", arguments).await;
    assert!(!failed, "{answer}");
    answer
}

#[tokio::test]
async fn an_agent_is_told_who_it_is_where_and_with_whom() {
    let team = labelled().await;
    let hello = async |kind| {
        let answer = ask(
            &team,
            kind,
            "initialize",
            json!({ "protocolVersion": "2025-11-25" }),
        )
        .await;
        answer["result"]["instructions"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let said = hello(Kind::Writer).await;
    for words in [
        "You are BOB",
        "world `team`",
        "ANN",
        "CAROL (Carol the reviewer)",
        "write as BOB",
        "newest = 20",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("GEORGE (Operator), the operator"), "{said}");
    assert!(
        hello(Kind::Reader)
            .await
            .contains("this token may not write")
    );
    assert!(hello(Kind::Owner).await.contains("Worlds: "));
    let (own, failed) = call(&team, Kind::Writer, "whoami", json!({})).await;
    assert!(!failed, "{own}");
    assert_eq!(
        (&own["person_id"], &own["world_id"], &own["may_write"]),
        (&json!("BOB"), &json!("team"), &json!(true))
    );
    let ids: Vec<_> = own["persons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["person_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["GEORGE", "ANN", "BOB", "CAROL", "DAN", "DORA"]);
    let (more, _) = call(&team, Kind::Writer, "whoami", json!({ "after": "CAROL" })).await;
    assert_eq!(more["persons"].as_array().unwrap().len(), 2);
    let (reader, _) = call(&team, Kind::Reader, "whoami", json!({})).await;
    assert_eq!(
        (&reader["person_id"], &reader["may_write"]),
        (&json!("ANN"), &json!(false))
    );
    let (now, _) = call(
        &team,
        Kind::Reader,
        "ledger_read",
        json!({ "cursor": reader["cursor_now"] }),
    )
    .await;
    assert_eq!(now["stream"]["entries"], json!([]));
    team.stop().await;
}

#[tokio::test]
async fn persons_are_named_by_id_or_label_and_an_unknown_one_is_answered_with_the_others() {
    let team = labelled().await;
    for name in ["CAROL", "carol", "Carol the reviewer", " caz "] {
        let written = write(
            &team,
            json!({ "text": format!("to {name}"), "visible_to": [name] }),
        )
        .await;
        assert_eq!(
            written["entries"][0]["audience"], "only you and CAROL (Carol the reviewer)",
            "{name}"
        );
    }
    let twice = write(
        &team,
        json!({ "text": "x", "visible_to": ["CAROL", "Caz", "Operator"] }),
    )
    .await;
    assert_eq!(
        twice["entries"][0]["audience"],
        "only you, CAROL (Carol the reviewer) and GEORGE (Operator)"
    );
    for (tool, arguments, word, path) in [
        (
            "ledger_write",
            json!({ "text": "x", "visible_to": ["Eve"] }),
            "VISIBILITY_INVALID",
            "visible_to[0]",
        ),
        (
            "ledger_search",
            json!({ "query": "x", "person_id": "Eve" }),
            "NotFound",
            "person_id",
        ),
        (
            "capsule_get",
            json!({ "person_id": "Eve" }),
            "NotFound",
            "person_id",
        ),
        (
            "capsule_get",
            json!({ "person_id": "D" }),
            "NotFound",
            "person_id",
        ),
    ] {
        let (answer, failed) = call(&team, Kind::Writer, tool, arguments.clone()).await;
        assert!(
            failed && answer["error"]["code"] == word,
            "{tool} {arguments}: {answer}"
        );
        assert_eq!(
            answer["error"]["details"]["path"], path,
            "{tool} {arguments}: {answer}"
        );
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("DAN (Dan), DORA (Dora)"),
            "{tool} {arguments}: {message}"
        );
    }
    let (found, failed) = call(
        &team,
        Kind::Writer,
        "ledger_search",
        json!({ "query": "carol", "person_id": "bob" }),
    )
    .await;
    assert!(
        !failed && !found["results"].as_array().unwrap().is_empty(),
        "{found}"
    );
    let (capsule, failed) = call(
        &team,
        Kind::Writer,
        "capsule_get",
        json!({ "person_id": "Bob" }),
    )
    .await;
    assert!(
        !failed && capsule["sources"][0]["audience"].is_string(),
        "{capsule}"
    );
    team.stop().await;
}

#[tokio::test]
async fn an_agent_says_how_many_results_may_only_stand_beside_a_match() {
    let team = Team::start().await;
    for (number, text) in ["Good morning.", "I take the rounding test.", "Thank you."]
        .into_iter()
        .enumerate()
    {
        write(
            &team,
            json!({ "text": text, "request_id": number.to_string() }),
        )
        .await;
    }
    let found = async |context: Value| {
        let arguments = json!({ "query": "rounding", "context": context });
        let (pack, failed) = call(&team, Kind::Reader, "ledger_search", arguments).await;
        assert!(!failed, "{pack}");
        let results = pack["results"].as_array().unwrap().clone();
        let beside = results.iter().filter(|result| result["context"] == true);
        (results.len(), beside.count())
    };
    assert_eq!(found(json!(0)).await, (1, 0));
    assert_eq!(found(json!(1)).await, (2, 1));
    assert_eq!(found(Value::Null).await, (3, 2));
    let (answer, failed) = call(
        &team,
        Kind::Reader,
        "ledger_search",
        json!({ "query": "rounding", "context": 201 }),
    )
    .await;
    assert!(
        failed && answer["error"]["details"]["path"] == "context",
        "{answer}"
    );
    let listed = ask(&team, Kind::Reader, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let search = tools.iter().find(|tool| tool["name"] == "ledger_search");
    let description = search.unwrap()["description"].as_str().unwrap();
    assert!(description.contains("`context: true`"), "{description}");
    team.stop().await;
}

#[tokio::test]
async fn the_operator_has_one_name_in_every_answer() {
    let team = Team::start().await;
    let change = json!({ "operator_label": "Dana" });
    let changed = team.call(Kind::Owner, "PATCH", "/v1/worlds/team");
    let changed = changed.json(&change).send().await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    team.say("r-1", "Ship the refund fix today.").await;
    let (page, _) = call(&team, Kind::Reader, "ledger_read", json!({})).await;
    let entry = &page["stream"]["entries"][0];
    let ids = json!({ "ids": [entry["entry_id"]] });
    let (got, _) = call(&team, Kind::Reader, "ledger_get", ids).await;
    let query = json!({ "query": "refund" });
    let (found, _) = call(&team, Kind::Reader, "ledger_search", query).await;
    let operator = json!({ "person_id": "Dana" });
    let (capsule, _) = call(&team, Kind::Reader, "capsule_get", operator).await;
    let (scene, _) = call(&team, Kind::Reader, "scene_pack_build", json!({})).await;
    for shown in [
        entry,
        &got["results"][0],
        &found["results"][0],
        &capsule["sources"][0],
        &scene["sources"][0],
    ] {
        assert_eq!(
            (&shown["author_id"], &shown["author_label"]),
            (&json!("GEORGE"), &json!("Dana")),
            "{shown}"
        );
    }
    let (own, _) = call(&team, Kind::Reader, "whoami", json!({})).await;
    assert_eq!(own["persons"][0]["label"], "Dana");
    let unknown = team
        .get(Kind::Owner, "/v1/worlds/team/stream?as=EVE")
        .await
        .text();
    assert!(
        unknown.contains("there are: ANN, BOB, Dana (the operator)"),
        "{unknown}"
    );
    team.stop().await;
}

#[tokio::test]
async fn one_call_writes_several_entries_or_none() {
    let team = labelled().await;
    let text = "Review on Friday in room 4, bring notes.";
    let item = json!({ "title": "Review on Friday", "time": "2026-01-02T15:00:00Z", "location": "room 4" });
    let entries = json!([
        { "text": "The fix is in." },
        { "text": text, "visible_to": ["Ann"], "calendar": [item] },
    ]);
    let written = write(&team, json!({ "entries": entries })).await;
    assert_eq!(written["entries"].as_array().unwrap().len(), 2, "{written}");
    assert_eq!(written["entries"][1]["audience"], "only you and ANN");
    assert!(!written.to_string().contains("Friday"), "{written}");
    let (page, _) = call(
        &team,
        Kind::Reader,
        "ledger_pocket",
        json!({ "part": "calendar" }),
    )
    .await;
    let shown = &page["items"][0];
    assert_eq!(
        (&shown["title"], &shown["location"]),
        (&json!("Review on Friday"), &json!("room 4"))
    );
    assert_eq!(shown["audience"], "only you and BOB");
    let item_id = written["calendar"][0]["item_id"].clone();
    let cancel = json!({ "text": "No review.", "visible_to": ["ANN"], "calendar": [{ "supersedes": item_id }] });
    write(&team, cancel).await;
    let (page, _) = call(
        &team,
        Kind::Reader,
        "ledger_pocket",
        json!({ "part": "calendar" }),
    )
    .await;
    assert_eq!(page["items"], json!([]));
    let before = team.recorded();
    for (arguments, path) in [
        (
            json!({ "entries": [{ "text": "a" }, { "text": " " }] }),
            "entries[1].text",
        ),
        (
            json!({ "entries": [{ "text": "a" }, { "text": "b", "visible_to": [] }] }),
            "entries[1].visible_to",
        ),
        (
            json!({ "entries": [{ "text": "a", "mood": 7 }] }),
            "entries[0].mood",
        ),
        (json!({ "entries": [{ "text": "a" }], "text": "b" }), "text"),
        (
            json!({ "text": "a", "calendar": [{ "title": "b" }] }),
            "calendar[0].title",
        ),
        (
            json!({ "text": "a", "calendar": [{ "title": "a", "time": "soon" }] }),
            "calendar[0].time",
        ),
        (
            json!({ "entries": [{ "text": "a", "calendar": [{}] }] }),
            "entries[0].calendar[0].title",
        ),
        (
            json!({ "text": "a", "reply_to": "e_00000000000000000000000000" }),
            "reply_to",
        ),
        (json!({}), "text"),
    ] {
        let (answer, failed) = call(&team, Kind::Writer, "ledger_write", arguments.clone()).await;
        assert!(failed, "{arguments}: {answer}");
        assert_eq!(
            answer["error"]["details"]["path"], path,
            "{arguments}: {answer}"
        );
    }
    let (page, _) = call(
        &team,
        Kind::Owner,
        "ledger_read",
        json!({ "world": "team" }),
    )
    .await;
    assert_eq!(
        page["stream"]["entries"].as_array().unwrap().len(),
        2,
        "{page}"
    );
    assert!(team.recorded() > before, "rejections are in the audit");
    team.stop().await;
}

#[tokio::test]
async fn a_reply_goes_to_those_who_may_see_what_it_answers_and_names_it_to_them_alone() {
    let team = labelled().await;
    let asked = team
        .write("r-2", "Is the migration safe?", Some(&["CAROL"]))
        .await;
    let asked = asked["bundle"]["entries"][0]["entry_id"].clone();
    let written = write(
        &team,
        json!({ "text": "I looked twice.", "reply_to": asked }),
    )
    .await;
    assert_eq!(
        written["entries"][0]["audience"],
        "only you and CAROL (Carol the reviewer)"
    );
    assert_eq!(written["entries"][0]["reply_to"], asked);
    let told = write(
        &team,
        json!({ "text": "It is safe.", "reply_to": asked, "visible_to": ["ANN"] }),
    )
    .await;
    let told = told["entries"][0]["entry_id"].as_str().unwrap().to_owned();
    let seen = async |kind| {
        call(&team, kind, "ledger_get", json!({ "ids": [told] }))
            .await
            .0["results"][0]
            .clone()
    };
    assert_eq!(seen(Kind::Writer).await["reply_to"], asked);
    assert_eq!(
        seen(Kind::Reader).await.get("reply_to"),
        None,
        "ANN may not know of the question"
    );
    let one = async |kind| {
        team.get(kind, &format!("/v1/worlds/team/entries/{told}"))
            .await
            .json()
    };
    assert_eq!(one(Kind::Writer).await["reply_to"], asked);
    assert_eq!(one(Kind::Reader).await.get("reply_to"), None);
    let answer = json!({ "text": "To all.", "reply_to": asked, "visible_to": ["ANN", "CAROL"] });
    write(&team, answer).await;
    let (page, _) = call(&team, Kind::Reader, "ledger_read", json!({ "newest": 1 })).await;
    assert_eq!(page["stream"]["entries"][0]["text"], "To all.");
    assert!(!page.to_string().contains("reply_to"), "{page}");
    team.stop().await;
}

#[tokio::test]
async fn a_write_that_expects_a_cursor_is_refused_when_something_visible_came() {
    let team = labelled().await;
    let (page, _) = call(&team, Kind::Writer, "ledger_read", json!({ "newest": 1 })).await;
    let cursor = page["stream"]["cursor_after"].clone();
    team.say("r-2", "Stop.").await;
    let (answer, failed) = call(
        &team,
        Kind::Writer,
        "ledger_write",
        json!({ "text": "Shipped.", "expected_cursor": cursor }),
    )
    .await;
    assert!(
        failed && answer["error"]["code"] == "HEAD_MOVED",
        "{answer}"
    );
    let (page, _) = call(
        &team,
        Kind::Writer,
        "ledger_read",
        json!({ "cursor": cursor }),
    )
    .await;
    assert_eq!(page["stream"]["entries"][0]["text"], "Stop.");
    let cursor = &page["stream"]["cursor_after"];
    write(
        &team,
        json!({ "text": "Stopped.", "expected_cursor": cursor }),
    )
    .await;
    team.stop().await;
}

#[tokio::test]
async fn a_read_waits_until_something_visible_comes() {
    let team = labelled().await;
    let (own, _) = call(&team, Kind::Reader, "whoami", json!({})).await;
    let arguments = json!({ "cursor": own["cursor_now"], "wait_seconds": 50 });
    let waiting = call(&team, Kind::Reader, "ledger_read", arguments);
    let write = async {
        team.write("r-2", "for the operator", Some(&["GEORGE"]))
            .await;
        team.write("r-3", "for all", None).await;
    };
    let ((page, failed), ()) = Box::pin(within(async { tokio::join!(waiting, write) })).await;
    assert!(!failed, "{page}");
    let texts: Vec<_> = page["stream"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["text"])
        .collect();
    assert_eq!(texts, ["for all"]);
    let (answer, failed) = call(
        &team,
        Kind::Reader,
        "ledger_read",
        json!({ "wait_seconds": 51 }),
    )
    .await;
    assert!(failed && answer["error"]["code"] == "BAD_LIMIT", "{answer}");
    team.stop().await;
}

#[tokio::test]
async fn two_agents_may_use_the_same_request_id() {
    let team = Team::start().await;
    let minted = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/tokens",
            &json!({ "person_id": "ANN", "write": true }),
        )
        .await;
    let ann = minted.json()["token"].as_str().unwrap().to_owned();
    let params =
        json!({ "name": "ledger_write", "arguments": { "text": "mine", "request_id": "task-1" } });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let as_ann = async || {
        let call = team
            .call(Kind::Nobody, "POST", "/mcp")
            .header("authorization", &format!("Bearer {ann}"));
        call.json(&message).send().await.json()["result"]["structuredContent"].clone()
    };
    let bob = write(&team, json!({ "text": "mine", "request_id": "task-1" })).await;
    let first = as_ann().await;
    assert_eq!(
        (&first["request_id"], &first["replayed"]),
        (&json!("task-1"), &json!(false)),
        "{first}"
    );
    assert_ne!(first["bundle_id"], bob["bundle_id"]);
    assert_eq!(
        (&as_ann().await["bundle_id"], &as_ann().await["replayed"]),
        (&first["bundle_id"], &json!(true))
    );
    let long = "é".repeat(200);
    let one = write(&team, json!({ "text": "x", "request_id": long })).await;
    let again = write(&team, json!({ "text": "x", "request_id": long })).await;
    assert_eq!(
        (&one["bundle_id"], &again["replayed"]),
        (&again["bundle_id"], &json!(true))
    );
    team.stop().await;
}

#[tokio::test]
async fn nobody_else_takes_the_request_id_of_an_agent() {
    let team = Team::start().await;
    let minted = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/tokens",
            &json!({ "person_id": "ANN", "write": true }),
        )
        .await;
    let ann = format!("Bearer {}", minted.json()["token"].as_str().unwrap());
    let ids = ["BOB:task-1", "mcp:BOB:task-1", "mcp:", "mcp:ANNA:x"];
    for route in ["beats", "proposals/check"] {
        for id in ids {
            let path = format!("/v1/worlds/team/{route}");
            let call = team.call(Kind::Nobody, "POST", &path);
            let call = call.header("authorization", &ann);
            let beat = super::beat(id, "ANN", "mine", None);
            let reply = call.json(&beat).send().await;
            if id.starts_with("mcp:") {
                refused(&reply, 400, "REQUEST_ID_INVALID", id);
            } else {
                assert_eq!(reply.status, 200, "{id}: {}", reply.text());
            }
        }
    }
    let spoken = envelope("mcp:BOB:task-1", "Mine.");
    for path in ["/v1/worlds/team/invocations", "/invocations"] {
        let reply = team.post(Kind::Owner, path, &spoken).await;
        refused(&reply, 400, "REQUEST_ID_INVALID", path);
    }
    let written = write(&team, json!({ "text": "Mine.", "request_id": "task-1" })).await;
    assert_eq!(written["replayed"], false);
    // One's own id is the same request over HTTP.
    let same = super::beat("mcp:BOB:task-1", "BOB", "Something else.", None);
    let reply = team
        .post(Kind::Writer, "/v1/worlds/team/beats", &same)
        .await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    team.stop().await;
}

#[tokio::test]
async fn a_dry_run_counts_as_a_write_of_its_token_and_not_of_the_world() {
    let team = Team::start_with(|config| {
        config.limits.token_writes_per_minute = 2;
        config.limits.world_writes_per_minute = 1;
    })
    .await;
    let check = async |request: &str| {
        let beat = super::beat(request, "BOB", "x", None);
        team.post(Kind::Writer, "/v1/worlds/team/proposals/check", &beat)
            .await
    };
    assert_eq!(check("r-1").await.status, 200);
    write(&team, json!({ "text": "The world has room for one." })).await;
    let refused = check("r-2").await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    assert!(refused.text().contains("this token"), "{}", refused.text());
    team.stop().await;
}

#[tokio::test]
async fn every_tool_says_first_when_to_use_it() {
    let team = Team::start().await;
    for kind in [Kind::Writer, Kind::Owner] {
        let listed = ask(&team, kind, "tools/list", json!({})).await;
        for tool in listed["result"]["tools"].as_array().unwrap() {
            let description = tool["description"].as_str().unwrap();
            let begins = [
                "Use it to ",
                "Use it before ",
                "Use it when ",
                "Use it first ",
            ]
            .iter()
            .any(|begin| description.starts_with(begin));
            assert!(begins, "{}: {description}", tool["name"]);
        }
    }
    team.stop().await;
}

#[tokio::test]
async fn a_writer_over_its_rate_is_told_when_to_try_again() {
    let team = Team::start_with(|config| config.limits.token_writes_per_minute = 2).await;
    for number in 0..2 {
        write(&team, json!({ "text": format!("{number}") })).await;
    }
    let (answer, failed) = call(&team, Kind::Writer, "ledger_write", json!({ "text": "x" })).await;
    assert!(
        failed && answer["error"]["code"] == "TooManyRequests",
        "{answer}"
    );
    let seconds = answer["error"]["details"]["retry_after_seconds"]
        .as_u64()
        .unwrap();
    assert!((1..=60).contains(&seconds), "{answer}");
    let refused = team
        .post(
            Kind::Writer,
            "/v1/worlds/team/beats",
            &super::beat("r-9", "BOB", "x", None),
        )
        .await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    team.say("r-10", "The operator is not counted.").await;
    team.stop().await;
}

#[tokio::test]
async fn a_repeated_write_is_answered_whatever_the_rate() {
    let team = Team::start_with(|config| config.limits.token_writes_per_minute = 1).await;
    let first = json!({ "text": "once", "request_id": "task-1" });
    let written = write(&team, first.clone()).await;
    let (answer, failed) = call(&team, Kind::Writer, "ledger_write", json!({ "text": "x" })).await;
    assert!(failed && answer["error"]["code"] == "TooManyRequests");
    let again = write(&team, first).await;
    assert_eq!(again["bundle_id"], written["bundle_id"]);
    assert_eq!(again["replayed"], true, "{again}");
    team.stop().await;
}

#[tokio::test]
async fn requests_that_write_nothing_do_not_use_up_what_a_world_s_writers_share() {
    let team = Team::start_with(|config| config.limits.world_writes_per_minute = 2).await;
    for number in 0..4 {
        let beat = super::beat(&format!("reader-{number}"), "ANN", "x", None);
        let refused = team
            .post(Kind::Reader, "/v1/worlds/team/beats", &beat)
            .await;
        assert_eq!(refused.status, 403, "{}", refused.text());
        // A writer who writes in the name of another is rejected by the world.
        let beat = super::beat(&format!("writer-{number}"), "ANN", "x", None);
        let rejected = team
            .post(Kind::Writer, "/v1/worlds/team/beats", &beat)
            .await;
        assert!(matches!(rejected.status, 403 | 422), "{}", rejected.text());
    }
    write(&team, json!({ "text": "one" })).await;
    write(&team, json!({ "text": "two" })).await;
    let (answer, failed) = call(&team, Kind::Writer, "ledger_write", json!({ "text": "x" })).await;
    assert!(failed && answer["error"]["code"] == "TooManyRequests");
    team.stop().await;
}

#[tokio::test]
async fn a_world_has_a_size_that_its_writers_share() {
    let team = Team::start_with(|config| config.limits.world_write_bytes_per_minute = 100).await;
    write(&team, json!({ "text": "y".repeat(80) })).await;
    let (answer, failed) = call(
        &team,
        Kind::Writer,
        "ledger_write",
        json!({ "text": "y".repeat(30) }),
    )
    .await;
    assert!(
        failed
            && answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("this world"),
        "{answer}"
    );
    write(&team, json!({ "text": "y".repeat(20) })).await;
    team.stop().await;
}

/// A request of the revision 2026-07-28, with the headers that it needs.
async fn modern(team: &Team, kind: Kind, method: &str, params: Value) -> Reply {
    modern_call(team, kind, method, params).send().await
}

fn modern_call(team: &Team, kind: Kind, method: &str, mut params: Value) -> crate::client::Call {
    let name = params
        .get("name")
        .or(params.get("uri"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": "m", "method": method, "params": params });
    let call = team
        .call(kind, "POST", "/mcp")
        .header("mcp-protocol-version", "2026-07-28");
    let call = call.header("mcp-method", method).json(&message);
    match name {
        Some(name) => call.header("mcp-name", &name),
        None => call,
    }
}

#[tokio::test]
async fn the_revision_without_a_handshake_is_spoken_beside_the_others() {
    let team = labelled().await;
    let found = modern(&team, Kind::Writer, "server/discover", json!({})).await;
    assert_eq!(found.status, 200, "{}", found.text());
    let found = found.json()["result"].clone();
    assert_eq!(
        found["supportedVersions"],
        json!(["2026-07-28", "2025-11-25", "2025-06-18"])
    );
    assert_eq!(
        (&found["resultType"], &found["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(
        found["ttlMs"].is_u64()
            && found["instructions"]
                .as_str()
                .unwrap()
                .contains("You are BOB")
    );
    assert_eq!(
        found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "turnkeep"
    );
    let listed = modern(&team, Kind::Writer, "tools/list", json!({}))
        .await
        .json()["result"]
        .clone();
    assert!(
        listed["ttlMs"].is_u64()
            && listed["resultType"] == "complete"
            && listed["tools"].is_array()
    );
    let call = json!({ "name": "whoami", "arguments": {} });
    let called = modern(&team, Kind::Writer, "tools/call", call).await.json()["result"].clone();
    assert_eq!(
        (
            &called["resultType"],
            &called["structuredContent"]["person_id"]
        ),
        (&json!("complete"), &json!("BOB"))
    );
    assert_eq!(called.get("ttlMs"), None);
    for method in ["ping", "initialize", "no/such"] {
        let missing = modern(&team, Kind::Writer, method, json!({})).await;
        assert_eq!(
            (missing.status, &missing.json()["error"]["code"]),
            (404, &json!(-32601)),
            "{method}"
        );
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let old = team
        .call(Kind::Writer, "POST", "/mcp")
        .header("mcp-protocol-version", "1900-01-01")
        .json(&message);
    let old = old.send().await;
    assert_eq!(
        (old.status, &old.json()["error"]["code"]),
        (400, &json!(-32022))
    );
    assert_eq!(old.json()["error"]["data"]["requested"], "1900-01-01");
    let bare = modern_call(&team, Kind::Writer, "tools/list", json!({}))
        .json(&message)
        .send()
        .await;
    assert_eq!(
        (bare.status, &bare.json()["error"]["code"]),
        (400, &json!(-32602))
    );
    team.stop().await;
}

/// The message of an event.
fn told(event: &str) -> Value {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or_else(|| panic!("{event}"))).unwrap()
}

#[tokio::test]
async fn a_subscription_tells_of_what_is_visible_and_says_when_the_server_ends_it() {
    let team = labelled().await;
    let listed = modern(&team, Kind::Reader, "resources/list", json!({}))
        .await
        .json();
    let uri = listed["result"]["resources"][0]["uri"].clone();
    let read = modern(&team, Kind::Reader, "resources/read", json!({ "uri": uri })).await;
    assert!(
        read.text().contains("Ship the refund fix"),
        "{}",
        read.text()
    );
    let foreign = "turnkeep://worlds/else/stream";
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": [foreign, uri] });
    let mut stream = modern_call(
        &team,
        Kind::Reader,
        "subscriptions/listen",
        json!({ "notifications": wanted }),
    )
    .stream()
    .await;
    let first = told(&within(stream.event()).await.unwrap());
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({ "resourceSubscriptions": [uri] })
    );
    let subscription = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(first["params"]["_meta"][subscription], "m");
    team.write("r-2", "for the operator", Some(&["GEORGE"]))
        .await;
    team.write("r-3", "for all", None).await;
    let news = told(&within(stream.event()).await.unwrap());
    assert_eq!(
        (&news["method"], &news["params"]["uri"]),
        (&json!("notifications/resources/updated"), &uri)
    );
    let ended = tokio::spawn(async move {
        let last = told(&within(stream.event()).await.unwrap());
        (last, within(stream.event()).await)
    });
    team.stop().await;
    let (last, rest) = ended.await.unwrap();
    assert_eq!(
        (&last["id"], &last["result"]["_meta"][subscription]),
        (&json!("m"), &json!("m"))
    );
    assert_eq!(rest, None);
}

#[tokio::test]
async fn a_subscription_ends_with_its_token() {
    let team = labelled().await;
    let minted = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/tokens",
            &json!({ "person_id": "ANN" }),
        )
        .await
        .json();
    let token = format!("Bearer {}", minted["token"].as_str().unwrap());
    let wanted =
        json!({ "notifications": { "resourceSubscriptions": ["turnkeep://worlds/team/stream"] } });
    let listen = modern_call(&team, Kind::Nobody, "subscriptions/listen", wanted);
    let mut stream = listen.header("authorization", &token).stream().await;
    within(stream.event()).await.unwrap();
    let path = format!(
        "/v1/worlds/team/tokens/{}",
        minted["token_id"].as_str().unwrap()
    );
    assert_eq!(
        team.call(Kind::Owner, "DELETE", &path).send().await.status,
        204
    );
    team.say("r-2", "after the end").await;
    let last = told(&within(stream.event()).await.unwrap());
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    team.stop().await;
}

/// An answer with its random ids replaced by numbers, in the order in which they come.
fn without_ids(text: &str) -> String {
    let (mut met, mut out, mut rest) = (Vec::new(), String::new(), text);
    let is_id = |text: &str| {
        let (letter, digits) = (text.as_bytes().first(), text.get(2..28));
        letter.is_some_and(|letter| b"ebics".contains(letter))
            && text.get(1..2) == Some("_")
            && digits.is_some_and(|digits| {
                digits
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            })
    };
    while let Some(character) = rest.chars().next() {
        if is_id(rest) {
            let id = rest[..28].to_owned();
            let number = met
                .iter()
                .position(|known| *known == id)
                .unwrap_or(met.len());
            if number == met.len() {
                met.push(id);
            }
            out.extend(["<", &number.to_string(), ">"]);
            rest = &rest[28..];
        } else {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}

/// Everything that a reader can ask for, in a world with or without what is hidden from that
/// reader.
async fn everything_that_ann_gets(profile: &str, with_hidden: bool) -> Vec<String> {
    let team = Team::start().await;
    let persons = json!([{ "person_id": "ANN" }, { "person_id": "BOB", "display_label": "Bob" }]);
    let body = json!({ "world_id": "twin", "profile": profile, "persons": persons });
    assert_eq!(
        team.post(Kind::Owner, "/v1/worlds", &body).await.status,
        201
    );
    let minted = team
        .post(
            Kind::Owner,
            "/v1/worlds/twin/tokens",
            &json!({ "person_id": "ANN" }),
        )
        .await;
    let token = format!("Bearer {}", minted.json()["token"].as_str().unwrap());
    let hidden: &[&str] = if profile == "NARRATIVE" {
        &["ZED", "GEORGE"]
    } else {
        &["GEORGE"]
    };
    let mut shown: Vec<Value> = Vec::new();
    for (number, to) in [None, Some(hidden), Some(&["ANN"][..]), Some(hidden), None]
        .into_iter()
        .enumerate()
    {
        let is_hidden = to == Some(hidden);
        let id = format!("r-{number}");
        let mut beat = super::beat(&id, "BOB", &format!("word {number}"), to);
        beat["bundle"]["pocket_items"] =
            json!([{ "kind": "CALENDAR", "entry_index": 0, "title": [0, 4] }]);
        if number == 4 && with_hidden {
            beat["bundle"]["entries"][0]["reply_to"] = shown[1].clone();
        }
        if is_hidden && !with_hidden {
            // Everyone may see that a beat took place, but not its hidden entries.
            beat = json!({ "envelope": envelope(&id, ""), "bundle": {
                "bundle_id": null, "request_id": id, "wrote": false, "entries": [],
                "proposed_by": { "engine": "test", "actor": "BOB" },
            } });
        }
        let reply = team
            .post(Kind::Owner, "/v1/worlds/twin/beats?as=BOB", &beat)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        shown.push(reply.json()["bundle"]["entries"][0]["entry_id"].clone());
    }
    let mut answers = Vec::new();
    let mut get = async |method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let call = team
            .call(Kind::Nobody, "POST", "/mcp")
            .header("authorization", &token);
        answers.push(without_ids(&call.json(&message).send().await.text()));
    };
    get("initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    get("tools/list", json!({})).await;
    for (tool, arguments) in [
        ("whoami", json!({})),
        ("ledger_read", json!({})),
        ("ledger_read", json!({ "newest": 2 })),
        ("ledger_read", json!({ "limit": 2 })),
        ("ledger_search", json!({ "query": "word" })),
        (
            "ledger_search",
            json!({ "query": "word", "person_id": "Zed" }),
        ),
        (
            "ledger_search",
            json!({ "query": "word", "person_id": "no one" }),
        ),
        (
            "ledger_get",
            json!({ "ids": [shown[0], shown[2], shown[4], "e_00000000000000000000000000"] }),
        ),
        (
            "ledger_get",
            json!({ "ids": [shown[1].as_str().unwrap_or("e_00000000000000000000000000")] }),
        ),
        ("ledger_pocket", json!({ "part": "calendar" })),
        ("capsule_get", json!({ "person_id": "Bob" })),
        ("scene_pack_build", json!({})),
    ] {
        get(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await;
    }
    team.stop().await;
    answers
}

#[tokio::test]
async fn n22_what_is_hidden_changes_no_byte_of_what_an_agent_is_answered() {
    for profile in ["WORKSPACE", "NARRATIVE"] {
        let with = everything_that_ann_gets(profile, true).await;
        let without = everything_that_ann_gets(profile, false).await;
        for (with, without) in with.iter().zip(&without) {
            assert_eq!(with, without, "{profile}");
        }
        assert!(
            with.iter()
                .any(|answer| answer.contains("only you and BOB (Bob)")),
            "{with:?}"
        );
        assert!(!with.concat().contains("ZED"));
    }
}

/// A message with many values, of which the method needs none.
fn message_of_values(count: usize) -> String {
    let values = "0,".repeat(count);
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"more":[{values}0]}}}}"#)
}

#[tokio::test]
async fn the_values_of_a_message_count_in_the_memory_budget() {
    let team = Team::start_with(|config| config.memory_budget_bytes = 16 << 20).await;
    let send = async |count| {
        let call = team.call(Kind::Reader, "POST", "/mcp");
        call.body(message_of_values(count)).send().await
    };
    assert_eq!(send(1000).await.status, 200);
    // Less than half a megabyte of text becomes dozens of megabytes of values.
    for count in [250_000, 900_000] {
        send(count).await.error(413, "TooLarge");
    }
    team.stop().await;
}

#[tokio::test]
async fn a_call_that_waits_gives_back_the_memory_of_its_message() {
    // One message of this many values fits into the budget, two do not.
    const COUNT: usize = 100_000;
    let team = Team::start_with(|config| config.memory_budget_bytes = 10 << 20).await;
    let values = "0,".repeat(COUNT);
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{
            "name":"ledger_read","arguments":{{"wait_seconds":50}},"more":[{values}0]}}}}"#
    );
    let send = |body: String| team.call(Kind::Reader, "POST", "/mcp").body(body).send();
    let others = async {
        for _ in 0..3 {
            let reply = send(message_of_values(COUNT)).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        team.write("r-1", "for all", None).await;
    };
    let (waited, ()) = tokio::join!(send(message), others);
    let page = waited.json()["result"]["structuredContent"].clone();
    assert_eq!(page["stream"]["entries"][0]["text"], "for all", "{page}");
    team.stop().await;
}

/// The largest answer that a write can get: every entry has the longest audience, every character of
/// a label is escaped, and all the calendar items are given.
#[tokio::test]
async fn the_answer_of_a_write_never_needs_a_memory_permit() {
    const LARGE_FROM_BYTES: usize = 256 << 10;
    let team = Team::start().await;
    let mut readers = Vec::new();
    for id in ["P1", "P2"] {
        let person = json!({ "person_id": id, "display_label": "\"".repeat(190) });
        let added = team.post(Kind::Owner, "/v1/worlds/team/persons", &person);
        assert_eq!(added.await.status, 201);
        readers.push(id);
    }
    let first = write(&team, json!({ "text": "x" })).await;
    let item = json!({ "title": "x", "time": "2026-01-01T10:00:00.123456789+05:30" });
    let entry = json!({
        "text": "x",
        "visible_to": readers,
        "reply_to": first["entries"][0]["entry_id"],
        "calendar": vec![item; 4],
    });
    let arguments = json!({ "request_id": "\"".repeat(200), "entries": vec![entry; 64] });
    let params = json!({ "name": "ledger_write", "arguments": arguments });
    let write_with_id = async |id: String| {
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        team.post(Kind::Writer, "/mcp", &message).await
    };
    let before = team.recorded();
    // The answer repeats the id, so a long one is rejected before anything is written.
    let rejected = write_with_id("7".repeat(300 << 10)).await;
    assert_eq!((rejected.status, team.recorded()), (400, before));
    let reply = write_with_id("\"".repeat(1 << 10)).await;
    let result = &reply.json()["result"];
    assert_eq!(result["isError"], false, "{result}");
    let written = &result["structuredContent"];
    assert_eq!(written["entries"].as_array().unwrap().len(), 64);
    assert_eq!(written["calendar"].as_array().unwrap().len(), 256);
    let bytes = reply.body.len();
    assert!((200 << 10..LARGE_FROM_BYTES).contains(&bytes), "{bytes}");
    team.stop().await;
}

#[tokio::test]
async fn a_turn_of_the_store_is_shown_within_the_limit_of_an_answer() {
    let team = Team::start().await;
    let made = team.post(Kind::Owner, "/v1/contexts", &json!({})).await;
    let context = made.json()["context_id"].clone();
    let path = format!("/v1/contexts/{}/turns", context.as_str().unwrap());
    let long = "A".repeat(400 << 10);
    for payload in [&long[..], &long, &long, &"A".repeat(4 << 20)] {
        let body = json!({ "payload_b64": payload, "type_id": "x", "type_version": 1 });
        let appended = team.post(Kind::Owner, &path, &body).await;
        assert_eq!(appended.status, 201, "{}", appended.text());
    }
    let arguments = json!({ "context_id": context });
    let (page, failed) = call(&team, Kind::Owner, "store_turns", arguments).await;
    assert!(!failed, "{page}");
    let turns = page["turns"].as_array().unwrap();
    // The newest turn does not fit at all: it is shown without its bytes.
    let newest = turns.last().unwrap();
    assert!(newest["error"].is_object() && newest["bytes_b64"].is_null());
    assert_eq!(
        turns.len(),
        3,
        "what does not fit is left for the next page"
    );
    let before = page["next_before_turn_id"].clone();
    let arguments = json!({ "context_id": context, "before_turn_id": before });
    let (page, _) = call(&team, Kind::Owner, "store_turns", arguments).await;
    assert_eq!(page["turns"].as_array().unwrap().len(), 1);
    team.stop().await;
}
