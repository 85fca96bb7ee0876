//! Turns signals into bytes on a pipe, so that the byte path can wait for them as for everything
//! else.
//!
//! A signal that the wrapper was started to ignore (`nohup`) stays ignored, and the child inherits
//! that. The listening thread ends with the process.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;

use super::process::{signal_from_number, watch_faults};

/// The signals that are handled, beside the real-time signals. All but WINCH are forwarded to the
/// child.
const SIGNALS: [Signal; 17] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TERM,
    Signal::TSTP,
    Signal::CONT,
    Signal::WINCH,
    // These are rarely sent on purpose, but would end us with the terminal raw.
    Signal::STKFLT,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
];

/// The numbers of the real-time signals: each ends a process that does not handle it. The C library
/// keeps the first ones for itself.
const REAL_TIME: RangeInclusive<i32> = if cfg!(target_env = "musl") {
    35..=64
} else {
    34..=64
};

/// Whether a signal requests our end.
pub(super) fn requests_end(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM
    )
}

/// The received signals.
#[derive(Debug)]
pub(super) struct Signals {
    received: PipeReader,
}

impl Signals {
    /// Starts to listen; no signal is lost after this returns.
    pub(super) fn listen() -> io::Result<Self> {
        let (received, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&received, true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let entered = runtime.enter();
        let ignored = ignored_mask();
        let all = SIGNALS
            .iter()
            .map(|signal| signal.as_raw())
            .chain(REAL_TIME);
        let streams: Vec<(i32, tokio::signal::unix::Signal)> = all
            // Handling an ignored signal would undo `nohup`.
            .filter(|number| ignored & (1 << (number - 1)) == 0)
            .map(|number| {
                Ok((
                    number,
                    tokio::signal::unix::signal(SignalKind::from_raw(number))?,
                ))
            })
            .collect::<io::Result<_>>()?;
        drop(entered);
        watch_faults();
        let body = move || runtime.block_on(forward_signals(streams, writer));
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(body)?;
        Ok(Self { received })
    }

    /// The descriptor that becomes readable at a signal.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.received.as_fd()
    }

    /// The signals since the last call, in order.
    pub(super) fn take_received(&mut self) -> Vec<Signal> {
        let mut bytes = [0; 64];
        let read = self.received.read(&mut bytes).unwrap_or_default();
        let numbers = bytes.into_iter().take(read);
        numbers
            .filter_map(|number| signal_from_number(i32::from(number)))
            .collect()
    }
}

/// Writes the number of each signal to the pipe, until the process ends.
async fn forward_signals(streams: Vec<(i32, tokio::signal::unix::Signal)>, writer: PipeWriter) {
    let writer = std::rc::Rc::new(writer);
    let local = tokio::task::LocalSet::new();
    for (number, mut stream) in streams {
        let writer = writer.clone();
        let number = u8::try_from(number).unwrap_or_default();
        local.spawn_local(async move {
            while stream.recv().await.is_some() && (&*writer).write_all(&[number]).is_ok() {}
        });
    }
    local.await;
}

/// The signals that this process was started to ignore, as a mask.
fn ignored_mask() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
