//! Sorts the messages of the broker: the response that the caller waits for, or a notification.
//!
//! Notifications wait in a bounded queue. If it is full, the connection fails: the broker counts on
//! every paste that it sent to a wrapper, so none may be dropped silently.

use std::collections::VecDeque;

use turnkeep_types::broker::{Reply, ServerMessage};

use super::error::BrokerError;

/// The most bytes of queued notifications.
const NOTIFICATION_BYTES_MAX: usize = 32 << 20;

/// The approximate memory of a message without its content.
const OVERHEAD_BYTES: usize = 128;

/// Returns an error unless the broker accepted the hello.
pub(super) fn check_hello(answer: ServerMessage) -> Result<(), BrokerError> {
    match answer {
        ServerMessage::HelloAck(Ok(())) => Ok(()),
        ServerMessage::HelloAck(Err(refusal))
        | ServerMessage::Response {
            outcome: Err(refusal),
            ..
        } => Err(refusal.into()),
        _ => Err(BrokerError::Unexpected),
    }
}

/// Returns an error unless the message is a notification.
pub(super) fn expect_notification(message: ServerMessage) -> Result<ServerMessage, BrokerError> {
    match message {
        ServerMessage::HelloAck(_) | ServerMessage::Response { .. } => Err(BrokerError::Unexpected),
        notification => Ok(notification),
    }
}

/// Queued notifications, oldest first.
#[derive(Debug, Default)]
pub(super) struct NotificationQueue {
    messages: VecDeque<ServerMessage>,
    bytes: usize,
}

impl NotificationQueue {
    /// Handles a message that arrives while the caller waits for the response to `request_id`.
    /// Returns that response, or queues a notification.
    pub(super) fn sort_message(
        &mut self,
        message: ServerMessage,
        request_id: u32,
    ) -> Result<Option<Reply>, BrokerError> {
        match message {
            ServerMessage::Response { id, outcome } if id == request_id => Ok(Some(outcome?)),
            // An error that closes the connection has id 0 if the broker could not read the
            // request.
            ServerMessage::Response {
                outcome: Err(refusal),
                ..
            } if refusal.reason.closes() => Err(refusal.into()),
            message => self.push(expect_notification(message)?).map(|()| None),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes the oldest notification.
    pub(super) fn pop(&mut self) -> Option<ServerMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= message_bytes(&message);
        Some(message)
    }

    fn push(&mut self, message: ServerMessage) -> Result<(), BrokerError> {
        self.bytes += message_bytes(&message);
        self.messages.push_back(message);
        if self.bytes > NOTIFICATION_BYTES_MAX {
            Err(BrokerError::Overrun)
        } else {
            Ok(())
        }
    }
}

fn message_bytes(message: &ServerMessage) -> usize {
    let content = match message {
        ServerMessage::Inject(inject) => inject.content.len(),
        ServerMessage::Screen(shown) => shown.content.len(),
        _ => 0,
    };
    OVERHEAD_BYTES + content
}

#[cfg(test)]
mod tests {
    use turnkeep_types::broker::{Inject, Reason};

    use super::*;

    fn inject(number: usize, bytes: usize) -> ServerMessage {
        let content = number.to_string().repeat(bytes).into();
        ServerMessage::Inject(Inject {
            content,
            bracketed: false,
        })
    }

    fn response(id: u32, outcome: Result<Reply, Reason>) -> ServerMessage {
        ServerMessage::Response {
            id,
            outcome: outcome.map_err(Into::into),
        }
    }

    #[test]
    fn the_answer_is_told_from_what_comes_before_it() {
        let mut heard = NotificationQueue::default();
        assert!(matches!(heard.sort_message(inject(1, 1), 7), Ok(None)));
        assert!(matches!(
            heard.sort_message(response(7, Ok(Reply::Done)), 7),
            Ok(Some(Reply::Done))
        ));
        assert!(matches!(
            heard.sort_message(response(6, Ok(Reply::Done)), 7),
            Err(BrokerError::Unexpected)
        ));
        assert!(matches!(
            heard.sort_message(response(0, Err(Reason::Malformed)), 7),
            Err(BrokerError::Refused(_))
        ));
        assert_eq!(heard.pop(), Some(inject(1, 1)));
        assert_eq!(heard.pop(), None);
    }

    #[test]
    fn nothing_that_was_dispatched_is_dropped_silently() {
        let mut heard = NotificationQueue::default();
        for number in 0..1000 {
            assert!(matches!(heard.sort_message(inject(number, 1), 7), Ok(None)));
        }
        for number in 0..1000 {
            assert_eq!(heard.pop(), Some(inject(number, 1)), "in order");
        }
        assert!(matches!(
            heard.sort_message(inject(1, NOTIFICATION_BYTES_MAX / 2), 7),
            Ok(None)
        ));
        assert!(matches!(
            heard.sort_message(inject(1, NOTIFICATION_BYTES_MAX / 2), 7),
            Err(BrokerError::Overrun)
        ));
    }
}
