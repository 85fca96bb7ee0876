//! The whole way of a turn: from one wrapper over the relay buffer into another's terminal.

use turnkeep_types::broker::{GetTurn, ListSessions, Reason, Reply, Request};

use crate::support::{Harness, within};

#[tokio::test]
async fn a_turn_is_captured_in_one_session_and_pasted_into_another() {
    let harness = Harness::start();
    let mut from = harness.wrapper("from").await;
    let mut to = harness.wrapper("to").await;
    let mut client = harness.client().await;
    let content: Vec<u8> = (0..=255).collect();
    assert_eq!(
        from.complete("from", &content).await,
        Ok(Reply::Kept {
            turn_id: "from:1".to_owned()
        })
    );
    let captured = client
        .ask(Request::Capture {
            session: "from".to_owned(),
        })
        .await;
    assert_eq!(
        captured,
        Ok(Reply::Captured {
            turn_id: "from:1".to_owned(),
            size: 256
        })
    );
    for _ in 0..2 {
        assert_eq!(client.paste("to").await, Ok(Reply::Done));
        assert_eq!(to.injected().await, content);
    }
}

#[tokio::test]
async fn a_turn_of_the_largest_size_goes_through_whole() {
    let harness = Harness::with(turnkeep_server::broker::Outlets::default(), |config| {
        config.settings.turn_bytes_max = 7 << 20;
    });
    let content = vec![b'x'; 7 << 20];
    let (mut wrapper, mut client) = harness.captured("s", &content).await;
    assert_eq!(client.paste("s").await, Ok(Reply::Done));
    assert!(wrapper.injected().await == content);
    let get = GetTurn {
        turn_id: "s:1".to_owned(),
        raw: false,
    };
    let Ok(Reply::Turn(turn)) = client.ask(Request::GetTurn(get)).await else {
        panic!("no turn")
    };
    assert!(turn.content == content);
}

#[tokio::test]
async fn injections_arrive_in_order() {
    let harness = Harness::start();
    let mut wrapper = harness.wrapper("s").await;
    let mut client = harness.client().await;
    for number in 0..20_u8 {
        wrapper.complete("s", &[number]).await.unwrap();
        client
            .ask(Request::Capture {
                session: "s".to_owned(),
            })
            .await
            .unwrap();
        client.paste("s").await.unwrap();
    }
    // Answers and injections share the connection: the wrapper's own answers were read among them.
    for number in 0..20_u8 {
        assert_eq!(wrapper.next_injected().await, [number][..]);
    }
}

#[tokio::test]
async fn a_dropped_wrapper_is_deregistered_and_its_turns_stay_for_a_while() {
    let harness = Harness::start();
    let (wrapper, mut client) = harness.captured("s", b"kept").await;
    drop(wrapper);
    // The broker notices in its own time: ask until it has.
    within(async {
        while client
            .ask(Request::ListSessions(ListSessions::default()))
            .await
            != Ok(Reply::Sessions(Vec::new()))
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.paste("s").await, Err(Reason::SessionDisconnected));
    let get = || {
        Request::GetTurn(GetTurn {
            turn_id: "s:1".to_owned(),
            raw: false,
        })
    };
    assert!(client.ask(get()).await.is_ok());
    harness
        .clock
        .set(turnkeep_types::Timestamp(1_000 + 10 * 60 * 1_000));
    assert_eq!(client.ask(get()).await, Err(Reason::TurnNotFound));
    assert_eq!(client.paste("s").await, Err(Reason::SessionNotFound));
}

#[tokio::test]
async fn requests_sent_together_are_answered_in_order() {
    let harness = Harness::start();
    let mut client = harness.client().await;
    for id in 10..30 {
        client
            .send(id, &Request::ListSessions(ListSessions::default()))
            .await;
    }
    for expect in 10..30 {
        let answer = client.receive().await;
        let Some(turnkeep_types::broker::ServerMessage::Response { id, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(id, expect);
    }
}
