//! The refs whose causes can be asked for.
//!
//! | ref | names |
//! |---|---|
//! | `artifact://ID#PATH:LINE` | a line that a diff added, by its number in the new file |
//! | `artifact://ID` | a diff or another file of a run |
//! | `turn:ID` | a turn of an agent, by its UUID |
//! | `envelope:ID`, `message:ID` | a handoff, a message to an agent |
//! | `run:ID` | a run |
//! | `entry:ID` | an entry of a world |
//! | `turn:N`, `ctx:N` | a turn of the store; a context, which stands for its newest turn |

use std::fmt;
use std::str::FromStr;

use turnkeep_ledger::ids::EntryId;
use turnkeep_runtime::ids::{AgentTurnId, ArtifactId, RunId};
use turnkeep_runtime::input::InputId;
use turnkeep_types::{ContextId, TurnId};

/// The longest ref: a long path still fits.
const REF_BYTES_MAX: usize = 8 << 10;

/// A thing that has causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CausedRef {
    /// A line of the file that a diff made.
    Line(LineRef),
    Artifact(ArtifactId),
    AgentTurn(AgentTurnId),
    Input(InputId),
    Run(RunId),
    Entry(EntryId),
    StoreTurn(TurnId),
    Context(ContextId),
}

/// A line of a file after a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRef {
    pub(crate) artifact: ArtifactId,
    pub(crate) path: String,
    /// Counts from 1.
    pub(crate) line: u64,
}

/// The text is not a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected artifact://ID, artifact://ID#PATH:LINE, turn:ID, envelope:ID, message:ID, run:ID, \
     entry:ID or ctx:N"
)]
pub(crate) struct NotARef;

impl FromStr for CausedRef {
    type Err = NotARef;

    fn from_str(text: &str) -> Result<Self, NotARef> {
        if text.len() > REF_BYTES_MAX {
            return Err(NotARef);
        }
        let parsed = match text.split_once(':') {
            Some(("artifact", rest)) => read_artifact(rest),
            // Turns of the store have numbers, turns of agents have UUIDs.
            Some(("turn", id)) => {
                let of_store = id.parse().ok().map(Self::StoreTurn);
                of_store.or_else(|| id.parse().ok().map(Self::AgentTurn))
            }
            Some(("envelope" | "message", _)) => text.parse().ok().map(Self::Input),
            Some(("run", id)) => id.parse().ok().map(Self::Run),
            Some(("entry", id)) => id.parse().ok().map(Self::Entry),
            Some(("ctx", id)) => id.parse().ok().map(Self::Context),
            _ => None,
        };
        parsed.ok_or(NotARef)
    }
}

fn read_artifact(rest: &str) -> Option<CausedRef> {
    let rest = rest.strip_prefix("//")?;
    let Some((id, place)) = rest.split_once('#') else {
        return rest.parse().ok().map(CausedRef::Artifact);
    };
    // From the right: a path may have colons.
    let (path, line) = place.rsplit_once(':')?;
    let line: u64 = line.parse().ok().filter(|line| *line > 0)?;
    if path.is_empty() {
        return None;
    }
    Some(CausedRef::Line(LineRef {
        artifact: id.parse().ok()?,
        path: path.to_owned(),
        line,
    }))
}

impl fmt::Display for CausedRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(LineRef {
                artifact,
                path,
                line,
            }) => write!(f, "artifact://{artifact}#{path}:{line}"),
            Self::Artifact(id) => write!(f, "artifact://{id}"),
            Self::AgentTurn(id) => write!(f, "turn:{id}"),
            Self::Input(id) => write!(f, "{id}"),
            Self::Run(id) => write!(f, "run:{id}"),
            Self::Entry(id) => write!(f, "entry:{id}"),
            Self::StoreTurn(id) => write!(f, "turn:{id}"),
            Self::Context(id) => write!(f, "ctx:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

    #[test]
    fn a_ref_reads_back_as_it_prints() {
        for text in [
            format!("artifact://{ID}"),
            format!("artifact://{ID}#src/lib.rs:3"),
            format!("artifact://{ID}#C:/odd:name:12"),
            format!("turn:{ID}"),
            format!("envelope:{ID}"),
            format!("message:{ID}"),
            format!("run:{ID}"),
            "turn:345".to_owned(),
            "ctx:12".to_owned(),
            "entry:e_13p0m06cwpf109bwv05yzd9f6c".to_owned(),
        ] {
            assert_eq!(text.parse::<CausedRef>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_ref_is_refused() {
        for text in [
            "",
            "turn:",
            "turn:0",
            "turn:x",
            "ctx:0",
            "artifact://",
            "artifact://x",
            "envelope:1",
            "entry:b_13p0m06cwpf109bwv05yzd9f6c",
            &format!("artifact:{ID}"),
            &format!("artifact://{ID}#src/lib.rs"),
            &format!("artifact://{ID}#src/lib.rs:0"),
            &format!("artifact://{ID}#:3"),
            &format!("blob:{ID}"),
            &"x".repeat(REF_BYTES_MAX + 1),
        ] {
            assert_eq!(text.parse::<CausedRef>(), Err(NotARef), "{text}");
        }
    }
}
