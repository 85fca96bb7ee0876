//! The outlet to the broker: a thread that connects, registers, sends turns and receives pastes.
//!
//! The broker is optional and may come and go. The newest [`RING_TURNS_MAX`] turns are kept, and
//! all are sent in order after every registration. The broker recognises them by their numbers, so
//! one that stayed keeps none twice and one that was restarted has them again. Pieces of a shared
//! terminal follow after turns and states, while a client watches. Only the pasted bytes reach the
//! byte path.

mod broker_queue;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use turnkeep_client::broker::{AsyncConnection, BrokerError};
use turnkeep_types::broker::{
    CompletedTurn, Inject, RECONNECT_PAUSE_MAX, Register, Role, ServerMessage, Shown, StateChange,
};

use super::inject::{Injector, PasteFraming};
use super::share::SharedTerminal;
use super::turn_finder::TurnOutlet;
pub use broker_queue::RING_TURNS_MAX;
use broker_queue::{BrokerMessage, BrokerQueue, shorten_turn};

const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);
/// How many pasted bytes may wait here for the child before no more is sent to the broker.
const PASTES_BYTES_MAX: usize = 8 << 20;
/// After this long without a message, the broker holds no paste from before an interrupt.
const DROP_IDLE_PAUSE: Duration = Duration::from_millis(50);
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// How long the wrapper's end waits for the broker.
const END_PAUSE: Duration = Duration::from_secs(2);

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendOutcome {
    Sent,
    Idle,
    /// Nothing before this moment, unless the store answers.
    Held(Instant),
    /// The session's end was sent.
    Ended,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<BrokerQueue>,
    bell: Notify,
}

impl Shared {
    fn lock_queue(&self) -> MutexGuard<'_, BrokerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_queue(&self, change: impl FnOnce(&mut BrokerQueue)) {
        change(&mut self.lock_queue());
        self.bell.notify_one();
    }
}

/// A session as the broker knows it.
pub struct BrokerSession {
    /// Its registration.
    pub register: Register,
    /// The destination of pastes.
    pub injector: Injector,
    /// The shared terminal, if the user allowed others to watch.
    pub share: Option<SharedTerminal>,
}

/// The outlet to the broker. Ending it waits a moment for the broker to receive everything.
#[derive(Debug)]
pub struct BrokerOutlet {
    shared: Arc<Shared>,
    done: Receiver<()>,
}

impl BrokerOutlet {
    /// Starts the thread, which registers the session as soon as the child runs.
    pub fn start(socket: PathBuf, session: BrokerSession) -> io::Result<Self> {
        let BrokerSession {
            register,
            injector,
            share,
        } = session;
        let shared = Arc::new(Shared {
            queue: Mutex::new(BrokerQueue::new(register)),
            bell: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (tell, done) = sync_channel(1);
        let line = OutletThread {
            shared: shared.clone(),
            socket,
            injector,
            share,
        };
        let body = move || {
            runtime.block_on(line.run());
            tell.send(()).ok();
        };
        std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(body)?;
        Ok(Self { shared, done })
    }

    /// From now on, turns are sent only after the store has answered for them, which the caller
    /// reports here.
    pub fn hold_for_store(&self) -> StoreAnswers {
        self.shared.change_queue(|queue| queue.store_answered(0));
        StoreAnswers(self.shared.clone())
    }
}

/// Reports the answers of the store to the broker outlet.
#[derive(Debug, Clone)]
pub struct StoreAnswers(Arc<Shared>);

impl StoreAnswers {
    /// The store has all turns up to this number, or has rejected them for now.
    pub fn up_to(&self, seq: u64) {
        self.0.change_queue(|queue| queue.store_answered(seq));
    }
}

impl TurnOutlet for BrokerOutlet {
    fn child_started(&mut self, child: u32) {
        self.shared.change_queue(|queue| {
            queue.register.child_pid = Some(child);
            queue.started = true;
        });
    }

    fn state_changed(&mut self, change: &StateChange) {
        self.shared
            .change_queue(|queue| queue.change_state(change.clone()));
    }

    fn turn_completed(&mut self, turn: &CompletedTurn) {
        self.shared
            .change_queue(|queue| queue.add_turn(Instant::now(), turn.clone()));
    }

    fn screen_changed(&mut self) {
        self.shared.bell.notify_one();
    }

    fn child_ended(&mut self) {
        self.shared.change_queue(|queue| queue.ended = true);
        // A broker that does not answer notices by itself that we are gone.
        self.done.recv_timeout(END_PAUSE).ok();
    }
}

/// The thread's side.
struct OutletThread {
    shared: Arc<Shared>,
    socket: PathBuf,
    injector: Injector,
    share: Option<SharedTerminal>,
}

impl OutletThread {
    async fn run(self) {
        while !self.shared.lock_queue().started {
            self.shared.bell.notified().await;
        }
        let mut pause = RETRY_FIRST;
        loop {
            if let Ok(connection) = self.connect().await
                && let Err(error) = self.serve(connection, &mut pause).await
            {
                tracing::debug!(%error, "the broker is gone");
            }
            if self.shared.lock_queue().ended {
                return;
            }
            self.wait_before_retry(pause).await;
            pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
        }
    }

    /// Waits before the next attempt; the session's end cuts it short.
    async fn wait_before_retry(&self, pause: Duration) {
        let ended = async {
            while !self.shared.lock_queue().ended {
                self.shared.bell.notified().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ended => {}
        }
    }

    async fn connect(&self) -> Result<AsyncConnection, BrokerError> {
        let mut connection =
            AsyncConnection::open(&self.socket, Role::Wrapper, ANSWER_WAIT_MAX).await?;
        let register = self.shared.lock_queue().register.clone();
        connection.register(register).await?;
        // A new connection has no watchers until the broker says so.
        self.set_watched(false);
        self.shared.lock_queue().restart();
        Ok(connection)
    }

    /// Sends and receives until the session or the connection ends. `pause` is reset when the
    /// broker has received everything.
    ///
    /// Pastes are read from the broker only as fast as the child reads them: the broker's queue is
    /// the one that counts, and it rejects with `busy` when it is full. A request receives pending
    /// pastes before its response, so each turn that is sent may bring a paste that waits here.
    /// Beyond [`PASTES_BYTES_MAX`] nothing more is sent before the child has read.
    async fn serve(
        &self,
        mut connection: AsyncConnection,
        pause: &mut Duration,
    ) -> Result<(), BrokerError> {
        loop {
            // Interrupted pastes must be gone before new ones are accepted.
            if self.injector.is_dropping() {
                self.drop_interrupted_pastes(&mut connection).await?;
            }
            while self.injector.has_room() && connection.has_notification() {
                self.handle_message(connection.next_notification().await?);
            }
            let mut held = None;
            if connection.notification_bytes() < PASTES_BYTES_MAX {
                match self.send_next(&mut connection).await? {
                    SendOutcome::Sent => continue,
                    // The broker has everything, so a later failure is a new one.
                    SendOutcome::Idle => *pause = RETRY_FIRST,
                    SendOutcome::Held(until) => held = Some(until),
                    SendOutcome::Ended => return Ok(()),
                }
            }
            let has_room = self.injector.has_room();
            tokio::select! {
                unasked = connection.next_notification(), if has_room => self.handle_message(unasked?),
                () = self.injector.wait_for_room() => {}
                () = self.shared.bell.notified() => {}
                () = sleep_until(held) => {}
            }
        }
    }

    /// Reads the pastes that the user has interrupted from the broker, until none comes for a
    /// moment. The injector drops them.
    async fn drop_interrupted_pastes(
        &self,
        connection: &mut AsyncConnection,
    ) -> Result<(), BrokerError> {
        while let Ok(unasked) =
            tokio::time::timeout(DROP_IDLE_PAUSE, connection.next_notification()).await
        {
            self.handle_message(unasked?);
        }
        self.injector.resume();
        Ok(())
    }

    /// Sends one message, if there is one.
    async fn send_next(
        &self,
        connection: &mut AsyncConnection,
    ) -> Result<SendOutcome, BrokerError> {
        let message = self.shared.lock_queue().next_message(Instant::now());
        match message {
            Some(BrokerMessage::Turn(turn)) => self.send_turn(connection, turn).await?,
            Some(BrokerMessage::State(change)) => self.send_state(connection, change).await?,
            Some(BrokerMessage::End(session)) => {
                self.send_screen(connection).await?;
                connection.deregister(&session).await?;
                return Ok(SendOutcome::Ended);
            }
            // The screen does not wait for the store.
            Some(BrokerMessage::Hold(_)) | None if self.send_screen(connection).await? => {}
            Some(BrokerMessage::Hold(until)) => return Ok(SendOutcome::Held(until)),
            None => return Ok(SendOutcome::Idle),
        }
        Ok(SendOutcome::Sent)
    }

    fn handle_message(&self, unasked: ServerMessage) {
        match unasked {
            ServerMessage::Inject(inject) => self.inject_paste(inject),
            ServerMessage::Show { on } => self.set_watched(on),
            other => tracing::debug!(?other, "the broker says what a wrapper need not know"),
        }
    }

    fn set_watched(&self, on: bool) {
        if let Some(share) = &self.share {
            share.set_watched(on);
        }
    }

    /// Sends the pending pieces of the screen; returns whether there were any.
    async fn send_screen(&self, connection: &mut AsyncConnection) -> Result<bool, BrokerError> {
        let Some(share) = &self.share else {
            return Ok(false);
        };
        let session = self.shared.lock_queue().register.session.clone();
        let pieces: Vec<Shown> = share.take_pieces(&session);
        let is_any = !pieces.is_empty();
        for shown in pieces {
            match connection.screen(shown).await {
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => tracing::debug!(%error, "the broker does not show the terminal"),
                Ok(()) => {}
            }
        }
        Ok(is_any)
    }

    async fn send_turn(
        &self,
        connection: &mut AsyncConnection,
        turn: CompletedTurn,
    ) -> Result<(), BrokerError> {
        let seq = turn.seq.unwrap_or_default();
        let mut sent = connection.turn_completed(turn.clone()).await;
        // A truncated turn is better than none.
        if matches!(sent, Err(BrokerError::TooLong(_))) {
            sent = connection.turn_completed(shorten_turn(turn)).await;
        }
        match sent {
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => tracing::warn!(%error, seq, "the broker does not take a turn"),
            Ok(_) => {}
        }
        self.shared.lock_queue().mark_turn_sent(seq);
        Ok(())
    }

    async fn send_state(
        &self,
        connection: &mut AsyncConnection,
        change: StateChange,
    ) -> Result<(), BrokerError> {
        let sent = connection.state(change.clone()).await;
        if let Err(error) = sent
            && error.is_fatal()
        {
            return Err(error);
        }
        self.shared.lock_queue().mark_state_sent(&change);
        Ok(())
    }

    /// Puts a paste into the child's input, which has room for it.
    fn inject_paste(&self, inject: Inject) {
        let framing = if inject.bracketed {
            PasteFraming::Bracketed
        } else {
            PasteFraming::Plain
        };
        if let Err(error) = self.injector.inject_as(framing, inject.content) {
            tracing::warn!(%error, "a paste was refused");
        }
    }
}

/// Sleeps until a moment; without one, forever.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::broker::FoundTurn;

    use super::super::store_outlet::{SessionLabel, StoreOutlet};
    use super::*;

    /// The longest that the test waits for an answer.
    const TEST_WAIT_MAX: Duration = Duration::from_mins(1);

    #[test]
    fn the_store_is_asked_before_the_broker_hears_of_a_turn() {
        let shared = Arc::new(Shared {
            queue: Mutex::new(BrokerQueue::new(Register::default())),
            bell: Notify::new(),
        });
        shared.lock_queue().store_answered(0);
        let queue = shared.clone();
        let (tell, held) = sync_channel(8);
        let keep = move |turns: &[FoundTurn]| {
            tell.send(matches!(
                queue.lock_queue().next_message(Instant::now()),
                Some(BrokerMessage::Hold(_))
            ))
            .ok();
            vec![Err("no store today".to_owned()); turns.len()]
        };
        let turn = CompletedTurn {
            seq: Some(1),
            ..CompletedTurn::default()
        };
        shared
            .lock_queue()
            .add_turn(Instant::now() + TEST_WAIT_MAX, turn.clone());
        let answers = StoreAnswers(shared.clone());
        let (mut keeper, _) =
            StoreOutlet::start(SessionLabel::default(), Some(answers), keep).unwrap();
        keeper.turn_completed(&turn);
        assert_eq!(
            held.recv_timeout(TEST_WAIT_MAX),
            Ok(true),
            "told before the store was asked"
        );
        assert_eq!(
            held.recv_timeout(TEST_WAIT_MAX),
            Ok(false),
            "not told although the store refused it"
        );
    }
}
