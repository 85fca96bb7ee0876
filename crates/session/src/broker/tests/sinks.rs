//! Paste, deliver, and the order of their checks.

use turnkeep_types::broker::{AgentState, Deliver, Inject, Paste, StateChange, TurnForm};

use super::*;

fn paste(session: &str) -> Request {
    Request::Paste(Paste {
        session: session.to_owned(),
        ..Paste::default()
    })
}

fn to(sink: &str) -> Deliver {
    Deliver {
        sink: sink.to_owned(),
        ..Deliver::default()
    }
}

fn with_capture(content: &str) -> Bench {
    let mut bench = Bench::with_session(Settings::default());
    bench.say(content);
    bench.capture("s").unwrap();
    bench
}

fn injected(content: &str) -> Effect {
    let content = Bytes::copy_from_slice(content.as_bytes());
    Effect::Inject {
        to: WRAPPER,
        inject: Inject {
            content,
            bracketed: false,
        },
    }
}

#[test]
fn paste_is_deliver_with_the_inject_sink() {
    let mut bench = with_capture("a\x1b[0m\r\n");
    let session = Some("s".to_owned());
    let delivered = bench.effect(Request::Deliver(Deliver {
        session,
        ..to("inject")
    }));
    assert_eq!(delivered, Ok(injected("a\x1b[0m\r\n")));
    assert_eq!(bench.effect(paste("s")), delivered);
}

#[test]
fn checks_come_in_their_order() {
    let session = |name: &str| Some(name.to_owned());
    let inject = |name: &str| Deliver {
        session: session(name),
        ..to("inject")
    };
    let mut bench = Bench::with_session(Settings::default());
    // With an empty buffer and, for `gone`, without a wrapper.
    bench.wrap(ConnId(2), "gone");
    bench.broker.disconnect(bench.now, ConnId(2));
    let table = [
        (to("nowhere"), Reason::UnknownSink),
        (to("inject"), Reason::MissingField),
        (to("file"), Reason::MissingField),
        (to("node"), Reason::MissingField),
        (
            Deliver {
                run: session("r"),
                ..to("node")
            },
            Reason::MissingField,
        ),
        (
            Deliver {
                path: session("relative"),
                ..to("file")
            },
            Reason::BadPath,
        ),
        (
            Deliver {
                path: session("/a\0b"),
                ..to("file")
            },
            Reason::BadPath,
        ),
        (inject("no"), Reason::SessionNotFound),
        (inject("s"), Reason::BufferEmpty),
        (inject("gone"), Reason::BufferEmpty),
        (to("clipboard"), Reason::BufferEmpty),
        (to("store"), Reason::BufferEmpty),
        (
            Deliver {
                path: session("/tmp/x"),
                ..to("file")
            },
            Reason::BufferEmpty,
        ),
    ];
    for (deliver, reason) in table {
        assert_eq!(
            bench.effect(Request::Deliver(deliver.clone())),
            Err(reason),
            "{deliver:?}"
        );
    }
    bench.say("a");
    bench.capture("s").unwrap();
    assert_eq!(
        bench.effect(Request::Deliver(inject("gone"))),
        Err(Reason::SessionDisconnected)
    );
    assert_eq!(
        bench.effect(Request::Deliver(inject("no"))),
        Err(Reason::SessionNotFound)
    );
    assert_eq!(
        bench.effect(paste("gone")),
        Err(Reason::SessionDisconnected)
    );
    assert_eq!(bench.effect(paste("no")), Err(Reason::SessionNotFound));
}

#[test]
fn the_relay_buffer_survives_pastes_eviction_and_the_end_of_its_session() {
    let mut bench = Bench::with_session(Settings {
        ring_turns_max: 1,
        ..Settings::default()
    });
    bench.wrap(ConnId(2), "other");
    bench.say("first");
    bench.capture("s").unwrap();
    bench.say("second");
    assert_eq!(bench.get("s:1"), Err(Reason::TurnNotFound));
    bench.broker.disconnect(bench.now, WRAPPER);
    bench.now = Timestamp(u64::MAX);
    let expect = Inject {
        content: "first".into(),
        bracketed: false,
    };
    for _ in 0..3 {
        let effect = bench.effect(paste("other"));
        assert_eq!(
            effect,
            Ok(Effect::Inject {
                to: ConnId(2),
                inject: expect.clone()
            })
        );
    }
}

#[test]
fn only_the_next_capture_replaces_the_relay_buffer() {
    let mut bench = with_capture("one");
    bench.say("two");
    assert_eq!(bench.capture("no"), Err(Reason::SessionNotFound));
    assert_eq!(bench.effect(paste("s")), Ok(injected("one")));
    bench.capture("s").unwrap();
    assert_eq!(bench.effect(paste("s")), Ok(injected("two")));
}

#[test]
fn each_sink_gets_the_content_and_the_turn() {
    let mut bench = with_capture("body");
    let path = Some("/tmp/x".to_owned());
    let node = Deliver {
        run: Some("r".to_owned()),
        node: Some("n".to_owned()),
        ..to("node")
    };
    for deliver in [
        to("clipboard"),
        Deliver { path, ..to("file") },
        to("store"),
        node,
    ] {
        let delivery = match bench.effect(Request::Deliver(deliver)).unwrap() {
            Effect::Clipboard(delivery) | Effect::Store(delivery) => delivery,
            Effect::File { path, delivery } => {
                assert_eq!(path, std::path::Path::new("/tmp/x"));
                delivery
            }
            Effect::Node { to, delivery } => {
                assert_eq!((to.run.as_str(), to.node.as_str()), ("r", "n"));
                delivery
            }
            Effect::Inject { .. } => panic!("not asked for"),
        };
        assert_eq!(
            (delivery.bytes, delivery.turn.to_found_turn().info.turn_id),
            ("body".into(), "s:1".to_owned())
        );
    }
}

#[test]
fn raw_bytes_are_delivered_only_when_asked_for_and_kept() {
    let mut bench = with_capture("no raw");
    let raw = || {
        Request::Paste(Paste {
            session: "s".to_owned(),
            form: TurnForm::Raw,
            ..Paste::default()
        })
    };
    assert_eq!(bench.effect(raw()), Err(Reason::NoRaw));
    bench
        .complete(CompletedTurn {
            raw: Some("RAW".into()),
            ..turn("plain")
        })
        .unwrap();
    bench.capture("s").unwrap();
    assert_eq!(bench.effect(raw()), Ok(injected("RAW")));
    assert_eq!(bench.effect(paste("s")), Ok(injected("plain")));
}

#[test]
fn a_bracketed_paste_refuses_content_that_would_end_it() {
    let bracketed = || {
        Request::Paste(Paste {
            session: "s".to_owned(),
            bracketed: true,
            ..Paste::default()
        })
    };
    for bad in ["a\x1b[201~rm", "\u{9b}201~"] {
        let mut bench = with_capture(bad);
        assert_eq!(
            bench.effect(bracketed()),
            Err(Reason::UnsafeContent),
            "{bad:?}"
        );
        assert_eq!(
            bench.effect(paste("s")),
            Ok(injected(bad)),
            "without a frame it is only bytes"
        );
    }
    let mut bench = with_capture("\x1b[200~fine\x1b[31m");
    let Ok(Effect::Inject { inject, .. }) = bench.effect(bracketed()) else {
        panic!("refused")
    };
    assert!(inject.bracketed);
}

#[test]
fn a_session_that_frames_every_paste_refuses_content_that_would_end_one() {
    let mut bench = Bench::new(Settings::default());
    bench.hello(WRAPPER, Role::Wrapper);
    let register = Register {
        session: "s".to_owned(),
        bracketed: true,
        ..Register::default()
    };
    bench.ask(WRAPPER, Request::Register(register)).unwrap();
    bench.say("a\x1b[201~b");
    bench
        .ask(
            CLIENT,
            Request::Capture {
                session: "s".to_owned(),
            },
        )
        .unwrap();
    let paste = Request::Paste(Paste {
        session: "s".to_owned(),
        ..Paste::default()
    });
    assert_eq!(bench.effect(paste), Err(Reason::UnsafeContent));
}

#[test]
fn a_sink_that_asks_for_text_gets_no_control_sequences() {
    let mut bench = Bench::with_session(Settings::default());
    let text = |form| {
        Request::Paste(Paste {
            session: "s".to_owned(),
            form,
            ..Paste::default()
        })
    };
    let with_text = CompletedTurn {
        text: Some("red".to_owned()),
        ..turn("\x1b[31mred\x1b[m\r\n")
    };
    let without_text = turn("\x1b[?2004l\rprogress 1\rprogress 2\r\n");
    // Each turn, its text, its content.
    let turns = [
        (with_text, "red", "\x1b[31mred\x1b[m\r\n"),
        (
            without_text,
            "progress 2",
            "\x1b[?2004l\rprogress 1\rprogress 2\r\n",
        ),
        (turn("plain words"), "plain words", "plain words"),
        (turn("two\nlines"), "two\nlines", "two\nlines"),
    ];
    for (turn, expect_text, expect_content) in turns {
        bench.complete(turn).unwrap();
        bench.capture("s").unwrap();
        assert_eq!(
            bench.effect(text(TurnForm::Text)),
            Ok(injected(expect_text))
        );
        assert_eq!(
            bench.effect(text(TurnForm::Content)),
            Ok(injected(expect_content))
        );
        let file = Deliver {
            path: Some("/tmp/x".to_owned()),
            form: TurnForm::Text,
            ..to("file")
        };
        match bench.effect(Request::Deliver(file)) {
            Ok(Effect::File { delivery, .. }) => assert_eq!(delivery.bytes, expect_text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        bench.get("s:2").unwrap().text,
        None,
        "a text that the wrapper did not send is not claimed"
    );
}

#[test]
fn a_paste_that_must_not_answer_a_dialog_is_refused_while_one_is_shown() {
    let mut bench = with_capture("a");
    let careful = || {
        let session = "s".to_owned();
        Request::Paste(Paste {
            session,
            unless_blocked: true,
            ..Paste::default()
        })
    };
    let through_the_sink = || {
        let session = Some("s".to_owned());
        Request::Deliver(Deliver {
            session,
            unless_blocked: true,
            ..to("inject")
        })
    };
    assert_eq!(
        bench.effect(careful()),
        Ok(injected("a")),
        "no state is known: it may be any program"
    );
    for (state, refused) in [
        (AgentState::Ready, false),
        (AgentState::Working, false),
        (AgentState::Blocked, true),
    ] {
        let change = StateChange {
            session: "s".to_owned(),
            state,
            since: Timestamp(5),
            signal: None,
            unanswered: 0,
        };
        bench.ask(WRAPPER, Request::State(change)).unwrap();
        let expect = if refused {
            Err(Reason::Blocked)
        } else {
            Ok(injected("a"))
        };
        assert_eq!(bench.effect(careful()), expect, "{state:?}");
        assert_eq!(bench.effect(through_the_sink()), expect, "{state:?}");
        assert_eq!(
            bench.effect(paste("s")),
            Ok(injected("a")),
            "without the wish nothing has changed"
        );
    }
    // A program that paints dialogs may show one before its first prompt.
    bench.hello(ConnId(3), Role::Wrapper);
    let register = Register {
        session: "t".to_owned(),
        dialogs: true,
        ..Register::default()
    };
    bench.ask(ConnId(3), Request::Register(register)).unwrap();
    let early = Paste {
        session: "t".to_owned(),
        unless_blocked: true,
        ..Paste::default()
    };
    assert_eq!(bench.effect(Request::Paste(early)), Err(Reason::Blocked));
}
