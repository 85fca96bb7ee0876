//! Calls of agents whose outcome comes later: after a person's decision, or after a verification.
//!
//! An agent waits for a short time. If the outcome comes in time, the agent gets it as the answer of
//! its call. If it comes later, it arrives in the agent's inbox. The outcome and the agent may be
//! ready in either order, so each finds what the other left. A call that is repeated, because its
//! connection was lost, waits beside the first one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use turnkeep_runtime::ids::ToolId;

/// The result of a call, or the error that names the fix.
pub(super) type CallOutcome = Result<Value, String>;

/// The calls of a run that wait, by their ids.
#[derive(Debug, Default)]
pub(super) struct WaitingCalls(Mutex<HashMap<ToolId, CallState>>);

#[derive(Debug)]
enum CallState {
    /// The agent waits, more than once if it has repeated the call.
    Waiting(Vec<oneshot::Sender<CallOutcome>>),
    /// The answer to the agent said that the outcome will come into its inbox.
    GivenUp,
    /// The outcome came before the agent began to wait.
    Ready(CallOutcome),
}

impl WaitingCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<ToolId, CallState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the outcome of a call.
    pub(super) fn wait(&self, call: ToolId) -> oneshot::Receiver<CallOutcome> {
        let (sender, receiver) = oneshot::channel();
        let mut calls = self.lock();
        match calls.remove(&call) {
            // The receiver is in this function's hands, so it takes the outcome.
            Some(CallState::Ready(outcome)) => drop(sender.send(outcome)),
            Some(CallState::Waiting(mut waiting)) => {
                waiting.push(sender);
                calls.insert(call, CallState::Waiting(waiting));
            }
            Some(CallState::GivenUp) | None => {
                calls.insert(call, CallState::Waiting(vec![sender]));
            }
        }
        receiver
    }

    /// Ends the wait: the outcome goes to the inbox.
    pub(super) fn give_up(&self, call: ToolId) {
        self.lock().insert(call, CallState::GivenUp);
    }

    /// Forgets a call whose outcome came in the moment in which the agent gave up.
    pub(super) fn forget(&self, call: ToolId) {
        self.lock().remove(&call);
    }

    /// Passes an outcome to the agent that waits. Returns it if the agent waits no more.
    pub(super) fn settle(&self, call: ToolId, outcome: CallOutcome) -> Option<CallOutcome> {
        let mut calls = self.lock();
        match calls.remove(&call) {
            Some(CallState::Waiting(waiting)) => {
                let mut was_taken = false;
                for agent in waiting {
                    was_taken |= agent.send(outcome.clone()).is_ok();
                }
                (!was_taken).then_some(outcome)
            }
            Some(CallState::GivenUp) => Some(outcome),
            // The agent does not wait yet. It finds the outcome here.
            Some(CallState::Ready(_)) | None => {
                calls.insert(call, CallState::Ready(outcome));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;

    #[tokio::test]
    async fn an_outcome_reaches_the_agent_in_either_order_or_goes_to_the_inbox() {
        let calls = WaitingCalls::default();
        let id = ToolId::from_bits;
        let outcome = || CallOutcome::Ok(Value::from(7));
        let waiting = calls.wait(id(1));
        assert_eq!(calls.settle(id(1), outcome()), None);
        assert_eq!(waiting.await.unwrap(), outcome());
        assert_eq!(
            calls.settle(id(2), outcome()),
            None,
            "before the agent waits"
        );
        assert_eq!(calls.wait(id(2)).await.unwrap(), outcome());
        drop(calls.wait(id(3)));
        assert_eq!(
            calls.settle(id(3), outcome()),
            Some(outcome()),
            "the agent is gone"
        );
        let [first, again] = [calls.wait(id(5)), calls.wait(id(5))];
        assert_eq!(calls.settle(id(5), outcome()), None);
        assert_eq!(first.await.unwrap(), outcome(), "the call was repeated");
        assert_eq!(again.await.unwrap(), outcome());
        drop(calls.wait(id(4)));
        calls.give_up(id(4));
        assert_eq!(calls.settle(id(4), outcome()), Some(outcome()));
        assert!(calls.lock().is_empty());
    }
}
