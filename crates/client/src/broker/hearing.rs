//! What both connections make of a message: the answer that is waited for, or something said
//! unasked.

use std::collections::VecDeque;

use turnkeep_types::broker::{Reply, ServerMessage};

use super::error::Error;

/// What is said unasked and not yet taken. Beyond it the connection fails: what was dispatched to a
/// wrapper is never dropped silently.
const UNASKED_BYTES_MAX: usize = 32 << 20;

/// What a message takes besides its content, roughly.
const OVERHEAD_BYTES: usize = 128;

/// Whether the hello was taken well.
pub(super) fn greeted(answer: ServerMessage) -> Result<(), Error> {
    match answer {
        ServerMessage::HelloAck(Ok(())) => Ok(()),
        ServerMessage::HelloAck(Err(refusal))
        | ServerMessage::Response {
            outcome: Err(refusal),
            ..
        } => Err(refusal.into()),
        _ => Err(Error::Unexpected),
    }
}

/// Whether a message is one that nobody asked for.
pub(super) fn unasked(message: ServerMessage) -> Result<ServerMessage, Error> {
    match message {
        ServerMessage::HelloAck(_) | ServerMessage::Response { .. } => Err(Error::Unexpected),
        unasked => Ok(unasked),
    }
}

/// What was said unasked, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    messages: VecDeque<ServerMessage>,
    bytes: usize,
}

impl Unasked {
    /// Takes a message that came while the answer to `asked` is waited for; gives that answer, or
    /// keeps what was said unasked.
    pub(super) fn sort(
        &mut self,
        message: ServerMessage,
        asked: u32,
    ) -> Result<Option<Reply>, Error> {
        match message {
            ServerMessage::Response { id, outcome } if id == asked => Ok(Some(outcome?)),
            // What closes the connection carries id 0 where the broker could not read ours.
            ServerMessage::Response {
                outcome: Err(refusal),
                ..
            } if refusal.reason.closes() => Err(refusal.into()),
            message => self.keep(unasked(message)?).map(|()| None),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The oldest.
    pub(super) fn take(&mut self) -> Option<ServerMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= cost(&message);
        Some(message)
    }

    fn keep(&mut self, message: ServerMessage) -> Result<(), Error> {
        self.bytes += cost(&message);
        self.messages.push_back(message);
        if self.bytes > UNASKED_BYTES_MAX {
            Err(Error::Overrun)
        } else {
            Ok(())
        }
    }
}

fn cost(message: &ServerMessage) -> usize {
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
        let mut heard = Unasked::default();
        assert!(matches!(heard.sort(inject(1, 1), 7), Ok(None)));
        assert!(matches!(
            heard.sort(response(7, Ok(Reply::Done)), 7),
            Ok(Some(Reply::Done))
        ));
        assert!(matches!(
            heard.sort(response(6, Ok(Reply::Done)), 7),
            Err(Error::Unexpected)
        ));
        assert!(matches!(
            heard.sort(response(0, Err(Reason::Malformed)), 7),
            Err(Error::Refused(_))
        ));
        assert_eq!(heard.take(), Some(inject(1, 1)));
        assert_eq!(heard.take(), None);
    }

    #[test]
    fn nothing_that_was_dispatched_is_dropped_silently() {
        let mut heard = Unasked::default();
        for number in 0..1000 {
            assert!(matches!(heard.sort(inject(number, 1), 7), Ok(None)));
        }
        for number in 0..1000 {
            assert_eq!(heard.take(), Some(inject(number, 1)), "in order");
        }
        assert!(matches!(
            heard.sort(inject(1, UNASKED_BYTES_MAX / 2), 7),
            Ok(None)
        ));
        assert!(matches!(
            heard.sort(inject(1, UNASKED_BYTES_MAX / 2), 7),
            Err(Error::Overrun)
        ));
    }
}
