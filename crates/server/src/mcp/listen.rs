//! Resources and `subscriptions/listen`: notifies a client when a stream has new entries.
//!
//! The only resource is the stream of a world, `turnkeep://worlds/WORLD/stream`, as the caller may
//! see it. A subscription says that the stream grew, not what is in it, and only when the caller
//! can see more entries than before. It ends when the client disconnects, the token expires or the
//! server stops. In the last two cases the server sends a final message.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use super::arguments::Arguments;
use super::reading;
use super::rpc::{Failure, Request};
use crate::error::ApiError;
use crate::http::sse::{self, Sender};
use crate::principal::Caller;
use crate::shared::Shared;
use crate::world_caller::WorldCaller;

/// How many streams `resources/list` names.
const LISTED_MAX: usize = 200;
/// How many addresses of a subscription are considered. Only the first one that the caller may read
/// is followed.
const ASKED_MAX: usize = 64;
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

fn stream_address(world: &str) -> String {
    format!("turnkeep://worlds/{world}/stream")
}

/// The caller in the world of a stream address; `None` if the caller may not read that stream.
fn caller_at(shared: &Shared, caller: &Caller, address: &str) -> Option<WorldCaller> {
    let world = address
        .strip_prefix("turnkeep://worlds/")?
        .strip_suffix("/stream")?;
    match caller {
        Caller::Owner => {
            let handle = shared.worlds.get(world)?;
            Some(WorldCaller::owner(handle))
        }
        Caller::Person(_) | Caller::Node(_) => {
            let person = caller.person()?;
            let is_own = person.handle.name().as_str() == world;
            is_own.then(|| WorldCaller::person(person))
        }
    }
}

/// Answers `resources/list`.
pub(super) fn list_resources(shared: &Shared, caller: &Caller) -> Value {
    let handles = match caller {
        Caller::Owner => shared.worlds.list(),
        Caller::Person(_) | Caller::Node(_) => {
            let person = caller.person();
            person
                .map(|person| Arc::clone(&person.handle))
                .into_iter()
                .collect()
        }
    };
    let resource = |world: &str| {
        json!({
            "uri": stream_address(world),
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

/// Answers `resources/read` with the newest entries, like `ledger_read`.
pub(super) async fn read_resource(
    shared: &Shared,
    caller: &Caller,
    params: &Value,
) -> Result<Value, Failure> {
    let asked = params.get("uri").and_then(Value::as_str);
    let asked = asked.unwrap_or_default();
    let world_caller = caller_at(shared, caller, asked)
        .ok_or_else(|| Failure::bad_params("there is no such resource"))?;
    let page = read_newest(shared, world_caller).await;
    let page = page.map_err(|error| {
        error.log();
        Failure::bad_params(error.message)
    })?;
    let content = json!({ "uri": asked, "mimeType": "application/json", "text": page.to_string() });
    Ok(json!({ "contents": [content] }))
}

/// Reads what `ledger_read` would return for the newest entries.
async fn read_newest(shared: &Shared, world_caller: WorldCaller) -> Result<Value, ApiError> {
    let given = json!({ "newest": 50 });
    let schema = json!({ "properties": { "newest": {} } });
    let arguments = Arguments::new(given.into(), &schema)?;
    reading::read_stream(shared, world_caller, arguments).await
}

/// Answers `subscriptions/listen` with a stream that stays open.
pub(super) fn listen(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: &Request,
) -> Result<Response, Failure> {
    let Some(wanted @ Value::Object(_)) = request.params.get("notifications") else {
        return Err(Failure::bad_params(
            "`notifications` says what to listen to",
        ));
    };
    let followed = wanted
        .get("resourceSubscriptions")
        .and_then(Value::as_array)
        .and_then(|addresses| choose_stream(shared, caller, addresses));
    Ok(sse::respond_to_the_end(shared, |sender| {
        let subscription = Subscription {
            shared: Arc::clone(shared),
            id: request.id.clone(),
            followed,
            token: SubscriberToken::new(caller),
            sender,
        };
        subscription.run()
    }))
}

/// The first of the requested streams that the caller may read. The acknowledgement names it, so a
/// client learns that the others are not followed.
fn choose_stream(shared: &Shared, caller: &Caller, addresses: &[Value]) -> Option<FollowedStream> {
    let mut addresses = addresses.iter().filter_map(Value::as_str).take(ASKED_MAX);
    addresses.find_map(|address| {
        Some(FollowedStream {
            world_caller: caller_at(shared, caller, address)?,
            address: address.to_owned(),
        })
    })
}

/// The stream that a subscription follows.
struct FollowedStream {
    world_caller: WorldCaller,
    address: String,
}

/// The token that opened a subscription; `None` for the owner's, which never expires.
struct SubscriberToken(Option<WorldCaller>);

impl SubscriberToken {
    fn new(caller: &Caller) -> Self {
        Self(caller.person().map(WorldCaller::person))
    }

    fn is_valid(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|world_caller| world_caller.check_token().is_ok())
    }
}

/// An open subscription.
struct Subscription {
    shared: Arc<Shared>,
    id: Value,
    followed: Option<FollowedStream>,
    token: SubscriberToken,
    sender: Sender,
}

impl Subscription {
    async fn run(self) {
        // The count is taken before the acknowledgement: an entry that comes after it must notify.
        let place = self.count_visible();
        if self.send(&self.acknowledgement()).await && self.follow(place).await {
            self.send(&self.final_message()).await;
        }
    }

    /// Follows the stream until it ends. Returns whether the client is still connected.
    async fn follow(&self, mut place: u64) -> bool {
        let mut ping = tokio::time::interval(self.shared.config.timeouts.sse_ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval is immediate.
        ping.tick().await;
        loop {
            let is_connected = tokio::select! {
                () = self.sender.closed() => return false,
                () = self.shared.stopping.cancelled() => return true,
                () = self.wait_for_entries(place) => {
                    place = self.count_visible();
                    // A revoked token learns of no further entry; the check below ends the stream.
                    !self.token.is_valid() || self.send(&self.update()).await
                }
                _ = ping.tick() => self.sender.send(Ok(sse::PING.into())).await.is_ok(),
            };
            if !is_connected || !self.token.is_valid() {
                return is_connected;
            }
        }
    }

    async fn wait_for_entries(&self, place: u64) {
        match &self.followed {
            Some(FollowedStream { world_caller, .. }) => {
                world_caller
                    .handle
                    .wait_for_entries(&world_caller.who.viewer(), place)
                    .await;
            }
            // Nothing to follow: only a ping, the client or the server's end wakes the loop.
            None => std::future::pending().await,
        }
    }

    /// How many entries the caller may see.
    fn count_visible(&self) -> u64 {
        self.followed
            .as_ref()
            .map_or(0, |FollowedStream { world_caller, .. }| {
                world_caller
                    .handle
                    .read(|world| world.view(world_caller.who.viewer()).count())
            })
    }

    fn meta(&self) -> Value {
        json!({ SUBSCRIPTION_KEY: self.id })
    }

    /// Names the stream that is followed. Everything else that was asked for is missing.
    fn acknowledgement(&self) -> Value {
        let followed = match &self.followed {
            Some(FollowedStream { address, .. }) => json!({ "resourceSubscriptions": [address] }),
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

    fn final_message(&self) -> Value {
        let result = json!({ "resultType": "complete", "_meta": self.meta() });
        json!({ "jsonrpc": "2.0", "id": self.id, "result": result })
    }

    async fn send(&self, message: &Value) -> bool {
        let mut event = String::new();
        sse::push_notice(&mut event, "message", message);
        self.sender.send(Ok(event.into())).await.is_ok()
    }
}
