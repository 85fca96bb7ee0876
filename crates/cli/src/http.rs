//! A small HTTP client for the gateway: one connection, one request at a time, TLS when asked for.
//!
//! An answer that is an error becomes a [`Failure`] with the server's words and what to do about
//! it. Bodies are bounded; what may be larger (exports, event streams) is read as a stream.

mod connect;
mod events;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use turnkeep_types::TurnId;
use turnkeep_wire::{ErrorReason, percent_encode};

use crate::failure::Failure;
pub(crate) use connect::Target;
pub(crate) use events::EventStream;

/// How a person's token begins.
const PERSONS_TOKEN: &str = "tkp.";

/// The largest answer that is read into memory.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A client of one server.
pub(crate) struct Http {
    target: Target,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// Whether nothing of the last request left this process.
    unsent: bool,
}

/// A lost turn in a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) turn: TurnId,
    /// What the context held before it, if that is left.
    pub(crate) earlier: Option<TurnId>,
    /// Its depth, where a later turn tells it.
    pub(crate) depth: Option<u64>,
}

/// What a write is answered.
pub(crate) struct Written {
    /// The JSON.
    pub(crate) answer: Value,
    /// Whether it only repeats what an earlier request with the same key did.
    pub(crate) replayed: bool,
    /// Why a world's attached writer failed, if it was asked and did.
    pub(crate) writer_failed: Option<String>,
}

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Reads something.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates something from a JSON document.
    pub(crate) fn post(path: impl Into<String>, body: &Value) -> Self {
        let mut call = Self::new(Method::POST, path).header("content-type", "application/json");
        call.body = body.to_string().into();
        call
    }

    /// Sends bytes that are a JSON document.
    pub(crate) fn post_bytes(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut call = Self::new(Method::POST, path).header("content-type", "application/json");
        call.body = body.into();
        call
    }

    /// Changes a part of something by a JSON document.
    pub(crate) fn patch(path: impl Into<String>, body: &Value) -> Self {
        let mut call = Self::new(Method::PATCH, path).header("content-type", "application/json");
        call.body = body.to_string().into();
        call
    }

    /// Takes something away.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Puts bytes where they belong.
    pub(crate) fn put(path: impl Into<String>, content_type: &str, body: Bytes) -> Self {
        let mut call = Self::new(Method::PUT, path).header("content-type", content_type);
        call.body = body;
        call
    }

    /// Adds a query parameter.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "texts and numbers alike, as they come"
    )]
    pub(crate) fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Adds a header.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "texts and numbers alike, as they come"
    )]
    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    fn uri(&self) -> String {
        let mut uri = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            uri.push(if index == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            uri.push_str(&percent_encode(value));
        }
        uri
    }
}

impl Http {
    /// A client of the server at `target`; connects when first used.
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            connection: None,
            unsent: false,
        }
    }

    /// Where the server is.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a request and reads the JSON that answers it; `null` for an answer without a body.
    pub(crate) async fn json(&mut self, call: Call) -> Result<Value> {
        let bytes = self.bytes(call).await?.1;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).context("the server's answer is not JSON")
    }

    /// Sends a write and reads what answers it.
    pub(crate) async fn write(&mut self, call: Call) -> Result<Written> {
        let response = self.open(call).await?;
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let replayed = header("idempotency-replayed").is_some();
        let writer_failed = header("writer-failed").map(str::to_owned);
        let bytes = read(response).await?;
        let answer = serde_json::from_slice(&bytes).context("the server's answer is not JSON")?;
        Ok(Written {
            answer,
            replayed,
            writer_failed,
        })
    }

    /// Sends a request and reads the bytes that answer it.
    pub(crate) async fn bytes(&mut self, call: Call) -> Result<(StatusCode, Bytes)> {
        let response = self.open(call).await?;
        Ok((response.status(), read(response).await?))
    }

    /// Sends a request and reads the bytes that answer it, also those of an error.
    pub(crate) async fn whatever(&mut self, call: Call) -> Result<(StatusCode, Bytes)> {
        let response = self.send(&call).await?;
        Ok((response.status(), read(response).await?))
    }

    /// Makes sure that there is a connection. Where this fails nothing was asked.
    pub(crate) async fn reach(&mut self) -> Result<()> {
        if !self.is_connected() {
            self.connection = Some(connect::connect(&self.target).await?);
        }
        Ok(())
    }

    /// Whether there is a connection that can take a request.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.as_ref().is_some_and(SendRequest::is_ready)
    }

    /// Begins a request of which nothing was sent yet.
    pub(crate) fn forget_last(&mut self) {
        self.unsent = true;
    }

    /// Sends a request and gives back whatever answers it, with its body unread.
    pub(crate) async fn answer(&mut self, call: Call) -> Result<Response<Incoming>> {
        self.send(&call).await
    }

    /// Whether the last request failed before anything of it was sent.
    pub(crate) fn was_unsent(&self) -> bool {
        self.unsent
    }

    /// What an answer with an error's status says to whoever has this client's token.
    pub(crate) fn refused(&self, status: StatusCode, body: &[u8]) -> Refused {
        Refused {
            of_a_person: self.is_a_person(),
            ..Refused::new(status, body)
        }
    }

    /// Whether this client has a person's token, and not the owner's.
    pub(crate) fn is_a_person(&self) -> bool {
        self.target
            .token()
            .is_some_and(|token| token.starts_with(PERSONS_TOKEN))
    }

    /// Sends a request and gives back the answer with its body unread. An error answer is a
    /// failure.
    pub(crate) async fn open(&mut self, call: Call) -> Result<Response<Incoming>> {
        let response = self.send(&call).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
            .collect()
            .await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        Err(self.refused(status, &body).into())
    }

    async fn send(&mut self, call: &Call) -> Result<Response<Incoming>> {
        let request = self.request(call)?;
        self.reach().await?;
        let mut sender = self.connection.take().context("there is no connection")?;
        let response = sender.try_send_request(request).await;
        self.unsent = response
            .as_ref()
            .is_err_and(|error| error.message().is_some());
        let response = response.map_err(|error| {
            Failure::new(format!("the server at {} did not answer: {}", self.target, error.error())).hint(
                "--server takes the HTTP address (port 9010 by default), not the one of the binary protocol",
            )
        })?;
        self.connection = Some(sender);
        Ok(response)
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.uri());
        request = request.header(HOST, self.target.host());
        if let Some(token) = self.target.token() {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        request
            .body(Full::new(call.body.clone()))
            .context("cannot build the request")
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes> {
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| anyhow::anyhow!("cannot read the server's answer: {error}"))?;
    Ok(body.to_bytes())
}

/// The options from which the paths of a request come.
const OPTIONS: &[(&str, &str)] = &[
    ("declared_overrides.time.declared_world_time", "--time"),
    ("declared_overrides.time.timezone", "--timezone"),
    ("tool.constraints.time_window.from", "--from"),
    ("tool.constraints.time_window.to", "--to"),
    ("tool.constraints.time_window", "--from and --to"),
    ("tool.constraints.limit", "-n"),
    ("tool.constraints.context", "--context"),
    ("tool.query_text", "the query"),
];

/// The server's sentence with the option in place of the path, which is all that a person gave.
fn in_options(message: String, details: Option<&Value>) -> String {
    let path = details
        .and_then(|details| details.get("path")?.as_str())
        .unwrap_or_default();
    match OPTIONS.iter().find(|(known, _)| *known == path) {
        Some((path, option)) => message.replacen(path, option, 1),
        None => message,
    }
}

/// What a person may do with a token.
const PERSON_TOKEN_HINT: &str = "a person's token opens what is that person's, and nothing else";

/// The server's refusal.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The canonical word.
    pub(crate) code: String,
    /// The server's sentence.
    pub(crate) message: String,
    /// What it is about, by name.
    pub(crate) details: Value,
    /// Why a ledger rejected a bundle, if that is what happened.
    pub(crate) rejection: Option<String>,
    /// Whether a person's token was refused, and not the owner's.
    pub(crate) of_a_person: bool,
}

impl Refused {
    /// What an answer with an error's status says.
    pub(crate) fn new(status: StatusCode, body: &[u8]) -> Self {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let field = |name: &str| {
            let error = parsed.as_ref()?.get("error")?;
            error.get(name)?.as_str().map(str::to_owned)
        };
        let code = field("code").unwrap_or_else(|| status.as_u16().to_string());
        let message = field("message").unwrap_or_else(|| format!("the server answered {status}"));
        let details = parsed
            .as_ref()
            .and_then(|body| body.pointer("/error/details"))
            .cloned();
        let message = in_options(message, details.as_ref());
        let rejection = parsed
            .as_ref()
            .and_then(|body| body.pointer("/bundle/rejection/reason")?.as_str());
        let rejection = rejection.map(str::to_owned);
        Self {
            status,
            code,
            message,
            details: details.unwrap_or_default(),
            rejection,
            of_a_person: false,
        }
    }

    /// The turn that was lost to damage of the log, if that is why.
    pub(crate) fn lost_turn(error: &anyhow::Error) -> Option<Gap> {
        let refused = error
            .downcast_ref::<Self>()
            .filter(|refused| refused.status.as_u16() == 500)?;
        let of_a_blob = refused.details.get("hash").is_some();
        let id = |name: &str| refused.details.get(name)?.as_str()?.parse().ok();
        let next_depth = refused.details.get("next_depth").and_then(Value::as_u64);
        let depth = next_depth.and_then(|next| next.checked_sub(1));
        Some(Gap {
            turn: id("turn_id").filter(|_| !of_a_blob)?,
            earlier: id("earlier_turn_id"),
            depth,
        })
    }

    /// What the person may do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let reason = self.reason();
        let hint = match self.code.as_str() {
            "Unauthorized" if self.of_a_person => {
                "it may have ended or been revoked: whoever gave it to you can mint another"
            }
            "Unauthorized" => {
                "give the server's token with --token, or the server's data directory with --data"
            }
            "Forbidden" if reason == Some(ErrorReason::HostNotAllowed) => {
                "the server does not accept this host: start it with --allow-host, or use its own address"
            }
            "FailedDependency" => {
                "publish the type first: turnkeep registry put BUNDLE.json; or send bytes as they are with --msgpack"
            }
            "PreconditionFailed" => "publish the type first: turnkeep registry put BUNDLE.json",
            "TooManyRequests" => "the server is busy: try again in a moment",
            "Unavailable" if reason == Some(ErrorReason::WorldUnreadable) => {
                "`turnkeep doctor` checks what else may be wrong"
            }
            "Unavailable" => "restart the server; `turnkeep doctor` checks what may be wrong",
            "InsufficientStorage" => "free some space on the data directory's disk and try again",
            "TooLarge" => {
                "`turnkeep config show` lists the limits; the server takes others under [limits] in its configuration file"
            }
            "NotFound" if self.of_a_person => return None,
            "NotFound" if reason == Some(ErrorReason::WorldUnknown) => {
                "`turnkeep world list` lists the worlds; `turnkeep world new` makes one"
            }
            "NotFound" if reason == Some(ErrorReason::PersonUnknown) => {
                "`turnkeep world person WORLD list` lists those who were added, `… add` adds one"
            }
            "NAME_TAKEN" => "choose another name",
            "Forbidden" if self.details.get("world_id").is_some() => {
                "`turnkeep world write` and `turnkeep invoke` write to a world"
            }
            "Forbidden" if self.of_a_person => PERSON_TOKEN_HINT,
            "OPERATOR_FORBIDDEN" | "VIEW_FORBIDDEN" => PERSON_TOKEN_HINT,
            "REQUEST_ID_REUSED" => "a key stands for one request: take a new one for another",
            "IN_PROGRESS" => "the same request still runs: ask again in a moment",
            "BAD_CURSOR" => {
                "cursors belong to one world and one reader: leave it out to start anew"
            }
            "TIME_REGRESSION" => {
                "a world's time never goes back: `turnkeep world show WORLD` tells it"
            }
            "NotFound" => self.missing_hint(),
            "Conflict" => return self.conflict_hint(),
            "Unprocessable" if reason == Some(ErrorReason::FieldMissing) => {
                "`turnkeep registry types TYPE@VERSION` lists the fields; --allow-missing appends without this one"
            }
            "Unprocessable" if reason == Some(ErrorReason::FieldUnknown) => {
                "`turnkeep registry types TYPE@VERSION` lists the fields"
            }
            "DecodeError" if self.status.is_server_error() => {
                "`turnkeep verify` lists what is damaged"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    fn reason(&self) -> Option<ErrorReason> {
        ErrorReason::from_details(self.details.as_object()?)
    }

    fn missing_hint(&self) -> &'static str {
        let is_about = |name: &str| self.details.get(name).is_some();
        if is_about("context_id") {
            "`turnkeep ctx list` lists the contexts"
        } else if is_about("turn_id") {
            "`turnkeep log CONTEXT` lists the turns of a context"
        } else if is_about("hash") {
            "`turnkeep blob put FILE` keeps one and prints its hash"
        } else if is_about("bundle_id") || is_about("type_id") {
            "`turnkeep registry types` lists the types; `turnkeep registry put FILE` publishes a bundle"
        } else {
            "check that the server is of the same version as this command"
        }
    }

    fn conflict_hint(&self) -> Option<String> {
        let detail = |name: &str| self.details.get(name).and_then(Value::as_str);
        if let (Some(head), Some(context)) = (detail("actual_head_turn_id"), detail("context_id")) {
            return Some(format!(
                "somebody appended first: look with `turnkeep ctx show {context}`, then try again with --expected-head {head}"
            ));
        }
        let key_reused = self.reason() == Some(ErrorReason::KeyReused);
        key_reused.then(|| "a key stands for one request: take a new one for another".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_encodes_its_query() {
        let call = Call::get("/v1/x").query("a", "1 2").query("b", "#/é");
        assert_eq!(call.uri(), "/v1/x?a=1%202&b=%23%2F%C3%A9");
    }

    #[test]
    fn a_refusal_has_the_servers_words_or_at_least_its_status() {
        let refused = Refused::new(
            StatusCode::NOT_FOUND,
            br#"{"error":{"code":"NotFound","message":"no","details":{}}}"#,
        );
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            ("NotFound", "no")
        );
        let refused = Refused::new(StatusCode::BAD_GATEWAY, b"<html>");
        assert_eq!(refused.message, "the server answered 502 Bad Gateway");
    }
}
