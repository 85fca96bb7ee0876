//! How people name sessions: by the name, the id or a unique head of the id, or as the one with the
//! latest turn.

use turnkeep_types::broker::SessionInfo;

/// The session with the latest turn, if any session has one.
pub fn latest_session(sessions: &[SessionInfo]) -> Option<&SessionInfo> {
    let with_turns = sessions.iter().filter(|session| session.has_turn);
    with_turns.max_by_key(|session| session.last_turn_at)
}

/// The sessions that a name may mean. An id wins over a name, and a name over the beginning of an
/// id. A name may be used again when its session has ended, so running sessions win too.
pub fn sessions_called<'a>(sessions: &'a [SessionInfo], name: &str) -> Vec<&'a SessionInfo> {
    let is_called = |session: &SessionInfo| session.name.as_deref() == Some(name);
    let rules: [&dyn Fn(&SessionInfo) -> bool; 4] = [
        &|session| session.session == name,
        &|session| is_called(session) && session.connected,
        &|session| is_called(session),
        &|session| !name.is_empty() && session.session.starts_with(name),
    ];
    for rule in rules {
        let found: Vec<_> = sessions.iter().filter(|session| rule(session)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}
