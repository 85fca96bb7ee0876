//! `GET /ws?runId=R&since=N&types=T`: the events of a run, or of all runs, over a WebSocket.
//!
//! With `runId` and `since` the server sends the events behind that number and then the new ones,
//! without gap or repetition. It reads all of them from the log: live events are those that were
//! not there a moment before. Without `since` it begins with the next event, and without `runId` it
//! sends the new events of all runs.
//!
//! Every frame is one event as text. `node.heartbeat` is live only and has no number.
//!
//! The server keeps no queue for a client: what a client has not taken waits in the log. A client
//! that has caught up once and then lets more than 1,000 events or 8 MiB wait is closed with 4008 and
//! comes back with `since`. The socket of a deleted run is closed with 4004.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use turnkeep_runtime::Event;
use turnkeep_runtime::ids::RunId;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::{RunStreamQuery, SocketQuery};
use super::super::terminal;
use super::parts::{Viewer, parse_uuid};
use crate::error::ApiError;
use crate::runs::json;
use crate::runs::{Backlog, Heartbeat, RunHandle, RunNotice};
use crate::shared::Shared;

/// The longest message that a peer may send. Its content is ignored.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How many events are read from the log at once.
const READ_EVENTS: usize = 200;
/// How many events may wait for a client that has caught up.
const WAITING_EVENTS_MAX: u64 = 1_000;
/// How many bytes of events may wait for it.
const WAITING_BYTES_MAX: u64 = 8 << 20;
/// How often the server counts what waits while a client does not take a frame.
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// How long a peer may take to answer a close.
const CLOSE_PAUSE: Duration = Duration::from_secs(1);
const CLOSE_TOO_SLOW: u16 = 4008;
const CLOSE_DELETED: u16 = 4004;
const HEARTBEAT: &str = "node.heartbeat";

/// Opens the socket of a shared terminal or of runs.
pub(crate) async fn open(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<SocketQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    match query {
        SocketQuery::Session(session) => terminal::watch(&shared, session, upgrade),
        SocketQuery::Runs(query) => watch_runs(&shared, query, upgrade),
    }
}

fn watch_runs(
    shared: &Arc<Shared>,
    query: RunStreamQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let source = Source::find(shared, &query)?;
    let upgrade = upgrade.map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
    let place = shared.connections.try_open();
    let place = place
        .ok_or_else(|| ApiError::new(ErrorCode::Unavailable, "too many connections are open"))?;
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX);
    let shared = Arc::clone(shared);
    // Subscribed before the answer: what happens after it must not be missed.
    let heartbeats = shared.runs.subscribe_heartbeats();
    Ok(upgrade.on_upgrade(async move |socket| {
        let stream = EventSocket {
            socket,
            types: query.types,
            ping_at: Instant::now() + shared.config.timeouts.sse_ping,
            has_stalled: false,
            heartbeats,
            shared: Arc::clone(&shared),
        };
        shared.spawn(async move {
            stream.run(source).await;
            drop(place);
        });
    }))
}

/// Where the events of a socket come from.
enum Source {
    /// One run.
    Run(Position),
    /// The new events of all runs.
    All {
        notices: broadcast::Receiver<RunNotice>,
        positions: HashMap<RunId, Position>,
    },
}

/// How far a socket has come in a run.
struct Position {
    handle: Arc<RunHandle>,
    /// The number of the next event to send.
    next: u64,
}

impl Position {
    /// Behind the last event.
    fn at_end(handle: Arc<RunHandle>) -> Self {
        let next = handle.read_live(|run| run.last_seq) + 1;
        Self { handle, next }
    }

    fn backlog(&self) -> Backlog {
        self.handle.backlog_from(self.next)
    }
}

impl Source {
    fn find(shared: &Shared, query: &RunStreamQuery) -> Result<Self, ApiError> {
        let Some(text) = &query.run_id else {
            if query.since.is_some() {
                let message = "`since` needs `runId`: only a run's events are numbered";
                return Err(ApiError::bad_request(message));
            }
            // In this order: a run that is created in between is in the notices.
            let notices = shared.runs.subscribe_notices();
            let ends = shared.runs.list().into_iter().map(Position::at_end);
            return Ok(Self::All {
                notices,
                positions: ends.map(|end| (end.handle.id(), end)).collect(),
            });
        };
        let id: RunId = parse_uuid(text, "run")?;
        let mut position = Position::at_end(shared.runs.get(id)?);
        if let Some(since) = query.since {
            let last = position.next - 1;
            if since > last {
                let message = format!("`since` is {since}, but the last event is {last}");
                return Err(ApiError::bad_request(message));
            }
            position.next = since + 1;
        }
        Ok(Self::Run(position))
    }
}

/// How a socket is closed.
struct Close {
    code: u16,
    reason: &'static str,
}

impl Close {
    const TOO_SLOW: Self = Self {
        code: CLOSE_TOO_SLOW,
        reason: "too slow: come back with `since`",
    };
    const DELETED: Self = Self {
        code: CLOSE_DELETED,
        reason: "the run was deleted",
    };
    const STOPPING: Self = Self {
        code: close_code::AWAY,
        reason: "the server stops",
    };
    const BROKEN: Self = Self {
        code: close_code::ERROR,
        reason: "the log cannot be read",
    };
}

/// Why a socket ends: the server closes it, or the peer is gone.
type Ended = Option<Close>;

/// One socket.
struct EventSocket {
    socket: WebSocket,
    /// The types of events to send; all types if the list is empty.
    types: Vec<String>,
    /// When the next ping is due, however busy the run is.
    ping_at: Instant,
    /// Whether the peer did not take a frame at once since it last had all events.
    has_stalled: bool,
    heartbeats: broadcast::Receiver<Heartbeat>,
    shared: Arc<Shared>,
}

impl EventSocket {
    async fn run(mut self, source: Source) {
        let ended = match source {
            Source::Run(position) => self.follow_run(position).await,
            Source::All { notices, positions } => self.follow_all(notices, positions).await,
        };
        if let Some(close) = ended {
            self.close(close).await;
        }
    }

    /// Sends the events of one run.
    async fn follow_run(&mut self, mut position: Position) -> Ended {
        let handle = Arc::clone(&position.handle);
        let mut last_seq = handle.subscribe_seq();
        let mut has_caught_up = false;
        loop {
            let last = *last_seq.borrow_and_update();
            // A replay may take as long as it takes: only live events must not pile up.
            let others = has_caught_up.then(Backlog::default);
            if let Err(ended) = self.send_up_to(&mut position, last, others).await {
                return ended;
            }
            has_caught_up = true;
            if handle.read_live(|run| run.is_deleted) && position.next > *last_seq.borrow() {
                return Some(Close::DELETED);
            }
            let news = async { last_seq.changed().await.ok() };
            if let Err(ended) = self.wait(Some(handle.id()), news).await {
                return ended;
            }
        }
    }

    /// Sends the new events of all runs.
    async fn follow_all(
        &mut self,
        mut notices: broadcast::Receiver<RunNotice>,
        mut positions: HashMap<RunId, Position>,
    ) -> Ended {
        loop {
            let mut received = None;
            let news = async {
                received = Some(notices.recv().await);
                Some(())
            };
            if let Err(ended) = self.wait(None, news).await {
                return ended;
            }
            let RunNotice { handle, last_seq } = match received {
                Some(Ok(notice)) => notice,
                Some(Err(RecvError::Lagged(_))) => return Some(Close::TOO_SLOW),
                Some(Err(RecvError::Closed)) | None => return Some(Close::STOPPING),
            };
            let id = handle.id();
            // A run that was created since begins with its first event.
            let first = || Position { handle, next: 1 };
            let mut position = positions.remove(&id).unwrap_or_else(first);
            let others = positions.values().map(Position::backlog);
            let others = others.fold(Backlog::default(), Backlog::plus);
            let sent = self.send_up_to(&mut position, last_seq, Some(others)).await;
            if let Err(ended) = sent {
                return ended;
            }
            if !position.handle.read_live(|run| run.is_deleted) {
                positions.insert(id, position);
            }
        }
    }

    /// Waits until `news` is ready. Heartbeats are sent meanwhile. The error says how the socket ends
    /// if it ends before that.
    async fn wait(
        &mut self,
        run: Option<RunId>,
        news: impl Future<Output = Option<()>>,
    ) -> Result<(), Ended> {
        let stopping = self.shared.stopping.clone();
        tokio::pin!(news);
        loop {
            tokio::select! {
                // In this order, so that a busy run cannot delay the stop, a close or a ping.
                biased;
                () = stopping.cancelled() => return Err(Some(Close::STOPPING)),
                came = self.socket.recv() => match came {
                    Some(Ok(Message::Close(_))) => {
                        self.finish_close().await;
                        return Err(None);
                    }
                    Some(Err(_)) | None => return Err(None),
                    Some(Ok(_)) => {}
                },
                () = sleep_until(self.ping_at) => self.ping().await?,
                ready = &mut news => return ready.ok_or(Some(Close::STOPPING)),
                beat = self.heartbeats.recv() => match beat {
                    Ok(beat) => self.send_heartbeat(run, beat).await?,
                    // A missed heartbeat is no loss: the next one comes.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(Some(Close::STOPPING)),
                },
            }
        }
    }

    async fn ping(&mut self) -> Result<(), Ended> {
        self.ping_at = Instant::now() + self.shared.config.timeouts.sse_ping;
        let stall = self.shared.config.timeouts.write_stall;
        let ping = Message::Ping(bytes::Bytes::new());
        match timeout(stall, self.socket.send(ping)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(None),
            Err(_) => Err(Some(Close::TOO_SLOW)),
        }
    }

    async fn send_heartbeat(&mut self, run: Option<RunId>, beat: Heartbeat) -> Result<(), Ended> {
        let is_meant = run.is_none_or(|run| run == beat.run) && self.wants(HEARTBEAT);
        let text = is_meant.then(|| serde_json::to_string(&self.shared.runs.heartbeat_event(beat)));
        match text {
            Some(Ok(text)) => self.send_text(text, || false).await,
            Some(Err(_)) | None => Ok(()),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|wanted| wanted == name)
    }

    /// Sends the events of a run up to a number. `others` is what waits in other runs; without it the
    /// client may be as slow as it likes.
    async fn send_up_to(
        &mut self,
        position: &mut Position,
        last: u64,
        others: Option<Backlog>,
    ) -> Result<(), Ended> {
        while position.next <= last {
            let read = position
                .handle
                .read_events(position.next, READ_EVENTS)
                .await;
            let events = read.map_err(|_| Some(Close::BROKEN))?;
            // The log has fewer events than the run has announced. Going on would leave a gap.
            if events.is_empty() {
                return Err(Some(Close::BROKEN));
            }
            for (event, text) in events.iter().zip(render(&position.handle, &events)) {
                if self.wants(event.fact.wire_name()) {
                    let is_too_slow = || {
                        let waiting = others.map(|others| others.plus(position.backlog()));
                        waiting.is_some_and(is_too_much)
                    };
                    self.send_text(text, is_too_slow).await?;
                }
                position.next = event.seq + 1;
            }
            if Instant::now() >= self.ping_at {
                self.ping().await?;
            }
        }
        // With nothing left to send, the client has caught up and begins anew.
        self.has_stalled &= others != Some(Backlog::default());
        Ok(())
    }

    /// Sends one frame. While the peer does not take it, the server counts what waits. A peer that
    /// takes every frame at once is never too slow, however much comes.
    async fn send_text(
        &mut self,
        text: String,
        is_too_slow: impl Fn() -> bool,
    ) -> Result<(), Ended> {
        if self.has_stalled && is_too_slow() {
            return Err(Some(Close::TOO_SLOW));
        }
        let give_up_at = Instant::now() + self.shared.config.timeouts.write_stall;
        let stopping = self.shared.stopping.clone();
        let sent = self.socket.send(Message::Text(text.into()));
        tokio::pin!(sent);
        let mut count_after = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                sent = &mut sent => return sent.map_err(|_| None),
                () = stopping.cancelled() => return Err(Some(Close::STOPPING)),
                () = sleep(count_after) => {
                    self.has_stalled = true;
                    if is_too_slow() || Instant::now() >= give_up_at {
                        return Err(Some(Close::TOO_SLOW));
                    }
                }
            }
            count_after = COUNT_EVERY;
        }
    }

    /// Sends the reason and waits a moment for the peer's answer.
    async fn close(mut self, close: Close) {
        // The buffers of a slow client are full: it learns the reason only after it has read them.
        let within = if close.code == CLOSE_TOO_SLOW {
            self.shared.config.timeouts.write_stall
        } else {
            CLOSE_PAUSE
        };
        let frame = CloseFrame {
            code: close.code,
            reason: close.reason.into(),
        };
        let stopping = self.shared.stopping.clone();
        let is_stopping = stopping.is_cancelled();
        let sent = tokio::select! {
            sent = timeout(within, self.socket.send(Message::Close(Some(frame)))) => sent,
            () = stopping.cancelled(), if !is_stopping => return,
        };
        if matches!(sent, Ok(Ok(()))) {
            self.finish_close().await;
        }
    }

    /// Reads until both sides have closed. Reading also sends the answer to a peer's close.
    async fn finish_close(&mut self) {
        let answered = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        if timeout(CLOSE_PAUSE, answered).await.is_err() {
            tracing::debug!("a client did not answer the close");
        }
    }
}

/// Whether so much waits that the client cannot keep up.
fn is_too_much(waiting: Backlog) -> bool {
    waiting.events > WAITING_EVENTS_MAX || waiting.bytes > WAITING_BYTES_MAX
}

/// The frames of events.
fn render(handle: &Arc<RunHandle>, events: &[Event]) -> Vec<String> {
    let viewer = Viewer::of(handle);
    handle.read(|run| {
        let place = viewer.place(run);
        let view = |event| -> wire::EventView { json::event_view(place, event) };
        let text = |event| serde_json::to_string(&view(event)).unwrap_or_default();
        events.iter().map(text).collect()
    })
}
