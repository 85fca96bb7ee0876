//! What `apply` gives back: an answer, or something to do whose end is the answer.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{Inject, Refusal, Reply, Shown};

use super::ring::HeldTurn;

/// A connection, as the shell numbers it. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// What comes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the connection is told.
    pub answer: Answer,
    /// Whether the connection ends when it was told.
    pub close: bool,
    /// What others are told after that.
    pub notices: Vec<Notice>,
}

impl Outcome {
    /// A hello that fails ends the connection, whatever the reason.
    pub(super) fn greeting(outcome: Result<(), Refusal>) -> Self {
        Self {
            close: outcome.is_err(),
            answer: Answer::Greeting(outcome),
            notices: Vec::new(),
        }
    }

    /// An answer that the shell completes.
    pub(super) fn later(answer: Answer) -> Self {
        Self {
            answer,
            close: false,
            notices: Vec::new(),
        }
    }

    pub(super) fn response(outcome: Result<Reply, Refusal>) -> Self {
        let close = outcome
            .as_ref()
            .is_err_and(|refusal| refusal.reason.closes());
        Self {
            answer: Answer::Response(outcome),
            close,
            notices: Vec::new(),
        }
    }
}

/// Something that a connection hears unasked. Nobody waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// To a wrapper: somebody watches and needs the whole screen first, or nobody watches any more.
    Show {
        /// The wrapper's connection.
        to: ConnId,
        /// Whether somebody watches.
        on: bool,
    },
    /// To those who watch: what the terminal shows.
    Screen {
        /// Their connections.
        to: Vec<ConnId>,
        /// What to show.
        shown: Arc<Shown>,
    },
    /// To those who watched: the session has gone.
    Ended {
        /// Their connections.
        to: Vec<ConnId>,
        /// The session.
        session: String,
    },
}

/// What a connection is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer to hello.
    Greeting(Result<(), Refusal>),
    /// The answer to anything else.
    Response(Result<Reply, Refusal>),
    /// The answer is this turn, once it is copied.
    Found(HeldTurn),
    /// The answer is what comes of this: done, or why not.
    After(Box<Effect>),
}

/// Something for the shell to do for the connection that asked, which waits for it; nobody else
/// does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send bytes to a wrapper; done when they are dispatched.
    Inject {
        /// The wrapper's connection.
        to: ConnId,
        /// The bytes.
        inject: Inject,
    },
    /// Set the clipboard.
    Clipboard(Delivery),
    /// Write a file, whole or not at all.
    File {
        /// Where to: an absolute path.
        path: PathBuf,
        /// What.
        delivery: Delivery,
    },
    /// Append to the turn store.
    Store(Delivery),
    /// Put into the inbox of a runtime's node.
    Node {
        /// The run.
        run: String,
        /// The node.
        node: String,
        /// What.
        delivery: Delivery,
    },
}

/// A turn on its way to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The bytes to deliver, none added and none removed.
    pub bytes: Bytes,
    /// The turn that they are of.
    pub turn: HeldTurn,
}
