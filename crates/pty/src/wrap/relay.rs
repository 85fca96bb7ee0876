//! The outlet to the broker: a thread that connects, registers, hands over turns and takes
//! injections.
//!
//! The broker is optional and may come and go. The newest [`RING_TURNS_MAX`] turns are kept and all
//! handed over, in order, after every registration: the broker knows them by their numbers, so one
//! that stayed keeps none twice and one that was restarted has them again. What a shared terminal
//! shows goes out after turns and states, while somebody watches. Nothing here reaches the byte
//! path but the injected bytes.

mod desk;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use turnkeep_client::broker::{AsyncConnection, BrokerError as Error};
use turnkeep_types::broker::{
    CompletedTurn, Inject, RECONNECT_PAUSE_MAX, Register, Role, ServerMessage, Shown, StateChange,
};

use super::capture::Outlet;
use super::inject::{Framing, Injector};
use super::share::Share;
pub use desk::RING_TURNS_MAX;
use desk::{Desk, Word, shortened};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Pastes that wait here for the child, from which on nothing is told.
const PASTES_BYTES_MAX: usize = 8 << 20;
/// When nothing has come for so long, the broker holds no paste from before an interrupt.
const DRY_AFTER: Duration = Duration::from_millis(50);
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// How long the wrapper's end waits for the broker.
const END_PAUSE: Duration = Duration::from_secs(2);

/// What was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Something,
    Nothing,
    /// Nothing before this moment, unless the store answers.
    Held(Instant),
    /// The session's end.
    Farewell,
}

#[derive(Debug)]
struct Shared {
    desk: Mutex<Desk>,
    bell: Notify,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Desk)) {
        change(&mut self.desk());
        self.bell.notify_one();
    }
}

/// A session, as the broker is to know it.
pub struct Session {
    /// How it is announced.
    pub register: Register,
    /// Where pastes go.
    pub injector: Injector,
    /// What others may watch, if they may.
    pub share: Option<Share>,
}

/// The outlet. Ending it waits a moment for the broker to hear everything.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    done: Receiver<()>,
}

impl Relay {
    /// Starts the thread, which registers the session as soon as the child runs.
    pub fn start(socket: PathBuf, session: Session) -> io::Result<Self> {
        let Session {
            register,
            injector,
            share,
        } = session;
        let shared = Arc::new(Shared {
            desk: Mutex::new(Desk::new(register)),
            bell: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (tell, done) = sync_channel(1);
        let line = Line {
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

    /// From now on turns are told when the store has answered for them, which is to be said here.
    pub fn hold_for_store(&self) -> StoreAnswers {
        self.shared.change(|desk| desk.store_answered(0));
        StoreAnswers(self.shared.clone())
    }
}

/// Tells the outlet to the broker what the store has answered for.
#[derive(Debug, Clone)]
pub struct StoreAnswers(Arc<Shared>);

impl StoreAnswers {
    /// The store has all turns up to this number, or has refused to take them for now.
    pub fn up_to(&self, seq: u64) {
        self.0.change(|desk| desk.store_answered(seq));
    }
}

impl Outlet for Relay {
    fn start(&mut self, child: u32) {
        self.shared.change(|desk| {
            desk.register.child_pid = Some(child);
            desk.started = true;
        });
    }

    fn state(&mut self, change: &StateChange) {
        self.shared.change(|desk| desk.change_state(change.clone()));
    }

    fn turn(&mut self, turn: &CompletedTurn) {
        self.shared
            .change(|desk| desk.keep(Instant::now(), turn.clone()));
    }

    fn shown(&mut self) {
        self.shared.bell.notify_one();
    }

    fn end(&mut self) {
        self.shared.change(|desk| desk.ended = true);
        // A broker that does not answer finds out by itself that we are gone.
        self.done.recv_timeout(END_PAUSE).ok();
    }
}

/// The thread's side.
struct Line {
    shared: Arc<Shared>,
    socket: PathBuf,
    injector: Injector,
    share: Option<Share>,
}

impl Line {
    async fn run(self) {
        while !self.shared.desk().started {
            self.shared.bell.notified().await;
        }
        let mut pause = RETRY_FIRST;
        loop {
            if let Ok(connection) = self.connect().await
                && let Err(error) = self.serve(connection, &mut pause).await
            {
                tracing::debug!(%error, "the broker is gone");
            }
            if self.shared.desk().ended {
                return;
            }
            self.rest(pause).await;
            pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
        }
    }

    /// Waits before the next attempt; the session's end cuts it short.
    async fn rest(&self, pause: Duration) {
        let ended = async {
            while !self.shared.desk().ended {
                self.shared.bell.notified().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ended => {}
        }
    }

    async fn connect(&self) -> Result<AsyncConnection, Error> {
        let mut connection =
            AsyncConnection::open(&self.socket, Role::Wrapper, ANSWER_WITHIN).await?;
        let register = self.shared.desk().register.clone();
        connection.register(register).await?;
        self.watched(false);
        self.shared.desk().forget_told();
        Ok(connection)
    }

    /// Speaks and hears until the session or the connection ends; `pause` is the first again when
    /// the broker has heard everything. What the broker injects is taken from it only as the child
    /// takes it: the broker's queue is the one that counts, and says `busy` when it is full.
    /// Whoever asks hears first what the broker was saying, so each turn that is told may bring a
    /// paste that waits here: beyond some bytes nothing more is told before the child has read.
    async fn serve(
        &self,
        mut connection: AsyncConnection,
        pause: &mut Duration,
    ) -> Result<(), Error> {
        loop {
            if self.injector.is_dropping() {
                self.run_dry(&mut connection).await?;
            }
            while self.injector.has_room() && connection.has_notification() {
                self.hear(connection.next_notification().await?);
            }
            let mut held = None;
            if connection.notification_bytes() < PASTES_BYTES_MAX {
                match self.speak(&mut connection).await? {
                    Said::Something => continue,
                    Said::Nothing => *pause = RETRY_FIRST,
                    Said::Held(until) => held = Some(until),
                    Said::Farewell => return Ok(()),
                }
            }
            let has_room = self.injector.has_room();
            tokio::select! {
                unasked = connection.next_notification(), if has_room => self.hear(unasked?),
                () = self.injector.room() => {}
                () = self.shared.bell.notified() => {}
                () = moment(held) => {}
            }
        }
    }

    /// The user has interrupted what was pasted: takes from the broker what it holds of that, until
    /// nothing comes for a moment.
    async fn run_dry(&self, connection: &mut AsyncConnection) -> Result<(), Error> {
        while let Ok(unasked) =
            tokio::time::timeout(DRY_AFTER, connection.next_notification()).await
        {
            self.hear(unasked?);
        }
        self.injector.resume();
        Ok(())
    }

    /// Says one thing, if there is one to be said.
    async fn speak(&self, connection: &mut AsyncConnection) -> Result<Said, Error> {
        let word = self.shared.desk().next(Instant::now());
        match word {
            Some(Word::Turn(turn)) => self.tell_turn(connection, turn).await?,
            Some(Word::State(change)) => self.tell_state(connection, change).await?,
            Some(Word::End(session)) => {
                self.tell_shown(connection).await?;
                connection.deregister(&session).await?;
                return Ok(Said::Farewell);
            }
            // What the terminal shows waits for no store.
            Some(Word::Hold(_)) | None if self.tell_shown(connection).await? => {}
            Some(Word::Hold(until)) => return Ok(Said::Held(until)),
            None => return Ok(Said::Nothing),
        }
        Ok(Said::Something)
    }

    fn hear(&self, unasked: ServerMessage) {
        match unasked {
            ServerMessage::Inject(inject) => self.inject(inject),
            ServerMessage::Show { on } => self.watched(on),
            other => tracing::debug!(?other, "the broker says what a wrapper need not know"),
        }
    }

    fn watched(&self, on: bool) {
        if let Some(share) = &self.share {
            share.watched(on);
        }
    }

    /// Sends what is to be shown; says whether that was anything.
    async fn tell_shown(&self, connection: &mut AsyncConnection) -> Result<bool, Error> {
        let Some(share) = &self.share else {
            return Ok(false);
        };
        let session = self.shared.desk().register.session.clone();
        let pieces: Vec<Shown> = share.take(&session);
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

    async fn tell_turn(
        &self,
        connection: &mut AsyncConnection,
        turn: CompletedTurn,
    ) -> Result<(), Error> {
        let seq = turn.seq.unwrap_or_default();
        let mut told = connection.turn_completed(turn.clone()).await;
        if matches!(told, Err(Error::TooLong(_))) {
            told = connection.turn_completed(shortened(turn)).await;
        }
        match told {
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => tracing::warn!(%error, seq, "the broker does not take a turn"),
            Ok(_) => {}
        }
        self.shared.desk().turn_told(seq);
        Ok(())
    }

    async fn tell_state(
        &self,
        connection: &mut AsyncConnection,
        change: StateChange,
    ) -> Result<(), Error> {
        let told = connection.state(change.clone()).await;
        if let Err(error) = told
            && error.is_fatal()
        {
            return Err(error);
        }
        self.shared.desk().state_told(&change);
        Ok(())
    }

    /// Puts bytes into the child's input, which has room for them.
    fn inject(&self, inject: Inject) {
        let framing = if inject.bracketed {
            Framing::Bracketed
        } else {
            Framing::Plain
        };
        if let Err(error) = self.injector.inject_as(framing, inject.content) {
            tracing::warn!(%error, "a paste was refused");
        }
    }
}

/// Waits for a moment; without one, for ever.
async fn moment(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keep::{Keep, Label};
    use super::*;

    #[test]
    fn the_store_is_asked_before_the_broker_hears_of_a_turn() {
        let shared = Arc::new(Shared {
            desk: Mutex::new(Desk::new(Register::default())),
            bell: Notify::new(),
        });
        shared.desk().store_answered(0);
        let desk = shared.clone();
        let (tell, held) = sync_channel(8);
        let keep = move |_: &_| {
            tell.send(matches!(
                desk.desk().next(Instant::now()),
                Some(Word::Hold(_))
            ))
            .ok();
            Err("no store today".to_owned())
        };
        let turn = CompletedTurn {
            seq: Some(1),
            ..CompletedTurn::default()
        };
        shared
            .desk()
            .keep(Instant::now() + ANSWER_WITHIN, turn.clone());
        let answers = StoreAnswers(shared.clone());
        let (mut keeper, _) = Keep::start(Label::default(), Some(answers), keep).unwrap();
        keeper.turn(&turn);
        assert_eq!(
            held.recv_timeout(ANSWER_WITHIN),
            Ok(true),
            "told before the store was asked"
        );
        assert_eq!(
            held.recv_timeout(ANSWER_WITHIN),
            Ok(false),
            "not told although the store refused it"
        );
    }
}
