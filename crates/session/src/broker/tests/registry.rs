//! Turn ids, metadata, the ring, the relay buffer.

use super::*;

#[test]
fn a_turn_id_is_the_session_and_a_number_from_1() {
    let mut bench = Bench::with_session(Settings::default());
    assert_eq!(
        [bench.say("a"), bench.say("b"), bench.say("c")],
        ["s:1", "s:2", "s:3"]
    );
}

#[test]
fn ids_are_unique_across_sessions() {
    let mut bench = Bench::with_session(Settings::default());
    bench.wrap(ConnId(2), "t");
    let other = CompletedTurn {
        session: "t".to_owned(),
        ..turn("x")
    };
    let kept = bench.ask(ConnId(2), Request::TurnCompleted(Box::new(other)));
    assert_eq!(
        kept,
        Ok(Reply::Kept {
            turn_id: "t:1".to_owned()
        })
    );
    assert_eq!(bench.say("x"), "s:1");
}

#[test]
fn a_number_is_never_reused_not_even_after_eviction_and_a_new_registration() {
    let mut bench = Bench::with_session(Settings {
        ring_turns_max: 1,
        ..Settings::default()
    });
    bench.say("a");
    bench.say("b");
    bench.broker.disconnect(bench.now, WRAPPER);
    bench.wrap(WRAPPER, "s");
    assert_eq!(bench.say("c"), "s:3");
}

#[test]
fn metadata_is_assigned_once_and_never_changes() {
    let mut bench = Bench::with_session(Settings::default());
    let facts = CompletedTurn {
        interrupted: true,
        incomplete: true,
        ..turn("hello")
    };
    let id = bench
        .complete(CompletedTurn {
            text: Some("HELLO".to_owned()),
            ..facts
        })
        .unwrap();
    let info = TurnInfo {
        turn_id: "s:1".to_owned(),
        timestamp: Timestamp(1_000),
        byte_length: 5,
        interrupted: true,
        truncated: false,
        incomplete: true,
        unprompted: false,
        preview: None,
    };
    bench.now = Timestamp(2_000);
    bench.say("later");
    let found = bench.get(&id).unwrap();
    assert_eq!(
        (found.info, found.content, found.text),
        (info, "hello".into(), Some("HELLO".to_owned()))
    );
}

#[test]
fn the_wrappers_own_time_is_the_turns_time() {
    let mut bench = Bench::with_session(Settings::default());
    bench
        .complete(CompletedTurn {
            timestamp: Some(Timestamp(7)),
            ..turn("a")
        })
        .unwrap();
    assert_eq!(bench.turns(None)[0].timestamp, Timestamp(7));
}

#[test]
fn bytes_are_kept_exactly_whatever_they_are() {
    let mut bench = Bench::with_session(Settings::default());
    let all: Bytes = (0..=255).collect::<Vec<u8>>().into();
    bench
        .complete(CompletedTurn {
            content: all.clone(),
            ..turn("")
        })
        .unwrap();
    assert_eq!(bench.get("s:1").unwrap().content, all);
}

#[test]
fn the_default_ring_holds_32_turns_and_evicts_the_oldest_silently() {
    let mut bench = Bench::with_session(Settings::default());
    for number in 1..=33 {
        assert_eq!(bench.say("x"), format!("s:{number}"));
    }
    assert_eq!(bench.ids(None).len(), 32);
    assert_eq!(bench.get("s:1"), Err(Reason::TurnNotFound));
    assert!(bench.get("s:2").is_ok());
}

#[test]
fn turns_are_listed_newest_first_up_to_the_limit_and_without_content() {
    let mut bench = Bench::with_session(Settings::default());
    assert_eq!(
        ["a", "b", "c"].map(|content| bench.say(content)),
        ["s:1", "s:2", "s:3"]
    );
    for (limit, expect) in [
        (None, &["s:3", "s:2", "s:1"][..]),
        (Some(2), &["s:3", "s:2"]),
        (Some(99), &["s:3", "s:2", "s:1"]),
        (Some(0), &[]),
    ] {
        assert_eq!(bench.ids(limit), expect, "{limit:?}");
    }
    let unknown = Request::ListTurns(ListTurns {
        session: "no".to_owned(),
        ..ListTurns::default()
    });
    assert_eq!(bench.ask(CLIENT, unknown), Err(Reason::SessionNotFound));
}

#[test]
fn an_id_that_is_evicted_or_invalid_is_turn_not_found() {
    let mut bench = Bench::with_session(Settings::default());
    bench.say("a");
    for id in [
        "",
        "s",
        "s:",
        "s:0",
        "s:2",
        "s:01",
        "s:+1",
        "s:-1",
        "t:1",
        ":1",
        "s:1:1",
        "s:99999999999999999999",
    ] {
        assert_eq!(bench.get(id), Err(Reason::TurnNotFound), "{id}");
        let by_id = Request::CaptureById {
            turn_id: id.to_owned(),
        };
        assert_eq!(bench.ask(CLIENT, by_id), Err(Reason::TurnNotFound), "{id}");
    }
}

#[test]
fn capture_takes_the_latest_turn() {
    let mut bench = Bench::with_session(Settings::default());
    assert_eq!(bench.capture("no"), Err(Reason::SessionNotFound));
    assert_eq!(bench.capture("s"), Err(Reason::NoTurn));
    bench.say("a");
    bench.say("bcd");
    assert_eq!(
        bench.capture("s"),
        Ok(Reply::Captured {
            turn_id: "s:2".to_owned(),
            size: 3
        })
    );
}

#[test]
fn capture_by_id_takes_any_turn_of_the_ring() {
    let mut bench = Bench::with_session(Settings::default());
    bench.say("a");
    bench.say("bcd");
    let captured = bench.ask(
        CLIENT,
        Request::CaptureById {
            turn_id: "s:1".to_owned(),
        },
    );
    assert_eq!(
        captured,
        Ok(Reply::Captured {
            turn_id: "s:1".to_owned(),
            size: 1
        })
    );
}

#[test]
fn the_wrappers_own_number_is_used_and_a_known_one_doubles_nothing() {
    let mut bench = Bench::with_session(Settings {
        ring_turns_max: 2,
        ..Settings::default()
    });
    let numbered = |seq, content| CompletedTurn {
        seq: Some(seq),
        ..turn(content)
    };
    assert_eq!(bench.complete(numbered(5, "five")), Ok("s:5".to_owned()));
    assert_eq!(bench.complete(numbered(5, "again")), Ok("s:5".to_owned()));
    assert_eq!(bench.get("s:5").unwrap().content, "five");
    assert_eq!(bench.say("six"), "s:6");
    assert_eq!(bench.complete(numbered(9, "nine")), Ok("s:9".to_owned()));
    // Evicted by now, and still known.
    assert_eq!(bench.complete(numbered(5, "late")), Ok("s:5".to_owned()));
    assert_eq!(bench.ids(None), ["s:9", "s:6"]);
    assert_eq!(
        bench.complete(numbered(7, "never given")),
        Err(Reason::BadField)
    );
    assert_eq!(bench.complete(numbered(0, "zero")), Err(Reason::BadField));
    assert_eq!(
        bench.complete(numbered(u64::MAX, "last")),
        Ok(format!("s:{}", u64::MAX))
    );
    assert_eq!(bench.complete(turn("beyond")), Err(Reason::BadField));
}

#[test]
fn a_session_that_registers_again_keeps_its_ring() {
    let mut bench = Bench::with_session(Settings::default());
    bench.say("a");
    bench.broker.disconnect(bench.now, WRAPPER);
    bench.wrap(ConnId(2), "s");
    assert_eq!(bench.ids(None), ["s:1"]);
}

#[test]
fn the_ring_of_a_gone_session_lingers_and_then_goes() {
    let mut bench = Bench::with_session(Settings::default());
    bench.say("a");
    bench.broker.disconnect(bench.now, WRAPPER);
    assert_eq!(bench.sessions(false), []);
    assert_eq!(bench.sessions(true).len(), 1);
    let linger = 10 * 60 * 1_000;
    bench.now = Timestamp(1_000 + linger - 1);
    assert_eq!(bench.get("s:1").unwrap().content, "a");
    assert!(bench.capture("s").is_ok());
    bench.now = Timestamp(1_000 + linger);
    assert_eq!(bench.get("s:1"), Err(Reason::TurnNotFound));
    assert_eq!(bench.capture("s"), Err(Reason::SessionNotFound));
    assert_eq!(bench.broker.held_bytes(), 0);
}

#[test]
fn a_session_that_comes_back_in_time_is_not_forgotten() {
    let mut bench = Bench::with_session(Settings::default());
    bench.say("a");
    bench.broker.disconnect(bench.now, WRAPPER);
    bench.wrap(WRAPPER, "s");
    bench.now = Timestamp(u64::MAX);
    assert_eq!(bench.ids(None), ["s:1"]);
}

#[test]
fn raw_bytes_are_given_where_they_were_kept() {
    let mut bench = Bench::with_session(Settings::default());
    let raw = Some(Bytes::from_static(b"\x1b[1ma"));
    bench
        .complete(CompletedTurn {
            raw: raw.clone(),
            text: Some("a".to_owned()),
            ..turn("a")
        })
        .unwrap();
    bench.say("b");
    let mut get = |id: &str| {
        bench.ask(
            CLIENT,
            Request::GetTurn(GetTurn {
                turn_id: id.to_owned(),
                raw: true,
            }),
        )
    };
    let Ok(Reply::Turn(found)) = get("s:1") else {
        panic!("no turn")
    };
    assert_eq!(
        (found.raw, found.text, found.content),
        (raw, None, "a".into())
    );
    assert_eq!(get("s:2"), Err(Reason::NoRaw));
}

#[test]
fn what_was_said_unprompted_is_kept_and_listed_on_request_but_is_no_turn() {
    let mut bench = Bench::with_session(Settings::default());
    let turn_id = bench.say("an answer");
    let said = bench
        .complete(CompletedTurn {
            unprompted: true,
            ..turn("The build has ended.")
        })
        .unwrap();
    assert_eq!(bench.ids(None), [turn_id.as_str()]);
    let all = Request::ListTurns(ListTurns {
        session: "s".to_owned(),
        all: true,
        ..ListTurns::default()
    });
    let Ok(Reply::Turns(listed)) = bench.ask(CLIENT, all) else {
        panic!("no list")
    };
    let listed: Vec<(&str, bool)> = listed
        .iter()
        .map(|turn| (turn.turn_id.as_str(), turn.unprompted))
        .collect();
    assert_eq!(listed, [(said.as_str(), true), (turn_id.as_str(), false)]);
    assert_eq!(bench.get(&said).unwrap().content, "The build has ended.");
    let Ok(Reply::Captured {
        turn_id: captured, ..
    }) = bench.capture("s")
    else {
        panic!("not captured")
    };
    assert_eq!(captured, turn_id);
    assert_eq!(bench.sessions(false).first().unwrap().turns, 1);
}

#[test]
fn a_session_that_only_spoke_unprompted_has_no_turn() {
    let mut bench = Bench::with_session(Settings::default());
    bench
        .complete(CompletedTurn {
            unprompted: true,
            ..turn("Hello.")
        })
        .unwrap();
    assert_eq!(bench.capture("s"), Err(Reason::NoTurn));
    assert!(!bench.sessions(false).first().unwrap().has_turn);
}

#[test]
fn a_list_has_the_first_words_of_each_turn_only_when_they_are_asked_for() {
    let mut bench = Bench::with_session(Settings::default());
    let said = CompletedTurn {
        text: Some("\nWell  done.\nMore".to_owned()),
        ..turn("\x1b[1mWell")
    };
    bench.complete(said).unwrap();
    bench.say("\x1b[31mred\x1b[m");
    assert!(
        bench.turns(None).iter().all(|turn| turn.preview.is_none()),
        "content is not part of a list"
    );
    let list = ListTurns {
        session: "s".to_owned(),
        preview: true,
        ..ListTurns::default()
    };
    let Ok(Reply::Turns(turns)) = bench.ask(CLIENT, Request::ListTurns(list)) else {
        panic!("no list")
    };
    let previews: Vec<_> = turns
        .into_iter()
        .map(|turn| turn.preview.unwrap())
        .collect();
    assert_eq!(previews, ["red", "Well done. More"]);
    let list = ListSessions {
        preview: true,
        ..ListSessions::default()
    };
    let Ok(Reply::Sessions(sessions)) = bench.ask(CLIENT, Request::ListSessions(list)) else {
        panic!()
    };
    assert_eq!(sessions[0].preview.as_deref(), Some("red"));
    assert_eq!(bench.sessions(false)[0].preview, None);
}
