//! A failed verification in words: which command failed and what it printed, or which files
//! conflict, and what to do next.
//!
//! The server's report is the artifact `verification.json`. Its texts come from programs and file
//! names, so they are made printable here.

use serde_json::Value;
use turnkeep_wire::runs::{NodeView, RunView};

use super::names::{find_node, node_word};
use crate::answer::{list_at, text_at, text_of};
use crate::render::printable;
use crate::render::run_text::one_line;

/// How many lines of a failed command's output are shown. The cause is usually at the end.
const TAIL_LINES_MAX: usize = 20;

/// What a failed verification says to a person.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedVerification {
    /// What failed, in one line.
    pub(super) what: String,
    /// The output of the command, or the files that conflict.
    pub(super) details: Vec<String>,
    /// The nodes whose changes conflict, as commands name them; none if a command failed.
    nodes: Vec<String>,
}

impl FailedVerification {
    /// Reads the report of a verification that failed.
    pub(super) fn read(report: &Value, run: &RunView) -> Self {
        let conflicts = list_at(report, "/conflicts");
        if !conflicts.is_empty() {
            return read_conflicts(conflicts, run);
        }
        let mut commands = list_at(report, "/commands").iter();
        // The first failure ends the verification.
        if let Some(failed) = commands.find(|command| exit_code(command) != Some(0)) {
            return read_command(failed);
        }
        let reason = text_at(report, "/reason").map(|reason| one_line(&reason));
        Self {
            what: reason.unwrap_or_else(|| "the server does not say why".to_owned()),
            details: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// What a person does next, and the commands for it.
    pub(super) fn next_steps(&self, run: &RunView, short_id: &str) -> Vec<String> {
        let lead = leading_node(run);
        let (advice, receiver) = match self.nodes.last() {
            Some(last) => ("let one node fit its changes to the others", last),
            None => ("let a node repair it", &lead),
        };
        let mut steps = vec![format!("{advice}, then verify again:")];
        for node in &self.nodes {
            steps.push(format!("    turnkeep diff --run {short_id} {node}"));
        }
        steps.push(format!(
            "    turnkeep node chat --run {short_id} {receiver} \"…\""
        ));
        steps.push(format!("    turnkeep run verify {short_id}"));
        steps
    }
}

/// The word for the node that leads, or a placeholder if no single node does.
fn leading_node(run: &RunView) -> String {
    let is_lead = |node: &&NodeView| node.role_template.eq_ignore_ascii_case("orchestrator");
    let leads: Vec<_> = run.nodes.values().filter(is_lead).collect();
    let all: Vec<_> = run.nodes.values().collect();
    match (&leads[..], &all[..]) {
        ([one], _) | ([], [one]) => node_word(run, one),
        _ => "NODE".to_owned(),
    }
}

fn exit_code(command: &Value) -> Option<i64> {
    command.get("exitCode").and_then(Value::as_i64)
}

fn read_command(command: &Value) -> FailedVerification {
    let name = one_line(text_of(command, "command"));
    let how = match (text_at(command, "/failure"), exit_code(command)) {
        (Some(failure), _) => printable(&failure),
        (None, Some(code)) => format!("failed with exit status {code}"),
        (None, None) => "was ended".to_owned(),
    };
    let output = text_of(command, "output");
    let lines: Vec<String> = output.trim_end().lines().map(printable).collect();
    let left_out = lines.len().saturating_sub(TAIL_LINES_MAX);
    let mut details = Vec::new();
    if left_out > 0 {
        details.push(format!("… {left_out} lines before"));
    }
    details.extend(lines.into_iter().skip(left_out));
    if details.is_empty() {
        details.push("it printed nothing".to_owned());
    }
    FailedVerification {
        what: format!("`{name}` {how}"),
        details,
        nodes: Vec::new(),
    }
}

/// `{"path": "a.txt", "nodes": ["impl", "docs"]}` becomes `a.txt: changed by impl and docs`.
fn read_conflicts(conflicts: &[Value], run: &RunView) -> FailedVerification {
    // The server names a node by its alias, or else by its id.
    let word = |name: &str| match find_node(run, name) {
        Ok(node) => node_word(run, node),
        Err(_) => printable(name),
    };
    let mut nodes: Vec<String> = Vec::new();
    let mut details = Vec::new();
    for conflict in conflicts {
        let named = list_at(conflict, "/nodes").iter().filter_map(Value::as_str);
        let named: Vec<String> = named.map(word).collect();
        let path = printable(text_of(conflict, "path"));
        details.push(match &named[..] {
            // A node alone conflicts with the user.
            [one] => format!("{path}: changed by {one} and in the directory"),
            several => format!("{path}: changed by {}", several.join(" and ")),
        });
        for node in named {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }
    FailedVerification {
        what: "changes conflict, so no command ran".to_owned(),
        details,
        nodes,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::run::samples;

    fn read(report: &Value) -> FailedVerification {
        FailedVerification::read(report, &samples::run())
    }

    fn check(report: &Value, title: &str, details: &[&str]) {
        let text = read(report);
        assert_eq!(
            (text.what.as_str(), text.details),
            (
                title,
                details.iter().map(|line| (*line).to_owned()).collect()
            )
        );
    }

    #[test]
    fn a_failed_command_is_shown_with_its_exit_status_and_the_end_of_its_output() {
        let passed = json!({ "command": "make lint", "exitCode": 0, "output": "fine\n" });
        let failed = |command: Value| json!({ "ok": false, "commands": [passed, command] });
        check(
            &failed(
                json!({ "command": "make\ntest", "exitCode": 2, "output": "a\n\u{1b}[2Jb\n\n" }),
            ),
            "`make test` failed with exit status 2",
            &["a", "\\u{1b}[2Jb"],
        );
        check(
            &failed(
                json!({ "command": "sleep 9", "exitCode": null, "output": "",
                            "failure": "took longer than 5 s and was ended" }),
            ),
            "`sleep 9` took longer than 5 s and was ended",
            &["it printed nothing"],
        );
        // A server that does not say how the command ended.
        check(
            &failed(json!({ "command": "sleep 9", "exitCode": null, "output": "" })),
            "`sleep 9` was ended",
            &["it printed nothing"],
        );
        let lines: Vec<String> = (1..=22).map(|line| line.to_string()).collect();
        let output = lines.join("\n");
        let text = read(&failed(
            json!({ "command": "seq 22", "exitCode": 1, "output": output }),
        ));
        assert_eq!(text.details[..2], ["… 2 lines before", "3"]);
        assert_eq!(text.details.len(), 1 + TAIL_LINES_MAX);
    }

    #[test]
    fn conflicts_are_listed_with_those_who_changed_the_file() {
        let report = json!({
            "ok": false, "commands": [], "reason": "…",
            "conflicts": [
                { "path": "a, b.txt", "nodes": ["impl", "gone"] },
                // A node without an alias is named by its id.
                { "path": "c.txt", "nodes": ["n2"] },
            ],
        });
        check(
            &report,
            "changes conflict, so no command ran",
            &[
                "a, b.txt: changed by impl and gone",
                "c.txt: changed by impl and in the directory",
            ],
        );
        assert_eq!(
            read(&report).next_steps(&samples::run(), "3f2a"),
            [
                "let one node fit its changes to the others, then verify again:",
                "    turnkeep diff --run 3f2a impl",
                "    turnkeep diff --run 3f2a gone",
                "    turnkeep node chat --run 3f2a gone \"…\"",
                "    turnkeep run verify 3f2a",
            ]
        );
    }

    #[test]
    fn a_report_without_commands_has_a_reason() {
        check(
            &json!({ "ok": false, "commands": [], "reason": "the run has no directory" }),
            "the run has no directory",
            &[],
        );
        check(&json!({}), "the server does not say why", &[]);
        assert_eq!(
            read(&json!({})).next_steps(&samples::run(), "3f2a"),
            [
                "let a node repair it, then verify again:",
                "    turnkeep node chat --run 3f2a lead \"…\"",
                "    turnkeep run verify 3f2a",
            ]
        );
    }
}
