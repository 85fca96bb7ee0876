//! How a person names a session: by its id, a unique head of it, its name, or `@last`.

use anyhow::Result;
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::SessionInfo;

use super::explained;
use crate::failure::Failure;
use crate::render::printable;

/// How much of an id is shown where a person reads it.
const SHORT_CHARS: usize = 8;

/// Finds the session that is meant.
pub(crate) fn session(broker: &mut Connection, name: &str) -> Result<SessionInfo> {
    let sessions = broker.sessions(true).map_err(explained)?;
    Ok(choose(sessions, name)?)
}

/// The full id of a turn: as it is, or with its session named in another way, as in `@last:3`.
pub(crate) fn turn_id(broker: &mut Connection, name: &str) -> Result<String> {
    let Some((of, number)) = name.rsplit_once(':') else {
        let failure = Failure::usage(format!("`{name}` is no turn: expected SESSION:NUMBER"));
        return Err(failure.hint("`turnkeep turns SESSION` lists the turns of a session").into());
    };
    Ok(format!("{}:{number}", session(broker, of)?.session))
}

fn choose(sessions: Vec<SessionInfo>, name: &str) -> Result<SessionInfo, Failure> {
    if name == "@last" {
        let latest = sessions.into_iter().filter(|session| session.has_turn);
        let latest = latest.max_by_key(|session| session.last_turn_at);
        return latest.ok_or_else(|| Failure::new("no session has completed a turn yet"));
    }
    let is_id = |session: &&SessionInfo| session.session == name;
    let is_name = |session: &&SessionInfo| session.name.as_deref() == Some(name);
    let is_running = |session: &&SessionInfo| is_name(session) && session.connected;
    let is_head = |session: &&SessionInfo| !name.is_empty() && session.session.starts_with(name);
    // A name may be used again when its session has ended: those that run come first.
    let ways: [&dyn Fn(&&SessionInfo) -> bool; 4] = [&is_id, &is_running, &is_name, &is_head];
    for way in ways {
        let found: Vec<&SessionInfo> = sessions.iter().filter(|session| way(session)).collect();
        match found[..] {
            [] => {}
            [one] => return Ok(one.clone()),
            [..] => return Err(ambiguous(name, &found)),
        }
    }
    let failure = Failure::new(format!("no session is called `{}`", printable(name)));
    Err(failure.hint("`turnkeep sessions` lists them"))
}

fn ambiguous(name: &str, found: &[&SessionInfo]) -> Failure {
    let ids: Vec<String> = found.iter().map(|session| printable(&session.session)).collect();
    let failure = Failure::new(format!("`{}` may be any of {} sessions", printable(name), found.len()));
    failure.hint(format!("name one by its id: {}", ids.join(", ")))
}

/// The head of an id, for people.
pub(crate) fn short(session: &str) -> String {
    printable(&session.chars().take(SHORT_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;

    fn some() -> Vec<SessionInfo> {
        let session = |id: &str, name: &str, last: u64, connected: bool| SessionInfo {
            session: id.to_owned(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            has_turn: last > 0,
            last_turn_at: (last > 0).then_some(Timestamp(last)),
            connected,
            ..SessionInfo::default()
        };
        vec![
            session("abc1", "review", 5, true),
            session("abd2", "review", 9, false),
            session("f00d", "", 0, true),
            session("beef", "abc1", 7, true),
            session("cafe", "twin", 1, true),
            session("caff", "twin", 1, true),
        ]
    }

    #[test]
    fn a_session_is_named_in_four_ways() {
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
            ("", None),
        ] {
            let found = choose(some(), name).map(|session| session.session);
            assert_eq!(found.ok().as_deref(), expect, "{name}");
        }
        assert!(choose(Vec::new(), "@last").is_err());
    }
}
