//! What another implementation would send and see, byte for byte.

use turnkeep_types::broker::{Reason, Reply, ServerMessage, SessionInfo};

use crate::support::Harness;

fn text(text: &str) -> Vec<u8> {
    [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// A map of texts to values that are MessagePack already.
fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![0x80 | u8::try_from(fields.len()).unwrap()];
    for (name, value) in fields {
        body.extend(text(name));
        body.extend(value);
    }
    body
}

#[tokio::test]
async fn a_conversation_written_by_hand_is_understood() {
    let harness = Harness::start();
    let mut peer = harness.dial().await;
    let hello = map(&[
        ("type", text("hello")),
        ("id", vec![0]),
        ("version", vec![1]),
        ("role", text("wrapper")),
    ]);
    peer.send_body(&hello).await;
    assert_eq!(peer.receive().await, Some(ServerMessage::HelloAck(Ok(()))));
    let register = map(&[
        ("id", vec![0xce, 0, 0, 0, 7]),
        (
            "later",
            vec![0x92, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0x01, 0xc0],
        ),
        ("pattern", text("> $")),
        ("pid", vec![0xd1, 0x00, 0x2a]),
        ("session", text("s")),
        ("name", vec![0xc0]),
        ("type", text("register")),
    ]);
    peer.send_body(&register).await;
    assert_eq!(
        peer.receive().await,
        Some(ServerMessage::Response {
            id: 7,
            outcome: Ok(Reply::Done)
        })
    );
    peer.send_body(&map(&[("type", text("list_sessions")), ("id", vec![8])]))
        .await;
    let Some(ServerMessage::Response {
        id: 8,
        outcome: Ok(Reply::Sessions(sessions)),
    }) = peer.receive().await
    else {
        panic!("no sessions")
    };
    assert!(
        matches!(
            &sessions[..],
            [SessionInfo {
                pid: 42,
                name: None,
                ..
            }]
        ),
        "{sessions:?}"
    );
}

#[tokio::test]
async fn a_field_of_the_wrong_kind_is_refused_and_the_connection_goes_on() {
    let harness = Harness::start();
    let mut peer = harness.wrapper("s").await;
    let base = [
        ("type", text("turn_completed")),
        ("session", text("s")),
        ("interrupted", vec![0xc2]),
    ];
    let cases = [
        (vec![], Reason::MissingField),
        (vec![("content", vec![0xc0])], Reason::MissingField),
        (vec![("content", text("not binary"))], Reason::BadField),
        (vec![("content", vec![0x05])], Reason::BadField),
        (
            vec![("content", vec![0xc4, 0]), ("seq", vec![0xff])],
            Reason::BadField,
        ),
        (
            vec![("content", vec![0xc4, 0]), ("text", vec![0xa1, 0xff])],
            Reason::BadField,
        ),
        (
            vec![("content", vec![0xc4, 0]), ("incomplete", vec![1])],
            Reason::BadField,
        ),
    ];
    for (number, (fields, reason)) in cases.into_iter().enumerate() {
        let id = u8::try_from(number).unwrap();
        let fields: Vec<_> = base
            .iter()
            .cloned()
            .chain([("id", vec![id])])
            .chain(fields)
            .collect();
        peer.send_body(&map(&fields)).await;
        let Some(ServerMessage::Response {
            id: answered,
            outcome: Err(refusal),
        }) = peer.receive().await
        else {
            panic!("case {number} was not refused")
        };
        assert_eq!(
            (answered, refusal.reason),
            (id.into(), reason),
            "case {number}"
        );
    }
    peer.send_body(&map(&[("type", text("dance")), ("id", vec![99])]))
        .await;
    let outcome = peer.receive().await;
    assert!(
        matches!(&outcome, Some(ServerMessage::Response { id: 99, outcome: Err(refusal) }) if refusal.reason == Reason::UnknownType),
        "{outcome:?}"
    );
    assert!(peer.complete("s", b"still there").await.is_ok());
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_closes() {
    let harness = Harness::start();
    let bodies: [&[u8]; 10] = [
        b"",
        b"\x80",
        b"\xc1",
        b"\x90",
        b"hello",
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &map(&[("type", text("list_sessions"))]),
        &map(&[("id", vec![1])]),
        &[
            map(&[("type", text("list_sessions")), ("id", vec![1])]),
            vec![0],
        ]
        .concat(),
        &[0x81, 0x01, 0x01],
    ];
    for body in bodies {
        harness.dial().await.send_and_be_refused(body).await;
        harness.client().await.send_and_be_refused(body).await;
    }
}
