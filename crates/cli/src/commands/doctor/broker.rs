//! The broker and its sessions: by which sign the turns of each are told.

use turnkeep_types::broker::SessionInfo;

use super::Finding;
use crate::broker::{connect, name};
use crate::render::printable;

/// One finding for the broker, and one for each session that runs.
pub(super) fn sessions() -> Vec<Finding> {
    let listed = connect().and_then(|mut broker| Ok(broker.sessions(false)?));
    match listed {
        Err(error) => vec![Finding::ok("broker", format!("{error}; turns wait in their wrappers"))],
        Ok(sessions) => {
            let broker = Finding::ok("broker", format!("runs; {} wrapped sessions", sessions.len()));
            std::iter::once(broker).chain(sessions.iter().map(session)).collect()
        }
    }
}

fn session(session: &SessionInfo) -> Finding {
    let label = session.name.as_deref().or(session.preset.as_deref()).map(printable).unwrap_or_default();
    let who = format!("{} {label}", name::short(&session.session));
    match &session.signal {
        Some(signal) => Finding::ok("session", format!("{who}: turns are told by {}", printable(signal))),
        None => Finding::warn(
            "session",
            format!("{who}: no prompt seen yet"),
            "if its prompt is on the screen, name another --preset or give a --pattern",
        ),
    }
}
