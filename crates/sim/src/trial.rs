//! A run of random commands against a store and the model.
//!
//! After every step the store must equal the model. Commands with an unknown result are set aside:
//! the live store must not show them, and after a crash [`Trial::recover`] finds out which of them
//! took effect.

use std::sync::Arc;

use turnkeep_journal::Storage;
use turnkeep_store::{OpenError, Options, Store};
use turnkeep_types::{ManualClock, Timestamp};

use crate::check::{self, Violation};
use crate::generate::Generator;
use crate::linearize::{KnownResult, Sent};
use crate::model::Model;
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::submit::{submit_and_wait, submit_in_one_group};

/// The state of a run.
#[derive(Clone)]
pub struct Trial {
    /// The state that the store must have.
    pub model: Model,
    /// All commands with a reply so far.
    pub sent: Vec<Sent>,
    /// Commands with an unknown result.
    pub unknown: Vec<Sent>,
    /// How stores are opened.
    pub options: Options,
    generator: Generator,
    random: Random,
    clock: Arc<ManualClock>,
    now: Timestamp,
    /// The latest time that the clock showed.
    latest: Timestamp,
}

impl Trial {
    /// Starts a run. Its segments and checkpoints are small, so that it produces many of them.
    pub fn new(seed: u64) -> Self {
        let now = Timestamp(1_700_000_000_000);
        let mut random = [0; 32];
        random[..8].copy_from_slice(&seed.to_le_bytes());
        let options = Options {
            segment_bytes: 8 << 10,
            checkpoint_every_bytes: 3 << 10,
            random,
            ..Options::default()
        };
        Self {
            model: Model::new(),
            sent: Vec::new(),
            unknown: Vec::new(),
            options,
            generator: Generator::new(seed),
            // Another stream than the generator's, so that a change of one leaves the other alone.
            random: Random::new(!seed),
            clock: Arc::new(ManualClock::new(now)),
            now,
            latest: now,
        }
    }

    /// Opens a store on these files.
    pub fn open(&self, storage: Arc<dyn Storage>) -> Result<Store, OpenError> {
        Store::open(storage, &self.options, self.clock.clone())
    }

    /// Sends one command.
    pub fn send_one(&mut self, store: &Store) -> Result<(), Violation> {
        self.tick();
        let command = self.generator.command(&self.model);
        let sent = submit_and_wait(store, command);
        self.record(store, vec![sent])
    }

    /// Sends several commands at once.
    pub fn send_many(&mut self, store: &Store, count: usize) -> Result<(), Violation> {
        self.tick();
        let commands = self.generator.commands(&self.model, count);
        let sent = submit_in_one_group(store, commands);
        self.record(store, sent)
    }

    /// Sends every command again. Commands with a key get their first reply, the others take effect
    /// again, and no result stays unknown.
    pub fn repeat_all(&mut self, store: &Store) -> Result<(), Violation> {
        let unknown = std::mem::take(&mut self.unknown);
        let commands: Vec<_> = unknown
            .iter()
            .chain(&self.sent)
            .map(|sent| sent.command.clone())
            .collect();
        for command in commands {
            let sent = submit_and_wait(store, command);
            self.record(store, vec![sent])?;
        }
        Ok(())
    }

    /// Runs all checkers on a store that must equal the model. Returns the visible state.
    pub fn check(&self, store: &Store) -> Result<Snapshot, Violation> {
        let seen = self.read(store)?;
        check::replay_equals_live(&self.model.visible, &seen)?;
        check::stamps_never_fall(&seen, self.latest)?;
        check::acked_survives(store, &self.sent)?;
        check::heads_reachable(store)?;
        check::ids_dense_and_never_reused(store, &self.sent)?;
        Ok(seen)
    }

    /// Returns this run as it was at an earlier moment, with the commands since then as unknown.
    #[must_use]
    pub fn rewind_to(&self, earlier: &Self, unknown: &[Sent]) -> Self {
        let unknown = unknown.iter().map(|sent| Sent {
            command: sent.command.clone(),
            known: KnownResult::Unknown,
        });
        let (model, sent) = (earlier.model.clone(), earlier.sent.clone());
        Self {
            model,
            sent,
            unknown: unknown.collect(),
            ..self.clone()
        }
    }

    /// Finds out which commands with an unknown result took effect in a store that was opened
    /// again.
    pub fn recover(&mut self, store: &Store) -> Result<Snapshot, Violation> {
        let seen = self.read(store)?;
        self.model = check::nothing_half_visible(&self.model, &self.unknown, &seen)?;
        self.check(store)
    }

    /// Reads the visible state of a store.
    pub fn read(&self, store: &Store) -> Result<Snapshot, Violation> {
        Snapshot::read(store, &self.generator.hashes())
    }

    /// Moves the clock, mostly forward and sometimes back.
    fn tick(&mut self) {
        let step = self.random.below(40);
        self.now = Timestamp(if step < 5 {
            self.now.0 - 10 * step
        } else {
            self.now.0 + step
        });
        self.latest = self.latest.max(self.now);
        self.clock.set(self.now);
    }

    fn record(&mut self, store: &Store, sent: Vec<Sent>) -> Result<(), Violation> {
        let (answered, unknown): (Vec<Sent>, Vec<Sent>) = sent
            .into_iter()
            .partition(|sent| matches!(sent.known, KnownResult::Answered(_)));
        let seen = self.read(store)?;
        self.model = check::nothing_half_visible(&self.model, &answered, &seen)?;
        self.sent.extend(answered);
        self.unknown.extend(unknown);
        Ok(())
    }
}
