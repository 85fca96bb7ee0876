//! Closed sets of words: the states, kinds and choices that a run records.
//!
//! Each set has one text form, used in records, in JSON and on the command line. A word that is
//! not in its set is rejected with the list of those that are.

/// The word is not one of a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of: {expected}")]
pub struct UnknownWord {
    /// The word that was given.
    pub word: String,
    /// The words of the set.
    pub expected: String,
}

macro_rules! word_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
        }

        impl $name {
            /// All words of the set.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text form.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                let found = Self::ALL.iter().copied().find(|known| known.word() == word);
                found.ok_or_else(|| UnknownWord {
                    word: word.to_owned(),
                    expected: [$($word),+].join(", "),
                })
            }
        }
    };
}

word_set! {
    /// Whether a run works.
    RunStatus {
        /// It waits for its workspace or for capacity.
        Queued = "queued",
        /// Turns may start.
        Running = "running",
        /// No turn starts; open turns finish.
        Paused = "paused",
        /// It reached its goal, or a person said so.
        Completed = "completed",
        /// It cannot go on without repair.
        Failed = "failed",
    }
}
word_set! {
    /// How far a run is.
    Phase {
        /// No turn has started yet.
        Boot = "BOOT",
        /// Turns run.
        Execute = "EXECUTE",
        /// Verification commands run.
        Verify = "VERIFY",
        /// The docs node works.
        DocsSync = "DOCS_SYNC",
        /// The run is completed.
        Done = "DONE",
    }
}
word_set! {
    /// Whether orchestrators are prompted without input.
    Mode {
        /// A quiet run prompts its orchestrators.
        Auto = "AUTO",
        /// Only input starts turns.
        Interactive = "INTERACTIVE",
    }
}
word_set! {
    /// What the nodes of a run may write.
    GlobalMode {
        /// Plans and documents only.
        Planning = "PLANNING",
        /// Whatever each node's capabilities allow.
        Implementation = "IMPLEMENTATION",
    }
}
word_set! {
    /// Why a run is paused.
    PausedReason {
        /// A person paused it.
        User = "user",
        /// A node repeats itself.
        Stall = "stall",
        /// The budget is used up.
        Budget = "budget",
        /// The server was restarted.
        DaemonRestart = "daemon-restart",
    }
}
word_set! {
    /// What a node does.
    NodeStatus {
        /// It waits for input.
        Idle = "idle",
        /// A turn is open.
        Running = "running",
        /// It waits for a person.
        Blocked = "blocked",
        /// Its last turn ended in an error. New input starts another turn.
        Failed = "failed",
    }
}
word_set! {
    /// The kind of program behind a node.
    Provider {
        /// `codex app-server`.
        Codex = "codex",
        /// `claude` with stream-json.
        Claude = "claude",
        /// `gemini --acp`.
        Gemini = "gemini",
        /// A program from the configuration.
        Custom = "custom",
    }
}
word_set! {
    /// Whether a program asks before it uses a tool.
    CliPermissions {
        /// It never asks.
        Skip = "skip",
        /// It asks, and a person decides.
        Gated = "gated",
    }
}
word_set! {
    /// The kind of an edge.
    EdgeKind {
        /// Carries tasks.
        Handoff = "handoff",
        /// Carries reports.
        Report = "report",
    }
}
word_set! {
    /// Which replies wake a node that sent questions.
    WakeOn {
        /// Any input.
        Any = "any",
        /// All outstanding replies. A person's message always wakes.
        All = "all",
    }
}
word_set! {
    /// Whether the receiver of an envelope owes a reply.
    Expectation {
        /// No reply.
        None = "none",
        /// A reply is welcome.
        Optional = "optional",
        /// Every turn that consumes the envelope ends with a reply.
        Required = "required",
    }
}
word_set! {
    /// The speaker of a message.
    MessageRole {
        /// A person.
        User = "user",
        /// An agent.
        Assistant = "assistant",
        /// The server.
        System = "system",
    }
}
word_set! {
    /// The kind of an artifact.
    ArtifactKind {
        /// The changes of a turn.
        Diff = "diff",
        /// A prompt.
        Prompt = "prompt",
        /// Output that was too long for an event.
        Log = "log",
        /// A conversation.
        Transcript = "transcript",
        /// Context for the receiver of an envelope.
        ContextPack = "contextpack",
        /// The result of a verification.
        Report = "report",
    }
}
word_set! {
    /// The decision about an approval.
    Verdict {
        /// Yes.
        Approved = "approved",
        /// No.
        Denied = "denied",
        /// Yes, with other arguments.
        Modified = "modified",
    }
}
word_set! {
    /// Who resolved an approval. A server has one owner, so for a person the word is the place where
    /// the owner answered.
    ResolvedBy {
        /// The owner, in the web UI.
        Web = "web",
        /// The owner, on the command line.
        CommandLine = "command-line",
        /// A program with the owner's token.
        Api = "api",
        /// The server, because an answer came too late or could reach no one. The reason says why.
        Daemon = "daemon",
    }
}
word_set! {
    /// How long a decision holds.
    Scope {
        /// For this call only.
        Once = "once",
        /// For equal calls of the node.
        Node = "node",
        /// For equal calls in the run.
        Run = "run",
    }
}
word_set! {
    /// Why a turn was started.
    TurnCause {
        /// Inputs waited.
        Inputs = "inputs",
        /// The run was quiet in AUTO mode.
        Auto = "auto",
    }
}
word_set! {
    /// The kind of prompt that a turn sends.
    PromptKind {
        /// Everything that the agent must know.
        Full = "full",
        /// Only what is new in the session.
        Delta = "delta",
    }
}
word_set! {
    /// Where a node's program works.
    WorkspaceKind {
        /// In the run's directory.
        Shared = "shared",
        /// In a git worktree of its own.
        Worktree = "worktree",
    }
}
word_set! {
    /// Why a node counts as stalled.
    StallReason {
        /// The same output, with no change and no new artifact.
        SameOutput = "same-output",
        /// The same verification failure while completion is claimed.
        SameVerificationFailure = "same-verification-failure",
        /// The same changes again.
        SameDiff = "same-diff",
        /// The same envelope between the same nodes.
        SameEnvelope = "same-envelope",
        /// Automatic turns that did nothing.
        NoProgress = "no-progress",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_others_are_rejected_with_the_list() {
        for status in RunStatus::ALL {
            assert_eq!(status.word().parse::<RunStatus>().unwrap(), *status);
        }
        let error = "done".parse::<RunStatus>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`done` is not one of: queued, running, paused, completed, failed"
        );
        assert!("RUNNING".parse::<RunStatus>().is_err());
    }
}
