//! What a person may not do, however it asks.

use serde_json::{Value, json};
use turnkeep_journal::MemoryStorage;
use turnkeep_server::UiFiles;

use super::{Kind, Team, beat, envelope, no_op, refused, search};

/// Envelopes in which somebody speaks as the operator.
fn spoken(request: &str) -> Vec<Value> {
    let with = |field: &str, value: Value| {
        let mut envelope = envelope(request, "");
        envelope["declared_overrides"] = match field {
            "pause_time" => json!({ "pause_time": value }),
            field => json!({ "time": { field: value } }),
        };
        envelope
    };
    let mut nameless = envelope(request, "Ship it.");
    nameless["request_id"] = json!(7);
    vec![
        envelope(request, "Ship it."),
        // The caller is checked first; other faults of the request do not matter then.
        nameless,
        with("declared_world_time", json!("bad")),
        with("declared_world_time", json!(7)),
        with("timezone", json!("Nowhere")),
        with("pause_time", json!("yes")),
        with("declared_world_time", json!("2031-01-01T00:00:00Z")),
        with("timezone", json!("Europe/Berlin")),
        with("pause_time", json!(true)),
    ]
}

#[tokio::test]
async fn n33_a_person_cannot_speak_as_the_operator_on_any_route() {
    let team = Team::start().await;
    let before = team.recorded();
    for (number, envelope) in spoken("n33").into_iter().enumerate() {
        for kind in [Kind::Reader, Kind::Writer] {
            let reply = team
                .post(kind, "/v1/worlds/team/invocations", &envelope)
                .await;
            refused(&reply, 403, "OPERATOR_FORBIDDEN", (kind, number));
            let mut reading = envelope.clone();
            reading["mode"]["kind"] = "NO_OP".into();
            let reply = team
                .post(kind, "/v1/worlds/team/invocations", &reading)
                .await;
            refused(&reply, 403, "OPERATOR_FORBIDDEN", (kind, number));
            let mut beat = beat("n33", kind.actor(), "hello", None);
            beat["envelope"] = envelope.clone();
            for path in ["/v1/worlds/team/beats", "/v1/worlds/team/proposals/check"] {
                refused(
                    &team.post(kind, path, &beat).await,
                    403,
                    "OPERATOR_FORBIDDEN",
                    (kind, number, path),
                );
            }
        }
        let reply = team
            .post(Kind::Owner, "/v1/worlds/team/invocations?as=BOB", &envelope)
            .await;
        refused(&reply, 403, "OPERATOR_FORBIDDEN", number);
    }
    for kind in [Kind::Reader, Kind::Writer] {
        let reply = team
            .post(kind, "/v1/worlds/team/invocations", &envelope("n33", ""))
            .await;
        refused(&reply, 403, "Forbidden", kind);
        for path in ["/v1/worlds/else/stream", "/v1/worlds/else/audit/lines"] {
            refused(&team.get(kind, path).await, 404, "NotFound", (kind, path));
        }
        for path in [
            "/v1/worlds/team/audit/lines",
            "/v1/contexts",
            "/v1/turns/1",
            "/v1/export",
            "/v1/events",
        ] {
            refused(&team.get(kind, path).await, 403, "Forbidden", (kind, path));
        }
    }
    // Acting as BOB left its lines; nothing else was recorded, and the id is free.
    assert_eq!(team.recorded(), before + spoken("").len() as u64);
    team.say("n33", "Ship it.").await;
    team.stop().await;
}

#[tokio::test]
async fn an_actor_that_the_token_is_not_is_refused() {
    let team = Team::start().await;
    let as_ann = beat("r", "ANN", "hello", None);
    let reply = team
        .post(Kind::Writer, "/v1/worlds/team/beats", &as_ann)
        .await;
    assert_eq!(reply.status, 422);
    assert_eq!(
        reply.json()["bundle"]["rejection"]["reason"],
        "ACTOR_MISMATCH: proposed_by.actor"
    );
    for (view, status, word) in [
        ("ANN", 403, "VIEW_FORBIDDEN"),
        ("omniscient", 403, "VIEW_FORBIDDEN"),
        ("GEORGE", 403, "VIEW_FORBIDDEN"),
    ] {
        let reply = team
            .post(
                Kind::Writer,
                "/v1/worlds/team/tools",
                &search("BOB", view, "x"),
            )
            .await;
        refused(&reply, status, word, view);
    }
    let reply = team
        .post(
            Kind::Writer,
            "/v1/worlds/team/tools",
            &search("ANN", "ANN", "x"),
        )
        .await;
    refused(&reply, 403, "ACTOR_MISMATCH", "actor");
    for query in ["?as=BOB", "?as=CARL", "?audit=1"] {
        let reply = team
            .get(Kind::Reader, &format!("/v1/worlds/team/stream{query}"))
            .await;
        refused(&reply, 403, "Forbidden", query);
    }
    refused(
        &team.get(Kind::Reader, "/v1/worlds/team/views/BOB").await,
        403,
        "VIEW_FORBIDDEN",
        "view",
    );
    refused(
        &team
            .get(Kind::Reader, "/v1/worlds/team/views/ANN?vs=BOB")
            .await,
        403,
        "VIEW_FORBIDDEN",
        "vs",
    );
    team.stop().await;
}

#[tokio::test]
async fn a_request_id_belongs_to_its_caller_and_its_words() {
    let team = Team::start().await;
    team.write("r-18", "hello", None).await;
    let again = team
        .post(
            Kind::Writer,
            "/v1/worlds/team/beats",
            &beat("r-18", "BOB", "hello", None),
        )
        .await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (200, Some("true"))
    );
    let other = team
        .post(
            Kind::Writer,
            "/v1/worlds/team/beats",
            &beat("r-18", "BOB", "bye", None),
        )
        .await;
    refused(&other, 409, "REQUEST_ID_REUSED", "words");
    let other = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/invocations",
            &envelope("r-18", "hello"),
        )
        .await;
    refused(&other, 403, "REQUEST_ID_FOREIGN", "caller");
    team.stop().await;
}

#[tokio::test]
async fn what_only_reads_says_that_it_ignored_what_was_said() {
    let team = Team::start().await;
    let before = team.recorded();
    let mut reading = no_op("n06");
    reading["operator"]["input_text"] = "hello".into();
    let reply = team
        .post(Kind::Owner, "/v1/worlds/team/invocations", &reading)
        .await;
    assert_eq!(
        (reply.status, reply.header("input-ignored")),
        (200, Some("true"))
    );
    assert_eq!(
        team.post(Kind::Reader, "/v1/worlds/team/invocations", &no_op("n06"))
            .await
            .header("input-ignored"),
        None
    );
    assert_eq!(team.recorded(), before);
    team.stop().await;
}

#[tokio::test]
async fn a_dry_run_gives_the_verdict_and_nothing_else() {
    let team = Team::start().await;
    let before = team.recorded();
    let good = beat("dry", "BOB", "hello", None);
    let reply = team
        .post(Kind::Writer, "/v1/worlds/team/proposals/check", &good)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(
        reply.json()["bundle"]["rejection"],
        json!({ "rejected": false, "reason": null })
    );
    assert_eq!(reply.json()["bundle"]["bundle_id"], Value::Null);
    let mut bad = good.clone();
    bad["bundle"]["entries"][0]["text"] = " ".into();
    let dry = team
        .post(Kind::Writer, "/v1/worlds/team/proposals/check", &bad)
        .await;
    assert_eq!(dry.status, 422, "{}", dry.text());
    assert_eq!(team.recorded(), before);
    let real = team.post(Kind::Writer, "/v1/worlds/team/beats", &bad).await;
    assert_eq!(real.status, 422);
    assert_eq!(real.json()["bundle"], dry.json()["bundle"]);
    // Once it is decided, the dry run says the same.
    let dry = team
        .post(Kind::Writer, "/v1/worlds/team/proposals/check", &bad)
        .await;
    assert_eq!(real.json()["bundle"], dry.json()["bundle"]);
    team.stop().await;
}

#[tokio::test]
async fn a_dry_run_does_not_reveal_whether_a_request_id_was_used() {
    let team = Team::start().await;
    team.post(
        Kind::Owner,
        "/v1/worlds/team/invocations",
        &envelope("used", "by the operator"),
    )
    .await;
    let check = async |id: &str| {
        let dry = beat(id, "BOB", "hello", None);
        let reply = team
            .post(Kind::Writer, "/v1/worlds/team/proposals/check", &dry)
            .await;
        let named: Vec<_> = reply.headers.keys().map(ToString::to_string).collect();
        (reply.status, named, reply.text().replace(id, "ID"))
    };
    assert_eq!(check("used").await, check("free").await);
    // Sent for good, the used id is refused, so the dry run had something to reveal.
    let real = team
        .post(
            Kind::Writer,
            "/v1/worlds/team/beats",
            &beat("used", "BOB", "hello", None),
        )
        .await;
    refused(&real, 403, "REQUEST_ID_FOREIGN", "used");
    team.stop().await;
}

#[tokio::test]
async fn bodies_are_read_strictly_and_within_bounds() {
    let team = Team::start().await;
    let twice = r#"{"request_id":"a","request_id":"b"}"#.to_owned();
    let deep = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    let checks = [
        (twice, "JSON_INVALID"),
        (deep, "JSON_INVALID"),
        ("{".to_owned(), "JSON_INVALID"),
        (r#"{"a":"\u0000"}"#.to_owned(), "TEXT_INVALID"),
    ];
    for (body, word) in checks {
        for path in ["invocations", "beats", "tools", "proposals/check"] {
            let call = team.call(Kind::Writer, "POST", &format!("/v1/worlds/team/{path}"));
            refused(&call.body(body.clone()).send().await, 400, word, path);
        }
    }
    let call = team
        .call(Kind::Writer, "POST", "/v1/worlds/team/beats")
        .header("content-length", "99999999999");
    assert_eq!(
        call.body("{}").stream().await.response.status().as_u16(),
        413
    );
    team.stop().await;
}

#[tokio::test]
async fn a_token_that_asks_too_often_is_told_to_wait_and_others_are_not() {
    let team = Team::start().await;
    let ask = async |kind: Kind| {
        let body = search(kind.actor(), "PUBLIC", "hello");
        team.post(kind, "/v1/worlds/team/tools", &body).await
    };
    for number in 0..600 {
        assert_eq!(ask(Kind::Reader).await.status, 200, "{number}");
    }
    let late = ask(Kind::Reader).await;
    refused(&late, 429, "TooManyRequests", "the 601st");
    let after: u64 = late.header("retry-after").unwrap().parse().unwrap();
    assert!(
        (1..=60).contains(&after),
        "the rest of the minute, not {after}"
    );
    assert_eq!(ask(Kind::Writer).await.status, 200);
    assert_eq!(ask(Kind::Owner).await.status, 200);
    team.stop().await;
}

#[tokio::test]
async fn a_person_gets_no_file_of_the_ui() {
    let files = UiFiles::Embedded(&[("index.html", b"page"), ("icon.svg", b"<svg/>")]);
    let team = Team::start_changed(MemoryStorage::new(), |config| config.ui = files).await;
    for (path, status) in [
        ("/", 403),
        ("/runs", 404),
        ("/icon.svg", 404),
        ("/signin", 403),
    ] {
        for kind in [Kind::Reader, Kind::Writer] {
            let reply = team.call(kind, "GET", path).header("accept", "text/html");
            assert_eq!(reply.send().await.status, status, "{kind:?} {path}");
        }
        let reply = team
            .call(Kind::Owner, "GET", path)
            .header("accept", "text/html");
        assert!(reply.send().await.status < 400, "{path}");
    }
    team.stop().await;
}
