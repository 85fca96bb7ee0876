//! The binary port beside the ledger: the owner's alone, and no way past a world's ledger.

use bytes::{Bytes, BytesMut};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnkeep_types::{BlobHash, Compression, ContextId, TurnId};
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, AttachFs, GetBefore, GetLast, GetRange, Hello, ItemForm, ReadOptions,
    Request, Response, SentTurn, Subscribe,
};
use turnkeep_wire::{Frame, Text};

use super::{Kind, Team};
use crate::client::within;

struct Peer {
    stream: TcpStream,
    input: BytesMut,
}

impl Peer {
    /// A connection that has shown this token.
    async fn greet(team: &Team, kind: Kind) -> (Self, Response) {
        let stream = TcpStream::connect(team.server.tcp_addr()).await.unwrap();
        let mut peer = Self {
            stream,
            input: BytesMut::new(),
        };
        let meta = json!({ "token": team.token(kind) }).to_string().into();
        let answer = peer
            .ask(&Request::Hello(Some(Hello {
                version: 1,
                tag: Text::from("test"),
                meta,
            })))
            .await;
        (peer, answer)
    }

    async fn ask(&mut self, request: &Request) -> Response {
        let mut out = BytesMut::new();
        request.encode(1, &mut out);
        self.stream.write_all(&out).await.unwrap();
        loop {
            if let Some(frame) = Frame::split_first(&mut self.input, 1 << 20).unwrap() {
                return Response::decode(frame, ItemForm::Plain).unwrap();
            }
            assert_ne!(
                within(self.stream.read_buf(&mut self.input)).await.unwrap(),
                0,
                "an answer"
            );
        }
    }
}

fn status(response: &Response) -> Option<u32> {
    match response {
        Response::Error(failure) => Some(failure.status),
        _ => None,
    }
}

#[tokio::test]
async fn n33_a_person_s_token_opens_no_binary_port() {
    let team = Team::start().await;
    for (kind, expect) in [
        (Kind::Reader, Some(401)),
        (Kind::Writer, Some(401)),
        (Kind::Foreign, Some(401)),
        (Kind::Wrong, Some(401)),
        (Kind::Owner, None),
    ] {
        let (_, answer) = Peer::greet(&team, kind).await;
        assert_eq!(status(&answer), expect, "{kind:?}");
    }
    team.stop().await;
}

#[tokio::test]
async fn the_binary_port_writes_nothing_to_a_world_and_its_reads_leave_lines() {
    let team = Team::start().await;
    team.say("r-1", "hello").await;
    let page = team
        .get(
            Kind::Owner,
            "/v1/contexts?label=turnkeep.ledger.family=REALITY&limit=9",
        )
        .await
        .json();
    let contexts = page["contexts"].as_array().unwrap().iter();
    let reality = contexts
        .clone()
        .find(|context| context["labels"]["turnkeep.ledger.world"] == "team")
        .unwrap();
    let context: ContextId = reality["context_id"].as_str().unwrap().parse().unwrap();
    let head: TurnId = reality["head_turn_id"].as_str().unwrap().parse().unwrap();
    let payload = Bytes::from_static(b"\x80");
    let turn = SentTurn {
        type_id: Text::from("x"),
        type_version: 1,
        encoding: 1,
        compression: Compression::None,
        raw_len: 1,
        hash: BlobHash::of(&payload),
        payload,
    };
    let (mut peer, _) = Peer::greet(&team, Kind::Owner).await;
    let before = team.recorded();
    let key = Bytes::new();
    let append = AppendTurn {
        context,
        parent: None,
        turn: turn.clone(),
        key: key.clone(),
        fs_root: None,
        expected_head: None,
    };
    let batch = AppendBatch {
        context,
        parent: None,
        turns: vec![turn.clone()],
        key,
        expected_head: None,
    };
    let attach = AttachFs {
        turn: head,
        root: turn.hash,
    };
    for request in [
        Request::AppendTurn(append),
        Request::AppendBatch(batch),
        Request::AttachFs(attach),
    ] {
        assert_eq!(status(&peer.ask(&request).await), Some(403), "{request:?}");
    }
    assert_eq!(team.recorded(), before);
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let structure = ReadOptions::default();
    let range = GetRange {
        context,
        start_depth: 0,
        limit: 1,
        options: structure,
    };
    for request in [
        Request::GetLast(GetLast {
            context,
            limit: 3,
            options: structure,
        }),
        Request::GetBefore(GetBefore {
            context,
            before: Some(head),
            limit: 3,
            options: structure,
        }),
        Request::GetRange(range),
        Request::GetHead(context),
    ] {
        assert_eq!(status(&peer.ask(&request).await), None, "{request:?}");
    }
    assert_eq!(
        team.recorded(),
        before,
        "ids, parents and depths are no content"
    );
    let last = peer
        .ask(&Request::GetLast(GetLast {
            context,
            limit: 3,
            options,
        }))
        .await;
    assert_eq!(status(&last), None, "{last:?}");
    let hash = team
        .server
        .store
        .last(context, 1)
        .unwrap()
        .pop()
        .unwrap()
        .hash;
    let blob = peer.ask(&Request::GetBlob(hash)).await;
    assert_eq!(status(&blob), None, "{blob:?}");
    for followed in [Some(context), None] {
        let (mut peer, _) = Peer::greet(&team, Kind::Owner).await;
        let subscribe = Subscribe {
            context: followed,
            after: None,
            options,
        };
        assert_eq!(
            status(&peer.ask(&Request::Subscribe(subscribe)).await),
            None,
            "{followed:?}"
        );
    }
    let lines = team.lines().await;
    let reads: Vec<_> = lines
        .iter()
        .filter(|(what, _)| what == "store-read")
        .map(|(_, details)| &details["how"])
        .collect();
    assert_eq!(reads, ["turns", "blob", "events", "events"]);
    team.stop().await;
}
