//! Limits: large turns are cut, the oldest turns are dropped, and everything is counted.

use std::time::Duration;

use proptest::prelude::*;
use turnkeep_types::broker::NAME_BYTES_MAX;

use super::*;

#[test]
fn content_over_the_limit_keeps_its_head_and_says_so() {
    let mut bench = Bench::with_session(Settings {
        turn_bytes_max: 4,
        ..Settings::default()
    });
    for (content, kept, truncated) in [
        ("abc", "abc", false),
        ("abcd", "abcd", false),
        ("abcde", "abcd", true),
    ] {
        let id = bench.say(content);
        let found = bench.get(&id).unwrap();
        assert_eq!(
            (&found.content[..], found.info.truncated),
            (kept.as_bytes(), truncated)
        );
        assert_eq!(found.info.byte_length as usize, kept.len());
    }
}

#[test]
fn text_is_cut_between_characters_and_raw_has_its_own_flag() {
    let mut bench = Bench::with_session(Settings {
        turn_bytes_max: 4,
        ..Settings::default()
    });
    let long = CompletedTurn {
        text: Some("äöü".to_owned()),
        raw: Some("RAWRAW".into()),
        ..turn("äöü")
    };
    let id = bench.complete(long).unwrap();
    let found = bench.get(&id).unwrap();
    assert_eq!(
        (
            found.text.as_deref(),
            found.info.truncated,
            found.raw_truncated
        ),
        (Some("äö"), true, false)
    );
    let Ok(Reply::Turn(found)) = bench.ask(
        CLIENT,
        Request::GetTurn(GetTurn {
            turn_id: id,
            raw: true,
        }),
    ) else {
        panic!("no turn")
    };
    assert_eq!(
        (found.raw, found.raw_truncated),
        (Some("RAWR".into()), true)
    );
    // An odd limit cuts the content inside a character; the text is whole characters all the same.
    let mut bench = Bench::with_session(Settings {
        turn_bytes_max: 3,
        ..Settings::default()
    });
    let id = bench
        .complete(CompletedTurn {
            text: Some("äöü".to_owned()),
            ..turn("äöü")
        })
        .unwrap();
    let found = bench.get(&id).unwrap();
    assert_eq!((found.text.as_deref(), found.content.len()), (Some("ä"), 3));
}

#[test]
fn memory_is_taken_from_the_oldest_turns_of_the_largest_ring() {
    let settings = Settings {
        memory_bytes_max: 10_000,
        ..Settings::default()
    };
    let mut bench = Bench::with_session(settings);
    bench.wrap(ConnId(2), "small");
    let small = CompletedTurn {
        session: "small".to_owned(),
        ..turn("tiny")
    };
    bench
        .ask(ConnId(2), Request::TurnCompleted(Box::new(small)))
        .unwrap();
    for _ in 0..20 {
        bench.say(&"x".repeat(1_000));
        assert!(bench.broker.held_bytes() <= 10_000);
    }
    assert!(bench.get("small:1").is_ok(), "the small ring loses nothing");
    assert_eq!(bench.get("s:1"), Err(Reason::TurnNotFound));
    assert!(bench.get("s:20").is_ok());
}

#[test]
fn a_completed_turn_is_stored_whatever_the_others_hold() {
    let settings = Settings {
        memory_bytes_max: 4_000,
        ..Settings::default()
    };
    let mut bench = Bench::with_session(settings);
    bench.say(&"x".repeat(3_000));
    bench.wrap(ConnId(2), "t");
    let turn = CompletedTurn {
        session: "t".to_owned(),
        ..turn(&"y".repeat(3_200))
    };
    bench
        .ask(ConnId(2), Request::TurnCompleted(Box::new(turn)))
        .unwrap();
    assert!(bench.get("t:1").is_ok());
    assert_eq!(bench.get("s:1"), Err(Reason::TurnNotFound));
}

#[test]
fn too_many_sessions_push_out_the_one_gone_for_longest() {
    let mut bench = Bench::new(Settings {
        sessions_max: 2,
        ..Settings::default()
    });
    for (number, name) in [(1, "a"), (2, "b")] {
        bench.wrap(ConnId(number), name);
    }
    bench.hello(ConnId(3), Role::Wrapper);
    assert_eq!(bench.register(ConnId(3), "c"), Err(Reason::Busy));
    bench.broker.disconnect(Timestamp(1_001), ConnId(2));
    bench.broker.disconnect(Timestamp(1_002), ConnId(1));
    assert_eq!(bench.register(ConnId(3), "c"), Ok(Reply::Done));
    let names: Vec<String> = bench
        .sessions(true)
        .into_iter()
        .map(|session| session.session)
        .collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let good = Settings::default();
    assert_eq!(good.check(), Ok(()));
    for bad in [
        Settings {
            ring_turns_max: 0,
            ..good
        },
        Settings {
            ring_turns_max: 10_001,
            ..good
        },
        Settings {
            turn_bytes_max: 0,
            ..good
        },
        Settings {
            turn_bytes_max: (7 << 20) + 1,
            ..good
        },
        Settings {
            memory_bytes_max: 1 << 20,
            ..good
        },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    assert_eq!(
        Settings {
            turn_bytes_max: 7 << 20,
            linger: Duration::ZERO,
            ..good
        }
        .check(),
        Ok(())
    );
}

/// What may happen to three sessions on three connections.
#[derive(Debug, Clone)]
enum Step {
    Connect(u8),
    Complete(u8, usize, Option<u64>),
    Disconnect(u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_u8).prop_map(Step::Connect),
        (0..3_u8, 0..2_000_usize, prop::option::of(1..40_u64))
            .prop_map(|(s, n, q)| Step::Complete(s, n, q)),
        (0..3_u8).prop_map(Step::Disconnect),
        (0..2_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_bounds_hold_and_numbers_only_rise(steps in prop::collection::vec(step(), 0..200)) {
        let settings = Settings {
            ring_turns_max: 4,
            memory_bytes_max: 6_000,
            linger: Duration::from_secs(1),
            ..Settings::default()
        };
        let mut bench = Bench::new(settings);
        for step in steps {
            match step {
                Step::Connect(s) => {
                    let conn = ConnId(s.into());
                    let hello = Request::Hello(Hello { version: 1, role: Role::Wrapper });
                    bench.apply(conn, Ok(hello));
                    drop(bench.register(conn, &s.to_string()));
                }
                Step::Complete(s, bytes, seq) => {
                    let turn = CompletedTurn { session: s.to_string(), seq, ..turn(&"x".repeat(bytes)) };
                    let request = Request::TurnCompleted(Box::new(turn));
                    bench.apply(ConnId(s.into()), Ok(request));
                }
                Step::Disconnect(s) => {
                    bench.broker.disconnect(bench.now, ConnId(s.into()));
                }
                Step::Pass(millis) => bench.now.0 += millis,
            }
            prop_assert!(bench.broker.held_bytes() <= 6_000);
            for session in bench.sessions(true) {
                let all = ListTurns { session: session.session, all: true, ..ListTurns::default() };
                let list = Request::ListTurns(all);
                let Ok(Reply::Turns(turns)) = bench.ask(CLIENT, list) else { panic!("listed, yet unknown") };
                prop_assert!(turns.len() <= 4);
                let numbers: Vec<u64> =
                    turns.iter().map(|t| t.turn_id.rsplit(':').next().unwrap().parse().unwrap()).collect();
                prop_assert!(numbers.is_sorted_by(|newer, older| newer > older));
            }
        }
    }
}

#[test]
fn a_session_has_a_name_by_which_it_can_be_called_or_none() {
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    for (name, is_taken) in [
        (Some("review"), true),
        (Some("a@b c"), true),
        (Some(&long[1..]), true),
        (None, true),
        (Some(""), false),
        (Some("@last"), false),
        (Some("a:1"), false),
        (Some(&*long), false),
    ] {
        let mut bench = Bench::new(Settings::default());
        bench.hello(WRAPPER, Role::Wrapper);
        let name = name.map(str::to_owned);
        let register = Register {
            session: "s".to_owned(),
            name: name.clone(),
            ..Register::default()
        };
        let expect = if is_taken {
            Ok(Reply::Done)
        } else {
            Err(Reason::BadField)
        };
        assert_eq!(
            bench.ask(WRAPPER, Request::Register(register)),
            expect,
            "{name:?}"
        );
    }
}
