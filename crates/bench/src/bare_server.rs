//! The bare server: the least that a server of this protocol can do and still ack durably.
//!
//! It parses frames, checks each payload's BLAKE3 and commits in groups: one write and one sync
//! into a preallocated file by one writer thread. It keeps no turns, heads, keys or blobs, cannot
//! read back what it wrote, and answers `GET_LAST` with the same page from memory. Its rate is the
//! ceiling.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::bare_file::BareFile;
use super::protocol::{self, ACK_BYTES, HEADER_BYTES, Header};

/// Appends that wait for the writer: more than the largest load has in flight.
const QUEUE_MAX: usize = 8192;
const GROUP_MAX: usize = 1024;
const GROUP_BYTES_MAX: usize = 8 << 20;
const READ_BYTES: usize = 256 << 10;
/// The log; writing starts over at its end.
const FILE_BYTES: u64 = 128 << 20;

/// An append on its way to the disk.
struct Pending {
    frame: Bytes,
    ack: Vec<u8>,
    outbox: Arc<Outbox>,
}

/// Acks of one connection that wait to be sent.
#[derive(Default)]
struct Outbox {
    bytes: Mutex<Vec<u8>>,
    ready: Notify,
}

/// What is durable and not yet handed to the connections. One wake-up per group crosses the
/// threads; waking the connections from inside the runtime costs no system call.
#[derive(Default)]
struct Done {
    acks: Mutex<Vec<Pending>>,
    ready: Notify,
}

struct Shared {
    queue: SyncSender<Pending>,
    page: Vec<u8>,
    turns: AtomicU64,
    contexts: AtomicU64,
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until the process is ended; prints the address first.
pub(super) fn serve_bare(folder: &Path, payload: usize) -> Result<()> {
    let file = BareFile::create(folder, FILE_BYTES)?;
    let (queue, pending) = sync_channel(QUEUE_MAX);
    let done = Arc::new(Done::default());
    let writer = start_writer(file, pending, Arc::clone(&done))?;
    let shared = Arc::new(Shared {
        queue,
        page: page_of_turns(payload),
        turns: 0.into(),
        contexts: 0.into(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve_connections(shared, &done))?;
    let written = writer.join();
    written.map_err(|_| anyhow::anyhow!("the writer panicked"))?
}

/// Starts the one thread that writes, as the server under test has one.
fn start_writer(
    file: BareFile,
    queue: Receiver<Pending>,
    done: Arc<Done>,
) -> Result<JoinHandle<Result<()>>> {
    let thread = std::thread::Builder::new().name("bare-writer".to_owned());
    Ok(thread.spawn(move || write_groups(file, &queue, &done))?)
}

async fn serve_connections(shared: Arc<Shared>, done: &Done) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    // The parent reads this line to learn the port.
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    tokio::select! {
        result = accept_connections(listener, shared) => result,
        () = hand_out_acks(done) => Ok(()),
    }
}

/// The answer to every `GET_LAST`: a page of turns with payloads.
fn page_of_turns(payload: usize) -> Vec<u8> {
    // A page's item, field by field, with zeros for everything but the payload.
    let mut item = vec![0; 8 + 8 + 4 + 4];
    item.extend_from_slice(&[0; 16 + 32]);
    item.extend_from_slice(&u32::try_from(payload).unwrap_or(u32::MAX).to_le_bytes());
    item.resize(item.len() + payload, 0x5A);
    let mut page = protocol::PAGE_TURNS.to_le_bytes().to_vec();
    page.extend(item.repeat(protocol::PAGE_TURNS as usize));
    page
}

fn write_groups(mut file: BareFile, queue: &Receiver<Pending>, done: &Done) -> Result<()> {
    let (mut buffer, mut group) = (Vec::new(), Vec::new());
    while let Ok(first) = queue.recv() {
        buffer.clear();
        // The first one is waited for. The others have gathered during the sync before.
        let mut next = Some(first);
        while let Some(pending) = next {
            buffer.extend_from_slice(&pending.frame);
            group.push(pending);
            let room = group.len() < GROUP_MAX && buffer.len() < GROUP_BYTES_MAX;
            next = if room { queue.try_recv().ok() } else { None };
        }
        file.write_synced(&buffer)?;
        lock_unpoisoned(&done.acks).append(&mut group);
        done.ready.notify_one();
    }
    Ok(())
}

async fn hand_out_acks(done: &Done) {
    loop {
        done.ready.notified().await;
        for pending in std::mem::take(&mut *lock_unpoisoned(&done.acks)) {
            lock_unpoisoned(&pending.outbox.bytes).extend_from_slice(&pending.ack);
            pending.outbox.ready.notify_one();
        }
    }
}

async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let shared = Arc::clone(&shared);
        // The connection ends with its client; the process ends with the benchmark.
        tokio::spawn(async move {
            if let Err(error) = Connection::new(stream, shared).run().await {
                crate::report_progress(&format!("bare server: {error}"));
            }
        });
    }
}

struct Connection {
    stream: TcpStream,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    input: BytesMut,
    output: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        let input = BytesMut::with_capacity(READ_BYTES);
        Self {
            stream,
            shared,
            outbox: Arc::default(),
            input,
            output: Vec::new(),
        }
    }

    async fn run(mut self) -> Result<()> {
        let outbox = Arc::clone(&self.outbox);
        loop {
            self.input.reserve(READ_BYTES / 2);
            tokio::select! {
                read = self.stream.read_buf(&mut self.input) => if read? == 0 { return Ok(()) },
                () = outbox.ready.notified() => {}
            }
            while let Some((header, frame)) = self.next_frame() {
                self.answer_frame(header, frame)?;
            }
            self.output.append(&mut lock_unpoisoned(&outbox.bytes));
            if !self.output.is_empty() {
                self.stream.write_all(&self.output).await?;
                self.output.clear();
            }
        }
    }

    fn next_frame(&mut self) -> Option<(Header, Bytes)> {
        let header = protocol::read_header(&self.input)?;
        let len = HEADER_BYTES + header.len;
        (self.input.len() >= len).then(|| (header, self.input.split_to(len).freeze()))
    }

    fn answer_frame(&mut self, header: Header, frame: Bytes) -> Result<()> {
        match header.kind {
            protocol::APPEND_TURN => self.queue_append(header, frame)?,
            protocol::GET_LAST => push_reply(&mut self.output, header, &self.shared.page),
            protocol::CTX_CREATE => {
                let context = self.shared.contexts.fetch_add(1, Ordering::Relaxed) + 1;
                let created = [&context.to_le_bytes()[..], &[0; 12]].concat();
                push_reply(&mut self.output, header, &created);
            }
            // A fixed answer: the load generator does not look at it.
            protocol::HELLO => {
                push_reply(&mut self.output, header, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
            }
            kind => bail!("message {kind} is not for the bare server"),
        }
        Ok(())
    }

    fn queue_append(&mut self, header: Header, frame: Bytes) -> Result<()> {
        let append = frame.slice(HEADER_BYTES..);
        let (hash, _) = protocol::checked_payload(&append)?;
        let turn = self.shared.turns.fetch_add(1, Ordering::Relaxed) + 1;
        let context = append.get(..8).unwrap_or_default();
        let pending = Pending {
            ack: append_ack(header, context, turn, &hash),
            frame,
            outbox: Arc::clone(&self.outbox),
        };
        if self.shared.queue.send(pending).is_err() {
            bail!("the writer stopped");
        }
        Ok(())
    }
}

/// Adds a reply to a request to the bytes that a connection sends next.
fn push_reply(output: &mut Vec<u8>, request: Header, payload: &[u8]) {
    let header = Header {
        len: payload.len(),
        ..request
    };
    protocol::put_header(output, header);
    output.extend_from_slice(payload);
}

/// The ack of an append: context, turn, depth (always 0) and hash.
fn append_ack(request: Header, context: &[u8], turn: u64, hash: &[u8; 32]) -> Vec<u8> {
    let mut ack = Vec::with_capacity(ACK_BYTES);
    let header = Header {
        len: ACK_BYTES - HEADER_BYTES,
        ..request
    };
    protocol::put_header(&mut ack, header);
    ack.extend_from_slice(context);
    ack.extend_from_slice(&turn.to_le_bytes());
    ack.extend_from_slice(&[0; 4]);
    ack.extend_from_slice(hash);
    ack
}
