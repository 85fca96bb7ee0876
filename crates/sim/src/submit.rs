//! Submits commands: one after the other, or all at once so that they form one group.

use std::sync::mpsc::{Receiver, sync_channel};

use turnkeep_store::{Command, Outcome, Refusal, Store};
use turnkeep_types::{BlobHash, TurnId};

use crate::linearize::Sent;

/// Submits a command and waits for its reply.
pub fn submit_and_wait(store: &Store, command: Command) -> Sent {
    let answer = store.run(command.clone());
    Sent::new(command, answer)
}

/// Submits commands so that the writer finds all of them in its queue. A first command, which is
/// rejected without a log record, blocks the writer in its reply until the last command is queued.
/// So the groups are the same in every run.
pub fn submit_in_one_group(store: &Store, commands: Vec<Command>) -> Vec<Sent> {
    let (open_gate, gate) = sync_channel::<()>(0);
    let unknown_turn = TurnId::new(u64::MAX >> 8).expect("not zero");
    let hold = Command::AttachFs {
        turn: unknown_turn,
        root: BlobHash([0; 32]),
    };
    // The reply waits until `open_gate` is dropped.
    // If the store is closed, nothing blocks, and every command below is rejected as well.
    let held = store.submit(hold, move |_| gate.into_iter().for_each(drop));
    let (answers, answered) = sync_channel(commands.len());
    for (at, command) in commands.iter().cloned().enumerate() {
        let answer = answers.clone();
        let sent = store.submit(command, move |outcome| match answer.send((at, outcome)) {
            Ok(()) | Err(_) => {}
        });
        if sent.is_err() {
            match answers.send((at, Err(Refusal::Closed))) {
                Ok(()) | Err(_) => {}
            }
        }
    }
    // The loop over the answers ends when the last sender is gone.
    drop(answers);
    drop((held, open_gate));
    match_answers(commands, answered)
}

/// The place of a command in the group, and its answer.
type PlacedAnswer = (usize, Result<Outcome, Refusal>);

/// Gives each command its answer. A command whose reply was dropped without a call has none, and its
/// result stays unknown.
fn match_answers(commands: Vec<Command>, answered: Receiver<PlacedAnswer>) -> Vec<Sent> {
    let mut sent: Vec<Option<Sent>> = vec![None; commands.len()];
    for (at, outcome) in answered {
        sent[at] = Some(Sent::new(commands[at].clone(), outcome));
    }
    let mut results = Vec::with_capacity(commands.len());
    for (sent, command) in sent.into_iter().zip(commands) {
        results.push(sent.unwrap_or(Sent {
            command,
            known: crate::linearize::KnownResult::Unknown,
        }));
    }
    results
}
