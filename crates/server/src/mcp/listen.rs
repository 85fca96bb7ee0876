//! Resources and `subscriptions/listen`: a client learns that there is something new in a stream.
//!
//! The one kind of resource is the stream of a world, `turnkeep://worlds/WORLD/stream`, as the
//! caller may see it. A subscription says that it grew, never what it holds, and only when the
//! caller may see more than before. It ends with the client, with the token, or with the server,
//! which then says a last word.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use turnkeep_ledger::Principal;

use super::arguments::Arguments;
use super::reading;
use super::rpc::{Failure, Request};
use crate::error::ApiError;
use crate::http::ledger::tools::Asker;
use crate::http::sse::{self, Sender};
use crate::principal::Caller;
use crate::shared::Shared;

/// Streams that a list of resources names.
const LISTED_MAX: usize = 200;
/// Addresses that a subscription is asked for; the first that is the caller's is followed.
const ASKED_MAX: usize = 64;
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

fn address(world: &str) -> String {
    format!("turnkeep://worlds/{world}/stream")
}

/// The caller's place in the world whose stream an address names.
fn asker_at(shared: &Shared, caller: &Caller, address: &str) -> Option<Asker> {
    let world = address
        .strip_prefix("turnkeep://worlds/")?
        .strip_suffix("/stream")?;
    match caller {
        Caller::Owner => {
            let handle = shared.worlds.get(world)?;
            Some(Asker {
                handle,
                who: Principal::Owner,
                token: None,
            })
        }
        Caller::Person(person) if person.handle.name().as_str() == world => {
            let (handle, who) = (Arc::clone(&person.handle), person.who.clone());
            Some(Asker {
                handle,
                who,
                token: Some(person.token),
            })
        }
        Caller::Person(_) => None,
    }
}

/// Answers `resources/list`.
pub(super) fn list(shared: &Shared, caller: &Caller) -> Value {
    let handles = match caller {
        Caller::Owner => shared.worlds.list(),
        Caller::Person(person) => vec![Arc::clone(&person.handle)],
    };
    let resource = |world: &str| {
        json!({
            "uri": address(world),
            "name": format!("{world}/stream"),
            "title": format!("The stream of {world}"),
            "description": "The newest entries that you may see. Subscribe to learn of new ones.",
            "mimeType": "application/json",
        })
    };
    let listed: Vec<Value> = handles
        .iter()
        .take(LISTED_MAX)
        .map(|handle| resource(handle.name().as_str()))
        .collect();
    json!({ "resources": listed })
}

/// Answers `resources/read`: the newest entries, as `ledger_read` gives them.
pub(super) async fn read(
    shared: &Shared,
    caller: &Caller,
    params: &Value,
) -> Result<Value, Failure> {
    let asked = params
        .get("uri")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let asker = asker_at(shared, caller, asked)
        .ok_or_else(|| Failure::bad_params("there is no such resource"))?;
    let (given, schema) = (
        json!({ "newest": 50 }),
        json!({ "properties": { "newest": {} } }),
    );
    let read = async {
        let arguments = Arguments::new(&given, &schema)?;
        reading::read(shared, asker, &arguments).await
    };
    let page = read.await.map_err(|error: ApiError| {
        error.log();
        Failure::bad_params(error.message)
    })?;
    let content = json!({ "uri": asked, "mimeType": "application/json", "text": page.to_string() });
    Ok(json!({ "contents": [content] }))
}

/// Answers `subscriptions/listen` with a stream that stays open.
pub(super) fn listen(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: &Request,
) -> Result<Response, Failure> {
    let wanted = request
        .params
        .get("notifications")
        .filter(|wanted| wanted.is_object());
    let wanted =
        wanted.ok_or_else(|| Failure::bad_params("`notifications` says what to listen to"))?;
    let asked = wanted
        .get("resourceSubscriptions")
        .and_then(Value::as_array);
    let mut asked = asked
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(ASKED_MAX);
    let followed = asked.find_map(|address| {
        let asker = asker_at(shared, caller, address)?;
        Some(Followed {
            asker,
            address: address.to_owned(),
        })
    });
    let (shared_too, id) = (Arc::clone(shared), request.id.clone());
    let token = Token::of(caller);
    Ok(sse::respond_to_the_end(shared, |sender| {
        Subscription {
            shared: shared_too,
            id,
            followed,
            token,
            sender,
        }
        .run()
    }))
}

/// A stream that is followed.
struct Followed {
    asker: Asker,
    address: String,
}

/// The token by which a subscription was opened; none of the owner's.
struct Token(Option<Asker>);

impl Token {
    fn of(caller: &Caller) -> Self {
        Self(caller.person().map(|person| Asker {
            handle: Arc::clone(&person.handle),
            who: person.who.clone(),
            token: Some(person.token),
        }))
    }

    fn counts(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|asker| asker.refuse_ended_token().is_ok())
    }
}

struct Subscription {
    shared: Arc<Shared>,
    id: Value,
    followed: Option<Followed>,
    token: Token,
    sender: Sender,
}

impl Subscription {
    async fn run(self) {
        let place = self.count();
        if self.send(&self.acknowledgement()).await && self.follow(place).await {
            self.send(&self.last_word()).await;
        }
    }

    /// Follows the stream; says whether the client is still there to hear that it ended.
    async fn follow(&self, mut place: u64) -> bool {
        let mut ping = tokio::time::interval(self.shared.config.timeouts.sse_ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.tick().await;
        loop {
            let is_heard = tokio::select! {
                () = self.sender.closed() => return false,
                () = self.shared.stopping.cancelled() => return true,
                () = self.news(place) => {
                    place = self.count();
                    !self.token.counts() || self.send(&self.update()).await
                }
                _ = ping.tick() => self.sender.send(Ok(sse::PING.into())).await.is_ok(),
            };
            if !is_heard || !self.token.counts() {
                return is_heard;
            }
        }
    }

    async fn news(&self, place: u64) {
        match &self.followed {
            Some(Followed { asker, .. }) => {
                asker
                    .handle
                    .wait_for_entries(&asker.who.viewer(), place)
                    .await
            }
            None => std::future::pending().await,
        }
    }

    /// How many entries the caller may see.
    fn count(&self) -> u64 {
        self.followed.as_ref().map_or(0, |Followed { asker, .. }| {
            asker
                .handle
                .read(|world| world.view(asker.who.viewer()).count())
        })
    }

    fn meta(&self) -> Value {
        json!({ SUBSCRIPTION_KEY: self.id })
    }

    /// Says what is followed; what else was asked for is left out.
    fn acknowledgement(&self) -> Value {
        let followed = match &self.followed {
            Some(Followed { address, .. }) => json!({ "resourceSubscriptions": [address] }),
            None => json!({}),
        };
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": self.meta(), "notifications": followed },
        })
    }

    fn update(&self) -> Value {
        let address = self
            .followed
            .as_ref()
            .map(|followed| followed.address.as_str());
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": { "_meta": self.meta(), "uri": address },
        })
    }

    fn last_word(&self) -> Value {
        let result = json!({ "resultType": "complete", "_meta": self.meta() });
        json!({ "jsonrpc": "2.0", "id": self.id, "result": result })
    }

    async fn send(&self, message: &Value) -> bool {
        let mut event = String::new();
        sse::push_notice(&mut event, "message", message);
        self.sender.send(Ok(event.into())).await.is_ok()
    }
}
