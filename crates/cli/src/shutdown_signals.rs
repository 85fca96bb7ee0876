//! The signals that ask a command to end: SIGINT, SIGTERM and SIGHUP.
//!
//! A command that was started with SIGHUP ignored, as `nohup` does, keeps ignoring it.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The bit of SIGHUP in a mask of signals.
const HANGUP_BIT: u64 = 1;

/// Listens for the signals.
pub(crate) struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl ShutdownSignals {
    /// Starts to listen. From now on none of the signals ends the process by itself.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let hang_up = if ignores_hang_ups() {
            None
        } else {
            Some(listen(SignalKind::hangup())?)
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up,
        })
    }

    /// Waits for one of the signals. The future may be dropped and created again.
    pub(crate) async fn requested(&mut self) {
        // Without a listener this branch must never be ready.
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hang_up => {}
        }
    }
}

fn ignores_hang_ups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & HANGUP_BIT != 0)
}
