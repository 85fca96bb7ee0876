//! The store in process, without network: commands hashed and verified beforehand, in groups of
//! 256.
//!
//! Store and bare file take turns at slices of a few groups, each just made, as a server would hand
//! them over. Both write into space that was filled with zeros before the clock starts, and neither
//! comes to its end. How the store fares when it must find that space as it goes is measured beside
//! it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, NewBlob, NewTurn, Options, Outcome, Store,
};
use turnkeep_types::{ContextId, ManualClock, Timestamp, TypeRef};

use super::bare_file::BareFile;
use super::figures::{Round, Rounds, count_f64, number_f64};
use super::payload::Payloads;
use super::scratch::ScratchDir;
use super::table::Row;
use super::{Effort, report_progress};

/// Commands in one group.
const GROUP: usize = 256;
/// Commands that are made, then written: sixteen groups.
const SLICE: usize = 16 * GROUP;
/// Slices in one round.
const SLICES: usize = 8;
/// Slices in the measurement without space laid out beforehand.
const SLICES_SUSTAINED: usize = 64;
/// What the log adds to a payload, generously.
const OVERHEAD_BYTES: usize = 160;
/// The least share of the bare file's rate: within twice its time.
const LEAST: f64 = 0.5;

/// Measures the store against the bare file, slice by slice.
pub(super) fn measure_engine(effort: &Effort, scratch: &ScratchDir) -> Result<Vec<Row>> {
    report_progress("engine in process");
    let slices = effort.quick_or(1, SLICES);
    // One round more than is measured, for the one that warms up.
    let commands = (effort.rounds + 1) * slices * SLICE;
    let volume = (commands * (effort.payload + OVERHEAD_BYTES)) as u64;
    let mut file = BareFile::create(&scratch.create_folder("bare-file")?, volume)?;
    // The next segment is laid out when a quarter of one is full: not within this measurement.
    let folder = scratch.create_folder("engine")?;
    let mut engine = Engine::open(&folder, volume * 4, effort.payload)?;
    // Warms both up; its rates are not kept.
    run_round(&mut file, &mut engine, slices)?;
    let mut rounds = Rounds::default();
    for _ in 0..effort.rounds {
        rounds.push(run_round(&mut file, &mut engine, slices)?);
    }
    let group = engine.close();
    let name = format!("engine in process, groups of 256 (mean {group:.0})");
    let row = Row::plain_rate(&name, rounds.ours())
        .with_bare_and_ratio(rounds.bare(), rounds.ratio())
        .at_least_ratio(LEAST);
    Ok(vec![row, measure_sustained(effort, scratch)?])
}

/// Lets the bare file and the store write one slice after the other, in turns. Returns the commands
/// per second of both.
fn run_round(file: &mut BareFile, engine: &mut Engine, slices: usize) -> Result<Round> {
    let (mut bare, mut store) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..slices {
        bare += write_slice(file, &mut engine.payloads)?;
        store += engine.time_appends(SLICE)?;
    }
    let commands = count_f64(slices * SLICE);
    Ok(Round {
        bare: commands / bare.as_secs_f64(),
        ours: commands / store.as_secs_f64(),
    })
}

/// The same with segments as they are in use, without a pause.
fn measure_sustained(effort: &Effort, scratch: &ScratchDir) -> Result<Row> {
    let segment = Options::default().segment_bytes;
    let folder = scratch.create_folder("engine-sustained")?;
    let mut engine = Engine::open(&folder, segment, effort.payload)?;
    let commands = effort.quick_or(1, SLICES_SUSTAINED) * SLICE;
    let took = engine.time_appends(commands)?;
    engine.close();
    let rate = count_f64(commands) / took.as_secs_f64();
    Ok(Row::plain_rate("engine in process, sustained", rate))
}

/// The time of the writes and syncs of one slice in groups.
fn write_slice(file: &mut BareFile, payloads: &mut Payloads) -> Result<Duration> {
    let mut groups = vec![Vec::new(); SLICE / GROUP];
    for group in &mut groups {
        (0..GROUP).for_each(|_| payloads.write_next(group));
    }
    let begin = Instant::now();
    for group in &groups {
        file.write_synced(group)?;
    }
    Ok(begin.elapsed())
}

/// A store, a context in it, and what is appended to that.
struct Engine {
    store: Store,
    context: ContextId,
    payloads: Payloads,
    payload: usize,
}

impl Engine {
    fn open(folder: &Path, segment_bytes: u64, payload: usize) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(Timestamp(1)));
        let storage = Arc::new(turnkeep_journal::FileStorage::new(folder));
        let options = Options {
            segment_bytes,
            group_commands_max: GROUP,
            ..Options::default()
        };
        let store = Store::open(storage, &options, clock).context("cannot open a store")?;
        let context = match store.run(Command::CreateContext(CreateContext::default()))? {
            Outcome::Created(created) => created.context,
            other => return Err(anyhow!("an unexpected outcome: {other:?}")),
        };
        Ok(Self {
            store,
            context,
            payloads: Payloads::new(1, payload),
            payload,
        })
    }

    /// The time that so many commands take, all made before it starts.
    fn time_appends(&mut self, count: usize) -> Result<Duration> {
        let replies = Arc::new(Replies::new());
        let mut commands = Vec::with_capacity(count);
        for _ in 0..count {
            commands.push((self.append_command()?, Arc::clone(&replies)));
        }
        let begin = Instant::now();
        for (submitted, (command, replies)) in commands.into_iter().enumerate() {
            // At most a slice is in flight: the writer always has a full group, and memory stays
            // bounded.
            if submitted % GROUP == 0 {
                replies.wait_for(submitted.saturating_sub(SLICE - GROUP));
            }
            self.store
                .submit(command, move |reply| replies.count_reply(reply.is_ok()))?;
        }
        replies.wait_for(count);
        let took = begin.elapsed();
        ensure!(
            replies.refused.load(SeqCst) == 0,
            "the store refused an append"
        );
        Ok(took)
    }

    fn append_command(&mut self) -> Result<Command> {
        let mut bytes = Vec::with_capacity(self.payload);
        self.payloads.write_next(&mut bytes);
        let turn = NewTurn {
            declared: TypeRef::new("com.example.Bench", 1),
            encoding: 1,
            payload: NewBlob::from_raw(Bytes::from(bytes), self.payload)?,
            fs_root: None,
        };
        let part = AppendPart {
            context: self.context,
            parent: None,
            expected_head: None,
            turns: vec![turn],
        };
        Ok(Command::Append(Append {
            parts: vec![part],
            key: None,
            strict: false,
        }))
    }

    /// Closes the store; the mean group that it wrote.
    fn close(self) -> f64 {
        let stats = self.store.stats();
        self.store.close();
        number_f64(stats.commands) / number_f64(stats.groups.max(1))
    }
}

/// Counts replies, and wakes the one who waits for them once per wait, not once per reply.
struct Replies {
    waiter: Thread,
    done: AtomicUsize,
    refused: AtomicUsize,
    wanted: AtomicUsize,
}

impl Replies {
    /// For the thread that calls this to wait.
    fn new() -> Self {
        Self {
            waiter: std::thread::current(),
            done: 0.into(),
            refused: 0.into(),
            wanted: 0.into(),
        }
    }

    fn count_reply(&self, ok: bool) {
        if !ok {
            self.refused.fetch_add(1, SeqCst);
        }
        // One wake-up per wait. One per reply would measure the scheduler.
        if self.done.fetch_add(1, SeqCst) + 1 == self.wanted.load(SeqCst) {
            self.waiter.unpark();
        }
    }

    fn wait_for(&self, wanted: usize) {
        self.wanted.store(wanted, SeqCst);
        while self.done.load(SeqCst) < wanted {
            // The time-out is for a reply that comes between the look and the park.
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}
