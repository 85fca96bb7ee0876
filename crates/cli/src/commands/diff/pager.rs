//! Shows lines that may not fit on the screen through `$PAGER`, as git does.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::config::process_environment;
use crate::output::Output;

const PAGER: &str = "less";
/// For `less`: end if everything fits, show colours, and leave the text on the screen.
const LESS: &str = "FRX";

/// Prints lines, through the pager if they do not fit on the screen.
pub(super) fn show_lines(lines: &[String], out: &mut Output) -> Result<()> {
    let pager = process_environment("PAGER").unwrap_or_else(|| PAGER.to_owned());
    let fits = screen_rows().is_none_or(|rows| lines.len() < rows);
    if fits || matches!(pager.trim(), "" | "cat") {
        return lines.iter().try_for_each(|line| out.line(line));
    }
    // What was printed before must stand above.
    out.flush()?;
    pipe_to_pager(&pager, lines)
}

fn screen_rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

fn pipe_to_pager(pager: &str, lines: &[String]) -> Result<()> {
    // By the shell, because the variable may hold options too.
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if process_environment("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start the pager `{pager}`"))?;
    let written = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(lines.join("\n").as_bytes()),
        None => Ok(()),
    };
    child
        .wait()
        .with_context(|| format!("the pager `{pager}` did not end"))?;
    match written {
        // The person left the pager before the end.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to the pager"),
    }
}
