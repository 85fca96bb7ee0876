//! The socket's place: who may start, what is cleared away, what is left behind.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use turnkeep_server::broker::{BrokerConfig, BrokerError, Outlets, RunningBroker, SocketError, start};
use turnkeep_types::ManualClock;
use turnkeep_types::broker::{Reply, Request};

use crate::support::Harness;

fn begin(path: &std::path::Path) -> Result<RunningBroker, BrokerError> {
    start(BrokerConfig::new(path), Outlets::default(), Arc::new(ManualClock::default()))
}

fn mode(path: &std::path::Path) -> u32 {
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
    assert!(matches!(second, Some(BrokerError::Socket(SocketError::AlreadyRunning(_)))), "{second:?}");
    let mut client = harness.client().await;
    assert_eq!(client.ask(Request::ListSessions { gone: false }).await, Ok(Reply::Sessions(Vec::new())));
}

#[tokio::test]
async fn a_listener_without_the_lock_is_not_thrown_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broker.sock");
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let refused = begin(&path).err();
    assert!(matches!(refused, Some(BrokerError::Socket(SocketError::AlreadyRunning(_)))), "{refused:?}");
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
    assert!(matches!(refused, Some(BrokerError::Socket(SocketError::NotASocket(_)))), "{refused:?}");
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
async fn a_directory_that_cannot_be_made_is_an_error_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let refused = begin(&dir.path().join("no/such/broker.sock")).err().unwrap();
    assert!(refused.to_string().contains("no/such"), "{refused}");
}
