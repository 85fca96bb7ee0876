//! Worlds, people and tokens as their owner keeps them.

use serde_json::{Value, json};
use turnkeep_journal::FaultyStorage;
use turnkeep_journal::storage::Fault as DiskFault;
use turnkeep_wire::json::ledger as wire;

use super::{Kind, Team, beat, refused, search};
use crate::client::Server;

fn reads_as<T: serde::de::DeserializeOwned>(value: &Value) {
    if let Err(error) = serde_json::from_value::<T>(value.clone()) {
        panic!("{error}: {value:#}");
    }
}

#[tokio::test]
async fn every_answer_reads_back_as_its_shape() {
    let team = Team::start().await;
    let world = "/v1/worlds/team";
    let read = async |kind, path: &str| {
        let reply = team.get(kind, &format!("{world}{path}")).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    };
    reads_as::<wire::ProjectionOutput>(&team.say("r-1", "hello BOB").await);
    reads_as::<wire::BeatAnswer>(&team.write("r-2", "hello", Some(&["ANN"])).await);
    reads_as::<wire::World>(&read(Kind::Owner, "").await);
    reads_as::<wire::WorldList>(&team.get(Kind::Owner, "/v1/worlds").await.json());
    reads_as::<wire::PersonList>(&read(Kind::Owner, "/persons").await);
    reads_as::<wire::TokenList>(&read(Kind::Owner, "/tokens").await);
    reads_as::<wire::AuditPage>(&read(Kind::Owner, "/audit/lines").await);
    reads_as::<wire::AuditPage>(&read(Kind::Owner, "/audit/derived").await);
    reads_as::<wire::ProjectionOutput>(&read(Kind::Reader, "/stream").await);
    let every = read(Kind::Owner, "/stream?audit=1").await;
    reads_as::<wire::AuditStream>(&every);
    reads_as::<wire::StreamAnswer>(&every);
    let verified = read(Kind::Owner, "/verify?leaks=1").await;
    reads_as::<wire::Verification>(&verified);
    assert_eq!(
        (&verified["sound"], &verified["entries"]),
        (&json!(true), &json!(2)),
        "{verified}"
    );
    reads_as::<wire::CapsulePack>(&read(Kind::Reader, "/persons/BOB/capsule").await);
    reads_as::<wire::SeenView>(&read(Kind::Reader, "/views/ANN").await);
    reads_as::<wire::ViewDifference>(&read(Kind::Owner, "/views/ANN?vs=BOB&audit=1").await);
    let tools = format!("{world}/tools");
    let found = team
        .post(Kind::Writer, &tools, &search("BOB", "BOB_VIEW", "hello"))
        .await
        .json();
    reads_as::<wire::RetrievalResultPack>(&found);
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
    for (tool, person) in [("CAPSULE_GET", Some("ANN")), ("SCENE_PACK_BUILD", None)] {
        let mut request = search("ANN", "ANN", "");
        request["tool"] =
            json!({ "name": tool, "query_text": "", "constraints": { "person_id": person } });
        let pack = team.post(Kind::Reader, &tools, &request).await.json();
        reads_as::<wire::ToolAnswer>(&pack);
        assert_eq!(
            (&pack["tool_request_id"], &pack["request_id"]),
            (&json!("t"), &json!("r")),
            "{pack}"
        );
    }
    let dry = team
        .post(
            Kind::Writer,
            &format!("{world}/proposals/check"),
            &beat("r-3", "BOB", "x", None),
        )
        .await;
    reads_as::<wire::CheckAnswer>(&dry.json());
    team.stop().await;
}

#[tokio::test]
async fn a_limit_that_is_none_has_the_ledger_s_word_on_every_route() {
    let team = Team::start().await;
    for path in ["stream", "views/GEORGE", "audit/lines", "audit/derived"] {
        for limit in ["0", "00", "x", "-1", "1.0"] {
            let reply = team
                .get(
                    Kind::Owner,
                    &format!("/v1/worlds/team/{path}?limit={limit}"),
                )
                .await;
            refused(&reply, 400, "BAD_LIMIT", (path, limit));
            assert_eq!(reply.json()["error"]["details"]["parameter"], "limit");
        }
    }
    team.stop().await;
}

#[tokio::test]
async fn who_gets_the_beginning_of_an_entry_is_told_how_much_there_is() {
    let team = Team::start().await;
    let long = team.write("r-1", &"x".repeat(5000), None).await;
    let short = team.write("r-2", "short", None).await;
    let id = |written: &Value| {
        written["bundle"]["entries"][0]["entry_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (long, short) = (id(&long), id(&short));
    let get = async |limit: u32, ids: &str| {
        let mut request = search("BOB", "BOB", ids);
        request["tool"]["name"] = "LEDGER_GET".into();
        request["tool"]["constraints"] = json!({ "limit": limit });
        team.post(Kind::Writer, "/v1/worlds/team/tools", &request)
            .await
            .json()
    };
    let cut = format!("{long} is cut: 2048 of 5000 bytes; the stream has it whole");
    let more = "the first 1 of 2: a larger limit shows more";
    for (limit, ids, expect) in [
        (10, short.clone(), json!(null)),
        (10, format!("{long} {short}"), json!(cut)),
        (
            1,
            format!("{long} {short}"),
            json!(format!("{more}; {cut}")),
        ),
    ] {
        let pack = get(limit, &ids).await;
        assert_eq!(pack["notes"], expect, "{pack}");
    }
    team.stop().await;
}

#[tokio::test]
async fn what_is_not_said_of_a_person_who_is_there_stays() {
    let team = Team::start().await;
    let add = async |body: Value| {
        team.post(Kind::Owner, "/v1/worlds/team/persons", &body)
            .await
    };
    let wanted = |label: &str, aliases: Value, identity: Value, human: bool| json!({ "person_id": "MARY", "display_label": label, "aliases": aliases, "identity": identity, "human": human });
    for (said, expect) in [
        (
            json!({ "human": true, "aliases": ["M"] }),
            wanted("MARY", json!(["M"]), json!(null), true),
        ),
        (
            json!({ "display_label": "Mary" }),
            wanted("Mary", json!(["M"]), json!(null), true),
        ),
        (
            json!({ "identity": "The lead", "human": null }),
            wanted("Mary", json!(["M"]), json!("The lead"), true),
        ),
        (
            json!({ "aliases": [] }),
            wanted("Mary", json!([]), json!("The lead"), true),
        ),
        (
            json!({}),
            wanted("Mary", json!([]), json!("The lead"), true),
        ),
        (
            json!({ "human": false }),
            wanted("Mary", json!([]), json!("The lead"), false),
        ),
    ] {
        let mut body = said.clone();
        body["person_id"] = "MARY".into();
        let reply = add(body).await;
        assert_eq!((reply.status, reply.json()), (201, expect), "{said}");
    }
    refused(
        &add(json!({ "person_id": "mary" })).await,
        409,
        "NAME_TAKEN",
        "spelling",
    );
    refused(
        &add(json!({ "person_id": "MARY", "humna": true })).await,
        400,
        "UNKNOWN_FIELD",
        "field",
    );
    team.stop().await;
}

#[tokio::test]
async fn the_writer_s_persons_are_people_of_the_world_each_once_and_null_is_all_of_them() {
    let team = Team::start().await;
    let change = async |body: Value| {
        team.call(Kind::Owner, "PATCH", "/v1/worlds/team")
            .json(&body)
            .send()
            .await
    };
    for (persons, status) in [
        (json!(["ANN"]), 200),
        (json!(["ANN", "WORLD", "BOB"]), 200),
        (json!(["NOBODY"]), 400),
        (json!(["ann"]), 400),
        (json!(["ANN", "ann"]), 400),
        (json!(["ANN", "ANN"]), 400),
    ] {
        let reply = change(json!({ "writer_persons": persons })).await;
        assert_eq!(reply.status, status, "{persons}: {}", reply.text());
        if status == 400 {
            refused(&reply, 400, "CONFIG_INVALID", persons);
        }
    }
    assert_eq!(
        change(json!({ "writer": "silence" })).await.json()["writer_persons"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        change(json!({ "writer_persons": null })).await.json()["writer_persons"],
        json!(null)
    );
    for (body, status) in [
        (json!({ "world_id": "a", "writer_persons": ["ZED"] }), 201),
        (
            json!({ "world_id": "b", "registry": "CLOSED", "writer_persons": ["ZED"] }),
            400,
        ),
        (
            json!({ "world_id": "c", "persons": [{ "person_id": "ZED" }], "writer_persons": ["zed"] }),
            400,
        ),
    ] {
        assert_eq!(
            team.post(Kind::Owner, "/v1/worlds", &body).await.status,
            status,
            "{body}"
        );
    }
    let closed = team
        .call(Kind::Owner, "PATCH", "/v1/worlds/a")
        .json(&json!({ "registry": "CLOSED" }))
        .send()
        .await;
    refused(
        &closed,
        400,
        "CONFIG_INVALID",
        "a closed world without its writer's person",
    );
    team.stop().await;
}

#[tokio::test]
async fn a_writer_ends_when_the_world_has_another_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let team = Team::start().await;
    let change = async |body: Value| {
        let reply = team
            .call(Kind::Owner, "PATCH", "/v1/worlds/team")
            .json(&body)
            .send()
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    for (number, other) in [
        json!({ "writer": "silence" }),
        json!({ "writer": "cmd: true" }),
        json!({ "writer_persons": ["ANN"] }),
    ]
    .into_iter()
    .enumerate()
    {
        // The pipe is open for writing as long as the writer is there: reading it ends with it.
        let fifo = dir.path().join(number.to_string());
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let writer = format!(
            r#"cmd: exec 9>{}; while read -r line; do echo '{{"type":"no_write"}}'; done"#,
            fifo.display()
        );
        change(json!({ "writer": writer, "writer_persons": null })).await;
        let ended = tokio::task::spawn_blocking(move || std::fs::read(fifo).unwrap());
        team.say(&format!("r-{number}"), "Hello?").await;
        change(other.clone()).await;
        let ended = tokio::time::timeout(std::time::Duration::from_mins(1), ended).await;
        assert!(ended.is_ok(), "{other}");
    }
    team.stop().await;
}

#[tokio::test]
async fn a_caller_learns_as_whom_it_is_there() {
    let team = Team::start().await;
    for (kind, rest, view, write) in [
        (Kind::Owner, "", "GEORGE", true),
        (Kind::Owner, "?as=ANN", "ANN", true),
        (Kind::Reader, "", "ANN", false),
        (Kind::Writer, "", "BOB", true),
    ] {
        let seat = team
            .get(kind, &format!("/v1/worlds/team/seat{rest}"))
            .await
            .json();
        reads_as::<wire::Seat>(&seat);
        let persons = ["ANN", "BOB"].map(|id| json!({ "person_id": id, "display_label": id }));
        let expect = json!({
            "world_id": "team", "view": view, "write": write,
            "operator_label": "Operator", "registry": "CLOSED", "persons": persons,
        });
        assert_eq!(seat, expect);
    }
    team.stop().await;
}

#[tokio::test]
async fn an_unknown_person_is_refused_with_the_list() {
    let team = Team::start().await;
    for path in [
        "/v1/worlds/team/stream?as=CARL",
        "/v1/worlds/team/seat?as=ann",
    ] {
        let reply = team.get(Kind::Owner, path).await;
        refused(&reply, 404, "NotFound", path);
        let message = reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            message.ends_with("in team; there are: ANN, BOB, Operator (the operator)"),
            "{message}"
        );
    }
    team.stop().await;
}

#[tokio::test]
async fn names_that_people_would_confuse_are_refused() {
    let team = Team::start().await;
    for (name, code) in [
        ("Team", "NAME_TAKEN"),
        ("TEAM", "NAME_TAKEN"),
        ("DEFAULT", "NAME_TAKEN"),
        ("\u{ff54}eam", "CONFIG_INVALID"),
        ("te\u{200b}am", "CONFIG_INVALID"),
        ("team\u{feff}", "CONFIG_INVALID"),
    ] {
        let status = if code == "NAME_TAKEN" { 409 } else { 400 };
        let body = json!({ "world_id": name });
        refused(
            &team.post(Kind::Owner, "/v1/worlds", &body).await,
            status,
            code,
            name,
        );
        refused(
            &team.post(Kind::Owner, "/v1/worlds/team/fork", &body).await,
            status,
            code,
            name,
        );
    }
    for (name, code) in [
        ("ann", "NAME_TAKEN"),
        ("\u{ff21}NN", "CONFIG_INVALID"),
        ("A\u{200d}NN", "CONFIG_INVALID"),
        ("ANN\u{ad}", "CONFIG_INVALID"),
    ] {
        let status = if code == "NAME_TAKEN" { 409 } else { 400 };
        let body = json!({ "person_id": name });
        refused(
            &team
                .post(Kind::Owner, "/v1/worlds/team/persons", &body)
                .await,
            status,
            code,
            name,
        );
    }
    team.stop().await;
}

#[tokio::test]
async fn a_body_without_a_bundle_is_the_body_s_fault_and_uses_no_id() {
    let team = Team::start().await;
    for bundle in [json!(null), json!([]), json!("x")] {
        let mut body = beat("r-1", "BOB", "hello", None);
        body["bundle"] = bundle;
        for path in ["beats", "proposals/check"] {
            let reply = team
                .post(Kind::Writer, &format!("/v1/worlds/team/{path}"), &body)
                .await;
            refused(&reply, 400, "ENVELOPE_INVALID", &body);
            assert_eq!(reply.json()["error"]["details"]["path"], "bundle");
        }
    }
    team.write("r-1", "hello", None).await;
    team.stop().await;
}

#[tokio::test]
async fn the_largest_bundle_comes_through_with_every_letter_escaped() {
    let team = Team::start().await;
    let mut body = beat("r-1", "BOB", "TEXT", None);
    let entry = body["bundle"]["entries"][0].clone();
    body["bundle"]["entries"] = vec![entry; 64].into();
    let sent = body
        .to_string()
        .replace("TEXT", &"\\u00e9".repeat(128 << 10));
    let call = team.call(Kind::Writer, "POST", "/v1/worlds/team/beats");
    let reply = call
        .header("content-type", "application/json")
        .body(sent)
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let shown = reply.json();
    assert_eq!(shown["bundle"]["entries"].as_array().unwrap().len(), 64);
    assert_eq!(
        shown["bundle"]["entries"][63]["text"],
        "é".repeat(128 << 10)
    );
    team.stop().await;
}

#[tokio::test]
async fn the_feed_of_all_says_which_world_changed_and_not_that_somebody_looked() {
    let team = Team::start().await;
    let mut feed = team.follow(Kind::Owner, "/v1/events").await;
    let mut of_context = team.follow(Kind::Owner, "/v1/contexts/1/events").await;
    assert!(of_context.chunk().await.unwrap().starts_with(':'));
    let next = async |feed: &mut crate::client::Stream| loop {
        let event = feed.event().await.unwrap();
        if event.contains("event: world.changed") {
            break event;
        }
    };
    team.get(Kind::Owner, "/v1/worlds/team/stream?audit=1")
        .await;
    team.say("r-1", "hello").await;
    assert_eq!(
        next(&mut feed).await,
        "event: world.changed\ndata: {\"ref\":\"world:team\"}"
    );
    team.post(Kind::Owner, "/v1/worlds", &json!({ "world_id": "new" }))
        .await;
    assert_eq!(
        next(&mut feed).await,
        "event: world.changed\ndata: {\"ref\":\"world:new\"}"
    );
    team.post(
        Kind::Owner,
        "/v1/worlds/else/invocations",
        &super::envelope("r-1", ""),
    )
    .await;
    assert_eq!(
        next(&mut feed).await,
        "event: world.changed\ndata: {\"ref\":\"world:else\"}"
    );
    team.stop().await;
}

#[tokio::test]
async fn n30_a_store_that_fails_is_an_error_and_never_an_empty_stream() {
    let disk = FaultyStorage::new(Some((120, DiskFault::FailedSync)));
    let server = Server::start_on(disk, |_| {}).await;
    let mut said = 0;
    let refused = loop {
        let body = super::envelope(&format!("r-{said}"), "hello");
        let reply = server.post("/invocations", &body).send().await;
        if reply.status != 200 {
            break reply;
        }
        said += 1;
        assert!(said < 500, "the disk never failed");
    };
    refused.error(503, "Unavailable");
    assert!(said > 0);
    let entries = |page: &Value| page["stream"]["entries"].as_array().unwrap().len();
    assert_eq!(
        entries(&server.read("/v1/worlds/default/stream").await),
        said
    );
    let again = server
        .post("/invocations", &super::envelope("r-0", "hello"))
        .send()
        .await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (200, Some("true"))
    );
    // A read that has to leave a line cannot, so it is not answered.
    server
        .get("/v1/worlds/default/stream?audit=1")
        .send()
        .await
        .error(503, "Unavailable");
    server.stop().await;
}

#[tokio::test]
async fn worlds_are_made_changed_and_forked() {
    let team = Team::start().await;
    let make = async |body: Value| team.post(Kind::Owner, "/v1/worlds", &body).await;
    refused(
        &make(json!({ "world_id": "team" })).await,
        409,
        "NAME_TAKEN",
        "name",
    );
    refused(
        &make(json!({ "world_id": "a b" })).await,
        400,
        "CONFIG_INVALID",
        "name",
    );
    refused(
        &make(json!({ "world_id": "w", "mood": 7 })).await,
        400,
        "UNKNOWN_FIELD",
        "mood",
    );
    let twins = json!([{ "person_id": "Ann" }, { "person_id": "ANN" }]);
    refused(
        &make(json!({ "world_id": "w", "persons": twins })).await,
        409,
        "NAME_TAKEN",
        "twins",
    );
    let tight = json!({ "world_id": "w", "limits": { "writer_tokens": 4095 } });
    refused(&make(tight).await, 400, "CONFIG_INVALID", "limits");

    let patch = async |body: Value| {
        team.call(Kind::Owner, "PATCH", "/v1/worlds/team")
            .json(&body)
            .send()
            .await
    };
    let changed = patch(json!({ "operator_label": "Chief", "registry": "OPEN" })).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(changed.json()["operator_label"], "Chief");
    for fixed in [
        json!({ "profile": "NARRATIVE" }),
        json!({ "clock": "STEP" }),
        json!({ "world_id": "x" }),
    ] {
        refused(&patch(fixed.clone()).await, 400, "UNKNOWN_FIELD", fixed);
    }

    let moved = patch(json!({ "timezone": "Europe/Berlin" })).await.json();
    assert_eq!(
        (&moved["timezone"], &moved["world_time"]["timezone"]),
        (&json!("Europe/Berlin"), &json!("Europe/Berlin"))
    );
    let shown = team.get(Kind::Owner, "/v1/worlds/team/stream").await.json();
    assert_eq!(shown["pocket"]["clock"]["timezone"], "Europe/Berlin");

    team.say("r-1", "before").await;
    let fork = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/fork",
            &json!({ "world_id": "copy" }),
        )
        .await;
    assert_eq!(fork.status, 201, "{}", fork.text());
    assert_eq!(fork.json()["forked_from"]["world_id"], "team");
    team.say("r-2", "after").await;
    let stream = team.get(Kind::Owner, "/v1/worlds/copy/stream").await.json();
    assert_eq!(stream["stream"]["entries"].as_array().unwrap().len(), 1);
    let taken = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/fork",
            &json!({ "world_id": "copy" }),
        )
        .await;
    refused(&taken, 409, "NAME_TAKEN", "fork");
    let bad = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/fork",
            &json!({ "world_id": "c", "at": "noon" }),
        )
        .await;
    refused(&bad, 400, "BAD_CURSOR", "at");
    team.stop().await;
}

#[tokio::test]
async fn people_are_added_and_tokens_minted_within_the_rules() {
    let team = Team::start().await;
    let add = async |body: Value| {
        team.post(Kind::Owner, "/v1/worlds/team/persons", &body)
            .await
    };
    assert_eq!(
        add(json!({ "person_id": "CARL", "human": true }))
            .await
            .status,
        201
    );
    refused(
        &add(json!({ "person_id": "carl" })).await,
        409,
        "NAME_TAKEN",
        "case",
    );
    for reserved in ["GEORGE", "world", "X_VIEW", "", "a b"] {
        refused(
            &add(json!({ "person_id": reserved })).await,
            400,
            "CONFIG_INVALID",
            reserved,
        );
    }
    let mint = async |body: Value| {
        team.post(Kind::Owner, "/v1/worlds/team/tokens", &body)
            .await
    };
    refused(
        &mint(json!({ "person_id": "DAVE" })).await,
        404,
        "NotFound",
        "person",
    );
    let past = json!({ "person_id": "CARL", "expires_at": "2020-01-01T00:00:00Z" });
    refused(&mint(past).await, 400, "CONFIG_INVALID", "expiry");
    refused(
        &mint(json!({ "person_id": "CARL", "expires_at": 7 })).await,
        400,
        "CONFIG_INVALID",
        "expiry",
    );
    let minted = mint(json!({ "person_id": "CARL", "write": true }))
        .await
        .json();
    assert_eq!(
        (&minted["person_id"], &minted["write"]),
        (&json!("CARL"), &json!(true))
    );
    let path = format!(
        "/v1/worlds/else/tokens/{}",
        minted["token_id"].as_str().unwrap()
    );
    let foreign = team.call(Kind::Owner, "DELETE", &path).send().await;
    refused(&foreign, 404, "NotFound", "a token of another world");
    // An invoker may not claim to be a human.
    let mut envelope = super::envelope("n01", "hello");
    for claimed in ["carl", " CARL ", "Operator", "george"] {
        envelope["invoker"]["invoker_id"] = claimed.into();
        let reply = team
            .post(Kind::Owner, "/v1/worlds/team/invocations", &envelope)
            .await;
        refused(&reply, 400, "INVOKER_FORBIDDEN", claimed);
    }
    team.stop().await;
}

#[tokio::test]
async fn the_default_world_is_there_and_its_people_may_read_it() {
    let team = Team::start().await;
    let said = team
        .post(
            Kind::Owner,
            "/invocations",
            &super::envelope("r-1", "hello"),
        )
        .await;
    assert_eq!(said.status, 200, "{}", said.text());
    let body = json!({ "person_id": "REBECCA" });
    let minted = team
        .post(Kind::Owner, "/v1/worlds/default/tokens", &body)
        .await;
    assert_eq!(
        minted.status,
        201,
        "an open world knows whoever may be a person: {}",
        minted.text()
    );
    let bearer = format!("Bearer {}", minted.json()["token"].as_str().unwrap());
    let invoke = |body: Value| {
        team.server
            .post("/invocations", &body)
            .header("authorization", &bearer)
    };
    let read = invoke(super::no_op("x")).send().await;
    assert_eq!(
        (read.status, &read.json()["stream"]["entries"][0]["text"]),
        (200, &json!("hello"))
    );
    refused(
        &invoke(super::envelope("x", "")).send().await,
        403,
        "Forbidden",
        "a BEAT",
    );
    refused(
        &invoke(super::envelope("x", "hi")).send().await,
        403,
        "OPERATOR_FORBIDDEN",
        "words",
    );
    team.stop().await;
}

#[tokio::test]
async fn shapes_have_schemas() {
    let team = Team::start().await;
    let names = [
        "invocation_envelope",
        "write_bundle",
        "write_entry",
        "projection_output",
        "tool_request",
        "retrieval_result_pack",
        "scene_anchor_pack",
        "rehydration_pack",
        "capsule_pack",
    ];
    for name in names {
        let reply = team
            .get(Kind::Reader, &format!("/v1/worlds/team/schemas/{name}"))
            .await;
        assert_eq!(
            (reply.status, reply.json()["$schema"].is_string()),
            (200, true),
            "{name}"
        );
    }
    refused(
        &team.get(Kind::Reader, "/v1/worlds/team/schemas/mood").await,
        404,
        "NotFound",
        "mood",
    );
    team.stop().await;
}

#[tokio::test]
async fn nobody_is_added_in_another_spelling_than_is_in_use() {
    let team = Team::start().await;
    let made = team
        .post(Kind::Owner, "/v1/worlds", &json!({ "world_id": "open" }))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let write = async |request: &str, person: &str, to: Option<&[&str]>| {
        let path = format!("/v1/worlds/open/beats?as={person}");
        team.post(Kind::Owner, &path, &beat(request, person, "hi", to))
            .await
    };
    let add = async |person: &str| {
        team.post(
            Kind::Owner,
            "/v1/worlds/open/persons",
            &json!({ "person_id": person }),
        )
        .await
    };
    assert_eq!(write("r-1", "zed", None).await.status, 200);
    assert_eq!(
        write("r-2", "amy", Some(&["GEORGE", "Joe"])).await.status,
        200
    );
    assert_eq!(write("r-3", "amy", Some(&["kim"])).await.status, 200);
    let token = json!({ "person_id": "lou", "write": true });
    assert_eq!(
        team.post(Kind::Owner, "/v1/worlds/open/tokens", &token)
            .await
            .status,
        201
    );
    for taken in ["ZED", "Amy", "JOE", "Lou"] {
        refused(&add(taken).await, 409, "NAME_TAKEN", taken);
    }
    // Whom a hidden entry names shows in no answer.
    assert_eq!(add("KIM").await.status, 201);
    for same in ["zed", "amy", "Joe", "lou", "new"] {
        assert_eq!(add(same).await.status, 201, "{same}");
    }
    assert_eq!(write("r-4", "zed", None).await.status, 200, "and writes on");
    team.stop().await;
}

#[tokio::test]
async fn nobody_reads_as_a_person_whom_an_open_world_does_not_know() {
    let team = Team::start().await;
    let made = json!({ "world_id": "open", "profile": "NARRATIVE" });
    let made = team.post(Kind::Owner, "/v1/worlds", &made).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let reads = async |person: &str| {
        let mut replies = Vec::new();
        for path in [
            format!("stream?as={person}"),
            format!("seat?as={person}"),
            format!("views/{person}?audit=1"),
            format!("persons/{person}/capsule?audit=1"),
        ] {
            let path = format!("/v1/worlds/open/{path}");
            replies.push(team.get(Kind::Owner, &path).await);
        }
        let search = super::search(person, person, "hi");
        let path = format!("/v1/worlds/open/tools?as={person}");
        replies.push(team.post(Kind::Owner, &path, &search).await);
        replies
    };
    for reply in reads("Eve").await {
        refused(&reply, 404, "NotFound", "Eve");
        assert!(
            reply.text().contains("there are: Operator (the operator)"),
            "{}",
            reply.text()
        );
    }
    let hello = beat("r-1", "Eve", "hi", Some(&["Dora"]));
    let path = "/v1/worlds/open/beats?as=Eve";
    let written = team.post(Kind::Owner, path, &hello).await;
    assert_eq!(
        written.status,
        200,
        "writing introduces her: {}",
        written.text()
    );
    for known in ["Eve", "Dora"] {
        for reply in reads(known).await {
            assert_eq!(reply.status, 200, "{known}: {}", reply.text());
        }
    }
    // The list names only those whom the operator may know.
    for reply in reads("eve").await {
        refused(&reply, 404, "NotFound", "eve");
        assert!(!reply.text().contains("Dora"), "{}", reply.text());
    }
    team.stop().await;
}

#[tokio::test]
async fn in_an_open_world_a_search_by_an_unknown_author_is_refused() {
    let team = Team::start().await;
    let made = json!({ "world_id": "open", "profile": "NARRATIVE" });
    let made = team.post(Kind::Owner, "/v1/worlds", &made).await;
    assert_eq!(made.status, 201, "{}", made.text());
    for (request, to) in [("r-1", None), ("r-2", Some(&["Dora"][..]))] {
        let hello = beat(request, "Carl", "hello", to);
        let path = "/v1/worlds/open/beats?as=Carl";
        let written = team.post(Kind::Owner, path, &hello).await;
        assert_eq!(written.status, 200, "{}", written.text());
    }
    let search_by = async |query: &str, reader: &str, author: &str| {
        let mut request = search(reader, reader, "hello");
        request["tool"]["constraints"] = json!({ "person_id": author });
        let path = format!("/v1/worlds/open/tools{query}");
        team.post(Kind::Owner, &path, &request).await
    };
    for (author, count) in [("Carl", 1), ("GEORGE", 0), ("WORLD", 0)] {
        let found = search_by("", "GEORGE", author).await;
        assert_eq!(found.status, 200, "{}", found.text());
        let found = found.json();
        assert_eq!(
            found["results"].as_array().unwrap().len(),
            count,
            "{author}"
        );
    }
    // Dora is named in a hidden entry only. For the operator she is as unknown as a typo.
    for author in ["Karl", "carl", "Dora", "no one", ""] {
        let reply = search_by("", "GEORGE", author).await;
        refused(&reply, 404, "NotFound", author);
        let message = reply.json()["error"]["message"].clone();
        let expect = format!(
            "there is no person `{author}` in open; there are: Carl, Operator (the operator)"
        );
        assert_eq!(message, expect.as_str());
    }
    // A new reader has written nothing, but knows itself.
    let own = search_by("?as=Dora", "Dora", "Dora").await;
    assert_eq!(own.status, 200, "{}", own.text());
    let reply = search_by("?as=Dora", "Dora", "Karl").await;
    let message = reply.json()["error"]["message"].clone();
    assert_eq!(
        message,
        "there is no person `Karl` in open; there are: Carl, Dora, Operator (the operator)"
    );
    team.stop().await;
}
