//! Finds the session or the turn that a person names, and makes short names for both.
//!
//! A short id is the shortest head of a session's id, four characters or more, by which the grammar
//! of
//! [`crate::names`] finds this session and no other.

use anyhow::Result;
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::{ListSessions, SessionInfo};

use super::explain_broker_error;
use crate::failure::Failure;
use crate::names::{CapturedName, SessionName};
use crate::render::printable;

/// Shorter heads of ids are unique for too short a time.
const SHORT_CHARS_MIN: usize = 4;

/// The sessions that the broker knows, by which names are found and made.
pub(crate) struct KnownSessions(Vec<SessionInfo>);

impl KnownSessions {
    /// Asks the broker. Right after its start this waits for the wrappers to come back.
    pub(crate) fn fetch(broker: &mut Connection) -> Result<Self> {
        let list = ListSessions {
            gone: true,
            preview: true,
            settled: true,
        };
        Ok(Self(
            broker.list_sessions(list).map_err(explain_broker_error)?,
        ))
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[SessionInfo] {
        &self.0
    }

    /// The session that is meant.
    pub(crate) fn find_session(&self, name: &SessionName) -> Result<&SessionInfo, Failure> {
        match name {
            SessionName::Last => self.latest_session(),
            SessionName::Called(name) => self.session_called(name),
        }
    }

    /// The session with the latest turn.
    fn latest_session(&self) -> Result<&SessionInfo, Failure> {
        let latest = self.0.iter().filter(|session| session.has_turn);
        let latest = latest.max_by_key(|session| session.last_turn_at);
        latest.ok_or_else(|| Failure::new("no session has completed a turn yet"))
    }

    fn session_called(&self, name: &str) -> Result<&SessionInfo, Failure> {
        match self.sessions_matching(name)[..] {
            [one] => Ok(one),
            [] => {
                let failure = Failure::new(format!("no session is called `{}`", printable(name)));
                Err(failure.hint("`turnkeep sessions` lists them"))
            }
            ref many => Err(self.ambiguous_name(name, many)),
        }
    }

    /// The sessions that a name may mean. A name may be used again when its session has ended:
    /// those that run come first.
    fn sessions_matching(&self, name: &str) -> Vec<&SessionInfo> {
        let is_id = |session: &&SessionInfo| session.session == name;
        let is_name = |session: &&SessionInfo| session.name.as_deref() == Some(name);
        let is_running = |session: &&SessionInfo| is_name(session) && session.connected;
        let is_head =
            |session: &&SessionInfo| !name.is_empty() && session.session.starts_with(name);
        let ways: [&dyn Fn(&&SessionInfo) -> bool; 4] = [&is_id, &is_running, &is_name, &is_head];
        let found = ways
            .iter()
            .map(|way| self.0.iter().filter(way).collect::<Vec<_>>());
        found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    fn ambiguous_name(&self, name: &str, found: &[&SessionInfo]) -> Failure {
        let ids: Vec<String> = found
            .iter()
            .map(|session| self.short_id(&session.session))
            .collect();
        let failure = Failure::new(format!(
            "`{}` may be any of {} sessions",
            printable(name),
            found.len()
        ));
        failure.hint(format!("name one by its id: {}", ids.join(", ")))
    }

    /// The shortest head of an id that names this session and no other.
    pub(crate) fn short_id(&self, id: &str) -> String {
        let ends = id
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .skip(SHORT_CHARS_MIN - 1);
        let mut heads = ends.filter_map(|end| id.get(..end));
        let names_it =
            |head: &&str| matches!(self.sessions_matching(head)[..], [one] if one.session == id);
        printable(heads.find(names_it).unwrap_or(id))
    }

    /// A turn's id with a short id of its session.
    pub(crate) fn short_turn(&self, turn_id: &str) -> String {
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

    /// The full id of the turn that is meant; a session alone means its latest.
    pub(crate) fn turn_id(&self, broker: &mut Connection, name: &CapturedName) -> Result<String> {
        let session = &self.find_session(&name.session)?.session;
        if let Some(number) = name.number {
            return Ok(format!("{session}:{number}"));
        }
        let latest = broker
            .turns(session, Some(1))
            .map_err(explain_broker_error)?
            .into_iter()
            .next();
        let latest = latest.ok_or_else(|| {
            Failure::new("the session has completed no turn yet")
                .hint("wait until its agent has answered: `turnkeep sessions` says what it does")
        })?;
        Ok(latest.turn_id)
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
