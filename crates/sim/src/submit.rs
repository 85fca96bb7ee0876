//! Submitting commands: one after the other, or all at once so that one group takes them.

use std::sync::mpsc::sync_channel;

use turnkeep_store::{Command, Refusal, Store};
use turnkeep_types::{BlobHash, TurnId};

use crate::linearize::Sent;

/// Submits a command and waits for its answer.
pub fn run_alone(store: &Store, command: Command) -> Sent {
    let answer = store.run(command.clone());
    Sent::new(command, answer)
}

/// Submits commands so that the writer finds them all waiting: it is held by a command that is
/// refused without a record until the last of them is queued. The groups are the same on every run.
pub fn run_together(store: &Store, commands: Vec<Command>) -> Vec<Sent> {
    let (open_gate, gate) = sync_channel::<()>(0);
    let nobody = TurnId::new(u64::MAX >> 8).expect("not zero");
    let hold = Command::AttachFs {
        turn: nobody,
        root: BlobHash([0; 32]),
    };
    // Should the store be closed, nothing is held, and every command below learns the same.
    let held = store.submit(hold, move |_| gate.into_iter().for_each(drop));
    let (answers, answered) = sync_channel(commands.len());
    for (at, command) in commands.iter().cloned().enumerate() {
        let answer = answers.clone();
        let sent = store.submit(command, move |outcome| drop(answer.send((at, outcome))));
        if sent.is_err() {
            drop(answers.send((at, Err(Refusal::Closed))));
        }
    }
    drop(answers);
    drop((held, open_gate));
    let mut sent: Vec<Option<Sent>> = vec![None; commands.len()];
    for (at, outcome) in answered {
        sent[at] = Some(Sent::new(commands[at].clone(), outcome));
    }
    let unanswered = |command| Sent {
        command,
        known: crate::linearize::Known::Unknown,
    };
    sent.into_iter()
        .zip(commands)
        .map(|(sent, command)| sent.unwrap_or_else(|| unanswered(command)))
        .collect()
}
