//! The bridge's connection to the store's current server, and how a message gets its answer.
//!
//! The server may belong to another agent and end with it. Then another process serves the
//! directory, or this one does. The bridge sends an unanswered message again to the new server.
//! That is safe for a write, because each write has an id and the ledger executes an id once.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use super::message::Message;
use crate::answer::text_at;
use crate::config::Config;
use crate::data_dir::{DataDir, ServerNote};
use crate::failure::Failure;
use crate::http::Http;
use crate::session::{Need, StoreSession};

/// How often a message is sent, and the pause between two attempts.
const TRIES_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// No more attempts after this time: a single attempt may take long, because it looks for a server.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// The server's response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// A connection to the store's current server.
pub(super) struct ServerConnection<'a> {
    config: &'a Config,
    session: StoreSession,
    /// Whether the session was found since the last connection was lost.
    is_fresh: bool,
}

impl<'a> ServerConnection<'a> {
    pub(super) async fn open(config: &'a Config) -> Result<Self> {
        Ok(Self {
            config,
            session: Self::find_server(config).await?,
            is_fresh: true,
        })
    }

    /// Finds the store's server, or becomes it and leaves a note for other commands.
    async fn find_server(config: &Config) -> Result<StoreSession> {
        let session = StoreSession::open(config, Need::Write).await?;
        if let Some(own) = session.own_addresses() {
            let note = ServerNote {
                pid: std::process::id(),
                http: own.http,
                tcp: own.tcp,
                tls_cert: None,
                passing: true,
            };
            DataDir::new(&config.data.value).leave_note(&note)?;
        }
        Ok(session)
    }

    /// The client of the server that was found last.
    pub(super) fn http(&self) -> &Http {
        &self.session.http
    }

    /// Sends a message, again if need be, and waits for its answer.
    pub(super) async fn send_until_answered(&mut self, message: &Message) -> Result<Answer> {
        // Whether any attempt may have been executed, although its answer was lost.
        let mut may_be_done = false;
        let begun = Instant::now();
        for tries in 1.. {
            let is_last = tries == TRIES_MAX || begun.elapsed() > GIVE_UP_AFTER;
            let error = match self.send_once(message).await {
                Ok(answer) if is_last || !is_shutdown_notice(&answer) => return Ok(answer),
                Ok(_) => Failure::new("the server is shutting down").into(),
                Err(error) => error,
            };
            // One attempt that may have arrived is enough, however many others certainly did not.
            may_be_done |= !self.session.http.was_unsent();
            if may_be_done && !message.may_be_repeated() {
                return Err(error.context("whether it was carried out is not known"));
            }
            if is_last {
                return Err(if may_be_done {
                    unknown_outcome(error, message)
                } else {
                    error
                });
            }
            tokio::time::sleep(PAUSE).await;
            self.is_fresh = false;
        }
        unreachable!("the last try returns")
    }

    /// Sends a message once, over a connection to the directory's present server.
    async fn send_once(&mut self, message: &Message) -> Result<Answer> {
        self.ensure_connected().await?;
        let http = &mut self.session.http;
        let (status, body) = http.bytes_of_any_status(message.to_call()).await?;
        Ok(Answer { status, body })
    }

    /// Connects if there is no connection. After a lost connection it looks for the server first:
    /// another program may listen at the old address by now.
    pub(super) async fn ensure_connected(&mut self) -> Result<()> {
        self.session.http.forget_last();
        if !self.is_fresh && !self.session.http.is_connected() && self.may_be_replaced() {
            self.session = Self::find_server(self.config).await?;
            self.session.http.forget_last();
        }
        self.session.http.ensure_connected().await?;
        self.is_fresh = false;
        Ok(())
    }

    /// Whether another server may take over the directory. A named server and this process's own
    /// server stay the same.
    fn may_be_replaced(&self) -> bool {
        self.config.server.value.is_none() && !self.session.is_own()
    }

    pub(super) async fn close(self) {
        if self.session.is_own() {
            DataDir::new(&self.config.data.value).remove_note();
        }
        self.session.close().await;
    }
}

/// Whether the answer only says that the server is shutting down. Then the next server answers.
fn is_shutdown_notice(answer: &Answer) -> bool {
    // A tool's failure is a result of the protocol, so its HTTP status is 200.
    if !matches!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::OK
    ) || answer.body.len() >= ENDING_BYTES_MAX
    {
        return false;
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = text_at(&body, "/result/structuredContent/error/code")
        .or_else(|| text_at(&body, "/error/code"));
    code.is_some_and(|code| code == "Unavailable")
}

/// A shutdown notice is short. A longer answer need not be parsed.
const ENDING_BYTES_MAX: usize = 4096;

/// The error of a message that got no answer and may have been executed.
fn unknown_outcome(error: anyhow::Error, message: &Message) -> anyhow::Error {
    match message.write_id() {
        Some(id) => error.context(format!(
            "no server answers, so whether it was written is not known: write it again with \
             request_id `{id}`, and it is written once"
        )),
        None => error,
    }
}
