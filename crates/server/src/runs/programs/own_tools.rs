//! Recognizes calls of the server's own tools among those that a program reports.
//!
//! A program reports every call of an MCP tool, also those of this server. The server records such a
//! call itself, so the program's report would be a second record of the same call. Programs spell
//! the name of the tool differently:
//!
//! | program | name |
//! |---|---|
//! | Claude Code, Codex | `mcp__turnkeep__send_handoff` |
//! | Codex, when it asks for permission | `mcp__turnkeep` |
//! | Gemini CLI and other ACP agents | `send_handoff (turnkeep MCP Server)` |

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use turnkeep_runtime::ids::{AgentTurnId, NodeId};

/// The name under which agents see the server's tools.
pub(in crate::runs) const MCP_NAME: &str = "turnkeep";

/// A name of a tool that belongs to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnName<'a> {
    /// A tool.
    Tool(&'a str),
    /// All tools of the server, as in a question for permission.
    AnyTool,
}

/// Recognizes a name of a tool of this server.
pub(super) fn find_own_name(name: &str) -> Option<OwnName<'_>> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        let rest = rest.strip_prefix(MCP_NAME)?;
        return match rest.strip_prefix("__") {
            Some(tool) => Some(OwnName::Tool(tool)),
            None => rest.is_empty().then_some(OwnName::AnyTool),
        };
    }
    let (tool, server) = name.split_once(" (")?;
    let server = server.strip_suffix(" MCP Server)")?;
    (server == MCP_NAME).then_some(OwnName::Tool(tool))
}

/// The calls that the server has recorded in the open turns of a run, until the programs report them
/// too.
///
/// A program reports the result of a call after it has read the server's answer, and the server
/// answers after it has recorded the call. So the record is here when the report comes.
#[derive(Debug, Default)]
pub(in crate::runs) struct RecordedCalls(Mutex<HashMap<NodeId, TurnCalls>>);

#[derive(Debug)]
struct TurnCalls {
    turn: AgentTurnId,
    /// How many calls of each tool the program has not reported yet.
    counts: HashMap<String, usize>,
}

impl RecordedCalls {
    /// Remembers a call that the server has recorded.
    pub(in crate::runs) fn add(&self, node: NodeId, turn: AgentTurnId, tool: &str) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || TurnCalls {
            turn,
            counts: HashMap::new(),
        };
        let calls = nodes.entry(node).or_insert_with(new);
        // A program that reports no calls leaves the counts of its last turn behind.
        if calls.turn != turn {
            *calls = new();
        }
        *calls.counts.entry(tool.to_owned()).or_default() += 1;
    }

    /// Whether the server has recorded a call that the program reports now. Each record counts once.
    pub(super) fn take(&self, node: NodeId, turn: AgentTurnId, tool: &str) -> bool {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = nodes.get_mut(&node).filter(|calls| calls.turn == turn);
        let Some(count) = calls.and_then(|calls| calls.counts.get_mut(tool)) else {
            return false;
        };
        let was_recorded = *count > 0;
        *count = count.saturating_sub(1);
        was_recorded
    }

    /// Forgets a node whose program is gone.
    pub(super) fn forget(&self, node: NodeId) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;

    #[test]
    fn names_of_every_program_are_recognized() {
        let tool = OwnName::Tool;
        for (name, expect) in [
            ("mcp__turnkeep__send_handoff", Some(tool("send_handoff"))),
            (
                "send_handoff (turnkeep MCP Server)",
                Some(tool("send_handoff")),
            ),
            ("mcp__turnkeep", Some(OwnName::AnyTool)),
            ("mcp__turnkeeper__x", None),
            ("mcp__other__send_handoff", None),
            ("send_handoff (other MCP Server)", None),
            ("send_handoff", None),
            ("Bash", None),
        ] {
            assert_eq!(find_own_name(name), expect, "{name}");
        }
    }

    #[test]
    fn each_recorded_call_answers_one_report_of_its_turn() {
        let calls = RecordedCalls::default();
        let node = NodeId::from_bits(1);
        let [first, second] = [AgentTurnId::from_bits(2), AgentTurnId::from_bits(3)];
        calls.add(node, first, "a");
        calls.add(node, first, "a");
        assert!(calls.take(node, first, "a"));
        assert!(!calls.take(node, first, "b"));
        calls.add(node, second, "b");
        assert!(!calls.take(node, second, "a"), "the turn is over");
        assert!(calls.take(node, second, "b"));
        assert!(!calls.take(node, second, "b"));
        calls.forget(node);
        assert!(!calls.take(node, second, "b"));
    }
}
