//! Written entries stay: no route changes them, an edit of the files is found, and a failing disk
//! is an error and never an empty stream.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_journal::storage::Fault;
use turnkeep_journal::{FaultyStorage, MemoryStorage, Storage};
use turnkeep_store::salvage;

use super::{Kind, Team, envelope, no_op, refused};
use crate::client::Server;

#[tokio::test]
async fn n12_no_route_changes_or_removes_an_entry() {
    let team = Team::start().await;
    let said = team.say("r-1", "As it was said.").await;
    let entry = said["stream"]["entries"][0]["entry_id"].as_str().unwrap();
    let bundle = said["debug"]["bundle_id"].as_str().unwrap();
    let before = (
        team.recorded(),
        team.get(Kind::Owner, "/v1/worlds/team/stream").await.body,
    );
    let change = json!({ "text": "As it was never said.", "visibility": { "scope": "PRIVATE", "visible_to": ["BOB"] } });
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        for path in [
            format!("/v1/worlds/team/entries/{entry}"),
            format!("/v1/worlds/team/entries/{bundle}"),
            "/v1/worlds/team/entries".to_owned(),
            "/v1/worlds/team/stream".to_owned(),
            format!("/v1/worlds/team/bundles/{bundle}"),
        ] {
            // A route that a person may not use is refused before the object is looked up.
            for (kind, wanted) in [
                (Kind::Owner, &[404, 405][..]),
                (Kind::Writer, &[403, 404, 405]),
            ] {
                let reply = team.call(kind, method, &path).json(&change).send().await;
                assert!(
                    wanted.contains(&reply.status),
                    "{kind:?} {method} {path}: {}",
                    reply.text()
                );
            }
        }
    }
    assert_eq!(
        before,
        (
            team.recorded(),
            team.get(Kind::Owner, "/v1/worlds/team/stream").await.body
        )
    );
    team.stop().await;
}

#[tokio::test]
async fn n12_every_route_that_changes_something_is_known() {
    let team = Team::start().await;
    let document = team.get(Kind::Owner, "/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let mut changing = Vec::new();
    for (path, methods) in paths
        .iter()
        .filter(|(path, _)| path.starts_with("/v1/worlds"))
    {
        let methods = methods.as_object().unwrap().keys();
        changing.extend(
            methods
                .filter(|word| !["get", "post", "parameters"].contains(&word.as_str()))
                .map(|word| format!("{word} {path}")),
        );
    }
    changing.sort();
    assert_eq!(
        changing,
        [
            "delete /v1/worlds/{world}/tokens/{token}",
            "patch /v1/worlds/{world}"
        ]
    );
    team.stop().await;
}

/// A disk on which one byte of a text was changed.
fn edited(disk: &MemoryStorage, text: &str) -> MemoryStorage {
    let mut files = disk.files();
    let mut places = 0;
    for bytes in files.values_mut() {
        let found = bytes
            .windows(text.len())
            .position(|window| window == text.as_bytes());
        if let Some(place) = found {
            bytes[place] ^= 1;
            places += 1;
        }
    }
    assert_eq!(places, 1, "the text is in one file");
    MemoryStorage::with_files(files)
}

#[tokio::test]
async fn n12_an_edit_of_the_files_is_found_by_verify() {
    let disk = MemoryStorage::new();
    let server = Server::start_on(disk.clone(), |_| {}).await;
    for (id, text) in [
        ("r-1", "Ship it."),
        ("r-2", "Needle in the log."),
        ("r-3", "Done."),
    ] {
        let said = server
            .post("/invocations", &envelope(id, text))
            .send()
            .await;
        assert_eq!(said.status, 200, "{}", said.text());
    }
    server.stop().await;
    let check = |disk: MemoryStorage| {
        let storage: Arc<dyn Storage> = Arc::new(disk);
        salvage::verify(&storage, salvage::Writers::None, |_, _| {}).unwrap()
    };
    assert!(check(disk.clone()).is_sound());
    let report = check(edited(&disk, "Needle in the log."));
    assert!(!report.is_sound() && report.torn.is_none(), "{report:?}");
    assert_eq!(
        report.bad_blobs.len() + report.damage.len(),
        1,
        "{report:?}"
    );
}

/// Operations of the disk that come after a start and a few beats.
const LATER: u64 = 60;
/// More beats than reach them.
const BEATS_MAX: usize = 300;

#[tokio::test]
async fn n30_a_failing_store_is_an_error_and_never_an_empty_stream() {
    for (fault, status) in [
        (Fault::FailedSync, 503),
        (Fault::Crash, 503),
        (Fault::NoSpace, 507),
    ] {
        let server = Server::start_on(FaultyStorage::new(Some((LATER, fault))), |_| {}).await;
        let mut said = Vec::new();
        let failed = loop {
            let id = format!("r-{}", said.len());
            let reply = server
                .post("/invocations", &envelope(&id, &id))
                .send()
                .await;
            if reply.status != 200 {
                break reply;
            }
            said.push(id);
            assert!(said.len() < BEATS_MAX, "{fault:?}: the disk never failed");
        };
        assert_eq!(failed.status, status, "{fault:?}: {}", failed.text());
        assert!(
            failed.json()["error"]["code"].is_string() && failed.json().get("stream").is_none()
        );
        let mut count = no_op("x");
        count["ui"] = Value::Null;
        for reply in [
            server.post("/invocations", &count).send().await,
            server.get("/v1/worlds/default/stream").send().await,
        ] {
            assert_eq!(reply.status, 200, "{fault:?}: {}", reply.text());
            let page = reply.json();
            let shown: Vec<_> = page["stream"]["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| e["text"].as_str().unwrap())
                .collect();
            assert_eq!(
                shown, said,
                "{fault:?}: what was answered is shown, and nothing else"
            );
        }
        let retry = server
            .post(
                "/invocations",
                &envelope(&format!("r-{}", said.len()), "again"),
            )
            .send()
            .await;
        match fault {
            Fault::NoSpace => {
                assert_eq!(retry.status, 200, "a request that failed left its id free");
            }
            _ => refused(&retry, 503, "Unavailable", fault),
        }
        server.stop().await;
    }
}
