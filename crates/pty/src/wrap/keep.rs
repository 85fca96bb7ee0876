//! The outlet to the turn store: a thread that keeps every completed turn, in order.
//!
//! How a turn is kept is the caller's to say, because the way to a store is. A store that is slow or gone
//! costs turns, never time: what does not fit in the queue is counted and told at the end.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnkeep_types::broker::{CompletedTurn, FoundTurn, StateChange, TurnInfo};

use super::capture::Outlet;

/// Turns that may wait for the store.
const QUEUE_TURNS_MAX: usize = 256;
/// How long the wrapper's end waits for the store.
const END_PAUSE: Duration = Duration::from_secs(3);

/// What went wrong, to be told when the program has ended.
#[derive(Debug, Clone, Default)]
pub struct Troubles(Arc<Mutex<Vec<String>>>);

impl Troubles {
    fn add(&self, trouble: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }

    /// Everything that went wrong so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The outlet.
#[derive(Debug)]
pub struct Keep {
    label: Label,
    queue: Option<SyncSender<FoundTurn>>,
    done: Receiver<()>,
    lost: usize,
    troubles: Troubles,
}

/// What the session is called.
#[derive(Debug, Clone, Default)]
pub struct Label {
    /// The person's name for it.
    pub name: Option<String>,
    /// Its profile.
    pub preset: Option<String>,
}

impl Keep {
    /// Starts the thread. `keep` may wait; it is called once per turn.
    pub fn start(
        label: Label,
        mut keep: impl FnMut(&FoundTurn) -> Result<(), String> + Send + 'static,
    ) -> io::Result<(Self, Troubles)> {
        let (queue, turns) = sync_channel::<FoundTurn>(QUEUE_TURNS_MAX);
        let (tell, done) = sync_channel(1);
        let troubles = Troubles::default();
        let heard = troubles.clone();
        let body = move || {
            for turn in turns {
                if let Err(why) = keep(&turn) {
                    heard.add(format!("turn {} is not kept: {why}", turn.info.turn_id));
                }
            }
            tell.send(()).ok();
        };
        std::thread::Builder::new().name("keep".to_owned()).spawn(body)?;
        Ok((Self { label, queue: Some(queue), done, lost: 0, troubles: troubles.clone() }, troubles))
    }

    fn found(&self, turn: &CompletedTurn) -> FoundTurn {
        let info = TurnInfo {
            turn_id: format!("{}:{}", turn.session, turn.seq.unwrap_or_default()),
            timestamp: turn.timestamp.unwrap_or_default(),
            byte_length: u32::try_from(turn.content.len()).unwrap_or(u32::MAX),
            interrupted: turn.interrupted,
            truncated: turn.truncated,
            incomplete: turn.incomplete,
        };
        FoundTurn {
            info,
            session: turn.session.clone(),
            name: self.label.name.clone(),
            preset: self.label.preset.clone(),
            content: turn.content.clone(),
            text: turn.text.clone(),
            text_source: turn.text_source.clone(),
            raw: turn.raw.clone(),
            raw_truncated: turn.raw_truncated,
        }
    }
}

impl Outlet for Keep {
    fn start(&mut self, _child: u32) {}

    fn state(&mut self, _change: &StateChange) {}

    fn turn(&mut self, turn: &CompletedTurn) {
        let found = self.found(turn);
        let is_taken = self.queue.as_ref().is_some_and(|queue| queue.try_send(found).is_ok());
        self.lost += usize::from(!is_taken);
    }

    fn end(&mut self) {
        self.queue = None;
        if self.done.recv_timeout(END_PAUSE).is_err() {
            self.troubles.add("the store did not take every turn in time".to_owned());
        }
        if self.lost > 0 {
            self.troubles.add(format!("{} turns are not kept: the store is too slow", self.lost));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_kept_in_order_and_what_fails_is_told() {
        let (tell, kept) = sync_channel(8);
        let (mut keep, troubles) = Keep::start(Label::default(), move |turn| {
            tell.send(turn.info.turn_id.clone()).map_err(|error| error.to_string())?;
            if turn.info.turn_id == "s:2" { Err("disk full".to_owned()) } else { Ok(()) }
        })
        .unwrap();
        for seq in 1..=3 {
            keep.turn(&CompletedTurn { session: "s".to_owned(), seq: Some(seq), ..CompletedTurn::default() });
        }
        keep.end();
        assert_eq!(kept.iter().collect::<Vec<_>>(), ["s:1", "s:2", "s:3"]);
        assert_eq!(troubles.take(), ["turn s:2 is not kept: disk full"]);
    }
}
