//! A client of the server that is as small as it can be.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use turnkeep_wire::runs::exchange_check::{Exchange, check_exchange};

pub(crate) use crate::memory_server::{NOW_MS, Server};
pub(crate) use crate::stopped_time::within;

/// [`NOW_MS`] as text.
pub(crate) const NOW: &str = "2025-12-19T20:00:00.123Z";

/// The type of most payloads here, and the bundle that publishes it.
pub(crate) const MESSAGE: &str = "com.example.Message";

pub(crate) fn message_bundle() -> Value {
    json!({
        "registry_version": 1,
        "bundle_id": "2025-12-19T20:00:00Z#abc/123",
        "types": { MESSAGE: { "versions": { "1": { "fields": {
            "1": { "name": "role", "type": "u8", "enum": "com.example.Role" },
            "2": { "name": "text", "type": "string", "optional": true },
            "3": { "name": "call", "type": "u64", "optional": true },
            "4": { "name": "image", "type": "bytes", "optional": true },
            "5": { "name": "at", "type": "u64", "semantic": "unix_ms", "optional": true },
        } } } } },
        "enums": { "com.example.Role": { "1": "system", "2": "user", "3": "assistant" } }
    })
}

/// The path segment of the bundle's id.
pub(crate) const BUNDLE_PATH: &str = "/v1/registry/bundles/2025-12-19T20%3A00%3A00Z%23abc%2F123";

impl Server {
    /// A server that knows the message type.
    pub(crate) async fn with_messages() -> Self {
        let server = Self::start().await;
        let reply = server.put(BUNDLE_PATH).json(&message_bundle()).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        server
    }

    pub(crate) fn link(&self) -> String {
        self.running.link()
    }

    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        let request = hyper::Request::builder().method(method).uri(path);
        Call {
            addr: self.http_addr(),
            request,
            body: Bytes::new(),
            has_host: false,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.call("GET", path)
    }

    pub(crate) fn put(&self, path: &str) -> Call {
        self.call("PUT", path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Call {
        self.call("POST", path).json(body)
    }

    /// The JSON of a GET that succeeds.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let reply = self.get(path).send().await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// A new context's id.
    pub(crate) async fn context(&self) -> String {
        let reply = self.post("/v1/contexts", &json!({})).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["context_id"].as_str().unwrap().to_owned()
    }

    /// Appends a turn and gives the ack.
    pub(crate) async fn append(&self, context: &str, body: Value) -> Value {
        let reply = self
            .post(&format!("/v1/contexts/{context}/turns"), &body)
            .send()
            .await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()
    }

    /// Appends a message with this text.
    pub(crate) async fn say(&self, context: &str, text: &str) -> Value {
        let data = json!({"role": "user", "text": text});
        self.append(
            context,
            json!({"type_id": MESSAGE, "type_version": 1, "data": data}),
        )
        .await
    }
}

/// A request that is being made.
pub(crate) struct Call {
    addr: SocketAddr,
    request: hyper::http::request::Builder,
    body: Bytes,
    has_host: bool,
}

impl Call {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.has_host |= name.eq_ignore_ascii_case("host");
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    /// The request as it is checked against the schemas.
    fn target(&self) -> Target {
        let method = self.request.method_ref().map(ToString::to_string);
        let path = self.request.uri_ref().map(ToString::to_string);
        Target {
            method: method.unwrap_or_default(),
            path: path.unwrap_or_default(),
            body: serde_json::from_slice(&self.body).ok(),
        }
    }

    fn build(self) -> hyper::Request<Full<Bytes>> {
        let host = self.addr.to_string();
        let request = if self.has_host {
            self.request
        } else {
            self.request.header("host", host)
        };
        request.body(Full::new(self.body)).unwrap()
    }

    /// Sends the request on a connection of its own and reads the whole answer.
    pub(crate) async fn send(self) -> Reply {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        self.send_on(stream).await
    }

    /// The same on a given connection.
    pub(crate) async fn send_on(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Reply {
        let target = self.target();
        let mut response = open(self.build(), stream).await;
        let body = response
            .body_mut()
            .collect()
            .await
            .expect("a whole body")
            .to_bytes();
        let reply = Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        };
        target.check(&reply);
        reply
    }

    /// Sends the request and reads the answer as it comes.
    pub(crate) async fn stream(self) -> Stream {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        Stream {
            response: open(self.build(), stream).await,
            text: String::new(),
        }
    }
}

/// What a request asks for.
struct Target {
    method: String,
    path: String,
    body: Option<Value>,
}

impl Target {
    /// A request to `/api` and its answer fit their schemas.
    fn check(&self, reply: &Reply) {
        let answer = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
        let exchange = Exchange {
            method: &self.method,
            path: &self.path,
            body: self.body.as_ref(),
            status: reply.status,
            answer: &answer,
        };
        if let Err(error) = check_exchange(&exchange) {
            panic!("{error}: {exchange:#?}");
        }
    }
}

async fn open(
    request: hyper::Request<Full<Bytes>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> hyper::Response<Incoming> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    within(sender.send_request(request))
        .await
        .expect("an answer")
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts that it is an error with this status and word, in the one form; gives the details.
    pub(crate) fn error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.json();
        let error = body["error"].as_object().expect("the error form");
        assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
        assert_eq!(
            error.keys().collect::<Vec<_>>(),
            ["code", "message", "details"],
            "{body}"
        );
        assert_eq!(error["code"], code, "{body}");
        assert!(
            !error["message"].as_str().unwrap().is_empty() && error["details"].is_object(),
            "{body}"
        );
        error["details"].clone()
    }
}

/// An answer that goes on.
pub(crate) struct Stream {
    pub(crate) response: hyper::Response<Incoming>,
    text: String,
}

impl Stream {
    /// The next event, without comments; none at the end.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if !block.starts_with(':') {
                    return Some(block);
                }
                continue;
            }
            let chunk = self.chunk().await?;
            self.text.push_str(&chunk);
        }
    }

    /// The next bytes as text; none at the end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let frame = within(self.response.body_mut().frame()).await?.ok()?;
        Some(String::from_utf8(frame.into_data().ok()?.to_vec()).unwrap())
    }
}
