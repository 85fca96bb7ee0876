//! Puts chunks of text together to whole messages, for protocols that have only chunks.
//!
//! A message ends where something else begins: a thought, a tool, a message with another id, or the
//! end of the turn.

use crate::event::AgentEvent;

/// A longer message is reported in parts.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextKind {
    #[default]
    Answer,
    Thought,
}

/// The message that the agent is writing.
#[derive(Debug, Default)]
pub(crate) struct MessageText {
    kind: TextKind,
    message_id: Option<String>,
    text: String,
}

impl MessageText {
    /// Adds a chunk. Returns the message that ended before it, if any, and the chunk.
    pub(crate) fn add(
        &mut self,
        kind: TextKind,
        message_id: Option<&str>,
        chunk: &str,
    ) -> Vec<AgentEvent> {
        let is_same = kind == self.kind && message_id == self.message_id.as_deref();
        let fits = self.text.len() + chunk.len() <= MESSAGE_BYTES_MAX;
        let mut events = Vec::new();
        if !is_same || !fits {
            events.extend(self.finish());
        }
        self.kind = kind;
        self.message_id = message_id.map(str::to_owned);
        self.text.push_str(chunk);
        events.push(match kind {
            TextKind::Answer => AgentEvent::AnswerDelta(chunk.to_owned()),
            TextKind::Thought => AgentEvent::ThinkingDelta(chunk.to_owned()),
        });
        events
    }

    /// Ends the message. An empty one is not reported.
    pub(crate) fn finish(&mut self) -> Option<AgentEvent> {
        let text = std::mem::take(&mut self.text);
        let event = match self.kind {
            TextKind::Answer => AgentEvent::AnswerFinal,
            TextKind::Thought => AgentEvent::ThinkingFinal,
        };
        (!text.is_empty()).then(|| event(text))
    }

    /// Forgets a message that will never be whole.
    pub(crate) fn discard(&mut self) {
        self.text.clear();
    }
}
