//! `turnkeep mcp`: the Model Context Protocol on standard input and output.
//!
//! Each line is one message, handed to the server's `/mcp` and answered by one line; so what a token may do is
//! decided in one place. Without a running server the directory is opened for as long as the program that
//! started this one stays, and other commands find it as they find a server. When the server that was found ends,
//! the next message finds its successor. What may have been written is not written again: the caller is told.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::App;
use crate::config::Config;
use crate::data_dir::{DataDir, ServerNote};
use crate::failure::Failure;
use crate::http::{Call, Refused};
use crate::session::{Need, Session};

/// The longest message.
const MESSAGE_BYTES_MAX: u64 = 2 << 20;

/// How many servers one message is tried with.
const TRIES_MAX: usize = 3;
/// The tools that change nothing.
const READING_TOOLS: &[&str] = &[
    "ledger_search",
    "ledger_get",
    "capsule_get",
    "scene_pack_build",
    "ledger_read",
    "store_contexts",
    "store_turns",
    "store_turn",
];
const UNKNOWN_OUTCOME: &str = "whether it was written is not known: look with ledger_read before writing it again; \
     with a request_id it could be repeated safely";

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
    let mut store = Store::open(&config).await?;
    let done = carry(&mut store).await;
    store.close().await;
    done
}

/// The store as it is reached now. Its server may be another agent's and end with that one; then the directory has
/// another, or this process becomes it.
struct Store<'a> {
    config: &'a Config,
    session: Session,
}

impl<'a> Store<'a> {
    async fn open(config: &'a Config) -> Result<Self> {
        Ok(Self { config, session: Self::find(config).await? })
    }

    /// Finds the store's server or becomes it, so that others find this one.
    async fn find(config: &Config) -> Result<Session> {
        let session = Session::open(config, Need::Write).await?;
        if let Some((http, tcp)) = session.own_addresses() {
            let note = ServerNote { pid: std::process::id(), http, tcp, tls_cert: None, passing: true };
            DataDir::new(&config.data.value).leave_note(&note)?;
        }
        Ok(session)
    }

    /// Hands a message over. It is sent again only where nothing of it arrived, or where twice is as good as once.
    async fn ask(&mut self, line: &[u8]) -> Result<(StatusCode, Bytes)> {
        let mut tries = 0;
        loop {
            let error = match self.session.http.reach().await {
                Err(error) => error,
                Ok(()) => match self.session.http.whatever(Call::post_bytes("/mcp", line.to_vec())).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) if self.session.http.was_unsent() || may_be_repeated(line) => error,
                    Err(error) => return Err(error.context(UNKNOWN_OUTCOME)),
                },
            };
            tries += 1;
            if tries == TRIES_MAX {
                return Err(error);
            }
            self.find_anew().await?;
        }
    }

    /// A server that was named, or is this process's own, is the one and stays it.
    async fn find_anew(&mut self) -> Result<()> {
        if self.config.server.value.is_none() && !self.session.is_own() {
            self.session = Self::find(self.config).await?;
        }
        Ok(())
    }

    async fn close(self) {
        if self.session.is_own() {
            DataDir::new(&self.config.data.value).remove_note();
        }
        self.session.close().await;
    }
}

/// Whether a message that may have been carried out may be sent again: one that only reads, or a write with an id of
/// its own, of which the ledger makes one.
fn may_be_repeated(line: &[u8]) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return false };
    if message.get("method").and_then(Value::as_str) != Some("tools/call") {
        return true;
    }
    match message.pointer("/params/name").and_then(Value::as_str) {
        Some("ledger_write") => message.pointer("/params/arguments/request_id").is_some_and(Value::is_string),
        Some(tool) => READING_TOOLS.contains(&tool),
        None => false,
    }
}

async fn carry(store: &mut Store<'_>) -> Result<()> {
    while let Some(line) = next_line().await? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = answer(store, &line).await? {
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
async fn answer(store: &mut Store<'_>, line: &[u8]) -> Result<Option<Vec<u8>>> {
    let id = serde_json::from_slice::<Value>(line).ok().and_then(|message| message.get("id").cloned());
    let error = match store.ask(line).await {
        Ok((StatusCode::ACCEPTED, _)) => return Ok(None),
        // The protocol has its own errors, whatever their status.
        Ok((_, body)) if is_a_message(&body) => return Ok(Some(body.to_vec())),
        // A token that counts no more will not count again.
        Ok((status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), body)) => {
            return Err(store.session.http.refused(status, &body).into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_good_twice_as_once_is_sent_again() {
        let call = |name: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        for (message, expect) in [
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" }), true),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }), true),
            (json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), true),
            (call("ledger_search", json!({ "query": "x" })), true),
            (call("store_turn", json!({ "turn_id": "1" })), true),
            (call("ledger_write", json!({ "text": "x", "request_id": "r-1" })), true),
            (call("ledger_write", json!({ "text": "x" })), false),
            (call("ledger_write", json!({ "text": "x", "request_id": null })), false),
            (call("some_other_tool", json!({})), false),
            (json!({ "method": "tools/call" }), false),
        ] {
            assert_eq!(may_be_repeated(message.to_string().as_bytes()), expect, "{message}");
        }
        assert!(!may_be_repeated(b"{"));
    }
}
