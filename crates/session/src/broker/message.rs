//! A message as the machine takes it: what is large in it is seen to before anybody else has to
//! wait.

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{BadRequest, Request};

use super::ring::Body;
use super::settings::Settings;

/// A message that came, ready to be decided.
#[derive(Debug)]
pub struct Message(pub(super) Result<Command, BadRequest>);

/// What is asked.
#[derive(Debug)]
pub(super) enum Command {
    Completed(Box<Completed>),
    Other(Request),
}

/// A completed turn, its parts compared and cut.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) session: String,
    pub(super) seq: Option<u64>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) body: Body,
}

impl Message {
    /// Makes a message ready. Takes as long as it is large.
    pub fn new(request: Result<Request, BadRequest>, settings: &Settings) -> Self {
        Self(request.map(|request| match request {
            Request::TurnCompleted(mut turn) => Command::Completed(Box::new(Completed {
                body: Body::take(&mut turn, settings.turn_bytes_max),
                session: turn.session,
                seq: turn.seq,
                timestamp: turn.timestamp,
            })),
            other => Command::Other(other),
        }))
    }
}
