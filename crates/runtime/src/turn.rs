//! One turn of an agent: from the inputs that it consumes to its end.
//!
//! The steps are recorded in this order: started, waiting for the model, any number of tools and
//! approvals, and exactly one end. [`TurnStage`] is how far an open turn is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use turnkeep_types::{BlobHash, Timestamp};

use crate::ids::{AgentTurnId, NodeId, ToolId};
use crate::input::Input;
use crate::node::Session;
use crate::tool::{OpenTool, ToolCall};
use crate::words::{GlobalMode, Mode, PromptKind, TurnCause};

/// How far an open turn is.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStage {
    /// The server takes a snapshot of the workspace and reads the role template.
    Preparing,
    /// The program has the prompt.
    Working,
    /// The program is being stopped, and its end is awaited.
    Interrupting {
        /// Since when.
        since: Timestamp,
        /// Why, in words for the node's summary.
        reason: String,
        /// Whether the agent continues when the run goes on.
        continues: bool,
        /// Whether unseen inputs wait until something new arrives.
        holds: bool,
    },
}

/// How the program's part of a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// The program finished.
    Completed,
    /// It was interrupted.
    Interrupted {
        /// Why.
        reason: String,
        /// Whether its inputs go back into the inbox, because the program never saw them.
        requeue: bool,
    },
    /// It failed for good.
    Failed {
        /// Why, with the exit status and the end of the error output.
        reason: String,
    },
    /// The provider could not be reached or was overloaded.
    Unavailable {
        /// The provider's words.
        reason: String,
    },
    /// The provider takes no more for a while.
    RateLimited {
        /// When it takes more, if it said so.
        until: Option<Timestamp>,
    },
    /// The provider takes no more for so long.
    RateLimitedFor { wait: Duration },
}

/// A turn remembers so many files that its calls have written.
const WRITTEN_PATHS_MAX: usize = 10_000;

/// The most bytes that a turn remembers of an unfinished answer. Its artifact must fit into the store.
pub(crate) const UNFINISHED_BYTES_MAX: usize = 16 << 20;

/// A turn that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    pub id: AgentTurnId,
    pub cause: TurnCause,
    pub stage: TurnStage,
    pub started_at: Timestamp,
    /// When the program last printed something.
    pub last_output_at: Timestamp,
    pub consumed: Vec<Input>,
    pub mode: Mode,
    pub global_mode: GlobalMode,
    pub prompt: Option<PromptKind>,
    /// What was known of the session before the prompt, in case the program never got the prompt.
    pub session_before: Option<Session>,
    /// Whether the log has something that the program said or did in this turn. Without it nothing
    /// shows that the program got the prompt: the prompt is recorded before the program is started.
    /// A session's name and usage show nothing, because some programs report both before they read a
    /// prompt.
    pub has_output: bool,
    /// Whether its program cannot continue the conversation after it has ended.
    pub forgets: bool,
    /// The tree of the workspace before the turn.
    pub base_tree: Option<String>,
    /// Counts from 1; more after a provider was unavailable.
    pub attempt: u32,
    /// The text of the answer that is not final yet.
    pub unfinished_text: String,
    /// The text of the last final message.
    pub final_text: Option<String>,
    pub open_tools: BTreeMap<ToolId, OpenTool>,
    /// The files that its completed calls have written, as their arguments name them.
    pub written_paths: BTreeSet<String>,
    /// The hash of all its calls of tools so far, in their order.
    pub tools_signature: Option<BlobHash>,
    /// The content of its diff, between the diff and the end.
    pub diff: Option<BlobHash>,
    pub progress: TurnProgress,
    /// The nodes to which it has sent an envelope.
    pub sent_to: BTreeSet<NodeId>,
    /// When a warning about its silence was last given.
    pub silence_warned_at: Option<Timestamp>,
}

impl OpenTurn {
    /// Whether it is being stopped only until the run goes on.
    pub fn continues_later(&self) -> bool {
        matches!(
            self.stage,
            TurnStage::Interrupting {
                continues: true,
                ..
            }
        )
    }
}

impl OpenTurn {
    /// Adds a piece of the answer, unless the answer is too long already.
    pub(crate) fn add_text(&mut self, text: &str) {
        if self.unfinished_text.len() < UNFINISHED_BYTES_MAX {
            self.unfinished_text.push_str(text);
        }
    }

    /// Remembers the files that a call has written.
    pub(crate) fn note_written(&mut self, call: &ToolCall) {
        for path in call.written_paths() {
            if self.written_paths.len() < WRITTEN_PATHS_MAX {
                self.written_paths.insert(path.to_owned());
            }
        }
    }

    /// Whether inputs that its program has not seen wait until something new arrives.
    pub fn holds_inputs(&self) -> bool {
        matches!(self.stage, TurnStage::Interrupting { holds: true, .. })
    }
}

/// Whether a turn did anything besides talking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are independent observations"
)]
pub struct TurnProgress {
    pub ran_tool: bool,
    pub sent_envelope: bool,
    pub made_artifact: bool,
    pub claimed_completion: bool,
    pub asked_user: bool,
}

impl TurnProgress {
    /// Whether it did anything.
    pub fn is_any(self) -> bool {
        self.ran_tool
            || self.sent_envelope
            || self.made_artifact
            || self.claimed_completion
            || self.asked_user
    }
}

/// How a turn is recorded as ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnResult {
    Completed,
    Interrupted,
    Failed,
}

/// What is remembered of the last turn of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTurn {
    pub id: AgentTurnId,
    pub cause: TurnCause,
    pub ended_at: Timestamp,
    /// The inputs that a retry puts back.
    pub consumed: Vec<Input>,
    pub result: TurnResult,
    /// Whether it failed and was not retried yet.
    pub may_retry: bool,
    pub final_text: Option<String>,
}

/// A summary has at most so many characters.
const SUMMARY_CHARACTERS_MAX: usize = 140;

/// The first line of a text, cut to the length of a summary.
pub fn shorten(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(SUMMARY_CHARACTERS_MAX).collect()
}
