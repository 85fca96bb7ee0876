//! Shared terminals for those who show them beside the broker's socket, inside the same process.

use std::sync::Arc;

use turnkeep_session::broker::{Answer, ConnId};
use turnkeep_types::broker::{Hello, Refusal, Request, Role, Shown, VERSION};

use super::hub::Hub;
use super::viewer::{View, Viewer};

/// The shared terminals of a broker; cheap to clone.
#[derive(Clone)]
pub struct Terminals(pub(super) Arc<Hub>);

/// What a terminal comes to next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// This is to be shown.
    Shown(Arc<Shown>),
    /// The session has gone.
    Ended,
}

/// One who watches. Dropping it ends that.
pub(crate) struct Watch {
    hub: Arc<Hub>,
    conn: ConnId,
    viewer: Arc<Viewer>,
}

impl Terminals {
    /// Begins to watch a session.
    pub(crate) fn watch(&self, session: &str) -> Result<Watch, Refusal> {
        let hub = Arc::clone(&self.0);
        let (conn, line) = hub.enter();
        let watch = Watch {
            hub,
            conn,
            viewer: Arc::clone(&line.viewer),
        };
        watch.ask(Request::Hello(Hello {
            version: VERSION,
            role: Role::Client,
        }))?;
        watch.ask(Request::Watch {
            session: session.to_owned(),
        })?;
        Ok(watch)
    }
}

impl Watch {
    fn ask(&self, request: Request) -> Result<(), Refusal> {
        match self.hub.apply(self.conn, Ok(request)).answer {
            Answer::Greeting(Err(refusal)) | Answer::Response(Err(refusal)) => Err(refusal),
            Answer::Greeting(Ok(()))
            | Answer::Response(Ok(_))
            | Answer::Found(_)
            | Answer::After(_) => Ok(()),
        }
    }

    /// What comes next, however long that takes. May be dropped and called again.
    pub(crate) async fn next(&self) -> Seen {
        loop {
            match self.viewer.next().await {
                View::Shown(shown) => return Seen::Shown(shown),
                View::Behind => self.hub.repaint(self.conn),
                View::Ended(_) => return Seen::Ended,
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.leave(self.conn);
    }
}
