//! `GET /ws?session=S`: a shared terminal over a WebSocket, for the owner, on a loopback listener
//! only.
//!
//! Binary messages are the terminal's bytes. Before each repaint and each change of size comes a text
//! message `{"type":"screen","cols":C,"rows":R,"repaint":B}`: the terminal's size, and whether the
//! next binary message paints the whole screen. The server reads and ignores what the peer sends. If
//! the session cannot be watched or has ended, the server closes the socket with a code and the
//! broker's word for the reason.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use turnkeep_types::broker::{Paint, Reason, Shown};
use turnkeep_wire::ErrorCode;

use super::sessions::local_broker;
use crate::broker::{InProcessBroker, TerminalEvent, TerminalWatch};
use crate::error::ApiError;
use crate::shared::Shared;

/// The longest message that a peer may send. Its content is ignored.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How long a peer may take to answer a close.
const CLOSE_PAUSE: Duration = Duration::from_secs(1);
/// Our own close codes: 4000 plus the HTTP status with the same meaning.
const CLOSE_NOT_SHARED: u16 = 4403;
const CLOSE_NOT_FOUND: u16 = 4404;
const CLOSE_GONE: u16 = 4410;
const CLOSE_BUSY: u16 = 4429;

/// Shows a terminal.
pub(crate) fn watch(
    shared: &Arc<Shared>,
    session: String,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let broker = local_broker(shared)?;
    let upgrade = upgrade.map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
    let place = shared.connections.try_open();
    let place = place
        .ok_or_else(|| ApiError::new(ErrorCode::Unavailable, "too many connections are open"))?;
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX);
    let shared = Arc::clone(shared);
    Ok(upgrade.on_upgrade(async move |socket| {
        let terminal = TerminalSocket {
            socket,
            shared: Arc::clone(&shared),
            size: None,
        };
        shared.spawn(async move {
            terminal.run(&broker, &session).await;
            drop(place);
        });
    }))
}

/// One socket that shows one terminal.
struct TerminalSocket {
    socket: WebSocket,
    shared: Arc<Shared>,
    /// The size that the peer knows.
    size: Option<ScreenSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScreenSize {
    cols: u16,
    rows: u16,
}

/// Why the server closes a socket.
struct Ending {
    code: u16,
    word: &'static str,
}

impl TerminalSocket {
    async fn run(mut self, broker: &InProcessBroker, session: &str) {
        let ending = match broker.watch(session) {
            Ok(watch) => self.follow(&watch).await,
            Err(refusal) => Some(Ending {
                code: close_code_for(refusal.reason),
                word: refusal.reason.word(),
            }),
        };
        if let Some(ending) = ending {
            self.close(ending).await;
        }
    }

    /// Shows the terminal until something ends it. Returns how to close; none if the peer is gone.
    async fn follow(&mut self, watch: &TerminalWatch) -> Option<Ending> {
        let stopping = self.shared.stopping.clone();
        let period = self.shared.config.timeouts.sse_ping;
        let mut ping_at = Instant::now() + period;
        loop {
            tokio::select! {
                // In this order, so that a busy terminal cannot delay the stop or a close.
                biased;
                () = stopping.cancelled() => return Some(Ending {
                    code: close_code::AWAY,
                    word: "the server stops",
                }),
                came = self.socket.recv() => match came {
                    Some(Ok(Message::Close(_))) => {
                        self.finish_close().await;
                        return None;
                    }
                    Some(Err(_)) | None => return None,
                    Some(Ok(_)) => {}
                },
                () = sleep_until(ping_at) => {
                    ping_at = Instant::now() + period;
                    self.socket.send(Message::Ping(bytes::Bytes::new())).await.ok()?;
                }
                event = watch.next_event() => match event {
                    TerminalEvent::Shown(shown) => self.show(&shown).await.ok()?,
                    TerminalEvent::Ended => return Some(Ending {
                        code: CLOSE_GONE,
                        word: Reason::SessionDisconnected.word(),
                    }),
                },
            }
        }
    }

    async fn show(&mut self, shown: &Shown) -> Result<(), axum::Error> {
        let Shown { cols, rows, .. } = *shown;
        let size = Some(ScreenSize { cols, rows });
        let repaint = shown.paint != Paint::Bytes;
        if repaint || self.size != size {
            self.size = size;
            let head = json!({ "type": "screen", "cols": cols, "rows": rows, "repaint": repaint });
            let head = Message::Text(head.to_string().into());
            self.socket.send(head).await?;
        }
        if !shown.content.is_empty() {
            let content = Message::Binary(shown.content.clone());
            self.socket.send(content).await?;
        }
        Ok(())
    }

    /// Sends the reason and waits a moment for the peer's answer.
    async fn close(mut self, ending: Ending) {
        let frame = CloseFrame {
            code: ending.code,
            reason: ending.word.into(),
        };
        if self.socket.send(Message::Close(Some(frame))).await.is_ok() {
            self.finish_close().await;
        }
    }

    /// Reads until both sides have closed. Reading also sends the answer to a peer's close.
    async fn finish_close(&mut self) {
        let answered = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        if timeout(CLOSE_PAUSE, answered).await.is_err() {
            tracing::debug!("a watcher did not answer the close");
        }
    }
}

fn close_code_for(reason: Reason) -> u16 {
    match reason {
        Reason::NotShared => CLOSE_NOT_SHARED,
        Reason::SessionNotFound => CLOSE_NOT_FOUND,
        Reason::SessionDisconnected => CLOSE_GONE,
        Reason::Busy => CLOSE_BUSY,
        _ => close_code::ERROR,
    }
}
