//! A fork: a new run that shares the events of another one up to a number.
//!
//! ```text
//! events of the origin   1 2 3 | 4 5 | 6 7 8 |        decisions end at 3, 5 and 8
//! fork at 7              1 2 3 | 4 5 | own events     the last decision that ends by 7 ends at 5
//! ```
//!
//! A decision is one batch: half of one would be a state that never was. So the number is rounded
//! down to the end of a decision. Events of one decision have the same time, so two decisions in one
//! millisecond count as one.

use std::collections::HashSet;
use std::sync::Arc;

use turnkeep_runtime::decide::{CopyOrigin, KeptByCopy, RunCopy};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{IdSource, NodeId, RunId};
use turnkeep_store::Store;
use turnkeep_types::TurnId;
use turnkeep_wire::transcript::decode_item;

use super::ArchiveError;
use super::new_copy::NewCopy;
use super::run_cut::{RunCut, TranscriptCut};
use super::transcript_lines::origin_of;
use crate::runs::run_log;
use crate::runs::{RunHandle, Runs};

/// How many events or turns are read at once.
const PAGE: usize = 256;
/// The longest title that a fork gets from its origin, in characters.
const TITLE_CHARACTERS_MAX: usize = 80;

/// What a caller wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForkRequest {
    /// The last event to share; all of them unless given.
    pub(crate) seq: Option<u64>,
    pub(crate) title: Option<String>,
    pub(crate) key: Option<RequestKey>,
}

/// Forks a run, even if the caller disconnects. A repeated request returns the fork of the first one.
pub(crate) async fn fork_run(
    runs: &Arc<Runs>,
    origin: Arc<RunHandle>,
    request: ForkRequest,
) -> Result<Arc<RunHandle>, ArchiveError> {
    let all = Arc::clone(runs);
    let work = async move { fork_to_end(&all, &origin, request).await };
    runs.services.run_to_end(work).await?
}

async fn fork_to_end(
    runs: &Runs,
    origin: &RunHandle,
    request: ForkRequest,
) -> Result<Arc<RunHandle>, ArchiveError> {
    let _creating = runs.creating.lock().await;
    if let Some(earlier) = runs.find_created(request.key.as_ref())? {
        return Ok(earlier);
    }
    let services = Arc::clone(&runs.services);
    let cut = RunCut::take(origin).await?;
    let seq = request.seq.unwrap_or(cut.last_seq);
    let id: RunId = IdSource::draw(&mut services.new_ids());
    let fork = move || {
        let plan = plan_fork(services.store.store(), &cut, seq)?;
        let mut copy = NewCopy::begin(&services, id, Some(plan.base))?;
        for transcript in plan.transcripts {
            copy.add_transcript(&services, transcript.node, Some(transcript.base))?;
        }
        Ok::<_, ArchiveError>(copy)
    };
    let copy = runs.services.run_blocking(fork).await??;
    let title = request.title.unwrap_or_else(|| title_of_fork(origin));
    let settled = origin.read_live(|run| RunCopy {
        origin: CopyOrigin::Fork,
        title: Some(title),
        // An earlier event may name a directory of the machine that the run was imported from.
        cwd: run.settings.cwd.clone(),
        keeps: KeptByCopy::all_of(run),
    });
    copy.publish(runs, settled, request.key).await
}

fn title_of_fork(origin: &RunHandle) -> String {
    const SUFFIX: &str = " (fork)";
    let title = origin.read_live(|run| run.settings.title.clone());
    let title = title.trim_end_matches(SUFFIX).chars();
    let kept: String = title.take(TITLE_CHARACTERS_MAX - SUFFIX.len()).collect();
    format!("{kept}{SUFFIX}")
}

/// Where the contexts of a fork begin.
struct ForkPlan {
    base: TurnId,
    transcripts: Vec<TranscriptBase>,
}

/// Where the transcript of a node begins in a fork.
struct TranscriptBase {
    node: NodeId,
    base: TurnId,
}

fn plan_fork(store: &Store, cut: &RunCut, seq: u64) -> Result<ForkPlan, ArchiveError> {
    if seq > cut.last_seq {
        let last = cut.last_seq;
        return Err(ArchiveError::SeqBeyondEnd { seq, last });
    }
    let end = find_decision_end(store, cut, seq)?;
    let end = end.ok_or(ArchiveError::SeqBeforeStart { seq })?;
    // The first event is the turn at depth 0.
    let depth = u32::try_from(end - 1).unwrap_or(u32::MAX);
    let last = store.range(cut.events, depth, 1)?;
    let base = last.first().map(|turn| turn.id);
    let base = base.ok_or(ArchiveError::SeqBeforeStart { seq })?;
    let shared = SharedEvents::read(store, cut, end)?;
    let mut transcripts = Vec::new();
    for transcript in &cut.transcripts {
        let found = shared.find_base(store, transcript)?;
        transcripts.extend(found.map(|base| TranscriptBase {
            node: transcript.node,
            base,
        }));
    }
    Ok(ForkPlan { base, transcripts })
}

/// The last event up to `seq` that ends a decision.
fn find_decision_end(store: &Store, cut: &RunCut, seq: u64) -> Result<Option<u64>, ArchiveError> {
    let time_of = |seq: u64| {
        let event = run_log::read_events(store, cut.events, seq, 1)?;
        Ok::<_, ArchiveError>(event.first().map(|event| event.at))
    };
    // Backwards, until an event has another time than the one behind it: there a decision ends.
    let mut seq = seq;
    let mut after = if seq < cut.last_seq {
        time_of(seq + 1)?
    } else {
        None
    };
    while seq > 0 {
        let here = time_of(seq)?;
        if here != after {
            return Ok(Some(seq));
        }
        after = here;
        seq -= 1;
    }
    Ok(None)
}

/// The events that a fork shares with its origin.
enum SharedEvents {
    /// All of them, and so all of the transcripts.
    All,
    /// Those with these ids.
    Some(HashSet<String>),
}

impl SharedEvents {
    fn read(store: &Store, cut: &RunCut, end: u64) -> Result<Self, ArchiveError> {
        if end == cut.last_seq {
            return Ok(Self::All);
        }
        let mut ids = HashSet::new();
        let mut seq = 1;
        while seq <= end {
            let events = run_log::read_events(store, cut.events, seq, PAGE)?;
            let Some(last) = events.last() else {
                break;
            };
            seq = last.seq + 1;
            let shared = events.iter().filter(|event| event.seq <= end);
            ids.extend(shared.map(|event| event.id.to_string()));
        }
        Ok(Self::Some(ids))
    }

    /// The last turn of a transcript that a shared event wrote.
    fn find_base(
        &self,
        store: &Store,
        transcript: &TranscriptCut,
    ) -> Result<Option<TurnId>, ArchiveError> {
        let Self::Some(ids) = self else {
            return Ok(Some(transcript.head));
        };
        let mut page = store.up_to(transcript.head, PAGE)?;
        // From the end: what a fork leaves out is there.
        while let Some(first) = page.first().map(|turn| turn.id) {
            for turn in page.iter().rev() {
                let payload = store.payload(turn)?;
                let item = decode_item(&turn.declared, &payload.raw()?).ok();
                let origin = item.as_ref().and_then(|item| origin_of(item).id.as_ref());
                if origin.is_some_and(|id| ids.contains(id)) {
                    return Ok(Some(turn.id));
                }
            }
            page = store.before(first, PAGE)?;
        }
        Ok(None)
    }
}
