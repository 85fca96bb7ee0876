//! The store in process, without network: commands hashed and verified beforehand, in groups of 256.
//!
//! Twelve groups are kept in flight: while some are synced others are queued, so that the writer finds at
//! least one each time. The bare file writes groups of 256 and does nothing else.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use turnkeep_store::{Append, AppendPart, Command, CreateContext, NewBlob, NewTurn, Options, Outcome, Store};
use turnkeep_types::{ContextId, ManualClock, Timestamp, TypeRef};

use super::bare_file::{BareFile, GROUP};
use super::figures::{median, number};
use super::payload::Payloads;
use super::scratch::Scratch;
use super::table::Row;
use super::{Effort, progress};

/// Groups of one measurement at most: the commands are all in memory before the clock starts.
const GROUPS_MAX: usize = 1024;
/// Groups in flight: some are queued while others are written, or the writer and its source take turns.
const GROUPS_IN_FLIGHT: usize = 12;
/// The least share of the bare file's rate: within twice its time.
const LEAST: f64 = 0.5;

/// Measures the store against the bare file, round by round.
pub(super) fn measure(effort: &Effort, scratch: &Scratch) -> Result<Vec<Row>> {
    progress("engine in process");
    let mut file = BareFile::create(&scratch.folder("bare-file")?)?;
    let store = open(&scratch.folder("engine")?)?;
    let context = match store.run(Command::CreateContext(CreateContext::default()))? {
        Outcome::Created(created) => created.context,
        other => return Err(anyhow!("an unexpected outcome: {other:?}")),
    };
    let groups = if effort.quick { 4 } else { GROUPS_MAX };
    let (mut bares, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=effort.rounds {
        let bare = file.run(effort.payload, effort.millis / 2)?.0;
        let commands = prepare(context, round as u64, groups * GROUP, effort.payload)?;
        let rate = run(&store, commands)?;
        // The first round warms up.
        if round > 0 {
            bares.push(bare);
            ours.push(rate);
        }
    }
    let stats = store.stats();
    store.close();
    let ratio = median(ours.iter().zip(&bares).map(|(ours, bare)| ours / bare));
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
    let group = stats.commands as f64 / stats.groups.max(1) as f64;
    let name = format!("engine in process, groups of 256 (mean {group:.0})");
    let row = Row::plain_rate(&name, median(ours.into_iter()));
    Ok(vec![row.beside(median(bares.into_iter()), ratio).at_least_ratio(LEAST)])
}

fn open(folder: &Path) -> Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let storage = turnkeep_journal::FileStorage::new(folder);
    Store::open(Arc::new(storage), &Options::default(), clock).context("cannot open a store")
}

fn prepare(context: ContextId, seed: u64, count: usize, payload: usize) -> Result<VecDeque<Command>> {
    let mut payloads = Payloads::new(seed, payload);
    let declared = TypeRef::new("com.example.Bench", 1);
    let command = |_| {
        let mut bytes = Vec::with_capacity(payload);
        payloads.write(&mut bytes);
        let payload = NewBlob::from_raw(Bytes::from(bytes), payload)?;
        let turn = NewTurn { declared: declared.clone(), encoding: 1, payload, fs_root: None };
        let part = AppendPart { context, parent: None, expected_head: None, turns: vec![turn] };
        Ok(Command::Append(Append { parts: vec![part], key: None, strict: false }))
    };
    (0..count).map(command).collect()
}

/// Commands per second.
fn run(store: &Store, mut commands: VecDeque<Command>) -> Result<f64> {
    let total = commands.len();
    let replies = Arc::new(Replies::default());
    let begin = Instant::now();
    let mut submitted = 0;
    while submitted < total {
        for command in commands.drain(..GROUP.min(commands.len())) {
            let (replies, waiter) = (replies.clone(), std::thread::current());
            store.submit(command, move |reply| replies.count(reply.is_ok(), &waiter))?;
            submitted += 1;
        }
        replies.wait_for(submitted.saturating_sub((GROUPS_IN_FLIGHT - 1) * GROUP));
    }
    replies.wait_for(total);
    anyhow::ensure!(replies.refused.load(SeqCst) == 0, "the store refused an append");
    Ok(number(total) / begin.elapsed().as_secs_f64())
}

/// Counts replies, and wakes the one who waits for them once per wait, not once per reply.
#[derive(Default)]
struct Replies {
    done: AtomicUsize,
    refused: AtomicUsize,
    wanted: AtomicUsize,
}

impl Replies {
    fn count(&self, ok: bool, waiter: &Thread) {
        self.refused.fetch_add(usize::from(!ok), SeqCst);
        if self.done.fetch_add(1, SeqCst) + 1 == self.wanted.load(SeqCst) {
            waiter.unpark();
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
