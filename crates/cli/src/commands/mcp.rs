//! `turnkeep mcp`: the Model Context Protocol on standard input and output.
//!
//! Each line is one message. The bridge sends it to the server's `/mcp` and prints the answer on one
//! line, so the server alone decides what a token may do. Without a running server this process
//! opens the directory and serves it as long as the agent runs; other commands find that server.
//!
//! Messages are answered in order. Only a request that waits (a subscription, or a read that waits
//! for news) runs concurrently, on its own connection, until it is answered or cancelled.

mod connection;
mod lines;
mod message;
mod waiting;

use std::io::Write;

use anyhow::Result;
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::App;
use crate::failure::OutputError;
use crate::http::HttpRefusal;
use connection::{Answer, ServerConnection};
use lines::{InputLine, MESSAGE_BYTES_MAX};
use message::Message;
use waiting::{LostRequest, WaitingRequests};

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
pub(crate) struct McpArgs {}

pub(crate) async fn run_mcp(_: &McpArgs, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut server = ServerConnection::open(&config).await?;
    let done = serve_input(&mut server).await;
    server.close().await;
    done
}

/// What the bridge does next.
enum BridgeEvent {
    /// A line came; none at the end of the input.
    Line(Option<Result<InputLine>>),
    /// A waiting request lost its server.
    Lost(LostRequest),
}

async fn serve_input(server: &mut ServerConnection<'_>) -> Result<()> {
    let mut lines = lines::read_standard_input()?;
    let (mut waiting, mut lost) = WaitingRequests::new();
    loop {
        match next_event(&mut lines, &mut lost).await {
            BridgeEvent::Line(None) => return Ok(()),
            BridgeEvent::Line(Some(line)) => handle_line(server, &mut waiting, line?).await?,
            BridgeEvent::Lost(lost) => waiting.retry(server, lost).await?,
        }
    }
}

async fn next_event(
    lines: &mut mpsc::Receiver<Result<InputLine>>,
    lost: &mut mpsc::Receiver<LostRequest>,
) -> BridgeEvent {
    tokio::select! {
        line = lines.recv() => BridgeEvent::Line(line),
        Some(lost) = lost.recv() => BridgeEvent::Lost(lost),
    }
}

async fn handle_line(
    server: &mut ServerConnection<'_>,
    waiting: &mut WaitingRequests,
    line: InputLine,
) -> Result<()> {
    let line = match line {
        InputLine::Message(line) if line.trim_ascii().is_empty() => return Ok(()),
        InputLine::Message(line) => line,
        InputLine::TooLong { id } => {
            let limit = MESSAGE_BYTES_MAX >> 20;
            let message = format!("the message is longer than {limit} MiB: send less at a time");
            return write_error(id.as_ref(), INVALID_REQUEST, &message);
        }
    };
    let message = Message::from_line(line)?;
    // The bridge ends the request here. The server hears of it too, from the message itself.
    if let Some(request) = message.cancelled_request() {
        waiting.cancel(request);
    }
    // Only a request that may wait goes to a task: all others keep their order.
    if message.id().is_some() && message.may_take_long() {
        return waiting.start(server, message).await;
    }
    match answer_message(server, &message).await? {
        Some(answer) => write_line(&answer),
        None => Ok(()),
    }
}

/// The server's answer; none to a notification.
async fn answer_message(
    server: &mut ServerConnection<'_>,
    message: &Message,
) -> Result<Option<Vec<u8>>> {
    let error = match server.send_until_answered(message).await {
        Ok(Answer {
            status: StatusCode::ACCEPTED,
            ..
        }) => return Ok(None),
        // Errors of the protocol are messages too, whatever the HTTP status is.
        Ok(Answer { body, .. }) if is_json_rpc(&body) => return Ok(Some(body.to_vec())),
        // A token that is refused once will be refused again, so the bridge ends.
        Ok(Answer {
            status: status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
            body,
        }) => {
            return Err(server.http().refusal(status, &body).into());
        }
        Ok(Answer { status, body }) => HttpRefusal::new(status, &body).into(),
        Err(error) => error,
    };
    // A notification gets no answer, not even an error.
    let why = format!("{error:#}");
    let id = message.id();
    Ok(id.map(|id| error_line(Some(id), INTERNAL_ERROR, &why)))
}

fn is_json_rpc(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body.get("jsonrpc").is_some())
}

fn error_line(id: Option<&Value>, code: i32, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
        .to_string()
        .into_bytes()
}

fn write_error(id: Option<&Value>, code: i32, message: &str) -> Result<()> {
    write_line(&error_line(id, code, message))
}

/// Writes one line. The lock keeps it whole while other tasks write too.
fn write_line(answer: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(answer).map_err(OutputError)?;
    out.write_all(b"\n").map_err(OutputError)?;
    // The agent waits for this line.
    out.flush().map_err(OutputError)?;
    Ok(())
}
