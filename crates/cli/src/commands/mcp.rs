//! `turnkeep mcp`: the Model Context Protocol on standard input and output.
//!
//! Each line is one message, handed to the server's `/mcp` and answered by one line; so what a token may do is
//! decided in one place. Without a running server the directory is opened for as long as the program that
//! started this one stays, and other commands find it as they find a server.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use hyper::StatusCode;
use serde_json::{Value, json};

use super::App;
use crate::data_dir::{DataDir, ServerNote};
use crate::failure::Failure;
use crate::http::{Call, Http, Refused};
use crate::session::{Need, Session};

/// The longest message.
const MESSAGE_BYTES_MAX: u64 = 2 << 20;

/// Speak the Model Context Protocol on standard input and output
///
/// An agent that starts this program gets the tools of the token given with --token or `TURNKEEP_TOKEN`: a
/// person's reads and perhaps writes one world as that person; the owner's reads every world and the store.
/// `turnkeep world token WORLD PERSON --mcp PROGRAM` prints the line that connects an agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world token payments CODER --write --mcp codex
  codex mcp add turnkeep --env TURNKEEP_TOKEN=tkp.… -- turnkeep mcp")]
pub(crate) struct Args {}

pub(crate) async fn run(_: &Args, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut session = Session::open(&config, Need::Write).await?;
    let dir = DataDir::new(&config.data.value);
    if let Some((http, tcp)) = session.own_addresses() {
        dir.leave_note(&ServerNote { pid: std::process::id(), http, tcp, tls_cert: None })?;
    }
    let done = carry(&mut session.http).await;
    if session.is_own() {
        dir.remove_note();
    }
    session.close().await;
    done
}

async fn carry(http: &mut Http) -> Result<()> {
    while let Some(line) = next_line().await? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = answer(http, line).await? {
            say(&answer)?;
        }
    }
    Ok(())
}

/// Reads a line beside the runtime, which may have a server to run. None at the end.
async fn next_line() -> Result<Option<Vec<u8>>> {
    let read = || {
        let mut line = Vec::new();
        let stdin = std::io::stdin().lock();
        std::io::Read::take(stdin, MESSAGE_BYTES_MAX + 1).read_until(b'\n', &mut line).map(|_| line)
    };
    let line = tokio::task::spawn_blocking(read).await?.context("cannot read standard input")?;
    if line.len() as u64 > MESSAGE_BYTES_MAX {
        return Err(Failure::new("a message is longer than 2 MiB").into());
    }
    Ok(Some(line).filter(|line| !line.is_empty()))
}

/// What the server answers; nothing to a notification.
async fn answer(http: &mut Http, line: Vec<u8>) -> Result<Option<Vec<u8>>> {
    let id = serde_json::from_slice::<Value>(&line).ok().and_then(|message| message.get("id").cloned());
    let error = match http.whatever(Call::post_bytes("/mcp", line)).await {
        Ok((StatusCode::ACCEPTED, _)) => return Ok(None),
        // The protocol has its own errors, whatever their status.
        Ok((_, body)) if is_a_message(&body) => return Ok(Some(body.to_vec())),
        // A token that counts no more will not count again.
        Ok((status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), body)) => {
            return Err(Refused::new(status, &body).into());
        }
        Ok((status, body)) => Refused::new(status, &body).into(),
        Err(error) => error,
    };
    let message = format!("{error:#}");
    let failed = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": message } });
    Ok(Some(failed.to_string().into_bytes()))
}

fn is_a_message(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body.get("jsonrpc").is_some())
}

fn say(answer: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(answer).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    written.map_err(|error| crate::failure::OutputError(error).into())
}
