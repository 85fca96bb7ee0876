//! A server with fixed answers on a loopback port. It records the requests that it gets.
//!
//! It shows which requests a command sends and what the command makes of the answers, also of ones
//! that a real server gives only in rare moments, such as a stream that breaks off.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

/// What the server answers.
#[derive(Default)]
pub(crate) struct Answers {
    /// Bodies by method and path, such as `GET /api/runs?summary=1`.
    json: HashMap<String, (u16, Value)>,
    /// The frames of each stream, by path. A stream breaks off after its last frame.
    streams: HashMap<String, Vec<Value>>,
}

impl Answers {
    pub(crate) fn json(mut self, request: &str, body: Value) -> Self {
        self.json.insert(request.to_owned(), (200, body));
        self
    }

    pub(crate) fn refusal(mut self, request: &str, status: u16, body: Value) -> Self {
        self.json.insert(request.to_owned(), (status, body));
        self
    }

    pub(crate) fn stream(mut self, path: &str, frames: &[Value]) -> Self {
        self.streams.insert(path.to_owned(), frames.to_vec());
        self
    }
}

/// The server under way. It ends when it is dropped.
pub(crate) struct StubServer {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    accepting: Option<JoinHandle<()>>,
    stopping: Arc<Mutex<bool>>,
}

impl StubServer {
    pub(crate) fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(Mutex::new(false));
        let accepting = std::thread::spawn({
            let (asked, stopping) = (Arc::clone(&asked), Arc::clone(&stopping));
            move || accept_connections(&listener, &Arc::new(answers), &asked, &stopping)
        });
        Self {
            addr,
            asked,
            accepting: Some(accepting),
            stopping,
        }
    }

    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// The requests that change something, with their bodies.
    pub(crate) fn changes(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let changes = asked.iter().filter(|line| !line.starts_with("GET "));
        changes.cloned().collect()
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        *self.stopping.lock().unwrap() = true;
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.addr));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn accept_connections(
    listener: &TcpListener,
    answers: &Arc<Answers>,
    asked: &Arc<Mutex<Vec<String>>>,
    stopping: &Mutex<bool>,
) {
    let mut serving = Vec::new();
    for stream in listener.incoming() {
        if *stopping.lock().unwrap() {
            break;
        }
        let (answers, asked) = (Arc::clone(answers), Arc::clone(asked));
        let stream = stream.unwrap();
        serving.push(std::thread::spawn(move || serve(&stream, &answers, &asked)));
    }
    // Each ends with its client, which has ended.
    for thread in serving {
        thread.join().unwrap();
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, answers: &Answers, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(request) = Request::read(&mut reader) {
        let line = format!("{} {}", request.line, request.body);
        asked.lock().unwrap().push(line.trim_end().to_owned());
        if let Some(key) = &request.socket_key {
            let path = request.line.trim_start_matches("GET ");
            let frames = answers.streams.get(path).cloned().unwrap_or_default();
            return send_frames(stream, key, &frames);
        }
        let missing = (
            404,
            serde_json::json!({ "error": { "code": "NotFound", "message": request.line } }),
        );
        let (status, body) = answers.json.get(&request.line).unwrap_or(&missing);
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn send_frames(stream: &TcpStream, key: &str, frames: &[Value]) {
    let mut writer = stream;
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    writer.write_all(head.as_bytes()).unwrap();
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    for frame in frames {
        socket.send(Message::text(frame.to_string())).unwrap();
    }
}

struct Request {
    /// The method and the path.
    line: String,
    body: String,
    /// Only of a request for a WebSocket.
    socket_key: Option<String>,
}

impl Request {
    /// Reads a request; none at the connection's end.
    fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let fields = head.iter().filter_map(|line| line.split_once(": "));
            let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let words: Vec<&str> = head.first()?.split(' ').collect();
        Some(Self {
            line: words[..2].join(" "),
            body: String::from_utf8(body).unwrap(),
            socket_key: header("sec-websocket-key"),
        })
    }
}
