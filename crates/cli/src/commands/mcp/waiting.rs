//! Requests that wait for news, each in its own task with its own connection.
//!
//! A task writes its answer to standard output. If the server disappears before it answered, the
//! task returns the message to the bridge's loop, which alone looks for another server. A broken
//! subscription ends with a final answer instead, and the agent may open it again. All tasks end
//! when the agent closes its input.

use std::collections::HashMap;

use anyhow::Result;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::connection::ServerConnection;
use super::message::Message;
use super::{INTERNAL_ERROR, is_json_rpc, write_error, write_line};
use crate::http::{EventStream, Http, HttpRefusal};

/// Requests that may wait at the same time.
const REQUESTS_MAX: usize = 64;
/// How often a request is started.
const TRIES_MAX: usize = 20;
/// The largest answer that is not a stream.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A request whose server went away.
pub(super) struct LostRequest {
    message: Message,
    tries: usize,
    why: String,
}

/// The requests that wait at the moment.
pub(super) struct WaitingRequests {
    tasks: JoinSet<()>,
    running: HashMap<String, AbortHandle>,
    lost: mpsc::Sender<LostRequest>,
}

impl WaitingRequests {
    /// No requests yet, and the channel that returns requests whose server disappeared.
    pub(super) fn new() -> (Self, mpsc::Receiver<LostRequest>) {
        let (lost, receiver) = mpsc::channel(REQUESTS_MAX);
        (
            Self {
                tasks: JoinSet::new(),
                running: HashMap::new(),
                lost,
            },
            receiver,
        )
    }

    /// Starts a request.
    pub(super) async fn start(
        &mut self,
        server: &mut ServerConnection<'_>,
        message: Message,
    ) -> Result<()> {
        self.start_attempt(server, message, 1).await
    }

    /// Starts a request again whose server disappeared.
    pub(super) async fn retry(
        &mut self,
        server: &mut ServerConnection<'_>,
        lost: LostRequest,
    ) -> Result<()> {
        if lost.tries == TRIES_MAX {
            return write_error(lost.message.id(), INTERNAL_ERROR, &lost.why);
        }
        self.start_attempt(server, lost.message, lost.tries + 1)
            .await
    }

    async fn start_attempt(
        &mut self,
        server: &mut ServerConnection<'_>,
        message: Message,
        tries: usize,
    ) -> Result<()> {
        self.collect_finished();
        if self.running.len() >= REQUESTS_MAX {
            let why = format!("{REQUESTS_MAX} requests wait already: cancel one of them first");
            return write_error(message.id(), INTERNAL_ERROR, &why);
        }
        if let Err(error) = server.ensure_connected().await {
            return write_error(message.id(), INTERNAL_ERROR, &format!("{error:#}"));
        }
        let key = message.id().map(Value::to_string).unwrap_or_default();
        // A connection of its own: other messages must not wait until this one is answered.
        let http = Http::new(server.http().target().clone());
        let attempt = run_attempt(http, message, tries, self.lost.clone());
        self.running.insert(key, self.tasks.spawn(attempt));
        Ok(())
    }

    /// Forgets finished tasks. They are collected here and not in the loop: nothing else waits for
    /// them.
    fn collect_finished(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|_, task| !task.is_finished());
    }

    /// Ends a request that its caller cancelled.
    pub(super) fn cancel(&mut self, request: &Value) {
        if let Some(task) = self.running.remove(&request.to_string()) {
            task.abort();
        }
    }
}

/// Performs a request, and returns it to the loop if its server disappears.
async fn run_attempt(http: Http, message: Message, tries: usize, lost: mpsc::Sender<LostRequest>) {
    let Err(error) = perform_request(http, &message).await else {
        return;
    };
    let lost_request = LostRequest {
        message,
        tries,
        why: format!("{error:#}"),
    };
    // Fails only if the loop has ended, because the agent has.
    lost.send(lost_request).await.ok();
}

/// Sends a request and prints its answer. An error means that no server answered it.
async fn perform_request(mut http: Http, message: &Message) -> Result<()> {
    let response = http.send(&message.to_call()).await?;
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind == "text/event-stream");
    if is_stream {
        forward_stream(response, message).await
    } else {
        forward_answer(response, message).await
    }
}

async fn forward_answer(response: Response<Incoming>, message: &Message) -> Result<()> {
    let status = response.status();
    let body = http_body_util::Limited::new(response.into_body(), ANSWER_BYTES_MAX);
    let collected = body.collect().await;
    let body = collected
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .to_bytes();
    if is_json_rpc(&body) {
        return write_line(&body);
    }
    let refused = HttpRefusal::new(status, &body);
    // The server is stopping. Another attempt reaches the next one.
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Err(refused.into());
    }
    write_error(message.id(), INTERNAL_ERROR, &refused.to_string())
}

/// Prints the messages of a stream. If the stream breaks, prints the final answer in its place:
/// otherwise the agent would wait for ever.
async fn forward_stream(response: Response<Incoming>, message: &Message) -> Result<()> {
    let mut events = EventStream::new(response.into_body());
    while let Some(event) = events.next().await? {
        write_line(event.data.as_bytes())?;
        if is_final_answer(&event.data) {
            return Ok(());
        }
    }
    let id = message.id();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let result = json!({ "resultType": "complete", "_meta": meta });
    write_line(
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
            .to_string()
            .as_bytes(),
    )
}

fn is_final_answer(data: &str) -> bool {
    serde_json::from_str::<Value>(data).is_ok_and(|message| message.get("method").is_none())
}
