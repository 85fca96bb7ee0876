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

use crate::error::ApiError;

/// How much of a body that is too large is read and thrown away, so that its sender hears why.
const DISCARD_BYTES_MAX: usize = 256 << 20;

/// How patient and how generous to be with a request's body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    /// Bytes.
    pub(crate) bytes_max: usize,
    /// Time without a byte.
    pub(crate) stall: Duration,
}

/// Reads a body whole.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body, bounds: BodyBounds) -> Result<Bytes, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(len) = declared.filter(|len| *len > bounds.bytes_max as u64) {
        discard(body, bounds.stall).await;
        return Err(ApiError::too_large("body bytes", bounds.bytes_max as u64, len));
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut body, bounds.stall).await? {
        if bytes.len() + chunk.len() > bounds.bytes_max {
            let actual = (bytes.len() + chunk.len()) as u64;
            drop(bytes);
            discard(body, bounds.stall).await;
            return Err(ApiError::too_large("body bytes", bounds.bytes_max as u64, actual));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
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
