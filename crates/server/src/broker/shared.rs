//! What all connections of the broker share: the state machine, the queues of each connection, the
//! sinks and the memory budget of large messages.
//!
//! The state machine is behind a lock. Its notices enter the queues while the lock is held, so
//! every connection sees the decisions in their order. Nothing waits under a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use turnkeep_session::broker::{Answer, Broker, ConnId, Message, Notice, Outcome, Settings};
use turnkeep_types::broker::{
    BadRequest, Inject, Reason, Refusal, Request, ServerMessage, SessionId,
};
use turnkeep_types::{Clock, Timestamp};
use turnkeep_wire::broker::encode_message;

use super::screen_queue::ScreenQueue;
use super::sinks::{Outlets, SinkSlots};
use super::write_queue::WriteQueue;
use super::{BrokerConfig, BrokerTimeouts};
use crate::connections::{Connections, raise_file_limit};
use crate::memory::{LARGE_FROM_BYTES, MemoryBudget};

/// The memory budget of a broker without a server in its process. The rings do not count in it.
const OWN_MEMORY_BYTES: usize = 256 << 20;

/// Large injections that wait for wrappers may take this part of the memory of the rings. A
/// suspended wrapper reads nothing, so without a limit of their own they could take all memory.
const INJECTION_SHARE: usize = 4;

/// How many changes of sessions may wait for a subscriber.
const CHANGES_MAX: usize = 1024;

/// A subscription to changes of sessions.
pub(crate) struct SessionChanges(broadcast::Receiver<SessionId>);

impl SessionChanges {
    /// The next session that changed, or `None` if changes were missed. It never returns once there
    /// is no broker any more.
    pub(crate) async fn next(&mut self) -> Option<SessionId> {
        match self.0.recv().await {
            Ok(session) => Some(session),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The outgoing queues of one connection.
#[derive(Default)]
pub(super) struct PeerQueues {
    pub(super) frames: WriteQueue,
    /// The terminal that the connection watches.
    pub(super) screen: Arc<ScreenQueue>,
}

/// What all connections share.
pub(super) struct BrokerShared {
    state_machine: Mutex<Broker>,
    changes: broadcast::Sender<SessionId>,
    settings: Settings,
    peers: Mutex<HashMap<ConnId, Arc<PeerQueues>>>,
    next_conn: AtomicU64,
    clock: Arc<dyn Clock>,
    pub(super) outlets: Outlets,
    pub(super) sink_slots: SinkSlots,
    pub(super) peer_uid: u32,
    pub(super) connections: Connections,
    pub(super) memory: MemoryBudget,
    /// The budget of large injections that wait, for all sessions together.
    injection_memory: MemoryBudget,
    pub(super) timeouts: BrokerTimeouts,
    /// When every wrapper that lost an earlier broker has had the time to connect again.
    settled_at: Instant,
}

impl BrokerShared {
    pub(super) fn new(config: BrokerConfig, outlets: Outlets, clock: Arc<dyn Clock>) -> Self {
        let own_memory = || MemoryBudget::new(OWN_MEMORY_BYTES, config.timeouts.memory);
        let injection_bytes = config.settings.memory_bytes_max / INJECTION_SHARE;
        Self {
            state_machine: Mutex::new(Broker::new(config.settings)),
            changes: broadcast::Sender::new(CHANGES_MAX),
            settings: config.settings,
            peers: Mutex::default(),
            next_conn: AtomicU64::new(1),
            clock,
            outlets,
            sink_slots: SinkSlots::default(),
            peer_uid: config.peer_uid,
            connections: Connections::new(config.connections_max.min(raise_file_limit())),
            memory: config.memory.unwrap_or_else(own_memory),
            injection_memory: MemoryBudget::new(injection_bytes, config.timeouts.memory),
            settled_at: Instant::now() + config.timeouts.settle,
            timeouts: config.timeouts,
        }
    }

    /// Waits until the wrappers have had the time to connect to this broker.
    pub(super) async fn wait_until_settled(&self) {
        tokio::time::sleep_until(self.settled_at).await;
    }

    /// Registers a connection. Returns its id and its queues.
    pub(super) fn add_peer(&self) -> (ConnId, Arc<PeerQueues>) {
        let conn = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        let queues = Arc::new(PeerQueues::default());
        self.lock_peers().insert(conn, Arc::clone(&queues));
        (conn, queues)
    }

    /// Removes a connection, and disconnects the session that it registered.
    pub(super) fn remove_peer(&self, conn: ConnId) {
        self.lock_peers().remove(&conn);
        let mut state_machine = self.lock_state_machine();
        self.send_notices(state_machine.disconnect(self.clock.now(), conn));
        self.send_changes(&mut state_machine);
    }

    /// Applies a request to the state machine and sends the notices that follow from it.
    pub(super) fn apply(&self, conn: ConnId, request: Result<Request, BadRequest>) -> Outcome {
        let now = self.clock.now();
        // Before the lock: this reads the bytes of a turn, and other connections need the lock.
        let message = Message::new(request, &self.settings);
        let mut state_machine = self.lock_state_machine();
        self.apply_locked(&mut state_machine, now, conn, message)
    }

    /// Applies requests one right after the other and stops at the first refusal. Returns the last
    /// answer; none without a request.
    pub(super) fn apply_together(&self, conn: ConnId, requests: Vec<Request>) -> Option<Answer> {
        let now = self.clock.now();
        let messages = requests.into_iter();
        let messages = messages.map(|request| Message::new(Ok(request), &self.settings));
        // Before the lock, as for a single request.
        let messages: Vec<Message> = messages.collect();
        let mut state_machine = self.lock_state_machine();
        let mut last = None;
        for message in messages {
            let answer = self
                .apply_locked(&mut state_machine, now, conn, message)
                .answer;
            let is_refused = matches!(answer, Answer::Response(Err(_)) | Answer::Greeting(Err(_)));
            last = Some(answer);
            if is_refused {
                break;
            }
        }
        last
    }

    fn apply_locked(
        &self,
        state_machine: &mut Broker,
        now: Timestamp,
        conn: ConnId,
        message: Message,
    ) -> Outcome {
        let mut outcome = state_machine.apply(now, conn, message);
        self.send_notices(std::mem::take(&mut outcome.notices));
        self.send_changes(state_machine);
        outcome
    }

    /// Removes sessions that ended long ago.
    pub(super) fn expire_sessions(&self) {
        let mut state_machine = self.lock_state_machine();
        state_machine.expire(self.clock.now());
        self.send_changes(&mut state_machine);
    }

    /// Follows which sessions change.
    pub(super) fn subscribe_changes(&self) -> SessionChanges {
        SessionChanges(self.changes.subscribe())
    }

    /// Tells the subscribers which sessions changed.
    fn send_changes(&self, state_machine: &mut Broker) {
        for session in state_machine.take_changes() {
            // An error means that there is no subscriber.
            self.changes.send(session).ok();
        }
    }

    /// Asks the wrapper for the whole screen, for a watcher that missed a part.
    pub(super) fn request_repaint(&self, conn: ConnId) {
        let state_machine = self.lock_state_machine();
        self.send_notices(state_machine.repaint(conn));
    }

    /// Puts notices into the queues of their connections. The caller holds the state machine's lock.
    fn send_notices(&self, notices: impl IntoIterator<Item = Notice>) {
        for notice in notices {
            match notice {
                Notice::Show { to, on } => self.send_watch_notice(to, on),
                Notice::Screen { to, shown } => {
                    self.for_each_watcher(&to, |screen| screen.push(&shown));
                }
                Notice::Ended { to, session } => {
                    self.for_each_watcher(&to, |screen| screen.end(&session));
                }
            }
        }
    }

    fn send_watch_notice(&self, to: ConnId, on: bool) {
        let Some(queues) = self.find_peer(to) else {
            return;
        };
        match encode_message(&ServerMessage::Show { on }) {
            Ok(frame) => queues.frames.push_watch_notice(frame),
            Err(error) => tracing::error!(%error, "a watch notice could not be encoded"),
        }
    }

    fn for_each_watcher(&self, watchers: &[ConnId], act: impl Fn(&ScreenQueue)) {
        let peers = self.lock_peers();
        for queues in watchers.iter().filter_map(|conn| peers.get(conn)) {
            act(&queues.screen);
        }
    }

    /// Queues bytes that a wrapper types into its program.
    pub(super) fn inject(&self, to: ConnId, inject: Inject) -> Result<(), Refusal> {
        let queues = self.find_peer(to).ok_or(Reason::SessionDisconnected)?;
        let frame = encode_message(&ServerMessage::Inject(inject))
            .map_err(|error| Refusal::new(Reason::PayloadTooLarge, error.to_string()))?;
        let permit = if frame.len() >= LARGE_FROM_BYTES {
            let permit = self.injection_memory.try_acquire(frame.len());
            Some(permit.ok_or(Reason::Busy)?)
        } else {
            None
        };
        Ok(queues.frames.push_injection(frame, permit)?)
    }

    fn find_peer(&self, conn: ConnId) -> Option<Arc<PeerQueues>> {
        self.lock_peers().get(&conn).cloned()
    }

    fn lock_state_machine(&self) -> MutexGuard<'_, Broker> {
        self.state_machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_peers(&self) -> MutexGuard<'_, HashMap<ConnId, Arc<PeerQueues>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
