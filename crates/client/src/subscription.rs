//! Following appends: a stream that survives lost connections and slow readers.
//!
//! Whatever ends it on the way (a lost connection, a reader too slow for the server or for the
//! queue here), the next call subscribes again after the last event that was handed out, so the
//! caller sees every event once. A subscription to "only new" events first learns where the feed
//! ends, and from then on it is one that follows a position: losing it before its first event loses
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_wire::message::{Delivery, Failure, Subscribe};
use turnkeep_wire::{Frame, Request, Response};

use crate::backoff::Backoff;
use crate::client::{Client, Repeat};
use crate::connection::{Connection, Waiter};
use crate::error::{Error, Lost, ServerError};
use crate::frames::{self, FrameReceiver};
use crate::pending::Answered;
use crate::verify;

/// A position that no feed reaches: its refusal says where the feed ends.
const BEYOND_EVERY_END: u64 = u64::MAX - 1;

/// Appends as they happen. Dropping it ends the subscription.
pub struct Subscription {
    client: Client,
    subscribe: Subscribe,
    live: Option<Live>,
    backoff: Backoff,
    caught_up: bool,
}

struct Live {
    frames: FrameReceiver,
    connection: Arc<Connection>,
    id: u64,
    /// Whether the server has said that it will deliver. Until then its silence is not patience.
    accepted: bool,
}

impl Live {
    async fn receive(&mut self, answer_within: Duration) -> Result<Option<Frame>, Error> {
        if self.accepted {
            return Ok(self.frames.recv().await);
        }
        let received = tokio::time::timeout(answer_within, self.frames.recv()).await;
        received.map_err(|_| Error::Lost(Lost::Silent(answer_within)))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.connection.cancel(self.id);
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

    /// Waits for the next append. Fails only when trying again is useless or was tried often
    /// enough; calling it again tries again, and goes on behind an append that the server cannot
    /// deliver.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        loop {
            match self.step().await {
                Ok(Some(delivery)) => return Ok(delivery),
                Ok(None) => {}
                Err(error) => self.recover(error).await?,
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

    async fn step(&mut self) -> Result<Option<Delivery>, Error> {
        let live = match &mut self.live {
            Some(live) => live,
            None => self
                .live
                .insert(open(&self.client, &mut self.subscribe).await?),
        };
        let Some(frame) = live.receive(self.client.options().timeouts.answer).await? else {
            let lost = live.connection.lost();
            self.live = None;
            // With a live connection, this reader was too slow and its queue overran.
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
            } => self.deliver(caught_up, delivery).map(Some),
            Response::Error(failure) => Err(self.refused(&failure)),
            other => Err(Error::WrongAnswer(other.msg_type().to_wire())),
        }
    }

    fn deliver(&mut self, caught_up: bool, delivery: Delivery) -> Result<Delivery, Error> {
        let (number, after) = (delivery.position, self.subscribe.after.unwrap_or(0));
        if number <= after {
            return Err(Error::OutOfOrder {
                what: "event",
                number,
                after,
            });
        }
        self.caught_up = caught_up;
        if self.client.verifies(self.subscribe.options) {
            verify::item(&delivery.item)?;
        }
        self.subscribe.after = Some(delivery.position);
        Ok(delivery)
    }

    fn refused(&mut self, failure: &Failure) -> Error {
        let error = ServerError::from(failure);
        self.subscribe.after = self.subscribe.after.max(position(&error, "resume_after"));
        Error::Server(error)
    }

    /// Gets ready for another try, or gives the error to the caller.
    async fn recover(&mut self, error: Error) -> Result<(), Error> {
        self.live = None;
        if error.is_retryable() && self.backoff.pause().await {
            Ok(())
        } else {
            Err(error)
        }
    }
}

async fn open(client: &Client, subscribe: &mut Subscribe) -> Result<Live, Error> {
    if subscribe.after.is_none() {
        subscribe.after = end_of_feed(client, subscribe).await?;
    }
    let connection = client.connection().await?;
    let options = client.options();
    let (sender, frames) = frames::queue(
        options.subscription_events_max,
        options.subscription_bytes_max,
    );
    let id = connection.send(
        Waiter::Stream(sender),
        &Request::Subscribe(subscribe.clone()),
    )?;
    Ok(Live {
        frames,
        connection,
        id,
        accepted: false,
    })
}

/// The answer to a subscription that cannot be accepted.
enum Never {}

impl Answered for Never {
    fn from_response(response: Response) -> Result<Self, Box<Response>> {
        Err(Box::new(response))
    }
}

/// Where the feed ends now; none from a server that does not tell.
async fn end_of_feed(client: &Client, subscribe: &Subscribe) -> Result<Option<u64>, Error> {
    let beyond = Subscribe {
        after: Some(BEYOND_EVERY_END),
        ..subscribe.clone()
    };
    let Err(refused) = client
        .submit::<Never>(&Request::Subscribe(beyond), Repeat::Safe)
        .await?
        .await;
    match refused {
        Error::Server(error) if error.status == 409 => Ok(position(&error, "last_position")),
        error => Err(error),
    }
}

/// A position among an error's details, where it is text as all ids are.
fn position(error: &ServerError, name: &str) -> Option<u64> {
    let value = error.details.get(name)?;
    value
        .as_str()
        .map_or_else(|| value.as_u64(), |text| text.parse().ok())
}
