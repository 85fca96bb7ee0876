//! What all connections share: the machine, the outboxes, the sinks and the room for large messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnkeep_session::broker::{Broker, ConnId, Outcome};
use turnkeep_types::Clock;
use turnkeep_types::broker::{BadRequest, Inject, Reason, Refusal, Request, ServerMessage};
use turnkeep_wire::broker::encode_message;

use super::outbox::Outbox;
use super::sinks::{Outlets, Places};
use super::{BrokerConfig, BrokerTimeouts};
use crate::connections::Connections;
use crate::memory::Memory;

/// Large messages of all connections together, besides what the rings hold.
const LARGE_BYTES_MAX: usize = 256 << 20;

/// What all connections share.
pub(super) struct Hub {
    broker: Mutex<Broker>,
    outboxes: Mutex<HashMap<ConnId, Arc<Outbox>>>,
    next_conn: AtomicU64,
    clock: Arc<dyn Clock>,
    pub(super) outlets: Outlets,
    pub(super) places: Places,
    pub(super) peer_uid: u32,
    pub(super) connections: Connections,
    pub(super) memory: Memory,
    pub(super) timeouts: BrokerTimeouts,
}

impl Hub {
    pub(super) fn new(config: BrokerConfig, outlets: Outlets, clock: Arc<dyn Clock>) -> Self {
        Self {
            broker: Mutex::new(Broker::new(config.settings)),
            outboxes: Mutex::default(),
            next_conn: AtomicU64::new(1),
            clock,
            outlets,
            places: Places::default(),
            peer_uid: config.peer_uid,
            connections: Connections::new(config.connections_max),
            memory: Memory::new(LARGE_BYTES_MAX, config.timeouts.room),
            timeouts: config.timeouts,
        }
    }

    /// Takes up a connection: its number and its outbox.
    pub(super) fn enter(&self) -> (ConnId, Arc<Outbox>) {
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        let outbox = Arc::new(Outbox::default());
        self.outboxes().insert(conn, Arc::clone(&outbox));
        (conn, outbox)
    }

    /// Lets a connection go, and its session with it.
    pub(super) fn leave(&self, conn: ConnId) {
        self.outboxes().remove(&conn);
        self.broker().disconnect(self.clock.now(), conn);
    }

    /// Lets the machine decide.
    pub(super) fn apply(&self, conn: ConnId, message: Result<Request, BadRequest>) -> Outcome {
        let now = self.clock.now();
        self.broker().apply(now, conn, message)
    }

    pub(super) fn expire(&self) {
        self.broker().expire(self.clock.now());
    }

    /// Puts bytes on their way to a wrapper.
    pub(super) fn inject(&self, to: ConnId, inject: Inject) -> Result<(), Refusal> {
        let outbox = self.outboxes().get(&to).cloned().ok_or(Reason::SessionDisconnected)?;
        let frame = encode_message(&ServerMessage::Inject(inject))
            .map_err(|error| Refusal::new(Reason::PayloadTooLarge, error.to_string()))?;
        Ok(outbox.inject(frame)?)
    }

    fn broker(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outboxes(&self) -> MutexGuard<'_, HashMap<ConnId, Arc<Outbox>>> {
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
