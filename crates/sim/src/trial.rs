//! A run of random commands against a store, with the model kept beside it.
//!
//! After every step the store must be what the model is. Commands of unknown outcome are set aside:
//! the live store must not show them, and after a crash [`Trial::recover`] finds out which of them
//! took effect.

use std::sync::Arc;

use turnkeep_journal::Storage;
use turnkeep_store::{OpenError, Options, Store};
use turnkeep_types::{ManualClock, Timestamp};

use crate::check::{self, Violation};
use crate::generate::Generator;
use crate::linearize::{Known, Sent};
use crate::model::Model;
use crate::pilot::{run_alone, run_together};
use crate::random::Random;
use crate::snapshot::Snapshot;

/// See the module.
#[derive(Clone)]
pub struct Trial {
    /// What the store must be.
    pub model: Model,
    /// Everything that was answered so far.
    pub sent: Vec<Sent>,
    /// Commands whose outcome is not known.
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
    /// A run from a seed, with segments and checkpoints so small that it meets many of them.
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
    pub fn alone(&mut self, store: &Store) -> Result<(), Violation> {
        self.tick();
        let command = self.generator.command(&self.model);
        let sent = run_alone(store, command);
        self.record(store, vec![sent])
    }

    /// Sends several commands at once.
    pub fn together(&mut self, store: &Store, count: usize) -> Result<(), Violation> {
        self.tick();
        let commands = self.generator.commands(&self.model, count);
        let sent = run_together(store, commands);
        self.record(store, sent)
    }

    /// Sends every command again, whatever came of it: keys give their first answers, the rest is
    /// done as if it were new, and nothing is left unknown.
    pub fn repeat_all(&mut self, store: &Store) -> Result<(), Violation> {
        let unknown = std::mem::take(&mut self.unknown);
        let commands: Vec<_> = unknown
            .iter()
            .chain(&self.sent)
            .map(|sent| sent.command.clone())
            .collect();
        for command in commands {
            let sent = run_alone(store, command);
            self.record(store, vec![sent])?;
        }
        Ok(())
    }

    /// All checkers on a store that must be exactly what the model is. Returns what can be read.
    pub fn check(&self, store: &Store) -> Result<Snapshot, Violation> {
        let seen = self.read(store)?;
        check::replay_equals_live(&self.model.facts, &seen)?;
        check::stamps_never_fall(&seen, self.latest)?;
        check::acked_survives(store, &self.sent)?;
        check::heads_reachable(store)?;
        check::ids_dense_and_never_reused(store, &self.sent)?;
        Ok(seen)
    }

    /// This run with what it knew at an earlier moment, and everything sent since then of unknown
    /// outcome.
    #[must_use]
    pub fn back_at(&self, earlier: &Self, unknown: &[Sent]) -> Self {
        let unknown = unknown.iter().map(|sent| Sent {
            command: sent.command.clone(),
            known: Known::Unknown,
        });
        let (model, sent) = (earlier.model.clone(), earlier.sent.clone());
        Self {
            model,
            sent,
            unknown: unknown.collect(),
            ..self.clone()
        }
    }

    /// Finds out which of the commands of unknown outcome are in a store that was opened again.
    pub fn recover(&mut self, store: &Store) -> Result<Snapshot, Violation> {
        let seen = self.read(store)?;
        self.model = check::nothing_half_visible(&self.model, &self.unknown, &seen)?;
        self.check(store)
    }

    /// Reads all of a store.
    pub fn read(&self, store: &Store) -> Result<Snapshot, Violation> {
        Snapshot::of(store, &self.generator.hashes())
    }

    /// Moves the clock, mostly on and now and then back.
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
            .partition(|sent| matches!(sent.known, Known::Answered(_)));
        let seen = self.read(store)?;
        self.model = check::nothing_half_visible(&self.model, &answered, &seen)?;
        self.sent.extend(answered);
        self.unknown.extend(unknown);
        Ok(())
    }
}
