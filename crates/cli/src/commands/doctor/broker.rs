//! Checks the broker, and which signal detects the turns of each session.

use turnkeep_types::broker::SessionInfo;

use super::Finding;
use crate::broker::connect_to_broker;
use crate::broker::known_sessions::KnownSessions;
use crate::render::printable;

/// One finding for the broker, and one for each session that runs.
pub(super) fn check_broker() -> Vec<Finding> {
    let listed = connect_to_broker().and_then(|mut broker| KnownSessions::fetch(&mut broker));
    match listed {
        Err(error) => vec![Finding::warn(
            "broker",
            format!("{error}; turns wait in their wrappers"),
            "start `turnkeep up` or `turnkeep broker` if you want to list and paste turns",
        )],
        Ok(sessions) => {
            let running = sessions.all().iter().filter(|session| session.connected);
            let found: Vec<Finding> = running
                .map(|running| session_finding(&sessions, running))
                .collect();
            let broker = Finding::ok("broker", format!("runs; {} wrapped sessions", found.len()));
            std::iter::once(broker).chain(found).collect()
        }
    }
}

fn session_finding(known: &KnownSessions, session: &SessionInfo) -> Finding {
    let label = session
        .name
        .as_deref()
        .or(session.preset.as_deref())
        .map(printable)
        .unwrap_or_default();
    let who = format!("{} {label}", known.short_id(&session.session));
    match &session.signal {
        Some(signal) => Finding::ok(
            "session",
            format!("{who}: turns are detected by {}", printable(signal)),
        ),
        None => Finding::warn(
            "session",
            format!("{who}: no prompt seen yet"),
            "if its prompt is on the screen, name another --preset or give a --pattern",
        ),
    }
}
