//! The store in process, without network: commands hashed and verified beforehand, in groups of 256.
//!
//! Two groups are kept in flight: while one is synced the other is queued, so that the writer finds a
//! full group each time. The bare file writes as much per sync and does nothing else.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

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
    let (sender, replies) = sync_channel(2 * GROUP);
    let begin = Instant::now();
    let mut waiting = 0;
    while waiting > 0 || !commands.is_empty() {
        while waiting + GROUP <= 2 * GROUP && !commands.is_empty() {
            for command in commands.drain(..GROUP.min(commands.len())) {
                let sender = sender.clone();
                store.submit(command, move |reply| answer(&sender, reply.is_ok()))?;
                waiting += 1;
            }
        }
        waiting -= take(&replies, GROUP.min(waiting))?;
    }
    Ok(number(total) / begin.elapsed().as_secs_f64())
}

/// The channel has room for all replies that can be outstanding.
fn answer(sender: &SyncSender<bool>, ok: bool) {
    if sender.try_send(ok).is_err() {
        progress("a reply came after the end");
    }
}

fn take(replies: &Receiver<bool>, count: usize) -> Result<usize> {
    for _ in 0..count {
        anyhow::ensure!(replies.recv()?, "the store refused an append");
    }
    Ok(count)
}
