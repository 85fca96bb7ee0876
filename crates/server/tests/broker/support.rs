//! A broker in a temporary directory, and peers that speak to it frame by frame.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use turnkeep_server::broker::{BrokerConfig, Outlets, RunningBroker, start};
use turnkeep_types::broker::{
    CompletedTurn, Deliver, Hello, Inject, Paste, Reason, Register, Reply, Request, Role,
    ServerMessage,
};
use turnkeep_types::{ManualClock, Timestamp};
use turnkeep_wire::broker::{decode_message, encode_request, next_frame};

pub(crate) use crate::stopped_time::within;

/// A running broker.
pub(crate) struct Harness {
    pub(crate) dir: TempDir,
    pub(crate) broker: RunningBroker,
    pub(crate) clock: Arc<ManualClock>,
}

impl Harness {
    pub(crate) fn start() -> Self {
        Self::with(Outlets::default(), |_| {})
    }

    pub(crate) fn with(outlets: Outlets, change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = BrokerConfig::new(dir.path().join("turnkeep/broker.sock"));
        change(&mut config);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000)));
        let broker = start(config, outlets, Arc::<ManualClock>::clone(&clock)).unwrap();
        Self { dir, broker, clock }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A broker of another user, who no process of this test is.
    pub(crate) fn with_other_peer_uid() -> Self {
        let mut harness = Self::start();
        let mut config = BrokerConfig::new(harness.path("other.sock"));
        std::fs::create_dir(harness.path("own")).unwrap();
        config.socket = harness.path("own/broker.sock");
        config.peer_uid = config.uid + 1;
        harness.broker = start(
            config,
            Outlets::default(),
            Arc::<ManualClock>::clone(&harness.clock),
        )
        .unwrap();
        harness
    }

    /// A connection that has said nothing yet.
    pub(crate) async fn dial(&self) -> Peer {
        let stream = UnixStream::connect(self.broker.socket()).await.unwrap();
        Peer {
            stream,
            buffer: BytesMut::new(),
            next_id: 1,
            early: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(crate) async fn greeted(&self, role: Role) -> Peer {
        let mut peer = self.dial().await;
        peer.send(0, &Request::Hello(Hello { version: 1, role }))
            .await;
        assert_eq!(peer.receive().await, Some(ServerMessage::HelloAck(Ok(()))));
        peer
    }

    pub(crate) async fn client(&self) -> Peer {
        self.greeted(Role::Client).await
    }

    /// A wrapper with a registered session.
    pub(crate) async fn wrapper(&self, session: &str) -> Peer {
        let mut peer = self.greeted(Role::Wrapper).await;
        let register = Register {
            session: session.to_owned(),
            pid: 1,
            ..Register::default()
        };
        assert_eq!(peer.ask(Request::Register(register)).await, Ok(Reply::Done));
        peer
    }

    /// A wrapper whose session has completed a turn that is captured.
    pub(crate) async fn captured(&self, session: &str, content: &[u8]) -> (Peer, Peer) {
        let mut wrapper = self.wrapper(session).await;
        wrapper.complete(session, content).await.unwrap();
        let mut client = self.client().await;
        client
            .ask(Request::Capture {
                session: session.to_owned(),
            })
            .await
            .unwrap();
        (wrapper, client)
    }
}

/// One end of a connection.
pub(crate) struct Peer {
    pub(crate) stream: UnixStream,
    buffer: BytesMut,
    next_id: u32,
    /// What was injected before an answer.
    early: Vec<Bytes>,
    /// What else was said before an answer.
    told: Vec<ServerMessage>,
}

impl Peer {
    pub(crate) async fn send(&mut self, id: u32, request: &Request) {
        self.send_bytes(&encode_request(id, request).unwrap()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends a frame with this body.
    pub(crate) async fn send_body(&mut self, body: &[u8]) {
        let length = u16::try_from(body.len())
            .unwrap()
            .swap_bytes()
            .to_le_bytes();
        self.send_bytes(&[&[0, 0][..], &length, body].concat())
            .await;
    }

    /// The next message; none when the broker has closed the connection.
    pub(crate) async fn receive(&mut self) -> Option<ServerMessage> {
        loop {
            if let Some(body) = next_frame(&mut self.buffer).unwrap() {
                return Some(decode_message(&body).unwrap());
            }
            match within(self.stream.read_buf(&mut self.buffer)).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Result<Reply, Reason> {
        let asked = self.next_id;
        self.next_id += 1;
        self.send(asked, &request).await;
        loop {
            match self.receive().await {
                Some(ServerMessage::Response { id, outcome }) if id == asked => {
                    return outcome.map_err(|refusal| refusal.reason);
                }
                Some(ServerMessage::Inject(inject)) => self.early.push(inject.content),
                Some(unasked @ (ServerMessage::Show { .. } | ServerMessage::Screen(_))) => {
                    self.told.push(unasked);
                }
                other => panic!("not the answer to {asked}: {other:?}"),
            }
        }
    }

    pub(crate) async fn complete(
        &mut self,
        session: &str,
        content: &[u8],
    ) -> Result<Reply, Reason> {
        let turn = CompletedTurn {
            session: session.to_owned(),
            content: Bytes::copy_from_slice(content),
            ..CompletedTurn::default()
        };
        self.ask(Request::TurnCompleted(Box::new(turn))).await
    }

    pub(crate) async fn paste(&mut self, session: &str) -> Result<Reply, Reason> {
        self.ask(Request::Paste(Paste {
            session: session.to_owned(),
            ..Paste::default()
        }))
        .await
    }

    pub(crate) async fn deliver(&mut self, deliver: Deliver) -> Result<Reply, Reason> {
        self.ask(Request::Deliver(deliver)).await
    }

    /// The next message about shared terminals.
    pub(crate) async fn told(&mut self) -> ServerMessage {
        if !self.told.is_empty() {
            return self.told.remove(0);
        }
        self.receive().await.unwrap()
    }

    pub(crate) async fn injected(&mut self) -> Bytes {
        match self.receive().await {
            Some(ServerMessage::Inject(Inject { content, .. })) => content,
            other => panic!("no injection: {other:?}"),
        }
    }

    /// The next injection, whatever answers come before it.
    pub(crate) async fn next_injected(&mut self) -> Bytes {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        self.injected().await
    }

    /// Sends bytes that are no message; the broker refuses them and ends the connection.
    pub(crate) async fn send_and_be_refused(mut self, body: &[u8]) {
        self.send_body(body).await;
        self.is_closed_with(Reason::Malformed).await;
    }

    /// The reason for which the next answer refuses.
    pub(crate) async fn refused(&mut self) -> Reason {
        match self.receive().await {
            Some(ServerMessage::Response {
                outcome: Err(refusal),
                ..
            }) => refusal.reason,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Waits, without reading, until the broker has given up; then finds only a part of the answer.
    pub(crate) async fn ends_within_its_answer(&mut self) {
        let given_up = async { while self.stream.write_all(&[0; 4096]).await.is_ok() {} };
        within(given_up).await;
        assert_eq!(
            self.receive().await,
            None,
            "the answer was written to a client that did not read"
        );
    }

    /// Expects a refusal and then the end of the connection.
    pub(crate) async fn is_closed_with(&mut self, reason: Reason) {
        let refusal = match self.receive().await {
            Some(
                ServerMessage::Response {
                    outcome: Err(refusal),
                    ..
                }
                | ServerMessage::HelloAck(Err(refusal)),
            ) => refusal,
            other => panic!("not refused: {other:?}"),
        };
        assert_eq!(refusal.reason, reason);
        assert_eq!(self.receive().await, None, "the connection goes on");
    }
}
