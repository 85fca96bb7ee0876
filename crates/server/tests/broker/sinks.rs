//! Where a captured turn can go.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use turnkeep_server::broker::{Clipboard, NodeChat, Outlets, TurnKeeper};
use turnkeep_session::broker::NodeAddress;
use turnkeep_types::broker::{Deliver, FoundTurn, Reason, Refusal, Reply, Request, Stored};
use turnkeep_types::{ContextId, TurnId};

use crate::stopped_time::StoppedTime;
use crate::support::Harness;

fn to(sink: &str) -> Deliver {
    Deliver {
        sink: sink.to_owned(),
        ..Deliver::default()
    }
}

const STORED: Stored = Stored {
    context: ContextId::new(3).unwrap(),
    turn: TurnId::new(7).unwrap(),
};

/// Remembers the turns that it got.
#[derive(Default)]
struct Memo(Mutex<Vec<Vec<u8>>>);

impl Clipboard for Memo {
    fn write(&self, content: &[u8]) -> Result<(), Refusal> {
        self.0.lock().unwrap().push(content.to_vec());
        Ok(())
    }
}

impl TurnKeeper for Memo {
    fn keep(&self, turn: &FoundTurn) -> Result<Stored, String> {
        self.0
            .lock()
            .unwrap()
            .push(turn.info.turn_id.clone().into_bytes());
        Ok(STORED)
    }
}

impl NodeChat for Memo {
    fn say(&self, to: &NodeAddress, text: &str) -> Result<(), Refusal> {
        let said = format!("{} {} {text}", to.run, to.node);
        self.0.lock().unwrap().push(said.into_bytes());
        Ok(())
    }
}

/// Waits until its other end is dropped, then refuses.
struct Stuck(Mutex<std::sync::mpsc::Receiver<()>>);

impl Clipboard for Stuck {
    fn write(&self, _: &[u8]) -> Result<(), Refusal> {
        Err(Refusal::new(
            Reason::SinkFailed,
            format!("{:?}", self.0.lock().unwrap().recv()),
        ))
    }
}

#[tokio::test]
async fn the_file_sink_overwrites_its_file_with_the_content() {
    let harness = Harness::start();
    let (_wrapper, mut client) = harness.captured("s", b"\x1b[1mbold\x1b[0m\r\n\xff").await;
    let path = harness.path("out.txt");
    std::fs::write(&path, "something longer that was there before").unwrap();
    let deliver = Deliver {
        path: Some(path.to_str().unwrap().to_owned()),
        ..to("file")
    };
    assert_eq!(client.deliver(deliver).await, Ok(Reply::Done));
    assert_eq!(std::fs::read(&path).unwrap(), b"\x1b[1mbold\x1b[0m\r\n\xff");
    let directory = Deliver {
        path: Some(harness.dir.path().to_str().unwrap().to_owned()),
        ..to("file")
    };
    assert_eq!(client.deliver(directory).await, Err(Reason::BadPath));
}

#[tokio::test]
async fn clipboard_store_and_node_get_the_turn_where_they_are() {
    let (clipboard, keeper) = (Arc::new(Memo::default()), Arc::new(Memo::default()));
    let nodes = Arc::new(Memo::default());
    let outlets = Outlets {
        clipboard: Some(Arc::<Memo>::clone(&clipboard)),
        keeper: Some(Arc::<Memo>::clone(&keeper)),
        nodes: Some(Arc::<Memo>::clone(&nodes)),
    };
    let harness = Harness::with(outlets, |_| {});
    let (_wrapper, mut client) = harness.captured("s", b"body").await;
    assert_eq!(client.deliver(to("clipboard")).await, Ok(Reply::Done));
    assert_eq!(client.deliver(to("store")).await, Ok(Reply::Stored(STORED)));
    let node = Deliver {
        run: Some("r".to_owned()),
        node: Some("n".to_owned()),
        ..to("node")
    };
    assert_eq!(client.deliver(node).await, Ok(Reply::Done));
    assert_eq!(*clipboard.0.lock().unwrap(), [b"body"]);
    assert_eq!(*keeper.0.lock().unwrap(), [b"s:1"]);
    assert_eq!(*nodes.0.lock().unwrap(), [b"r n body"]);
}

#[tokio::test]
async fn a_sink_that_is_not_here_says_so_and_the_turn_stays() {
    let harness = Harness::start();
    let (_wrapper, mut client) = harness.captured("s", b"body").await;
    let node = Deliver {
        run: Some("r".to_owned()),
        node: Some("n".to_owned()),
        ..to("node")
    };
    for (deliver, reason) in [
        (to("clipboard"), Reason::NoClipboard),
        (to("store"), Reason::NoStore),
        (node, Reason::NoRuntime),
        (to("printer"), Reason::UnknownSink),
        (to("file"), Reason::MissingField),
        (
            Deliver {
                path: Some("relative".to_owned()),
                ..to("file")
            },
            Reason::BadPath,
        ),
    ] {
        assert_eq!(
            client.deliver(deliver.clone()).await,
            Err(reason),
            "{deliver:?}"
        );
    }
    assert!(
        client
            .ask(Request::Capture {
                session: "s".to_owned()
            })
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_sink_that_hangs_stops_neither_other_clients_nor_other_sinks() {
    let (release, stuck) = std::sync::mpsc::sync_channel(1);
    let outlets = Outlets {
        clipboard: Some(Arc::new(Stuck(Mutex::new(stuck)))),
        ..Outlets::default()
    };
    let harness = Harness::with(outlets, |_| {});
    let (mut wrapper, mut client) = harness.captured("s", b"body").await;
    let mut waiting = harness.client().await;
    waiting.send(1, &Request::Deliver(to("clipboard"))).await;
    assert!(wrapper.complete("s", b"goes on").await.is_ok());
    let path = Some(harness.path("out.txt").to_str().unwrap().to_owned());
    assert_eq!(
        client.deliver(Deliver { path, ..to("file") }).await,
        Ok(Reply::Done)
    );
    drop(release);
    assert_eq!(waiting.refused().await, Reason::SinkFailed);
}

#[tokio::test]
async fn a_sink_that_takes_too_long_is_reported_and_at_most_a_few_hang() {
    let (release, stuck) = std::sync::mpsc::sync_channel(1);
    let outlets = Outlets {
        clipboard: Some(Arc::new(Stuck(Mutex::new(stuck)))),
        ..Outlets::default()
    };
    let time = StoppedTime::begin();
    let harness = Harness::with(outlets, |_| {});
    let (_wrapper, mut client) = harness.captured("s", b"body").await;
    let mut reasons = Vec::new();
    while reasons.last() != Some(&Reason::Busy) {
        assert!(reasons.len() < 100, "nothing bounds what hangs");
        let refused = client.deliver(to("clipboard"));
        let refused = time.advance_until(Duration::from_secs(1), refused).await;
        reasons.push(refused.unwrap_err());
    }
    assert_eq!(
        reasons
            .iter()
            .filter(|reason| **reason == Reason::SinkFailed)
            .count(),
        8
    );
    drop(release);
}
