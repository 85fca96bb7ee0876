//! What the runs share: how many turns may be open, and which programs must wait.
//!
//! The limits hold for all runs together, but no lock spans two runs. A run reads what is free,
//! decides, and then reserves the turns that it starts. If another run was faster, the reservation
//! fails and the run decides again. [`RunLoad`] is what a run uses; each commit replaces it.
//!
//! Worked example, with room for one more turn: runs A and B both read "one free" and both decide to
//! start a turn. A reserves it. B's reservation fails; B reads "none free" and leaves its node
//! waiting. When A's turn ends, B's clock task is woken and B decides again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnkeep_runtime::LiveRun;
use turnkeep_runtime::decide::Capacity;
use turnkeep_runtime::ids::RunId;
use turnkeep_types::Timestamp;

/// The limits for all runs together.
#[derive(Debug, Clone)]
pub struct CapacityLimits {
    /// How many turns may be open at once.
    pub open_turns_max: u32,
    /// The same for single programs.
    pub program_turns_max: BTreeMap<String, u32>,
}

impl Default for CapacityLimits {
    fn default() -> Self {
        Self {
            open_turns_max: 8,
            program_turns_max: BTreeMap::new(),
        }
    }
}

/// What one run uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunLoad {
    /// Its open turns by program.
    open_turns: BTreeMap<String, u32>,
    /// Until when its programs asked to be left alone.
    parked: BTreeMap<String, Timestamp>,
}

impl RunLoad {
    /// What a run uses in this state.
    pub(crate) fn of(run: &LiveRun) -> Self {
        let mut load = Self::default();
        if run.is_deleted {
            return load;
        }
        for node in run.nodes() {
            let program = node.program();
            if node.turn.is_some() {
                *load.open_turns.entry(program.to_owned()).or_default() += 1;
            }
            if let Some(until) = node.retry_at {
                let latest = load.parked.entry(program.to_owned()).or_insert(until);
                *latest = until.max(*latest);
            }
        }
        load
    }

    fn open_turn_count(&self) -> u32 {
        self.open_turns.values().sum()
    }
}

/// What is free for one run, as values that a decision can borrow. By default nothing is free.
#[derive(Debug, Clone, Default)]
pub(crate) struct FreeCapacity {
    turns: u32,
    parked_programs: Vec<String>,
    full_programs: Vec<String>,
}

impl FreeCapacity {
    pub(crate) fn borrow(&self) -> Capacity<'_> {
        Capacity {
            turns: self.turns,
            parked_programs: &self.parked_programs,
            full_programs: &self.full_programs,
        }
    }
}

/// What all runs use.
#[derive(Debug)]
pub(crate) struct SharedCapacity {
    limits: CapacityLimits,
    loads: Mutex<HashMap<RunId, RunLoad>>,
    /// Changes when a run uses less than before, so that others may start turns.
    freed: watch::Sender<u64>,
}

impl SharedCapacity {
    pub(crate) fn new(limits: CapacityLimits) -> Self {
        Self {
            limits,
            loads: Mutex::default(),
            freed: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, RunLoad>> {
        self.loads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is free now.
    pub(crate) fn find_free(&self, now: Timestamp) -> FreeCapacity {
        let loads = self.lock();
        let open: u32 = loads.values().map(RunLoad::open_turn_count).sum();
        let is_full = |(program, max): (&String, &u32)| {
            let turns = loads
                .values()
                .filter_map(|load| load.open_turns.get(program));
            (turns.sum::<u32>() >= *max).then(|| program.clone())
        };
        let mut parked_programs: Vec<String> = loads
            .values()
            .flat_map(|load| &load.parked)
            .filter(|(_, until)| now < **until)
            .map(|(program, _)| program.clone())
            .collect();
        parked_programs.sort_unstable();
        parked_programs.dedup();
        FreeCapacity {
            turns: self.limits.open_turns_max.saturating_sub(open),
            parked_programs,
            full_programs: self
                .limits
                .program_turns_max
                .iter()
                .filter_map(is_full)
                .collect(),
        }
    }

    /// When the next program may be used again.
    pub(crate) fn next_unparking(&self, now: Timestamp) -> Option<Timestamp> {
        let loads = self.lock();
        let all = loads.values().flat_map(|load| load.parked.values());
        all.copied().filter(|until| now < *until).min()
    }

    /// Replaces the load of a run. Returns whether the limits allow it; if not, nothing changed.
    pub(crate) fn reserve(&self, run: RunId, load: RunLoad) -> bool {
        let mut loads = self.lock();
        let before = loads.get(&run).cloned().unwrap_or_default();
        if !self.allows(&loads, run, &before, &load) {
            return false;
        }
        let is_freed = replace_load(&mut loads, run, load);
        drop(loads);
        self.signal_if(is_freed);
        true
    }

    /// Replaces the load of a run, whatever the limits say: the run has these turns already.
    pub(crate) fn set_load(&self, run: RunId, load: RunLoad) {
        let is_freed = replace_load(&mut self.lock(), run, load);
        self.signal_if(is_freed);
    }

    fn signal_if(&self, is_freed: bool) {
        if is_freed {
            self.freed.send_modify(|count| *count += 1);
        }
    }

    /// A run that starts no turn is always allowed, also where a limit was lowered.
    fn allows(
        &self,
        loads: &HashMap<RunId, RunLoad>,
        run: RunId,
        before: &RunLoad,
        after: &RunLoad,
    ) -> bool {
        let of_others = |count: &dyn Fn(&RunLoad) -> u32| -> u32 {
            let others = loads.iter().filter(|(other, _)| **other != run);
            others.map(|(_, load)| count(load)).sum()
        };
        let fits = |count: &dyn Fn(&RunLoad) -> u32, max: u32| {
            count(after) <= count(before) || of_others(count) + count(after) <= max
        };
        let program_fits = |(program, max): (&String, &u32)| {
            fits(
                &|load| load.open_turns.get(program).copied().unwrap_or(0),
                *max,
            )
        };
        fits(&RunLoad::open_turn_count, self.limits.open_turns_max)
            && self.limits.program_turns_max.iter().all(program_fits)
    }

    /// Watches for turns that ended anywhere.
    pub(crate) fn subscribe_freed(&self) -> watch::Receiver<u64> {
        self.freed.subscribe()
    }
}

/// Returns whether others may start more than before: a turn ended, or a program may be used again.
fn replace_load(loads: &mut HashMap<RunId, RunLoad>, run: RunId, load: RunLoad) -> bool {
    let after = load.clone();
    let before = loads.insert(run, load).unwrap_or_default();
    before != after && after.open_turn_count() <= before.open_turn_count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_of(program: &str, turns: u32) -> RunLoad {
        RunLoad {
            open_turns: BTreeMap::from([(program.to_owned(), turns)]),
            parked: BTreeMap::new(),
        }
    }

    fn run(number: u8) -> RunId {
        let text = format!("0b5f1c9e-8a3d-4c55-9a67-0123456789{number:02x}");
        text.parse().unwrap()
    }

    #[test]
    fn a_limit_holds_for_all_runs_together() {
        let limits = CapacityLimits {
            open_turns_max: 3,
            program_turns_max: BTreeMap::from([("codex".to_owned(), 1)]),
        };
        let capacity = SharedCapacity::new(limits);
        let check = |of: u8, program: &str, turns: u32, expect: bool| {
            let reserved = capacity.reserve(run(of), load_of(program, turns));
            assert_eq!(reserved, expect, "{of} {program} {turns}");
        };
        check(1, "codex", 1, true);
        check(2, "codex", 1, false);
        check(2, "claude", 2, true);
        check(3, "claude", 1, false);
        // Who uses less than before is always allowed.
        check(2, "claude", 1, true);
        check(3, "claude", 1, true);
        let free = capacity.find_free(Timestamp(0));
        assert_eq!(free.borrow().turns, 0);
        assert_eq!(free.borrow().full_programs, ["codex"]);
    }

    #[test]
    fn a_load_that_must_be_restored_is_restored_over_the_limit() {
        let capacity = SharedCapacity::new(CapacityLimits {
            open_turns_max: 1,
            ..CapacityLimits::default()
        });
        let mut freed = capacity.subscribe_freed();
        assert!(capacity.reserve(run(1), load_of("claude", 1)));
        capacity.set_load(run(2), load_of("claude", 1));
        assert!(!freed.has_changed().unwrap(), "nothing became free");
        capacity.set_load(run(1), RunLoad::default());
        assert!(freed.has_changed().unwrap());
        freed.borrow_and_update();
        assert_eq!(capacity.find_free(Timestamp(0)).borrow().turns, 0);
    }
}
