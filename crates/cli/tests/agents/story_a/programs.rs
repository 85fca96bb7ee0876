//! The programs that play the story, what each can do, and the script that all of them play.
//!
//! `docs/providers.md` has the same table for people.

use std::fmt::Write as _;

use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::team::provider;

/// How a program lets a person decide about its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asking {
    /// It runs its commands without asking.
    Never,
    /// It shows the command as the title of its question. A title makes no rule.
    ByTitle,
    /// It shows the command as an argument, which a rule can be made of.
    ByArguments,
    /// A person can also change that argument.
    ByChangeableArguments,
}

/// A program that plays the story.
#[derive(Debug)]
pub(crate) struct StoryProgram {
    /// The provider, or the name of a custom program.
    name: &'static str,
    asking: Asking,
    /// Whether the program names its session, so that a prompt has only what is new.
    pub(super) keeps_session: bool,
    pub(super) reports_tokens: bool,
    pub(super) reports_cost: bool,
}

pub(crate) const CLAUDE: StoryProgram = StoryProgram {
    name: "claude",
    asking: Asking::ByChangeableArguments,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: true,
};

pub(super) const CODEX: StoryProgram = StoryProgram {
    name: "codex",
    asking: Asking::ByArguments,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: false,
};

pub(super) const GEMINI: StoryProgram = StoryProgram {
    name: "gemini",
    asking: Asking::ByTitle,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: false,
};

pub(super) const ACP: StoryProgram = StoryProgram {
    name: "acp",
    asking: Asking::ByArguments,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: false,
};

pub(super) const STREAM_JSON: StoryProgram = StoryProgram {
    name: "stream-json",
    asking: Asking::ByChangeableArguments,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: true,
};

pub(super) const JSONL: StoryProgram = StoryProgram {
    name: "jsonl",
    asking: Asking::ByChangeableArguments,
    keeps_session: true,
    reports_tokens: true,
    reports_cost: true,
};

pub(super) const RAW: StoryProgram = StoryProgram {
    name: "raw",
    asking: Asking::Never,
    keeps_session: false,
    reports_tokens: false,
    reports_cost: false,
};

pub(super) const PTY: StoryProgram = StoryProgram {
    name: "pty",
    asking: Asking::Never,
    keeps_session: false,
    reports_tokens: false,
    reports_cost: false,
};

/// The nodes of the story. A raw program is a new process for each prompt and keeps its place in the
/// script in a file, so each of them needs a provider of its own.
const NODES: [&str; 7] = ["orch", "planner", "a", "b", "reviewer", "helper", "other"];

/// The configuration of the providers that not every server has.
pub(super) fn provider_tables(sandbox: &Sandbox) -> String {
    let mut text = provider(sandbox, PTY.name, Some("pty"));
    for alias in NODES {
        let name = RAW.provider_of(alias);
        write!(text, "{}", provider(sandbox, &name, Some("raw"))).unwrap();
    }
    text
}

impl StoryProgram {
    /// Whether a person decides about its commands.
    pub(super) fn asks(&self) -> bool {
        self.asking > Asking::Never
    }

    /// Whether a rule can be made of its questions.
    pub(super) fn makes_rules(&self) -> bool {
        self.asking >= Asking::ByArguments
    }

    /// Whether a person can change the arguments of its calls.
    pub(super) fn takes_other_arguments(&self) -> bool {
        self.asking == Asking::ByChangeableArguments
    }

    /// The permission mode of its nodes, if a person chose none.
    pub(super) fn permission_mode(&self) -> &'static str {
        if self.asks() { "gated" } else { "skip" }
    }

    fn is_raw(&self) -> bool {
        self.name == RAW.name
    }

    /// The provider of a node.
    pub(super) fn provider_of(&self, alias: &str) -> String {
        if self.is_raw() {
            format!("raw-{alias}")
        } else {
            self.name.to_owned()
        }
    }

    /// The script, without what the program cannot do.
    pub(super) fn script(&self) -> String {
        let commands = if self.asks() { COMMANDS } else { "" };
        let helper_program = if self.is_raw() {
            r#", provider = "custom", providerName = "raw-helper""#
        } else {
            ""
        };
        SCRIPT
            .replace("COMMANDS", commands)
            .replace("HELPER_PROGRAM", helper_program)
    }
}

/// The command line that a call runs, under the name that its program has for it.
pub(super) fn command_of(call: &Value) -> Option<&str> {
    let names = ["command", "cmd", "title"];
    names.iter().find_map(|name| call["args"][name].as_str())
}

/// What `b` wants to run before it writes its file.
const COMMANDS: &str = r#"
    { run = "echo original", ask = true },
    { run = "touch denied.txt", ask = true },
    { run = "true test", ask = true },
    { run = "true test again", ask = true },
    { run = "true test; touch chained.txt", ask = true },
"#;

/// Both implementers write `both.txt`, so their work conflicts at first.
const SCRIPT: &str = r#"
[agent]
usage = { input = 100, output = 10, cost = 0.01 }

[[turn]]
when = ["(orch) of run", "No new input came"]
steps = [
    { call = "ask_user", args = { question = "Shall we build it?" } },
    { say = "I asked." },
]

[[turn]]
when = ["(orch) of run", "PLEASE PLAN"]
steps = [
    { prompt_hash = "SANDBOX/orch.hash" },
    { call = "send_handoff", args = { to = "planner", message = "PLAN IT" } },
    { say = "The planner plans." },
]

[[turn]]
when = ["(planner) of run", "PLAN IT"]
steps = [
    { write = "docs/plan.md", content = "first a, then b\n" },
    { write = "src/x", content = "forbidden\n" },
    { say = "The plan is made." },
]

[[turn]]
when = ["(orch) of run", "The plan is made"]
steps = [{ say = "A good plan." }]

[[turn]]
when = ["(orch) of run", "PLEASE BUILD"]
steps = [
    { call = "send_handoff", args = { to = "a", message = "BUILD A" } },
    { call = "send_handoff", args = { to = "b", message = "BUILD B" } },
    { say = "Both build." },
]

[[turn]]
when = ["(a) of run", "BUILD A"]
steps = [
    { touch = "SANDBOX/a-runs" },
    { wait_for_file = "SANDBOX/b-runs" },
    { wait_for_file = "SANDBOX/other-runs" },
    { call = "spawn_node", args = { label = "Refused", roleTemplate = "tester", alias = "refused" }, else = [
        { think = "Then with another name." },
    ] },
    { call = "spawn_node", args = { label = "Helper", roleTemplate = "tester", alias = "helper", input = "HELP A"HELPER_PROGRAM, permissions = { cliPermissionsMode = "skip" } } },
    { write = "a.txt", content = "a\n" },
    { write = "both.txt", content = "of a\n" },
    { say = "a is built." },
]

[[turn]]
when = ["(helper) of run", "HELP A"]
steps = [{ say = "I helped." }]

[[turn]]
when = ["(a) of run", "I helped"]
steps = [{ say = "Thanks." }]

[[turn]]
when = ["(b) of run", "BUILD B"]
steps = [
    { touch = "SANDBOX/b-runs" },
    { wait_for_file = "SANDBOX/a-runs" },
    COMMANDS
    { write = "b.txt", content = "bad\n" },
    { write = "both.txt", content = "of b\n" },
    { say = "b is built." },
]

[[turn]]
when = ["(other) of run"]
steps = [
    { touch = "SANDBOX/other-runs" },
    { wait_for_file = "SANDBOX/a-runs" },
    { say = "Another run works too." },
]

[[turn]]
when = ["(orch) of run", "a is built", "b is built"]
steps = [
    { call = "complete_run", args = { summary = "Both are built", ok = true }, else = [
        { call = "send_handoff", args = { to = "b", message = "END THE CONFLICT" } },
    ] },
    { say = "Not yet." },
]

[[turn]]
when = ["(b) of run", "END THE CONFLICT"]
steps = [
    { delete = "both.txt" },
    { say = "The conflict is gone." },
]

[[turn]]
when = ["(orch) of run", "The conflict is gone"]
steps = [
    { call = "complete_run", args = { summary = "It fits", ok = true }, else = [
        { call = "send_handoff", args = { to = "b", message = "MAKE IT GOOD" } },
    ] },
    { say = "Not quite." },
]

[[turn]]
when = ["(b) of run", "MAKE IT GOOD"]
steps = [
    { write = "b.txt", content = "good\n" },
    { say = "b is good now." },
]

[[turn]]
when = ["(orch) of run", "b is good now"]
steps = [
    { call = "complete_run", args = { summary = "It works", ok = true } },
    { say = "All done." },
]
"#;
