//! A shared terminal, watched in another terminal and over a WebSocket.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};
use turnkeep_types::broker::SessionInfo;

use crate::relay::{Broker, client, session};
use crate::server_process::{ServerProcess, UP};
use crate::terminal::{TURNKEEP, Terminal};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program that has painted, and echoes its input.
fn shared(dir: &Path, name: &str, args: &[&str]) -> Terminal {
    let script = "stty raw -echo; printf 'first\\r\\n\\033[31mred\\033[m'; exec cat";
    let args = [&["--name", name], args, &["--", "sh", "-c", script]].concat();
    let mut terminal = Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.to_str().unwrap())]);
    terminal.until("red\x1b[m");
    terminal
}

fn watch(dir: &Path, args: &[&str]) -> Terminal {
    let env = [("XDG_RUNTIME_DIR", dir.to_str().unwrap())];
    Terminal::run([TURNKEEP, "watch"].iter().chain(args), &env)
}

#[test]
fn a_shared_terminal_is_seen_in_another_one_and_left_by_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut wrapped = shared(dir.path(), "one", &["--share"]);
    assert!(session(&mut client, &mut wrapped, "one", |_| true).shared);
    let mut watching = watch(dir.path(), &["one"]);
    watching.until("first");
    watching.until("red");
    wrapped.type_bytes(b"\x1b[2;9Hthen");
    watching.until("\x1b[2;9Hthen");
    watching.type_bytes(b"not for the program\r");
    watching.type_bytes(b"\x03");
    let (said, status) = watching.finish();
    assert!(status.success(), "{status}: {}", said.escape_ascii());
    assert!(!watching.is_raw(), "the settings are not back");
    let mut late = watch(dir.path(), &["one"]);
    late.until("then");
    let mut third = watch(dir.path(), &["one"]);
    // The banner stands in the last row of the terminal.
    third.until("\x1b[30;1H\x1b[0;7m watching one (generic), read-only: q leaves ");
    third.type_bytes(b"\x1b]11;rgb:q\x07x");
    third.type_bytes(b"q");
    assert!(third.finish().1.success());
    assert!(!third.is_raw(), "the settings are not back");
    wrapped.type_bytes(b"|typed|");
    assert_eq!(wrapped.until("|typed|"), "\x1b[2;9Hthen|typed|");
    wrapped.signal(rustix::process::Signal::TERM);
    wrapped.finish();
    late.until("the session has ended");
    assert!(late.finish().1.success());
    broker.stop();
}

#[test]
fn what_is_not_shared_cannot_be_watched() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let mut wrapped = shared(dir.path(), "private", &[]);
    assert!(!session(&mut client, &mut wrapped, "private", |_| true).shared);
    for (name, expect) in [
        ("private", "not shared"),
        ("nobody", "no session is called"),
    ] {
        let (said, status) = watch(dir.path(), &[name]).finish();
        let said = String::from_utf8_lossy(&said);
        assert!(
            status.code() == Some(1) && said.contains(expect),
            "{status}: {said}"
        );
    }
    broker.stop();
}

#[test]
fn a_watcher_of_a_flood_comes_to_the_end_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path());
    let mut client = client(dir.path());
    let script = "stty raw -echo; printf ready; head -c 1 >/dev/null; \
                  head -c 30000000 /dev/zero | tr '\\0' x; printf '\\033[2J\\033[Hall done'; exec cat";
    let args = ["--share", "--name", "flood", "--", "sh", "-c", script];
    let mut wrapped =
        Terminal::wrap_with(&args, &[("XDG_RUNTIME_DIR", dir.path().to_str().unwrap())]);
    wrapped.until("ready");
    session(&mut client, &mut wrapped, "flood", |_| true);
    let mut watching = watch(dir.path(), &["flood"]);
    watching.until("ready");
    wrapped.type_bytes(b"g");
    wrapped.count_until("all done");
    watching.count_until("all done");
    watching.type_bytes(b"\x03");
    assert!(watching.finish().1.success());
    broker.stop();
}

/// A running `turnkeep up` with a broker inside.
pub(crate) struct Up {
    server: ServerProcess,
}

impl Up {
    pub(crate) fn start(dir: &Path) -> Self {
        let mut command = Command::new(TURNKEEP);
        command
            .args(UP)
            .env("HOME", dir)
            .env("XDG_RUNTIME_DIR", dir)
            .env_remove("XDG_DATA_HOME");
        Self {
            server: ServerProcess::start(&mut command),
        }
    }

    /// A request for a session's terminal with these headers.
    fn request(&self, session: &str, headers: &[(&'static str, &str)]) -> Request {
        let mut request = format!("ws://{}/ws?session={session}", self.server.http())
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request
    }

    fn connect(&self, request: Request) -> Result<WebSocket<TcpStream>, u16> {
        let stream = TcpStream::connect(self.server.http()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn watch(&self, session: &str) -> WebSocket<TcpStream> {
        let bearer = format!("Bearer {}", self.server.token());
        self.connect(self.request(session, &[("authorization", &bearer)]))
            .unwrap()
    }
}

/// The next message of the terminal.
fn next(socket: &mut WebSocket<TcpStream>) -> Message {
    loop {
        match socket.read().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

/// The code and the reason with which the socket is closed.
fn closed(socket: &mut WebSocket<TcpStream>) -> (u16, String) {
    loop {
        if let Message::Close(Some(frame)) = next(socket) {
            return (frame.code.into(), frame.reason.to_string());
        }
    }
}

/// Reads binary messages until this was shown.
fn until(socket: &mut WebSocket<TcpStream>, text: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = String::new();
    while !seen.contains(text) {
        assert!(
            Instant::now() < deadline,
            "{text:?} was never shown, only {seen:?}"
        );
        if let Message::Binary(bytes) = next(socket) {
            seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    seen
}

fn head(socket: &mut WebSocket<TcpStream>) -> Value {
    match next(socket) {
        Message::Text(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("not the head of a screen: {other:?}"),
    }
}

#[test]
fn the_owner_watches_over_a_websocket() {
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path());
    let mut client = client(dir.path());
    let mut wrapped = shared(dir.path(), "one", &["--share"]);
    let SessionInfo { session: id, .. } = session(&mut client, &mut wrapped, "one", |_| true);
    let mut socket = up.watch(&id);
    let first = serde_json::json!({ "type": "screen", "cols": 100, "rows": 30, "repaint": true });
    assert_eq!(head(&mut socket), first);
    assert!(until(&mut socket, "red").contains("first"));
    socket
        .send(Message::Text("not for the program".into()))
        .unwrap();
    wrapped.type_bytes(b"then");
    assert_eq!(until(&mut socket, "then"), "then");
    wrapped.resize(90, 20);
    assert_eq!(head(&mut socket)["cols"], 90);
    let mut second = up.watch(&id);
    assert_eq!(
        (
            head(&mut second)["cols"].clone(),
            until(&mut second, "then").is_empty()
        ),
        (90.into(), false)
    );
    assert_eq!(
        wrapped.until("then"),
        "then",
        "what was sent to a viewer reached the program"
    );
    let mut third = up.watch(&id);
    third.close(None).unwrap();
    let parted = std::iter::repeat_with(|| third.read()).find_map(Result::err);
    assert!(
        matches!(parted, Some(tungstenite::Error::ConnectionClosed)),
        "{parted:?}"
    );
    wrapped.signal(rustix::process::Signal::TERM);
    wrapped.finish();
    for socket in [&mut socket, &mut second] {
        assert_eq!(closed(socket), (4410, "session_disconnected".to_owned()));
    }
}

#[test]
fn a_websocket_that_may_not_watch_is_refused_or_closed_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path());
    let mut client = client(dir.path());
    let mut private = shared(dir.path(), "private", &[]);
    let SessionInfo { session: id, .. } = session(&mut client, &mut private, "private", |_| true);
    for (session, expect) in [
        (&*id, (4403, "not_shared")),
        ("nobody", (4404, "session_not_found")),
    ] {
        assert_eq!(
            closed(&mut up.watch(session)),
            (expect.0, expect.1.to_owned())
        );
    }
    let bearer = format!("Bearer {}", up.server.token());
    let ours = format!("http://{}", up.server.http());
    // (headers, status)
    let cases: [(&[(&'static str, &str)], u16); 4] = [
        (&[], 401),
        (&[("authorization", "Bearer wrong")], 401),
        (
            &[
                ("authorization", &bearer),
                ("origin", "http://elsewhere.example"),
            ],
            403,
        ),
        (&[("authorization", &bearer), ("origin", &ours)], 101),
    ];
    for (headers, expect) in cases {
        let connected = up.connect(up.request(&id, headers));
        assert_eq!(
            connected.map_or_else(|status| status, |_| 101),
            expect,
            "{headers:?}"
        );
    }
}

#[test]
fn a_server_that_stops_says_so_to_those_who_watch() {
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path());
    let mut client = client(dir.path());
    let mut wrapped = shared(dir.path(), "one", &["--share"]);
    let SessionInfo { session: id, .. } = session(&mut client, &mut wrapped, "one", |_| true);
    let mut socket = up.watch(&id);
    until(&mut socket, "red");
    rustix::process::kill_process(up.server.pid(), rustix::process::Signal::TERM).unwrap();
    assert_eq!(closed(&mut socket), (1001, "the server stops".to_owned()));
}
