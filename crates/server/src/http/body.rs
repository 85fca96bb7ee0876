//! Bodies. A request's body is read within limits of size and time. A response's body may be
//! streamed from a bounded channel.

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

use crate::convert;
use crate::error::ApiError;
use crate::memory::{ArrivingBytes, LARGE_FROM_BYTES, MemoryBudget};

/// The limits of a request's body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    /// Bytes.
    pub(crate) bytes_max: usize,
    /// Time without a byte.
    pub(crate) stall: Duration,
    /// Time until the last byte.
    pub(crate) whole: Duration,
}

/// Reads a whole body. A large one takes a memory permit as it arrives, and its bytes keep the permit
/// as long as they live. A body that declares too many bytes is refused before any of it is read. The
/// server reads no more of a body that it has refused.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds,
    memory: &MemoryBudget,
) -> Result<Bytes, ApiError> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let whole = async {
        let mut arriving = Arriving {
            body,
            bounds,
            bytes: BytesMut::new(),
            large: None,
        };
        arriving.collect(declared, memory).await?;
        Ok(arriving.finish())
    };
    let late = || ApiError::bad_request("the body did not arrive in time");
    tokio::time::timeout(bounds.whole, whole)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// A body that is arriving.
struct Arriving {
    body: Body,
    bounds: BodyBounds,
    bytes: BytesMut,
    /// The bytes, once the body is large.
    large: Option<ArrivingBytes>,
}

impl Arriving {
    async fn collect(
        &mut self,
        declared: Option<u64>,
        memory: &MemoryBudget,
    ) -> Result<(), ApiError> {
        // A body that is too long by its own account is refused before it is sent.
        self.check_len(declared.unwrap_or(0))?;
        while let Some(chunk) = next_chunk(&mut self.body, self.bounds.stall).await? {
            let len = self.len() + chunk.len();
            self.check_len(len as u64)?;
            if len >= LARGE_FROM_BYTES {
                self.append_large(declared, &chunk, memory).await?;
            } else {
                self.bytes.extend_from_slice(&chunk);
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.large
            .as_ref()
            .map_or(self.bytes.len(), |large| large.filled().len())
    }

    fn check_len(&self, len: u64) -> Result<(), ApiError> {
        convert::within("body bytes", self.bounds.bytes_max, len)
    }

    /// Waits for a permit and appends to the large bytes. The small bytes that came before move
    /// there first.
    async fn append_large(
        &mut self,
        declared: Option<u64>,
        chunk: &[u8],
        memory: &MemoryBudget,
    ) -> Result<(), ApiError> {
        let large = if let Some(large) = &mut self.large {
            large
        } else {
            let declared = declared.and_then(|len| usize::try_from(len).ok());
            let most = declared
                .unwrap_or(self.bounds.bytes_max)
                .max(self.bytes.len() + chunk.len());
            self.large.insert(ArrivingBytes::new(most)?)
        };
        let more = self.bytes.len() + chunk.len();
        // Memory was planned for the declared length.
        if more > large.bytes_left() {
            return Err(ApiError::bad_request("the body is longer than it says"));
        }
        if let Some(wanted) = large.wanted(more) {
            large.cover(wanted, wanted.acquire(memory).await?);
        }
        large.append(&std::mem::take(&mut self.bytes));
        large.append(chunk);
        Ok(())
    }

    fn finish(self) -> Bytes {
        match self.large {
            Some(large) => large.finish(),
            None => self.bytes.freeze(),
        }
    }
}

/// The next bytes of a body; none at its end.
pub(crate) async fn next_chunk(
    body: &mut Body,
    stall: Duration,
) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = match tokio::time::timeout(stall, body.frame()).await {
            Err(_) => return Err(ApiError::bad_request("the body stopped arriving")),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(ApiError::bad_request("the body was cut short")),
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers carry nothing that a route uses.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// A response's body that another task writes. It ends when the sender is dropped.
#[derive(Debug)]
pub(crate) struct ChannelBody(mpsc::Receiver<std::io::Result<Bytes>>);

impl ChannelBody {
    /// A body and its sender, which waits while `chunks` are unread.
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
        self.0
            .poll_recv(context)
            .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
