//! What a node is given to work on: messages of people and of the server, and envelopes of other
//! nodes.
//!
//! An input waits in the inbox of its node until a turn consumes it. It is consumed exactly once:
//! the start of the turn names it.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use turnkeep_types::Timestamp;

use crate::ids::{ArtifactId, EnvelopeId, MessageId, NodeId, ParseUuidError};
use crate::words::{Expectation, MessageRole};

/// A message to a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: MessageId,
    pub node: NodeId,
    /// A person, or the server. Agents speak through envelopes.
    pub role: MessageRole,
    pub content: String,
    /// Whether it interrupts an open turn, and comes first in the next one.
    pub interrupt: bool,
    pub created_at: Timestamp,
}

/// The note to an agent whose turn was stopped by a pause or a restart.
pub const CONTINUE_NOTE: &str = "Your last turn was interrupted. Continue where you stopped.";

/// The note to an agent whose claim was being verified when the server stopped.
pub const CLAIM_AGAIN_NOTE: &str =
    "The verification of your claim was interrupted. Call complete_run again.";

impl Message {
    /// Whether the server says only what it says itself. Other notes report what commands printed or
    /// what others wrote.
    pub fn is_in_own_words(&self) -> bool {
        self.role == MessageRole::System
            && [CONTINUE_NOTE, CLAIM_AGAIN_NOTE].contains(&self.content.as_str())
    }

    /// Whether the server asks the agent to continue a turn.
    pub fn asks_to_continue(&self) -> bool {
        self.role == MessageRole::System && self.content == CONTINUE_NOTE
    }
}

/// A handoff from one node to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub id: EnvelopeId,
    pub from: NodeId,
    pub to: NodeId,
    pub created_at: Timestamp,
    pub message: String,
    pub structured: Option<Value>,
    pub artifacts: Vec<ArtifactId>,
    pub status: Option<EnvelopeStatus>,
    pub expectation: Expectation,
    /// The envelope that this one answers.
    pub reply_to: Option<EnvelopeId>,
    /// The context pack that the receiver gets before its task.
    pub context_pack: Option<ArtifactId>,
    /// Whether the server wrote it in the sender's place.
    pub synthesized: bool,
}

impl Envelope {
    /// Whether the daemon wrote it for itself, and not as a reply in the sender's place.
    pub fn is_note(&self) -> bool {
        self.synthesized && self.reply_to.is_none()
    }
}

/// Whether the work behind an envelope succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeStatus {
    pub ok: bool,
    pub reason: Option<String>,
}

/// One entry of an inbox.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message.
    Message(Message),
    /// An envelope.
    Envelope(Box<Envelope>),
}

/// The id of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InputId {
    /// A message.
    Message(MessageId),
    /// An envelope.
    Envelope(EnvelopeId),
}

/// The text form: `message:` or `envelope:`, and the UUID.
impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => write!(f, "message:{id}"),
            Self::Envelope(id) => write!(f, "envelope:{id}"),
        }
    }
}

impl FromStr for InputId {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        if let Some(id) = text.strip_prefix("message:") {
            id.parse().map(Self::Message)
        } else if let Some(id) = text.strip_prefix("envelope:") {
            id.parse().map(Self::Envelope)
        } else {
            Err(ParseUuidError(text.to_owned()))
        }
    }
}

impl Input {
    /// Its id.
    pub fn id(&self) -> InputId {
        match self {
            Self::Message(message) => InputId::Message(message.id),
            Self::Envelope(envelope) => InputId::Envelope(envelope.id),
        }
    }

    /// The envelope, unless it is a message.
    pub fn as_envelope(&self) -> Option<&Envelope> {
        match self {
            Self::Message(_) => None,
            Self::Envelope(envelope) => Some(envelope),
        }
    }

    /// When it arrived.
    pub fn arrived_at(&self) -> Timestamp {
        match self {
            Self::Message(message) => message.created_at,
            Self::Envelope(envelope) => envelope.created_at,
        }
    }

    /// Whether a person wrote it.
    pub fn is_chat(&self) -> bool {
        matches!(self, Self::Message(message) if message.role == MessageRole::User)
    }

    /// Whether the server asks the agent to continue a turn.
    pub fn asks_to_continue(&self) -> bool {
        matches!(self, Self::Message(message) if message.asks_to_continue())
    }

    /// Whether it comes before inputs that arrived earlier.
    pub fn comes_first(&self) -> bool {
        matches!(self, Self::Message(message) if message.interrupt)
    }
}

/// The inputs that wait for a node, in the order in which a turn consumes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inbox(Vec<Input>);

impl Inbox {
    /// Adds an input: behind the others, or for an interrupting message before all that do not
    /// interrupt.
    pub fn push(&mut self, input: Input) {
        // Behind earlier ones of its kind: two interrupts are read in the order in which they came.
        if input.comes_first() {
            let behind_urgent = self.0.iter().take_while(|waiting| waiting.comes_first());
            let place = behind_urgent.count();
            self.0.insert(place, input);
        } else {
            self.0.push(input);
        }
    }

    /// Puts inputs of an unfinished turn back, in front of everything that came since.
    pub fn put_back(&mut self, inputs: Vec<Input>) {
        self.0.splice(0..0, inputs);
    }

    /// Removes these inputs and returns them in inbox order.
    pub fn remove(&mut self, consumed: &[InputId]) -> Vec<Input> {
        self.0
            .extract_if(.., |input| consumed.contains(&input.id()))
            .collect()
    }

    /// Removes and returns everything.
    pub fn remove_all(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.0)
    }

    /// The waiting inputs.
    pub fn inputs(&self) -> &[Input] {
        &self.0
    }

    /// The ids of the waiting inputs.
    pub fn ids(&self) -> Vec<InputId> {
        self.0.iter().map(Input::id).collect()
    }

    /// When the oldest input arrived.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.0.iter().map(Input::arrived_at).min()
    }

    /// How many inputs wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{IdSource, Uuid as _};

    fn message(number: u128, interrupt: bool) -> Input {
        Input::Message(Message {
            id: MessageId::from_bits(number),
            node: IdSource::from_seed(&[1; 32]).draw(),
            role: MessageRole::User,
            content: String::new(),
            interrupt,
            created_at: Timestamp(0),
        })
    }

    fn numbers(inbox: &Inbox) -> Vec<u128> {
        let number = |input: &Input| match input.id() {
            InputId::Message(id) => id.bits(),
            InputId::Envelope(id) => id.bits(),
        };
        inbox.inputs().iter().map(number).collect()
    }

    #[test]
    fn interrupting_messages_come_first_and_keep_their_order() {
        let mut inbox = Inbox::default();
        for (number, interrupt) in [(1, false), (2, true), (3, false), (4, true)] {
            inbox.push(message(number, interrupt));
        }
        assert_eq!(numbers(&inbox), [2, 4, 1, 3]);
    }

    #[test]
    fn what_is_put_back_comes_before_what_came_since() {
        let mut inbox = Inbox::default();
        inbox.push(message(1, false));
        inbox.push(message(2, false));
        let consumed = inbox.remove(&inbox.ids());
        inbox.push(message(3, true));
        inbox.put_back(consumed);
        assert_eq!(numbers(&inbox), [1, 2, 3]);
    }
}
