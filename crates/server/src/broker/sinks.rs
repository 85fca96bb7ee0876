//! The sinks: where a turn can go from the relay buffer.
//!
//! A sink is synchronous and may block, so it runs on a blocking thread. The caller waits no longer
//! than the sink timeout. A sink that takes longer continues in the background and occupies one of
//! the few slots of its kind, so a hanging sink delays neither other kinds nor other sessions, and
//! cannot take all threads.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use turnkeep_session::broker::{Delivery, Effect, NodeAddress};
use turnkeep_types::broker::{FoundTurn, Reason, Refusal, Reply, Stored};

use super::file_sink;
use super::shared::BrokerShared;

/// Deliveries of one kind that may run at once.
const SLOTS_PER_KIND: usize = 8;

/// A named consumer of turns.
pub trait Sink: Send + Sync {
    /// The name in requests and messages.
    fn name(&self) -> &'static str;

    /// Takes the content, byte for byte, and its turn. Returns the response to the request.
    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal>;
}

/// A clipboard, as the desktop's adapters offer it.
pub trait Clipboard: Send + Sync {
    /// Puts these bytes on the clipboard. May block. Refuses with `no_clipboard` on a machine
    /// without one.
    fn write(&self, content: &[u8]) -> Result<(), Refusal>;
}

/// A way into the turn store.
pub trait TurnKeeper: Send + Sync {
    /// Appends the turn to the context of its session, once, and waits until it is durable.
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String>;
}

/// A way to the nodes of runs.
pub trait NodeChat: Send + Sync {
    /// Sends a node a text as a message of the operator, and waits until it is durable.
    fn say(&self, to: &NodeAddress, text: &str) -> Result<(), Refusal>;
}

/// What the process of the broker can deliver to.
#[derive(Clone, Default)]
pub struct Outlets {
    /// The clipboard, if there is one.
    pub clipboard: Option<Arc<dyn Clipboard>>,
    /// The turn store, if one is reachable.
    pub keeper: Option<Arc<dyn TurnKeeper>>,
    /// The nodes of runs, if a runtime is reachable.
    pub nodes: Option<Arc<dyn NodeChat>>,
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
        file_sink::replace_file(&self.0, &delivery.bytes).map(|()| Reply::Done)
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

struct NodeSink {
    nodes: Option<Arc<dyn NodeChat>>,
    to: NodeAddress,
}

impl Sink for NodeSink {
    fn name(&self) -> &'static str {
        "node"
    }

    fn deliver(&self, delivery: &Delivery) -> Result<Reply, Refusal> {
        let nodes = self.nodes.as_ref().ok_or(Reason::NoRuntime)?;
        // A message is text. A terminal's bytes may be anything.
        let text = String::from_utf8_lossy(&delivery.bytes);
        nodes.say(&self.to, &text).map(|()| Reply::Done)
    }
}

/// The slots for deliveries, by kind.
pub(super) struct SinkSlots {
    clipboard: Arc<Semaphore>,
    file: Arc<Semaphore>,
    store: Arc<Semaphore>,
    node: Arc<Semaphore>,
}

impl Default for SinkSlots {
    fn default() -> Self {
        let slots = || Arc::new(Semaphore::new(SLOTS_PER_KIND));
        Self {
            clipboard: slots(),
            file: slots(),
            store: slots(),
            node: slots(),
        }
    }
}

/// Performs an effect that the state machine decided. Returns the response to the request.
pub(super) async fn perform_effect(
    effect: Effect,
    shared: &BrokerShared,
) -> Result<Reply, Refusal> {
    let (outlets, slots) = (shared.outlets.clone(), &shared.sink_slots);
    match effect {
        Effect::Inject { to, inject } => shared.inject(to, inject).map(|()| Reply::Done),
        Effect::Clipboard(delivery) => {
            let sink = ClipboardSink(outlets.clipboard);
            run_sink(sink, delivery, &slots.clipboard, shared).await
        }
        Effect::File { path, delivery } => {
            run_sink(FileSink(path), delivery, &slots.file, shared).await
        }
        Effect::Store(delivery) => {
            let sink = StoreSink(outlets.keeper);
            run_sink(sink, delivery, &slots.store, shared).await
        }
        Effect::Node { to, delivery } => {
            let nodes = outlets.nodes;
            run_sink(NodeSink { nodes, to }, delivery, &slots.node, shared).await
        }
    }
}

/// Runs a sink on a blocking thread, and waits for it within the timeout.
async fn run_sink(
    sink: impl Sink + 'static,
    delivery: Delivery,
    slots: &Arc<Semaphore>,
    shared: &BrokerShared,
) -> Result<Reply, Refusal> {
    let name = sink.name();
    let slot = Arc::clone(slots)
        .try_acquire_owned()
        .map_err(|_| Refusal::new(Reason::Busy, format!("too much goes to the {name} sink")))?;
    let work = tokio::task::spawn_blocking(move || {
        let done = sink.deliver(&delivery);
        // Held by the thread and not by its caller, which may stop waiting.
        drop(slot);
        done
    });
    match tokio::time::timeout(shared.timeouts.sink, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(Refusal::new(Reason::Internal, error.to_string())),
        Err(_) => Err(Refusal::new(
            Reason::SinkFailed,
            format!("the {name} sink took too long"),
        )),
    }
}
