//! Why something is as it is: its causes, up to a person.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What caused a thing, what caused that, and so on up to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The thing, as it was asked for.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The thing itself, then its cause, then the cause of that.
    pub chain: Vec<WhyLink>,
    /// Whether the chain ends where it is known to end. A very long one is cut.
    pub complete: bool,
    /// Why the chain ends before a person; absent if it ends at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub end: Option<String>,
}

/// One link of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyLink {
    /// The ref of the thing. A person has no causes.
    #[serde(rename = "ref")]
    pub reference: String,
    /// What it is.
    pub kind: WhyKind,
    /// One line for people.
    pub summary: String,
    /// When it happened, RFC 3339. Of an entry it is the world's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub at: Option<String>,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    /// Further causes, whose chains are not followed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// What a link of a chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyKind {
    /// A line that a diff added.
    Line,
    /// What a turn of an agent changed.
    Diff,
    /// Another file of a run.
    Artifact,
    /// A turn of an agent, or of the store.
    Turn,
    /// What the agent was sent.
    Prompt,
    /// Work that another agent handed over.
    Handoff,
    /// A message to an agent.
    Message,
    /// A message or a handoff that the server wrote by itself.
    Note,
    /// An entry of a world.
    Entry,
    /// A run of agents.
    Run,
    /// A context of the store.
    Context,
    /// A person.
    Person,
}

impl WhyKind {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Diff => "diff",
            Self::Artifact => "artifact",
            Self::Turn => "turn",
            Self::Prompt => "prompt",
            Self::Handoff => "handoff",
            Self::Message => "message",
            Self::Note => "note",
            Self::Entry => "entry",
            Self::Run => "run",
            Self::Context => "context",
            Self::Person => "person",
        }
    }
}
