//! Bodies: requests read within bounds of size and patience, responses streamed from a bounded channel.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::sync::mpsc;
use turnkeep_wire::ErrorCode;

use crate::convert;
use crate::error::ApiError;
use crate::memory::{LARGE_FROM_BYTES, Memory, Room};

/// How much of a body that is too large is read and thrown away, so that its sender hears why.
const DISCARD_BYTES_MAX: usize = 256 << 20;

/// How patient and how generous to be with a request's body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    /// Bytes.
    pub(crate) bytes_max: usize,
    /// Time without a byte.
    pub(crate) stall: Duration,
    /// Time until the last byte.
    pub(crate) whole: Duration,
}

/// Reads a body whole. A large one takes room as it arrives and keeps it as long as its bytes live.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds,
    memory: &Memory,
) -> Result<Bytes, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let whole = async {
        let mut arriving = Arriving { body, bounds, bytes: BytesMut::new(), room: None };
        match arriving.collect(declared, memory).await {
            Ok(()) => Ok(arriving.finish()),
            Err(error) if matches!(error.code, ErrorCode::TooLarge | ErrorCode::TooManyRequests) => {
                discard(arriving.into_body(), bounds.stall).await;
                Err(error)
            }
            Err(error) => Err(error),
        }
    };
    let late = || ApiError::bad_request("the body did not arrive in time");
    tokio::time::timeout(bounds.whole, whole).await.unwrap_or_else(|_| Err(late()))
}

/// A body on its way.
struct Arriving {
    body: Body,
    bounds: BodyBounds,
    bytes: BytesMut,
    room: Option<Room>,
}

impl Arriving {
    async fn collect(&mut self, declared: Option<u64>, memory: &Memory) -> Result<(), ApiError> {
        self.check(declared.unwrap_or(0))?;
        while let Some(chunk) = next_chunk(&mut self.body, self.bounds.stall).await? {
            let len = self.bytes.len() + chunk.len();
            self.check(len as u64)?;
            if len >= LARGE_FROM_BYTES && len > self.bytes.capacity() {
                self.grow(len, memory).await?;
            }
            self.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }

    fn check(&self, len: u64) -> Result<(), ApiError> {
        convert::within("body bytes", self.bounds.bytes_max, len)
    }

    /// Doubles the buffer within the limit, when there is room for it.
    async fn grow(&mut self, len: usize, memory: &Memory) -> Result<(), ApiError> {
        let grown = (2 * len).min(self.bounds.bytes_max);
        if let Some(lacking) = memory.lacking(self.room.as_ref(), grown) {
            self.room = Some(memory.take(lacking).await?.joined(self.room.take()));
        }
        self.bytes.reserve(grown - self.bytes.len());
        Ok(())
    }

    fn finish(self) -> Bytes {
        match self.room {
            Some(room) => room.hold(self.bytes),
            None => self.bytes.freeze(),
        }
    }

    /// The rest of the body, without what has come of it.
    fn into_body(self) -> Body {
        self.body
    }
}

async fn next_chunk(body: &mut Body, stall: Duration) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = match tokio::time::timeout(stall, body.frame()).await {
            Err(_) => return Err(ApiError::bad_request("the body stopped arriving")),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(ApiError::bad_request("the body was cut short")),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn discard(mut body: Body, stall: Duration) {
    let mut left = DISCARD_BYTES_MAX;
    while let Ok(Some(chunk)) = next_chunk(&mut body, stall).await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// A response's body that somebody else writes; it ends when the sender is dropped.
#[derive(Debug)]
pub(crate) struct ChannelBody(mpsc::Receiver<std::io::Result<Bytes>>);

impl ChannelBody {
    /// A body and its writing end, which waits when `chunks` are not yet taken.
    pub(crate) fn new(chunks: usize) -> (mpsc::Sender<std::io::Result<Bytes>>, Self) {
        let (sender, receiver) = mpsc::channel(chunks);
        (sender, Self(receiver))
    }
}

impl hyper::body::Body for ChannelBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
