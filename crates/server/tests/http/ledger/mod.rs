//! The ledger as callers see it: every route with every kind of token, over real sockets.

mod audit;
mod binary;
mod damaged;
mod mcp;
mod mcp_budget;
mod payments;
mod principals;
mod raw;
mod rehydrations;
mod shapes;
mod subscribe;
mod table;
mod unchanged;
mod worlds;

use std::fmt;

use serde_json::{Value, json};
use turnkeep_journal::MemoryStorage;
use turnkeep_server::{Auth, ServerConfig, Token};
use turnkeep_types::Timestamp;

use crate::client::{Call, NOW_MS, Reply, Server, Stream};

pub(super) const OWNER: &str = "owner-secret";

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A caller without a token.
    Nobody,
    /// Somebody with a token that there never was.
    Wrong,
    /// The owner.
    Owner,
    /// ANN of `team`, who may read.
    Reader,
    /// BOB of `team`, who may write.
    Writer,
    /// ANN of `else`, who may write there.
    Foreign,
    /// A token of ANN's that is over.
    Expired,
    /// A token of ANN's that was revoked.
    Revoked,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Nobody,
        Self::Wrong,
        Self::Owner,
        Self::Reader,
        Self::Writer,
        Self::Foreign,
        Self::Expired,
        Self::Revoked,
    ];

    /// What the kind is called where a body says who acts.
    pub(super) fn actor(self) -> &'static str {
        match self {
            Self::Owner => "GEORGE",
            Self::Writer => "BOB",
            _ => "ANN",
        }
    }
}

/// A server with two worlds and a token of each kind.
pub(super) struct Team {
    pub(super) server: Server,
    tokens: Vec<(Kind, String)>,
}

impl Team {
    pub(super) async fn start() -> Self {
        Self::start_on(MemoryStorage::new()).await
    }

    /// A team on a server with other settings.
    pub(super) async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::start_changed(MemoryStorage::new(), change).await
    }

    pub(super) async fn start_on(disk: MemoryStorage) -> Self {
        Self::start_changed(disk, |_| {}).await
    }

    async fn start_changed(disk: MemoryStorage, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let set_up = |config: &mut ServerConfig| {
            config.auth = Auth::Token(Token::new(OWNER));
            change(config);
        };
        let server = Server::start_on(disk, set_up).await;
        let mut team = Self {
            server,
            tokens: vec![(Kind::Wrong, "tkp.team.0".to_owned())],
        };
        team.tokens.push((Kind::Owner, OWNER.to_owned()));
        for world in ["team", "else"] {
            let persons =
                json!([{ "person_id": "ANN", "aliases": ["Annie"] }, { "person_id": "BOB" }]);
            let body = json!({ "world_id": world, "profile": "WORKSPACE", "persons": persons });
            let made = team.post(Kind::Owner, "/v1/worlds", &body).await;
            assert_eq!(made.status, 201, "{}", made.text());
        }
        let later = "2025-12-19T20:00:01Z";
        for (kind, world, body) in [
            (Kind::Reader, "team", json!({ "person_id": "ANN" })),
            (
                Kind::Writer,
                "team",
                json!({ "person_id": "BOB", "write": true }),
            ),
            (
                Kind::Foreign,
                "else",
                json!({ "person_id": "ANN", "write": true }),
            ),
            (
                Kind::Expired,
                "team",
                json!({ "person_id": "ANN", "write": true, "expires_at": later }),
            ),
            (
                Kind::Revoked,
                "team",
                json!({ "person_id": "ANN", "write": true }),
            ),
        ] {
            let minted = team
                .post(Kind::Owner, &format!("/v1/worlds/{world}/tokens"), &body)
                .await;
            assert_eq!(minted.status, 201, "{}", minted.text());
            let minted = minted.json();
            team.tokens
                .push((kind, minted["token"].as_str().unwrap().to_owned()));
            if kind == Kind::Revoked {
                let path = format!(
                    "/v1/worlds/team/tokens/{}",
                    minted["token_id"].as_str().unwrap()
                );
                assert_eq!(
                    team.call(Kind::Owner, "DELETE", &path).send().await.status,
                    204
                );
            }
        }
        team.server.clock.set(Timestamp(NOW_MS + 2_000));
        team
    }

    pub(super) fn token(&self, kind: Kind) -> Option<&str> {
        self.tokens
            .iter()
            .find(|(known, _)| *known == kind)
            .map(|(_, token)| token.as_str())
    }

    pub(super) fn call(&self, kind: Kind, method: &str, path: &str) -> Call {
        let call = self.server.call(method, path);
        match self.token(kind) {
            Some(token) => call.header("authorization", &format!("Bearer {token}")),
            None => call,
        }
    }

    pub(super) async fn get(&self, kind: Kind, path: &str) -> Reply {
        self.call(kind, "GET", path).send().await
    }

    pub(super) async fn post(&self, kind: Kind, path: &str, body: &Value) -> Reply {
        self.call(kind, "POST", path).json(body).send().await
    }

    pub(super) async fn follow(&self, kind: Kind, path: &str) -> Stream {
        self.call(kind, "GET", path).stream().await
    }

    /// The owner says something in `team`.
    pub(super) async fn say(&self, request: &str, text: &str) -> Value {
        let reply = self
            .post(
                Kind::Owner,
                "/v1/worlds/team/invocations",
                &envelope(request, text),
            )
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// BOB writes something in `team`, to everyone or to these.
    pub(super) async fn write(&self, request: &str, text: &str, to: Option<&[&str]>) -> Value {
        let reply = self
            .post(
                Kind::Writer,
                "/v1/worlds/team/beats",
                &beat(request, "BOB", text, to),
            )
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// How much was ever recorded.
    pub(super) fn recorded(&self) -> u64 {
        self.server.store.last_position()
    }

    /// The audit of `team`: what was done, and its details.
    pub(super) async fn lines(&self) -> Vec<(String, Value)> {
        let page = self.get(Kind::Owner, "/v1/worlds/team/audit/lines").await;
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        let lines = page["lines"].as_array().unwrap().iter();
        lines
            .map(|line| {
                (
                    line["what"].as_str().unwrap().to_owned(),
                    line["details"].clone(),
                )
            })
            .collect()
    }

    pub(super) async fn stop(self) {
        self.server.stop().await;
    }
}

/// An envelope with these words, or, without any, one that moves time only.
pub(super) fn envelope(request: &str, text: &str) -> Value {
    json!({
        "request_id": request,
        "invoker": { "invoker_id": "test", "invoker_role": "INVOKER", "notes": null },
        "operator": { "operator_id": "GEORGE", "input_text": text },
        "mode": { "kind": "BEAT", "client_intent": null },
    })
}

/// An envelope that only reads.
pub(super) fn no_op(request: &str) -> Value {
    let mut envelope = envelope(request, "");
    envelope["mode"]["kind"] = "NO_OP".into();
    envelope
}

/// A beat in which somebody writes one entry.
pub(super) fn beat(request: &str, person: &str, text: &str, to: Option<&[&str]>) -> Value {
    let visibility = match to {
        None => json!({ "scope": "PUBLIC" }),
        Some(to) => json!({ "scope": "PRIVATE", "visible_to": to }),
    };
    let entry = json!({
        "request_id": request,
        "author": { "author_id": person, "author_class": "PERSON" },
        "visibility": visibility,
        "channel": "PEOPLE",
        "text": text,
    });
    let bundle = json!({
        "bundle_id": null,
        "request_id": request,
        "proposed_by": { "engine": "test", "actor": person },
        "entries": [entry],
        "wrote": true,
    });
    json!({ "envelope": envelope(request, ""), "bundle": bundle })
}

/// A search by somebody, with its own eyes.
pub(super) fn search(actor: &str, view: &str, words: &str) -> Value {
    json!({
        "tool_request_id": "t",
        "request_id": "r",
        "requested_by": { "engine": "test", "actor": actor, "knowledge_view": view },
        "tool": { "name": "LEDGER_SEARCH", "query_text": words },
    })
}

/// Asserts that a reply is a refusal with this status and word.
pub(super) fn refused(reply: &Reply, status: u16, word: &str, what: impl fmt::Debug) {
    assert_eq!(reply.status, status, "{what:?}: {}", reply.text());
    assert_eq!(
        reply.json()["error"]["code"],
        word,
        "{what:?}: {}",
        reply.text()
    );
}
