//! Hello, registration, ownership, and the list of sessions.

use turnkeep_types::broker::{AgentState, StateChange};

use super::*;

fn state(state: AgentState) -> Request {
    Request::State(StateChange {
        session: "s".to_owned(),
        state,
        since: Timestamp(5),
        signal: None,
        unanswered: 0,
    })
}

#[test]
fn anything_before_hello_is_refused_and_closes() {
    let mut broker = Broker::new(Settings::default());
    let refused = Outcome {
        answer: Answer::Response(Err(Reason::HelloRequired.into())),
        close: true,
        notices: Vec::new(),
    };
    let unreadable = BadRequest {
        hello: false,
        refusal: Reason::UnknownType.into(),
    };
    for message in [
        Ok(Request::ListSessions(ListSessions::default())),
        Err(unreadable),
    ] {
        assert_eq!(
            broker.apply(
                Timestamp(0),
                CLIENT,
                Message::new(message, &Settings::default())
            ),
            refused
        );
    }
}

#[test]
fn a_hello_that_fails_is_answered_as_a_hello_and_closes() {
    let mut broker = Broker::new(Settings::default());
    let wrong = Request::Hello(Hello {
        version: 2,
        role: Role::Client,
    });
    let outcome = broker.apply(
        Timestamp(0),
        CLIENT,
        Message::new(Ok(wrong), &Settings::default()),
    );
    assert!(outcome.close);
    assert!(matches!(
        outcome.answer,
        Answer::Greeting(Err(Refusal {
            reason: Reason::VersionMismatch,
            ..
        }))
    ));
    let bad = BadRequest {
        hello: true,
        refusal: Reason::MissingField.into(),
    };
    let outcome = broker.apply(
        Timestamp(0),
        CLIENT,
        Message::new(Err(bad), &Settings::default()),
    );
    let answer = Answer::Greeting(Err(Reason::MissingField.into()));
    assert_eq!(
        outcome,
        Outcome {
            answer,
            close: true,
            notices: Vec::new()
        }
    );
}

#[test]
fn a_bad_request_after_hello_is_answered_and_the_connection_goes_on() {
    let mut bench = Bench::new(Settings::default());
    for reason in [Reason::UnknownType, Reason::MissingField, Reason::BadField] {
        let bad = BadRequest {
            hello: false,
            refusal: reason.into(),
        };
        let outcome = bench.apply(CLIENT, Err(bad));
        assert_eq!(
            outcome,
            Outcome {
                answer: Answer::Response(Err(reason.into())),
                close: false,
                notices: Vec::new()
            }
        );
    }
    let hello = Request::Hello(Hello {
        version: 1,
        role: Role::Wrapper,
    });
    assert_eq!(bench.ask(CLIENT, hello), Err(Reason::HelloRepeated));
    assert_eq!(bench.sessions(true), []);
}

#[test]
fn a_session_is_registered_once_and_by_a_wrapper() {
    let mut bench = Bench::with_session(Settings::default());
    assert_eq!(bench.register(WRAPPER, "s"), Err(Reason::DuplicateSession));
    assert_eq!(bench.register(WRAPPER, "t"), Err(Reason::AlreadyRegistered));
    assert_eq!(bench.register(CLIENT, "t"), Err(Reason::WrongRole));
    bench.hello(ConnId(2), Role::Wrapper);
    assert_eq!(
        bench.register(ConnId(2), "s"),
        Err(Reason::DuplicateSession)
    );
    for bad in ["", "a:b", "a b"] {
        assert_eq!(
            bench.register(ConnId(2), bad),
            Err(Reason::BadField),
            "{bad:?}"
        );
    }
    // Rejected requests left no trace.
    assert_eq!(bench.register(ConnId(2), "t"), Ok(Reply::Done));
    assert_eq!(bench.sessions(false).len(), 2);
}

#[test]
fn a_connection_touches_only_the_session_that_it_registered() {
    let mut bench = Bench::with_session(Settings::default());
    bench.wrap(ConnId(2), "t");
    let completed = || Request::TurnCompleted(Box::new(turn("x")));
    for conn in [ConnId(2), CLIENT] {
        assert_eq!(bench.ask(conn, completed()), Err(Reason::NotOwner));
        assert_eq!(
            bench.ask(conn, state(AgentState::Ready)),
            Err(Reason::NotOwner)
        );
        let deregister = Request::Deregister {
            session: "s".to_owned(),
        };
        assert_eq!(bench.ask(conn, deregister), Err(Reason::NotOwner));
    }
    assert_eq!(bench.ids(None), [""; 0]);
    bench.broker.disconnect(bench.now, WRAPPER);
    assert_eq!(bench.ask(ConnId(2), completed()), Err(Reason::NotOwner));
}

#[test]
fn deregistering_is_ok_even_when_unknown() {
    let mut bench = Bench::with_session(Settings::default());
    for session in ["no", "s", "s"] {
        let request = Request::Deregister {
            session: session.to_owned(),
        };
        assert_eq!(bench.ask(WRAPPER, request), Ok(Reply::Done), "{session}");
    }
    assert_eq!(bench.sessions(false), []);
    assert_eq!(bench.complete(turn("x")), Err(Reason::NotOwner));
    assert_eq!(
        bench.register(WRAPPER, "t"),
        Ok(Reply::Done),
        "the connection is free for another session"
    );
}

#[test]
fn a_dropped_connection_deregisters() {
    let mut bench = Bench::with_session(Settings::default());
    bench.broker.disconnect(bench.now, WRAPPER);
    assert_eq!(bench.sessions(false), []);
    // A connection that never said hello, or is gone already, changes nothing.
    bench.broker.disconnect(bench.now, WRAPPER);
    bench.broker.disconnect(bench.now, ConnId(77));
}

#[test]
fn a_list_says_what_each_session_does() {
    let mut bench = Bench::new(Settings::default());
    bench.hello(WRAPPER, Role::Wrapper);
    let register = Register {
        session: "s".to_owned(),
        pid: 7,
        pattern: String::new(),
        name: Some("mine".to_owned()),
        preset: Some("claude".to_owned()),
        child_pid: Some(8),
        shared: true,
        ..Register::default()
    };
    bench.ask(WRAPPER, Request::Register(register)).unwrap();
    let fresh = SessionInfo {
        session: "s".to_owned(),
        pid: 7,
        name: Some("mine".to_owned()),
        preset: Some("claude".to_owned()),
        child_pid: Some(8),
        since: Some(Timestamp(1_000)),
        connected: true,
        shared: true,
        ..SessionInfo::default()
    };
    assert_eq!(bench.sessions(false), std::slice::from_ref(&fresh));
    bench.ask(WRAPPER, state(AgentState::Working)).unwrap();
    bench.say("a");
    let working = SessionInfo {
        state: Some(AgentState::Working),
        since: Some(Timestamp(5)),
        has_turn: true,
        turns: 1,
        last_turn_at: Some(Timestamp(1_000)),
        ..fresh
    };
    assert_eq!(bench.sessions(false), std::slice::from_ref(&working));
    bench.now = Timestamp(3_000);
    bench.broker.disconnect(bench.now, WRAPPER);
    let gone = SessionInfo {
        connected: false,
        since: Some(Timestamp(3_000)),
        ..working
    };
    assert_eq!(
        bench.sessions(true),
        [gone],
        "its last state tells that it ended in mid-turn"
    );
}
