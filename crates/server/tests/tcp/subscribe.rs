//! Subscriptions: replay, resume, filter, cancel, and being cut off.

use bytes::Bytes;
use turnkeep_types::ContextId;
use turnkeep_wire::message::{AppendBatch, ItemForm, ReadOptions, Request, Response, Subscribe};

use crate::support::{NOW_MS, Peer, Server, append, context, noise, sent};

fn subscribe(context: Option<ContextId>, after: Option<u64>, include_payload: bool) -> Request {
    let options = ReadOptions {
        include_payload,
        ..ReadOptions::default()
    };
    Request::Subscribe(Subscribe {
        context,
        after,
        options,
    })
}

/// One delivery as `(position, context, payload, caught up)`.
async fn delivery(peer: &mut Peer) -> (u64, u64, Bytes, bool) {
    let (_, response) = peer.receive().await;
    let Response::Delivered {
        caught_up,
        delivery,
    } = response
    else {
        panic!("{response:?}")
    };
    (
        delivery.position,
        delivery.context.get(),
        delivery.item.payload,
        caught_up,
    )
}

/// Two contexts with two turns each, appended in turn; events 1 and 2 are the creations.
async fn prepared(server: &Server) -> (Peer, ContextId, ContextId) {
    let mut writer = server.connect().await;
    let (one, two) = (writer.new_context().await, writer.new_context().await);
    for n in 0..2 {
        writer.append(append(one, format!("one {n}"))).await;
        writer.append(append(two, format!("two {n}"))).await;
    }
    (writer, one, two)
}

#[tokio::test]
async fn a_replay_goes_over_into_the_present_without_a_gap() {
    let server = Server::start().await;
    let (mut writer, one, _) = prepared(&server).await;
    let mut reader = server.connect().await;
    assert_eq!(
        reader.ask(&subscribe(None, Some(0), true)).await,
        Response::Subscribed { caught_up: false }
    );
    let text = Bytes::from_static;
    assert_eq!(delivery(&mut reader).await, (3, 1, text(b"one 0"), false));
    assert_eq!(delivery(&mut reader).await, (4, 2, text(b"two 0"), false));
    assert_eq!(delivery(&mut reader).await, (5, 1, text(b"one 1"), false));
    assert_eq!(delivery(&mut reader).await, (6, 2, text(b"two 1"), true));
    writer.append(append(one, "live")).await;
    assert_eq!(delivery(&mut reader).await, (7, 1, text(b"live"), true));
    server.stop().await;
}

#[tokio::test]
async fn a_context_filter_shows_its_own_appends_and_knows_when_it_has_caught_up() {
    let server = Server::start().await;
    let (mut writer, one, two) = prepared(&server).await;
    let mut reader = server.connect().await;
    reader.ask(&subscribe(Some(one), Some(3), false)).await;
    assert_eq!(delivery(&mut reader).await, (5, 1, Bytes::new(), true));
    writer.append(append(two, "not shown")).await;
    writer.append(append(one, "shown")).await;
    assert_eq!(delivery(&mut reader).await, (8, 1, Bytes::new(), true));
    server.stop().await;
}

#[tokio::test]
async fn a_reader_for_whom_nothing_follows_has_caught_up_at_once() {
    let server = Server::start().await;
    let (mut writer, one, two) = prepared(&server).await;
    let empty = writer.new_context().await;
    for (context, after, caught_up) in [
        (one, 5, true),
        (one, 6, true),
        (one, 4, false),
        (two, 6, true),
        (two, 5, false),
        (empty, 0, true),
        (empty, 6, true),
    ] {
        let mut reader = server.connect().await;
        let accepted = reader
            .ask(&subscribe(Some(context), Some(after), false))
            .await;
        assert_eq!(
            accepted,
            Response::Subscribed { caught_up },
            "{context} after {after}"
        );
    }
    let mut all = server.connect().await;
    assert_eq!(
        all.ask(&subscribe(None, Some(6), false)).await,
        Response::Subscribed { caught_up: true }
    );
    let mut reader = server.connect().await;
    reader.ask(&subscribe(Some(one), Some(5), true)).await;
    writer.append(append(one, "live")).await;
    assert_eq!(
        delivery(&mut reader).await,
        (8, 1, Bytes::from_static(b"live"), true)
    );
    assert_eq!(delivery(&mut all).await.0, 8);
    server.stop().await;
}

#[tokio::test]
async fn only_new_appends_are_shown_on_request_and_each_subscription_has_its_id() {
    let server = Server::start().await;
    let (mut writer, one, two) = prepared(&server).await;
    let mut reader = server.connect().await;
    let first = reader.send(&subscribe(Some(one), None, true)).await;
    assert_eq!(
        reader.receive().await,
        (first, Response::Subscribed { caught_up: true })
    );
    let second = reader.send(&subscribe(Some(two), None, true)).await;
    assert_eq!(
        reader.receive().await,
        (second, Response::Subscribed { caught_up: true })
    );
    writer.append(append(two, "second")).await;
    let (req_id, response) = reader.receive().await;
    assert!(matches!(response, Response::Delivered { .. }));
    assert_eq!(req_id, second);
    writer.append(append(one, "first")).await;
    assert_eq!(reader.receive().await.0, first);
    server.stop().await;
}

#[tokio::test]
async fn nothing_of_a_cancelled_subscription_comes_after_its_end() {
    let server = Server::start().await;
    let (mut writer, one, _) = prepared(&server).await;
    let mut reader = server.connect().await;
    let id = reader.send(&subscribe(None, None, false)).await;
    reader.receive().await;
    assert_eq!(reader.ask(&Request::Cancel(id)).await, Response::Cancelled);
    writer.append(append(one, "unseen")).await;
    assert_eq!(
        reader.head(one).await.depth,
        2,
        "the next frame is the next answer"
    );
    assert_eq!(reader.ask_in_vain(&Request::Cancel(id)).await, 404);
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused() {
    let server = Server::start().await;
    prepared(&server).await;
    let mut reader = server.connect().await;
    assert_eq!(
        reader.ask_in_vain(&subscribe(None, Some(7), false)).await,
        409,
        "beyond the end"
    );
    assert_eq!(
        reader
            .ask_in_vain(&subscribe(Some(context(9)), None, false))
            .await,
        404
    );
    assert_eq!(
        reader.ask(&subscribe(None, Some(6), false)).await,
        Response::Subscribed { caught_up: true }
    );
    server.stop().await;
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_told_where_to_resume_and_its_connection_goes_on() {
    let server = Server::start().await;
    let mut writer = server.connect().await;
    let home = writer.new_context().await;
    let mut reader = server.connect().await;
    reader.ask(&subscribe(None, None, true)).await;
    // One payload, kept once and delivered many times: far more than the sockets between us hold.
    let turns = vec![sent(vec![b'x'; 4096]); 1000];
    for _ in 0..40 {
        let key = Bytes::new();
        let batch = AppendBatch {
            context: home,
            parent: None,
            turns: turns.clone(),
            key,
            expected_head: None,
        };
        let response = writer.ask(&Request::AppendBatch(batch)).await;
        assert!(
            matches!(response, Response::BatchAppended(_)),
            "{response:?}"
        );
    }
    let mut last = 1;
    let resume_after = loop {
        match reader.receive().await.1 {
            Response::Delivered { delivery, .. } => {
                assert_eq!(delivery.position, last + 1, "no gap before the end");
                last = delivery.position;
            }
            Response::Error(failure) => {
                assert_eq!(failure.status, 429);
                break failure.body().details["resume_after"]
                    .as_str()
                    .unwrap()
                    .parse::<u64>()
                    .unwrap();
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(resume_after, last);
    assert_eq!(reader.head(home).await.depth, 39_999);
    reader
        .ask(&subscribe(None, Some(resume_after), false))
        .await;
    for position in last + 1..=40_001 {
        assert_eq!(delivery(&mut reader).await.0, position);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_slow_replay_is_not_cut_off_by_what_is_appended_meanwhile() {
    let server = Server::start().await;
    let mut writer = server.connect().await;
    let home = writer.new_context().await;
    let turns = vec![sent(vec![b'x'; 2048]); 1000];
    let batch = AppendBatch {
        context: home,
        parent: None,
        turns,
        key: Bytes::new(),
        expected_head: None,
    };
    let batch = Request::AppendBatch(batch);
    let mut reader = server.connect().await;
    for n in 0..36 {
        if n == 18 {
            reader.ask(&subscribe(None, Some(0), true)).await;
        }
        let response = writer.ask(&batch).await;
        assert!(
            matches!(response, Response::BatchAppended(_)),
            "{response:?}"
        );
    }
    for position in 2..=36_001 {
        let (at, _, _, caught_up) = delivery(&mut reader).await;
        assert_eq!(at, position);
        assert!(!caught_up || at == 36_001, "{at} is not the end");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_context_filter_looks_at_no_event_of_other_contexts() {
    let server = Server::start().await;
    let (mut writer, noise, quiet) = prepared(&server).await;
    let batch = AppendBatch {
        context: noise,
        parent: None,
        turns: vec![sent("noise"); 1000],
        key: Bytes::new(),
        expected_head: None,
    };
    let batch = Request::AppendBatch(batch);
    for _ in 0..10 {
        writer.ask(&batch).await;
    }
    let before = server.store.feed_steps();
    let mut reader = server.connect().await;
    reader.ask(&subscribe(Some(quiet), Some(0), false)).await;
    assert_eq!(delivery(&mut reader).await.0, 4);
    assert_eq!(delivery(&mut reader).await, (6, 2, Bytes::new(), true));
    let mut resumed = server.connect().await;
    let accepted = resumed.ask(&subscribe(Some(quiet), Some(6), false)).await;
    assert_eq!(accepted, Response::Subscribed { caught_up: true });
    for _ in 0..10 {
        writer.ask(&batch).await;
    }
    writer.append(append(quiet, "news")).await;
    for peer in [&mut reader, &mut resumed] {
        assert_eq!(delivery(peer).await, (20_007, 2, Bytes::new(), true));
    }
    let steps = server.store.feed_steps() - before;
    assert!(
        steps <= 60,
        "{steps} for four deliveries among 20 007 events"
    );
    server.stop().await;
}

#[tokio::test]
async fn extended_deliveries_carry_their_stamp() {
    let server = Server::start().await;
    prepared(&server).await;
    let mut reader = server.connect().await;
    let options = ReadOptions {
        extended: true,
        ..ReadOptions::default()
    };
    let request = Request::Subscribe(Subscribe {
        context: None,
        after: Some(5),
        options,
    });
    reader.ask(&request).await;
    let (_, response) = reader.receive_as(ItemForm::Extended).await;
    let Response::Delivered { delivery, .. } = response else {
        panic!("{response:?}")
    };
    assert_eq!(delivery.item.extra.unwrap().created_at.0, NOW_MS);
    server.stop().await;
}

#[tokio::test]
async fn large_and_small_payloads_are_delivered_in_order() {
    let server = Server::start().await;
    let mut writer = server.connect().await;
    let home = writer.new_context().await;
    let large = Bytes::from(noise(1 << 20));
    for _ in 0..3 {
        writer.append(append(home, "small")).await;
        writer.append(append(home, large.clone())).await;
    }
    let mut reader = server.connect().await;
    reader.ask(&subscribe(Some(home), Some(0), true)).await;
    for n in 0..6_u64 {
        let (position, _, payload, caught_up) = delivery(&mut reader).await;
        let expect = if n % 2 == 0 {
            Bytes::from_static(b"small")
        } else {
            large.clone()
        };
        assert_eq!(
            (position, payload == expect, caught_up),
            (n + 2, true, n == 5)
        );
    }
    server.stop().await;
}
