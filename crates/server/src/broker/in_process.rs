//! The broker for the server in its process, which offers it over HTTP.
//!
//! The server's requests come from connections without a socket. Such a connection says hello as a
//! client and obeys the same rules as a client of the socket.

use std::sync::Arc;

use turnkeep_session::broker::{Answer, ConnId, Delivery, Effect, HeldTurn};
use turnkeep_types::broker::{
    GetTurn, Hello, ListSessions, Reason, Refusal, Reply, Request, Role, SessionInfo, Shown,
    Stored, VERSION,
};

use super::screen_queue::{ScreenEvent, ScreenQueue};
use super::shared::{BrokerShared, SessionChanges};
use super::sinks::perform_effect;

/// The broker in this process; cheap to clone.
#[derive(Clone)]
pub struct InProcessBroker(pub(super) Arc<BrokerShared>);

/// What a watched terminal does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalEvent {
    /// It shows this.
    Shown(Arc<Shown>),
    /// Its session has ended.
    Ended,
}

/// Watches one terminal until it is dropped.
pub(crate) struct TerminalWatch {
    client: Client,
    screen: Arc<ScreenQueue>,
}

/// A connection without a socket, until it is dropped.
struct Client {
    shared: Arc<BrokerShared>,
    conn: ConnId,
}

impl InProcessBroker {
    /// Begins to watch a session.
    pub(crate) fn watch(&self, session: &str) -> Result<TerminalWatch, Refusal> {
        let (client, screen) = Client::connect(&self.0)?;
        let watch = TerminalWatch { client, screen };
        watch.client.check(Request::Watch {
            session: session.to_owned(),
        })?;
        Ok(watch)
    }

    /// Lists all sessions that have turns or a wrapper, right after the start once every wrapper
    /// had time to connect again.
    pub(crate) async fn list_sessions(&self, preview: bool) -> Result<Vec<SessionInfo>, Refusal> {
        self.0.wait_until_settled().await;
        let list = ListSessions {
            gone: true,
            preview,
            settled: true,
        };
        match self.request(vec![Request::ListSessions(list)]).await? {
            Reply::Sessions(sessions) => Ok(sessions),
            _ => Err(Reason::Internal.into()),
        }
    }

    /// The ids of all sessions, now.
    pub(crate) fn session_ids(&self) -> Vec<String> {
        let list = Request::ListSessions(ListSessions {
            gone: true,
            ..ListSessions::default()
        });
        let answer = Client::connect(&self.0).and_then(|(client, _)| client.apply(vec![list]));
        match answer {
            Ok(Answer::Response(Ok(Reply::Sessions(sessions)))) => {
                sessions.into_iter().map(|info| info.session).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Makes requests one right after the other, so that no other connection changes the relay
    /// buffer between them. Returns the reply to the last one, or the first refusal.
    pub(crate) async fn request(&self, requests: Vec<Request>) -> Result<Reply, Refusal> {
        let (client, _) = Client::connect(&self.0)?;
        match client.apply(requests)? {
            Answer::Greeting(outcome) => outcome.map(|()| Reply::Done),
            Answer::Response(outcome) => outcome,
            Answer::Found(turn) => Ok(Reply::Turn(Box::new(turn.to_found_turn()))),
            Answer::After(effect) => perform_effect(*effect, &self.0).await,
        }
    }

    /// Finds a turn. Its bytes stay where they are.
    pub(crate) fn find_turn(&self, get: GetTurn) -> Result<HeldTurn, Refusal> {
        let (client, _) = Client::connect(&self.0)?;
        match client.apply(vec![Request::GetTurn(get)])? {
            Answer::Found(turn) => Ok(turn),
            Answer::Response(Err(refusal)) => Err(refusal),
            _ => Err(Reason::Internal.into()),
        }
    }

    /// Appends a turn to the store. The relay buffer stays as it is.
    pub(crate) async fn keep(&self, turn: HeldTurn) -> Result<Stored, Refusal> {
        let effect = Effect::Store(Delivery {
            bytes: bytes::Bytes::new(),
            turn,
        });
        match perform_effect(effect, &self.0).await? {
            Reply::Stored(stored) => Ok(stored),
            _ => Err(Reason::Internal.into()),
        }
    }

    /// Follows which sessions change.
    pub(crate) fn subscribe_changes(&self) -> SessionChanges {
        self.0.subscribe_changes()
    }
}

impl Client {
    fn connect(shared: &Arc<BrokerShared>) -> Result<(Self, Arc<ScreenQueue>), Refusal> {
        let (conn, queues) = shared.add_peer();
        let client = Self {
            shared: Arc::clone(shared),
            conn,
        };
        client.check(Request::Hello(Hello {
            version: VERSION,
            role: Role::Client,
        }))?;
        Ok((client, Arc::clone(&queues.screen)))
    }

    /// Makes a request that has no other answer than a refusal.
    fn check(&self, request: Request) -> Result<(), Refusal> {
        match self.apply(vec![request])? {
            Answer::Greeting(Err(refusal)) | Answer::Response(Err(refusal)) => Err(refusal),
            Answer::Greeting(Ok(()))
            | Answer::Response(Ok(_))
            | Answer::Found(_)
            | Answer::After(_) => Ok(()),
        }
    }

    fn apply(&self, requests: Vec<Request>) -> Result<Answer, Refusal> {
        let answer = self.shared.apply_together(self.conn, requests);
        answer.ok_or_else(|| Reason::Internal.into())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.remove_peer(self.conn);
    }
}

impl TerminalWatch {
    /// Waits for the next event. The future may be dropped at any time without losing an event.
    pub(crate) async fn next_event(&self) -> TerminalEvent {
        loop {
            match self.screen.next_event().await {
                ScreenEvent::Piece(shown) => return TerminalEvent::Shown(shown),
                ScreenEvent::Behind => self.client.shared.request_repaint(self.client.conn),
                ScreenEvent::Ended(_) => return TerminalEvent::Ended,
            }
        }
    }
}
