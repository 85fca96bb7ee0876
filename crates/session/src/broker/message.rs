//! A message prepared for the state machine: the expensive work on a large turn is done here,
//! before the machine is locked.
//!
//! Preparing cannot fail; a bad request becomes a rejection.

use turnkeep_types::Timestamp;
use turnkeep_types::broker::{BadRequest, Request};

use super::ring::TurnBody;
use super::settings::Settings;

/// A message that is ready to be applied.
#[derive(Debug)]
pub struct Message(pub(super) Result<Command, BadRequest>);

/// The request in a message.
#[derive(Debug)]
pub(super) enum Command {
    Completed(Box<CompletedTurnRequest>),
    Other(Request),
}

/// A completed turn whose parts are compared and cut.
#[derive(Debug)]
pub(super) struct CompletedTurnRequest {
    pub(super) session: String,
    pub(super) seq: Option<u64>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) body: TurnBody,
}

impl Message {
    /// Prepares a message. The time grows with the message.
    pub fn new(request: Result<Request, BadRequest>, settings: &Settings) -> Self {
        Self(request.map(|request| match request {
            Request::TurnCompleted(mut turn) => {
                Command::Completed(Box::new(CompletedTurnRequest {
                    body: TurnBody::take_from(&mut turn, settings.turn_bytes_max),
                    session: turn.session,
                    seq: turn.seq,
                    timestamp: turn.timestamp,
                }))
            }
            other => Command::Other(other),
        }))
    }
}
