//! The demo's shared terminal: a scripted agent behind `turnkeep wrap --share`, as a person starts
//! one, with two questions typed.
//!
//! The wrapper gets pipes instead of a terminal, so it makes a terminal of its own for the program
//! and types its standard input there. The wrapper ends when this value is dropped.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::directory::DemoDirectory;
use crate::answer::{list_at, number_of, text_of};
use crate::failure::Failure;
use crate::http::{Call, EventStream, Http};

/// The name of the session.
const NAME: &str = "demo";
/// What is typed, a line each.
const QUESTIONS: [&str; 2] = ["Which items are there?", "How is a price tested?"];

/// The wrapper's process. Dropping it ends it, and with its terminal the program.
pub(crate) struct DemoTerminal {
    child: Child,
    keys: ChildStdin,
}

impl Drop for DemoTerminal {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts the wrapper, and types the questions when the program is ready for them.
pub(super) async fn open_terminal(
    mut http: Http,
    directory: &DemoDirectory,
) -> Result<DemoTerminal> {
    // Opened before the session exists, so that no change of it is missed.
    let mut changes = EventStream::open(&http, Call::get("/v1/events")).await?;
    let mut terminal = start_wrapper(directory)?;
    for (answered, question) in QUESTIONS.iter().enumerate() {
        wait_for_turns(&mut http, &mut changes, answered as u64).await?;
        terminal
            .keys
            .write_all(format!("{question}\r").as_bytes())?;
    }
    wait_for_turns(&mut http, &mut changes, QUESTIONS.len() as u64).await?;
    Ok(terminal)
}

fn start_wrapper(directory: &DemoDirectory) -> Result<DemoTerminal> {
    let turnkeep = std::env::current_exe().context("cannot find the path of turnkeep")?;
    let agents = directory.agents();
    let mut child = Command::new(turnkeep)
        .args(["wrap", "--share", "--name", NAME, "--"])
        .arg(agents.program())
        .arg("--script")
        .arg(agents.terminal_script())
        .args(["--protocol", "pty"])
        .current_dir(directory.repository())
        .env("XDG_RUNTIME_DIR", directory.runtime_dir())
        .env("TURNKEEP_CONFIG", agents.config())
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is for the server, which ends the wrapper in its turn.
        .process_group(0)
        .spawn()
        .context("cannot start the wrapper")?;
    let keys = child.stdin.take().context("the wrapper has no input")?;
    Ok(DemoTerminal { child, keys })
}

/// Waits until the session has completed so many turns and its program waits for input.
async fn wait_for_turns(http: &mut Http, changes: &mut EventStream, turns: u64) -> Result<()> {
    loop {
        let answer = http.json(Call::get("/v1/sessions")).await?;
        let mut sessions = list_at(&answer, "/sessions").iter();
        if sessions.any(|session| is_ready(session, turns)) {
            return Ok(());
        }
        if changes.next().await?.is_none() {
            return Failure::new("the server is gone").fail();
        }
    }
}

fn is_ready(session: &Value, turns: u64) -> bool {
    text_of(session, "name") == NAME
        && text_of(session, "state") == "ready"
        && number_of(session, "turns") >= turns
}
