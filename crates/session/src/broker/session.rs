//! One session: its wrapper, its program's state, its ring and its sequence numbers.
//!
//! The ring and the numbers survive a new registration; everything else is replaced by it.

use std::collections::BTreeSet;
use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    AgentState, NAME_BYTES_MAX, Reason, Refusal, Register, SessionId, SessionInfo, StateChange,
};

use super::effect::ConnId;
use super::ring::{Ring, SessionLabel};
use super::sequence_numbers::SequenceNumbers;

/// A registered session, or one that is gone and lingers.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) label: Arc<SessionLabel>,
    /// The wrapper's connection; `None` when the session is gone.
    pub(super) owner: Option<ConnId>,
    pub(super) ring: Ring,
    /// The assigned sequence numbers; they never go back, not even over a new registration.
    pub(super) numbers: SequenceNumbers,
    /// When the current state began, or when the session went.
    pub(super) since: Timestamp,
    /// Whether the user allowed others to watch.
    pub(super) shared: bool,
    /// Whether the wrapper frames every paste.
    pub(super) bracketed: bool,
    /// Whether the program paints dialogs, so that it may show one before its first prompt.
    dialogs: bool,
    /// The connections that watch.
    pub(super) watchers: BTreeSet<ConnId>,
    state: Option<AgentState>,
    signal: Option<String>,
    unanswered: u32,
    pid: u32,
    child_pid: Option<u32>,
}

impl Session {
    /// Creates a session that was never registered before.
    pub(super) fn new(now: Timestamp, id: SessionId) -> Self {
        Self {
            label: Arc::new(SessionLabel {
                session: id,
                name: None,
                preset: None,
            }),
            owner: None,
            ring: Ring::default(),
            numbers: SequenceNumbers::default(),
            since: now,
            shared: false,
            bracketed: false,
            dialogs: false,
            watchers: BTreeSet::new(),
            state: None,
            signal: None,
            unanswered: 0,
            pid: 0,
            child_pid: None,
        }
    }

    /// Applies a registration. The ring and the numbers stay.
    pub(super) fn register(&mut self, now: Timestamp, conn: ConnId, register: Register) {
        let session = self.label.session.clone();
        self.label = Arc::new(SessionLabel {
            session,
            name: register.name,
            preset: register.preset,
        });
        self.owner = Some(conn);
        self.since = now;
        self.shared = register.shared;
        self.bracketed = register.bracketed;
        self.dialogs = register.dialogs;
        self.state = None;
        self.signal = None;
        self.unanswered = 0;
        self.pid = register.pid;
        self.child_pid = register.child_pid;
    }

    pub(super) fn set_state(&mut self, change: StateChange) {
        self.state = Some(change.state);
        self.since = change.since;
        self.unanswered = change.unanswered;
        self.signal = change.signal.or_else(|| self.signal.take());
    }

    pub(super) fn mark_disconnected(&mut self, now: Timestamp) {
        self.owner = None;
        self.since = now;
    }

    pub(super) fn info(&self) -> SessionInfo {
        let latest = self.ring.latest();
        SessionInfo {
            session: self.label.session.to_string(),
            pid: self.pid,
            has_turn: latest.is_some(),
            name: self.label.name.clone(),
            preset: self.label.preset.clone(),
            child_pid: self.child_pid,
            state: self.state,
            since: Some(self.since),
            signal: self.signal.clone(),
            unanswered: self.unanswered,
            turns: u32::try_from(self.ring.turn_count()).unwrap_or(u32::MAX),
            last_turn_at: latest.map(|turn| turn.info.timestamp),
            connected: self.owner.is_some(),
            shared: self.shared,
            preview: None,
        }
    }

    /// The first words of the latest turn.
    pub(super) fn latest_preview(&self) -> Option<String> {
        self.ring.latest().map(|turn| turn.preview().to_owned())
    }

    /// Whether the program may be showing a dialog. A program that paints dialogs often begins with
    /// one, such as the question whether a folder is trusted, and has no state before its first
    /// prompt.
    pub(super) fn may_show_dialog(&self) -> bool {
        match self.state {
            Some(state) => state == AgentState::Blocked,
            None => self.dialogs,
        }
    }
}

/// Rejects names that would make a list of sessions too long for a message.
pub(super) fn check_names<'a>(
    names: impl IntoIterator<Item = (&'static str, Option<&'a str>)>,
) -> Result<(), Refusal> {
    for (field, name) in names {
        if name.is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            let detail = format!("`{field}` is longer than {NAME_BYTES_MAX} bytes");
            return Err(Refusal::new(Reason::BadField, detail));
        }
    }
    Ok(())
}
