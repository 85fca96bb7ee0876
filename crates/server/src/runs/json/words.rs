//! The words of the runtime and those of the wire, variant by variant. A word that only one side
//! has does not compile.

use turnkeep_runtime::words as core;
use turnkeep_wire::runs as wire;

macro_rules! same_words {
    ($($core:ident = $wire:ident { $($variant:ident,)+ })*) => {
        $(
            impl SameWord for core::$core {
                type Wire = wire::$wire;

                fn to_wire(self) -> wire::$wire {
                    match self {
                        $(Self::$variant => wire::$wire::$variant,)+
                    }
                }

                fn from_wire(word: wire::$wire) -> Self {
                    match word {
                        $(wire::$wire::$variant => Self::$variant,)+
                    }
                }
            }
        )*
    };
}

/// A word that the runtime and the wire share.
pub(crate) trait SameWord: Sized {
    /// The type of the wire.
    type Wire;

    fn to_wire(self) -> Self::Wire;
    fn from_wire(word: Self::Wire) -> Self;
}

same_words! {
    RunStatus = RunStatus { Queued, Running, Paused, Completed, Failed, }
    Phase = RunPhase { Boot, Execute, Verify, DocsSync, Done, }
    Mode = RunMode { Auto, Interactive, }
    GlobalMode = GlobalMode { Planning, Implementation, }
    PausedReason = PausedReason { User, Stall, Budget, DaemonRestart, }
    NodeStatus = NodeStatus { Idle, Running, Blocked, Failed, }
    Provider = Provider { Codex, Claude, Gemini, Custom, }
    CliPermissions = CliPermissions { Skip, Gated, }
    EdgeKind = EdgeKind { Handoff, Report, }
    WakeOn = WakeOn { Any, All, }
    Expectation = Expectation { None, Optional, Required, }
    MessageRole = MessageRole { User, Assistant, System, }
    ArtifactKind = ArtifactKind { Diff, Prompt, Log, Transcript, ContextPack, Report, }
    Verdict = Verdict { Approved, Denied, Modified, }
    ResolvedBy = ResolvedBy { Web, CommandLine, Api, Daemon, }
    Scope = Scope { Once, Node, Run, }
    PromptKind = PromptKind { Full, Delta, }
    WorkspaceKind = WorkspaceKind { Shared, Worktree, }
    StallReason = StallReason {
        SameOutput, SameVerificationFailure, SameDiff, SameEnvelope, NoProgress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_same_text_on_both_sides() {
        macro_rules! check {
            ($($name:ident),*) => {
                $(for word in core::$name::ALL {
                    assert_eq!(word.word(), word.to_wire().word());
                    assert_eq!(core::$name::from_wire(word.to_wire()), *word);
                })*
            };
        }
        check!(
            RunStatus,
            Phase,
            Mode,
            GlobalMode,
            PausedReason,
            NodeStatus,
            Provider,
            CliPermissions,
            EdgeKind,
            WakeOn,
            Expectation,
            MessageRole,
            ArtifactKind,
            Verdict,
            ResolvedBy,
            Scope,
            PromptKind,
            WorkspaceKind,
            StallReason
        );
    }
}
