//! A stream that closes slowly enough for the peer to read the last answer.
//!
//! If a socket is closed while bytes of the peer are unread, the system sends a reset, and the peer
//! may lose the answer. So when a request was refused before its body was read, the stream first
//! shuts down its sending side. It then reads and discards for a moment, bounded in bytes and time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long a peer may go on sending.
const LINGER: Duration = Duration::from_secs(1);
/// How many bytes it may send meanwhile.
const LINGER_BYTES_MAX: usize = 8 << 20;

/// Whether the peer may still be sending a body that no handler reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

impl Unread {
    /// Sets it.
    pub(crate) fn set(&self, unread: bool) {
        self.0.store(unread, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stream that waits for its peer at the end if there is an unread body.
#[derive(Debug)]
pub(crate) struct Lingering<S> {
    stream: S,
    unread: Unread,
    ending: Option<Ending>,
}

/// The phase after the sending side was shut down.
#[derive(Debug)]
struct Ending {
    bytes_left: usize,
    alarm: Pin<Box<Sleep>>,
}

impl<S> Lingering<S> {
    /// A stream that lingers if `unread` says so when it ends.
    pub(crate) fn new(stream: S, unread: Unread) -> Self {
        Self {
            stream,
            unread,
            ending: None,
        }
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Discards bytes. Ready when the peer has ended too, or has used up its time or bytes.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(ending) = &mut self.ending else {
            return Poll::Ready(());
        };
        // The alarm first: a peer that sends without a pause would otherwise never be cut off.
        let mut space = [0; 4096];
        loop {
            if ending.alarm.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            let bytes = buffer.filled().len();
            match ending.bytes_left.checked_sub(bytes) {
                Some(left) if read.is_ok() && bytes > 0 => ending.bytes_left = left,
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ending.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.unread.get() {
                return Poll::Ready(Ok(()));
            }
            let alarm = Box::pin(tokio::time::sleep(LINGER));
            self.ending = Some(Ending {
                bytes_left: LINGER_BYTES_MAX,
                alarm,
            });
        }
        self.poll_discard(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn lingering(unread: bool) -> (Lingering<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(64);
        let flag = Unread::default();
        flag.set(unread);
        (Lingering::new(near, flag), far)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_the_end_is_thrown_away_until_the_peer_ends() {
        let (mut near, mut far) = lingering(true);
        let peer = async {
            far.write_all(&[7; 1000]).await.unwrap();
            assert_eq!(
                far.read(&mut [0; 8]).await.unwrap(),
                0,
                "it was told that nothing comes"
            );
            drop(far);
        };
        let (ended, ()) = tokio::join!(near.shutdown(), peer);
        ended.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_ends_is_left() {
        let (mut near, far) = lingering(true);
        let before = tokio::time::Instant::now();
        near.shutdown().await.unwrap();
        assert_eq!(before.elapsed().as_secs(), LINGER.as_secs());
        drop(far);
        let (mut near, mut far) = lingering(true);
        let endless = async { while far.write_all(&[7; 64]).await.is_ok() {} };
        let shutdown = async {
            near.shutdown().await.unwrap();
            drop(near);
        };
        tokio::join!(shutdown, endless);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_when_everything_was_read() {
        let (mut near, far) = lingering(false);
        let before = tokio::time::Instant::now();
        near.shutdown().await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
        drop(far);
    }
}
