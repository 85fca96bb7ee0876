//! A writer: one connection with requests in flight, each with a key of its own. What was not
//! answered when the connection ended is sent again on the next one.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::{Bytes, BytesMut};
use turnkeep_types::{BlobHash, Compression, ContextId};
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, CreateContext, GetLast, ItemForm, ReadOptions, SentTurn,
};
use turnkeep_wire::{Frame, Request, Response, Text};

const IN_FLIGHT: usize = 12;

/// A turn as an ack or a reader tells it: id, depth, hash.
pub(crate) type Told = (u64, u32, [u8; 32]);

/// An append that was acked.
pub(crate) struct Kept {
    pub(crate) key: Vec<u8>,
    pub(crate) context: u64,
    pub(crate) turns: Vec<Told>,
}

pub(crate) struct Writer {
    number: u64,
    next: u64,
    /// Its own context and the one that all share.
    contexts: Option<[ContextId; 2]>,
    /// Every append that it ever asked for: key and payloads.
    asked: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Asked for and not answered.
    open: VecDeque<(Vec<u8>, Request)>,
    pub(crate) acked: Vec<Kept>,
}

impl Writer {
    pub(crate) fn new(number: u64) -> Self {
        let (asked, open) = (BTreeMap::new(), VecDeque::new());
        Self {
            number,
            next: 0,
            contexts: None,
            asked,
            open,
            acked: Vec::new(),
        }
    }

    pub(crate) fn asked(&self) -> impl Iterator<Item = (&[u8], &[Vec<u8>])> {
        self.asked
            .iter()
            .map(|(key, payloads)| (&key[..], &payloads[..]))
    }

    /// Writes until the server is gone. `on_ack` is called for every answer.
    pub(crate) fn write_until_the_end(&mut self, address: &str, on_ack: &(impl Fn() + Sync)) {
        let Some(mut peer) = Peer::connect(address) else {
            return;
        };
        if !self.know_contexts(&mut peer) {
            return;
        }
        self.resend(&mut peer);
        loop {
            while self.open.len() < IN_FLIGHT {
                let (key, request) = self.new_append();
                peer.send(&request);
                self.open.push_back((key, request));
            }
            if !self.take_answer(&mut peer) {
                return;
            }
            on_ack();
        }
    }

    /// Gets an answer to everything that is open.
    pub(crate) fn finish(&mut self, address: &str) {
        let mut peer = Peer::connect(address).unwrap();
        assert!(self.know_contexts(&mut peer));
        self.resend(&mut peer);
        while !self.open.is_empty() {
            assert!(
                self.take_answer(&mut peer),
                "the server ends the connection"
            );
        }
    }

    fn resend(&mut self, peer: &mut Peer) {
        for (_, request) in &self.open {
            peer.send(request);
        }
    }

    /// Creates the contexts, or learns again which ones they are; false if the server is gone.
    fn know_contexts(&mut self, peer: &mut Peer) -> bool {
        let names = [format!("own {}", self.number), "shared".to_owned()];
        let created: Option<Vec<ContextId>> =
            names.into_iter().map(|name| peer.create(name)).collect();
        let Some(created) = created else { return false };
        let created = [created[0], created[1]];
        assert_eq!(
            *self.contexts.get_or_insert(created),
            created,
            "a key gives its first answer"
        );
        true
    }

    /// The next append: mostly one turn, sometimes three as one; to its own context or to the
    /// shared one.
    fn new_append(&mut self) -> (Vec<u8>, Request) {
        let number = self.next;
        self.next += 1;
        let key = format!("writer {} append {number}", self.number).into_bytes();
        let context = self.contexts.unwrap()[usize::from(number.is_multiple_of(3))];
        let count = if number % 5 == 4 { 3 } else { 1 };
        let payloads: Vec<Vec<u8>> = (0..count).map(|turn| self.payload(number, turn)).collect();
        let mut turns: Vec<SentTurn> = payloads.iter().map(|payload| sent_turn(payload)).collect();
        self.asked.insert(key.clone(), payloads);
        let (parent, expected_head, sent_key) = (None, None, Bytes::from(key.clone()));
        let request = if count == 1 {
            let turn = turns.remove(0);
            Request::AppendTurn(AppendTurn {
                context,
                parent,
                turn,
                key: sent_key,
                fs_root: None,
                expected_head,
            })
        } else {
            Request::AppendBatch(AppendBatch {
                context,
                parent,
                turns,
                key: sent_key,
                expected_head,
            })
        };
        (key, request)
    }

    /// Mostly short, now and then long enough to be compressed, now and then one that others send
    /// too.
    fn payload(&self, number: u64, turn: u64) -> Vec<u8> {
        let text = format!("writer {} append {number} turn {turn};", self.number);
        match number % 8 {
            1 => text.repeat(200).into_bytes(),
            2 => b"the same for all".to_vec(),
            _ => text.into_bytes(),
        }
    }

    /// Takes one answer; false when the connection has ended. Appends of one connection may be
    /// answered in any order across contexts.
    fn take_answer(&mut self, peer: &mut Peer) -> bool {
        let Some((req_id, response)) = peer.receive() else {
            return false;
        };
        let key = peer.sent_key(req_id);
        let at = self
            .open
            .iter()
            .position(|(open, _)| *open == key)
            .expect("it is answered once");
        let (key, _) = self.open.remove(at).unwrap();
        let (context, turns) = match response {
            Response::TurnAppended(ack) => {
                (ack.context, vec![(ack.turn.get(), ack.depth, ack.hash.0)])
            }
            Response::BatchAppended(ack) => (
                ack.context,
                ack.turns
                    .iter()
                    .map(|turn| (turn.turn.get(), turn.depth, turn.hash.0))
                    .collect(),
            ),
            other => panic!("{other:?}"),
        };
        self.acked.push(Kept {
            key,
            context: context.get(),
            turns,
        });
        true
    }
}

fn sent_turn(payload: &[u8]) -> SentTurn {
    SentTurn {
        type_id: Text::from("com.example.Note"),
        type_version: 1,
        encoding: 1,
        compression: Compression::None,
        raw_len: u32::try_from(payload.len()).unwrap(),
        hash: BlobHash::of(payload),
        payload: Bytes::copy_from_slice(payload),
    }
}

/// All turns of a context as the server reads them: id, depth, hash of the bytes that it sends.
pub(crate) fn read_back(address: &str, context: u64) -> Vec<Told> {
    let mut peer = Peer::connect(address).unwrap();
    let context = ContextId::new(context).unwrap();
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let request = Request::GetLast(GetLast {
        context,
        limit: 10_000,
        options,
    });
    peer.send(&request);
    match peer.receive().unwrap().1 {
        Response::Last(items) => items
            .iter()
            .map(|item| {
                (
                    item.turn.get(),
                    item.depth,
                    *blake3::hash(&item.payload).as_bytes(),
                )
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// A connection. A server that is gone is no error: sending is in vain, and receiving gives none.
struct Peer {
    stream: TcpStream,
    input: BytesMut,
    /// The keys of the requests, by request id.
    keys: Vec<Vec<u8>>,
}

impl Peer {
    fn connect(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            stream,
            input: BytesMut::new(),
            keys: Vec::new(),
        })
    }

    fn send(&mut self, request: &Request) {
        let mut out = BytesMut::new();
        request.encode(self.keys.len() as u64, &mut out);
        self.keys.push(match request {
            Request::AppendTurn(append) => append.key.to_vec(),
            Request::AppendBatch(append) => append.key.to_vec(),
            _ => Vec::new(),
        });
        drop(self.stream.write_all(&out));
    }

    fn sent_key(&self, req_id: u64) -> Vec<u8> {
        self.keys[usize::try_from(req_id).unwrap()].clone()
    }

    fn receive(&mut self) -> Option<(u64, Response)> {
        loop {
            if let Some(frame) = Frame::split_first(&mut self.input, 64 << 20).unwrap() {
                let req_id = frame.header.req_id;
                return Some((req_id, Response::decode(frame, ItemForm::Plain).unwrap()));
            }
            let mut buffer = [0; 1 << 14];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(len) => self.input.extend_from_slice(&buffer[..len]),
            }
        }
    }

    /// Creates a context by a key; none if the server is gone.
    fn create(&mut self, name: String) -> Option<ContextId> {
        self.send(&Request::CreateContext(CreateContext {
            base: None,
            key: Some(name.into()),
        }));
        match self.receive()?.1 {
            Response::ContextCreated(head) => Some(head.context),
            other => panic!("{other:?}"),
        }
    }
}
