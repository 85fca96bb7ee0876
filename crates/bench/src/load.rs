//! The load generator: some connections, each with some requests in flight, on one thread.
//!
//! All requests lie assembled in memory before the clock starts. Answers must come in order and are
//! skipped by their length; the first error stops the run, and so does the time limit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::child::Endpoint;
use super::figures::Measured;
use super::protocol::{self, HEADER_BYTES, Header};

/// A run that takes longer is given up.
const RUN_MAX: Duration = Duration::from_mins(3);
const BUFFER_BYTES: usize = 256 << 10;

/// Requests of one length, back to back; each connection has its own stretch of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) bytes: Vec<u8>,
    /// Bytes of one request.
    pub(super) stride: usize,
    /// Requests of each connection.
    pub(super) each: usize,
}

impl Requests {
    fn of_connection(&self, index: usize) -> &[u8] {
        let len = self.stride * self.each;
        let own = self.bytes.get(index * len..(index + 1) * len);
        own.unwrap_or_default()
    }
}

/// How the end of an answer is found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Framing {
    /// Frames whose request ids count from 0 on each connection; at least this long each.
    Binary { at_least: usize },
    /// HTTP/1.1 with Content-Length.
    Http,
}

/// Blocks on a future, on a runtime of one thread, within the time limit.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let limited = async {
        tokio::time::timeout(RUN_MAX, future)
            .await
            .context("a measurement took too long")?
    };
    runtime.block_on(limited)
}

/// Connects and says HELLO.
pub(super) async fn connect_binary(endpoint: &Endpoint) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(endpoint.address).await?;
    stream.set_nodelay(true)?;
    let hello = protocol::hello_frame(endpoint.token.as_deref());
    call_once(&mut stream, &hello).await?;
    Ok(stream)
}

/// Creates an empty context. Returns its id.
pub(super) async fn create_context(stream: &mut TcpStream) -> Result<u64> {
    let create = protocol::whole_frame(protocol::CTX_CREATE, 0, &[0; 8]);
    let created = call_once(stream, &create).await?;
    protocol::u64_at(&created, 0).context("a short answer")
}

/// Sends one frame and returns the payload of the answer.
pub(super) async fn call_once(stream: &mut TcpStream, frame: &[u8]) -> Result<Vec<u8>> {
    stream.write_all(frame).await?;
    let mut head = [0; HEADER_BYTES];
    stream.read_exact(&mut head).await?;
    let Some(header) = protocol::read_header(&head) else {
        bail!("no header")
    };
    let mut payload = vec![0; header.len];
    stream.read_exact(&mut payload).await?;
    ensure!(
        header.kind != protocol::ERROR,
        "refused: {}",
        error_text(&payload)
    );
    Ok(payload)
}

fn error_text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload.get(8..).unwrap_or_default()).into_owned()
}

/// Sends all requests, keeping `in_flight` on each connection unanswered, and times the answers.
pub(super) async fn run_load(
    streams: Vec<TcpStream>,
    requests: Arc<Requests>,
    in_flight: usize,
    framing: Framing,
) -> Result<Measured> {
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for (index, stream) in streams.into_iter().enumerate() {
        let requests = Arc::clone(&requests);
        tasks.spawn(async move {
            let own = requests.of_connection(index);
            drive_connection(stream, own, requests.stride, in_flight, framing).await
        });
    }
    // Space for all answers is taken now: growing the list would be measured too.
    let mut latencies = Vec::with_capacity(requests.bytes.len() / requests.stride.max(1));
    while let Some(done) = tasks.join_next().await {
        latencies.append(&mut done??);
    }
    Ok(Measured::from_latencies(begin.elapsed(), latencies))
}

async fn drive_connection(
    mut stream: TcpStream,
    requests: &[u8],
    stride: usize,
    in_flight: usize,
    framing: Framing,
) -> Result<Vec<Duration>> {
    let total = requests.len() / stride;
    let mut latencies = Vec::with_capacity(total);
    let mut sent_at = VecDeque::with_capacity(in_flight);
    let mut answers = Answers::new(framing);
    let mut sent = 0;
    while latencies.len() < total {
        // Fill up to the allowed number in flight with one write: a write per request would cost
        // the client too much.
        let more = (in_flight - sent_at.len()).min(total - sent);
        if more > 0 {
            let now = Instant::now();
            sent_at.extend(std::iter::repeat_n(now, more));
            stream
                .write_all(&requests[sent * stride..(sent + more) * stride])
                .await?;
            sent += more;
        }
        let done = answers.read_answers(&mut stream).await?;
        ensure!(done <= sent_at.len(), "more answers than requests");
        let now = Instant::now();
        latencies.extend(sent_at.drain(..done).map(|sent| now - sent));
    }
    Ok(latencies)
}

/// The answers' side of a connection: finds where each ends without keeping its bytes.
struct Answers {
    framing: Framing,
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes of the current answer that are still to come.
    left: usize,
    next: u64,
}

impl Answers {
    fn new(framing: Framing) -> Self {
        Self {
            framing,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            left: 0,
            next: 0,
        }
    }

    /// Reads once; how many answers were completed by it.
    async fn read_answers(&mut self, stream: &mut TcpStream) -> Result<usize> {
        let read = stream.read(&mut self.buffer[self.filled..]).await?;
        ensure!(read > 0, "the server closed the connection");
        self.filled += read;
        self.scan_buffer()
    }

    fn scan_buffer(&mut self) -> Result<usize> {
        let (mut at, mut done) = (0, 0);
        loop {
            let skip = self.left.min(self.filled - at);
            at += skip;
            self.left -= skip;
            // The answer is complete with these bytes, though they may have come in many reads.
            done += usize::from(skip > 0 && self.left == 0);
            if self.left > 0 {
                break;
            }
            match answer_bytes(self.framing, self.next, &self.buffer[at..self.filled])? {
                Some(bytes) => (self.left, self.next) = (bytes, self.next + 1),
                None => break,
            }
        }
        // Only the beginning of the next head is left, so little is moved.
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        ensure!(
            self.filled < self.buffer.len(),
            "an answer's head is too long"
        );
        Ok(done)
    }
}

/// The length of the answer that starts here; none while its head is not complete.
fn answer_bytes(framing: Framing, request: u64, bytes: &[u8]) -> Result<Option<usize>> {
    match framing {
        Framing::Binary { at_least } => binary_answer(at_least, request, bytes),
        Framing::Http => http_answer(bytes),
    }
}

fn binary_answer(at_least: usize, request: u64, bytes: &[u8]) -> Result<Option<usize>> {
    let Some(Header {
        len,
        kind,
        request: answered,
    }) = protocol::read_header(bytes)
    else {
        return Ok(None);
    };
    if kind == protocol::ERROR {
        // The text of the refusal may not have arrived yet.
        return match bytes.get(HEADER_BYTES..HEADER_BYTES + len) {
            Some(payload) => bail!("refused: {}", error_text(payload)),
            None => Ok(None),
        };
    }
    ensure!(
        answered == request,
        "answer {answered} came instead of {request}"
    );
    ensure!(
        HEADER_BYTES + len >= at_least,
        "an answer has only {len} bytes"
    );
    Ok(Some(HEADER_BYTES + len))
}

fn http_answer(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    // Names of headers may have any case.
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    ensure!(head.starts_with("http/1.1 200"), "refused: {head}");
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    let length = length.context("an answer without content-length")?;
    Ok(Some(end + 4 + length.trim().parse::<usize>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(framing: Framing, bytes: &[u8], step: usize) -> Result<usize> {
        let mut answers = Answers::new(framing);
        let mut done = 0;
        for chunk in bytes.chunks(step) {
            answers.buffer[answers.filled..answers.filled + chunk.len()].copy_from_slice(chunk);
            answers.filled += chunk.len();
            done += answers.scan_buffer()?;
        }
        Ok(done)
    }

    #[test]
    fn answers_are_counted_however_they_are_cut() {
        let frames: Vec<u8> = (0..3)
            .flat_map(|n| protocol::whole_frame(5, n, b"1234567"))
            .collect();
        let pages = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".repeat(3);
        for step in 1..frames.len() {
            assert_eq!(
                scan(Framing::Binary { at_least: 0 }, &frames, step).unwrap(),
                3,
                "{step}"
            );
            assert_eq!(scan(Framing::Http, &pages, step).unwrap(), 3, "{step}");
        }
    }

    #[test]
    fn a_wrong_answer_stops_the_run() {
        let framing = Framing::Binary { at_least: 20 };
        assert!(scan(framing, &protocol::whole_frame(5, 1, b"1234567"), 99).is_err());
        assert!(scan(framing, &protocol::whole_frame(5, 0, b"123"), 99).is_err());
        let refusal = protocol::whole_frame(protocol::ERROR, 0, b"12345678{\"code\":\"Conflict\"}");
        assert!(
            scan(framing, &refusal, 99)
                .unwrap_err()
                .to_string()
                .contains("Conflict")
        );
        assert!(scan(Framing::Http, b"HTTP/1.1 404 Not Found\r\n\r\n", 99).is_err());
    }
}
