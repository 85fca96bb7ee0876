//! Shared terminals for the server in the broker's process, which shows them over HTTP.
//!
//! A [`TerminalWatch`] is a connection of the broker without a socket: it says hello and watches a
//! session, under the same rules as a client of the socket.

use std::sync::Arc;

use turnkeep_session::broker::{Answer, ConnId};
use turnkeep_types::broker::{Hello, Refusal, Request, Role, Shown, VERSION};

use super::screen_queue::{ScreenEvent, ScreenQueue};
use super::shared::BrokerShared;

/// The shared terminals of a broker; cheap to clone.
#[derive(Clone)]
pub struct Terminals(pub(super) Arc<BrokerShared>);

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
    shared: Arc<BrokerShared>,
    conn: ConnId,
    screen: Arc<ScreenQueue>,
}

impl Terminals {
    /// Begins to watch a session.
    pub(crate) fn watch(&self, session: &str) -> Result<TerminalWatch, Refusal> {
        let shared = Arc::clone(&self.0);
        let (conn, queues) = shared.add_peer();
        let watch = TerminalWatch {
            shared,
            conn,
            screen: Arc::clone(&queues.screen),
        };
        watch.send_request(Request::Hello(Hello {
            version: VERSION,
            role: Role::Client,
        }))?;
        watch.send_request(Request::Watch {
            session: session.to_owned(),
        })?;
        Ok(watch)
    }
}

impl TerminalWatch {
    fn send_request(&self, request: Request) -> Result<(), Refusal> {
        match self.shared.apply(self.conn, Ok(request)).answer {
            Answer::Greeting(Err(refusal)) | Answer::Response(Err(refusal)) => Err(refusal),
            Answer::Greeting(Ok(()))
            | Answer::Response(Ok(_))
            | Answer::Found(_)
            | Answer::After(_) => Ok(()),
        }
    }

    /// Waits for the next event. The future may be dropped at any time without losing an event.
    pub(crate) async fn next_event(&self) -> TerminalEvent {
        loop {
            match self.screen.next_event().await {
                ScreenEvent::Piece(shown) => return TerminalEvent::Shown(shown),
                ScreenEvent::Behind => self.shared.request_repaint(self.conn),
                ScreenEvent::Ended(_) => return TerminalEvent::Ended,
            }
        }
    }
}

impl Drop for TerminalWatch {
    fn drop(&mut self) {
        self.shared.remove_peer(self.conn);
    }
}
