//! Why a command is refused. A refused command leaves no trace in the run.

use crate::approval::Resolution;
use crate::ids::{AgentTurnId, ApprovalId, ArtifactId, EdgeId, EnvelopeId, NodeId, RuleId};
use crate::words::{ResolvedBy, RunStatus};

/// A refusal. The server gives each its status code.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// No node has this id or alias.
    #[error("no node is called `{0}`")]
    UnknownNode(String),
    /// The node was deleted meanwhile.
    #[error("the node {0} is gone")]
    NodeGone(NodeId),
    /// No edge has this id.
    #[error("no edge has the id {0}")]
    UnknownEdge(EdgeId),
    /// No approval has this id.
    #[error("no approval has the id {0}")]
    UnknownApproval(ApprovalId),
    /// No rule has this id.
    #[error("no rule has the id {0}")]
    UnknownRule(RuleId),
    /// No artifact has this id.
    #[error("no artifact has the id {0}")]
    UnknownArtifact(ArtifactId),
    /// The approval was answered before; the first answer counts.
    #[error("the approval was {} already{}", .0.verdict, words_of_resolver(.0))]
    AlreadyResolved(Box<Resolution>),
    /// `modified` needs the new arguments.
    #[error("`modified` needs `modifiedArgs`, a JSON object")]
    NoModifiedArgs,
    /// Other arguments were sent with an answer that does not use them.
    #[error("`modifiedArgs` are used with the status `modified` only")]
    UnusedModifiedArgs,
    /// The answer to a question has no text.
    #[error("this is a question: `modifiedArgs` needs `answer`")]
    NoAnswer,
    /// The program cannot take other arguments.
    #[error("{0} cannot take other arguments: deny the call and say what to do instead")]
    CannotModify(String),
    /// No later call can be recognized as one like this.
    #[error("no rule can be made of this call: {instead}")]
    NoRulePossible {
        /// What is possible.
        instead: &'static str,
    },
    /// The run cannot go from its status to the wanted one.
    #[error("a run that is {from} cannot become {to}")]
    IllegalMove {
        /// The status now.
        from: RunStatus,
        /// The wanted status.
        to: RunStatus,
    },
    /// The run goes on, and only the end of a run can be dismissed.
    #[error("the run has not ended, so there is nothing to dismiss")]
    NotEnded,
    /// The run has no node to talk to.
    #[error("the run has no node: add one, or create the run with a team")]
    NoNodes,
    /// Several nodes could be meant.
    #[error("say which node is meant: {}", .0.join(", "))]
    AmbiguousNode(Vec<String>),
    /// Another node has the alias.
    #[error("the alias `{0}` is taken: choose another")]
    AliasTaken(String),
    /// The text cannot be an alias.
    #[error("`{0}` cannot be an alias: use letters, digits, `-` and `_`, and no node id")]
    BadAlias(String),
    /// The text cannot be a name.
    #[error("`{field}` must have 1 to {max} characters and no line break or control character")]
    BadName {
        /// The field of the request.
        field: &'static str,
        /// The limit.
        max: usize,
    },
    /// The run has as many nodes as it may.
    #[error("the run has {0} nodes, and it may not have more")]
    TooManyNodes(u32),
    /// The spawning node is too deep.
    #[error("at most {0} spawns may lie between a person and a node: let another node spawn it")]
    TooDeep(u32),
    /// The caller may not spawn nodes or create edges.
    #[error("this node may not spawn nodes or create edges")]
    MayNotSpawn,
    /// A child would get a right that its parent lacks.
    #[error("a node cannot give the right `{0}`, which it does not have")]
    RightNotHeld(&'static str),
    /// An edge needs two nodes.
    #[error("an edge needs two different nodes")]
    EdgeToItself,
    /// No edge leads there.
    #[error("no edge leads from {from} to {to}: create one, or choose one of: {}", .reachable.join(", "))]
    NoEdge {
        /// The sender's name.
        from: String,
        /// The receiver's name.
        to: String,
        /// The nodes that can be reached.
        reachable: Vec<String>,
    },
    /// A text is too long.
    #[error("{what} has {bytes} bytes; the limit is {max}: {hint}")]
    TooLarge {
        /// Which text.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
        /// What to do instead.
        hint: &'static str,
    },
    /// The text of this field must say something.
    #[error("`{0}` is empty")]
    Empty(&'static str),
    /// The node has no open turn, or another one.
    #[error("the turn is over")]
    TurnOver,
    /// A turn has one prompt.
    #[error("the prompt of this turn was sent already")]
    PromptSent,
    /// The turn is being stopped, so it starts nothing new.
    #[error("the turn is being stopped")]
    TurnStopping,
    /// The node has nothing to try again.
    #[error("the last turn of this node did not fail, so there is nothing to try again")]
    NothingToRetry,
    /// The receiver does not wait for an answer to this envelope.
    #[error("{0} is not a question of the receiver that waits for an answer: leave `replyTo` out")]
    NoSuchQuestion(EnvelopeId),
    /// No node is blocked because of this turn.
    #[error("no node waits for a decision about the files of turn {0}")]
    NoViolation(AgentTurnId),
    /// No verification is under way.
    #[error("no verification is under way")]
    NotVerifying,
    /// The run cannot be verified now.
    #[error("the run cannot be verified: {0}")]
    CannotVerify(&'static str),
    /// The program does not wait for this permission.
    #[error("the program waits for no permission for this call")]
    NoPermissionAsked,
    /// Only an orchestrator completes a run.
    #[error("only an orchestrator may complete the run")]
    NotOrchestrator,
    /// The run cannot be completed now.
    #[error("the run cannot be completed: {}", .0.join("; "))]
    NotComplete(Vec<String>),
}

/// Where an earlier answer came from, as the end of a sentence.
fn words_of_resolver(earlier: &Resolution) -> &'static str {
    match earlier.by {
        Some(ResolvedBy::Web) => ", in the web UI",
        Some(ResolvedBy::CommandLine) => ", on the command line",
        Some(ResolvedBy::Api) => ", over the API",
        Some(ResolvedBy::Daemon) => ", by Turnkeep itself",
        None => "",
    }
}
