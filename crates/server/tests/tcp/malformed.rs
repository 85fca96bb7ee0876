//! Every malformed golden frame, and every golden request, against a real server.

use serde_json::Value;
use turnkeep_server::{Auth, Token};
use turnkeep_wire::message::{ItemForm, Request, Response};

use crate::support::{Server, context, status};

fn golden(file: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/frames/");
    serde_json::from_str(&std::fs::read_to_string(format!("{path}{file}")).unwrap()).unwrap()
}

fn bytes(entry: &Value) -> Vec<u8> {
    hex::decode(entry["hex"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn every_malformed_frame_is_answered_and_only_the_endless_ones_end_the_connection() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    for entry in golden("malformed.json") {
        peer.send_bytes(&bytes(&entry)).await;
        let (_, response) = peer.receive().await;
        assert_eq!(
            u64::from(status(&response)),
            entry["status"].as_u64().unwrap(),
            "{entry}"
        );
        if entry["connection"] == "closes" {
            assert_eq!(peer.frame().await, None, "{entry}");
            peer = server.connect().await;
        }
        assert_eq!(
            peer.ask_in_vain(&Request::GetHead(context(77))).await,
            404,
            "it goes on after {entry}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn every_golden_request_is_answered_under_its_own_id() {
    // One of them shows a token, which counts also where none is needed.
    let server =
        Server::start_with(|config| config.auth = Auth::Off(Some(Token::new("secret")))).await;
    let mut peer = server.connect().await;
    for entry in golden("requests.json") {
        peer.send_bytes(&bytes(&entry)).await;
        let frame = peer.frame().await.expect("an answer");
        assert_eq!(
            frame.header.req_id.to_string(),
            entry["req_id"].as_str().unwrap()
        );
        let own_type = u64::from(frame.header.msg_type) == entry["msg_type"].as_u64().unwrap();
        assert!(own_type || frame.header.msg_type == 255, "{entry}");
        assert!(Response::decode(frame, ItemForm::Plain).is_ok(), "{entry}");
        if entry["name"] == "subscribe_to_all_from_now" {
            // Its id is every golden request's id, so it would be in the way of the next ones.
            let cancel = Request::Cancel(entry["req_id"].as_str().unwrap().parse().unwrap());
            assert_eq!(peer.ask(&cancel).await, Response::Cancelled);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_arrive_one_by_one_are_the_same_frames() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    for entry in golden("requests.json")
        .iter()
        .filter(|entry| entry["msg_type"] == 4)
    {
        for byte in bytes(entry) {
            peer.send_bytes(&[byte]).await;
        }
        assert_eq!(status(&peer.receive().await.1), 404);
    }
    server.stop().await;
}
