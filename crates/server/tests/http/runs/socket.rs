//! `/ws` with a client that reads frame by frame, or does not read at all.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use turnkeep_wire::runs::schema_check::check_event;

use super::start;
use crate::client::{Server, within};
use crate::stopped_time::StoppedTime;

/// A client of `/ws`. It answers nothing, and masks nothing because it sends nothing.
pub(super) struct EventClient(BufReader<TcpStream>);

/// What the server sent.
#[derive(Debug)]
enum Frame {
    Event(Value),
    Ping,
    Close(u16),
}

impl EventClient {
    pub(super) async fn open(server: &Server, query: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // Small, so that a client that does not read is noticed soon.
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(server.http_addr()).await.unwrap();
        let mut client = Self(BufReader::new(stream));
        let request = format!(
            "GET /ws{query} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.http_addr()
        );
        client
            .0
            .get_mut()
            .write_all(request.as_bytes())
            .await
            .unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(within(client.0.read_u8()).await.unwrap()));
        }
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        client
    }

    async fn next(&mut self) -> Frame {
        within(self.read_frame()).await
    }

    async fn read_frame(&mut self) -> Frame {
        const TEXT: u8 = 0x81;
        const CLOSE: u8 = 0x88;
        const PING: u8 = 0x89;
        let kind = self.0.read_u8().await.unwrap();
        let length = match self.0.read_u8().await.unwrap() {
            126 => u64::from(self.0.read_u16().await.unwrap()),
            127 => self.0.read_u64().await.unwrap(),
            length => u64::from(length),
        };
        let mut content = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut content).await.unwrap();
        match kind {
            TEXT => {
                let event: Value = serde_json::from_slice(&content).unwrap();
                check_event(&event).unwrap_or_else(|error| panic!("{error}: {event:#}"));
                Frame::Event(event)
            }
            CLOSE => Frame::Close(u16::from(content[0]) << 8 | u16::from(content[1])),
            PING => Frame::Ping,
            other => panic!("a frame of kind {other:#x}"),
        }
    }

    pub(super) async fn next_event(&mut self) -> Value {
        loop {
            match self.next().await {
                Frame::Event(event) => return event,
                Frame::Ping => {}
                Frame::Close(code) => panic!("closed with {code}"),
            }
        }
    }

    /// Reads until the server closes. Returns the numbers of the events and the code.
    async fn read_to_close(&mut self) -> (Vec<u64>, u16) {
        let mut seqs = Vec::new();
        loop {
            match self.next().await {
                Frame::Event(event) => seqs.push(event["seq"].as_u64().unwrap()),
                Frame::Ping => {}
                Frame::Close(code) => return (seqs, code),
            }
        }
    }
}

#[tokio::test]
async fn a_client_of_all_runs_sees_their_beginning_and_their_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let old = server.paused_run().await;
    let mut all = EventClient::open(&server, "").await;
    let mut one = EventClient::open(&server, &format!("?runId={old}")).await;
    // Both are created and deleted before the socket's task looks at either.
    let new = server.paused_run().await;
    for run in [&new, &old] {
        assert_eq!(server.delete(&format!("/api/runs/{run}")).await.status, 200);
    }
    let mut of_new = Vec::new();
    loop {
        let event = all.next_event().await;
        if event["runId"] == json!(old) {
            assert_eq!(
                event["type"], "run.deleted",
                "older events are not repeated"
            );
            break;
        }
        of_new.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        of_new.first().map(String::as_str),
        Some("run.patch"),
        "{of_new:?}"
    );
    assert_eq!(
        of_new.last().map(String::as_str),
        Some("run.deleted"),
        "{of_new:?}"
    );
    assert_eq!(one.next_event().await["type"], "run.deleted");
    assert!(matches!(one.next().await, Frame::Close(4004)));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed_and_comes_back() {
    const MESSAGES: u64 = 40;
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    server.add_node(&run, "a", "implementer").await;
    let shown = server
        .read(&format!("/api/runs/{run}/events?limit=1"))
        .await;
    let before = shown["events"][0]["seq"].as_u64().unwrap();
    let mut slow = EventClient::open(&server, &format!("?runId={run}&since={before}")).await;
    for number in 0..MESSAGES {
        server
            .chat(&run, &format!("{number} {}", "x".repeat(1_000_000)))
            .await;
    }
    let (seqs, code) = slow.read_to_close().await;
    assert_eq!(code, 4008);
    let last = seqs.last().copied().unwrap_or(before);
    let dense: Vec<u64> = (before + 1..=last).collect();
    assert_eq!(seqs, dense, "what came is whole");
    let query = format!("?runId={run}&since={last}&types=message.user");
    let mut again = EventClient::open(&server, &query).await;
    loop {
        let event = again.next_event().await;
        let text = event["message"]["content"].as_str().unwrap();
        if text.starts_with(&format!("{} ", MESSAGES - 1)) {
            break;
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_replay_may_take_as_long_as_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    server.add_node(&run, "a", "implementer").await;
    for _ in 0..30 {
        server.chat(&run, &"x".repeat(1_000_000)).await;
    }
    let mut client = EventClient::open(&server, &format!("?runId={run}&since=0")).await;
    let last = server
        .read(&format!("/api/runs/{run}/events?limit=1"))
        .await;
    let last = last["events"][0]["seq"].as_u64().unwrap();
    for seq in 1..=last {
        assert_eq!(client.next_event().await["seq"], seq);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_ping_comes_every_fifteen_seconds_also_in_a_busy_run() {
    let dir = tempfile::tempdir().unwrap();
    let time = StoppedTime::begin();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    server.add_node(&run, "a", "implementer").await;
    let mut client = EventClient::open(&server, &format!("?runId={run}")).await;
    let mut pings = 0;
    for _ in 0..35 {
        time.advance(Duration::from_secs(1)).await;
        server.chat(&run, "busy").await;
        loop {
            match client.next().await {
                Frame::Event(event) if event["type"] == "message.user" => break,
                Frame::Event(_) => {}
                Frame::Ping => pings += 1,
                Frame::Close(code) => panic!("closed with {code}"),
            }
        }
    }
    assert_eq!(pings, 2);
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn a_number_beyond_the_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    for query in [format!("?runId={run}&since=1000"), "?since=1".to_owned()] {
        let call = server
            .get(&format!("/ws{query}"))
            .header("upgrade", "websocket");
        let call = call
            .header("connection", "Upgrade")
            .header("sec-websocket-version", "13");
        let reply = call
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .send()
            .await;
        reply.error(400, "BadRequest");
    }
    server.stop().await;
}
