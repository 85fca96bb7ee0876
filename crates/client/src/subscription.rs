//! Subscriptions: a stream of appends that survives lost connections and slow readers.
//!
//! After an interruption the next call subscribes again after the last event that it returned, so
//! the caller sees every event once. A subscription to only new events first asks for the end of
//! the feed and then follows from that position. An interruption before its first event thus loses
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_wire::message::{Delivery, Failure, Subscribe};
use turnkeep_wire::{Frame, Request, Response};

use crate::backoff::Backoff;
use crate::client::{Client, Repeat};
use crate::connection::{ServerConnection, Waiter};
use crate::error::{Error, Lost, ServerError};
use crate::frames::{self, FrameReceiver};
use crate::pending::Answered;
use crate::verify;

/// A position that no feed reaches. The server rejects it and names the end of the feed.
const BEYOND_EVERY_END: u64 = u64::MAX - 1;

/// A stream of appends. Dropping it ends the subscription.
pub struct Subscription {
    client: Client,
    subscribe: Subscribe,
    live: Option<LiveSubscription>,
    backoff: Backoff,
    caught_up: bool,
}

struct LiveSubscription {
    frames: FrameReceiver,
    connection: Arc<ServerConnection>,
    id: u64,
    /// Whether the server has accepted the subscription. Before that, silence is a time-out.
    accepted: bool,
}

impl LiveSubscription {
    async fn receive_frame(&mut self, answer_within: Duration) -> Result<Option<Frame>, Error> {
        if self.accepted {
            return Ok(self.frames.recv().await);
        }
        let received = tokio::time::timeout(answer_within, self.frames.recv()).await;
        received.map_err(|_| Error::Lost(Lost::Silent(answer_within)))
    }
}

impl Drop for LiveSubscription {
    fn drop(&mut self) {
        self.connection.cancel_subscription(self.id);
    }
}

impl Subscription {
    pub(crate) fn new(client: Client, subscribe: Subscribe) -> Self {
        let backoff = Backoff::new(client.options().retry);
        Self {
            client,
            subscribe,
            live: None,
            backoff,
            caught_up: false,
        }
    }

    /// Waits for the next append. Returns an error only if a retry is useless or all retries
    /// failed. A further call tries again, and skips an append that the server cannot deliver.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        loop {
            match self.receive_next().await {
                Ok(Some(delivery)) => return Ok(delivery),
                Ok(None) => {}
                Err(error) => self.prepare_retry(error).await?,
            }
        }
    }

    /// Whether the last event, or the start, had reached the end of the log.
    pub fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// The position after which the subscription would resume.
    pub fn position(&self) -> Option<u64> {
        self.subscribe.after
    }

    async fn receive_next(&mut self) -> Result<Option<Delivery>, Error> {
        let live = match &mut self.live {
            Some(live) => live,
            None => self
                .live
                .insert(open_subscription(&self.client, &mut self.subscribe).await?),
        };
        let Some(frame) = live
            .receive_frame(self.client.options().timeouts.answer)
            .await?
        else {
            let lost = live.connection.lost_reason();
            self.live = None;
            // Without a loss, this reader was too slow and its queue was full: subscribe again.
            return lost.map_or(Ok(None), |lost| Err(Error::Lost(lost)));
        };
        match Response::decode(frame, self.subscribe.options.item_form())? {
            Response::Subscribed { caught_up } => {
                live.accepted = true;
                self.backoff.reset();
                self.caught_up = caught_up;
                Ok(None)
            }
            Response::Delivered {
                caught_up,
                delivery,
            } => self.accept_delivery(caught_up, delivery).map(Some),
            Response::Error(failure) => Err(self.note_failure(&failure)),
            other => Err(Error::WrongAnswer(other.msg_type().to_wire())),
        }
    }

    fn accept_delivery(&mut self, caught_up: bool, delivery: Delivery) -> Result<Delivery, Error> {
        let (number, after) = (delivery.position, self.subscribe.after.unwrap_or(0));
        // A repeated event would break the promise that each event comes once.
        if number <= after {
            return Err(Error::OutOfOrder {
                what: "event",
                number,
                after,
            });
        }
        self.caught_up = caught_up;
        // Before the position moves: an event that fails the check is asked for again.
        if self.client.verifies_payloads(self.subscribe.options) {
            verify::check_item(&delivery.item)?;
        }
        self.subscribe.after = Some(delivery.position);
        Ok(delivery)
    }

    fn note_failure(&mut self, failure: &Failure) -> Error {
        let error = ServerError::from(failure);
        // The server names an event that it cannot deliver, so the next attempt starts after it.
        self.subscribe.after = self
            .subscribe
            .after
            .max(position_detail(&error, "resume_after"));
        Error::Server(error)
    }

    /// Prepares another attempt, or returns the error to the caller.
    async fn prepare_retry(&mut self, error: Error) -> Result<(), Error> {
        self.live = None;
        if error.is_retryable() && self.backoff.pause().await {
            Ok(())
        } else {
            Err(error)
        }
    }
}

async fn open_subscription(
    client: &Client,
    subscribe: &mut Subscribe,
) -> Result<LiveSubscription, Error> {
    // Fixes the starting point, so that a loss before the first event skips nothing.
    if subscribe.after.is_none() {
        subscribe.after = find_feed_end(client, subscribe).await?;
    }
    let connection = client.find_or_dial().await?;
    let options = client.options();
    let (sender, frames) = frames::frame_queue(
        options.subscription_events_max,
        options.subscription_bytes_max,
    );
    let id = connection.send_request(
        Waiter::Stream(sender),
        &Request::Subscribe(subscribe.clone()),
    )?;
    Ok(LiveSubscription {
        frames,
        connection,
        id,
        accepted: false,
    })
}

/// The response to a subscription that the server must reject.
enum Never {}

impl Answered for Never {
    fn from_response(response: Response) -> Result<Self, Box<Response>> {
        Err(Box::new(response))
    }
}

/// Asks for the end of the feed; `None` if the server does not name it.
async fn find_feed_end(client: &Client, subscribe: &Subscribe) -> Result<Option<u64>, Error> {
    // The protocol has no request for the end of the feed. The rejection of a position beyond it
    // names it, and opens no subscription.
    let beyond = Subscribe {
        after: Some(BEYOND_EVERY_END),
        ..subscribe.clone()
    };
    let Err(refused) = client
        .submit::<Never>(None, &Request::Subscribe(beyond), Repeat::Safe)
        .await?
        .await;
    match refused {
        Error::Server(error) if error.status == 409 => Ok(position_detail(&error, "last_position")),
        error => Err(error),
    }
}

/// Reads a position from an error's details. It is a string, as all ids in JSON are.
fn position_detail(error: &ServerError, name: &str) -> Option<u64> {
    let value = error.details.get(name)?;
    value
        .as_str()
        .map_or_else(|| value.as_u64(), |text| text.parse().ok())
}
