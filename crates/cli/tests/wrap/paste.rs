//! Pastes into a program that does not read them: the keyboard stays the user's, and what waits is
//! bounded.

use std::path::Path;
use std::time::Duration;

use turnkeep_client::broker::{BrokerError, Connection, socket_path};
use turnkeep_types::broker::{AgentState, CompletedTurn, Paste, Reason, Register, Role};

use crate::relay::{Broker, client, session};
use crate::terminal::Terminal;

/// Puts a content into the relay buffer, by way of a session that has just that turn.
fn copy(dir: &Path, client: &mut Connection, content: Vec<u8>) {
    let mut wrapper =
        Connection::open(&socket_path(dir), Role::Wrapper, Duration::from_mins(1)).unwrap();
    let session = format!("{:032x}", content.len());
    wrapper
        .register(Register {
            session: session.clone(),
            pid: 1,
            ..Register::default()
        })
        .unwrap();
    let turn = CompletedTurn {
        session: session.clone(),
        content: content.into(),
        ..CompletedTurn::default()
    };
    wrapper.turn_completed(turn).unwrap();
    client.capture(&session).unwrap();
}

/// Runs a script whose session has this name, until it says that it is ready; gives the session's
/// id.
fn run(dir: &Path, client: &mut Connection, args: &[&str], script: &str) -> (Terminal, String) {
    let args = [&["--name", "target"], args, &["--", "sh", "-c", script]].concat();
    let mut terminal = Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.to_str().unwrap())]);
    terminal.until("ready");
    let id = session(client, &mut terminal, "target", |_| true).session;
    (terminal, id)
}

/// Waits until the program has made a file in its home directory. What it prints instead could be
/// lost: the kernel discards a terminal's output when an interrupt comes.
fn wait_for_file(terminal: &mut Terminal, name: &str) {
    let file = terminal.home().join(name);
    terminal.wait_for(name, |_| file.exists());
}

fn paste(client: &mut Connection, session: &str) -> Result<(), BrokerError> {
    client.paste(Paste {
        session: session.to_owned(),
        ..Paste::default()
    })
}

#[test]
fn a_paste_that_nobody_reads_leaves_the_keyboard_to_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(
        dir.path(),
        &mut client,
        b"a line that nobody reads\n".repeat(8000),
    );
    // A program that takes no interrupt shows that the keys of the user are seen, one that does
    // ends.
    let script =
        "trap '' INT; echo ready; (trap - INT; sleep 100); echo over; cat > \"$HOME/came\"";
    let (mut terminal, id) = run(dir.path(), &mut client, &[], script);
    paste(&mut client, &id).unwrap();
    terminal.until("a line that nobody reads");
    terminal.type_bytes(b"typed meanwhile");
    terminal.until("typed meanwhile");
    terminal.type_bytes(b"\x1c");
    let (_, status) = terminal.finish();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(3),
        "{status}"
    );
    broker.stop();
}

#[test]
fn an_interrupt_drops_the_rest_of_a_paste_and_those_that_wait_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(dir.path(), &mut client, b"pasted\n".repeat(20_000));
    // The interrupt may come before the shell waits, and must end the wait all the same.
    let script = "trap 'kill $!; : > \"$HOME/caught\"' INT; sleep 100 & echo ready; wait; \
                  exec cat > \"$HOME/came\"";
    let (mut terminal, id) = run(dir.path(), &mut client, &[], script);
    for _ in 0..4 {
        paste(&mut client, &id).unwrap();
    }
    terminal.until("pasted");
    terminal.type_bytes(b"\x03");
    wait_for_file(&mut terminal, "caught");
    terminal.type_bytes(b"typed\n\x04");
    assert!(terminal.finish().1.success());
    assert_eq!(
        std::fs::read_to_string(terminal.home().join("came")).unwrap(),
        "typed\n"
    );
    broker.stop();
}

#[test]
fn a_long_paste_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let content = crate::noise(9, 300_000);
    copy(dir.path(), &mut client, content.clone());
    let script = "stty raw -echo; printf ready; head -c 600000 > \"$HOME/came\"; printf done";
    let (mut terminal, id) = run(dir.path(), &mut client, &[], script);
    for _ in 0..2 {
        paste(&mut client, &id).unwrap();
    }
    terminal.until("done");
    assert!(std::fs::read(terminal.home().join("came")).unwrap() == content.repeat(2));
    broker.stop();
}

#[test]
fn one_queue_of_sixteen_mebibytes_waits_for_a_program_that_does_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(dir.path(), &mut client, vec![b'x'; 1_000_000]);
    let (mut terminal, id) = run(
        dir.path(),
        &mut client,
        &[],
        "stty raw -echo; printf ready; sleep 100",
    );
    let (mut taken, mut refused) = (0, 0);
    terminal.wait_for("the queue is full for a while", |_| {
        match paste(&mut client, &id) {
            Ok(()) => (taken, refused) = (taken + 1, 0),
            Err(BrokerError::Refused(refusal)) if refusal.reason == Reason::Busy => refused += 1,
            Err(error) => panic!("{error}"),
        }
        taken > 30 || (taken >= 16 && refused > 50)
    });
    // Beside those in the queue one is on its way into the program, and part of another on its way
    // here.
    assert!((16..=18).contains(&taken), "{taken} pastes of a megabyte");
    terminal.signal(rustix::process::Signal::KILL);
    terminal.finish();
    broker.stop();
}

#[test]
fn a_watched_program_that_prints_without_a_pause_gets_its_pastes() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(dir.path(), &mut client, b"now".to_vec());
    let script =
        "stty raw -echo; printf ready; yes & head -c 3 > \"$HOME/came\"; kill $!; printf '|came|'";
    let (mut terminal, id) = run(dir.path(), &mut client, &["--share"], script);
    let mut watcher = Connection::open(
        &socket_path(dir.path()),
        Role::Client,
        Duration::from_mins(1),
    )
    .unwrap();
    watcher.watch(&id).unwrap();
    let watching =
        std::thread::spawn(
            move || while watcher.next_notification(Duration::from_mins(1)).is_ok() {},
        );
    terminal.count_until("y\ny\n");
    paste(&mut client, &id).unwrap();
    terminal.count_until("|came|");
    terminal.finish();
    broker.stop();
    watching.join().unwrap();
}

#[test]
fn turns_are_told_while_pastes_wait_for_a_program_that_does_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(
        dir.path(),
        &mut client,
        b"a line that nobody reads\n".repeat(8000),
    );
    let script =
        "trap 'printf \"out\\np> \"' USR1; printf 'ready\\np> '; while :; do sleep 0.02; done";
    let (mut terminal, id) = run(dir.path(), &mut client, &["--pattern", "^p> $"], script);
    session(&mut client, &mut terminal, "target", |session| {
        session.state == Some(AgentState::Ready)
    });
    for turn in 1..=6 {
        // The first is stuck, the second waits in the wrapper, the others in the broker.
        if turn <= 4 {
            paste(&mut client, &id).unwrap();
        }
        terminal.type_bytes(b"\r");
        // A signal can overtake a key. The program must not answer before the wrapper has seen the
        // key.
        session(&mut client, &mut terminal, "target", |session| {
            session.state == Some(AgentState::Working)
        });
        terminal.signal(rustix::process::Signal::USR1);
        session(&mut client, &mut terminal, "target", |session| {
            session.turns == turn
        });
    }
    terminal.signal(rustix::process::Signal::KILL);
    terminal.finish();
    broker.stop();
}

#[test]
fn a_program_hears_the_end_of_a_framed_paste_that_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    copy(
        dir.path(),
        &mut client,
        b"a line that is read slowly\n".repeat(8000),
    );
    // Reads a little at a time until a paste has ended and a key came behind it.
    let reader = "
import os, signal, sys, time
note = lambda name: open(os.environ['HOME'] + '/' + name, 'w').close()
signal.signal(signal.SIGINT, lambda *_: note('caught'))
print('\\033[?2004hready', end='', flush=True)
seen = b''
while not seen.endswith(b'typed'):
    seen = (seen + os.read(0, 64))[-64:]
    print('reading', flush=True)
    if b'\\x1b[201~' in seen: note('ended')
    time.sleep(0.05)
";
    let script = format!("stty -icanon -echo; exec python3 -c \"{reader}\"");
    let (mut terminal, id) = run(dir.path(), &mut client, &["--bracketed"], &script);
    paste(&mut client, &id).unwrap();
    terminal.until("reading");
    // An impatient user: the second comes while the mark of the end is unread.
    terminal.type_bytes(b"\x03");
    terminal.type_bytes(b"\x03");
    // A program that reads the mark late gets the interrupt first, and the mark once more after it.
    wait_for_file(&mut terminal, "ended");
    wait_for_file(&mut terminal, "caught");
    terminal.type_bytes(b"typed");
    assert!(terminal.finish().1.success());
    broker.stop();
}
