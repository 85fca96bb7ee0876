//! Watching a shared terminal: who may, and who is told what.
//!
//! The wrapper sends what its terminal shows only while somebody watches: the first piece after
//! each
//! [`Notice::Show`] that is on is the whole screen. What a watcher who is too slow misses is the shell's to
//! know, which then asks for the whole screen again ([`Broker::repaint`]).

use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{Reason, Refusal, Role, Shown};

use super::effect::{ConnId, Notice};
use super::table::Table;
use super::{Broker, Decided, Step};

/// Those who watch one session.
const WATCHERS_MAX: usize = 32;

impl Broker {
    /// A client wants to see a session.
    pub(super) fn watch(&mut self, conn: ConnId, session: &str) -> Decided {
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
        found.watchers.insert(conn);
        peer.watches = Some(found.label.session.clone());
        Ok(Step::Told(vec![Notice::Show { to, on: true }]))
    }

    /// A watcher has missed something and needs the whole screen.
    pub fn repaint(&self, conn: ConnId) -> Option<Notice> {
        let watched = self.peers.get(&conn)?.watches.as_ref()?;
        let to = self.table.sessions.get(watched.as_str())?.owner?;
        Some(Notice::Show { to, on: true })
    }

    /// A session's wrapper has gone, and those who watched it are to be told.
    pub(super) fn end(&mut self, now: Timestamp, session: &str) -> Option<Notice> {
        self.table.leave(now, session);
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

impl Table {
    /// What a session's terminal shows goes to those who watch it.
    pub(super) fn show(&mut self, conn: ConnId, shown: Shown) -> Result<Vec<Notice>, Refusal> {
        let session = self.own(conn, &shown.session)?;
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

    /// Somebody watches no more; the wrapper is told when that was the last one.
    pub(super) fn unwatch(&mut self, conn: ConnId, session: &str) -> Option<Notice> {
        let session = self.sessions.get_mut(session)?;
        session.watchers.remove(&conn);
        let to = session.owner.filter(|_| session.watchers.is_empty())?;
        Some(Notice::Show { to, on: false })
    }
}
