//! The server's memory under clients that send little and make it hold much, and under their reads.
//!
//! The kernel's own count of the process's largest resident size decides, so whatever is held
//! counts: buffers, what the allocator keeps, what libraries allocate by themselves. Afterwards the
//! process must give the memory back.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sandbox::{Sandbox, ServerProcess};
use turnkeep_client::compose;
use turnkeep_types::{Compression, TypeRef};
use turnkeep_wire::message::{
    CreateContext, GetLast, Hello, ItemForm, ReadOptions, Request, Response,
};
use turnkeep_wire::{Frame, Text};

const MIB: usize = 1 << 20;
const BUDGET: &str = "160MiB";
/// The budget, and what the process may take besides: the program, its tables, threads and
/// connections.
const RESIDENT_BYTES_MAX: usize = (160 + 96) * MIB;
const CONNECTIONS: usize = 24;
const IN_FLIGHT: usize = 4;
/// The largest payload that the server takes.
const UNPACKED_BYTES: usize = 32 * MIB;
/// A server that answers nothing for so long fails the test.
const ANSWER_WITHIN: Duration = Duration::from_mins(3);

struct Peer {
    stream: TcpStream,
    input: BytesMut,
}

impl Peer {
    fn connect(server: &ServerProcess, token: &str) -> Self {
        let stream = TcpStream::connect(server.tcp()).unwrap();
        stream.set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        let mut peer = Self {
            stream,
            input: BytesMut::new(),
        };
        let meta = Bytes::from(format!(r#"{{"token":"{token}"}}"#));
        peer.send(
            &Request::Hello(Some(Hello {
                version: 1,
                tag: Text::from("test"),
                meta,
            })),
            1,
        );
        assert!(matches!(peer.receive(), Response::Hello(_)));
        peer
    }

    fn send(&mut self, request: &Request, times: usize) {
        let mut out = BytesMut::new();
        for _ in 0..times {
            request.encode(1, &mut out);
        }
        self.stream.write_all(&out).unwrap();
    }

    fn receive(&mut self) -> Response {
        let mut chunk = vec![0; 256 << 10];
        loop {
            if let Some(frame) = Frame::split_first(&mut self.input, 80 * MIB).unwrap() {
                return Response::decode(frame, ItemForm::Plain).unwrap();
            }
            let read = self.stream.read(&mut chunk).unwrap();
            assert!(read > 0, "the server ended the connection");
            self.input.extend_from_slice(&chunk[..read]);
        }
    }
}

/// Sends the same request on many connections at once, several times on each, and counts the
/// successes.
fn flood(server: &ServerProcess, token: &str, request: &Request) -> usize {
    let one = || {
        let mut peer = Peer::connect(server, token);
        peer.send(request, IN_FLIGHT);
        let answers = (0..IN_FLIGHT).map(|_| match peer.receive() {
            // A server that is full may say so.
            Response::Error(failure) if failure.status == 429 => 0,
            Response::Error(failure) => panic!("{failure:?}"),
            _ => 1,
        });
        answers.sum::<usize>()
    };
    thread::scope(|scope| {
        let peers: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(one)).collect();
        peers.into_iter().map(|peer| peer.join().unwrap()).sum()
    })
}

/// A size in the kernel's account of a process.
fn status_bytes(server: &ServerProcess, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.said["pid"])).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim()
        .strip_suffix("kB")
        .unwrap()
        .trim()
        .parse::<usize>()
        .unwrap()
        << 10
}

/// What the process may keep when nothing is under way.
const RESTING_BYTES_MAX: usize = 96 * MIB;

/// Waits until the process has given back what a flood took, which fails when it never does.
fn wait_until_given_back(server: &ServerProcess, what: &str) {
    let begun = std::time::Instant::now();
    loop {
        // Without the pages of the log, which the system can take back by itself.
        let bytes = status_bytes(server, "RssAnon:");
        if bytes <= RESTING_BYTES_MAX {
            return;
        }
        let is_over = begun.elapsed() > ANSWER_WITHIN;
        assert!(!is_over, "{what}: {} MiB are kept", bytes / MIB);
        thread::yield_now();
    }
}

fn check_resident(server: &ServerProcess, what: &str) {
    let bytes = status_bytes(server, "VmHWM:");
    println!("{what}: at most {} MiB were resident", bytes / MIB);
    assert!(
        bytes <= RESIDENT_BYTES_MAX,
        "{what}: {} MiB were resident",
        bytes / MIB
    );
}

#[test]
fn the_server_stays_within_its_budget_whatever_small_requests_unpack_to() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&["--memory-budget", BUDGET]);
    let token = std::fs::read_to_string(sandbox.data().join("token"))
        .unwrap()
        .trim()
        .to_owned();
    let mut peer = Peer::connect(&server, &token);
    peer.send(&Request::CreateContext(CreateContext::default()), 1);
    let Response::ContextCreated(created) = peer.receive() else {
        panic!("no context")
    };

    let payload = Bytes::from(vec![7; UNPACKED_BYTES]);
    let turn = compose::turn(
        &TypeRef::new("com.example.Bytes", 1),
        payload,
        Compression::Zstd,
    )
    .unwrap();
    assert!(
        turn.payload.len() < 64 << 10,
        "little is sent: {}",
        turn.payload.len()
    );
    let append = Request::AppendTurn(compose::append(created.context, turn));
    assert!(flood(&server, &token, &append) > 0);
    check_resident(&server, "writes");
    wait_until_given_back(&server, "writes");

    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let get = Request::GetLast(GetLast {
        context: created.context,
        limit: 1,
        options,
    });
    assert!(flood(&server, &token, &get) > 0);
    check_resident(&server, "reads");
    wait_until_given_back(&server, "reads");
    assert!(server.terminate().success());
}
