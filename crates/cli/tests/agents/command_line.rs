//! The commands for runs at work: what a person types, what the terminal shows, and the state
//! afterwards.

mod lifecycle;
mod nodes;
mod results;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::sandbox::check;
use crate::team::{Team, make_repository, skip};

/// What the agents of these tests do. A message chooses the turn.
const SCRIPT: &str = r#"
[[turn]]
when = "WRITE A"
repeat = true
steps = [
    { write = "a.txt", content = "from one\n" },
    { say = "a.txt is written." },
]

[[turn]]
when = "WRITE OTHER A"
repeat = true
steps = [
    { write = "a.txt", content = "from another\n" },
    { say = "a.txt is written." },
]

[[turn]]
when = "PLAN"
steps = [
    { write = "plan.md", content = "plan\n" },
    { write = "src/x", content = "x\n" },
    { say = "Planned." },
]

[[turn]]
when = "PRINT"
steps = [
    { run = "test -f SANDBOX/paper", else = [{ crash = { code = 3, stderr = "out of paper" } }] },
    { say = "Printed." },
]

[[turn]]
when = "WAIT"
repeat = true
steps = [
    { say = "I wait." },
    { touch = "SANDBOX/waits" },
    { wait_for_file = "SANDBOX/never" },
]

[[turn]]
when = "ASK"
repeat = true
steps = [
    { run = "echo done > asked.txt", ask = true },
    { say = "The command ran." },
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

/// A run on a server, and a person at a terminal.
struct Desk {
    team: Team,
    run: String,
}

impl Desk {
    /// A run in a plain directory, with one implementer, `one`.
    fn with_one(settings: Value) -> Self {
        let team = Team::start(SCRIPT);
        let run = team.new_run(settings);
        team.add_node(&run, "implementer", "claude", skip("one"));
        Self { team, run }
    }

    /// A run in a repository with the implementers `one` and `two`, so that each has a worktree.
    fn with_two(settings: Value) -> Self {
        let team = Team::start(SCRIPT);
        make_repository(&team.work());
        let run = team.new_run(settings);
        for alias in ["one", "two"] {
            team.add_node(&run, "implementer", "claude", skip(alias));
        }
        Self { team, run }
    }

    /// Types commands, and compares what the terminal shows.
    #[track_caller]
    fn type_and_check(&self, commands: &str, shown: &str) {
        check(&self.type_commands(commands), shown);
    }

    /// Types commands. The id of the run, in full and in short, becomes `RUN`.
    fn type_commands(&self, commands: &str) -> String {
        let shown = self.team.sandbox.transcript(commands);
        replace_id(&shown, &self.run, "RUN")
    }

    /// Sends a message and waits for the end of the turn that it causes.
    fn play(&self, node: &str, message: &str) {
        let id = self.node_id(node);
        let turns_before = self.team.artifacts_of(&self.run, &id, "diff").len();
        self.team.chat(&self.run, &id, message);
        self.team
            .wait_for_turn_end(&self.run, &id, turns_before + 1);
    }

    fn node_id(&self, alias: &str) -> String {
        let run = self.team.show(&self.run);
        let nodes = run["nodes"].as_object().unwrap();
        let found = nodes.iter().find(|(_, node)| node["alias"] == alias);
        found.unwrap().0.clone()
    }

    fn node(&self, alias: &str) -> Value {
        self.team.show_node(&self.run, &self.node_id(alias))
    }

    fn status(&self) -> String {
        let run = self.team.show(&self.run);
        run["status"].as_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.team.work().join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.team.work().join(name)).ok()
    }

    /// Waits until an agent that plays `WAIT` waits.
    fn wait_for_waiting(&self) {
        let file = self.team.sandbox.path("waits");
        wait_until("no agent waits", || file.exists());
    }
}

/// Replaces an id, and every head of it that a person could type, where it stands as a word.
fn replace_id(text: &str, id: &str, with: &str) -> String {
    const HEAD_CHARS_MIN: usize = 4;
    let mut replaced = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '-' {
            word.push(c);
            continue;
        }
        let is_head = word.len() >= HEAD_CHARS_MIN && id.starts_with(word.as_str());
        replaced.push_str(if is_head { with } else { &word });
        word.clear();
        replaced.push(c);
    }
    replaced.pop();
    replaced
}
