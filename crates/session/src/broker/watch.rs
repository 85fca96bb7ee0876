//! Watching a shared terminal: which client may, and which notices it causes.
//!
//! The wrapper sends its screen only while a client watches; after each [`Notice::Show`] that is
//! on, it sends the whole screen first. The server knows which watcher was too slow and missed
//! something, and then requests the whole screen again ([`Broker::repaint`]).

use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{Reason, Refusal, Role, Shown};

use super::effect::{ConnId, Notice};
use super::table::SessionTable;
use super::{Broker, Decision, DecisionResult};

/// How many clients may watch one session.
const WATCHERS_MAX: usize = 32;

impl Broker {
    /// Starts watching a session for a client.
    pub(super) fn watch(&mut self, conn: ConnId, session: &str) -> DecisionResult {
        let peer = self.peers.get_mut(&conn).ok_or(Reason::HelloRequired)?;
        if peer.role != Role::Client {
            return Err(Reason::WrongRole.into());
        }
        if peer
            .watches
            .as_ref()
            .is_some_and(|watched| watched.as_str() != session)
        {
            return Err(Reason::AlreadyWatching.into());
        }
        let found = self
            .table
            .sessions
            .get_mut(session)
            .ok_or(Reason::SessionNotFound)?;
        if !found.shared {
            return Err(Refusal::new(
                Reason::NotShared,
                "the session was not started with --share",
            ));
        }
        let to = found.owner.ok_or(Reason::SessionDisconnected)?;
        if found.watchers.len() >= WATCHERS_MAX && !found.watchers.contains(&conn) {
            return Err(Refusal::new(Reason::Busy, "too many watch this session"));
        }
        // Sent also if others watch already: the wrapper then sends the whole screen again, which the
        // new client needs to begin with.
        found.watchers.insert(conn);
        peer.watches = Some(found.label.session.clone());
        Ok(Decision::Notify(vec![Notice::Show { to, on: true }]))
    }

    /// Requests the whole screen for a watcher that missed something.
    pub fn repaint(&self, conn: ConnId) -> Option<Notice> {
        let watched = self.peers.get(&conn)?.watches.as_ref()?;
        let to = self.table.sessions.get(watched.as_str())?.owner?;
        Some(Notice::Show { to, on: true })
    }

    /// Marks a session as gone, and returns the notice for its watchers.
    pub(super) fn end_session(&mut self, now: Timestamp, session: &str) -> Option<Notice> {
        self.table.mark_disconnected(now, session);
        let watchers = std::mem::take(&mut self.table.sessions.get_mut(session)?.watchers);
        for conn in &watchers {
            if let Some(peer) = self.peers.get_mut(conn) {
                peer.watches = None;
            }
        }
        let to: Vec<ConnId> = watchers.into_iter().collect();
        (!to.is_empty()).then(|| Notice::Ended {
            to,
            session: session.to_owned(),
        })
    }
}

impl SessionTable {
    /// Forwards what a session's terminal shows to its watchers.
    pub(super) fn forward_screen(
        &mut self,
        conn: ConnId,
        shown: Shown,
    ) -> Result<Vec<Notice>, Refusal> {
        let session = self.owned_session(conn, &shown.session)?;
        if !session.shared {
            return Err(Reason::NotShared.into());
        }
        let to: Vec<ConnId> = session.watchers.iter().copied().collect();
        let notice = (!to.is_empty()).then(|| Notice::Screen {
            to,
            shown: Arc::new(shown),
        });
        Ok(notice.into_iter().collect())
    }

    /// Stops watching; the wrapper gets a notice when that was the last watcher.
    pub(super) fn unwatch(&mut self, conn: ConnId, session: &str) -> Option<Notice> {
        let session = self.sessions.get_mut(session)?;
        session.watchers.remove(&conn);
        let to = session.owner.filter(|_| session.watchers.is_empty())?;
        Some(Notice::Show { to, on: false })
    }
}
