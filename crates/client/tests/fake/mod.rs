//! A server in this process that answers as a test tells it to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use turnkeep_client::message::{Failure, Item, Welcome};
use turnkeep_client::{Client, ErrorCode, Options, Retry, Timeouts};
use turnkeep_types::{BlobHash, Compression, ContextId, Limits, TurnId};
use turnkeep_wire::{ErrorBody, Frame, Request, Response, Text};

/// What the fake does next on a connection.
pub(crate) enum Act {
    /// Sends a frame under a request id.
    Send(u64, Response),
    /// Sends bytes that may be no frame.
    Bytes(Vec<u8>),
    /// Closes the connection.
    Hangup,
}

/// What came in: on which connection (from 1), under which request id, what.
pub(crate) struct Asked {
    pub(crate) connection: usize,
    pub(crate) id: u64,
    pub(crate) request: Request,
}

type Script = Arc<Mutex<dyn FnMut(Asked) -> Vec<Act> + Send>>;

/// Starts a fake that greets by itself and leaves everything else to the script. Gives its address.
pub(crate) async fn serve(script: impl FnMut(Asked) -> Vec<Act> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let script: Script = Arc::new(Mutex::new(script));
    tokio::spawn(async move {
        for connection in 1.. {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(talk(stream, connection, Arc::clone(&script)));
        }
    });
    addr
}

async fn talk(mut stream: TcpStream, connection: usize, script: Script) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = Frame::split_first(&mut buffer, 1 << 26).unwrap() {
            let id = frame.header.req_id;
            let request = Request::decode(frame, &Limits::default()).unwrap();
            let acts = match request {
                Request::Hello(Some(hello)) if &hello.meta[..] == br#"{"token":"wrong"}"# => {
                    vec![Act::Send(id, error(ErrorCode::Unauthorized)), Act::Hangup]
                }
                Request::Hello(_) => {
                    vec![Act::Send(
                        id,
                        Response::Hello(Welcome {
                            session_id: 1,
                            version: 1,
                        }),
                    )]
                }
                request => (script.lock().unwrap())(Asked {
                    connection,
                    id,
                    request,
                }),
            };
            for act in acts {
                let mut out = BytesMut::new();
                match act {
                    Act::Send(id, response) => response.encode(id, &mut out),
                    Act::Bytes(bytes) => out.extend_from_slice(&bytes),
                    Act::Hangup => return,
                }
                if stream.write_all(&out).await.is_err() {
                    return;
                }
            }
        }
        if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// An error response.
pub(crate) fn error(code: ErrorCode) -> Response {
    error_with(code, serde_json::Map::new())
}

/// An error response with a position among its details, as the server writes it.
pub(crate) fn error_at(code: ErrorCode, name: &str, position: u64) -> Response {
    error_with(
        code,
        serde_json::Map::from_iter([(name.to_owned(), position.to_string().into())]),
    )
}

fn error_with(code: ErrorCode, details: serde_json::Map<String, serde_json::Value>) -> Response {
    let body = ErrorBody {
        code: code.word().into(),
        message: "said the fake".into(),
        details,
    };
    let detail = serde_json::to_string(&body).unwrap();
    Response::Error(Failure {
        status: code.status().into(),
        detail: detail.into(),
    })
}

/// Options whose pauses are too short to notice.
pub(crate) fn options() -> Options {
    let retry = Retry {
        attempts_max: 3,
        first: Duration::from_millis(1),
        longest: Duration::from_millis(1),
    };
    Options {
        retry,
        ..Options::default()
    }
}

pub(crate) async fn connect(addr: &str) -> Client {
    Client::connect(addr, options()).await.unwrap()
}

/// Connects with a time-out for connecting that never ends first, however a test moves the clock.
pub(crate) async fn connect_at_leisure(addr: &str) -> Client {
    let timeouts = Timeouts {
        connect: Duration::from_hours(24 * 365),
        ..Timeouts::default()
    };
    Client::connect(
        addr,
        Options {
            timeouts,
            ..options()
        },
    )
    .await
    .unwrap()
}

pub(crate) fn context(number: u64) -> ContextId {
    ContextId::new(number).unwrap()
}

/// A turn as the server sends it, the child of the one before.
pub(crate) fn item(number: u64, payload: &[u8]) -> Item {
    Item {
        turn: TurnId::new(number).unwrap(),
        parent: TurnId::new(number - 1),
        depth: u32::try_from(number - 1).unwrap(),
        type_id: Text::from("t"),
        type_version: 1,
        encoding: 1,
        compression: Compression::None,
        raw_len: u32::try_from(payload.len()).unwrap(),
        hash: BlobHash::of(payload),
        payload: Bytes::copy_from_slice(payload),
        extra: None,
    }
}
