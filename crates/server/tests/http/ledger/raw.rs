//! The store's own routes to a world's contexts: nothing is written past the ledger, and reading
//! leaves a line.

use serde_json::{Value, json};

use turnkeep_types::BlobHash;

use super::{Kind, Team, refused};
use crate::fs::tree;

pub(super) async fn contexts(team: &Team) -> Vec<String> {
    let page = team
        .get(Kind::Owner, "/v1/contexts?label=turnkeep.ledger.world=team")
        .await
        .json();
    let contexts = page["contexts"].as_array().unwrap().iter();
    contexts
        .map(|context| context["context_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn nothing_is_written_to_a_world_past_its_ledger() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let contexts = contexts(&team).await;
    assert_eq!(contexts.len(), 3);
    let before = team.recorded();
    for context in &contexts {
        let turn = json!({ "type_id": "x", "type_version": 1, "payload_b64": "wA==" });
        for path in ["turns", "append"] {
            let reply = team
                .post(
                    Kind::Owner,
                    &format!("/v1/contexts/{context}/{path}"),
                    &turn,
                )
                .await;
            refused(&reply, 403, "Forbidden", path);
            assert_eq!(reply.json()["error"]["details"]["world_id"], "team");
        }
        let patch = team.call(Kind::Owner, "PATCH", &format!("/v1/contexts/{context}"));
        refused(
            &patch.json(&json!({ "labels": {} })).send().await,
            403,
            "Forbidden",
            "labels",
        );
    }
    // Nor can anybody make a context that passes for a world's.
    for body in [
        json!({ "labels": { "turnkeep.ledger.world": "team" } }),
        json!({ "idempotency_key": "turnkeep.ledger:new:REALITY" }),
    ] {
        refused(
            &team.post(Kind::Owner, "/v1/contexts", &body).await,
            403,
            "Forbidden",
            &body,
        );
    }
    assert_eq!(team.recorded(), before);
    team.stop().await;
}

#[tokio::test]
async fn a_blob_that_is_a_world_s_record_is_read_with_a_line_there_and_no_other_is() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let mut hashes = Vec::new();
    for context in contexts(&team).await {
        let turns = team.server.store.last(context.parse().unwrap(), 1).unwrap();
        hashes.extend(turns.iter().map(|turn| turn.hash));
    }
    assert!(hashes.len() > 1);
    let count = async |how: &str| {
        let lines = team.lines().await;
        lines
            .iter()
            .filter(|(what, details)| what == "store-read" && details["how"] == how)
            .count()
    };
    let mut record = Vec::new();
    for (read, hash) in hashes.iter().enumerate() {
        let blob = team.get(Kind::Owner, &format!("/v1/blobs/{hash}")).await;
        assert_eq!((blob.status, count("blob").await), (200, read + 1));
        record = blob.body.to_vec();
    }
    // The same bytes by another route, and bytes that are no record.
    let context = team
        .post(Kind::Owner, "/v1/contexts", &json!({}))
        .await
        .json();
    let context = context["context_id"].as_str().unwrap().to_owned();
    let tree = tree(&[("record", 0, 0o644, &record)]);
    for bytes in [tree.clone(), b"\x80".to_vec(), b"\x81\x01\xa3abc".to_vec()] {
        let path = format!("/v1/blobs/{}", BlobHash::of(&bytes));
        assert_eq!(
            team.call(Kind::Owner, "PUT", &path)
                .body(bytes)
                .send()
                .await
                .status,
            201
        );
        assert_eq!(team.get(Kind::Owner, &path).await.status, 200);
    }
    assert_eq!(count("blob").await, hashes.len());
    let body = json!({ "payload_b64": "gA==", "fs_root_hash": BlobHash::of(&tree).to_string() });
    let turn = team
        .post(Kind::Owner, &format!("/v1/contexts/{context}/turns"), &body)
        .await;
    assert_eq!(turn.status, 201, "{}", turn.text());
    let path = format!(
        "/v1/turns/{}/fs/record",
        turn.json()["turn_id"].as_str().unwrap()
    );
    assert_eq!(team.get(Kind::Owner, &path).await.status, 200);
    assert_eq!(count("blob").await, hashes.len() + 1);
    team.stop().await;
}

#[tokio::test]
async fn a_raw_read_leaves_a_line_also_through_a_fork() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let count = async || {
        let lines = team.lines().await;
        lines
            .iter()
            .filter(|(what, _)| what == "store-read")
            .count()
    };
    let contexts = contexts(&team).await;
    let page = team
        .get(Kind::Owner, &format!("/v1/contexts/{}/turns", contexts[2]))
        .await;
    assert_eq!((page.status, count().await), (200, 1), "{}", page.text());
    let turn = page.json()["turns"][0]["turn_id"]
        .as_str()
        .unwrap()
        .to_owned();
    team.get(Kind::Owner, &format!("/v1/turns/{turn}")).await;
    assert_eq!(count().await, 2);
    let fork = team
        .post(
            Kind::Owner,
            "/v1/contexts/fork",
            &json!({ "base_turn_id": turn }),
        )
        .await
        .json();
    let fork = Value::as_str(&fork["context_id"]).unwrap().to_owned();
    team.get(Kind::Owner, &format!("/v1/contexts/{fork}/turns"))
        .await;
    assert_eq!(count().await, 3);
    drop(team.follow(Kind::Owner, "/v1/events").await);
    drop(
        team.follow(Kind::Owner, &format!("/v1/contexts/{}/events", contexts[0]))
            .await,
    );
    drop(team.follow(Kind::Owner, "/v1/export").await);
    assert_eq!(count().await, 6);
    team.stop().await;
}

#[tokio::test]
async fn the_contexts_of_worlds_are_listed_and_counted_when_they_are_asked_for() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let own = team
        .post(
            Kind::Owner,
            "/v1/contexts",
            &json!({ "labels": { "mine": "yes" } }),
        )
        .await
        .json();
    let list = async |query: &str| {
        let page = team
            .get(Kind::Owner, &format!("/v1/contexts{query}"))
            .await
            .json();
        page["contexts"].as_array().unwrap().clone()
    };
    let all = list("").await;
    assert_eq!(list("?worlds=1").await, all);
    assert_eq!(list("?worlds=0").await, [own]);
    assert_eq!(
        list("?worlds=false&label=turnkeep.ledger.world").await,
        [] as [Value; 0]
    );
    let stats = team.get(Kind::Owner, "/v1/stats").await.json();
    assert_eq!(stats["contexts"], all.len());
    assert_eq!(stats["world_contexts"], all.len() - 1);
    team.stop().await;
}
