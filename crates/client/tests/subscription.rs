//! Subscriptions against a scripted server: after every interruption they continue without a gap.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod fake;
#[path = "../../server/tests/support/stopped_time.rs"]
mod stopped_time;

use std::sync::{Arc, Mutex};

use fake::{
    Act, Asked, connect, connect_at_leisure, context, error, error_at, item, options, serve,
};
use stopped_time::StoppedTime;
use turnkeep_client::message::{ContextHead, Delivery, ReadOptions, Subscribe};
use turnkeep_client::{Client, Error, ErrorCode, Lost, Options, Timeouts};
use turnkeep_wire::{Request, Response};

fn delivery(position: u64) -> Response {
    let delivery = Delivery {
        position,
        context: context(1),
        item: item(position, b"x"),
    };
    Response::Delivered {
        caught_up: false,
        delivery,
    }
}

fn subscribe(after: u64) -> Subscribe {
    Subscribe {
        context: None,
        after: Some(after),
        options: ReadOptions::default(),
    }
}

fn accepted(id: u64) -> Act {
    Act::Send(id, Response::Subscribed { caught_up: false })
}

#[tokio::test]
async fn a_subscription_resumes_after_what_it_has_seen() {
    let asked_after = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked_after);
    let addr = serve(move |asked: Asked| {
        let Request::Subscribe(subscribe) = &asked.request else {
            return Vec::new();
        };
        let after = subscribe.after.unwrap();
        seen.lock().unwrap().push(after);
        let accepted = accepted(asked.id);
        let events =
            (after + 1..=after + 2).map(|position| Act::Send(asked.id, delivery(position)));
        std::iter::once(accepted)
            .chain(events)
            .chain([Act::Hangup])
            .collect()
    })
    .await;
    let mut subscription = connect(&addr).await.subscribe(subscribe(0));
    for position in 1..=6 {
        assert_eq!(subscription.next().await.unwrap().position, position);
    }
    assert_eq!(*asked_after.lock().unwrap(), [0, 2, 4]);
}

/// Reads 20 events slowly through a queue with these bounds.
async fn read_slowly(bounds: Options) {
    let addr = serve(move |asked: Asked| match &asked.request {
        Request::Subscribe(subscribe) => {
            let after = subscribe.after.unwrap();
            let accepted = accepted(asked.id);
            let events = (after + 1..=20).map(|position| Act::Send(asked.id, delivery(position)));
            std::iter::once(accepted).chain(events).collect()
        }
        Request::GetHead(context) => {
            let head = ContextHead {
                context: *context,
                head: None,
                depth: 0,
            };
            vec![Act::Send(asked.id, Response::Head(head))]
        }
        Request::Cancel(_) => vec![Act::Send(asked.id, Response::Cancelled)],
        other => panic!("{other:?}"),
    })
    .await;
    let client = Client::connect(&addr, bounds).await.unwrap();
    let mut subscription = client.subscribe(subscribe(0));
    for position in 1..=20 {
        assert_eq!(subscription.next().await.unwrap().position, position);
        // The connection serves other requests while the subscription's queue is full.
        client.head(context(1)).await.unwrap();
    }
    assert_eq!(subscription.position(), Some(20));
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_and_blocks_nobody() {
    read_slowly(Options {
        subscription_events_max: 3,
        ..options()
    })
    .await;
    read_slowly(Options {
        subscription_events_max: 1,
        ..options()
    })
    .await;
    read_slowly(Options {
        subscription_bytes_max: 1,
        ..options()
    })
    .await;
}

#[tokio::test]
async fn a_subscription_that_the_server_refuses_for_good_ends() {
    let addr = serve(|asked: Asked| vec![Act::Send(asked.id, error(ErrorCode::NotFound))]).await;
    let mut subscription = connect(&addr).await.subscribe(subscribe(0));
    assert_eq!(
        subscription.next().await.unwrap_err().code(),
        Some(ErrorCode::NotFound)
    );
}

/// A fake whose feed ends at 7. It answers the first real subscription with `first`, every later
/// one with the events after the requested position. Also returns the requested positions.
async fn serve_feed(first: fn(u64) -> Vec<Act>) -> (String, Arc<Mutex<Vec<u64>>>) {
    let asked_after = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked_after);
    let addr = serve(move |asked: Asked| {
        let Request::Subscribe(subscribe) = &asked.request else {
            return Vec::new();
        };
        let after = subscribe.after.expect("the feed's end was learnt first");
        if after == u64::MAX - 1 {
            return vec![Act::Send(
                asked.id,
                error_at(ErrorCode::Conflict, "last_position", 7),
            )];
        }
        let mut seen = seen.lock().unwrap();
        seen.push(after);
        if seen.len() == 1 {
            return std::iter::once(accepted(asked.id))
                .chain(first(asked.id))
                .collect();
        }
        vec![accepted(asked.id), Act::Send(asked.id, delivery(after + 1))]
    })
    .await;
    (addr, asked_after)
}

#[tokio::test]
async fn only_new_events_are_not_lost_with_a_connection_before_the_first() {
    let (addr, asked_after) = serve_feed(|_| vec![Act::Hangup]).await;
    let mut subscription = connect(&addr).await.subscribe(Subscribe {
        after: None,
        ..subscribe(0)
    });
    assert_eq!(subscription.next().await.unwrap().position, 8);
    assert_eq!(*asked_after.lock().unwrap(), [7, 7]);
}

#[tokio::test]
async fn a_reader_that_was_cut_off_resumes_where_the_server_says() {
    let (addr, asked_after) = serve_feed(|id| {
        vec![Act::Send(
            id,
            error_at(ErrorCode::TooManyRequests, "resume_after", 20),
        )]
    })
    .await;
    let mut subscription = connect(&addr).await.subscribe(Subscribe {
        after: None,
        ..subscribe(0)
    });
    assert_eq!(subscription.next().await.unwrap().position, 21);
    assert_eq!(*asked_after.lock().unwrap(), [7, 20]);
}

#[tokio::test]
async fn a_damaged_turn_is_told_once_and_passed() {
    let (addr, asked_after) = serve_feed(|id| {
        vec![Act::Send(
            id,
            error_at(ErrorCode::Corrupt, "resume_after", 2),
        )]
    })
    .await;
    let mut subscription = connect(&addr).await.subscribe(subscribe(1));
    assert_eq!(
        subscription.next().await.unwrap_err().code(),
        Some(ErrorCode::Corrupt)
    );
    assert_eq!(subscription.next().await.unwrap().position, 3);
    assert_eq!(*asked_after.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_end_is_followed_from_now_on() {
    let addr = serve(|asked: Asked| match asked.request {
        Request::Subscribe(Subscribe { after: None, .. }) => {
            vec![accepted(asked.id), Act::Send(asked.id, delivery(5))]
        }
        _ => vec![Act::Send(asked.id, error(ErrorCode::Conflict))],
    })
    .await;
    let mut subscription = connect(&addr).await.subscribe(Subscribe {
        after: None,
        ..subscribe(0)
    });
    assert_eq!(subscription.next().await.unwrap().position, 5);
}

#[tokio::test]
async fn events_that_do_not_go_forward_are_refused() {
    let addr = serve(|asked: Asked| {
        let events = [3, 3].map(|position| Act::Send(asked.id, delivery(position)));
        std::iter::once(accepted(asked.id)).chain(events).collect()
    })
    .await;
    let mut subscription = connect(&addr).await.subscribe(subscribe(2));
    assert_eq!(subscription.next().await.unwrap().position, 3);
    let error = subscription.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::OutOfOrder {
                number: 3,
                after: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_subscription_that_is_never_accepted_ends() {
    let time = StoppedTime::begin();
    let client = connect_at_leisure(&serve(|_: Asked| Vec::new()).await).await;
    let mut subscription = client.subscribe(subscribe(0));
    let answer = time
        .advance_until(Timeouts::default().answer, subscription.next())
        .await;
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Lost(Lost::Silent(_))), "{error}");
}

#[tokio::test]
async fn losses_with_an_accepted_subscription_between_them_do_not_add_up() {
    let losses = 3 * options().retry.attempts_max;
    let addr = serve(move |asked: Asked| {
        let then = if asked.connection > losses as usize {
            Act::Send(asked.id, delivery(1))
        } else {
            Act::Hangup
        };
        vec![accepted(asked.id), then]
    })
    .await;
    assert_eq!(
        connect(&addr)
            .await
            .subscribe(subscribe(0))
            .next()
            .await
            .unwrap()
            .position,
        1
    );
}

#[tokio::test]
async fn pages_that_do_not_lead_back_are_refused() {
    let page = |from: u64| (from..from + 2).map(|turn| item(turn, b"x")).collect();
    let addr =
        serve(move |asked: Asked| vec![Act::Send(asked.id, Response::Before(page(5)))]).await;
    let mut history = connect(&addr)
        .await
        .history(context(1), ReadOptions::default());
    history.next().await.unwrap();
    history.next().await.unwrap();
    let error = history.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::OutOfOrder {
                number: 5,
                after: 5,
                ..
            }
        ),
        "{error}"
    );
}
