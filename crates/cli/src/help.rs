//! The layout of the help: commands in groups, and examples that fit into 80 columns.
//!
//! The texts are beside the commands; this module only lays them out, so no example has to be fitted
//! by hand. A remark that does not fit after its command is printed above it. A command that is too
//! long continues on the next line after a backslash.

use clap::Command;

/// The columns that help takes.
const COLUMNS: usize = 80;
/// Where the description of a command begins.
const DESCRIPTION_AT: usize = 15;

/// The commands, grouped by their purpose. A test checks that each command is in one group.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Store",
        &["ctx", "log", "append", "show", "blob", "registry"],
    ),
    (
        "Capture",
        &[
            "wrap", "sessions", "turns", "turn", "capture", "paste", "deliver", "keep", "watch",
            "hotkey", "detect",
        ],
    ),
    (
        "Ledger",
        &["world", "invoke", "stream", "search", "capsule", "mcp"],
    ),
    (
        "Agents",
        &["run", "node", "edge", "approvals", "inbox", "diff", "why"],
    ),
    (
        "Operate",
        &[
            "up",
            "broker",
            "stats",
            "verify",
            "repair",
            "export",
            "import",
            "doctor",
            "config",
            "completions",
            "bench",
        ],
    ),
];

/// The command line with its help laid out.
pub(crate) fn arrange_help(cli: Command) -> Command {
    let header = cli.get_styles().get_header();
    let options = format!("{header}Options:{header:#}\n{{options}}");
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{options}{{after-help}}",
        command_groups(&cli)
    );
    fit_examples(cli.help_template(template))
}

/// The commands in their groups, each with what it does.
fn command_groups(cli: &Command) -> String {
    let header = cli.get_styles().get_header();
    let mut lines = Vec::new();
    for (title, names) in GROUPS {
        lines.push(format!("{header}{title}:{header:#}"));
        lines.extend(names.iter().map(|name| command_entry(cli, name)));
        lines.push(String::new());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A command's name and, beside it, what it does.
fn command_entry(cli: &Command, name: &str) -> String {
    let literal = cli.get_styles().get_literal();
    let about = cli.find_subcommand(name).and_then(Command::get_about);
    let about = about.map(ToString::to_string).unwrap_or_default();
    let about = wrap_text(&about, COLUMNS - DESCRIPTION_AT);
    let about = about.join(&format!("\n{}", " ".repeat(DESCRIPTION_AT)));
    // Not by `{:width$}`, which would count the bytes of the colours.
    let padding = " ".repeat(DESCRIPTION_AT.saturating_sub(name.len() + 2));
    format!("  {literal}{name}{literal:#}{padding}{about}")
}

/// A command and those below it with examples that fit.
fn fit_examples(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(after) => command.after_help(fit_text(&after)),
        None => command,
    };
    command.mut_subcommands(fit_examples)
}

/// A text of examples and paragraphs in 80 columns. Lines that begin with two blanks are examples.
fn fit_text(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    // A backslash at the end of a line continues it, as in a shell.
    let joined = text.replace("\\\n", "");
    for line in joined.lines() {
        // An example or an empty line ends the paragraph before it.
        if line.starts_with("  ") || line.is_empty() {
            lines.extend(wrap_text(&paragraph.join(" "), COLUMNS));
            paragraph.clear();
        }
        match line.strip_prefix("  ") {
            Some(example) => lines.extend(fit_example(example)),
            None if line.is_empty() => lines.push(String::new()),
            None => paragraph.push(line),
        }
    }
    lines.extend(wrap_text(&paragraph.join(" "), COLUMNS));
    lines.join("\n")
}

/// One example as lines that a shell takes as they are.
fn fit_example(example: &str) -> Vec<String> {
    let Example { command, remark } = Example::parse(example);
    let Some(remark) = remark else {
        return break_command(&command);
    };
    let remark_at = example.find(&remark).unwrap_or_default();
    let mark_at = remark_at.saturating_sub("# ".len());
    let padding = mark_at.saturating_sub(command.chars().count()).max(2);
    let aligned = format!("  {command}{}# {remark}", " ".repeat(padding));
    let tight = format!("  {command}  # {remark}");
    // The remark keeps its column if it fits there, else it moves next to the command.
    let fits = |line: &String| line.chars().count() <= COLUMNS;
    if let Some(line) = [aligned, tight].into_iter().find(fits) {
        return vec![line];
    }
    let mut lines = Vec::new();
    for line in wrap_text(&remark, COLUMNS - "  # ".len()) {
        lines.push(format!("  # {line}"));
    }
    lines.extend(break_command(&command));
    lines
}

/// A command, and what is said about it.
struct Example {
    command: String,
    remark: Option<String>,
}

impl Example {
    /// A remark begins behind a `#`, or behind two blanks.
    fn parse(example: &str) -> Self {
        let marks = ["  # ", "  "];
        let found = marks.iter().find_map(|mark| example.split_once(mark));
        let (command, remark) = found.unwrap_or((example, ""));
        let command = command.trim_end().to_owned();
        let words = remark.trim_start_matches([' ', '#']).split_whitespace();
        let remark = words.collect::<Vec<_>>().join(" ");
        // Options that continue the command on another line are not a remark.
        if remark.starts_with('-') {
            return Self {
                command: format!("{command} {remark}"),
                remark: None,
            };
        }
        Self {
            command,
            remark: found.map(|_| remark),
        }
    }
}

/// A command in as many lines as it needs, broken between its words.
fn break_command(command: &str) -> Vec<String> {
    const CONTINUES: &str = " \\";
    let mut lines = vec![String::from(" ")];
    for word in words_of(command) {
        let Some(line) = lines.last_mut() else { break };
        // A word that is longer than a line still has to go somewhere.
        let is_first = line.trim().is_empty();
        if is_first || line.chars().count() + 1 + word.chars().count() + CONTINUES.len() <= COLUMNS
        {
            line.push(' ');
            line.push_str(&word);
        } else {
            line.push_str(CONTINUES);
            lines.push(format!("      {word}"));
        }
    }
    lines
}

/// The words of a command, quoted ones whole.
fn words_of(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (None, ' ') => {
                words.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A text in lines of at most so many columns.
fn wrap_text(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    #[test]
    fn every_command_is_in_one_group() {
        let command = command_line();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut commands: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(commands, grouped);
    }

    #[test]
    fn the_help_has_groups_and_fits() {
        let help = command_line().render_help().to_string();
        let titles = GROUPS
            .iter()
            .map(|(title, _)| help.find(&format!("\n{title}:\n")));
        let places: Vec<usize> = titles
            .map(|place| place.unwrap_or_else(|| panic!("{help}")))
            .collect();
        assert!(places.is_sorted(), "{help}");
        let (listed, _) = help.split_once("Options:").unwrap();
        for line in listed.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
    }

    fn check(text: &str, expect: &str) {
        assert_eq!(fit_text(text), expect);
    }

    #[test]
    fn examples_are_fitted_without_changing_what_a_shell_sees() {
        check("Examples:\n  turnkeep up", "Examples:\n  turnkeep up");
        check("  turnkeep up      start it", "  turnkeep up    # start it");
        check("  turnkeep up  # start it", "  turnkeep up  # start it");
        let long = "x".repeat(60);
        check(
            &format!("  turnkeep {long}   a remark"),
            &format!("  # a remark\n  turnkeep {long}"),
        );
        check(
            &format!("  turnkeep {long} --text 'two words'"),
            &format!("  turnkeep {long} --text \\\n      'two words'"),
        );
        check(
            "  turnkeep up --a \\\n              --b",
            "  turnkeep up --a --b",
        );
        let words = "word ".repeat(20);
        check(
            &words,
            &format!(
                "{}\n{}",
                "word ".repeat(16).trim_end(),
                "word ".repeat(4).trim_end()
            ),
        );
    }

    /// The examples of a command and of those below it, without their remarks, continued lines
    /// joined.
    fn examples(command: &Command, found: &mut Vec<String>) {
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in after.lines() {
            assert!(
                line.chars().count() <= COLUMNS,
                "{}: {line}",
                command.get_name()
            );
        }
        let joined = after.replace("\\\n", "");
        let lines = joined.lines().filter_map(|line| line.strip_prefix("  "));
        let commands = lines.map(|line| {
            line.split("  # ")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        });
        found.extend(commands.filter(|line| !line.starts_with('#')));
        command
            .get_subcommands()
            .for_each(|sub| examples(sub, found));
    }

    #[test]
    fn every_example_can_be_copied() {
        let mut found = Vec::new();
        examples(&command_line(), &mut found);
        assert!(found.len() > 50, "{found:?}");
        for example in found {
            // The other programs of a pipeline are not checked.
            for part in example.split(" | ").flat_map(|part| part.split(" && ")) {
                let words: Vec<String> = words_of(part).iter().map(|word| unquoted(word)).collect();
                let words: Vec<&String> = words
                    .iter()
                    .take_while(|word| !word.starts_with('>'))
                    .collect();
                if words.first().is_none_or(|word| *word != "turnkeep") {
                    continue;
                }
                let parsed = command_line().try_get_matches_from(words);
                let is_help = |error: &clap::Error| !error.use_stderr();
                if let Err(error) = parsed {
                    assert!(is_help(&error), "{example}: {error}");
                }
            }
        }
    }

    fn unquoted(word: &str) -> String {
        word.replace(['\'', '"'], "")
    }
}
