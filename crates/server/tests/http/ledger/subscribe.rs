//! Following a view: it resumes at a cursor, sends nothing about hidden entries, and ends with the
//! token.

use serde_json::{Value, json};

use super::{Kind, Team, refused};
use crate::client::within;

fn parsed(event: &str) -> (String, Value) {
    let line = |name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{event}")).to_owned()
    };
    assert_eq!(line("event: "), "projection");
    (line("id: "), serde_json::from_str(&line("data: ")).unwrap())
}

#[tokio::test]
async fn a_subscription_resumes_behind_the_last_event_and_repeats_nothing() {
    let team = Team::start().await;
    team.say("r-1", "one").await;
    let mut stream = team.follow(Kind::Reader, "/v1/worlds/team/subscribe").await;
    let (id, page) = parsed(&stream.event().await.unwrap());
    assert_eq!(page["stream"]["entries"][0]["text"], "one");
    assert_eq!(page["stream"]["cursor_after"], id);
    drop(stream);
    team.say("r-2", "two").await;
    let call = team
        .call(Kind::Reader, "GET", "/v1/worlds/team/subscribe")
        .header("last-event-id", &id);
    let mut stream = call.stream().await;
    let (_, page) = parsed(&stream.event().await.unwrap());
    assert_eq!(page["stream"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(page["stream"]["entries"][0]["text"], "two");
    team.say("r-3", "three").await;
    let (_, page) = parsed(&stream.event().await.unwrap());
    assert_eq!(page["stream"]["entries"][0]["text"], "three");
    // A cursor is its bearer's.
    let path = format!("/v1/worlds/team/subscribe?cursor={id}");
    refused(
        &team.get(Kind::Writer, &path).await,
        400,
        "BAD_CURSOR",
        "another view's cursor",
    );
    team.stop().await;
}

#[tokio::test]
async fn what_is_hidden_sends_nothing() {
    let team = Team::start().await;
    let mut stream = team.follow(Kind::Reader, "/v1/worlds/team/subscribe").await;
    team.write("r-1", "for the operator", Some(&["GEORGE"]))
        .await;
    team.write("r-2", "for all", None).await;
    let (id, page) = parsed(&stream.event().await.unwrap());
    assert_eq!(page["stream"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(page["stream"]["entries"][0]["text"], "for all");
    let resumed = team
        .get(Kind::Reader, &format!("/v1/worlds/team/stream?cursor={id}"))
        .await
        .json();
    assert_eq!(resumed["stream"]["entries"], serde_json::json!([]));
    team.stop().await;
}

#[tokio::test]
async fn entries_say_who_may_see_them_where_it_is_asked_for() {
    let team = Team::start().await;
    team.say("r-1", "for all").await;
    team.write("r-2", "for two", Some(&["ANN", "GEORGE"])).await;
    let expect = [
        json!({ "scope": "PUBLIC", "visible_to": [] }),
        json!({ "scope": "PRIVATE", "visible_to": ["ANN", "GEORGE"] }),
    ];
    let audiences = |page: &Value| -> Vec<Value> {
        let entries = page["stream"]["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry.get("visibility").cloned().unwrap_or_default())
            .collect()
    };
    for kind in [Kind::Owner, Kind::Reader, Kind::Writer] {
        let asked = team
            .get(kind, "/v1/worlds/team/stream?audience=1")
            .await
            .json();
        assert_eq!(audiences(&asked), expect, "{kind:?}");
        for plain in ["", "?audience=0"] {
            let page = team
                .get(kind, &format!("/v1/worlds/team/stream{plain}"))
                .await
                .json();
            assert_eq!(audiences(&page), [Value::Null, Value::Null], "{kind:?}");
        }
    }
    let mut stream = team
        .follow(Kind::Reader, "/v1/worlds/team/subscribe?audience=1")
        .await;
    let mut plain = team.follow(Kind::Reader, "/v1/worlds/team/subscribe").await;
    let (_, page) = parsed(&stream.event().await.unwrap());
    assert_eq!(audiences(&page), expect);
    let (_, page) = parsed(&plain.event().await.unwrap());
    assert_eq!(audiences(&page), [Value::Null, Value::Null]);
    let reply = team
        .get(Kind::Reader, "/v1/worlds/team/stream?audience=all")
        .await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    team.stop().await;
}

#[tokio::test]
async fn subscribers_with_the_same_eyes_get_the_same_events_and_others_their_own() {
    let team = Team::start().await;
    team.say("r-0", "before").await;
    let mut readers = Vec::new();
    for kind in [
        Kind::Reader,
        Kind::Reader,
        Kind::Reader,
        Kind::Writer,
        Kind::Owner,
        Kind::Owner,
    ] {
        readers.push((kind, team.follow(kind, "/v1/worlds/team/subscribe").await));
    }
    team.write("r-1", "for the operator", Some(&["GEORGE"]))
        .await;
    for round in 0..5 {
        team.write(&format!("p-{round}"), &format!("public {round}"), None)
            .await;
    }
    for (kind, stream) in &mut readers {
        let mut texts: Vec<String> = Vec::new();
        while texts.last().is_none_or(|text| text != "public 4") {
            let (id, page) = parsed(&within(stream.event()).await.unwrap());
            assert_eq!(page["stream"]["cursor_after"], id);
            let entries = page["stream"]["entries"].as_array().unwrap();
            texts.extend(
                entries
                    .iter()
                    .map(|entry| entry["text"].as_str().unwrap().to_owned()),
            );
        }
        let mut expect: Vec<String> = (0..5).map(|round| format!("public {round}")).collect();
        if !matches!(kind, Kind::Reader) {
            expect.insert(0, "for the operator".to_owned());
        }
        expect.insert(0, "before".to_owned());
        assert_eq!(texts, expect, "{kind:?}");
    }
    team.stop().await;
}

/// How many pages the server made for subscribers so far.
async fn pages_made(team: &Team) -> usize {
    let text = team.get(Kind::Owner, "/metrics").await.text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("turnkeep_stream_pages_total "));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[tokio::test]
async fn a_page_is_made_once_for_each_view() {
    let team = Team::start().await;
    team.say("r-0", "before").await;
    let mut streams = Vec::new();
    for kind in [Kind::Reader, Kind::Writer] {
        for _ in 0..10 {
            streams.push(team.follow(kind, "/v1/worlds/team/subscribe").await);
        }
    }
    let mut before = 0;
    for (round, text) in ["before", "one", "two"].into_iter().enumerate() {
        if round > 0 {
            team.say(&format!("r-{round}"), text).await;
        }
        for stream in &mut streams {
            let (_, page) = parsed(&within(stream.event()).await.unwrap());
            assert_eq!(page["stream"]["entries"][0]["text"], text);
        }
        let made = pages_made(&team).await;
        assert_eq!(made - before, 2, "one for ANN and one for BOB, not 20");
        before = made;
    }
    team.stop().await;
}

#[tokio::test]
async fn a_subscription_ends_when_its_token_is_revoked() {
    let team = Team::start().await;
    team.say("r-1", "one").await;
    let mut stream = team.follow(Kind::Reader, "/v1/worlds/team/subscribe").await;
    stream.event().await.unwrap();
    let tokens = team.get(Kind::Owner, "/v1/worlds/team/tokens").await.json();
    for token in tokens["tokens"].as_array().unwrap() {
        let path = format!(
            "/v1/worlds/team/tokens/{}",
            token["token_id"].as_str().unwrap()
        );
        assert_eq!(
            team.call(Kind::Owner, "DELETE", &path).send().await.status,
            204
        );
    }
    team.say("r-2", "two").await;
    assert_eq!(within(stream.event()).await, None);
    assert_eq!(
        team.get(Kind::Reader, "/v1/worlds/team/stream")
            .await
            .status,
        401
    );
    team.stop().await;
}
