//! The focused pane: the active one of the most recently used client. Without a client nothing has
//! focus.

use super::Tmux;
use crate::desktop::{FocusError, SessionResolver};

/// The pane that has focus.
#[derive(Debug)]
pub struct TmuxFocus {
    tmux: Tmux,
}

impl TmuxFocus {
    /// The focus of this server.
    pub fn new(tmux: Tmux) -> Self {
        Self { tmux }
    }
}

impl SessionResolver for TmuxFocus {
    fn focused_process(&mut self) -> Result<u32, FocusError> {
        let format = "#{client_activity} #{pane_pid}";
        let clients = self
            .tmux
            .run_command(&["list-clients", "-F", format], b"")?;
        most_recent(&String::from_utf8_lossy(&clients)).ok_or(FocusError::Nothing)
    }
}

/// The pane of the client with the newest activity; lines are `SECONDS PID`.
fn most_recent(clients: &str) -> Option<u32> {
    let parse = |line: &str| {
        let (activity, pid) = line.trim().split_once(' ')?;
        Some((activity.parse::<u64>().ok()?, pid.parse::<u32>().ok()?))
    };
    clients
        .lines()
        .filter_map(parse)
        // A server may have several clients; the user is at the one that was used last.
        .max_by_key(|(activity, _)| *activity)
        .map(|(_, pid)| pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_was_used_last_has_focus() {
        for (clients, expect) in [
            ("", None),
            ("1700000000 12\n", Some(12)),
            ("1700000000 12\n1700000009 13\n1700000001 14\n", Some(13)),
            ("garbage\n1 x\n5 6\n", Some(6)),
        ] {
            assert_eq!(most_recent(clients), expect, "{clients:?}");
        }
    }
}
