//! A stream that disconnects a peer that reads nothing.
//!
//! A slow reader is served slowly. A write that makes no progress for the given time fails, so no
//! response and no event stream is held for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream whose writes fail when they make no progress for a while.
#[derive(Debug)]
pub(crate) struct StallGuard<S> {
    stream: S,
    patience: Duration,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    /// Guards `stream`.
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            alarm: None,
        }
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        // Any progress starts the time again: only a peer that takes no byte at all is stalled.
        if progress.is_ready() {
            self.alarm = None;
            return progress;
        }
        let patience = self.patience;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match alarm.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_peer_who_takes_nothing_is_given_up() {
        let (near, mut far) = tokio::io::duplex(8);
        let mut guard = StallGuard::new(near, Duration::from_secs(30));
        guard.write_all(b"12345678").await.unwrap();
        let error = guard.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut taken = [0; 8];
        far.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"12345678");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_who_takes_some_now_and_then_is_served() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut guard = StallGuard::new(near, Duration::from_secs(30));
        let writer = tokio::spawn(async move { guard.write_all(b"abcd").await });
        for expect in b"abcd" {
            tokio::time::advance(Duration::from_secs(29)).await;
            assert_eq!(far.read_u8().await.unwrap(), *expect);
        }
        writer.await.unwrap().unwrap();
    }
}
