//! The results of `apply`: an answer, or an effect whose result is the answer. They hold no logic.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::broker::{Inject, Refusal, Reply, Shown};

use super::ring::HeldTurn;

/// A connection, as the server numbers it. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// The result of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The answer to the connection.
    pub answer: Answer,
    /// Whether the connection ends after the answer.
    pub close: bool,
    /// The notices to other connections, queued before the answer is sent.
    pub notices: Vec<Notice>,
}

impl Outcome {
    /// A failed hello ends the connection, whatever the reason.
    pub(super) fn greeting(outcome: Result<(), Refusal>) -> Self {
        Self {
            close: outcome.is_err(),
            answer: Answer::Greeting(outcome),
            notices: Vec::new(),
        }
    }

    /// An answer that the server completes.
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

/// A message to a connection that did not ask for it. The broker does not wait for its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// To a wrapper: start sending the screen, beginning with the whole one, or stop because no
    /// client watches any more.
    Show {
        /// The wrapper's connection.
        to: ConnId,
        /// Whether a client watches.
        on: bool,
    },
    /// To the watchers: what the terminal shows.
    Screen {
        /// Their connections.
        to: Vec<ConnId>,
        /// The screen, or a piece of it.
        shown: Arc<Shown>,
    },
    /// To the former watchers: the session is gone.
    Ended {
        /// Their connections.
        to: Vec<ConnId>,
        /// The session.
        session: String,
    },
}

/// The answer to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer to hello.
    Greeting(Result<(), Refusal>),
    /// The answer to anything else.
    Response(Result<Reply, Refusal>),
    /// The answer is this turn, once it is copied.
    Found(HeldTurn),
    /// The answer is the result of this effect: done, or the reason why not.
    After(Box<Effect>),
}

/// Work for the server, on behalf of the connection that asked. Only that connection waits for it.
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
    /// Write a file, completely or not at all.
    File {
        /// The absolute path.
        path: PathBuf,
        /// The turn to deliver.
        delivery: Delivery,
    },
    /// Append to the turn store.
    Store(Delivery),
    /// Send to a node of a run, as a message of the operator.
    Node {
        /// The node.
        to: NodeAddress,
        /// The turn to deliver.
        delivery: Delivery,
    },
}

/// A node of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// The run's id.
    pub run: String,
    /// The node's id or alias.
    pub node: String,
}

/// A turn on its way to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The bytes to deliver, unchanged.
    pub bytes: Bytes,
    /// The turn that they belong to.
    pub turn: HeldTurn,
}
