//! The user's terminal: raw while the child runs, and restored on every way out.
//!
//! The settings to restore are kept in one place for the whole process, so that the end of the
//! wrapper, its suspension and a panic all restore the same ones, once. Standard output is opened
//! again where the system allows it, because `O_NONBLOCK` on the descriptor that the shell shares
//! would outlive us.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::termios::{OptionalActions, Termios, Winsize};

/// The size of a terminal that reports none.
const SIZE_DEFAULT: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

static SAVED_SETTINGS: Mutex<Option<Termios>> = Mutex::new(None);
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard input and output of the wrapper. Dropping it restores the terminal's settings.
#[derive(Debug)]
pub(super) struct UserTerminal {
    is_terminal: bool,
    shows_output: bool,
    output: Option<OwnedFd>,
}

impl UserTerminal {
    /// Inspects the standard streams and changes nothing yet.
    pub(super) fn open() -> Self {
        let is_terminal = rustix::termios::isatty(rustix::stdio::stdin());
        let shows_output = rustix::termios::isatty(rustix::stdio::stdout());
        Self {
            is_terminal,
            shows_output,
            output: reopen(rustix::stdio::stdout(), "/proc/self/fd/1").ok(),
        }
    }

    /// Whether standard output is a terminal.
    pub(super) fn shows_output(&self) -> bool {
        self.shows_output
    }

    /// Whether standard input is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The settings that the child's terminal starts with.
    pub(super) fn initial_settings(&self) -> Option<Termios> {
        rustix::termios::tcgetattr(rustix::stdio::stdin())
            .ok()
            .filter(|_| self.is_terminal)
    }

    /// The size of the terminal on any of the three streams; it may be zero by zero.
    pub(super) fn size() -> Winsize {
        let streams = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        // A stream may be redirected, and some terminals report zero by zero.
        let sizes = streams.map(|fd| rustix::termios::tcgetwinsize(fd).ok());
        let mut known = sizes.into_iter().flatten();
        let with_area = known
            .clone()
            .find(|size| size.ws_col > 0 && size.ws_row > 0);
        with_area.or_else(|| known.next()).unwrap_or(SIZE_DEFAULT)
    }

    /// The size of the screen that the child most likely paints for, where the terminal reports
    /// none.
    pub(super) fn screen_size() -> Winsize {
        let Winsize { ws_col, ws_row, .. } = Self::size();
        let or = |size: u16, default: u16| if size == 0 { default } else { size };
        Winsize {
            ws_col: or(ws_col, SIZE_DEFAULT.ws_col),
            ws_row: or(ws_row, SIZE_DEFAULT.ws_row),
            ..SIZE_DEFAULT
        }
    }

    /// Whether we may read input and change settings without being stopped for it.
    pub(super) fn is_foreground(&self) -> bool {
        if !self.is_terminal {
            return true;
        }
        let group = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
        group.map_or(true, |group| group == rustix::process::getpgrp())
    }

    /// Makes the terminal raw. Does nothing without a terminal, in the background, or when it is
    /// raw already.
    pub(super) fn enter_raw(&self) -> io::Result<()> {
        let mut before = lock(&SAVED_SETTINGS);
        if !self.is_terminal || !self.is_foreground() || before.is_some() {
            return Ok(());
        }
        let settings = rustix::termios::tcgetattr(rustix::stdio::stdin())?;
        let mut raw = settings.clone();
        self.make_raw(&mut raw);
        rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        *before = Some(settings);
        Ok(())
    }

    /// Makes the terminal raw again after a stop: another job may have changed its settings, even
    /// if we did not restore ours before. The settings that are restored in the end stay the same.
    pub(super) fn enter_raw_again(&self) -> io::Result<()> {
        if self.is_terminal && self.is_foreground() && lock(&SAVED_SETTINGS).is_some() {
            let mut raw = rustix::termios::tcgetattr(rustix::stdio::stdin())?;
            self.make_raw(&mut raw);
            rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        }
        self.enter_raw()
    }

    /// Makes settings raw. Where the child's output goes to a pipe, the program behind the pipe
    /// still writes to this terminal, so output processing stays on.
    fn make_raw(&self, settings: &mut Termios) {
        let output_modes = settings.output_modes;
        settings.make_raw();
        if !self.shows_output {
            settings.output_modes = output_modes;
        }
    }

    /// The descriptor for the child's output.
    pub(super) fn output(&self) -> BorrowedFd<'_> {
        match &self.output {
            Some(output) => output.as_fd(),
            None => rustix::stdio::stdout(),
        }
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal's settings, if they were changed and are not restored yet.
pub(super) fn restore() {
    restore_settings(&mut lock(&SAVED_SETTINGS));
}

/// Restores the settings in a signal handler, where nothing may wait.
pub(super) fn restore_at_fault() {
    if let Ok(mut before) = SAVED_SETTINGS.try_lock() {
        restore_settings(&mut before);
    }
}

fn restore_settings(before: &mut Option<Termios>) {
    if let Some(settings) = before.take() {
        // A terminal that is gone has no settings.
        rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &settings).ok();
    }
}

/// Opens a standard stream again, with a file description of its own that does not block.
pub(super) fn reopen(stream: BorrowedFd<'_>, path: &str) -> rustix::io::Result<OwnedFd> {
    let stat = rustix::fs::fstat(stream)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    // A regular file opened again would start at its beginning, and a socket cannot be.
    if !matches!(kind, FileType::CharacterDevice | FileType::Fifo) {
        return Err(rustix::io::Errno::INVAL);
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Installs a panic hook. A panic of the byte path restores the terminal before it is printed. One
/// of another thread is kept for [`take_panic`], because nothing may write over the child's screen.
pub(super) fn guard_against_panic() {
    let main = std::thread::current().id();
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        // The main thread runs the byte path; after its panic the terminal is free.
        if std::thread::current().id() == main {
            restore();
            tell(panic);
        } else {
            *lock(&LAST_PANIC) = Some(panic.to_string());
        }
    }));
}

/// The message of the last panic beside the byte path.
pub(super) fn take_panic() -> Option<String> {
    lock(&LAST_PANIC).take()
}
