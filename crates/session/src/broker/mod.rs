//! The broker's state machine: `apply(now, conn, message)` gives an answer, or the effect that
//! gives one.
//!
//! It owns the sessions with their rings of completed turns, and the one relay buffer. Invariants:
//! a turn's id and metadata never change; a sequence number is never given twice in a session; what
//! the rings hold is bounded; the relay buffer changes only by a capture; only a session that was
//! shared is ever shown. Nothing here waits or fails: a refusal is an answer. Slow work (a file, a
//! clipboard, another terminal) is returned as an [`Effect`] for the shell to do, and no bytes of a
//! turn are copied or compared here: a [`Message`] is made ready before, and a [`HeldTurn`] copied
//! after.

mod delivery;
mod effect;
mod message;
mod numbers;
mod preview;
mod ring;
mod session;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    BadRequest, GetTurn, Hello, ListTurns, Reason, Refusal, Register, Reply, Request, Role,
    SessionId, TurnForm, TurnInfo, VERSION,
};

pub use effect::{Answer, ConnId, Delivery, Effect, Notice, Outcome};
pub use message::Message;
pub use ring::HeldTurn;
pub use settings::{BadSettings, Settings};

use message::Command;
use ring::KeptTurn;
use table::Table;

/// What a request gives: a reply, or the effect whose end is the reply.
type Decided = Result<Step, Refusal>;

/// A reply now, or after an effect.
enum Step {
    Reply(Reply),
    Effect(Box<Effect>),
    Found(HeldTurn),
    /// It is done, and others are told.
    Told(Vec<Notice>),
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// A connection that has said hello.
#[derive(Debug)]
struct Peer {
    role: Role,
    /// The session that it registered.
    session: Option<SessionId>,
    /// The session that it watches.
    watches: Option<SessionId>,
}

/// The broker.
#[derive(Debug)]
pub struct Broker {
    table: Table,
    peers: HashMap<ConnId, Peer>,
    relay: Option<Arc<KeptTurn>>,
}

impl Broker {
    /// A broker without sessions.
    pub fn new(settings: Settings) -> Self {
        Self {
            table: Table::new(settings),
            peers: HashMap::new(),
            relay: None,
        }
    }

    /// Takes a message of a connection; says what to answer and whether the connection ends with
    /// that.
    pub fn apply(&mut self, now: Timestamp, conn: ConnId, message: Message) -> Outcome {
        self.table.expire(now);
        let greeted = self.peers.contains_key(&conn);
        match message.0 {
            Ok(Command::Other(Request::Hello(hello))) if !greeted => self.greet(conn, hello),
            Err(BadRequest {
                hello: true,
                refusal,
            }) if !greeted => Outcome::greeting(Err(refusal)),
            _ if !greeted => Outcome::response(Err(Reason::HelloRequired.into())),
            Err(BadRequest { refusal, .. }) => Outcome::response(Err(refusal)),
            Ok(command) => match self.decide(now, conn, command) {
                Ok(Step::Reply(reply)) => Outcome::response(Ok(reply)),
                Ok(Step::Effect(effect)) => Outcome::later(Answer::After(effect)),
                Ok(Step::Found(turn)) => Outcome::later(Answer::Found(turn)),
                Ok(Step::Told(notices)) => Outcome {
                    notices,
                    ..Outcome::response(Ok(Reply::Done))
                },
                Err(refusal) => Outcome::response(Err(refusal)),
            },
        }
    }

    /// A connection ended: its session is gone, its turns stay for a while. Says who is to be told.
    pub fn disconnect(&mut self, now: Timestamp, conn: ConnId) -> Vec<Notice> {
        let Some(peer) = self.peers.remove(&conn) else {
            return Vec::new();
        };
        let unwatched = peer
            .watches
            .and_then(|session| self.table.unwatch(conn, session.as_str()));
        let ended = peer
            .session
            .and_then(|session| self.end(now, session.as_str()));
        unwatched.into_iter().chain(ended).collect()
    }

    /// Forgets the sessions that have been gone for long enough.
    pub fn expire(&mut self, now: Timestamp) {
        self.table.expire(now);
    }

    /// Bytes that the rings hold.
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    fn greet(&mut self, conn: ConnId, hello: Hello) -> Outcome {
        if hello.version != VERSION {
            let detail = format!(
                "version {} was asked for, {VERSION} is spoken here",
                hello.version
            );
            return Outcome::greeting(Err(Refusal::new(Reason::VersionMismatch, detail)));
        }
        self.peers.insert(
            conn,
            Peer {
                role: hello.role,
                session: None,
                watches: None,
            },
        );
        Outcome::greeting(Ok(()))
    }

    fn decide(&mut self, now: Timestamp, conn: ConnId, command: Command) -> Decided {
        match command {
            Command::Completed(turn) => self.table.complete(now, conn, *turn).map(Step::from),
            Command::Other(request) => self.answer(now, conn, request),
        }
    }

    fn answer(&mut self, now: Timestamp, conn: ConnId, request: Request) -> Decided {
        match request {
            Request::Hello(_) => Err(Reason::HelloRepeated.into()),
            Request::TurnCompleted(_) => Err(Reason::Internal.into()),
            Request::Register(register) => self.register(now, conn, register),
            Request::State(change) => self.table.set_state(conn, change).map(Step::from),
            Request::Screen(shown) => self.table.show(conn, shown).map(Step::Told),
            Request::Watch { session } => self.watch(conn, &session),
            Request::Deregister { session } => self.deregister(now, conn, &session),
            Request::ListSessions(list) => Ok(Reply::Sessions(self.table.list(list)).into()),
            Request::Capture { session } => self.capture_latest(&session),
            Request::CaptureById { turn_id } => self.capture_by_id(&turn_id),
            Request::Paste(paste) => self.inject(&paste),
            Request::GetTurn(get) => self.get_turn(&get),
            Request::ListTurns(list) => self.list_turns(&list),
            Request::Deliver(deliver) => self.deliver(deliver),
        }
    }

    fn register(&mut self, now: Timestamp, conn: ConnId, register: Register) -> Decided {
        let peer = self.peers.get_mut(&conn).ok_or(Reason::HelloRequired)?;
        if peer.role != Role::Wrapper {
            return Err(Reason::WrongRole.into());
        }
        if peer
            .session
            .as_ref()
            .is_some_and(|held| held.as_str() != register.session)
        {
            return Err(Reason::AlreadyRegistered.into());
        }
        peer.session = Some(self.table.register(now, conn, register)?);
        Ok(Reply::Done.into())
    }

    fn deregister(&mut self, now: Timestamp, conn: ConnId, session: &str) -> Decided {
        match self.table.owner(session) {
            None | Some(None) => {}
            Some(Some(owner)) if owner != conn => return Err(Reason::NotOwner.into()),
            Some(Some(_)) => {
                if let Some(peer) = self.peers.get_mut(&conn) {
                    peer.session = None;
                }
                return Ok(Step::Told(self.end(now, session).into_iter().collect()));
            }
        }
        Ok(Reply::Done.into())
    }

    fn capture_latest(&mut self, session: &str) -> Decided {
        let turn = self.table.ring(session)?.latest().ok_or(Reason::NoTurn)?;
        Ok(self.capture(turn))
    }

    fn capture_by_id(&mut self, turn_id: &str) -> Decided {
        let turn = self.table.turn(turn_id)?;
        Ok(self.capture(turn))
    }

    fn capture(&mut self, turn: Arc<KeptTurn>) -> Step {
        let reply = Reply::Captured {
            turn_id: turn.info.turn_id.clone(),
            size: turn.info.byte_length.into(),
        };
        self.relay = Some(turn);
        reply.into()
    }

    fn get_turn(&self, get: &GetTurn) -> Decided {
        let turn = self.table.turn(&get.turn_id)?;
        let form = if get.raw {
            TurnForm::Raw
        } else {
            TurnForm::Content
        };
        turn.bytes(form).ok_or(Reason::NoRaw)?;
        Ok(Step::Found(HeldTurn {
            kept: turn,
            raw: get.raw,
        }))
    }

    /// The newest turns of a session; with `all`, also what was said unprompted.
    fn list_turns(&self, list: &ListTurns) -> Decided {
        let limit = list.limit.map_or(usize::MAX, |limit| limit as usize);
        let kept = self.table.ring(&list.session)?.newest_first();
        let turns = kept
            .filter(|turn| list.all || !turn.info.unprompted)
            .take(limit);
        let infos = turns.map(|turn| {
            let preview = list.preview.then(|| turn.preview().to_owned());
            TurnInfo {
                preview,
                ..turn.info.clone()
            }
        });
        Ok(Reply::Turns(infos.collect()).into())
    }
}
