//! The socket's path: which broker may start, and what it removes and leaves behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use turnkeep_server::broker::{
    BrokerConfig, BrokerError, BrokerTimeouts, Outlets, RunningBroker, SocketError, start,
};
use turnkeep_types::ManualClock;
use turnkeep_types::broker::{ListSessions, Reply, Request, ServerMessage};

use crate::stopped_time::StoppedTime;
use crate::support::Harness;

const STEP: Duration = Duration::from_secs(1);

fn begin(path: &Path) -> Result<RunningBroker, BrokerError> {
    start(
        BrokerConfig::new(path),
        Outlets::default(),
        Arc::new(ManualClock::default()),
    )
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_directory_and_the_socket_are_the_users_alone() {
    let harness = Harness::start();
    assert_eq!(mode(&harness.path("turnkeep")), 0o700);
    assert_eq!(mode(harness.broker.socket()), 0o600);
}

#[tokio::test]
async fn a_directory_that_others_could_enter_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("turnkeep");
    std::fs::create_dir(&inner).unwrap();
    std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o777)).unwrap();
    let broker = begin(&inner.join("broker.sock")).unwrap();
    assert_eq!(mode(&inner), 0o700);
    broker.shutdown().await;
}

#[tokio::test]
async fn a_second_broker_gives_way_and_the_first_goes_on() {
    let harness = Harness::start();
    let second = begin(harness.broker.socket()).err();
    assert!(
        matches!(
            second,
            Some(BrokerError::Socket(SocketError::AlreadyRunning(_)))
        ),
        "{second:?}"
    );
    let mut client = harness.client().await;
    assert_eq!(
        client
            .ask(Request::ListSessions(ListSessions::default()))
            .await,
        Ok(Reply::Sessions(Vec::new()))
    );
}

#[tokio::test]
async fn a_listener_without_the_lock_is_not_thrown_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broker.sock");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let refused = begin(&path).err();
    assert!(
        matches!(
            refused,
            Some(BrokerError::Socket(SocketError::AlreadyRunning(_)))
        ),
        "{refused:?}"
    );
    assert!(path.exists());
}

#[tokio::test]
async fn a_stale_socket_is_removed_and_anything_else_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broker.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a socket stays when its listener is gone");
    let broker = begin(&path).unwrap();
    broker.shutdown().await;
    std::fs::write(&path, "a file").unwrap();
    let refused = begin(&path).err();
    assert!(
        matches!(
            refused,
            Some(BrokerError::Socket(SocketError::NotASocket(_)))
        ),
        "{refused:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[tokio::test]
async fn shutdown_closes_connections_removes_the_socket_and_another_may_start() {
    let harness = Harness::start();
    let path = harness.broker.socket().to_owned();
    let mut client = harness.client().await;
    let mut wrapper = harness.wrapper("s").await;
    harness.broker.shutdown().await;
    assert_eq!(client.receive().await, None);
    assert_eq!(wrapper.receive().await, None);
    assert!(!path.exists());
    begin(&path).unwrap().shutdown().await;
}

#[tokio::test]
async fn a_socket_that_somebody_removed_is_there_again_and_those_who_came_before_stay() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let path = harness.broker.socket().to_owned();
    let mut wrapper = harness.wrapper("s").await;
    let removals: [fn(&Path); 2] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::remove_dir_all(path.parent().unwrap()).unwrap(),
    ];
    for remove in removals {
        remove(&path);
        let is_there =
            || std::os::unix::net::UnixStream::connect(&path).is_ok() && mode(&path) == 0o600;
        while !is_there() {
            time.advance(STEP).await;
        }
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let second = begin(&path).err();
        assert!(
            matches!(
                second,
                Some(BrokerError::Socket(SocketError::AlreadyRunning(_)))
            ),
            "{second:?}"
        );
        assert!(wrapper.complete("s", b"goes on").await.is_ok());
    }
    let listed = harness
        .client()
        .await
        .ask(Request::ListSessions(ListSessions::default()))
        .await;
    assert!(
        matches!(&listed, Ok(Reply::Sessions(sessions)) if sessions.len() == 1),
        "{listed:?}"
    );
}

#[tokio::test]
async fn a_broker_whose_place_was_taken_gives_way() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let path = harness.broker.socket().to_owned();
    let mut wrapper = harness.wrapper("s").await;
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let second = begin(&path).unwrap();
    time.advance_until(STEP, harness.broker.wait_until_replaced())
        .await;
    assert_eq!(
        wrapper.receive().await,
        None,
        "it can go to the other one now"
    );
    drop(time);
    harness.broker.shutdown().await;
    assert!(
        std::os::unix::net::UnixStream::connect(&path).is_ok(),
        "the other one's socket stays"
    );
    second.shutdown().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_an_error_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let refused = begin(&dir.path().join("no/such/broker.sock"))
        .err()
        .unwrap();
    assert!(refused.to_string().contains("no/such"), "{refused}");
}

#[tokio::test]
async fn right_after_the_start_a_list_waits_for_the_wrappers_that_come_back() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let mut client = harness.client().await;
    let list = ListSessions {
        settled: true,
        ..ListSessions::default()
    };
    client.send(1, &Request::ListSessions(list)).await;
    // Others are answered meanwhile, and one who does not want to wait does not.
    let empty = harness
        .client()
        .await
        .ask(Request::ListSessions(ListSessions::default()))
        .await;
    assert_eq!(empty, Ok(Reply::Sessions(Vec::new())));
    let _wrapper = harness.wrapper("s").await;
    time.advance(BrokerTimeouts::default().settle + STEP).await;
    let Some(ServerMessage::Response {
        outcome: Ok(Reply::Sessions(sessions)),
        ..
    }) = client.receive().await
    else {
        panic!("no list")
    };
    let listed: Vec<&str> = sessions
        .iter()
        .map(|session| session.session.as_str())
        .collect();
    assert_eq!(listed, ["s"]);
}
