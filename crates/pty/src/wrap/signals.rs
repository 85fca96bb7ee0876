//! Signals become bytes on a pipe, so that the byte path can wait for them as for everything else.
//!
//! A signal that the wrapper was started to ignore (`nohup`) stays ignored, and the child inherits
//! that. The thread that listens ends with the process.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;

use super::process::{signal_of, watch_faults};

/// What is listened for, beside the real-time signals. Everything but WINCH is passed on to the
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
    // Nobody sends these to be heard, but they would end us with the terminal raw.
    Signal::STKFLT,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
];

/// The numbers of the real-time signals: each ends a process that does not listen. The first are
/// the C library's own.
const REAL_TIME: RangeInclusive<i32> = if cfg!(target_env = "musl") {
    35..=64
} else {
    34..=64
};

/// Whether a signal asks us to end.
pub(super) fn ends(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM
    )
}

/// The signals that came.
#[derive(Debug)]
pub(super) struct Signals {
    came: PipeReader,
}

impl Signals {
    /// Starts to listen; when this returns, no signal is lost.
    pub(super) fn listen() -> io::Result<Self> {
        let (came, teller) = io::pipe()?;
        rustix::io::ioctl_fionbio(&came, true)?;
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
        let body = move || runtime.block_on(tell_all(streams, teller));
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(body)?;
        Ok(Self { came })
    }

    /// Where signals can be waited for.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }

    /// The signals that came since the last call, in order.
    pub(super) fn take(&mut self) -> Vec<Signal> {
        let mut bytes = [0; 64];
        let read = self.came.read(&mut bytes).unwrap_or_default();
        let numbers = bytes.into_iter().take(read);
        numbers
            .filter_map(|number| signal_of(i32::from(number)))
            .collect()
    }
}

/// Writes the number of each signal to the pipe, until the process ends.
async fn tell_all(streams: Vec<(i32, tokio::signal::unix::Signal)>, teller: PipeWriter) {
    let teller = std::rc::Rc::new(teller);
    let local = tokio::task::LocalSet::new();
    for (number, mut stream) in streams {
        let teller = teller.clone();
        let number = u8::try_from(number).unwrap_or_default();
        local.spawn_local(async move {
            while stream.recv().await.is_some() && (&*teller).write_all(&[number]).is_ok() {}
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
