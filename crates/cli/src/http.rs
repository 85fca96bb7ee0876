//! A small HTTP client of the server: one connection, one request at a time, TLS if wanted.
//!
//! An error response becomes an [`HttpRefusal`] with the server's message and a hint. Bodies are
//! bounded. Exports and event streams may be larger, so they are read as streams.

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

/// The id that stands for "no turn": the head of an empty context, the parent of a first turn.
pub(crate) const NO_TURN: &str = "0";

/// How a person's token begins.
const PERSONS_TOKEN: &str = "tkp.";

/// The largest answer that is read into memory.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A client of one server.
pub(crate) struct Http {
    target: Target,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// Whether no byte of the last request was sent.
    unsent: bool,
}

/// A lost turn in a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) turn: TurnId,
    /// The nearest turn before it that is left.
    pub(crate) earlier: Option<TurnId>,
    /// Its depth, if a later turn reveals it.
    pub(crate) depth: Option<u64>,
}

/// The answer to a write.
pub(crate) struct Written {
    pub(crate) answer: Value,
    /// Whether the server repeated the answer to an earlier request with the same key.
    pub(crate) replayed: bool,
    /// Why a world's attached writer failed, if it did.
    pub(crate) writer_failed: Option<String>,
}

/// A request.
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

    /// Deletes something.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Stores bytes at a path.
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

    /// Adds a query parameter, if there is a value for it.
    pub(crate) fn query_if(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
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
        let bytes = read_body(response).await?;
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
        Ok((response.status(), read_body(response).await?))
    }

    /// Sends a request and reads the response's body, whatever its status is.
    pub(crate) async fn bytes_of_any_status(&mut self, call: Call) -> Result<(StatusCode, Bytes)> {
        let response = self.send(&call).await?;
        Ok((response.status(), read_body(response).await?))
    }

    /// Connects if there is no usable connection. If this fails, no request was sent.
    pub(crate) async fn ensure_connected(&mut self) -> Result<()> {
        if !self.is_connected() {
            self.connection = Some(connect::open_connection(&self.target).await?);
        }
        Ok(())
    }

    /// Whether there is a connection that can take a request.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.as_ref().is_some_and(SendRequest::is_ready)
    }

    /// Marks the next request as not sent, until [`Self::send`] says otherwise.
    pub(crate) fn forget_last(&mut self) {
        self.unsent = true;
    }

    /// Whether the last request failed before anything of it was sent.
    pub(crate) fn was_unsent(&self) -> bool {
        self.unsent
    }

    /// The refusal in an error response to this client's token.
    pub(crate) fn refusal(&self, status: StatusCode, body: &[u8]) -> HttpRefusal {
        HttpRefusal {
            by_person_token: self.has_person_token(),
            ..HttpRefusal::new(status, body)
        }
    }

    /// Whether this client has a person's token, and not the owner's.
    pub(crate) fn has_person_token(&self) -> bool {
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
        Err(self.refusal(status, &body).into())
    }

    /// Sends a request and returns the response, whatever its status, with its body unread.
    pub(crate) async fn send(&mut self, call: &Call) -> Result<Response<Incoming>> {
        let request = self.build_request(call)?;
        self.ensure_connected().await?;
        // Taken out, so that a future that is dropped halfway leaves no broken connection behind.
        let mut sender = self.connection.take().context("there is no connection")?;
        // On failure it returns the request if no byte of it was sent.
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

    fn build_request(&self, call: &Call) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.uri());
        request = request.header(HOST, self.target.host_header());
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

async fn read_body(response: Response<Incoming>) -> Result<Bytes> {
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| anyhow::anyhow!("cannot read the server's answer: {error}"))?;
    Ok(body.to_bytes())
}

/// The command-line options behind the fields of a request.
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

/// The server's message, with the option in place of the field's path. The person gave an option
/// and never saw the path.
fn name_option(message: String, details: Option<&Value>) -> String {
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
pub(crate) struct HttpRefusal {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The error's code.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The ids and values that the error is about, by name.
    pub(crate) details: Value,
    /// Why a ledger rejected a bundle, if that is what happened.
    pub(crate) rejection: Option<String>,
    /// Whether a person's token was refused, and not the owner's.
    pub(crate) by_person_token: bool,
}

impl HttpRefusal {
    /// Reads an error response. A body that is not the server's own, such as a proxy's page, leaves
    /// only the status.
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
        let message = name_option(message, details.as_ref());
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
            by_person_token: false,
        }
    }

    /// The lost turn, if the server refused because damage of the log lost it.
    pub(crate) fn lost_turn(error: &anyhow::Error) -> Option<Gap> {
        let refused = error
            .downcast_ref::<Self>()
            .filter(|refused| refused.status.as_u16() == 500)?;
        // The same status reports a damaged payload. Then the turn itself is there.
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

    /// What the person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let reason = self.reason();
        let hint = match self.code.as_str() {
            "Unauthorized" if self.by_person_token => {
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
            // A hint could reveal what the person may not know: that something exists.
            "NotFound" if self.by_person_token => return None,
            "NotFound" if reason == Some(ErrorReason::WorldUnknown) => {
                "`turnkeep world list` lists the worlds; `turnkeep world new` makes one"
            }
            "NotFound" if reason == Some(ErrorReason::PersonUnknown) => {
                "`turnkeep world person WORLD list` lists those who were added, `… add` adds one"
            }
            "NAME_TAKEN" => "choose another name",
            // The store refuses writes to the contexts of a world.
            "Forbidden" if self.details.get("world_id").is_some() => {
                "`turnkeep world write` and `turnkeep invoke` write to a world"
            }
            "Forbidden" if self.by_person_token => PERSON_TOKEN_HINT,
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
        let refused = HttpRefusal::new(
            StatusCode::NOT_FOUND,
            br#"{"error":{"code":"NotFound","message":"no","details":{}}}"#,
        );
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            ("NotFound", "no")
        );
        let refused = HttpRefusal::new(StatusCode::BAD_GATEWAY, b"<html>");
        assert_eq!(refused.message, "the server answered 502 Bad Gateway");
    }
}
