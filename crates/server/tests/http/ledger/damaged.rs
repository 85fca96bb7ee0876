//! A world that cannot be read: every request for it gets an error, and nothing is written to it.

use serde_json::json;
use turnkeep_journal::MemoryStorage;
use turnkeep_server::{Auth, Token};
use turnkeep_store::{Append, AppendPart, Command, NewBlob, NewTurn};
use turnkeep_types::{ContextId, TypeRef};

use super::raw::contexts;
use super::{Kind, OWNER, Team, beat, refused};
use crate::client::Server;

/// Appends something to a context that is no record of a world's.
fn damage(team: &Team, context: &str) {
    let context: ContextId = context.parse().unwrap();
    let payload = NewBlob::from_raw(bytes::Bytes::from_static(b"\x80"), 16).unwrap();
    let turns = vec![NewTurn {
        declared: TypeRef::new("com.example.Foreign", 1),
        encoding: 1,
        payload,
        fs_root: None,
    }];
    let part = AppendPart {
        context,
        parent: None,
        expected_head: None,
        turns,
    };
    team.server
        .store
        .run(Command::Append(Append {
            parts: vec![part],
            key: None,
            strict: false,
        }))
        .unwrap();
}

/// The same team on the same disk after a restart.
async fn restarted(team: Team, disk: &MemoryStorage) -> Team {
    let Team { server, tokens } = team;
    server.stop().await;
    let server = Server::start_on(disk.clone(), |config| {
        config.auth = Auth::Token(Token::new(OWNER));
    })
    .await;
    Team { server, tokens }
}

#[tokio::test]
async fn n30_every_holder_of_a_token_is_told_that_a_world_cannot_be_read() {
    for (family, audit_is_read) in [(0, true), (1, true), (2, false)] {
        let disk = MemoryStorage::new();
        let mut team = Team::start_on(disk.clone()).await;
        team.write("r-1", "hello", None).await;
        // Newest first: reality, derived, audit as they were made.
        let contexts = contexts(&team).await;
        damage(&team, &contexts[family]);
        team = restarted(team, &disk).await;
        for kind in [Kind::Owner, Kind::Reader, Kind::Writer] {
            for path in ["/v1/worlds/team/stream", "/v1/worlds/team/seat"] {
                let reply = team.get(kind, path).await;
                assert_eq!(
                    reply.status,
                    503,
                    "{family} {kind:?} {path}: {}",
                    reply.text()
                );
                assert!(
                    reply.text().contains("turnkeep world verify"),
                    "{}",
                    reply.text()
                );
            }
        }
        let beat = team
            .post(
                Kind::Writer,
                "/v1/worlds/team/beats",
                &beat("r-2", "BOB", "x", None),
            )
            .await;
        assert_eq!(beat.status, 503);
        for kind in [Kind::Wrong, Kind::Revoked] {
            // Without the audit the server cannot know which tokens are valid.
            let status = if audit_is_read { 401 } else { 503 };
            assert_eq!(
                team.get(kind, "/v1/worlds/team/stream").await.status,
                status,
                "{family} {kind:?}"
            );
        }
        assert_eq!(
            team.get(Kind::Nobody, "/v1/worlds/team/stream")
                .await
                .status,
            401
        );
        assert_eq!(
            team.get(Kind::Foreign, "/v1/worlds/else/stream")
                .await
                .status,
            200,
            "the others work"
        );
        let report = team
            .get(Kind::Owner, "/v1/worlds/team/verify?leaks=1")
            .await;
        assert_eq!(report.status, 200, "{}", report.text());
        let report = report.json();
        assert_eq!(report["sound"], false);
        assert!(
            report["faults"][0]["what"]
                .as_str()
                .unwrap()
                .contains("com.example.Foreign"),
            "{report}"
        );
        for context in &contexts {
            let before = team.recorded();
            let turn = json!({ "type_id": "x", "type_version": 1, "payload_b64": "wA==" });
            let reply = team
                .post(
                    Kind::Owner,
                    &format!("/v1/contexts/{context}/append"),
                    &turn,
                )
                .await;
            refused(&reply, 403, "Forbidden", context);
            assert_eq!(team.recorded(), before);
            let raw = team
                .get(Kind::Reader, &format!("/v1/contexts/{context}/turns"))
                .await;
            assert!([401, 403, 503].contains(&raw.status), "{}", raw.text());
        }
        team.stop().await;
    }
}
