//! Captured turns over one connection: which requests are sent once, which again, and in which order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod fake;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fake::{Act, Asked, connect, context, error, serve};
use turnkeep_client::capture::CaptureConnection;
use turnkeep_client::message::{ContextHead, TurnAck};
use turnkeep_client::{Client, Error, ErrorCode, Options, Retry};
use turnkeep_types::TurnId;
use turnkeep_types::broker::{FoundTurn, TurnInfo};
use turnkeep_wire::{Request, Response};

/// What a fake store was asked, one word per request, in order.
type Requests = Arc<Mutex<Vec<String>>>;

/// A store that answers everything, but first asks `refuse` for another answer.
async fn start_store(
    mut refuse: impl FnMut(&str) -> Option<Vec<ActKind>> + Send + 'static,
) -> (String, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let addr = serve(move |Asked { id, request, .. }| {
        let (word, answer) = answer(request);
        let acts = match refuse(&word) {
            Some(kinds) => kinds.into_iter().map(|kind| kind.act(id)).collect(),
            None => vec![Act::Send(id, answer)],
        };
        seen.lock().unwrap().push(word);
        acts
    })
    .await;
    (addr, requests)
}

/// An answer that is not the usual one.
enum ActKind {
    Refuse(ErrorCode),
    Hangup,
}

impl ActKind {
    fn act(self, id: u64) -> Act {
        match self {
            Self::Refuse(code) => Act::Send(id, error(code)),
            Self::Hangup => Act::Hangup,
        }
    }
}

fn answer(request: Request) -> (String, Response) {
    let head = |turn| ContextHead {
        context: context(7),
        head: TurnId::new(turn),
        depth: 0,
    };
    match request {
        Request::PutBundle(_) => ("bundle".to_owned(), Response::BundlePut { status: 201 }),
        Request::CreateContext(create) => {
            let key = create.key.unwrap();
            let word = format!("create {}", String::from_utf8_lossy(&key));
            (word, Response::ContextCreated(head(0)))
        }
        Request::GetHead(_) => ("head".to_owned(), Response::Head(head(0))),
        Request::AppendTurn(append) => {
            let ack = TurnAck {
                context: append.context,
                turn: TurnId::new(1).unwrap(),
                depth: 0,
                hash: append.turn.hash,
            };
            let word = String::from_utf8_lossy(&append.key).into_owned();
            (word, Response::TurnAppended(ack))
        }
        other => panic!("{other:?}"),
    }
}

fn turns(numbers: impl IntoIterator<Item = u32>) -> Vec<FoundTurn> {
    numbers
        .into_iter()
        .map(|number| turn_of("s", number))
        .collect()
}

fn turn_of(session: &str, number: u32) -> FoundTurn {
    FoundTurn {
        info: TurnInfo {
            turn_id: format!("{session}:{number}"),
            ..TurnInfo::default()
        },
        session: session.to_owned(),
        content: Bytes::from_static(b"said"),
        ..FoundTurn::default()
    }
}

async fn open(addr: &str) -> CaptureConnection {
    CaptureConnection::open(connect(addr).await).await.unwrap()
}

#[tokio::test]
async fn a_connection_publishes_once_and_looks_a_session_up_once() {
    let (addr, requests) = start_store(|_| None).await;
    let connection = open(&addr).await;
    assert!(connection.find_context("s").await.unwrap().is_new);
    assert!(!connection.find_context("s").await.unwrap().is_new);
    for kept in connection.keep(&turns(1..=2)).await {
        assert_eq!(kept.unwrap().context, context(7));
    }
    assert!(connection.keep(&turns(3..=3)).await.pop().unwrap().is_ok());
    assert_eq!(
        *requests.lock().unwrap(),
        [
            "bundle",
            "create turnkeep.capture:s",
            "head",
            "s:1",
            "s:2",
            "s:3"
        ]
    );
}

#[tokio::test]
async fn callers_do_not_wait_for_each_other() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let addr = serve(move |Asked { id, request, .. }| {
        let is_append = matches!(request, Request::AppendTurn(_));
        let act = Act::Send(id, answer(request).1);
        if !is_append {
            return vec![act];
        }
        let mut held = held.lock().unwrap();
        held.push(act);
        // Nothing is answered before the third append has arrived.
        if held.len() < 3 {
            return Vec::new();
        }
        std::mem::take(&mut *held)
    })
    .await;
    let connection = open(&addr).await;
    let [a, b, c] = ["a", "b", "c"].map(|session| [turn_of(session, 1)]);
    let (a, b, c) = tokio::join!(
        connection.keep(&a),
        connection.keep(&b),
        connection.keep(&c)
    );
    for kept in [a, b, c] {
        assert!(kept.iter().all(Result::is_ok), "{kept:?}");
    }
}

#[tokio::test]
async fn a_turn_that_the_server_refuses_for_a_while_is_kept_before_the_turns_behind_it() {
    for code in [ErrorCode::TooManyRequests, ErrorCode::InsufficientStorage] {
        let mut refused = false;
        let refuse_once = move |word: &str| {
            let refuses = word == "s:2" && !refused;
            refused |= refuses;
            refuses.then(|| vec![ActKind::Refuse(code)])
        };
        let (addr, requests) = start_store(refuse_once).await;
        let kept = open(&addr).await.keep(&turns(1..=3)).await;
        assert!(kept.iter().all(Result::is_ok), "{kept:?}");
        assert_eq!(requests.lock().unwrap()[3..], ["s:1", "s:2", "s:2", "s:3"]);
    }
}

/// Keeps three turns of one session and one of another, of which the server refuses the second.
/// Returns which of them were kept.
async fn keep_with_refusal(code: ErrorCode) -> Vec<bool> {
    let refuse = move |word: &str| (word == "s:2").then(|| vec![ActKind::Refuse(code)]);
    let (addr, _) = start_store(refuse).await;
    let options = Options {
        retry: Retry::NEVER,
        ..Options::default()
    };
    let client = Client::connect(&addr, options).await.unwrap();
    let connection = CaptureConnection::open(client).await.unwrap();
    let mut group = turns(1..=3);
    group.insert(2, turn_of("other", 1));
    let kept = connection.keep(&group).await;
    kept.iter().map(Result::is_ok).collect()
}

#[tokio::test]
async fn only_a_turn_that_may_be_kept_later_holds_up_its_session() {
    let full_disk = keep_with_refusal(ErrorCode::InsufficientStorage).await;
    assert_eq!(full_disk, [true, false, true, false]);
    let too_large = keep_with_refusal(ErrorCode::TooLarge).await;
    assert_eq!(too_large, [true, false, true, true]);
}

#[tokio::test]
async fn a_lost_connection_is_not_dialled_again() {
    let hang_up = |word: &str| (word == "s:2").then(|| vec![ActKind::Hangup]);
    let (addr, requests) = start_store(hang_up).await;
    let connection = open(&addr).await;
    let kept = connection.keep(&turns(1..=2)).await;
    assert!(kept[0].is_ok() && connection.is_lost(), "{kept:?}");
    assert!(matches!(kept[1], Err(Error::Lost(_))), "{kept:?}");
    let again = connection.keep(&turns(2..=2)).await.pop().unwrap();
    assert!(matches!(again, Err(Error::Lost(_))), "{again:?}");
    assert_eq!(requests.lock().unwrap()[3..], ["s:1", "s:2"]);
}
