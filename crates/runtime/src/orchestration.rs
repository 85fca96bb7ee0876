//! The tools that the server gives to agents.

use serde_json::Value;

use crate::ids::{ArtifactId, EnvelopeId};
use crate::input::EnvelopeStatus;
use crate::node::NodeSettings;
use crate::words::{EdgeKind, Expectation};

/// A call of one of the server's own tools, with checked arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum OrchestrationCall {
    /// Adds a node.
    SpawnNode(Box<SpawnNode>),
    /// Connects two nodes.
    CreateEdge(CreateEdge),
    /// Hands work to another node.
    SendHandoff(Box<SendHandoff>),
    /// Asks the user something.
    AskUser {
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// Says that the run has reached its goal.
    CompleteRun {
        /// What was done.
        summary: String,
    },
}

/// A node to spawn.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnNode {
    pub settings: NodeSettings,
    /// What the new node gets to do first.
    pub input: Option<String>,
    /// Whether an edge leads from the caller to the new node.
    pub connect: bool,
}

/// An edge to create. The ends are ids or aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateEdge {
    pub from: String,
    pub to: String,
    pub kind: Option<EdgeKind>,
    pub label: Option<String>,
    pub bidirectional: Option<bool>,
}

/// An envelope to send.
#[derive(Debug, Clone, PartialEq)]
pub struct SendHandoff {
    pub to: String,
    pub message: String,
    pub structured: Option<Value>,
    pub artifacts: Vec<ArtifactId>,
    pub status: Option<EnvelopeStatus>,
    pub expectation: Option<Expectation>,
    pub reply_to: Option<EnvelopeId>,
    pub context_pack: Option<ArtifactId>,
}

impl OrchestrationCall {
    /// The name of the tool.
    pub fn tool_name(&self) -> &'static str {
        match self {
            Self::SpawnNode(_) => "spawn_node",
            Self::CreateEdge(_) => "create_edge",
            Self::SendHandoff(_) => "send_handoff",
            Self::AskUser { .. } => "ask_user",
            Self::CompleteRun { .. } => "complete_run",
        }
    }

    /// Whether the call changes the graph, which not every node may do.
    pub fn changes_graph(&self) -> bool {
        matches!(self, Self::SpawnNode(_) | Self::CreateEdge(_))
    }
}
