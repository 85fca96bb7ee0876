//! The signals that ask a command to end: interrupt, terminate, and the terminal's hang-up.
//!
//! A command that was started to ignore hang-ups, as `nohup` does, goes on ignoring them.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The bit of SIGHUP in a mask of signals.
const HANGUP_BIT: u64 = 1;

/// Listens for the wish to end.
pub(crate) struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl ShutdownSignals {
    /// Listens from now on: none of the signals ends the process by itself any more.
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

    /// Waits until somebody wants the end. May be dropped and called again.
    pub(crate) async fn requested(&mut self) {
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
