//! A peer that speaks frames to the server.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use turnkeep_types::{BlobHash, Compression, ContextId, TurnId};
use turnkeep_wire::message::{
    AppendTurn, ContextHead, CreateContext, ItemForm, Request, Response, SentTurn, TurnAck,
};
use turnkeep_wire::{Frame, Text};

pub(crate) use crate::memory_server::{NOW_MS, Server};
use crate::stopped_time::within;

impl Server {
    pub(crate) async fn connect(&self) -> Peer {
        Peer::connect(self.tcp_addr()).await
    }

    /// Whether the server accepts one more connection and answers on it.
    pub(crate) async fn serves_another(&self, context: ContextId) -> bool {
        let answer = self.connect().await.try_head(context).await;
        answer.is_some_and(|response| matches!(response, Response::Head(_)))
    }

    /// Waits until large requests hold so many bytes of the memory budget.
    pub(crate) async fn until_held(&self, bytes: usize) {
        self.until_metric(&format!("turnkeep_memory_used_bytes {bytes}\n"))
            .await;
    }

    /// Waits until a request waits for memory.
    pub(crate) async fn until_one_waits(&self) {
        self.until_metric("turnkeep_memory_waiting_requests 1\n")
            .await;
    }

    async fn until_metric(&self, line: &str) {
        let ask = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let shown = async {
            loop {
                let mut stream = TcpStream::connect(self.http_addr()).await.unwrap();
                stream.write_all(ask).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                if answer.contains(line) {
                    return;
                }
            }
        };
        within(shown).await;
    }
}

/// What a peer speaks over: TCP, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Peer {
    stream: Box<dyn Stream>,
    input: BytesMut,
    last_id: u64,
}

impl Peer {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(Box::new(stream))
    }

    pub(crate) fn over(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            last_id: 0,
        }
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Ends this side's half of the connection.
    pub(crate) async fn finish_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) async fn send(&mut self, request: &Request) -> u64 {
        self.last_id += 1;
        let mut out = BytesMut::new();
        request.encode(self.last_id, &mut out);
        self.send_bytes(&out).await;
        self.last_id
    }

    /// The next frame, or none when the server has ended the connection.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::split_first(&mut self.input, 80 << 20).unwrap() {
                return Some(frame);
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Whether the connection ends without anything that could be a frame of ours.
    pub(crate) async fn no_frame(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = self.stream.read_to_end(&mut rest).await;
        read.is_err() || rest.len() < turnkeep_wire::HEADER_BYTES
    }

    pub(crate) async fn receive(&mut self) -> (u64, Response) {
        self.receive_as(ItemForm::Plain).await
    }

    pub(crate) async fn receive_as(&mut self, form: ItemForm) -> (u64, Response) {
        let frame = self
            .frame()
            .await
            .expect("an answer, not the connection's end");
        (frame.header.req_id, Response::decode(frame, form).unwrap())
    }

    pub(crate) async fn ask(&mut self, request: &Request) -> Response {
        let sent = self.send(request).await;
        let (req_id, response) = self.receive_as(request.item_form()).await;
        assert_eq!(req_id, sent);
        response
    }

    /// Asks for something that must fail, and gives the status.
    pub(crate) async fn ask_in_vain(&mut self, request: &Request) -> u32 {
        status(&self.ask(request).await)
    }

    pub(crate) async fn new_context(&mut self) -> ContextId {
        match self
            .ask(&Request::CreateContext(CreateContext::default()))
            .await
        {
            Response::ContextCreated(head) => head.context,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn append(&mut self, append: AppendTurn) -> TurnAck {
        match self.ask(&Request::AppendTurn(append)).await {
            Response::TurnAppended(ack) => ack,
            other => panic!("{other:?}"),
        }
    }

    /// Asks for a head on a connection that may be refused, or be gone already.
    pub(crate) async fn try_head(&mut self, context: ContextId) -> Option<Response> {
        let mut out = BytesMut::new();
        Request::GetHead(context).encode(1, &mut out);
        self.stream.write_all(&out).await.ok()?;
        Response::decode(self.frame().await?, ItemForm::Plain).ok()
    }

    pub(crate) async fn head(&mut self, context: ContextId) -> ContextHead {
        match self.ask(&Request::GetHead(context)).await {
            Response::Head(head) => head,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn status(response: &Response) -> u32 {
    match response {
        Response::Error(failure) => failure.status,
        other => panic!("an error was expected, not {other:?}"),
    }
}

pub(crate) fn context(number: u64) -> ContextId {
    ContextId::new(number).unwrap()
}

pub(crate) fn turn(number: u64) -> TurnId {
    TurnId::new(number).unwrap()
}

pub(crate) fn sent(payload: impl Into<Bytes>) -> SentTurn {
    let payload = payload.into();
    SentTurn {
        type_id: Text::from("com.example.Message"),
        type_version: 1,
        encoding: 1,
        compression: Compression::None,
        raw_len: u32::try_from(payload.len()).unwrap(),
        hash: BlobHash::of(&payload),
        payload,
    }
}

pub(crate) fn append(context: ContextId, payload: impl Into<Bytes>) -> AppendTurn {
    AppendTurn {
        context,
        parent: None,
        turn: sent(payload),
        key: Bytes::new(),
        fs_root: None,
        expected_head: None,
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}
