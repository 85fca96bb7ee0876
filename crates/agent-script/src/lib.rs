//! A scripted agent: it stands in for an agent program, and costs no tokens.
//!
//! `turnkeep-agent-script` is started exactly like the program that it replaces, and speaks that
//! program's side of the protocol on standard input and output. What it says and does comes from a
//! script file. Tests, demos and replays of recorded runs use it.
//!
//! ```text
//! turnkeep-agent-script --script S.toml -p --input-format stream-json \
//!     --output-format stream-json --verbose           as Claude
//! turnkeep-agent-script --script S.toml app-server    as Codex
//! turnkeep-agent-script --script S.toml --acp         as Gemini; `acp` as OpenCode
//! turnkeep-agent-script --script S.toml --protocol jsonl | raw | pty
//! ```
//!
//! # The script
//!
//! A script is a TOML file. It has one `[[turn]]` for each prompt:
//!
//! ```toml
//! [[turn]]
//! steps = [
//!     { say = "I will run the tests." },
//!     { run = "make test", ask = "Run the tests?", else = [{ say = "Then I stop here." }] },
//!     { write = "notes.md", content = "All green.\n" },
//!     { usage = { input = 1200, output = 80, cost = 0.004 } },
//!     { say = "Done." },
//! ]
//! ```
//!
//! An unknown key is an error that names the key and the line.
//!
//! ## `[[turn]]`
//!
//! | key | meaning |
//! |---|---|
//! | `when` | a text, or a list of texts, all of which the prompt must contain |
//! | `repeat` | `true`: the turn may be played again |
//! | `ignore_interrupt` | `true`: an interrupt has no effect, and gets no answer |
//! | `final` | one last message, sent whole |
//! | `steps` | what happens, in order |
//!
//! The first turn whose `when` fits answers a prompt; else the next turn without `when`. Each turn
//! is played once unless it repeats. A prompt without a turn fails.
//!
//! ## Steps
//!
//! | step | meaning |
//! |---|---|
//! | `{ say = "…" }` | streams text; `chunk` characters a piece, `pause` milliseconds apart |
//! | `{ think = "…" }` | streams reasoning, in the same way |
//! | `"end_message"` | ends the message, so that more text is another one |
//! | `{ run = "command" }` | runs a shell command; its output is the tool's result |
//! | `{ write = "path", content = "…" }` | writes a file; also `append`, and `delete` without content |
//! | `{ call = "tool", args = { … } }` | calls a tool of the MCP server that the agent was given |
//! | `{ tool = "name", args = { … }, result = "…", error = true }` | shows a tool and a result, and does nothing |
//! | `{ patch = "diff --git …" }` | changes files as `git apply` does, and shows no tool |
//! | `{ usage = { input, output, cached, cost } }` | reports tokens and dollars; several add up |
//! | `{ wait = 200 }` | waits, in milliseconds |
//! | `{ wait_for_file = "path" }` | waits until a file exists |
//! | `{ touch = "path" }` | creates an empty file |
//! | `{ prompt_hash = "path" }` | writes the BLAKE3 hash of the prompt's bytes, in hex |
//! | `{ prompt_copy = "path" }` | writes the prompt's bytes |
//! | `{ stderr = "…" }` | writes a line to standard error |
//! | `{ garbage = "…" }` | writes a text that is no message; `{ garbage = { hex = "ff00" } }` writes bytes |
//! | `{ spawn_child = "pid file" }` | starts a child that sleeps; `holds_stdout = true` keeps the output open |
//! | `{ rate_limit = { resets_in = 60 } }` | ends the turn: the limit is reached; also `at`, in Unix seconds |
//! | `{ unavailable = "overloaded" }` | ends the turn: the provider cannot answer now |
//! | `{ fail = "…" }` | ends the turn with an error |
//! | `{ crash = { code = 1, stderr = "…" } }` | exits |
//! | `"kill_self"` | dies as by `kill -9` |
//! | `"close_stdout"` | writes half a line and closes standard output |
//! | `"silence"` | says nothing more, until an interrupt, the end of the input or a kill |
//!
//! The tools `run`, `write`, `append`, `delete`, `call` and `tool` take three more keys. `ask`
//! (`true`, or a reason) asks for permission first; changed arguments replace those of the script.
//! `else` lists the steps to do when the tool is denied or fails; without it the turn goes on.
//! `save` gives the answer a name. `args` may also be a text that is JSON.
//!
//! Texts may hold placeholders: `{{result.nodeId}}` is a field of the last tool's answer,
//! `{{name.nodeId}}` of one with `save = "name"`. A command answers with `output` and `exit`.
//! `{{prompt}}` is the prompt, and `{{steer}}` the last text that arrived while the turn ran.
//!
//! A `call` without an MCP server is written as a line `{"tool_call":{"name":…,"args":…}}` and ends
//! the turn. The next prompt is then its answer, and the turn goes on: a line
//! `{"tool_result":{"result":…}}` or `{"tool_result":{"error":…}}` in it, else the whole prompt.
//!
//! ## `[agent]`
//!
//! | key | meaning |
//! |---|---|
//! | `session` | the session's id; by default each new session has its own |
//! | `model` | the model's name |
//! | `chunk`, `pause` | how text is streamed: 16 characters, 0 ms |
//! | `usage` | what each completed turn costs, beside its `usage` steps |
//! | `log` | a directory that receives one file a prompt; also `--log` |
//! | `state` | a file that remembers which turns were played, for the next process; also `--state` |
//! | `placeholders` | `false`: texts have no placeholders, as in a recorded script |
//!
//! # What differs between protocols
//!
//! - The final message of a turn is the text after its last tool, as with the real programs.
//! - Claude and `jsonl` accept changed arguments with a permission; the other protocols cannot.
//! - A session that never asks (`--dangerously-skip-permissions`, the policy `never`, `yolo`, `skip`)
//!   allows each tool. Claude without `--permission-prompt-tool stdio` denies it.
//! - `jsonl` carries calls itself, and needs no MCP server.
//! - `raw` is one process a prompt. Give it a `state` file, so that the next process plays the next
//!   turn, or goes on with a turn that waits for the answer to a call. It cannot ask: it allows.
//! - A turn that is silent or waits for a file ends the process after ten minutes.
//!
//! # Parts
//!
//! [`script`] parses, [`player`] turns steps into actions and is pure, `protocol` translates actions
//! to lines and back, `runner` carries actions out.

#![expect(
    missing_docs,
    reason = "a field whose name says everything has no comment"
)]

pub mod arguments;
mod mcp;
mod placeholder;
pub mod player;
mod protocol;
mod runner;
pub mod script;
pub mod tool;

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use arguments::{Arguments, Request, SCRIPT_VARIABLE, Surroundings, read_arguments};
use runner::Runner;
use script::{Script, parse_script, step_names};

/// The script of a recorded run may be long, but not longer than this.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
/// The exit code for wrong arguments and wrong scripts.
const USAGE_ERROR: u8 = 2;

/// Runs the program with these arguments, without the program's name.
pub fn run_program(arguments: Vec<String>) -> ExitCode {
    let surroundings = Surroundings {
        script_variable: std::env::var_os(SCRIPT_VARIABLE).map(Into::into),
        input_is_terminal: std::io::stdin().is_terminal(),
    };
    let request = read_arguments(arguments, surroundings).map_err(|error| error.to_string());
    match request.and_then(carry_out) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("turnkeep-agent-script: {message}");
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn carry_out(request: Request) -> Result<u8, String> {
    match request {
        Request::ShowHelp => print!("{}", help_text()),
        Request::ShowVersion => println!("turnkeep-agent-script {}", env!("CARGO_PKG_VERSION")),
        Request::Play(arguments) => return play(&arguments),
    }
    Ok(0)
}

fn play(arguments: &Arguments) -> Result<u8, String> {
    let script = read_script(&arguments.script)?;
    Ok(Runner::open(script, arguments)?.run())
}

fn read_script(path: &Path) -> Result<Script, String> {
    let explain = |error| format!("cannot read the script {}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(explain)?;
    let mut text = String::new();
    file.take(SCRIPT_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(explain)?;
    parse_script(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn help_text() -> String {
    let example = include_str!("../examples/permission.toml");
    let mut steps = String::from("Steps:");
    let mut width = steps.len();
    for name in step_names() {
        if width + name.len() > HELP_WIDTH {
            steps.push_str("\n      ");
            width = 6;
        }
        steps.extend([" ", name]);
        width += name.len() + 1;
    }
    format!(
        "{HELP}\n{steps}\n\nA script has one [[turn]] for each prompt. For example:\n\n{example}"
    )
}

const HELP_WIDTH: usize = 80;

const HELP: &str = "\
A scripted agent: it stands in for an agent program, and costs no tokens.

Usage: turnkeep-agent-script --script FILE [OPTION]… [ARGUMENTS OF THE PROGRAM]…

Start it like the program that it replaces. Its arguments choose the protocol:
  -p --input-format stream-json --output-format stream-json --verbose   Claude
  app-server                                                            Codex
  --acp                                                                 Gemini
  acp                                                                   OpenCode
On a terminal it is an interactive program.

Options:
  --script FILE     the script; or set TURNKEEP_AGENT_SCRIPT
  --protocol NAME   stream-json, app-server, acp, jsonl, raw or pty
  --log DIR         write each prompt to a file of its own in DIR
  --state FILE      remember in FILE which turns were played, for the next process
  --version         print the version
  --help            print this text

Other options of the real programs are accepted: --resume, --model, --mcp-config,
-c KEY=VALUE, --permission-prompt-tool stdio, --dangerously-skip-permissions, …
Those without a meaning here are ignored.
";
