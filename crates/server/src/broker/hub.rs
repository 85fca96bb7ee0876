//! What all connections share: the machine, the outboxes, the sinks and the memory budget of large
//! messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use turnkeep_session::broker::{Broker, ConnId, Message, Notice, Outcome, Settings};
use turnkeep_types::Clock;
use turnkeep_types::broker::{BadRequest, Inject, Reason, Refusal, Request, ServerMessage};
use turnkeep_wire::broker::encode_message;

use super::outbox::Outbox;
use super::sinks::{Outlets, Places};
use super::viewer::Viewer;
use super::{BrokerConfig, BrokerTimeouts};
use crate::connections::{Connections, file_limit};
use crate::memory::{LARGE_FROM_BYTES, MemoryBudget};

/// Large messages of all connections together, besides what the rings hold, of a broker that is
/// alone in its process.
const LARGE_BYTES_MAX: usize = 256 << 20;

/// Which part of the memory large injections may take that wait for wrappers to read them.
const INJECTED_SHARE: usize = 4;

/// What goes to one connection.
#[derive(Default)]
pub(super) struct Line {
    /// Its answers, and what is injected.
    pub(super) outbox: Outbox,
    /// The terminal that it watches.
    pub(super) viewer: Arc<Viewer>,
}

/// What all connections share.
pub(super) struct Hub {
    broker: Mutex<Broker>,
    settings: Settings,
    lines: Mutex<HashMap<ConnId, Arc<Line>>>,
    next_conn: AtomicU64,
    clock: Arc<dyn Clock>,
    pub(super) outlets: Outlets,
    pub(super) places: Places,
    pub(super) peer_uid: u32,
    pub(super) connections: Connections,
    pub(super) memory: MemoryBudget,
    /// For large injections that wait, of all sessions together.
    injections: MemoryBudget,
    pub(super) timeouts: BrokerTimeouts,
    /// From when on every wrapper that lost an earlier broker has had the time to connect again.
    settled_at: Instant,
}

impl Hub {
    pub(super) fn new(config: BrokerConfig, outlets: Outlets, clock: Arc<dyn Clock>) -> Self {
        let own_memory = || MemoryBudget::new(LARGE_BYTES_MAX, config.timeouts.room);
        Self {
            broker: Mutex::new(Broker::new(config.settings)),
            settings: config.settings,
            lines: Mutex::default(),
            next_conn: AtomicU64::new(1),
            clock,
            outlets,
            places: Places::default(),
            peer_uid: config.peer_uid,
            connections: Connections::new(config.connections_max.min(file_limit())),
            memory: config.memory.unwrap_or_else(own_memory),
            injections: MemoryBudget::new(
                config.settings.memory_bytes_max / INJECTED_SHARE,
                config.timeouts.room,
            ),
            settled_at: Instant::now() + config.timeouts.settle,
            timeouts: config.timeouts,
        }
    }

    /// Waits until the wrappers have had the time to connect to this broker.
    pub(super) async fn settled(&self) {
        tokio::time::sleep_until(self.settled_at).await;
    }

    /// Takes up a connection: its number and what goes to it.
    pub(super) fn enter(&self) -> (ConnId, Arc<Line>) {
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        let line = Arc::new(Line::default());
        self.lines().insert(conn, Arc::clone(&line));
        (conn, line)
    }

    /// Lets a connection go, and its session with it.
    pub(super) fn leave(&self, conn: ConnId) {
        self.lines().remove(&conn);
        let mut broker = self.broker();
        self.tell(broker.disconnect(self.clock.now(), conn));
    }

    /// Lets the machine decide, and tells others what they hear of it before anything else is
    /// decided.
    pub(super) fn apply(&self, conn: ConnId, message: Result<Request, BadRequest>) -> Outcome {
        let now = self.clock.now();
        let message = Message::new(message, &self.settings);
        let mut broker = self.broker();
        let mut outcome = broker.apply(now, conn, message);
        self.tell(std::mem::take(&mut outcome.notices));
        outcome
    }

    pub(super) fn expire(&self) {
        self.broker().expire(self.clock.now());
    }

    /// A watcher has missed something: its wrapper is asked for the whole screen.
    pub(super) fn repaint(&self, conn: ConnId) {
        let broker = self.broker();
        self.tell(broker.repaint(conn));
    }

    /// Tells connections what they hear unasked. Never waits.
    fn tell(&self, notices: impl IntoIterator<Item = Notice>) {
        for notice in notices {
            match notice {
                Notice::Show { to, on } => self.ask_to_show(to, on),
                Notice::Screen { to, shown } => self.each(&to, |viewer| viewer.show(&shown)),
                Notice::Ended { to, session } => self.each(&to, |viewer| viewer.end(&session)),
            }
        }
    }

    fn ask_to_show(&self, to: ConnId, on: bool) {
        let Some(line) = self.lines().get(&to).cloned() else {
            return;
        };
        match encode_message(&ServerMessage::Show { on }) {
            Ok(frame) => line.outbox.show(frame),
            Err(error) => {
                tracing::error!(%error, "a word about who watches is too long to be sent");
            }
        }
    }

    fn each(&self, to: &[ConnId], act: impl Fn(&Viewer)) {
        let lines = self.lines();
        for line in to.iter().filter_map(|conn| lines.get(conn)) {
            act(&line.viewer);
        }
    }

    /// Puts bytes on their way to a wrapper.
    pub(super) fn inject(&self, to: ConnId, inject: Inject) -> Result<(), Refusal> {
        let line = self
            .lines()
            .get(&to)
            .cloned()
            .ok_or(Reason::SessionDisconnected)?;
        let frame = encode_message(&ServerMessage::Inject(inject))
            .map_err(|error| Refusal::new(Reason::PayloadTooLarge, error.to_string()))?;
        let is_large = frame.len() >= LARGE_FROM_BYTES;
        let permit = is_large
            .then(|| self.injections.try_acquire(frame.len()).ok_or(Reason::Busy))
            .transpose()?;
        Ok(line.outbox.inject(frame, permit)?)
    }

    fn broker(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<ConnId, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
