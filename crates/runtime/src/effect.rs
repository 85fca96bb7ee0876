//! Effects: what the server does after the events of a decision are durable.
//!
//! An effect that was not carried out because the server stopped is not repeated: at the next start
//! [`crate::decide::restart`] ends every open turn and puts its inputs back.

use bytes::Bytes;
use serde_json::Value;

use crate::approval::Resolution;
use crate::artifact::Workspace;
use crate::ids::{AgentTurnId, ApprovalId, NodeId, ToolId};
use crate::tool::ToolCall;
use crate::verification::VerificationTarget;

/// Where verification commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyPlace {
    /// In the run's directory plus the work of all worktrees.
    IntegrationTree,
    /// Where this node works.
    Workspace(NodeId),
}

/// Something that the server does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Takes a snapshot of the workspace and reads the role template, then reports both.
    PrepareTurn {
        /// The node.
        node: NodeId,
        /// Its turn.
        turn: AgentTurnId,
        /// Where it works.
        workspace: Workspace,
    },
    /// Starts the program if needed and sends it the prompt.
    SendPrompt {
        /// The node.
        node: NodeId,
        /// Its turn.
        turn: AgentTurnId,
        /// The session to resume.
        session: Option<String>,
        /// The prompt.
        prompt: Bytes,
    },
    /// Starts a node's program, unless it runs.
    StartProgram(NodeId),
    /// Ends a node's program once its open turn has ended.
    StopProgram(NodeId),
    /// Stops the open turn of a node's program.
    Interrupt(NodeId),
    /// Begins a new session of a node's program, or ends the program.
    ResetProgram(NodeId),
    /// Ends a node's program.
    EndProgram(NodeId),
    /// Removes the worktree of a node that was deleted, once its program has ended. One that holds
    /// work stays, and [`crate::decide::note_node`] says where.
    RemoveWorktree {
        /// The node.
        node: NodeId,
        /// Its name for people.
        name: String,
        /// The branch that the worktree is on, if it exists.
        branch: Option<String>,
    },
    /// Answers a program that asked for permission.
    AnswerPermission {
        /// The node.
        node: NodeId,
        /// The program's own id of the call.
        call: ToolCall,
        /// The decision.
        resolution: Resolution,
    },
    /// Answers a call of an orchestration tool.
    AnswerToolCall {
        /// The node.
        node: NodeId,
        /// The call.
        tool: ToolId,
        /// The result, or the error that names the fix.
        result: Result<Value, String>,
    },
    /// Runs the verification commands, then reports the result with
    /// [`crate::decide::end_verification`].
    Verify {
        /// What the result must name.
        target: VerificationTarget,
        /// Where the commands run.
        place: VerifyPlace,
    },
    /// Ends a verification that nothing waits for any more. Its result would be ignored.
    CancelVerification(VerificationTarget),
    /// Shows a person that something waits.
    Notify {
        /// The approval, if that is what waits.
        approval: Option<ApprovalId>,
        /// One sentence.
        text: String,
    },
    /// Ends everything that belongs to the run and removes its files.
    RemoveRun,
}
