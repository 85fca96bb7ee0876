//! Where a turn can go from the relay buffer, and the one door that does it.
//!
//! A sink is synchronous: it takes the content and the turn's metadata and gives a result. It runs
//! on a thread of its own and within a time; each kind of sink has its own few places, so that one
//! that hangs keeps neither the other kinds nor other sessions from going on.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use turnkeep_session::broker::{Delivery, Effect};
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Reply, Stored};

use super::file_sink;
use super::hub::Hub;

/// Deliveries of one kind at a time.
const PLACES_PER_KIND: usize = 8;

/// A named consumer of turns.
pub trait Sink: Send + Sync {
    /// The name by which it is asked for.
    fn name(&self) -> &'static str;

    /// Takes the content, byte for byte, and the turn that it is of. Says what the one who asked is
    /// told.
    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal>;
}

/// A clipboard, as the desktop's adapters offer it.
pub trait Clipboard: Send + Sync {
    /// Makes these bytes what is pasted next. May wait. Refuses with `no_clipboard` where there is
    /// none.
    fn write(&self, content: &[u8]) -> Result<(), Refusal>;
}

/// A way into the turn store.
pub trait TurnKeeper: Send + Sync {
    /// Appends the turn to the context of its session, once, and waits until it is durable.
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String>;
}

/// What the broker's surroundings offer.
#[derive(Clone, Default)]
pub struct Outlets {
    /// The clipboard, where there is one.
    pub clipboard: Option<Arc<dyn Clipboard>>,
    /// The turn store, where one is within reach.
    pub keeper: Option<Arc<dyn TurnKeeper>>,
}

struct ClipboardSink(Option<Arc<dyn Clipboard>>);

impl Sink for ClipboardSink {
    fn name(&self) -> &'static str {
        "clipboard"
    }

    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal> {
        self.0
            .as_ref()
            .ok_or(Reason::NoClipboard)?
            .write(&delivery.bytes)
            .map(|()| Reply::Done)
    }
}

struct FileSink(PathBuf);

impl Sink for FileSink {
    fn name(&self) -> &'static str {
        "file"
    }

    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal> {
        file_sink::write(&self.0, &delivery.bytes).map(|()| Reply::Done)
    }
}

struct StoreSink(Option<Arc<dyn TurnKeeper>>);

impl Sink for StoreSink {
    fn name(&self) -> &'static str {
        "store"
    }

    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal> {
        let keeper = self.0.as_ref().ok_or(Reason::NoStore)?;
        let kept = keeper.keep(&delivery.turn.to_found_turn());
        kept.map(Reply::Stored)
            .map_err(|why| Refusal::new(Reason::SinkFailed, why))
    }
}

/// Places for deliveries, by kind.
pub(super) struct Places {
    clipboard: Arc<Semaphore>,
    file: Arc<Semaphore>,
    store: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        let some = || Arc::new(Semaphore::new(PLACES_PER_KIND));
        Self {
            clipboard: some(),
            file: some(),
            store: some(),
        }
    }
}

/// Does what the machine decided, for the connection that waits for it.
pub(super) async fn perform(effect: Effect, hub: &Hub) -> Result<Reply, Refusal> {
    let (outlets, places) = (hub.outlets.clone(), &hub.places);
    match effect {
        Effect::Inject { to, inject } => hub.inject(to, inject).map(|()| Reply::Done),
        Effect::Clipboard(delivery) => {
            run(
                ClipboardSink(outlets.clipboard),
                delivery,
                &places.clipboard,
                hub,
            )
            .await
        }
        Effect::File { path, delivery } => run(FileSink(path), delivery, &places.file, hub).await,
        Effect::Store(delivery) => {
            run(StoreSink(outlets.keeper), delivery, &places.store, hub).await
        }
    }
}

/// Runs a sink on its own thread. One that takes too long goes on, and keeps its place until it
/// ends.
async fn run(
    sink: impl Sink + 'static,
    delivery: Delivery,
    places: &Arc<Semaphore>,
    hub: &Hub,
) -> Result<Reply, Refusal> {
    let name = sink.name();
    let place = Arc::clone(places).try_acquire_owned();
    let place = place
        .map_err(|_| Refusal::new(Reason::Busy, format!("too much goes to the {name} sink")))?;
    let work = tokio::task::spawn_blocking(move || {
        let done = sink.deliver(&delivery);
        drop(place);
        done
    });
    match tokio::time::timeout(hub.timeouts.sink, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(Refusal::new(Reason::Internal, error.to_string())),
        Err(_) => Err(Refusal::new(
            Reason::SinkFailed,
            format!("the {name} sink took too long"),
        )),
    }
}
