//! A small HTTP client of the server: one connection, one request at a time, TLS if wanted.
//!
//! An error response becomes an [`HttpRefusal`] with the server's message and a hint. Bodies are
//! bounded. Exports and event streams may be larger, so they are read as streams.

mod connect;
mod events;
mod refusal;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, HOST, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use turnkeep_wire::{CLI_USER_AGENT, percent_encode};

use crate::failure::Failure;
pub(crate) use connect::Target;
pub(crate) use events::EventStream;
pub(crate) use refusal::{Gap, HttpRefusal};

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
        Self::new(Method::POST, path).with_json(body.to_string())
    }

    /// Sends bytes that are a JSON document.
    pub(crate) fn post_bytes(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path).with_json(body)
    }

    /// Sends bytes of another kind.
    pub(crate) fn post_file(path: impl Into<String>, content_type: &str, body: Bytes) -> Self {
        Self::new(Method::POST, path).with_body(content_type, body)
    }

    /// Changes a part of something by a JSON document.
    pub(crate) fn patch(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PATCH, path).with_json(body.to_string())
    }

    /// Deletes something.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Stores bytes at a path.
    pub(crate) fn put(path: impl Into<String>, content_type: &str, body: Bytes) -> Self {
        Self::new(Method::PUT, path).with_body(content_type, body)
    }

    fn with_json(self, body: impl Into<Bytes>) -> Self {
        self.with_body("application/json", body.into())
    }

    fn with_body(mut self, content_type: &str, body: Bytes) -> Self {
        self.body = body;
        self.header("content-type", content_type)
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
        // Reading the body consumes the response, so the headers come first.
        let replayed = header_text(&response, "idempotency-replayed").is_some();
        let writer_failed = header_text(&response, "writer-failed").map(str::to_owned);
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
        Err(self.read_refusal(response).await)
    }

    /// The refusal in a response whose body is unread.
    pub(crate) async fn read_refusal(&self, response: Response<Incoming>) -> anyhow::Error {
        let status = response.status();
        // If the body cannot be read, the status alone still says something.
        let body = read_body(response).await.unwrap_or_default();
        self.refusal(status, &body).into()
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
        let response = response.map_err(|error| self.no_answer_error(error.error()))?;
        self.connection = Some(sender);
        Ok(response)
    }

    fn no_answer_error(&self, error: &hyper::Error) -> Failure {
        let failure = Failure::new(format!(
            "the server at {} did not answer: {error}",
            self.target
        ));
        failure.hint(
            "--server takes the HTTP address (port 9010 by default), not the one of the binary protocol",
        )
    }

    fn build_request(&self, call: &Call) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.uri());
        request = request.header(HOST, self.target.host_header());
        let version = env!("CARGO_PKG_VERSION");
        request = request.header(USER_AGENT, format!("{CLI_USER_AGENT}{version}"));
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

fn header_text<'a>(response: &'a Response<Incoming>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

async fn read_body(response: Response<Incoming>) -> Result<Bytes> {
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX);
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => anyhow::bail!("cannot read the server's answer: {error}"),
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
}
