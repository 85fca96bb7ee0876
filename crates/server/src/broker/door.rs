//! The broker's door: where connections come in, and what puts the socket back when somebody took
//! it away.
//!
//! A cleaner of temporary files may remove the socket of a broker that runs. Nobody could reach it
//! then, and nobody could take its place while it holds the lock: so it looks from time to time,
//! and listens anew. One whose lock was removed too gives way when another broker has taken the
//! place meanwhile.

use std::path::Path;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use super::socket::{Socket, SocketError};

/// How long to wait after an accept that failed, as it does when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the socket is looked for while nobody comes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A socket that is listened on.
pub(super) struct Door {
    socket: Socket,
    listener: UnixListener,
    /// Whether it was said that the socket cannot be put back.
    has_complained: bool,
}

impl Door {
    /// Takes the place and listens.
    pub(super) fn open(path: &Path, uid: u32) -> Result<Self, SocketError> {
        let (socket, listener) = Socket::bind(path, uid)?;
        Ok(Self {
            socket,
            listener,
            has_complained: false,
        })
    }

    /// The next who comes; nobody any more when another broker has the place. May be dropped and
    /// called again.
    pub(super) async fn next(&mut self) -> Option<UnixStream> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => return Some(stream),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the broker could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                // Nobody comes to a socket that is not there, so this is never put off for long.
                () = tokio::time::sleep(LOOK_EVERY) => self.put_back()?,
            }
        }
    }

    /// Listens anew if the socket is not there any more; nothing when another broker has the place.
    fn put_back(&mut self) -> Option<()> {
        match self.socket.bind_again() {
            Ok(None) => {}
            Ok(Some(listener)) => {
                tracing::warn!("the broker's socket was removed; it is there again");
                (self.listener, self.has_complained) = (listener, false);
            }
            Err(SocketError::AlreadyRunning(_)) => {
                tracing::warn!("another broker has taken the place of this one");
                return None;
            }
            Err(error) => {
                if !self.has_complained {
                    tracing::warn!(%error, "the broker's socket was removed and cannot be put back");
                }
                self.has_complained = true;
            }
        }
        Some(())
    }

    /// Removes the socket, then gives up the place.
    pub(super) fn close(self) {
        drop(self.listener);
        self.socket.remove();
    }
}
