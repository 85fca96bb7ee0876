//! The rules of the turn registry and of the broker, one by one, with no socket and no clock.

mod limits;
mod registry;
mod sinks;
mod talk;
mod watch;

use bytes::Bytes;
use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    BadRequest, CompletedTurn, FoundTurn, GetTurn, Hello, ListSessions, ListTurns, Reason, Refusal,
    Register, Reply, Request, Role, SessionInfo, TurnInfo,
};

use super::{Answer, Broker, ConnId, Effect, Message, Notice, Outcome, Settings};

/// A broker, a clock that stands still, and short words for what is asked.
struct Bench {
    broker: Broker,
    settings: Settings,
    now: Timestamp,
}

const WRAPPER: ConnId = ConnId(1);
const CLIENT: ConnId = ConnId(9);

impl Bench {
    fn new(settings: Settings) -> Self {
        let mut bench = Self {
            broker: Broker::new(settings),
            settings,
            now: Timestamp(1_000),
        };
        bench.hello(CLIENT, Role::Client);
        bench
    }

    /// With session `s` on the connection `WRAPPER`.
    fn with_session(settings: Settings) -> Self {
        let mut bench = Self::new(settings);
        bench.wrap(WRAPPER, "s");
        bench
    }

    fn hello(&mut self, conn: ConnId, role: Role) {
        let outcome = self.apply(conn, Ok(Request::Hello(Hello { version: 1, role })));
        assert_eq!(
            outcome,
            Outcome {
                answer: Answer::Greeting(Ok(())),
                close: false,
                notices: Vec::new()
            }
        );
    }

    fn apply(&mut self, conn: ConnId, request: Result<Request, BadRequest>) -> Outcome {
        self.broker
            .apply(self.now, conn, Message::new(request, &self.settings))
    }

    fn wrap(&mut self, conn: ConnId, session: &str) {
        self.hello(conn, Role::Wrapper);
        assert_eq!(self.register(conn, session), Ok(Reply::Done));
    }

    fn register(&mut self, conn: ConnId, session: &str) -> Result<Reply, Reason> {
        self.ask(
            conn,
            Request::Register(Register {
                session: session.to_owned(),
                ..Register::default()
            }),
        )
    }

    /// Asks something that is answered at once.
    fn ask(&mut self, conn: ConnId, request: Request) -> Result<Reply, Reason> {
        match self.apply(conn, Ok(request)).answer {
            Answer::Found(turn) => Ok(Reply::Turn(Box::new(turn.to_found_turn()))),
            Answer::Response(outcome) => outcome.map_err(|refusal| refusal.reason),
            other => panic!("not a response: {other:?}"),
        }
    }

    /// Asks something that ends in an effect or a refusal.
    fn effect(&mut self, request: Request) -> Result<Effect, Reason> {
        match self.apply(CLIENT, Ok(request)).answer {
            Answer::After(effect) => Ok(*effect),
            Answer::Response(Err(refusal)) => Err(refusal.reason),
            other => panic!("no effect: {other:?}"),
        }
    }

    fn complete(&mut self, turn: CompletedTurn) -> Result<String, Reason> {
        match self.ask(WRAPPER, Request::TurnCompleted(Box::new(turn)))? {
            Reply::Kept { turn_id } => Ok(turn_id),
            other => panic!("{other:?}"),
        }
    }

    /// Completes a turn of `s` with this content; gives its id.
    fn say(&mut self, content: &str) -> String {
        self.complete(turn(content)).unwrap()
    }

    fn get(&mut self, turn_id: &str) -> Result<FoundTurn, Reason> {
        match self.ask(
            CLIENT,
            Request::GetTurn(GetTurn {
                turn_id: turn_id.to_owned(),
                raw: false,
            }),
        )? {
            Reply::Turn(turn) => Ok(*turn),
            other => panic!("{other:?}"),
        }
    }

    fn turns(&mut self, limit: Option<u32>) -> Vec<TurnInfo> {
        let list = ListTurns {
            session: "s".to_owned(),
            limit,
            ..ListTurns::default()
        };
        match self.ask(CLIENT, Request::ListTurns(list)) {
            Ok(Reply::Turns(turns)) => turns,
            other => panic!("{other:?}"),
        }
    }

    fn ids(&mut self, limit: Option<u32>) -> Vec<String> {
        self.turns(limit)
            .into_iter()
            .map(|turn| turn.turn_id)
            .collect()
    }

    fn sessions(&mut self, gone: bool) -> Vec<SessionInfo> {
        match self.ask(
            CLIENT,
            Request::ListSessions(ListSessions {
                gone,
                ..ListSessions::default()
            }),
        ) {
            Ok(Reply::Sessions(sessions)) => sessions,
            other => panic!("{other:?}"),
        }
    }

    fn capture(&mut self, session: &str) -> Result<Reply, Reason> {
        self.ask(
            CLIENT,
            Request::Capture {
                session: session.to_owned(),
            },
        )
    }
}

fn turn(content: &str) -> CompletedTurn {
    CompletedTurn {
        session: "s".to_owned(),
        content: Bytes::copy_from_slice(content.as_bytes()),
        ..CompletedTurn::default()
    }
}
