//! The wrapper and the broker: turns arrive, pastes arrive, and either may go away and come back.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use turnkeep_client::broker::{Connection, socket_path};
use turnkeep_types::broker::{AgentState, FoundTurn, GetTurn, Paste, Role, SessionInfo};

use crate::server_process::ServerProcess;
use crate::share::Up;
use crate::terminal::{TURNKEEP, Terminal};

const BASH: [&str; 5] = ["--", "bash", "--norc", "--noprofile", "-i"];

/// A running `turnkeep broker`.
pub(crate) struct Broker(ServerProcess);

impl Broker {
    pub(crate) fn start(dir: &Path) -> Self {
        let mut command = Command::new(TURNKEEP);
        // Without the variables of a desktop, so that the broker looks for none.
        command
            .arg("broker")
            .env_clear()
            .env("HOME", dir)
            .env("XDG_RUNTIME_DIR", dir);
        Self(ServerProcess::start(&mut command))
    }

    pub(crate) fn stop(self) {
        assert!(self.0.terminate().success());
    }
}

pub(crate) fn client(dir: &Path) -> Connection {
    Connection::open(&socket_path(dir), Role::Client, Duration::from_mins(1)).unwrap()
}

fn wrap(dir: &Path, name: &str, args: &[&str]) -> Terminal {
    let args = [&["--name", name], args, &BASH].concat();
    let mut terminal = Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.to_str().unwrap())]);
    terminal.until("$ ");
    terminal
}

/// The session of this name, once it is like that.
pub(crate) fn session(
    client: &mut Connection,
    terminal: &mut Terminal,
    name: &str,
    like: impl Fn(&SessionInfo) -> bool,
) -> SessionInfo {
    let mut found = None;
    terminal.wait_for(&format!("session {name}"), |_| {
        let sessions = client.sessions(false).unwrap();
        found = sessions
            .into_iter()
            .find(|session| session.name.as_deref() == Some(name) && like(session));
        found.is_some()
    });
    found.unwrap()
}

pub(crate) fn is_ready(session: &SessionInfo) -> bool {
    session.state == Some(AgentState::Ready)
}

/// Runs a command in the wrapped shell, which makes the turn of this number.
pub(crate) fn ask(
    terminal: &mut Terminal,
    client: &mut Connection,
    name: &str,
    number: u32,
) -> SessionInfo {
    terminal.type_bytes(format!("echo a$((40+{number}))z\r").as_bytes());
    terminal.until(&format!("a{}z", 40 + number));
    session(client, terminal, name, |session| {
        is_ready(session) && session.turns == number
    })
}

fn turn(client: &mut Connection, session: &SessionInfo, number: u32) -> FoundTurn {
    let turn_id = format!("{}:{number}", session.session);
    client
        .turn(GetTurn {
            turn_id,
            raw: false,
        })
        .unwrap()
}

#[test]
fn turns_reach_the_broker_and_pastes_reach_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut one = wrap(dir.path(), "one", &[]);
    let mut two = wrap(dir.path(), "two", &[]);
    session(&mut client, &mut one, "one", is_ready);
    let target = session(&mut client, &mut two, "two", is_ready);
    let source = ask(&mut one, &mut client, "one", 1);
    let found = turn(&mut client, &source, 1);
    assert_eq!(found.text.as_deref().map(str::trim), Some("a41z"));
    assert!(found.content.ends_with(b"a41z\r\n"), "{found:?}");
    assert_eq!(
        (source.preset.as_deref(), source.has_turn),
        (Some("bash"), true)
    );
    assert!(source.child_pid.is_some_and(|pid| pid != source.pid));
    client.capture(&source.session).unwrap();
    client
        .paste(Paste {
            session: target.session,
            ..Paste::default()
        })
        .unwrap();
    two.until("a41z: command not found");
    one.type_bytes(b"exit\r");
    one.finish();
    two.wait_for("only the other session is left", |_| {
        let left = client.sessions(false).unwrap();
        let names = left.iter().filter_map(|session| session.name.as_deref());
        names.eq(["two"])
    });
    broker.stop();
}

#[test]
fn a_turn_is_text_on_a_terminal_and_bytes_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut terminal = wrap(dir.path(), "red", &[]);
    session(&mut client, &mut terminal, "red", is_ready);
    terminal.type_bytes(b"printf '\\033[31mred\\033[m%s\\n' ready\r");
    session(&mut client, &mut terminal, "red", |session| {
        is_ready(session) && session.turns == 1
    });
    let show = |args: &[&str]| {
        let env = [("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())];
        let (said, status) =
            Terminal::run([TURNKEEP, "turn", "red"].iter().chain(args), &env).finish();
        assert!(status.success(), "{status}: {}", said.escape_ascii());
        String::from_utf8(said).unwrap()
    };
    let text = show(&[]);
    assert!(
        text.contains("redready") && !text.contains('\x1b'),
        "{text:?}"
    );
    let raw = show(&["--raw"]);
    assert!(raw.contains("\x1b[31mred\x1b[mready"), "{raw:?}");
    broker.stop();
}

#[test]
fn a_broker_that_comes_late_or_comes_back_gets_every_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = wrap(dir.path(), "late", &[]);
    let broker = Broker::start(dir.path());
    session(&mut client(dir.path()), &mut terminal, "late", is_ready);
    broker.stop();
    terminal.type_bytes(b"echo a$((40+1))z\r");
    terminal.until("a41z");
    let broker = Broker::start(dir.path());
    let mut first = client(dir.path());
    session(&mut first, &mut terminal, "late", |session| {
        is_ready(session) && session.turns == 1
    });
    ask(&mut terminal, &mut first, "late", 2);
    drop(first);
    broker.stop();
    terminal.type_bytes(b"echo a$((40+3))z\r");
    terminal.until("a43z");
    let broker = Broker::start(dir.path());
    let mut second = client(dir.path());
    let found = session(&mut second, &mut terminal, "late", |session| {
        is_ready(session) && session.turns == 3
    });
    for number in 1..=3 {
        let text = turn(&mut second, &found, number).text.unwrap();
        assert_eq!(text.trim(), format!("a{}z", 40 + number));
    }
    terminal.type_bytes(b"exit\r");
    assert!(terminal.finish().1.success());
    broker.stop();
}

#[test]
fn a_paste_is_framed_only_when_that_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut source = wrap(dir.path(), "source", &[]);
    session(&mut client, &mut source, "source", is_ready);
    let captured = ask(&mut source, &mut client, "source", 1);
    client.capture(&captured.session).unwrap();
    let content = turn(&mut client, &captured, 1).content;
    let framed = [b"\x1b[200~", &*content, b"\x1b[201~"].concat();
    // (name, arguments, whether the program asks for frames, what it gets)
    let cases: [(&str, &[&str], &str, &[u8]); 3] = [
        ("plain", &[], "h", &content),
        ("unasked", &["--bracketed"], "l", &content),
        ("framed", &["--bracketed"], "h", &framed),
    ];
    for (name, args, mode, expect) in cases {
        let count = expect.len();
        let script = format!(
            "stty raw -echo; printf '\\033[?2004{mode}ready'; head -c {count} > \"$HOME/came\"; printf done"
        );
        let args = [&["--name", name], args, &["--", "sh", "-c", &script]].concat();
        let env = [("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())];
        let mut terminal = Terminal::wrap_with(&args, &env);
        terminal.until("ready");
        let target = session(&mut client, &mut terminal, name, |_| true);
        client
            .paste(Paste {
                session: target.session,
                ..Paste::default()
            })
            .unwrap();
        terminal.until("done");
        assert_eq!(
            std::fs::read(terminal.home().join("came")).unwrap(),
            expect,
            "{name}"
        );
    }
    broker.stop();
}

#[test]
fn kept_turns_are_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut terminal = wrap(dir.path(), "kept", &["--keep"]);
    session(&mut client, &mut terminal, "kept", is_ready);
    ask(&mut terminal, &mut client, "kept", 1);
    terminal.type_bytes(b"exit\r");
    let (said, status) = terminal.finish();
    assert!(status.success(), "{status}: {}", said.escape_ascii());
    let log = Command::new("timeout")
        .args(["60", TURNKEEP, "log", "1"])
        .env("HOME", terminal.home())
        .env_remove("XDG_DATA_HOME")
        .output()
        .unwrap();
    broker.stop();
    let shown = String::from_utf8_lossy(&log.stdout);
    assert!(
        shown.contains("a41z"),
        "{shown} {} {}",
        String::from_utf8_lossy(&log.stderr),
        said.escape_ascii()
    );
}

#[test]
fn a_turn_that_the_broker_lists_is_in_the_store_whatever_becomes_of_the_wrapper() {
    let dir = tempfile::tempdir().unwrap();
    let _up = Up::start(dir.path());
    let data = dir.path().join(".local/share/turnkeep");
    let data = data.to_str().unwrap();
    let mut client = client(dir.path());
    for name in ["one", "two", "three"] {
        let mut terminal = wrap(dir.path(), name, &["--keep", "--data", data]);
        let id = session(&mut client, &mut terminal, name, is_ready).session;
        terminal.type_bytes(format!("echo said-$(echo {name})\r").as_bytes());
        let deadline = Instant::now() + Duration::from_mins(1);
        while client.turns(&id, None).unwrap().is_empty() {
            assert!(Instant::now() < deadline, "no turn was listed");
        }
        terminal.signal(rustix::process::Signal::KILL);
        terminal.finish();
        let log = |context: &str| {
            Command::new(TURNKEEP)
                .args(["log", context, "--data", data])
                .output()
        };
        let found = ["1", "2", "3"]
            .map(|context| log(context).unwrap().stdout)
            .concat();
        let found = String::from_utf8_lossy(&found);
        assert!(found.contains(&format!("said-{name}")), "{name}: {found}");
    }
}
