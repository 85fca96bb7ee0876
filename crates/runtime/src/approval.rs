//! Approvals: decisions that wait for a person, and the rules that answer some of them.
//!
//! The first answer wins. Nothing is ever approved without a person: a rule exists only because a
//! person gave an earlier approval a wider scope.

use serde_json::Value;
use turnkeep_types::Timestamp;

use crate::ids::{AgentTurnId, ApprovalId, NodeId, RuleId};
use crate::orchestration::OrchestrationCall;
use crate::tool::{self, ToolCall};
use crate::words::{GlobalMode, ResolvedBy, Scope, Verdict};

/// The characters that chain, substitute or redirect commands in a shell.
const SHELL_METACHARACTERS: &[char] = &[';', '|', '&', '$', '(', ')', '<', '>', '`', '\n'];

/// What an approval is about.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalSubject {
    /// A tool that the program itself runs.
    ProviderTool {
        /// Whether the program can remember a yes for the rest of its session.
        can_allow_always: bool,
    },
    /// A tool of the server, such as `spawn_node`, that runs once it is approved.
    OrchestrationTool(Box<OrchestrationCall>),
    /// A question to the user. It blocks no node.
    Question {
        /// Answers to choose from.
        options: Vec<String>,
    },
}

/// A request for a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: ApprovalId,
    pub node: NodeId,
    pub turn: AgentTurnId,
    pub tool: ToolCall,
    pub subject: ApprovalSubject,
    /// One sentence: the command and its directory, or the files.
    pub context: String,
    pub created_at: Timestamp,
    /// When it is denied by itself, if the settings say so.
    pub expires_at: Option<Timestamp>,
}

impl Approval {
    /// Whether the node waits until it is resolved.
    pub fn blocks_node(&self) -> bool {
        !matches!(self.subject, ApprovalSubject::Question { .. })
    }
}

/// The decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    pub verdict: Verdict,
    pub modified_args: Option<Value>,
    /// Goes to the model.
    pub reason: Option<String>,
    pub scope: Scope,
    /// Records of older versions do not have it.
    pub by: Option<ResolvedBy>,
}

impl Resolution {
    /// Whether it also allows later calls.
    pub fn is_lasting_consent(&self) -> bool {
        self.scope != Scope::Once && self.verdict != Verdict::Denied
    }

    /// A denial by the server.
    pub fn denied(reason: &str) -> Self {
        Self {
            verdict: Verdict::Denied,
            modified_args: None,
            reason: Some(reason.to_owned()),
            scope: Scope::Once,
            by: Some(ResolvedBy::Daemon),
        }
    }
}

/// An answer for later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub id: RuleId,
    /// The node whose calls it answers; all nodes of the run without one.
    pub node: Option<NodeId>,
    pub tool: String,
    pub matcher: RuleMatcher,
    pub created_at: Timestamp,
    /// Whether the approval was given while the run was planning. Rules given during implementation do
    /// not hold while planning: a planning run must not change files.
    pub holds_in_planning: bool,
}

/// Which calls of a tool a rule answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleMatcher {
    /// Commands that begin with these words.
    CommandPrefix(String),
    /// The file with this path.
    Path(String),
}

/// The command of a call, if it runs one. Some programs give it as a list of words.
fn command_of(args: &Value) -> Option<String> {
    let command = ["command", "cmd"]
        .into_iter()
        .find_map(|key| args.get(key))?;
    match command {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// Whether a call with these arguments runs a command, also one that they do not show.
pub(crate) fn runs_command(args: &Value) -> bool {
    command_of(args).is_some() || tool::is_of_kind_execute(args)
}

/// The file of a call, if it is about one.
fn path_of(args: &Value) -> Option<&str> {
    let keys = ["file_path", "path", "notebook_path"];
    keys.into_iter()
        .find_map(|key| args.get(key))
        .and_then(Value::as_str)
}

impl RuleMatcher {
    /// The matcher for calls like one with these arguments. A command counts up to its first shell
    /// metacharacter; nothing before it makes no rule. Other calls than commands and files get none
    /// either: nothing says what a later one would have to share with the approved one.
    pub fn for_args(args: &Value) -> Option<Self> {
        if let Some(command) = command_of(args) {
            let plain = command.split(SHELL_METACHARACTERS).next();
            let prefix = plain.unwrap_or_default().trim().to_owned();
            return (!prefix.is_empty()).then_some(Self::CommandPrefix(prefix));
        }
        path_of(args).map(|path| Self::Path(path.to_owned()))
    }

    fn matches(&self, args: &Value) -> bool {
        match self {
            Self::CommandPrefix(prefix) => {
                command_of(args).is_some_and(|command| starts_with_words(&command, prefix))
            }
            // Literally: a file whose name contains a star must not stand for others.
            Self::Path(approved) => path_of(args) == Some(approved.as_str()),
        }
    }
}

/// Whether a command is harmless to compare and begins with the words of an approved one.
fn starts_with_words(command: &str, prefix: &str) -> bool {
    // `npm test; rm x` begins with `npm test`, but does more than a person approved.
    if prefix.is_empty() || command.contains(SHELL_METACHARACTERS) {
        return false;
    }
    let rest = command.trim_start().strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

impl Rule {
    /// Whether it answers a call of a node whose turn runs under this mode.
    pub fn answers(&self, node: NodeId, mode: GlobalMode, call: &ToolCall) -> bool {
        (mode == GlobalMode::Implementation || self.holds_in_planning)
            && self.node.is_none_or(|only| only == node)
            && self.tool == call.name
            && self.matcher.matches(&call.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdSource;
    use serde_json::json;

    fn call(args: Value) -> ToolCall {
        ToolCall {
            id: IdSource::from_seed(&[3; 32]).draw(),
            name: "command".to_owned(),
            args,
            provider_id: None,
        }
    }

    fn check(approved: &Value, later: &Value, expect: bool) {
        let node = IdSource::from_seed(&[4; 32]).draw();
        let rule = Rule {
            id: IdSource::from_seed(&[5; 32]).draw(),
            node: None,
            tool: "command".to_owned(),
            matcher: RuleMatcher::for_args(approved).unwrap(),
            created_at: Timestamp(0),
            holds_in_planning: false,
        };
        let answered = rule.answers(node, GlobalMode::Implementation, &call(later.clone()));
        assert_eq!(answered, expect, "{approved} then {later}");
    }

    #[test]
    fn a_rule_answers_the_same_command_with_more_words_and_no_chained_one() {
        let npm = || json!({"cmd": "npm test"});
        check(&npm(), &json!({"cmd": "npm test"}), true);
        check(&npm(), &json!({"cmd": "npm test -- --watch"}), true);
        check(&npm(), &json!({"command": "  npm test"}), true);
        check(&npm(), &json!({"cmd": "npm tests"}), false);
        check(&npm(), &json!({"cmd": "npm"}), false);
        for tail in [
            "; rm x", " && rm x", " | sh", " > x", " $(rm x)", " `rm x`", "\nrm x", " & rm x",
        ] {
            check(&npm(), &json!({"cmd": format!("npm test{tail}")}), false);
        }
    }

    #[test]
    fn a_command_that_was_chained_gives_a_rule_for_its_first_part_only() {
        check(
            &json!({"cmd": "make build && make test"}),
            &json!({"cmd": "make build"}),
            true,
        );
        check(
            &json!({"cmd": "make build && make test"}),
            &json!({"cmd": "make test"}),
            false,
        );
        // Nothing is left before the first metacharacter, so there is nothing to compare.
        assert_eq!(RuleMatcher::for_args(&json!({"cmd": "$(date)"})), None);
    }

    #[test]
    fn a_command_in_words_is_a_command_and_other_calls_get_no_rule() {
        check(
            &json!({"command": ["make"]}),
            &json!({"command": ["make", "test"]}),
            true,
        );
        check(
            &json!({"command": ["make"]}),
            &json!({"command": ["rm", "-rf", "/"]}),
            false,
        );
        check(
            &json!({"path": "Makefile"}),
            &json!({"path": "other/Makefile"}),
            false,
        );
        check(&json!({"path": "a*"}), &json!({"path": "ab"}), false);
        assert_eq!(
            RuleMatcher::for_args(&json!({"url": "http://localhost"})),
            None
        );
    }

    #[test]
    fn a_rule_for_a_file_answers_that_file_and_no_command() {
        check(
            &json!({"path": "docs/a.md"}),
            &json!({"file_path": "docs/a.md"}),
            true,
        );
        check(
            &json!({"path": "docs/a.md"}),
            &json!({"path": "docs/b.md"}),
            false,
        );
        check(
            &json!({"path": "docs/a.md"}),
            &json!({"cmd": "docs/a.md"}),
            false,
        );
    }
}
