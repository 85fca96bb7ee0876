//! Decides what may come next on a command line that is being typed.
//!
//! The definition of the command line has the commands and options. The names of its values say
//! which kind of thing is wanted, such as `SESSION`. The command `complete` looks up the things of
//! that kind.

use clap::{Arg, Command};

/// What can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Completion {
    /// One of these words.
    Words(Vec<String>),
    /// One of the things of a kind.
    Values(ValueKind),
    /// A file, or something that only the person knows.
    Anything,
}

/// A kind of things that commands are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Sessions,
    Presets,
    Worlds,
    Contexts,
    Types,
    Sinks,
    Runs,
    Nodes,
    Approvals,
}

/// What may replace the last of these words. The first word is the program's name.
pub(crate) fn complete_line(cli: &Command, words: &[String]) -> Completion {
    let Some((current, before)) = words.split_last() else {
        return Completion::Anything;
    };
    let place = CursorPlace::find(cli, before);
    // Behind `--` the words belong to the wrapped program, whose options are unknown.
    if place.is_foreign {
        return Completion::Anything;
    }
    if let Some(option) = place.waiting {
        return values_of(option);
    }
    // In `--option=va` the option is complete and only its value is typed.
    if let Some((option, _)) = current.split_once('=') {
        return place
            .find_option(option)
            .map_or(Completion::Anything, values_of);
    }
    if current.starts_with('-') {
        return Completion::Words(place.option_names());
    }
    let commands = place.subcommand_names();
    if !commands.is_empty() {
        return Completion::Words(commands);
    }
    place
        .next_positional()
        .map_or(Completion::Anything, values_of)
}

/// Where in the command line the cursor is.
struct CursorPlace<'a> {
    command: &'a Command,
    /// Options of the commands around it that may stand here too.
    globals: Vec<&'a Arg>,
    /// Values that were given without an option.
    positionals: usize,
    /// An option whose value comes next.
    waiting: Option<&'a Arg>,
    /// Whether everything from here on belongs to another program.
    is_foreign: bool,
}

impl<'a> CursorPlace<'a> {
    fn find(cli: &'a Command, before: &[String]) -> Self {
        let mut place = Self {
            command: cli,
            globals: Vec::new(),
            positionals: 0,
            waiting: None,
            is_foreign: false,
        };
        for word in before.iter().skip(1) {
            place.read_word(word);
        }
        place
    }

    fn read_word(&mut self, word: &str) {
        // The value of an option is no command and no option, whatever it looks like.
        if self.waiting.take().is_some() || self.is_foreign {
            return;
        }
        if word == "--" {
            self.is_foreign = true;
            return;
        }
        // A single `-` is a value: it means standard input.
        if word.starts_with('-') && word.len() > 1 {
            self.read_option(word);
            return;
        }
        match self.command.find_subcommand(word) {
            // Behind a value no command can follow, even if a word is called like one.
            Some(sub) if self.positionals == 0 => self.enter_command(sub),
            _ => self.positionals += 1,
        }
    }

    fn read_option(&mut self, word: &str) {
        let has_value = word.contains('=');
        let takes_value = |option: &&Arg| option.get_action().takes_values();
        let option = self.find_option(word).filter(takes_value);
        self.waiting = option.filter(|_| !has_value);
    }

    fn enter_command(&mut self, sub: &'a Command) {
        let arguments = self.command.get_arguments();
        self.globals
            .extend(arguments.filter(|arg| arg.is_global_set()));
        self.command = sub;
    }

    fn subcommand_names(&self) -> Vec<String> {
        let visible = self.command.get_subcommands();
        visible
            .filter(|sub| !sub.is_hide_set())
            .map(|sub| sub.get_name().to_owned())
            .collect()
    }

    /// The argument at the cursor. The last one may take any number of values.
    fn next_positional(&self) -> Option<&'a Arg> {
        let mut arguments = self.command.get_positionals();
        let last = self.command.get_positionals().last();
        arguments.nth(self.positionals).or(last)
    }

    fn all_options(&self) -> impl Iterator<Item = &'a Arg> {
        let own = self
            .command
            .get_arguments()
            .filter(|arg| !arg.is_positional());
        own.chain(self.globals.iter().copied())
            .filter(|arg| !arg.is_hide_set())
    }

    /// The option that is written so.
    fn find_option(&self, word: &str) -> Option<&'a Arg> {
        let word = word.split('=').next().unwrap_or(word);
        self.all_options()
            .find(|arg| match word.strip_prefix("--") {
                Some(long) => arg.get_long() == Some(long),
                None => word
                    .strip_prefix('-')
                    // Short options may be joined, as in `-fn`: only the last can take a value.
                    .is_some_and(|short| arg.get_short() == short.chars().last()),
            })
    }

    fn option_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .all_options()
            .filter_map(|arg| arg.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        names.extend(["--help".to_owned(), "--version".to_owned()]);
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// What an option or an argument takes. The name of its value says so; the help shows the same name.
fn values_of(arg: &Arg) -> Completion {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let names = possible.iter().map(|value| value.get_name().to_owned());
        return Completion::Words(names.collect());
    }
    let id = arg.get_id().as_str();
    // Without a name of its own, a value is called after its argument, as in clap's help.
    let name = match arg.get_value_names() {
        Some([name, ..]) => name.to_string(),
        _ => id.to_uppercase(),
    };
    match name.as_str() {
        "SESSION" | "SESSION[:NUMBER]" => Completion::Values(ValueKind::Sessions),
        "CONTEXT" => Completion::Values(ValueKind::Contexts),
        "WORLD" => Completion::Values(ValueKind::Worlds),
        "TYPE@VERSION" => Completion::Values(ValueKind::Types),
        "SINK" => Completion::Values(ValueKind::Sinks),
        "RUN" => Completion::Values(ValueKind::Runs),
        "NODE" | "FROM" | "TO" => Completion::Values(ValueKind::Nodes),
        "APPROVAL" => Completion::Values(ValueKind::Approvals),
        _ if id == "preset" => Completion::Values(ValueKind::Presets),
        _ => Completion::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    fn check(line: &str, expect: &Completion) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(complete_line(&command_line(), &words), *expect, "{line:?}");
    }

    #[test]
    fn the_kind_of_value_is_known_at_every_place() {
        use ValueKind::{
            Approvals, Contexts, Nodes, Presets, Runs, Sessions, Sinks, Types, Worlds,
        };
        for (line, kind) in [
            ("turnkeep turns ", Sessions),
            ("turnkeep turns rev", Sessions),
            ("turnkeep turn ", Sessions),
            ("turnkeep capture ", Sessions),
            ("turnkeep paste --bracketed ", Sessions),
            ("turnkeep keep ", Sessions),
            ("turnkeep watch ", Sessions),
            ("turnkeep deliver inject --session ", Sessions),
            ("turnkeep deliver inject --session=", Sessions),
            ("turnkeep deliver ", Sinks),
            ("turnkeep wrap --preset ", Presets),
            ("turnkeep wrap --preset=cl", Presets),
            ("turnkeep detect --preset ", Presets),
            ("turnkeep log ", Contexts),
            ("turnkeep log --oneline ", Contexts),
            ("turnkeep log -n 5 ", Contexts),
            ("turnkeep ctx show ", Contexts),
            ("turnkeep append ", Contexts),
            ("turnkeep --data /tmp/x append 1 --type ", Types),
            ("turnkeep registry types ", Types),
            ("turnkeep stream ", Worlds),
            ("turnkeep invoke ", Worlds),
            ("turnkeep world show ", Worlds),
            ("turnkeep run show ", Runs),
            ("turnkeep run watch --plain ", Runs),
            ("turnkeep node reset ", Nodes),
            ("turnkeep node reset impl --run ", Runs),
            ("turnkeep edge add ", Nodes),
            ("turnkeep edge add lead ", Nodes),
            ("turnkeep diff ", Nodes),
            ("turnkeep approvals approve ", Approvals),
        ] {
            check(line, &Completion::Values(kind));
        }
        for line in [
            "turnkeep wrap -- ",
            "turnkeep wrap -- claude ",
            "turnkeep export ",
            "turnkeep --data ",
        ] {
            check(line, &Completion::Anything);
        }
    }

    #[test]
    fn commands_options_and_possible_values_are_words() {
        let words = |line: &str| {
            let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match complete_line(&command_line(), &typed) {
                Completion::Words(words) => words,
                other => panic!("{line:?}: {other:?}"),
            }
        };
        assert!(words("turnkeep ").contains(&"sessions".to_owned()));
        assert!(
            !words("turnkeep ").contains(&"complete".to_owned()),
            "what people do not type"
        );
        assert!(words("turnkeep ctx ").contains(&"fork".to_owned()));
        let options = words("turnkeep paste tests --");
        for option in ["--raw", "--force", "--json", "--data", "--help"] {
            assert!(options.contains(&option.to_owned()), "{option} {options:?}");
        }
        assert!(words("turnkeep completions ").contains(&"bash".to_owned()));
        assert!(words("turnkeep --color ").contains(&"never".to_owned()));
    }
}
