//! Finds the session or the turn that a person names, and makes short names for both.
//!
//! A short id is the shortest prefix of a session's id, at least four characters long, that names
//! this session and no other by the grammar of [`crate::names`].

use anyhow::Result;
use turnkeep_client::broker::Connection;
use turnkeep_session::broker::{latest_session, sessions_called};
use turnkeep_types::broker::{ListSessions, SessionInfo};

use super::explain_broker_error;
use crate::failure::Failure;
use crate::names::{CapturedName, SessionName};
use crate::render::printable;

/// A shorter prefix would soon be shared with a new session.
const SHORT_CHARS_MIN: usize = 4;

/// The sessions that the broker knows.
pub(crate) struct KnownSessions(Vec<SessionInfo>);

impl KnownSessions {
    /// Asks the broker for its sessions. A broker that has just started answers after its wrappers
    /// have had time to reconnect.
    pub(crate) fn fetch(broker: &mut Connection) -> Result<Self> {
        let list = ListSessions {
            // Turns of an ended session can still be captured, so it must still be found by name.
            gone: true,
            preview: true,
            settled: true,
        };
        let sessions = broker.list_sessions(list);
        Ok(Self(sessions.map_err(explain_broker_error)?))
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[SessionInfo] {
        &self.0
    }

    /// The session that a person names.
    pub(crate) fn find_session(&self, name: &SessionName) -> Result<&SessionInfo, Failure> {
        match name {
            SessionName::Last => self.latest_session(),
            SessionName::Called(name) => self.session_called(name),
        }
    }

    /// The session with the latest turn.
    fn latest_session(&self) -> Result<&SessionInfo, Failure> {
        latest_session(&self.0).ok_or_else(|| Failure::new("no session has completed a turn yet"))
    }

    fn session_called(&self, name: &str) -> Result<&SessionInfo, Failure> {
        match sessions_called(&self.0, name)[..] {
            [one] => Ok(one),
            [] => {
                let failure = Failure::new(format!("no session is called `{}`", printable(name)));
                Err(failure.hint("`turnkeep sessions` lists them"))
            }
            ref many => Err(self.ambiguous_name(name, many)),
        }
    }

    fn ambiguous_name(&self, name: &str, found: &[&SessionInfo]) -> Failure {
        let (name, count) = (printable(name), found.len());
        let ids = found.iter().map(|session| self.short_id(&session.session));
        let ids: Vec<String> = ids.collect();
        Failure::new(format!("`{name}` may be any of {count} sessions"))
            .hint(format!("name one by its id: {}", ids.join(", ")))
    }

    /// The shortest prefix of an id that names this session and no other.
    pub(crate) fn short_id(&self, id: &str) -> String {
        // Ids are usually hex, but a wrapper of another version may send any text: cut at
        // characters.
        for (start, last) in id.char_indices().skip(SHORT_CHARS_MIN - 1) {
            let prefix = &id[..start + last.len_utf8()];
            if matches!(sessions_called(&self.0, prefix)[..], [one] if one.session == id) {
                return printable(prefix);
            }
        }
        printable(id)
    }

    /// A turn's id with a short id of its session.
    pub(crate) fn short_turn(&self, turn_id: &str) -> String {
        // The number is behind the last colon: a session's id could contain one.
        match turn_id.rsplit_once(':') {
            Some((session, number)) => format!("{}:{}", self.short_id(session), printable(number)),
            None => printable(turn_id),
        }
    }

    /// What a person calls a session: its name, or else its short id.
    pub(crate) fn display_name(&self, session: &SessionInfo) -> String {
        session
            .name
            .as_deref()
            .map_or_else(|| self.short_id(&session.session), printable)
    }

    /// The full id of the turn that a person names. A session alone means its latest turn.
    pub(crate) fn turn_id(&self, broker: &mut Connection, name: &CapturedName) -> Result<String> {
        let session = &self.find_session(&name.session)?.session;
        if let Some(number) = name.number {
            return Ok(format!("{session}:{number}"));
        }
        let turns = broker
            .turns(session, Some(1))
            .map_err(explain_broker_error)?;
        match turns.into_iter().next() {
            Some(latest) => Ok(latest.turn_id),
            None => Failure::new("the session has completed no turn yet")
                .hint("wait until its agent has answered: `turnkeep sessions` says what it does")
                .fail(),
        }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;

    fn some() -> KnownSessions {
        let session = |id: &str, name: &str, last: u64, connected: bool| SessionInfo {
            session: id.to_owned(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            has_turn: last > 0,
            last_turn_at: (last > 0).then_some(Timestamp(last)),
            connected,
            ..SessionInfo::default()
        };
        KnownSessions(vec![
            session("abc1", "review", 5, true),
            session("abd2", "review", 9, false),
            session("f00d", "", 0, true),
            session("beef", "abc1", 7, true),
            session("cafe", "twin", 1, true),
            session("caff", "twin", 1, true),
            session("1234567890", "", 1, true),
            session("1234599999", "12345", 1, true),
        ])
    }

    #[test]
    fn a_session_is_named_in_four_ways() {
        let sessions = some();
        for (name, expect) in [
            ("f00d", Some("f00d")),
            ("f", Some("f00d")),
            ("abc", Some("abc1")),
            ("abc1", Some("abc1")),
            ("review", Some("abc1")),
            ("@last", Some("abd2")),
            ("ab", None),
            ("twin", None),
            ("nobody", None),
        ] {
            let found = sessions
                .find_session(&name.parse().unwrap())
                .map(|session| session.session.as_str());
            assert_eq!(found.ok(), expect, "{name}");
        }
        assert!(
            KnownSessions(Vec::new())
                .find_session(&SessionName::Last)
                .is_err()
        );
    }

    #[test]
    fn a_short_id_names_one_session_and_no_other() {
        let sessions = some();
        for (id, expect) in [
            ("abc1", "abc1"),
            ("f00d", "f00d"),
            // Five characters are the name of the other one.
            ("1234567890", "123456"),
            ("1234599999", "12345"),
            ("unknown to the broker", "unknown to the broker"),
        ] {
            assert_eq!(sessions.short_id(id), expect);
        }
        assert_eq!(sessions.short_turn("1234567890:17"), "123456:17");
    }
}
