//! Watching: only shared sessions, only while a client watches, and every watcher learns of the
//! end.

use turnkeep_types::broker::{Paint, Shown};

use super::*;

const VIEWER: ConnId = ConnId(20);
const OTHER: ConnId = ConnId(21);

impl Bench {
    /// With the shared session `s` on `WRAPPER`, the private `p` on connection 2, and two viewers.
    fn with_shared() -> Self {
        let mut bench = Self::new(Settings::default());
        bench.wrap(ConnId(2), "p");
        bench.hello(WRAPPER, Role::Wrapper);
        let register = Register {
            session: "s".to_owned(),
            shared: true,
            ..Register::default()
        };
        bench.ask(WRAPPER, Request::Register(register)).unwrap();
        bench.hello(VIEWER, Role::Client);
        bench.hello(OTHER, Role::Client);
        bench
    }

    /// The answer, and the notices with their receivers.
    fn told(&mut self, conn: ConnId, request: Request) -> (Result<Reply, Reason>, Vec<Notice>) {
        let Outcome {
            answer, notices, ..
        } = self.apply(conn, Ok(request));
        match answer {
            Answer::Response(outcome) => (outcome.map_err(|refusal| refusal.reason), notices),
            other => panic!("not a response: {other:?}"),
        }
    }

    fn watch(&mut self, conn: ConnId, session: &str) -> (Result<Reply, Reason>, Vec<Notice>) {
        self.told(
            conn,
            Request::Watch {
                session: session.to_owned(),
            },
        )
    }
}

fn shown(session: &str) -> Shown {
    let content = Bytes::from_static(b"hi");
    Shown {
        session: session.to_owned(),
        content,
        cols: 80,
        rows: 24,
        paint: Paint::Repaint,
    }
}

#[test]
fn only_a_session_that_was_shared_is_watched_and_only_by_clients() {
    let mut bench = Bench::with_shared();
    for (conn, session, expect) in [
        (VIEWER, "p", Err(Reason::NotShared)),
        (VIEWER, "x", Err(Reason::SessionNotFound)),
        (WRAPPER, "s", Err(Reason::WrongRole)),
        (VIEWER, "s", Ok(Reply::Done)),
        (VIEWER, "s", Ok(Reply::Done)),
        (VIEWER, "p", Err(Reason::AlreadyWatching)),
    ] {
        assert_eq!(bench.watch(conn, session).0, expect, "{conn:?} {session}");
    }
    let listed: Vec<_> = bench
        .broker
        .table
        .list_sessions(ListSessions::default())
        .into_iter()
        .map(|info| info.shared)
        .collect();
    assert_eq!(listed, [false, true]);
    assert_eq!(
        bench.told(ConnId(2), Request::Screen(shown("p"))),
        (Err(Reason::NotShared), vec![])
    );
    assert_eq!(
        bench.told(ConnId(2), Request::Screen(shown("s"))),
        (Err(Reason::NotOwner), vec![])
    );
    bench.broker.disconnect(bench.now, WRAPPER);
    assert_eq!(bench.watch(OTHER, "s").0, Err(Reason::SessionDisconnected));
}

#[test]
fn the_wrapper_hears_of_each_who_comes_and_of_the_last_who_goes() {
    let mut bench = Bench::with_shared();
    let on = |on| Notice::Show { to: WRAPPER, on };
    assert_eq!(
        bench.told(WRAPPER, Request::Screen(shown("s"))),
        (Ok(Reply::Done), vec![])
    );
    assert_eq!(bench.watch(VIEWER, "s").1, [on(true)]);
    assert_eq!(bench.watch(OTHER, "s").1, [on(true)]);
    assert_eq!(bench.broker.repaint(OTHER), Some(on(true)));
    assert_eq!(bench.broker.repaint(CLIENT), None);
    let (_, notices) = bench.told(WRAPPER, Request::Screen(shown("s")));
    assert!(
        matches!(&notices[..], [Notice::Screen { to, .. }] if to[..] == [VIEWER, OTHER]),
        "{notices:?}"
    );
    assert_eq!(bench.broker.disconnect(bench.now, VIEWER), []);
    assert_eq!(bench.broker.disconnect(bench.now, OTHER), [on(false)]);
}

#[test]
fn those_who_watch_hear_of_the_end_however_it_comes() {
    let ended = |to: &[ConnId]| Notice::Ended {
        to: to.to_vec(),
        session: "s".to_owned(),
    };
    let mut bench = Bench::with_shared();
    bench.watch(VIEWER, "s").0.unwrap();
    assert_eq!(
        bench.broker.disconnect(bench.now, WRAPPER),
        [ended(&[VIEWER])]
    );
    assert_eq!(
        bench.broker.disconnect(bench.now, VIEWER),
        [],
        "it watches nothing any more"
    );
    let mut bench = Bench::with_shared();
    bench.watch(VIEWER, "s").0.unwrap();
    let (_, notices) = bench.told(
        WRAPPER,
        Request::Deregister {
            session: "s".to_owned(),
        },
    );
    assert_eq!(notices, [ended(&[VIEWER])]);
    assert_eq!(bench.watch(VIEWER, "s").0, Err(Reason::SessionDisconnected));
}

#[test]
fn too_many_who_watch_one_session_are_refused() {
    let mut bench = Bench::with_shared();
    let mut refused = 0;
    for number in 100..140 {
        bench.hello(ConnId(number), Role::Client);
        refused += usize::from(bench.watch(ConnId(number), "s").0 == Err(Reason::Busy));
    }
    assert_eq!(refused, 8);
    assert_eq!(
        bench.watch(ConnId(100), "s").0,
        Ok(Reply::Done),
        "who watches already needs no place"
    );
    assert_eq!(
        bench.watch(ConnId(100), "p").0,
        Err(Reason::AlreadyWatching)
    );
}
