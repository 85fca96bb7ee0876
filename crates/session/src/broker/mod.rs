//! The broker's state machine: `apply(now, conn, message)` returns a response, or an effect whose
//! result is the response.
//!
//! It owns the sessions with their rings of completed turns, and the one relay buffer. Invariants:
//! a turn's id and metadata never change; a sequence number is never assigned twice in a session;
//! the rings hold a limited number of bytes; only a capture changes the relay buffer; only a shared
//! session is ever shown. Nothing here waits or fails: a rejection is a response. Slow work (a
//! file, a clipboard, another terminal) is returned as an [`Effect`] for the server. The bytes of a
//! turn are never copied or compared here, because other connections wait meanwhile:
//! [`Message::new`] prepares them before, and [`HeldTurn::to_found_turn`] copies them after.

mod delivery;
mod effect;
mod message;
mod preview;
mod ring;
mod sequence_numbers;
mod session;
mod session_names;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    BadRequest, GetTurn, Hello, ListTurns, Reason, Refusal, Register, Reply, Request, Role,
    SessionId, TurnForm, TurnInfo, VERSION,
};

pub use effect::{Answer, ConnId, Delivery, Effect, NodeAddress, Notice, Outcome};
pub use message::Message;
pub use ring::HeldTurn;
pub use session_names::{latest_session, sessions_called};
pub use settings::{BadSettings, Settings};

use message::Command;
use ring::KeptTurn;
use table::SessionTable;

/// The decision about a request, or its rejection.
type DecisionResult = Result<Decision, Refusal>;

/// What a request leads to.
enum Decision {
    Reply(Reply),
    Effect(Box<Effect>),
    Found(HeldTurn),
    /// Done; these notices go to other connections.
    Notify(Vec<Notice>),
}

impl From<Reply> for Decision {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl Decision {
    fn into_outcome(self) -> Outcome {
        match self {
            Self::Reply(reply) => Outcome::response(Ok(reply)),
            Self::Effect(effect) => Outcome::later(Answer::After(effect)),
            Self::Found(turn) => Outcome::later(Answer::Found(turn)),
            Self::Notify(notices) => Outcome {
                notices,
                ..Outcome::response(Ok(Reply::Done))
            },
        }
    }
}

/// A connection that has said hello.
#[derive(Debug)]
struct Peer {
    role: Role,
    /// The session that the connection registered.
    session: Option<SessionId>,
    /// The session that the connection watches.
    watches: Option<SessionId>,
}

/// The broker.
#[derive(Debug)]
pub struct Broker {
    table: SessionTable,
    peers: HashMap<ConnId, Peer>,
    /// The relay buffer.
    relay: Option<Arc<KeptTurn>>,
}

impl Broker {
    /// Creates a broker without sessions.
    pub fn new(settings: Settings) -> Self {
        Self {
            table: SessionTable::new(settings),
            peers: HashMap::new(),
            relay: None,
        }
    }

    /// Applies a message of a connection. Returns the answer, and whether the connection ends with
    /// it.
    pub fn apply(&mut self, now: Timestamp, conn: ConnId, message: Message) -> Outcome {
        // Expired sessions go first, so that no request sees one.
        self.table.expire(now);
        let greeted = self.peers.contains_key(&conn);
        match message.0 {
            Ok(Command::Other(Request::Hello(hello))) if !greeted => self.handle_hello(conn, hello),
            // A malformed hello is answered as a hello, so that the client can read the reason.
            Err(BadRequest {
                hello: true,
                refusal,
            }) if !greeted => Outcome::greeting(Err(refusal)),
            _ if !greeted => Outcome::response(Err(Reason::HelloRequired.into())),
            Err(BadRequest { refusal, .. }) => Outcome::response(Err(refusal)),
            Ok(command) => self.decide(now, conn, command).map_or_else(
                |refusal| Outcome::response(Err(refusal)),
                Decision::into_outcome,
            ),
        }
    }

    /// Handles the end of a connection: its session is gone, its turns stay for a while. Returns
    /// the notices for other connections.
    pub fn disconnect(&mut self, now: Timestamp, conn: ConnId) -> Vec<Notice> {
        let Some(peer) = self.peers.remove(&conn) else {
            return Vec::new();
        };
        let unwatched = peer
            .watches
            .and_then(|session| self.table.unwatch(conn, session.as_str()));
        let ended = peer
            .session
            .and_then(|session| self.end_session(now, session.as_str()));
        unwatched.into_iter().chain(ended).collect()
    }

    /// Removes the sessions that have been gone for long enough.
    pub fn expire(&mut self, now: Timestamp) {
        self.table.expire(now);
    }

    /// The sessions that lists show differently since the last call: they have another state, other
    /// turns, or are new or gone.
    pub fn take_changes(&mut self) -> BTreeSet<SessionId> {
        self.table.take_changes()
    }

    /// How many bytes the rings hold.
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    fn handle_hello(&mut self, conn: ConnId, hello: Hello) -> Outcome {
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

    fn decide(&mut self, now: Timestamp, conn: ConnId, command: Command) -> DecisionResult {
        match command {
            Command::Completed(turn) => self.table.keep_turn(now, conn, *turn).map(Decision::from),
            Command::Other(request) => self.handle_request(now, conn, request),
        }
    }

    fn handle_request(&mut self, now: Timestamp, conn: ConnId, request: Request) -> DecisionResult {
        match request {
            Request::Hello(_) => Err(Reason::HelloRepeated.into()),
            // `Message::new` turns this request into `Command::Completed`, so it never arrives
            // here.
            Request::TurnCompleted(_) => Err(Reason::Internal.into()),
            Request::Register(register) => self.register(now, conn, register),
            Request::State(change) => self.table.set_state(conn, change).map(Decision::from),
            Request::Screen(shown) => self.table.forward_screen(conn, shown).map(Decision::Notify),
            Request::Watch { session } => self.watch(conn, &session),
            Request::Deregister { session } => self.deregister(now, conn, &session),
            Request::ListSessions(list) => {
                Ok(Reply::Sessions(self.table.list_sessions(list)).into())
            }
            Request::Capture { session } => self.capture_latest(&session),
            Request::CaptureById { turn_id } => self.capture_by_id(&turn_id),
            Request::Paste(paste) => self.inject(&paste),
            Request::GetTurn(get) => self.get_turn(&get),
            Request::ListTurns(list) => self.list_turns(&list),
            Request::Deliver(deliver) => self.deliver(deliver),
        }
    }

    fn register(&mut self, now: Timestamp, conn: ConnId, register: Register) -> DecisionResult {
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

    fn deregister(&mut self, now: Timestamp, conn: ConnId, session: &str) -> DecisionResult {
        match self.table.owner(session) {
            // A session that is unknown or gone is already deregistered: the request has nothing to
            // do.
            None | Some(None) => {}
            Some(Some(owner)) if owner != conn => return Err(Reason::NotOwner.into()),
            Some(Some(_)) => {
                if let Some(peer) = self.peers.get_mut(&conn) {
                    peer.session = None;
                }
                return Ok(Decision::Notify(
                    self.end_session(now, session).into_iter().collect(),
                ));
            }
        }
        Ok(Reply::Done.into())
    }

    fn capture_latest(&mut self, session: &str) -> DecisionResult {
        let turn = self.table.ring(session)?.latest().ok_or(Reason::NoTurn)?;
        Ok(self.capture(turn))
    }

    fn capture_by_id(&mut self, turn_id: &str) -> DecisionResult {
        let turn = self.table.find_turn(turn_id)?;
        Ok(self.capture(turn))
    }

    fn capture(&mut self, turn: Arc<KeptTurn>) -> Decision {
        let reply = Reply::Captured {
            turn_id: turn.info.turn_id.clone(),
            size: turn.info.byte_length.into(),
        };
        self.relay = Some(turn);
        reply.into()
    }

    fn get_turn(&self, get: &GetTurn) -> DecisionResult {
        let turn = self.table.find_turn(&get.turn_id)?;
        let form = if get.raw {
            TurnForm::Raw
        } else {
            TurnForm::Content
        };
        turn.bytes(form).ok_or(Reason::NoRaw)?;
        Ok(Decision::Found(HeldTurn {
            kept: turn,
            raw: get.raw,
        }))
    }

    /// The newest turns of a session; with `all`, unprompted texts too.
    fn list_turns(&self, list: &ListTurns) -> DecisionResult {
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
