//! One session: who wraps it, what its agent does, its ring and its counter.

use std::collections::BTreeSet;
use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    AgentState, NAME_BYTES_MAX, Reason, Refusal, Register, SessionId, SessionInfo, StateChange,
};

use super::effect::ConnId;
use super::numbers::Numbers;
use super::ring::{Label, Ring};

/// A registered session, or one that has gone and lingers.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) label: Arc<Label>,
    /// The wrapper's connection; none when the session has gone.
    pub(super) owner: Option<ConnId>,
    pub(super) ring: Ring,
    /// The sequence numbers that were given; they never go back, not even over a new registration.
    pub(super) numbers: Numbers,
    /// Since when the state is what it is, or the session is gone.
    pub(super) since: Timestamp,
    /// Whether the wrapper was told to let others watch.
    pub(super) shared: bool,
    /// Whether the wrapper frames every paste.
    pub(super) bracketed: bool,
    /// Whether the program paints dialogs, so that it may show one before its first prompt.
    dialogs: bool,
    /// Who watches.
    pub(super) watchers: BTreeSet<ConnId>,
    state: Option<AgentState>,
    signal: Option<String>,
    unanswered: u32,
    pid: u32,
    child_pid: Option<u32>,
}

impl Session {
    /// A session that nobody has registered before.
    pub(super) fn new(now: Timestamp, id: SessionId) -> Self {
        Self {
            label: Arc::new(Label {
                session: id,
                name: None,
                preset: None,
            }),
            owner: None,
            ring: Ring::default(),
            numbers: Numbers::default(),
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

    /// Takes a registration. The ring and the counter stay.
    pub(super) fn register(&mut self, now: Timestamp, conn: ConnId, register: Register) {
        let session = self.label.session.clone();
        self.label = Arc::new(Label {
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

    pub(super) fn leave(&mut self, now: Timestamp) {
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

/// Refuses names that would make a list of sessions too long for a message.
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
