//! The client against a scripted server: matching responses, retries, failures and limits.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod fake;
#[path = "../../server/tests/support/stopped_time.rs"]
mod stopped_time;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fake::{Act, Asked, connect, connect_at_leisure, context, error, item, options, serve};
use stopped_time::StoppedTime;
use turnkeep_client::message::{AppendTurn, CreateContext, GetLast, Item, ReadOptions, TurnAck};
use turnkeep_client::{Client, Error, ErrorCode, Lost, Options, Timeouts, compose};
use turnkeep_types::{Compression, TurnId, TypeRef};
use turnkeep_wire::{Request, Response};

fn append(payload: &str, key: &str) -> AppendTurn {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    let turn = compose::turn(&TypeRef::new("t", 1), payload, Compression::None).unwrap();
    AppendTurn {
        key: Bytes::copy_from_slice(key.as_bytes()),
        ..compose::append(context(1), turn)
    }
}

fn ack(append: &AppendTurn, turn: u64) -> Response {
    let turn = TurnId::new(turn).unwrap();
    Response::TurnAppended(TurnAck {
        context: append.context,
        turn,
        depth: 0,
        hash: append.turn.hash,
    })
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let mut held = Vec::new();
    let addr = serve(move |asked: Asked| {
        let Request::AppendTurn(append) = &asked.request else {
            panic!("only appends are sent")
        };
        let turn = append.turn.payload.len() as u64;
        held.push(Act::Send(asked.id, ack(append, turn)));
        if held.len() == 50 {
            held.drain(..).rev().collect()
        } else {
            Vec::new()
        }
    })
    .await;
    let client = connect(&addr).await;
    let mut pending = Vec::new();
    for size in 1..=50 {
        pending.push((
            size,
            client
                .submit_append(append(&"x".repeat(size), ""))
                .await
                .unwrap(),
        ));
    }
    for (size, pending) in pending {
        assert_eq!(pending.await.unwrap().turn.get(), size as u64);
    }
}

#[tokio::test]
async fn a_lost_append_is_repeated_only_with_a_key() {
    let appends = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&appends);
    let addr = serve(move |asked: Asked| {
        let Request::AppendTurn(append) = &asked.request else {
            panic!("only appends are sent")
        };
        seen.fetch_add(1, Ordering::Relaxed);
        if asked.connection % 2 == 1 {
            vec![Act::Hangup]
        } else {
            vec![Act::Send(asked.id, ack(append, 9))]
        }
    })
    .await;
    let client = connect(&addr).await;
    assert_eq!(
        client.append(append("a", "key")).await.unwrap().turn.get(),
        9
    );
    assert_eq!(appends.load(Ordering::Relaxed), 2);

    let client = connect(&addr).await;
    let lost = client.append(append("a", "")).await.unwrap_err();
    assert!(matches!(lost, Error::OutcomeUnknown(_)), "{lost}");
    assert!(!lost.is_retryable());
    assert_eq!(appends.load(Ordering::Relaxed), 3);
}

/// How often a request is sent to a server that always answers with this code, and what it ends
/// with.
async fn tries(code: ErrorCode, ask: impl AsyncFn(&Client) -> Result<(), Error>) -> (usize, Error) {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let addr = serve(move |asked: Asked| {
        count.fetch_add(1, Ordering::Relaxed);
        vec![Act::Send(asked.id, error(code))]
    })
    .await;
    let failed = ask(&connect(&addr).await).await.unwrap_err();
    (seen.load(Ordering::Relaxed), failed)
}

#[tokio::test]
async fn errors_that_may_pass_are_retried_where_that_is_safe() {
    let read = async |client: &Client| client.head(context(1)).await.map(drop);
    let keyed = async |client: &Client| client.append(append("a", "k")).await.map(drop);
    let plain = async |client: &Client| client.append(append("a", "")).await.map(drop);
    let create = async |client: &Client| {
        client
            .create_context(CreateContext::default())
            .await
            .map(drop)
    };
    for (code, reads, keyeds, plains) in [
        (ErrorCode::TooManyRequests, 4, 4, 4),
        (ErrorCode::Unavailable, 4, 4, 1),
        (ErrorCode::InsufficientStorage, 4, 4, 4),
        (ErrorCode::NotFound, 1, 1, 1),
        (ErrorCode::Conflict, 1, 1, 1),
    ] {
        let (tried, failed) = tries(code, read).await;
        assert_eq!((tried, failed.code()), (reads, Some(code)));
        assert_eq!(failed.is_retryable(), code.is_retryable());
        assert_eq!(tries(code, keyed).await.0, keyeds, "{code:?} with a key");
        let (tried, failed) = tries(code, plain).await;
        assert_eq!(
            (tried, failed.code()),
            (plains, Some(code)),
            "{code:?} without a key"
        );
        assert_eq!(failed.is_retryable(), plains > 1, "{code:?} without a key");
        assert_eq!(tries(code, create).await.0, plains, "{code:?} on creation");
    }
}

#[tokio::test]
async fn a_write_that_an_unavailable_server_refused_may_have_been_kept() {
    let addr = serve(|asked: Asked| vec![Act::Send(asked.id, error(ErrorCode::Unavailable))]).await;
    let client = connect(&addr).await;
    let plain = client
        .submit_append(append("a", ""))
        .await
        .unwrap()
        .await
        .unwrap_err();
    assert!(matches!(plain, Error::OutcomeUnknown(_)), "{plain}");
    assert!(
        plain.to_string().starts_with("said the fake (503); "),
        "{plain}"
    );
    let keyed = client
        .submit_append(append("a", "k"))
        .await
        .unwrap()
        .await
        .unwrap_err();
    assert!(matches!(keyed, Error::Server(_)), "{keyed}");
}

#[tokio::test]
async fn a_wrong_token_is_refused_at_once() {
    let addr = serve(|_| Vec::new()).await;
    let options = Options {
        token: Some("wrong".into()),
        ..options()
    };
    let refused = Client::connect(&addr, options).await.err().unwrap();
    assert_eq!(refused.code(), Some(ErrorCode::Unauthorized));
    assert!(!refused.is_retryable());
}

#[tokio::test]
async fn a_silent_server_is_a_lost_one() {
    let time = StoppedTime::begin();
    let client = connect_at_leisure(&serve(|_| Vec::new()).await).await;
    let answer = time
        .advance_until(Timeouts::default().answer, client.head(context(1)))
        .await;
    let lost = answer.unwrap_err();
    assert!(matches!(lost, Error::Lost(Lost::Silent(_))), "{lost}");
}

#[tokio::test]
async fn a_frame_over_the_bound_ends_the_connection_before_it_is_read() {
    let addr = serve(|_| {
        let mut header = u32::MAX.to_le_bytes().to_vec();
        header.resize(16, 0);
        vec![Act::Bytes(header)]
    })
    .await;
    let lost = connect(&addr).await.head(context(1)).await.unwrap_err();
    assert!(matches!(lost, Error::Lost(Lost::FrameTooLong(_))), "{lost}");
}

#[tokio::test]
async fn an_answer_to_another_question_is_no_answer() {
    let addr = serve(|asked: Asked| vec![Act::Send(asked.id, Response::HasBlobs(vec![]))]).await;
    let wrong = connect(&addr).await.head(context(1)).await.unwrap_err();
    assert!(matches!(wrong, Error::WrongAnswer(16)), "{wrong}");
}

#[tokio::test]
async fn no_more_than_the_bound_is_in_flight() {
    let (release, released) = tokio::sync::oneshot::channel::<u64>();
    let release = Mutex::new(Some(release));
    let addr = serve(move |asked: Asked| {
        let Request::AppendTurn(append) = &asked.request else {
            panic!("only appends are sent")
        };
        // The first append is never answered.
        if let Some(release) = release.lock().unwrap().take() {
            release.send(asked.id).unwrap();
            return Vec::new();
        }
        vec![Act::Send(asked.id, ack(append, 2))]
    })
    .await;
    let client = Client::connect(
        &addr,
        Options {
            in_flight_max: 1,
            ..options()
        },
    )
    .await
    .unwrap();
    let first = client.submit_append(append("a", "")).await.unwrap();
    released.await.unwrap();
    let second = client.submit_append(append("b", ""));
    tokio::select! {
        biased;
        _ = second => panic!("the second append was sent while the first was unanswered"),
        () = tokio::task::yield_now() => {}
    }
    drop(first);
    let big = Options {
        in_flight_bytes_max: 4096,
        ..options()
    };
    let client = Client::connect(&addr, big).await.unwrap();
    let refused = client
        .append(append(&"x".repeat(5000), ""))
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}

#[tokio::test]
async fn a_request_over_the_servers_limit_is_refused_before_it_is_sent() {
    // A frame of one turn without key has 77 bytes besides its payload, the type's name included.
    let frame = |bytes: usize| append(&"x".repeat(bytes - 77), "");
    let addr = serve(|asked: Asked| match &asked.request {
        Request::AppendTurn(append) => {
            vec![Act::Send(asked.id, ack(append, asked.connection as u64))]
        }
        other => panic!("{other:?}"),
    })
    .await;
    let client = Client::connect(
        &addr,
        Options {
            request_bytes_max: 4096,
            ..options()
        },
    )
    .await
    .unwrap();
    for (bytes, counted) in [(4097, 4097), (10_000, 10_000 - 76)] {
        let refused = client.append(frame(bytes)).await.unwrap_err();
        let is_counted =
            matches!(refused, Error::TooLarge { bytes, max: 4096 } if bytes == counted);
        assert!(is_counted && !refused.is_retryable(), "{refused}");
    }
    assert_eq!(
        client.append(frame(4096)).await.unwrap().turn.get(),
        1,
        "on the first connection"
    );
}

#[tokio::test]
async fn history_pages_back_to_the_root() {
    let addr = serve(|asked: Asked| {
        let Request::GetBefore(get) = &asked.request else {
            panic!("only pages are asked for")
        };
        let newest = get.before.map_or(7, |turn| turn.get() - 1);
        let oldest = newest.saturating_sub(2).max(1);
        let items = (oldest..=newest).map(|number| item(number, b"x")).collect();
        vec![Act::Send(asked.id, Response::Before(items))]
    })
    .await;
    let mut history = connect(&addr)
        .await
        .history(context(1), ReadOptions::default());
    let mut turns = Vec::new();
    while let Some(item) = history.next().await.unwrap() {
        turns.push(item.turn.get());
    }
    assert_eq!(turns, [7, 6, 5, 4, 3, 2, 1]);
}

/// The newest turn of a server that answers with `answer`, read by a client that verifies.
async fn verified(answer: Item, include_payload: bool) -> Result<Vec<Item>, Error> {
    let addr =
        serve(move |asked: Asked| vec![Act::Send(asked.id, Response::Last(vec![answer.clone()]))])
            .await;
    let client = Client::connect(
        &addr,
        Options {
            verify_reads: true,
            ..options()
        },
    )
    .await
    .unwrap();
    let options = ReadOptions {
        include_payload,
        ..ReadOptions::default()
    };
    client
        .last(GetLast {
            context: context(1),
            limit: 1,
            options,
        })
        .await
}

#[tokio::test]
async fn damaged_and_missing_payloads_are_noticed_when_they_were_asked_for() {
    let damaged = Item {
        payload: Bytes::from_static(b"y"),
        ..item(1, b"x")
    };
    let missing = Item {
        payload: Bytes::new(),
        ..item(1, b"x")
    };
    for noticed in [
        verified(damaged, true).await,
        verified(missing.clone(), true).await,
    ] {
        assert!(
            matches!(noticed, Err(Error::HashMismatch { .. })),
            "{noticed:?}"
        );
    }
    assert_eq!(verified(missing.clone(), false).await.unwrap(), [missing]);
    assert_eq!(
        verified(item(1, b""), true).await.unwrap().len(),
        1,
        "an empty payload is all there"
    );
}
