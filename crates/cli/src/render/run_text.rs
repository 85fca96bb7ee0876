//! Short texts about runs that lists, lines and the live view share: tools, usage, ages and states.
//!
//! Whatever an agent wrote is made printable here, so callers can print the result as it is.

use serde_json::Value;
use turnkeep_wire::runs::{EdgeView, PausedReason, ResolvedBy, RunStatus, ToolView};

use super::{printable, shorten_to_chars};
use crate::output::Style;

/// How much of a tool's arguments a line shows.
const ARGS_CHARS_MAX: usize = 160;
/// Where the server cuts a title that it takes from the goal.
const TITLE_CHARS_MAX: usize = 80;

/// A tool call in one line: the name, and the command, the file or all arguments.
///
/// `{"name": "Bash", "args": {"command": "make test"}}` is `Bash: make test`.
pub(crate) fn tool_text(tool: &ToolView) -> String {
    let name = printable(&tool.name);
    match args_text(&tool.args) {
        args if args.is_empty() => name,
        args => format!("{name}: {}", shorten_to_chars(&args, ARGS_CHARS_MAX)),
    }
}

/// The argument that says most about a call, or else all of them as JSON.
fn args_text(args: &Value) -> String {
    const TELLING: [&str; 7] = [
        "command",
        "cmd",
        "file_path",
        "path",
        "question",
        "message",
        "label",
    ];
    let telling = TELLING.iter().find_map(|name| args.get(name));
    match telling.unwrap_or(args) {
        Value::Null => String::new(),
        Value::Object(all) if all.is_empty() => String::new(),
        Value::String(text) => one_line(text),
        // A command may be a list of words.
        Value::Array(words) if words.iter().all(Value::is_string) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            one_line(&words.join(" "))
        }
        other => printable(&other.to_string()),
    }
}

/// A text in one line: white space becomes one blank.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    printable(&words.join(" "))
}

/// Who resolved an approval, to be put behind the verb.
pub(crate) fn place_words(by: ResolvedBy) -> &'static str {
    match by {
        ResolvedBy::Web => " in the web UI",
        ResolvedBy::CommandLine => " on the command line",
        ResolvedBy::Api => " over the API",
        ResolvedBy::Daemon => " by Turnkeep itself",
    }
}

/// A run's title. One that the server has cut is shown as the line of the goal that it comes from.
pub(crate) fn title_text(title: &str, goal: Option<&str>) -> String {
    let is_cut = title.chars().count() == TITLE_CHARS_MAX;
    let mut lines = goal.unwrap_or_default().lines().map(str::trim);
    let whole = lines.find(|line| is_cut && line.starts_with(title));
    one_line(whole.unwrap_or(title))
}

/// An edge in one line, with the names of its ends: `lead <-> impl (handoff, task, gate)`.
pub(crate) fn edge_text(edge: &EdgeView, from: &str, to: &str) -> String {
    let arrow = if edge.bidirectional { "<->" } else { "->" };
    let gate = if edge.gate { ", gate" } else { "" };
    let (kind, label) = (edge.kind.word(), one_line(&edge.label));
    format!("{from} {arrow} {to} ({kind}, {label}{gate})")
}

/// A number of tokens: `950`, `12.3k`, `4.5M`.
#[expect(
    clippy::cast_precision_loss,
    reason = "shown with one digit after the point"
)]
pub(crate) fn tokens_text(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// A cost, or nothing for programs that report none.
pub(crate) fn cost_text(usd: f64) -> String {
    if usd > 0.0 {
        format!("${usd:.2}")
    } else {
        String::new()
    }
}

/// How long something takes already: `5 s`, `12 min`, `3 h`, `2 d`.
pub(crate) fn age_text(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The status of a run, with the reason for a pause.
pub(crate) fn run_status_text(status: RunStatus, reason: Option<PausedReason>) -> String {
    match reason {
        Some(reason) if status == RunStatus::Paused => format!("paused ({})", reason.word()),
        _ => status.word().to_owned(),
    }
}

pub(crate) fn run_status_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Running | RunStatus::Queued => Style::Name,
        RunStatus::Paused => Style::Warning,
        RunStatus::Completed => Style::Good,
        RunStatus::Failed => Style::Bad,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnkeep_wire::runs::UuidText;

    use super::*;

    #[test]
    fn a_call_is_shown_by_what_it_does() {
        fn check(args: Value, expect: &str) {
            let tool = ToolView {
                id: UuidText(String::new()),
                name: "Bash".to_owned(),
                args,
                provider_tool_id: None,
            };
            assert_eq!(tool_text(&tool), expect);
        }
        check(json!({ "command": "make\n  test" }), "Bash: make test");
        check(json!({ "cmd": ["rm", "x"] }), "Bash: rm x");
        check(json!({ "file_path": "a\u{1b}[2J" }), "Bash: a\\u{1b}[2J");
        check(json!({ "depth": 2 }), r#"Bash: {"depth":2}"#);
        check(json!({}), "Bash");
        check(
            json!({ "command": "x".repeat(300) }),
            &format!("Bash: {}…", "x".repeat(159)),
        );
    }

    #[test]
    fn a_title_that_the_server_cut_is_shown_whole() {
        let cut = "x".repeat(80);
        let goal = format!("\n  {cut} and so on\nmore");
        for (title, goal, expect) in [
            ("Fix it", "Fix it today", "Fix it".to_owned()),
            (&cut, &goal, format!("{cut} and so on")),
            (&cut, "another", cut.clone()),
            (&cut, "", cut.clone()),
        ] {
            assert_eq!(title_text(title, Some(goal)), expect);
        }
    }

    #[test]
    fn numbers_are_short() {
        for (tokens, expect) in [
            (0, "0"),
            (999, "999"),
            (12_345, "12.3k"),
            (4_500_000, "4.5M"),
        ] {
            assert_eq!(tokens_text(tokens), expect);
        }
        for (ms, expect) in [
            (900, "0 s"),
            (61_000, "1 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(age_text(ms), expect);
        }
        assert_eq!(
            (cost_text(0.0).as_str(), cost_text(1.239).as_str()),
            ("", "$1.24")
        );
    }
}
