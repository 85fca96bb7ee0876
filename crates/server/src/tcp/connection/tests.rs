use std::net::SocketAddr;

use tokio::io::ReadBuf;
use turnkeep_journal::MemoryStorage;
use turnkeep_store::{Options, Store};
use turnkeep_types::{ManualClock, Timestamp};

use super::*;
use crate::config::ServerConfig;
use crate::run::{BoundAddrs, build_shared};

fn tcp(store: &Store) -> Arc<Tcp> {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let addrs = BoundAddrs {
        tcp: nowhere,
        http: nowhere,
    };
    let shared = build_shared(ServerConfig::default(), store.clone(), clock, addrs);
    Arc::new(Tcp::new(shared.unwrap()))
}

/// A stream of some bytes that never lets itself be shut down, as one whose peer reads nothing may.
struct Clinging(&'static [u8]);

impl AsyncRead for Clinging {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Clinging {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn no_peer_keeps_us_from_hanging_up() {
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let store = Store::open(Arc::new(MemoryStorage::new()), &Options::default(), clock).unwrap();
    // A peer that leaves, and one that we refuse for a frame that is too long.
    for bytes in [&b""[..], &[0xff; 16][..]] {
        let ended = tokio::time::timeout(
            Duration::from_mins(1),
            Connection::new(Clinging(bytes), tcp(&store), None).run(),
        );
        assert!(
            ended.await.is_ok_and(|ended| ended.is_ok()),
            "{} bytes",
            bytes.len()
        );
    }
    store.close();
}
