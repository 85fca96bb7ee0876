//! A shared terminal over the socket: the whole screen first, then every byte. A watcher delays no
//! other peer.

use bytes::Bytes;
use turnkeep_types::broker::{Paint, Reason, Register, Reply, Request, Role, ServerMessage, Shown};

use crate::support::{Harness, Peer};

fn piece(paint: Paint, content: &[u8]) -> Shown {
    let content = Bytes::copy_from_slice(content);
    Shown {
        session: "s".to_owned(),
        content,
        cols: 80,
        rows: 24,
        paint,
    }
}

async fn shared_wrapper(harness: &Harness) -> Peer {
    let mut wrapper = harness.greeted(Role::Wrapper).await;
    let register = Register {
        session: "s".to_owned(),
        shared: true,
        ..Register::default()
    };
    assert_eq!(
        wrapper.ask(Request::Register(register)).await,
        Ok(Reply::Done)
    );
    wrapper
}

async fn show(wrapper: &mut Peer, paint: Paint, content: &[u8]) {
    assert_eq!(
        wrapper.ask(Request::Screen(piece(paint, content))).await,
        Ok(Reply::Done)
    );
}

async fn watch(client: &mut Peer, session: &str) -> Result<Reply, Reason> {
    client
        .ask(Request::Watch {
            session: session.to_owned(),
        })
        .await
}

#[tokio::test]
async fn a_watcher_sees_the_whole_screen_and_then_every_byte_and_hears_of_the_end() {
    let harness = Harness::start();
    let mut wrapper = shared_wrapper(&harness).await;
    let mut first = harness.client().await;
    assert_eq!(watch(&mut first, "s").await, Ok(Reply::Done));
    assert_eq!(wrapper.told().await, ServerMessage::Show { on: true });
    show(&mut wrapper, Paint::Bytes, b"too early").await;
    show(&mut wrapper, Paint::Repaint, b"screen").await;
    show(&mut wrapper, Paint::Bytes, b"one").await;
    let mut second = harness.client().await;
    assert_eq!(watch(&mut second, "s").await, Ok(Reply::Done));
    assert_eq!(wrapper.told().await, ServerMessage::Show { on: true });
    show(&mut wrapper, Paint::Repaint, b"screen again").await;
    show(&mut wrapper, Paint::Bytes, b"two").await;
    for (paint, content) in [
        (Paint::Repaint, &b"screen"[..]),
        (Paint::Bytes, b"one"),
        (Paint::Bytes, b"two"),
    ] {
        assert_eq!(
            first.told().await,
            ServerMessage::Screen(piece(paint, content))
        );
    }
    for (paint, content) in [
        (Paint::Repaint, &b"screen again"[..]),
        (Paint::Bytes, b"two"),
    ] {
        assert_eq!(
            second.told().await,
            ServerMessage::Screen(piece(paint, content))
        );
    }
    drop(wrapper);
    let ended = ServerMessage::WatchEnded {
        session: "s".to_owned(),
        reason: Reason::SessionDisconnected,
    };
    assert_eq!(
        (first.told().await, second.told().await),
        (ended.clone(), ended)
    );
    assert_eq!(
        watch(&mut first, "s").await,
        Err(Reason::SessionDisconnected)
    );
}

#[tokio::test]
async fn what_was_not_shared_is_shown_to_nobody() {
    let harness = Harness::start();
    let mut wrapper = harness.wrapper("s").await;
    let mut client = harness.client().await;
    assert_eq!(watch(&mut client, "s").await, Err(Reason::NotShared));
    assert_eq!(watch(&mut client, "x").await, Err(Reason::SessionNotFound));
    let screen = Request::Screen(piece(Paint::Bytes, b"x"));
    assert_eq!(wrapper.ask(screen).await, Err(Reason::NotShared));
}

#[tokio::test]
async fn the_wrapper_shows_nothing_more_when_the_last_watcher_has_gone() {
    let harness = Harness::start();
    let mut wrapper = shared_wrapper(&harness).await;
    let mut client = harness.client().await;
    watch(&mut client, "s").await.unwrap();
    assert_eq!(wrapper.told().await, ServerMessage::Show { on: true });
    drop(client);
    assert_eq!(wrapper.told().await, ServerMessage::Show { on: false });
}

#[tokio::test]
async fn a_watcher_who_does_not_read_delays_nobody_and_goes_on_with_a_new_screen() {
    let harness = Harness::start();
    let mut wrapper = shared_wrapper(&harness).await;
    let (mut slow, mut quick) = (harness.client().await, harness.client().await);
    for client in [&mut slow, &mut quick] {
        watch(client, "s").await.unwrap();
        assert_eq!(wrapper.told().await, ServerMessage::Show { on: true });
    }
    show(&mut wrapper, Paint::Repaint, b"screen").await;
    assert_eq!(
        quick.told().await,
        ServerMessage::Screen(piece(Paint::Repaint, b"screen"))
    );
    let much = vec![b'x'; 1 << 20];
    for _ in 0..16 {
        show(&mut wrapper, Paint::Bytes, &much).await;
        assert_eq!(
            quick.told().await,
            ServerMessage::Screen(piece(Paint::Bytes, &much))
        );
    }
    let paint = async {
        assert_eq!(wrapper.told().await, ServerMessage::Show { on: true });
        show(&mut wrapper, Paint::Repaint, b"new screen").await;
    };
    let read = async {
        let mut seen = 0;
        loop {
            match slow.told().await {
                ServerMessage::Screen(shown) if shown.content == "new screen" => return seen,
                ServerMessage::Screen(shown) => seen += shown.content.len(),
                other => panic!("{other:?}"),
            }
        }
    };
    let ((), seen) = tokio::join!(paint, read);
    assert!(seen < 16 << 20, "everything was buffered");
    show(&mut wrapper, Paint::Bytes, b"go on").await;
    assert_eq!(
        slow.told().await,
        ServerMessage::Screen(piece(Paint::Bytes, b"go on"))
    );
    assert_eq!(
        quick.told().await,
        ServerMessage::Screen(piece(Paint::Bytes, b"go on"))
    );
}
