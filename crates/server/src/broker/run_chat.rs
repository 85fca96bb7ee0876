//! Sends captured turns to the nodes of this process's runs, without a connection.

use std::sync::Arc;

use tokio::runtime::Handle;
use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, Chat, Surroundings};
use turnkeep_runtime::ids::RunId;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_session::broker::NodeAddress;
use turnkeep_types::broker::{Reason, Refusal};

use super::sinks::NodeChat;
use crate::runs::RunError;
use crate::shared::Shared;

/// Sends messages to the nodes of this process's runs.
pub(crate) struct RunChat {
    shared: Arc<Shared>,
    runtime: Handle,
}

impl RunChat {
    /// Must be called on the server's runtime.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            runtime: Handle::current(),
        }
    }

    async fn send(&self, run: RunId, node: &str, text: &str) -> Result<(), RunError> {
        let run = self.shared.runs.get(run)?;
        let (node, content) = (node.to_owned(), text.to_owned());
        let send = move |run: &Run, around: Surroundings<'_>| {
            let chat = Chat {
                content: &content,
                node: Some(&node),
                interrupt: false,
            };
            decide::chat(run, around, chat)
        };
        run.decide(send).await.map(drop)
    }
}

impl NodeChat for RunChat {
    /// Called on a thread that may block: a sink's.
    fn say(&self, to: &NodeAddress, text: &str) -> Result<(), Refusal> {
        let unknown = || {
            let message = format!("no run has the id `{}`", to.run);
            Refusal::new(Reason::BadField, message)
        };
        let run = to.run.parse().map_err(|_| unknown())?;
        let sent = self.runtime.block_on(self.send(run, &to.node, text));
        sent.map_err(|error| {
            let is_unknown = matches!(
                error,
                RunError::UnknownRun(_) | RunError::Rejected(Rejection::UnknownNode(_))
            );
            let reason = if is_unknown {
                Reason::BadField
            } else {
                Reason::SinkFailed
            };
            Refusal::new(reason, error.to_string())
        })
    }
}
