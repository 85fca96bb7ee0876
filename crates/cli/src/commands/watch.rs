//! `turnkeep watch`: a shared session's terminal, as it is and as it goes on.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios};
use serde_json::json;
use tokio::sync::Notify;
use turnkeep_client::broker::AsyncConnection;
use turnkeep_types::broker::{Paint, Role, ServerMessage, Shown};

use super::App;
use crate::broker::{ANSWER_WITHIN, connect, explained, name, socket};
use crate::ending::Ending;

/// Puts a terminal back into a state in which a person can work, whatever was shown on it.
const LEAVE: &[u8] =
    b"\x18\x1b\\\x1b[?2026l\x1b[?1049l\x1b[!p\x1b[r\x1b[?7h\x1b[?1l\x1b[?1000l\x1b[?1002l\x1b[?1003l\
    \x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[<u\x1b[>4m\x1b(B\x0f\x1b[?25h\x1b[m\x1b[999;1H\r\n";

/// Watch the terminal of a shared session
///
/// Shows what the terminal shows, and goes on until the session ends or Ctrl-C is typed. Nothing that is
/// typed here reaches the session. Only sessions that were started with `turnkeep wrap --share` can be
/// watched. With --json, each piece is an object on a line of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep wrap --share --name review -- claude      in one terminal
  turnkeep watch review                              in another one")]
pub(crate) struct Args {
    /// The session: its id, a unique head of it, its name, or @last
    session: String,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let session = name::session(&mut connect()?, &args.session)?;
    let opened = AsyncConnection::open(&socket()?, Role::Client, ANSWER_WITHIN).await;
    let mut broker = opened.map_err(explained)?;
    broker.watch(&session.session).await.map_err(explained)?;
    let keyboard = Keyboard::take(app.out.is_screen())?;
    let shown = follow(&mut broker, keyboard.as_ref(), app).await;
    if keyboard.is_some() {
        app.out.bytes(LEAVE)?;
        app.out.flush()?;
    }
    drop(keyboard);
    if let How::Ended = shown? {
        eprintln!("the session has ended");
    }
    Ok(())
}

/// How watching ends.
enum How {
    /// The session has gone.
    Ended,
    /// The person has seen enough.
    Left,
}

async fn follow(broker: &mut AsyncConnection, keyboard: Option<&Keyboard>, app: &mut App) -> Result<How> {
    let mut ending = Ending::listen()?;
    let never = Notify::new();
    let left = keyboard.map_or(&never, |keyboard| &keyboard.left);
    loop {
        tokio::select! {
            said = broker.next_unasked() => match said.map_err(explained)? {
                ServerMessage::Screen(shown) => show(&shown, app)?,
                ServerMessage::WatchEnded { .. } => return Ok(How::Ended),
                _ => {}
            },
            () = left.notified() => return Ok(How::Left),
            () = ending.asked() => return Ok(How::Left),
        }
    }
}

fn show(shown: &Shown, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        app.out.json(&json!({
            "cols": shown.cols,
            "rows": shown.rows,
            "repaint": shown.paint != Paint::Bytes,
            "content_b64": STANDARD.encode(&shown.content),
        }))?;
    } else {
        app.out.bytes(&shown.content)?;
    }
    app.out.flush()
}

/// The keyboard while somebody watches: nothing is echoed, and all that is typed is thrown away but the
/// wish to leave. The terminal answers the program's queries here too; nobody is to see those either.
struct Keyboard {
    before: Termios,
    left: Arc<Notify>,
    /// Dropping it ends the thread that reads.
    bell: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Takes it, if a person sits at both ends.
    fn take(is_screen: bool) -> Result<Option<Self>> {
        let stdin = rustix::stdio::stdin();
        if !is_screen || !rustix::termios::isatty(stdin) {
            return Ok(None);
        }
        let before = rustix::termios::tcgetattr(stdin).context("cannot read the terminal's settings")?;
        let (heard, bell) = io::pipe().context("cannot make a pipe")?;
        let left = Arc::new(Notify::new());
        let leave = Arc::clone(&left);
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(stdin, OptionalActions::Now, &raw).context("cannot take the keyboard")?;
        let reader = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            read_until_leave(&heard);
            leave.notify_one();
        });
        Ok(Some(Self { before, left, bell: Some(bell), reader: reader.ok() }))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        drop(self.bell.take());
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
        let stdin = rustix::stdio::stdin();
        // A terminal that is gone has no settings.
        rustix::termios::tcflush(stdin, QueueSelector::IFlush).ok();
        rustix::termios::tcsetattr(stdin, OptionalActions::Now, &self.before).ok();
    }
}

/// Throws away what is typed until Ctrl-C is, the keyboard is gone, or the other end of `bell` is dropped.
fn read_until_leave(bell: &PipeReader) {
    let stdin = rustix::stdio::stdin();
    loop {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        if rustix::event::poll(&mut fds, None).is_err_and(|error| error != Errno::INTR) {
            return;
        }
        let [keys, bell] = fds.map(|fd| !fd.revents().is_empty());
        let mut typed = [0; 1024];
        let is_over = bell
            || keys
                && match rustix::io::read(stdin, &mut typed) {
                    Ok(0) | Err(_) => true,
                    Ok(read) => is_leave(typed.get(..read).unwrap_or_default()),
                };
        if is_over {
            return;
        }
    }
}

/// Whether Ctrl-C was typed, in any of the forms that the program may have asked the terminal for.
fn is_leave(typed: &[u8]) -> bool {
    let holds = |form: &[u8]| typed.windows(form.len()).any(|window| window == form);
    typed.contains(&0x03) || holds(b"\x1b[99;5") || holds(b"\x1b[27;5;99~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_leaves_in_every_form_and_nothing_else_does() {
        for (typed, expect) in [
            (&b"\x03"[..], true),
            (b"abc\x03", true),
            (b"\x1b[99;5u", true),
            (b"\x1b[99;5:1u", true),
            (b"\x1b[27;5;99~", true),
            (b"c", false),
            (b"\x1b[99;1u", false),
            (b"\x1b[I\x1b[<0;3;5M\r", false),
        ] {
            assert_eq!(is_leave(typed), expect, "{}", typed.escape_ascii());
        }
    }
}
