//! Finds the session that runs below a process, by the parents in `/proc`.
//!
//! A process that ends meanwhile has no parent; a loop (a pid that was reused during the walk) ends
//! at a limit.

use super::error::FocusError;

/// The longest chain of parents; no real one is longer.
const ANCESTORS_MAX: usize = 4096;

/// A session and a process of it: the wrapper's or its child's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionProcess {
    /// The session's id.
    pub session: String,
    /// The process.
    pub pid: u32,
}

/// The parent of a process that is alive.
pub(super) fn parent_of(pid: u32) -> Option<u32> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `PID (NAME) STATE PPID …`, where NAME may hold spaces and brackets.
fn parse_stat(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .filter(|parent| *parent != 0)
}

/// The one session at or below `process`.
pub(super) fn session_below(
    process: u32,
    sessions: &[SessionProcess],
    parent: impl Fn(u32) -> Option<u32>,
) -> Result<String, FocusError> {
    let ancestors = |pid| std::iter::successors(Some(pid), |pid| parent(*pid)).take(ANCESTORS_MAX);
    let below = sessions
        .iter()
        .filter(|session| ancestors(session.pid).any(|pid| pid == process));
    let mut below: Vec<String> = below.map(|session| session.session.clone()).collect();
    below.sort();
    // The wrapper and its child are two processes of one session.
    below.dedup();
    match below.len() {
        0 => Err(FocusError::NoSession { process }),
        1 => Ok(below.swap_remove(0)),
        _ => Err(FocusError::Ambiguous { sessions: below }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 ← 10 ← 100 ← 1000, 1 ← 10 ← 101, 1 ← 20, and 7 ⇄ 8.
    fn family(pid: u32) -> Option<u32> {
        match pid {
            10 | 20 => Some(1),
            100 | 101 => Some(10),
            1000 => Some(100),
            7 => Some(8),
            8 => Some(7),
            _ => None,
        }
    }

    #[test]
    fn the_session_below_the_focused_process_is_found() {
        let sessions: Vec<SessionProcess> = [("a", 1000), ("b", 101), ("c", 20), ("loop", 7)]
            .map(|(session, pid)| SessionProcess {
                session: session.to_owned(),
                pid,
            })
            .into();
        for (process, expect) in [
            (100, "a"),
            (1000, "a"),
            (101, "b"),
            (20, "c"),
            (10, "several sessions run in what has focus: a, b"),
            (1, "several sessions run in what has focus: a, b, c"),
            (99, "no session runs in what has focus (process 99)"),
        ] {
            let found =
                session_below(process, &sessions, family).unwrap_or_else(|error| error.to_string());
            assert_eq!(found, expect, "{process}");
        }
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_parent() {
        for (stat, expect) in [
            ("12 (bash) S 7 12 12 0", Some(7)),
            ("12 (a) b) (c) R 42 1 1", Some(42)),
            ("1 (init) S 0 1 1", None),
            ("12 (bash", None),
            ("", None),
        ] {
            assert_eq!(parse_stat(stat), expect, "{stat}");
        }
    }

    #[test]
    fn the_kernel_knows_our_parent() {
        assert_eq!(
            parent_of(std::process::id()),
            Some(std::os::unix::process::parent_id())
        );
    }
}
