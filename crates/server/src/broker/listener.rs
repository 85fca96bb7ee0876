//! Accepts the broker's connections, and puts the socket back if its file was removed.
//!
//! A cleaner of temporary files may remove the socket of a running broker. Clients could no longer
//! reach this broker, and no other broker could start while this one holds the lock. So the
//! listener checks the file periodically and binds the socket again. If the lock file was removed
//! too, another broker may have started meanwhile; then [`BrokerListener::accept`] returns `None`
//! and this broker stops.

use std::path::Path;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use super::socket::{BoundSocket, SocketError};

/// How long to wait after an accept that failed, for example because no file descriptor was free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the listener checks that the socket's file exists.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Another broker listens on this broker's path.
struct Replaced;

/// The broker's listening socket.
pub(super) struct BrokerListener {
    socket: BoundSocket,
    listener: UnixListener,
    /// Whether the current failure to bind again was logged.
    has_logged_failure: bool,
}

impl BrokerListener {
    /// Locks the path and listens on it.
    pub(super) fn open(path: &Path, uid: u32) -> Result<Self, SocketError> {
        let (socket, listener) = BoundSocket::bind(path, uid)?;
        Ok(Self {
            socket,
            listener,
            has_logged_failure: false,
        })
    }

    /// Waits for the next connection. Returns `None` when another broker has replaced this one. The
    /// future may be dropped at any time without losing a connection.
    pub(super) async fn accept(&mut self) -> Option<UnixStream> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => return Some(stream),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the broker could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                // Connections restart this timer. That is harmless: a socket without a file gets no
                // connections, so the check comes when it is needed.
                () = tokio::time::sleep(CHECK_EVERY) => {
                    if let Err(Replaced) = self.restore_socket() {
                        return None;
                    }
                }
            }
        }
    }

    /// Binds the socket again if its file was removed. Other failures are logged once and tried
    /// again at the next check.
    fn restore_socket(&mut self) -> Result<(), Replaced> {
        match self.socket.bind_again() {
            Ok(None) => {}
            Ok(Some(listener)) => {
                tracing::warn!("the broker's socket was removed; it is there again");
                self.listener = listener;
                self.has_logged_failure = false;
            }
            Err(SocketError::AlreadyRunning(_)) => {
                tracing::warn!("another broker has taken the place of this one");
                return Err(Replaced);
            }
            Err(error) => {
                if !self.has_logged_failure {
                    tracing::warn!(%error, "the broker's socket was removed and cannot be put back");
                }
                self.has_logged_failure = true;
            }
        }
        Ok(())
    }

    /// Removes the socket's file, then releases the lock.
    pub(super) fn close(self) {
        // Clients that connect from now on get an error instead of a wait.
        drop(self.listener);
        self.socket.remove();
    }
}
