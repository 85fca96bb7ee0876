//! The actions of keys. Each returns one line for a notice.

use std::fmt;

use anyhow::Result;
use turnkeep_client::broker::{AsyncConnection, BrokerError};
use turnkeep_pty::desktop::{FocusError, Press, SessionProcess, SessionResolver, session_below};
use turnkeep_types::broker::{Deliver, ListTurns, Paste, Reason, SessionInfo, TurnForm};

use crate::output::bytes_text;
use crate::render::{printable, shorten_to_chars};

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Takes the focused session's latest turn into the relay buffer.
    Capture,
    /// Injects the relay buffer into the focused session.
    Paste,
    /// Puts the relay buffer into the clipboard.
    Copy,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Capture => "capture",
            Self::Paste => "paste",
            Self::Copy => "copy",
        })
    }
}

/// How the actions deliver.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryOptions {
    /// The captured bytes instead of the text.
    pub(super) raw: bool,
    /// Also into a program that shows a dialog.
    pub(super) force: bool,
}

impl DeliveryOptions {
    /// Delivers in the form that was asked for. The content stands in for raw bytes that were not
    /// kept.
    async fn deliver<T>(
        self,
        mut deliver: impl AsyncFnMut(TurnForm) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if !self.raw {
            return deliver(TurnForm::Text).await;
        }
        match deliver(TurnForm::Raw).await {
            Err(error) if error.reason() == Some(Reason::NoRaw) => deliver(TurnForm::Content).await,
            done => done,
        }
    }
}

impl Action {
    /// Performs the action and returns a notice. An error means that the connection to the broker
    /// is lost.
    pub(super) async fn perform(
        self,
        delivery: DeliveryOptions,
        press: Press,
        broker: &mut AsyncConnection,
        focus: &mut dyn SessionResolver,
    ) -> Result<String> {
        let done = match self {
            Self::Copy => copy_to_clipboard(delivery, broker).await,
            Self::Capture | Self::Paste => {
                let sessions = broker.sessions(false).await?;
                match focused_session(press, &sessions, focus) {
                    Ok(session) if self == Self::Capture => capture_latest(broker, session).await,
                    Ok(session) => paste_captured(delivery, broker, session).await,
                    Err(error) => return Ok(format!("nothing to {self}: {error}")),
                }
            }
        };
        match done {
            Ok(notice) => Ok(notice),
            // A lost connection ends the command; a refusal is a notice for the person.
            Err(error) if error.is_fatal() => Err(error.into()),
            Err(error) => Ok(format!("cannot {self}: {}", describe_failure(&error))),
        }
    }
}

async fn capture_latest(
    broker: &mut AsyncConnection,
    session: &SessionInfo,
) -> Result<String, BrokerError> {
    let (turn_id, size) = broker.capture(&session.session).await?;
    let list = ListTurns {
        session: session.session.clone(),
        preview: true,
        ..ListTurns::default()
    };
    // The answer to a capture has no preview. The list of turns has.
    let turns = broker.list_turns(list).await?;
    let turn = turns.into_iter().find(|turn| turn.turn_id == turn_id);
    let words = turn.and_then(|turn| turn.preview).unwrap_or_default();
    let (size, label) = (bytes_text(size), session_label(session));
    if words.is_empty() {
        return Ok(format!("captured {size} from {label}"));
    }
    let quote = quote_preview(&words);
    Ok(format!("captured {size} from {label}: {quote}"))
}

/// The first words, short enough for a notice.
fn quote_preview(words: &str) -> String {
    const WORDS_CHARS_MAX: usize = 40;
    format!(
        "\"{}\"",
        shorten_to_chars(&printable(words), WORDS_CHARS_MAX)
    )
}

async fn paste_captured(
    delivery: DeliveryOptions,
    broker: &mut AsyncConnection,
    session: &SessionInfo,
) -> Result<String, BrokerError> {
    let paste = async |form| {
        let paste = Paste {
            session: session.session.clone(),
            form,
            // The session's own flag of `turnkeep wrap` decides.
            bracketed: false,
            unless_blocked: !delivery.force,
        };
        broker.paste(paste).await
    };
    delivery.deliver(paste).await?;
    Ok(format!("pasted into {}", session_label(session)))
}

async fn copy_to_clipboard(
    delivery: DeliveryOptions,
    broker: &mut AsyncConnection,
) -> Result<String, BrokerError> {
    let copy = async |form| {
        let deliver = Deliver {
            sink: "clipboard".to_owned(),
            form,
            ..Deliver::default()
        };
        broker.deliver(deliver).await
    };
    delivery.deliver(copy).await?;
    Ok("copied to the clipboard".to_owned())
}

/// The session in which the key was pressed. An adapter that does not know that returns the session
/// with the focus.
fn focused_session<'a>(
    press: Press,
    sessions: &'a [SessionInfo],
    focus: &mut dyn SessionResolver,
) -> Result<&'a SessionInfo, FocusError> {
    let process = |session: &SessionInfo| SessionProcess {
        session: session.session.clone(),
        // The wrapped program is nearer to the focused window than its wrapper. Both are below it.
        pid: session.child_pid.unwrap_or(session.pid),
    };
    let processes: Vec<SessionProcess> = sessions.iter().map(process).collect();
    let id = match press.process {
        Some(process) => session_below(process, &processes)?,
        None => focus.focused(&processes)?,
    };
    sessions
        .iter()
        .find(|session| session.session == id)
        .ok_or(FocusError::Nothing)
}

/// The session's name, or the beginning of its id.
fn session_label(session: &SessionInfo) -> &str {
    let head = session.session.get(..8).unwrap_or(&session.session);
    session.name.as_deref().unwrap_or(head)
}

/// Why the broker refused, in words short enough for a notice.
fn describe_failure(error: &BrokerError) -> String {
    match error.reason() {
        Some(Reason::NoTurn) => "no turn is complete yet".to_owned(),
        Some(Reason::BufferEmpty) => "nothing was captured yet".to_owned(),
        Some(Reason::SessionDisconnected | Reason::SessionNotFound) => {
            "the session has ended".to_owned()
        }
        Some(Reason::Blocked) => "the program shows a dialog: answer it first".to_owned(),
        Some(Reason::Busy) => "the session has not taken the last paste yet".to_owned(),
        Some(Reason::NoClipboard) => "the broker found no clipboard".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_by_its_name_or_the_head_of_its_id() {
        let session = "0123456789abcdef".to_owned();
        let named = SessionInfo {
            session: session.clone(),
            name: Some("left".to_owned()),
            ..Default::default()
        };
        assert_eq!(session_label(&named), "left");
        assert_eq!(
            session_label(&SessionInfo {
                session,
                ..Default::default()
            }),
            "01234567"
        );
        assert_eq!(
            session_label(&SessionInfo {
                session: "ab".to_owned(),
                ..Default::default()
            }),
            "ab"
        );
    }
}
