//! `turnkeep sessions`: lists the wrapped sessions and what each does, once or continuously.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::{AgentState, SessionInfo};
use turnkeep_types::{Clock, Timestamp};

use super::App;
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, fit};
use crate::local::WallClock;
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::age_since;

/// Moves the cursor to the top left corner and clears the screen.
const CLEAR_SCREEN: &[u8] = b"\x1b[H\x1b[J";
/// How often a live table looks again.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// List the wrapped sessions: what each does, and its latest turn
///
/// Ended sessions stay listed for 10 minutes, or for the time that the broker's --linger sets. Right
/// after the broker's start, this waits a moment until the running programs have reconnected.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep sessions
  turnkeep sessions --watch     # a live table
  turnkeep sessions --json | jq -r 'select(.state==\"ready\").session'")]
pub(crate) struct SessionsArgs {
    /// Show the table again whenever it changes, until interrupted
    #[arg(short, long)]
    watch: bool,
}

pub(crate) fn run_sessions(args: &SessionsArgs, app: &mut App) -> Result<()> {
    let mut broker = connect_to_broker()?;
    if args.watch {
        return watch_sessions(&mut broker, app);
    }
    let sessions = KnownSessions::fetch(&mut broker)?;
    print_sessions(&sessions, sessions.all(), WallClock.now(), app)
}

/// Prints the sessions again and again. A screen is repainted each time, because the ages change. A
/// pipe gets the sessions only when they change, and a program gets only the changed ones.
fn watch_sessions(broker: &mut Connection, app: &mut App) -> Result<()> {
    let mut shown: Option<Vec<SessionInfo>> = None;
    loop {
        let known = KnownSessions::fetch(broker)?;
        let sessions = known.all().to_vec();
        if app.out.is_screen() {
            app.out.bytes(CLEAR_SCREEN)?;
            print_sessions(&known, &sessions, WallClock.now(), app)?;
        } else if app.out.is_json() {
            let changed = changed_sessions(&sessions, shown.as_deref().unwrap_or_default());
            print_sessions(&known, &changed, WallClock.now(), app)?;
        } else if shown.as_ref() != Some(&sessions) {
            print_sessions(&known, &sessions, WallClock.now(), app)?;
        }
        app.out.flush()?;
        shown = Some(sessions);
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The sessions that are new, or are not as they were shown before.
fn changed_sessions(sessions: &[SessionInfo], shown: &[SessionInfo]) -> Vec<SessionInfo> {
    let changed = sessions.iter().filter(|session| !shown.contains(session));
    changed.cloned().collect()
}

fn print_sessions(
    known: &KnownSessions,
    sessions: &[SessionInfo],
    now: Timestamp,
    app: &mut App,
) -> Result<()> {
    if app.out.is_json() {
        return sessions
            .iter()
            .try_for_each(|session| app.out.json(&session_json(session)));
    }
    if sessions.is_empty() {
        let hint = app.out.paint(
            Style::Faint,
            "no sessions: start one with `turnkeep wrap -- PROGRAM`",
        );
        return app.out.line(hint);
    }
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| session_row(known, session, now))
        .collect();
    let head = [
        "SESSION",
        "NAME",
        "PRESET",
        "STATE",
        "FOR",
        "TURNS",
        "LATEST",
        "FIRST WORDS",
    ];
    app.out.fitted_table(&head, &rows)?;
    print_hints(known, sessions, app)
}

/// Prints below the table which sessions need another profile.
fn print_hints(known: &KnownSessions, sessions: &[SessionInfo], app: &mut App) -> Result<()> {
    for session in sessions {
        if let Some(hint) = fit::session_hint(session, &known.display_name(session)) {
            let hint = app.out.paint(Style::Faint, &hint);
            app.out.line(hint)?;
        }
    }
    Ok(())
}

fn session_row(known: &KnownSessions, session: &SessionInfo, now: Timestamp) -> Vec<String> {
    let age = |time: Timestamp| age_since(time, now);
    let latest = session.last_turn_at.map(age);
    let preview = session.preview.as_deref().map(printable);
    vec![
        known.short_id(&session.session),
        or_dash(session.name.as_deref().map(printable)),
        or_dash(session.preset.as_deref().map(printable)),
        state_text(session).to_owned(),
        or_dash(session.since.map(age)),
        session.turns.to_string(),
        or_dash(latest.map(|age| format!("{age} ago"))),
        preview.unwrap_or_default(),
    ]
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// What the session does, for people.
fn state_text(session: &SessionInfo) -> &'static str {
    match (session.connected, session.state) {
        (true, None) => "no prompt seen yet",
        (true, Some(AgentState::Working)) => "working",
        (true, Some(AgentState::Blocked)) => "blocked: waits for an answer",
        (true, Some(AgentState::Ready)) => "ready",
        (false, Some(AgentState::Working | AgentState::Blocked)) => "ended in mid-turn",
        (false, _) => "ended",
    }
}

fn session_json(session: &SessionInfo) -> Value {
    let millis = |time: Option<Timestamp>| time.map(|time| time.0);
    json!({
        "session": session.session,
        "name": session.name,
        "preset": session.preset,
        "pid": session.pid,
        "child_pid": session.child_pid,
        "connected": session.connected,
        "shared": session.shared,
        "state": session.state.map(AgentState::word),
        "since": millis(session.since),
        "signal": session.signal,
        "unanswered": session.unanswered,
        "has_turn": session.has_turn,
        "turns": session.turns,
        "last_turn_at": millis(session.last_turn_at),
        "preview": session.preview,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_ended_in_mid_turn_says_so() {
        let session = |connected, state| SessionInfo {
            connected,
            state,
            ..SessionInfo::default()
        };
        for (session, expect) in [
            (session(true, None), "no prompt seen yet"),
            (session(true, Some(AgentState::Ready)), "ready"),
            (session(false, Some(AgentState::Ready)), "ended"),
            (session(false, None), "ended"),
            (
                session(false, Some(AgentState::Working)),
                "ended in mid-turn",
            ),
            (
                session(false, Some(AgentState::Blocked)),
                "ended in mid-turn",
            ),
        ] {
            assert_eq!(state_text(&session), expect);
        }
    }
}
