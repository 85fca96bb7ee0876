//! Acting as somebody and reading as the audit: both leave their line, and neither shows more than
//! it may.

use serde_json::{Value, json};

use super::{Kind, Team, beat, refused};

#[tokio::test]
async fn p21_acting_as_and_audit_reads_are_in_the_audit_and_as_shows_no_more() {
    let team = Team::start().await;
    team.say("r-1", "hello everyone").await;
    team.write("r-2", "for ANN alone", Some(&["ANN"])).await;
    team.write("r-3", "for the operator", Some(&["GEORGE"]))
        .await;
    let texts = async |path: &str, kind| {
        let reply = team.get(kind, path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let entries = reply.json()["stream"]["entries"]
            .as_array()
            .unwrap()
            .clone();
        entries
            .iter()
            .map(|entry| entry["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts("/v1/worlds/team/stream", Kind::Owner).await,
        ["hello everyone", "for the operator"]
    );
    let ann = texts("/v1/worlds/team/stream", Kind::Reader).await;
    assert_eq!(ann, ["hello everyone", "for ANN alone"]);
    let before = team.lines().await.len();
    assert_eq!(
        texts("/v1/worlds/team/stream?as=ANN", Kind::Owner).await,
        ann
    );
    let everything = texts("/v1/worlds/team/stream?audit=1", Kind::Owner).await;
    assert_eq!(
        everything,
        ["hello everyone", "for ANN alone", "for the operator"]
    );
    let written = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/beats?as=BOB",
            &beat("r-4", "BOB", "hi", None),
        )
        .await;
    assert_eq!(written.status, 200, "{}", written.text());
    let lines = team.lines().await;
    let new: Vec<_> = lines[before..]
        .iter()
        .map(|(what, details)| (what.as_str(), details["person"].clone()))
        .collect();
    assert_eq!(
        new,
        [
            ("acting-as", json!("ANN")),
            ("audit-read", json!("")),
            ("acting-as", json!("BOB"))
        ]
    );
    for (path, status, word) in [
        ("/v1/worlds/team/stream?as=CARL", 404, "NotFound"),
        ("/v1/worlds/team/stream?as=GEORGE", 404, "NotFound"),
        ("/v1/worlds/team/stream?as=ANN&audit=1", 400, "BadRequest"),
        ("/v1/worlds/team/stream?audit=yes", 400, "BadRequest"),
        ("/v1/worlds/team/subscribe?audit=1", 400, "BadRequest"),
    ] {
        refused(&team.get(Kind::Owner, path).await, status, word, path);
    }
    let audit_write = team
        .post(
            Kind::Owner,
            "/v1/worlds/team/beats?audit=1",
            &beat("r-5", "BOB", "hi", None),
        )
        .await;
    refused(&audit_write, 400, "BadRequest", "audit reads only");
    assert_eq!(
        team.lines().await.len(),
        lines.len(),
        "what is refused leaves no line"
    );
    team.stop().await;
}

#[tokio::test]
async fn an_auditor_goes_on_from_the_end_of_the_last_page() {
    let team = Team::start().await;
    let page = async |cursor: &Value| {
        let rest = cursor
            .as_str()
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
        let reply = team
            .get(
                Kind::Owner,
                &format!("/v1/worlds/team/stream?audit=1&limit=2{rest}"),
            )
            .await;
        let stream = reply.json()["stream"].clone();
        (
            stream["entries"].as_array().unwrap().len(),
            stream["cursor_after"].clone(),
        )
    };
    assert_eq!(
        page(&Value::Null).await,
        (0, Value::Null),
        "nothing was ever written"
    );
    for number in 0..3 {
        team.say(&format!("r-{number}"), "hello").await;
    }
    let (first, next) = page(&Value::Null).await;
    let (second, end) = page(&next).await;
    assert_eq!((first, second, page(&end).await), (2, 1, (0, end.clone())));
    team.write("r-9", "for ANN alone", Some(&["ANN"])).await;
    assert_eq!(page(&end).await.0, 1);
    team.stop().await;
}

#[tokio::test]
async fn an_entry_that_is_hidden_and_one_that_there_is_not_are_one_answer() {
    let team = Team::start().await;
    let written = team
        .write("r-1", "for the operator", Some(&["GEORGE"]))
        .await;
    let hidden = written["bundle"]["entries"][0]["entry_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let none = "e_00000000000000000000000000";
    let entry = |id: &str| format!("/v1/worlds/team/entries/{id}");
    let (a, b) = (
        team.get(Kind::Reader, &entry(&hidden)).await,
        team.get(Kind::Reader, &entry(none)).await,
    );
    refused(&a, 404, "NotFound", "hidden");
    assert_eq!((a.status, a.text()), (b.status, b.text()));
    let seen = team.get(Kind::Owner, &entry(&hidden)).await;
    assert_eq!(
        (seen.status, &seen.json()["text"]),
        (200, &json!("for the operator"))
    );
    let audited = team
        .get(Kind::Owner, &format!("{}?audit=1", entry(&hidden)))
        .await;
    assert_eq!(audited.json(), seen.json());
    team.stop().await;
}

#[tokio::test]
async fn who_knew_what_and_when() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    team.write("r-2", "the blocker", Some(&["GEORGE"])).await;
    let views = |rest: &str| format!("/v1/worlds/team/views/{rest}");
    let own = team.get(Kind::Reader, &views("ANN")).await.json();
    assert_eq!(
        (own["count"].as_u64(), own["entries"][0]["text"].as_str()),
        (Some(1), Some("hello"))
    );
    let difference = team
        .get(Kind::Owner, &views("ANN?vs=GEORGE&audit=1"))
        .await
        .json();
    assert_eq!(difference["only_view"], json!([]));
    assert_eq!(difference["only_vs"][0]["text"], "the blocker");
    assert_eq!(
        difference["only_vs"][0]["visibility"]["visible_to"],
        json!(["GEORGE"])
    );
    let early = team
        .get(Kind::Owner, &views("GEORGE?as_of=2020-01-01T00:00:00Z"))
        .await
        .json();
    assert_eq!(early["count"], 0);
    refused(
        &team.get(Kind::Owner, &views("ANN")).await,
        403,
        "VIEW_FORBIDDEN",
        "without audit",
    );
    refused(
        &team.get(Kind::Reader, &views("ANN?as_of=soon")).await,
        400,
        "BAD_CURSOR",
        "as_of",
    );
    team.stop().await;
}

#[tokio::test]
async fn the_audit_never_shows_a_secret() {
    let team = Team::start().await;
    let lines = team
        .get(Kind::Owner, "/v1/worlds/team/audit/lines")
        .await
        .text();
    let tokens = team.get(Kind::Owner, "/v1/worlds/team/tokens").await.text();
    for kind in [Kind::Reader, Kind::Writer] {
        let secret = team.token(kind).unwrap();
        let hash = blake3::hash(secret.as_bytes()).to_hex();
        for text in [&lines, &tokens] {
            assert!(
                !text.contains(secret) && !text.contains(hash.as_str()),
                "{text}"
            );
        }
    }
    assert!(
        lines.contains("token-minted") && lines.contains("token-revoked"),
        "{lines}"
    );
    team.stop().await;
}
