//! How a command reaches the broker, and how it explains the broker's refusals.

pub(crate) mod fit;
pub(crate) mod known_sessions;
pub(crate) mod outlets;
pub(crate) mod serve;
pub(crate) mod store_link;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use turnkeep_client::broker::{AsyncConnection, BrokerError, Connection, socket_path};
use turnkeep_types::broker::{Reason, Role, TurnForm};

use crate::desktop::runtime_dir;
use crate::failure::Failure;

/// How long a command waits for the broker. The broker gives up on a slow sink before this.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(45);

/// The path of the broker's socket.
pub(crate) fn broker_socket_path() -> Result<PathBuf> {
    let dir = runtime_dir().ok_or_else(|| {
        Failure::new("XDG_RUNTIME_DIR is not set to an absolute path, so there is no place for the broker")
            .hint("log in through the desktop or `loginctl`, or set it to a directory of your own, mode 0700")
    })?;
    Ok(socket_path(&dir))
}

/// Connects to the broker.
pub(crate) fn connect_to_broker() -> Result<Connection> {
    Connection::open(&broker_socket_path()?, Role::Client, ANSWER_WITHIN)
        .map_err(explain_broker_error)
}

/// Connects to the broker from an asynchronous command.
pub(crate) async fn connect_to_broker_async() -> Result<AsyncConnection> {
    let opened = AsyncConnection::open(&broker_socket_path()?, Role::Client, ANSWER_WITHIN).await;
    opened.map_err(explain_broker_error)
}

/// Delivers a turn's text. With `raw`, delivers the terminal's own bytes, or the content if those
/// were not kept.
pub(crate) fn deliver_as<T>(
    raw: bool,
    mut deliver: impl FnMut(TurnForm) -> Result<T, BrokerError>,
) -> Result<T, BrokerError> {
    if !raw {
        return deliver(TurnForm::Text);
    }
    match deliver(TurnForm::Raw) {
        // Only sessions with --keep-raw have raw bytes. The content is the next best form of them.
        Err(error) if error.reason() == Some(Reason::NoRaw) => deliver(TurnForm::Content),
        done => done,
    }
}

/// The error with a hint.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what an error is mapped with"
)]
pub(crate) fn explain_broker_error(error: BrokerError) -> anyhow::Error {
    let hint = match (&error, error.reason()) {
        (BrokerError::Unreachable { .. }, _) => {
            "start it with `turnkeep broker`, or with everything else by `turnkeep up`"
        }
        (_, Some(Reason::NoTurn)) => {
            "wait until its agent has answered: `turnkeep sessions` says what it does"
        }
        (_, Some(Reason::BufferEmpty)) => "capture a turn first: `turnkeep capture SESSION`",
        (_, Some(Reason::TurnNotFound)) => {
            "`turnkeep turns SESSION` lists the turns that are still there"
        }
        (_, Some(Reason::SessionDisconnected)) => {
            "its program has ended: `turnkeep sessions` lists those that run"
        }
        (_, Some(Reason::NotShared)) => {
            "only sessions started with `turnkeep wrap --share` can be watched; their turns: `turnkeep turns`"
        }
        (_, Some(Reason::NoRaw)) => {
            "raw bytes are kept of sessions that were wrapped with --keep-raw"
        }
        (_, Some(Reason::UnknownSink)) => "the sinks are inject, clipboard, file, store and node",
        (_, Some(Reason::NoClipboard)) => {
            "the broker found no X11, Wayland or tmux clipboard where it was started"
        }
        (_, Some(Reason::Blocked)) => {
            "answer it in its terminal first, or paste all the same with --force"
        }
        (_, Some(Reason::NoRuntime)) => {
            "agents run inside `turnkeep up`: start it, and the broker reaches it"
        }
        (_, Some(Reason::Busy)) => "try again in a moment",
        // The other reasons explain themselves, or the person can do nothing about them.
        _ => return Failure::new(describe_refusal(&error)).into(),
    };
    Failure::new(describe_refusal(&error)).hint(hint).into()
}

/// The broker's refusal as a sentence, with the protocol's word for it.
fn describe_refusal(error: &BrokerError) -> String {
    let BrokerError::Refused(refusal) = error else {
        return error.to_string();
    };
    let sentence = match refusal.reason {
        Reason::NoTurn => "the session has completed no turn yet",
        Reason::BufferEmpty => "nothing was captured yet",
        Reason::TurnNotFound => "there is no such turn, or no longer",
        Reason::SessionNotFound => "there is no such session",
        Reason::SessionDisconnected => "the session has ended",
        Reason::NotShared => "the session's terminal is not shared",
        Reason::NoRaw => "the raw bytes of this turn were not kept",
        Reason::Blocked => {
            "the program shows a dialog or has shown no prompt yet: a paste would answer it"
        }
        _ => return refusal.to_string(),
    };
    format!("{sentence} ({})", refusal.reason)
}
