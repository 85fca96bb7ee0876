//! No peer stops another: slow readers, suspended wrappers, full queues.

use std::time::Duration;

use turnkeep_server::broker::Outlets;
use turnkeep_types::broker::{GetTurn, Reason, Reply, Request};

use crate::memory_server::Server;
use crate::stopped_time::StoppedTime;
use crate::support::{Harness, within};

#[tokio::test]
async fn a_wrapper_that_reads_nothing_fills_its_queue_and_stops_nobody() {
    let harness = Harness::start();
    let content = vec![b'x'; 3 << 20];
    let (_suspended, mut client) = harness.captured("s", &content).await;
    let mut other = harness.wrapper("other").await;
    let mut dispatched = 0;
    let refused = loop {
        match client.paste("s").await {
            Ok(_) => dispatched += 1,
            Err(reason) => break reason,
        }
        assert!(dispatched < 32, "the queue has no bound");
    };
    assert_eq!(refused, Reason::Busy);
    assert!(dispatched >= 5, "only {dispatched} fit in 16 MiB");
    assert_eq!(client.paste("other").await, Ok(Reply::Done));
    assert!(other.injected().await == content);
    assert!(other.complete("other", b"goes on").await.is_ok());
}

#[tokio::test]
async fn a_wrapper_that_was_busy_gets_everything_when_it_reads_again() {
    let harness = Harness::start();
    let content = vec![b'y'; 3 << 20];
    let (mut wrapper, mut client) = harness.captured("s", &content).await;
    let mut dispatched = 0;
    while client.paste("s").await.is_ok() {
        dispatched += 1;
        assert!(dispatched < 32, "the queue has no bound");
    }
    for _ in 0..dispatched {
        assert!(wrapper.injected().await == content);
    }
    assert_eq!(client.paste("s").await, Ok(Reply::Done));
    assert!(wrapper.injected().await == content);
}

#[tokio::test]
async fn what_waits_for_all_wrappers_together_is_bounded_and_small_pastes_go_on() {
    let harness = Harness::with(Outlets::default(), |config| {
        config.settings.memory_bytes_max = 64 << 20;
    });
    let content = vec![b'v'; 3 << 20];
    let (_first, mut client) = harness.captured("s", &content).await;
    let _second = harness.wrapper("t").await;
    let mut waiting = 0;
    for session in ["s", "t"] {
        while waiting < 16 && client.paste(session).await.is_ok() {
            waiting += 1;
        }
    }
    assert!(
        (5..=6).contains(&waiting),
        "{waiting} pastes of 3 MiB wait in a quarter of 64 MiB"
    );
    let mut small = harness.wrapper("small").await;
    small.complete("small", b"few").await.unwrap();
    client
        .ask(Request::Capture {
            session: "small".to_owned(),
        })
        .await
        .unwrap();
    assert_eq!(client.paste("small").await, Ok(Reply::Done));
    assert_eq!(small.next_injected().await, &b"few"[..]);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed_and_stops_nobody() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let content = vec![b'z'; 4 << 20];
    let (mut wrapper, mut client) = harness.captured("s", &content).await;
    let mut slow = harness.client().await;
    slow.send(
        1,
        &Request::GetTurn(GetTurn {
            turn_id: "s:1".to_owned(),
            raw: false,
        }),
    )
    .await;
    for _ in 0..10 {
        assert!(wrapper.complete("s", b"more").await.is_ok());
        assert!(
            client
                .ask(Request::Capture {
                    session: "s".to_owned()
                })
                .await
                .is_ok()
        );
    }
    let given_up = slow.ends_within_its_answer();
    time.advance_until(Duration::from_secs(1), given_up).await;
}

#[tokio::test]
async fn many_large_messages_at_once_all_get_through() {
    let harness = Harness::start();
    let content = vec![b'w'; 4 << 20];
    let mut tasks = Vec::new();
    for number in 0..12 {
        let mut wrapper = harness.wrapper(&number.to_string()).await;
        let content = content.clone();
        tasks.push(tokio::spawn(async move {
            wrapper.complete(&number.to_string(), &content).await
        }));
    }
    for task in tasks {
        assert!(task.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn large_messages_beside_a_server_count_in_its_memory_budget() {
    let server = Server::start().await;
    let memory = server.running.memory_budget();
    let harness = Harness::with(Outlets::default(), |config| {
        config.memory = Some(memory.clone());
    });
    let content = vec![b'm'; 4 << 20];
    let (_wrapper, _client) = harness.captured("s", &content).await;
    within(async {
        while memory.used_bytes() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut slow = harness.client().await;
    let turn_id = "s:1".to_owned();
    slow.send(
        1,
        &Request::GetTurn(GetTurn {
            turn_id,
            raw: false,
        }),
    )
    .await;
    within(async {
        while memory.used_bytes() < 4 << 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(slow);
    within(async {
        while memory.used_bytes() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.stop().await;
}
