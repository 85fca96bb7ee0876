//! Following appends: a stream that survives lost connections and slow readers.
//!
//! Whatever ends it on the way (a lost connection, a reader too slow for the server or for the queue
//! here), the next call subscribes again after the last event that was handed out, so the caller sees
//! every event once. One gap remains: a subscription to "only new" events that is lost before its
//! first event starts again at the new end.

use std::sync::Arc;

use tokio::sync::mpsc;
use turnkeep_wire::message::{Delivery, Failure, Subscribe};
use turnkeep_wire::{Frame, Request, Response};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::connection::{Connection, Waiter};
use crate::error::Error;
use crate::verify;

/// Appends as they happen. Dropping it ends the subscription.
pub struct Subscription {
    client: Client,
    subscribe: Subscribe,
    live: Option<Live>,
    backoff: Backoff,
    caught_up: bool,
}

struct Live {
    frames: mpsc::Receiver<Frame>,
    connection: Arc<Connection>,
    id: u64,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.connection.cancel(self.id);
    }
}

impl Subscription {
    pub(crate) fn new(client: Client, subscribe: Subscribe) -> Self {
        let backoff = Backoff::new(client.options().retry);
        Self { client, subscribe, live: None, backoff, caught_up: false }
    }

    /// Waits for the next append. Fails only when trying again is useless or was tried often enough;
    /// calling it again tries again.
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
            None => self.live.insert(open(&self.client, &self.subscribe).await?),
        };
        let Some(frame) = live.frames.recv().await else {
            let lost = live.connection.lost();
            self.live = None;
            // With a live connection, this reader was too slow and its queue overran.
            return lost.map_or(Ok(None), |lost| Err(Error::Lost(lost)));
        };
        match Response::decode(frame, self.subscribe.options.item_form())? {
            Response::Subscribed { caught_up } => {
                self.caught_up = caught_up;
                Ok(None)
            }
            Response::Delivered { caught_up, delivery } => self.deliver(caught_up, delivery).map(Some),
            Response::Error(failure) => Err(self.refused(&failure)),
            other => Err(Error::WrongAnswer(other.msg_type().to_wire())),
        }
    }

    fn deliver(&mut self, caught_up: bool, delivery: Delivery) -> Result<Delivery, Error> {
        self.backoff.reset();
        self.caught_up = caught_up;
        if self.client.options().verify_reads {
            verify::item(&delivery.item)?;
        }
        self.subscribe.after = Some(delivery.position);
        Ok(delivery)
    }

    fn refused(&mut self, failure: &Failure) -> Error {
        let error = crate::ServerError::from(failure);
        let resume = error.details.get("resume_after").and_then(serde_json::Value::as_u64);
        self.subscribe.after = self.subscribe.after.max(resume);
        Error::Server(error)
    }

    /// Gets ready for another try, or gives the error to the caller.
    async fn recover(&mut self, error: Error) -> Result<(), Error> {
        self.live = None;
        if error.is_retryable() && self.backoff.pause().await { Ok(()) } else { Err(error) }
    }
}

async fn open(client: &Client, subscribe: &Subscribe) -> Result<Live, Error> {
    let connection = client.connection().await?;
    let (sender, frames) = mpsc::channel(client.options().subscription_events_max.max(1));
    let id = connection.send(Waiter::Stream(sender), &Request::Subscribe(subscribe.clone()))?;
    Ok(Live { frames, connection, id })
}
