//! The table of sessions: which connection owns which session, how much memory all rings take, and
//! when sessions are removed.
//!
//! The sum of the rings' bytes is kept in `held_bytes` and never exceeds the limit, except by the
//! newest turn alone. Rejections are values; nothing fails.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    BadSessionId, ListSessions, Reason, Refusal, Register, Reply, SessionId, SessionInfo,
    StateChange, TurnInfo, check_session_name,
};

use super::effect::ConnId;
use super::message::CompletedTurnRequest;
use super::ring::{KeptTurn, Ring};
use super::sequence_numbers::AssignedNumber;
use super::session::{Session, check_names};
use super::settings::Settings;

/// All sessions, those that are gone but linger included.
#[derive(Debug)]
pub(super) struct SessionTable {
    settings: Settings,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    held_bytes: usize,
    /// The earliest time at which a session is removed; `None` when none is gone.
    next_expiry: Option<Timestamp>,
    /// The sessions that changed since [`Self::take_changes`].
    changed: BTreeSet<SessionId>,
}

impl SessionTable {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            sessions: BTreeMap::new(),
            held_bytes: 0,
            next_expiry: None,
            changed: BTreeSet::new(),
        }
    }

    /// The sessions that lists show differently since the last call.
    pub(super) fn take_changes(&mut self) -> BTreeSet<SessionId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// A session's owner: `None` when the session is unknown, `Some(None)` when it is gone.
    pub(super) fn owner(&self, session: &str) -> Option<Option<ConnId>> {
        self.sessions.get(session).map(|session| session.owner)
    }

    /// Whether a session's wrapper frames every paste.
    pub(super) fn frames_pastes(&self, session: &str) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|session| session.bracketed)
    }

    pub(super) fn ring(&self, session: &str) -> Result<&Ring, Refusal> {
        let session = self.sessions.get(session).ok_or(Reason::SessionNotFound)?;
        Ok(&session.ring)
    }

    /// Finds a turn by its id. A malformed id is reported like one that is no longer kept.
    pub(super) fn find_turn(&self, turn_id: &str) -> Result<Arc<KeptTurn>, Refusal> {
        let found = turn_id.rsplit_once(':').and_then(|(session, seq)| {
            let turn = self.sessions.get(session)?.ring.find(seq.parse().ok()?)?;
            // `seq` has other spellings (`+1`, `01`); only the exact id names the turn.
            (turn.info.turn_id == turn_id).then_some(turn)
        });
        found.ok_or_else(|| Reason::TurnNotFound.into())
    }

    pub(super) fn list_sessions(&self, list: ListSessions) -> Vec<SessionInfo> {
        let listed = self
            .sessions
            .values()
            .filter(|session| list.gone || session.owner.is_some());
        let info = |session: &Session| {
            let preview = if list.preview {
                session.latest_preview()
            } else {
                None
            };
            SessionInfo {
                preview,
                ..session.info()
            }
        };
        listed.map(info).collect()
    }

    /// Whether a session's program may be showing a dialog.
    pub(super) fn may_show_dialog(&self, session: &str) -> bool {
        self.sessions
            .get(session)
            .is_some_and(Session::may_show_dialog)
    }

    /// Registers a session, or registers one again that is gone.
    pub(super) fn register(
        &mut self,
        now: Timestamp,
        conn: ConnId,
        register: Register,
    ) -> Result<SessionId, Refusal> {
        let id: SessionId = register.session.parse().map_err(|error: BadSessionId| {
            Refusal::new(Reason::BadField, format!("`session` is {error}"))
        })?;
        if let Some(Err(error)) = register.name.as_deref().map(check_session_name) {
            return Err(Refusal::new(Reason::BadField, format!("`name` {error}")));
        }
        check_names([("preset", register.preset.as_deref())])?;
        match self.sessions.get(id.as_str()) {
            Some(session) if session.owner.is_some() => return Err(Reason::DuplicateSession.into()),
            // The session is gone and registers again: its ring and numbers stay.
            Some(_) => {}
            None => self.make_room()?,
        }
        let session = self
            .sessions
            .entry(id.clone())
            .or_insert_with(|| Session::new(now, id.clone()));
        session.register(now, conn, register);
        self.changed.insert(id.clone());
        Ok(id)
    }

    /// Makes room for one more session by removing the one that has been gone for longest.
    fn make_room(&mut self) -> Result<(), Refusal> {
        if self.sessions.len() < self.settings.sessions_max {
            return Ok(());
        }
        let gone = self
            .sessions
            .iter()
            .filter(|(_, session)| session.owner.is_none());
        // A connected session is never removed for a new one.
        let oldest = gone
            .min_by_key(|(_, session)| session.since)
            .map(|(id, _)| id.clone());
        let oldest = oldest.ok_or_else(|| Refusal::new(Reason::Busy, "too many sessions"))?;
        self.remove_session(&oldest);
        Ok(())
    }

    fn remove_session(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            self.held_bytes -= session.ring.bytes();
            self.changed.insert(id.clone());
        }
    }

    /// Marks a session's wrapper as gone.
    pub(super) fn mark_disconnected(&mut self, now: Timestamp, session: &str) {
        let Some(session) = self.sessions.get_mut(session) else {
            return;
        };
        session.mark_disconnected(now);
        self.changed.insert(session.label.session.clone());
        let expiry = expiry_of(&self.settings, session);
        self.next_expiry = Some(self.next_expiry.map_or(expiry, |next| next.min(expiry)));
    }

    /// Removes the sessions that have been gone for long enough.
    pub(super) fn expire(&mut self, now: Timestamp) {
        // Called with every message, so the common case must not walk all sessions.
        if self.next_expiry.is_none_or(|next| now < next) {
            return;
        }
        let mut over = Vec::new();
        let mut next: Option<Timestamp> = None;
        for session in self.sessions.values() {
            if session.owner.is_some() {
                continue;
            }
            let expiry = expiry_of(&self.settings, session);
            if expiry <= now {
                over.push(session.label.session.clone());
            } else {
                next = Some(next.map_or(expiry, |next| next.min(expiry)));
            }
        }
        for id in &over {
            self.remove_session(id);
        }
        self.next_expiry = next;
    }

    /// The session, if this connection registered it.
    pub(super) fn owned_session(
        &mut self,
        conn: ConnId,
        session: &str,
    ) -> Result<&mut Session, Refusal> {
        let session = self
            .sessions
            .get_mut(session)
            .ok_or(Reason::SessionNotFound)?;
        if session.owner == Some(conn) {
            Ok(session)
        } else {
            Err(Reason::NotOwner.into())
        }
    }

    pub(super) fn set_state(
        &mut self,
        conn: ConnId,
        change: StateChange,
    ) -> Result<Reply, Refusal> {
        check_names([("signal", change.signal.as_deref())])?;
        let session = self.owned_session(conn, &change.session)?;
        session.set_state(change);
        let id = session.label.session.clone();
        self.changed.insert(id);
        Ok(Reply::Done)
    }

    /// Keeps a completed turn. A sequence number that was assigned before returns the id of its
    /// turn and keeps nothing, so that a wrapper can send a turn again.
    pub(super) fn keep_turn(
        &mut self,
        now: Timestamp,
        conn: ConnId,
        turn: CompletedTurnRequest,
    ) -> Result<Reply, Refusal> {
        check_names([("text_source", turn.body.text_source())])?;
        let ring_turns_max = self.settings.ring_turns_max;
        let session = self.owned_session(conn, &turn.session)?;
        let id = session.label.session.clone();
        let seq = match session.numbers.assign(turn.seq)? {
            AssignedNumber::New(seq) => seq,
            // The wrapper sends its turns again after a reconnect.
            AssignedNumber::Known(seq) => {
                let turn_id = format!("{id}:{seq}");
                return Ok(Reply::Kept { turn_id });
            }
        };
        let turn_id = format!("{id}:{seq}");
        let info = TurnInfo {
            turn_id: turn_id.clone(),
            timestamp: turn.timestamp.unwrap_or(now),
            ..TurnInfo::default()
        };
        let kept = KeptTurn::new(info, seq, Arc::clone(&session.label), turn.body);
        let before = session.ring.bytes();
        session.ring.push(kept, ring_turns_max);
        let after = session.ring.bytes();
        self.held_bytes = self.held_bytes - before + after;
        self.changed.insert(id.clone());
        self.evict_to_limit(&id);
        Ok(Reply::Kept { turn_id })
    }

    /// Drops the oldest turns of the largest rings until all fit, but never the turn that `newest`
    /// just got.
    fn evict_to_limit(&mut self, newest: &SessionId) {
        if self.held_bytes <= self.settings.memory_bytes_max {
            return;
        }
        let mut sessions: Vec<&mut Session> = self.sessions.values_mut().collect();
        let sizes = sessions
            .iter()
            .enumerate()
            .map(|(at, session)| (session.ring.bytes(), at));
        // A heap, so that each eviction does not search thousands of sessions again.
        let mut largest: BinaryHeap<(usize, usize)> = sizes.collect();
        while self.held_bytes > self.settings.memory_bytes_max {
            let Some((before, at)) = largest.pop() else {
                return;
            };
            let Some(session) = sessions.get_mut(at) else {
                return;
            };
            // The ring of `newest` keeps its last turn; an empty ring has nothing to give.
            if session.ring.len() <= usize::from(session.label.session == *newest) {
                continue;
            }
            session.ring.evict();
            self.changed.insert(session.label.session.clone());
            self.held_bytes -= before - session.ring.bytes();
            largest.push((session.ring.bytes(), at));
        }
    }
}

/// When a session that is gone is removed.
fn expiry_of(settings: &Settings, session: &Session) -> Timestamp {
    let linger = u64::try_from(settings.linger.as_millis()).unwrap_or(u64::MAX);
    Timestamp(session.since.0.saturating_add(linger))
}
