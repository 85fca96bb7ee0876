//! `turnkeep watch`: shows the terminal of a shared session, live.
//!
//! On a terminal, a banner in the last row names the session and the key that leaves. If the session
//! is as high as this terminal, the banner covers one of its rows. Then it disappears after a few
//! seconds: the command watches anew, gets the whole screen again and paints it without the banner.

mod keys;

use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, Winsize};
use serde_json::json;
use tokio::sync::Notify;
use turnkeep_client::broker::AsyncConnection;
use turnkeep_types::broker::{Paint, ServerMessage, SessionInfo, Shown};

use super::App;
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, connect_to_broker_async, explain_broker_error};
use crate::names::SessionName;
use crate::render::{printable, shorten_to_columns};
use crate::shutdown_signals::ShutdownSignals;
use keys::KeyReader;

/// Resets a terminal to a usable state, whatever the session did to it.
const LEAVE: &[u8] =
    b"\x18\x1b\\\x1b[?2026l\x1b[?1049l\x1b[!p\x1b[r\x1b[?7h\x1b[?1l\x1b[?1000l\x1b[?1002l\x1b[?1003l\
    \x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[<u\x1b[>4m\x1b(B\x0f\x1b[?25h\x1b[m\x1b[999;1H\r\n";

/// Watch the terminal of a shared session
///
/// Shows what the terminal shows, and goes on until the session ends or q or Ctrl-C is typed.
/// Nothing that is typed here reaches the session. Only sessions that were started with `turnkeep
/// wrap --share` can be watched. With --json, each piece is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep wrap --share --name review -- claude   # in one terminal
  turnkeep watch review                           # in another one")]
pub(crate) struct WatchArgs {
    /// The session: its name, its id, a unique head of its id, or @last
    session: SessionName,
}

/// How long a banner covers a row of the session.
const BANNER_TIME: Duration = Duration::from_secs(3);

pub(crate) async fn run_watch(args: &WatchArgs, app: &mut App) -> Result<()> {
    let sessions = KnownSessions::fetch(&mut connect_to_broker()?)?;
    let session = sessions.find_session(&args.session)?;
    let mut broker = open_watch(&session.session).await?;
    let keyboard = Keyboard::acquire(app.out.is_screen())?;
    let banner = keyboard
        .is_some()
        .then(|| banner_text(&sessions.display_name(session), session));
    let mut watched = WatchedSession {
        session: session.session.clone(),
        banner,
        covered: false,
    };
    let shown = follow_screen(&mut broker, keyboard.as_ref(), &mut watched, app).await;
    if keyboard.is_some() {
        app.out.bytes(LEAVE)?;
        app.out.flush()?;
    }
    // The terminal must be usable again before the last line is printed.
    drop(keyboard);
    if let WatchEnd::Ended = shown? {
        eprintln!("the session has ended");
    }
    Ok(())
}

/// Starts to watch on a new connection.
async fn open_watch(session: &str) -> Result<AsyncConnection> {
    let mut broker = connect_to_broker_async().await?;
    broker.watch(session).await.map_err(explain_broker_error)?;
    Ok(broker)
}

/// Why watching ended.
enum WatchEnd {
    /// The session has ended.
    Ended,
    /// The person left.
    Left,
}

/// The session that is watched, and the banner over it.
struct WatchedSession {
    session: String,
    /// `None` without a terminal, or after the banner has been shown for long enough.
    banner: Option<String>,
    /// Whether the banner covers a row of the session.
    covered: bool,
}

impl WatchedSession {
    async fn remove_banner(&mut self, broker: &mut AsyncConnection) {
        self.banner = None;
        self.covered = false;
        // Only a new watcher gets the whole screen. If the broker accepts no more watchers, the
        // banner's row is repainted when the program paints it.
        if let Ok(again) = open_watch(&self.session).await {
            *broker = again;
        }
    }

    /// Paints the banner, if a whole screen has just been painted over it.
    fn paint_banner(&mut self, shown: &Shown, app: &mut App) -> Result<()> {
        let Some(text) = self.banner.as_ref().filter(|_| shown.paint != Paint::Bytes) else {
            return Ok(());
        };
        let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stdout()) else {
            return Ok(());
        };
        // A higher terminal has a free row for the banner, which may then stay.
        self.covered = size.ws_row <= shown.rows;
        app.out.bytes(&banner_bytes(text, size))
    }
}

/// The banner's text: the session, and how to leave.
fn banner_text(name: &str, session: &SessionInfo) -> String {
    let preset = session
        .preset
        .as_deref()
        .map(|preset| format!(" ({})", printable(preset)));
    format!(
        " watching {name}{}, read-only: q leaves ",
        preset.unwrap_or_default()
    )
}

async fn follow_screen(
    broker: &mut AsyncConnection,
    keyboard: Option<&Keyboard>,
    watched: &mut WatchedSession,
    app: &mut App,
) -> Result<WatchEnd> {
    let mut shutdown = ShutdownSignals::listen()?;
    // Without a keyboard, nothing ever notifies.
    let never = Notify::new();
    let left = keyboard.map_or(&never, |keyboard| &keyboard.left);
    let banner_ends = tokio::time::sleep(BANNER_TIME);
    tokio::pin!(banner_ends);
    loop {
        tokio::select! {
            said = broker.next_notification() => match said.map_err(explain_broker_error)? {
                ServerMessage::Screen(shown) => show_screen(&shown, watched, app)?,
                ServerMessage::WatchEnded { .. } => return Ok(WatchEnd::Ended),
                _ => {}
            },
            () = &mut banner_ends, if watched.covered => {
                watched.remove_banner(broker).await;
            }
            () = left.notified() => return Ok(WatchEnd::Left),
            () = shutdown.requested() => return Ok(WatchEnd::Left),
        }
    }
}

fn show_screen(shown: &Shown, watched: &mut WatchedSession, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        app.out.json(&json!({
            "cols": shown.cols,
            "rows": shown.rows,
            "repaint": shown.paint != Paint::Bytes,
            "content_b64": STANDARD.encode(&shown.content),
        }))?;
    } else {
        app.out.bytes(&shown.content)?;
        watched.paint_banner(shown, app)?;
    }
    app.out.flush()
}

/// Bytes that paint the banner into the last row, after a whole screen. The cursor returns to its
/// place.
fn banner_bytes(text: &str, size: Winsize) -> Vec<u8> {
    let text = shorten_to_columns(text, size.ws_col.into());
    format!(
        "\x1b7\x1b[{};1H\x1b[0;7m{text}\x1b[0m\x1b[K\x1b8",
        size.ws_row
    )
    .into_bytes()
}

/// The keyboard while a person watches: nothing is echoed, and every key but q and Ctrl-C is ignored.
/// The terminal's answers to the program's queries arrive here too, and are ignored as well.
struct Keyboard {
    before: Termios,
    left: Arc<Notify>,
    /// Dropping it ends the reading thread: its poll sees the closed pipe.
    bell: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Takes the keyboard, if both input and output are a terminal.
    fn acquire(is_screen: bool) -> Result<Option<Self>> {
        let stdin = rustix::stdio::stdin();
        if !is_screen || !rustix::termios::isatty(stdin) {
            return Ok(None);
        }
        let (heard, bell) = io::pipe().context("cannot make a pipe")?;
        let left = Arc::new(Notify::new());
        Ok(Some(Self {
            before: set_raw_mode()?,
            reader: start_reader(heard, Arc::clone(&left)),
            left,
            bell: Some(bell),
        }))
    }
}

/// Switches the terminal to raw mode, and returns the settings that it had.
fn set_raw_mode() -> Result<Termios> {
    let stdin = rustix::stdio::stdin();
    let before =
        rustix::termios::tcgetattr(stdin).context("cannot read the terminal's settings")?;
    let mut raw = before.clone();
    raw.make_raw();
    rustix::termios::tcsetattr(stdin, OptionalActions::Now, &raw)
        .context("cannot take the keyboard")?;
    Ok(before)
}

/// Starts the thread that reads keys. Without the thread, a signal still ends the command.
fn start_reader(heard: PipeReader, left: Arc<Notify>) -> Option<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("keyboard".to_owned());
    let reader = thread.spawn(move || {
        read_until_leave(&heard);
        left.notify_one();
    });
    reader.ok()
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        drop(self.bell.take());
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
        let stdin = rustix::stdio::stdin();
        // Both fail only if the terminal is gone, and then there is nothing to restore.
        rustix::termios::tcflush(stdin, QueueSelector::IFlush).ok();
        rustix::termios::tcsetattr(stdin, OptionalActions::Now, &self.before).ok();
    }
}

/// Reads keys until q or Ctrl-C is pressed, the keyboard is gone, or the other end of `bell` is
/// dropped.
fn read_until_leave(bell: &PipeReader) {
    let stdin = rustix::stdio::stdin();
    let mut pressed = KeyReader::default();
    while wait_for_keys(bell) {
        let mut typed = [0; 1024];
        match rustix::io::read(stdin, &mut typed) {
            Ok(0) | Err(_) => return,
            Ok(read) if pressed.want_to_leave(typed.get(..read).unwrap_or_default()) => return,
            Ok(_) => {}
        }
    }
}

/// Waits until there are keys to read. Returns false if reading is over.
fn wait_for_keys(bell: &PipeReader) -> bool {
    let stdin = rustix::stdio::stdin();
    loop {
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(bell, PollFlags::IN),
        ];
        // A signal interrupts the wait, for example when the terminal's size changes.
        if rustix::event::poll(&mut fds, None).is_err_and(|error| error != Errno::INTR) {
            return false;
        }
        let [has_keys, is_over] = fds.map(|fd| !fd.revents().is_empty());
        if is_over || has_keys {
            return !is_over;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_stands_in_the_last_row_and_fits() {
        let session = SessionInfo {
            preset: Some("claude".to_owned()),
            ..SessionInfo::default()
        };
        let text = banner_text("review", &session);
        assert_eq!(text, " watching review (claude), read-only: q leaves ");
        let size = Winsize {
            ws_row: 24,
            ws_col: 10,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        assert_eq!(
            banner_bytes(&text, size),
            "\x1b7\x1b[24;1H\x1b[0;7m watching…\x1b[0m\x1b[K\x1b8".as_bytes()
        );
    }
}
