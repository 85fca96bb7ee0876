//! `turnkeep mcp`: the Model Context Protocol on standard input and output.
//!
//! Each line is one message, handed to the server's `/mcp` and answered by one line, so the server
//! alone decides what a token may do. Without a running server this process opens the directory for
//! as long as the agent stays, and other commands find it as they find a server.
//!
//! Messages are answered in their order. Only what waits by itself (a subscription, a read that
//! waits for news) runs beside the others, each over a connection of its own, until it is answered
//! or cancelled.

mod beside;
mod lines;
mod message;
mod store;

use std::io::Write;

use anyhow::Result;
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::App;
use crate::http::Refused;
use beside::{Beside, Lost};
use lines::{Line, MESSAGE_BYTES_MAX};
use message::Message;
use store::{Answer, Store};

/// JSON-RPC's code of an invalid request.
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC's code of a failure that is not the caller's.
const INTERNAL_ERROR: i32 = -32603;

/// Speak the Model Context Protocol on standard input and output
///
/// An agent that starts this program gets the tools of the token given with --token or
/// `TURNKEEP_TOKEN`: a person's reads and perhaps writes one world as that person; the owner's
/// reads every world and the store. `turnkeep world token WORLD PERSON --mcp PROGRAM` prints the
/// line that connects an agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world token payments CODER --write --mcp codex
  codex mcp add turnkeep --env TURNKEEP_TOKEN=tkp.… -- turnkeep mcp")]
pub(crate) struct Args {}

pub(crate) async fn run(_: &Args, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut store = Store::open(&config).await?;
    let done = serve(&mut store).await;
    store.close().await;
    done
}

/// What the bridge does next.
enum Event {
    /// A line came; none at the end of the input.
    Line(Option<Result<Line>>),
    /// A request beside the others lost its server.
    Lost(Lost),
}

async fn serve(store: &mut Store<'_>) -> Result<()> {
    let mut lines = lines::read_standard_input()?;
    let (mut beside, mut lost) = Beside::new();
    loop {
        match next_event(&mut lines, &mut lost).await {
            Event::Line(None) => return Ok(()),
            Event::Line(Some(line)) => take_line(store, &mut beside, line?).await?,
            Event::Lost(lost) => beside.try_again(store, lost).await?,
        }
    }
}

async fn next_event(
    lines: &mut mpsc::Receiver<Result<Line>>,
    lost: &mut mpsc::Receiver<Lost>,
) -> Event {
    tokio::select! {
        line = lines.recv() => Event::Line(line),
        Some(lost) = lost.recv() => Event::Lost(lost),
    }
}

async fn take_line(store: &mut Store<'_>, beside: &mut Beside, line: Line) -> Result<()> {
    let line = match line {
        Line::Message(line) if line.trim_ascii().is_empty() => return Ok(()),
        Line::Message(line) => line,
        Line::TooLong { id } => {
            let limit = MESSAGE_BYTES_MAX >> 20;
            let message = format!("the message is longer than {limit} MiB: send less at a time");
            return say_error(id.as_ref(), INVALID_REQUEST, &message);
        }
    };
    let message = Message::read(line)?;
    if let Some(request) = message.cancelled() {
        beside.cancel(request);
    }
    if message.id().is_some() && message.may_take_long() {
        return beside.start(store, message).await;
    }
    match answer(store, &message).await? {
        Some(answer) => say(&answer),
        None => Ok(()),
    }
}

/// What the server answers; nothing to a notification.
async fn answer(store: &mut Store<'_>, message: &Message) -> Result<Option<Vec<u8>>> {
    let error = match store.ask(message).await {
        Ok(Answer {
            status: StatusCode::ACCEPTED,
            ..
        }) => return Ok(None),
        // The protocol has its own errors, whatever their status.
        Ok(Answer { body, .. }) if is_a_message(&body) => return Ok(Some(body.to_vec())),
        // A token that counts no more will not count again.
        Ok(Answer {
            status: status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
            body,
        }) => {
            return Err(store.http().refused(status, &body).into());
        }
        Ok(Answer { status, body }) => Refused::new(status, &body).into(),
        Err(error) => error,
    };
    // Nobody waits for the answer to a notification.
    let Some(id) = message.id() else {
        return Ok(None);
    };
    Ok(Some(error_line(
        Some(id),
        INTERNAL_ERROR,
        &format!("{error:#}"),
    )))
}

fn is_a_message(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body.get("jsonrpc").is_some())
}

fn error_line(id: Option<&Value>, code: i32, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
        .to_string()
        .into_bytes()
}

fn say_error(id: Option<&Value>, code: i32, message: &str) -> Result<()> {
    say(&error_line(id, code, message))
}

/// Writes one line, whole, whoever else writes.
fn say(answer: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(answer)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.map_err(|error| crate::failure::OutputError(error).into())
}
