//! The outlet to the broker: a thread that connects, registers, hands over turns and takes injections.
//!
//! The broker is optional and may come and go. The newest [`RING_TURNS_MAX`] turns are kept here and all
//! handed over, in order, after every registration: the broker knows them by their numbers, so one that
//! stayed keeps none twice and one that was restarted has them again. What a shared terminal shows goes out
//! after turns and states, while somebody watches. Nothing here reaches the byte path but the injected bytes.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use turnkeep_client::broker::{AsyncConnection, Error};
use turnkeep_types::broker::{CompletedTurn, Inject, Register, Role, ServerMessage, Shown, StateChange};

use super::capture::Outlet;
use super::inject::{Framing, Injector};
use super::share::Share;

/// Turns that are kept for a broker that is not there.
pub const RING_TURNS_MAX: usize = 32;
/// Bytes of those turns; the newest turn is kept whatever its size.
const RING_BYTES_MAX: usize = 128 << 20;
/// Content, text and raw bytes of a turn that is too long for one message: three of them fit.
const PART_BYTES_MAX: usize = 5 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// When nothing has come for so long, the broker holds no paste from before an interrupt.
const DRY_AFTER: Duration = Duration::from_millis(50);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// How long the wrapper's end waits for the broker.
const END_PAUSE: Duration = Duration::from_secs(2);

/// What is to be told to the broker.
#[derive(Debug)]
struct Desk {
    register: Register,
    started: bool,
    ended: bool,
    ring: VecDeque<CompletedTurn>,
    ring_bytes: usize,
    /// The number of the last turn that this connection was told.
    told_seq: u64,
    state: Option<StateChange>,
    state_told: bool,
}

/// The next thing to say.
enum Word {
    Turn(CompletedTurn),
    State(StateChange),
    End(String),
}

/// What was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Something,
    Nothing,
    /// The session's end.
    Farewell,
}

impl Desk {
    fn new(register: Register) -> Self {
        Self {
            register,
            started: false,
            ended: false,
            ring: VecDeque::new(),
            ring_bytes: 0,
            told_seq: 0,
            state: None,
            state_told: true,
        }
    }

    /// A new connection has been told nothing.
    fn forget_told(&mut self) {
        (self.told_seq, self.state_told) = (0, self.state.is_none());
    }

    fn keep(&mut self, turn: CompletedTurn) {
        self.ring_bytes += size(&turn);
        self.ring.push_back(turn);
        while self.ring.len() > RING_TURNS_MAX || (self.ring_bytes > RING_BYTES_MAX && self.ring.len() > 1) {
            self.ring_bytes -= self.ring.pop_front().map_or(0, |turn| size(&turn));
        }
    }

    fn next(&self) -> Option<Word> {
        let untold = self.ring.iter().find(|turn| turn.seq > Some(self.told_seq));
        if let Some(turn) = untold {
            return Some(Word::Turn(turn.clone()));
        }
        let state = self.state.clone().filter(|_| !self.state_told);
        state.map(Word::State).or_else(|| self.ended.then(|| Word::End(self.register.session.clone())))
    }
}

/// A turn whose three parts fit in one message: the head of each, and what was cut is said.
fn shortened(turn: CompletedTurn) -> CompletedTurn {
    let text = turn.text.map(|mut text| {
        text.truncate(text.floor_char_boundary(PART_BYTES_MAX));
        text
    });
    let raw_cut = turn.raw.as_ref().is_some_and(|raw| raw.len() > PART_BYTES_MAX);
    CompletedTurn {
        truncated: turn.truncated || turn.content.len() > PART_BYTES_MAX,
        raw_truncated: turn.raw_truncated || raw_cut,
        content: turn.content.slice(..turn.content.len().min(PART_BYTES_MAX)),
        raw: turn.raw.map(|raw| raw.slice(..raw.len().min(PART_BYTES_MAX))),
        text,
        ..turn
    }
}

fn size(turn: &CompletedTurn) -> usize {
    turn.content.len() + turn.text.as_ref().map_or(0, String::len) + turn.raw.as_ref().map_or(0, Bytes::len)
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
        let Session { register, injector, share } = session;
        let shared = Arc::new(Shared { desk: Mutex::new(Desk::new(register)), bell: Notify::new() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (tell, done) = sync_channel(1);
        let line = Line { shared: shared.clone(), socket, injector, share };
        let body = move || {
            runtime.block_on(line.run());
            tell.send(()).ok();
        };
        std::thread::Builder::new().name("relay".to_owned()).spawn(body)?;
        Ok(Self { shared, done })
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
        self.shared.change(|desk| (desk.state, desk.state_told) = (Some(change.clone()), false));
    }

    fn turn(&mut self, turn: &CompletedTurn) {
        self.shared.change(|desk| desk.keep(turn.clone()));
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
            if let Ok(connection) = self.connect().await {
                pause = RETRY_FIRST;
                if let Err(error) = self.serve(connection).await {
                    tracing::debug!(%error, "the broker is gone");
                }
            }
            if self.shared.desk().ended {
                return;
            }
            self.rest(pause).await;
            pause = (pause * 2).min(RETRY_LAST);
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
        let mut connection = AsyncConnection::open(&self.socket, Role::Wrapper, ANSWER_WITHIN).await?;
        let register = self.shared.desk().register.clone();
        connection.register(register).await?;
        self.watched(false);
        self.shared.desk().forget_told();
        Ok(connection)
    }

    /// Speaks and hears until the session or the connection ends. What the broker injects is taken from it
    /// only as the child takes it: the broker's queue is the one that counts, and says `busy` when it is
    /// full. Whoever asks hears first what was said before the answer, so nothing is asked while some of
    /// that still waits here.
    async fn serve(&self, mut connection: AsyncConnection) -> Result<(), Error> {
        loop {
            if self.injector.is_dropping() {
                self.run_dry(&mut connection).await?;
            }
            while self.injector.has_room() && connection.has_unasked() {
                self.hear(connection.next_unasked().await?);
            }
            if !connection.has_unasked() {
                match self.speak(&mut connection).await? {
                    Said::Something => continue,
                    Said::Nothing => {}
                    Said::Farewell => return Ok(()),
                }
            }
            let has_room = self.injector.has_room();
            tokio::select! {
                unasked = connection.next_unasked(), if has_room => self.hear(unasked?),
                () = self.injector.room() => {}
                () = self.shared.bell.notified() => {}
            }
        }
    }

    /// The user has interrupted what was pasted: takes from the broker what it holds of that, until nothing
    /// comes for a moment.
    async fn run_dry(&self, connection: &mut AsyncConnection) -> Result<(), Error> {
        while let Ok(unasked) = tokio::time::timeout(DRY_AFTER, connection.next_unasked()).await {
            self.hear(unasked?);
        }
        self.injector.resume();
        Ok(())
    }

    /// Says one thing, if there is one to be said.
    async fn speak(&self, connection: &mut AsyncConnection) -> Result<Said, Error> {
        let word = self.shared.desk().next();
        match word {
            Some(Word::Turn(turn)) => self.tell_turn(connection, turn).await?,
            Some(Word::State(change)) => self.tell_state(connection, change).await?,
            Some(Word::End(session)) => {
                self.tell_shown(connection).await?;
                connection.deregister(&session).await?;
                return Ok(Said::Farewell);
            }
            None if self.tell_shown(connection).await? => {}
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
        let Some(share) = &self.share else { return Ok(false) };
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

    async fn tell_turn(&self, connection: &mut AsyncConnection, turn: CompletedTurn) -> Result<(), Error> {
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
        self.shared.desk().told_seq = seq;
        Ok(())
    }

    async fn tell_state(&self, connection: &mut AsyncConnection, change: StateChange) -> Result<(), Error> {
        let told = connection.state(change.clone()).await;
        if let Err(error) = told
            && error.is_fatal()
        {
            return Err(error);
        }
        let mut desk = self.shared.desk();
        desk.state_told = desk.state.as_ref() == Some(&change);
        Ok(())
    }

    /// Puts bytes into the child's input, which has room for them.
    fn inject(&self, inject: Inject) {
        let framing = if inject.bracketed { Framing::Bracketed } else { Framing::Plain };
        if let Err(error) = self.injector.inject_as(framing, inject.content) {
            tracing::warn!(%error, "a paste was refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(seq: u64, bytes: usize) -> CompletedTurn {
        CompletedTurn { seq: Some(seq), content: vec![b'x'; bytes].into(), ..CompletedTurn::default() }
    }

    fn seqs(desk: &Desk) -> Vec<u64> {
        desk.ring.iter().filter_map(|turn| turn.seq).collect()
    }

    #[test]
    fn the_newest_turns_wait_for_the_broker() {
        let mut desk = Desk::new(Register::default());
        (1..=40).for_each(|seq| desk.keep(turn(seq, 10)));
        assert_eq!(seqs(&desk), (9..=40).collect::<Vec<_>>());
        assert_eq!(desk.ring_bytes, 320);
        desk.keep(turn(41, RING_BYTES_MAX + 1));
        assert_eq!(seqs(&desk), [41], "one that is too large is still the newest");
    }

    #[test]
    fn of_a_turn_that_is_too_long_for_a_message_each_part_keeps_its_head() {
        let text = format!("x{}", "\u{20ac}".repeat(3 << 20));
        let long = CompletedTurn {
            content: text.clone().into(),
            text: Some(text),
            raw: Some(vec![b'r'; PART_BYTES_MAX].into()),
            ..CompletedTurn::default()
        };
        let short = shortened(long);
        assert_eq!(short.content.len(), PART_BYTES_MAX);
        assert_eq!(short.text.as_ref().map(String::len), Some(PART_BYTES_MAX - 1), "between two characters");
        assert_eq!((short.truncated, short.raw_truncated), (true, false));
        assert!(size(&short) < turnkeep_types::broker::FRAME_BYTES_MAX);
    }

    #[test]
    fn a_new_connection_hears_every_turn_again_then_the_state_then_the_end() {
        let mut desk = Desk::new(Register::default());
        (1..=2).for_each(|seq| desk.keep(turn(seq, 1)));
        desk.told_seq = 2;
        assert!(desk.next().is_none());
        desk.ended = true;
        desk.forget_told();
        let mut said = Vec::new();
        while let Some(word) = desk.next() {
            match word {
                Word::Turn(turn) => {
                    desk.told_seq = turn.seq.unwrap_or_default();
                    said.push(turn.seq);
                }
                Word::State(_) => panic!("no state was told"),
                Word::End(_) => break,
            }
        }
        assert_eq!(said, [Some(1), Some(2)]);
    }
}
