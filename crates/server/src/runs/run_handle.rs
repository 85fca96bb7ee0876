//! One run: its state for readers, and the only way to change it.
//!
//! [`RunHandle::decide`] is that way. It takes the right to write, lets the runtime decide from the
//! state, reserves the turns that the decision starts, appends the events, applies them, and passes
//! the effects on to the run's performer. So an effect is carried out only after the events that
//! announce it are durable, and effects are carried out in the order of the events.
//!
//! A decision is made again when another writer moved the head, or when another run took the last
//! free turn meanwhile. It is a function of the state, so making it twice does no harm. After a few
//! such tries it is made as if nothing were free, so that it always ends.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use turnkeep_runtime::decide::{Decision, Surroundings};
use turnkeep_runtime::effect::Effect;
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{IdSource, NodeId, RunId};
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::request::{KeyUse, KeyedRequest, MadeId};
use turnkeep_runtime::waits::explain;
use turnkeep_runtime::{Event, LiveRun, Run, record};
use turnkeep_store::{Command, NewBlob, Outcome};
use turnkeep_types::{BlobHash, ContextId};
use turnkeep_wire::runs as wire;

use super::backlog::{Backlog, BacklogMeter};
use super::capacity::{FreeCapacity, RunLoad};
use super::error::RunError;
use super::json::ConnectionViews;
use super::programs::{ProgramConnections, RecordedCalls};
use super::run_log::{self, RunLog};
use super::services::{RunNotice, RunServices};
use super::waiting_calls::WaitingCalls;
use crate::durable_state::{AppendResult, DurableState, WriteGuard};

/// The largest content of an artifact.
const ARTIFACT_BYTES_MAX: usize = 64 << 20;

/// How many effects may wait for the performer.
const EFFECTS_MAX: usize = 1024;

/// How often a decision is made again because another run was faster.
const RESERVE_TRIES_MAX: u32 = 4;

/// A run in memory with its log.
pub(crate) struct RunHandle {
    id: RunId,
    /// The context of the events. It never changes, so readers need no lock for it.
    events: ContextId,
    durable: DurableState<RunLog>,
    /// The number of the last event. Subscribers read the events themselves.
    last_seq: watch::Sender<u64>,
    effects: mpsc::Sender<Effect>,
    backlog: BacklogMeter,
    /// Calls of agents that wait for a person or for a verification.
    pub(super) waiting_calls: WaitingCalls,
    /// Calls of agents that the server has recorded in open turns.
    pub(super) recorded_calls: RecordedCalls,
    /// The processes of the nodes.
    pub(super) connections: ProgramConnections,
    pub(super) services: Arc<RunServices>,
}

/// A handle of a run together with the effects that its performer must carry out.
pub(super) struct NewRunHandle {
    pub(super) handle: Arc<RunHandle>,
    pub(super) effects: mpsc::Receiver<Effect>,
}

/// What became of a request that may have been made before.
#[derive(Debug)]
pub(crate) enum Decided<T> {
    /// It was carried out now.
    Now(T),
    /// It was carried out before, beginning with this event.
    Before {
        /// The number of the first event that it caused.
        seq: u64,
        /// What it made.
        made: Option<MadeId>,
    },
}

/// What a decision may take.
#[derive(Debug, Clone, Copy)]
enum Offer {
    /// The turns and programs that no run uses now.
    WhatIsFree,
    /// Nothing: it starts no turn.
    Nothing,
}

/// What became of a decision.
enum CarriedOut<T> {
    /// It is durable.
    Done(T),
    /// Another run took the last free turn meanwhile.
    NothingFree,
    /// Another writer was faster. Its events are applied.
    HeadMoved,
}

impl<T> Decided<T> {
    /// The answer of a request that has no key, so it was not made before.
    pub(crate) fn into_answer(self) -> Option<T> {
        match self {
            Self::Now(answer) => Some(answer),
            Self::Before { .. } => None,
        }
    }
}

impl RunHandle {
    /// Makes the handle of a loaded or new run.
    pub(super) fn make(run: Run, log: RunLog, services: Arc<RunServices>) -> NewRunHandle {
        let (effects, receiver) = mpsc::channel(EFFECTS_MAX);
        let handle = Arc::new(Self {
            id: run.live.id,
            events: log.events(),
            last_seq: watch::Sender::new(run.live.last_seq),
            durable: DurableState::new(run, Some(log)),
            effects,
            backlog: BacklogMeter::default(),
            waiting_calls: WaitingCalls::default(),
            recorded_calls: RecordedCalls::default(),
            connections: ProgramConnections::default(),
            services,
        });
        NewRunHandle {
            handle,
            effects: receiver,
        }
    }

    pub(crate) fn id(&self) -> RunId {
        self.id
    }

    /// Reads the run briefly.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Run) -> T) -> T {
        self.durable.read(look)
    }

    /// Reads the part of the run that decisions read.
    pub(crate) fn read_live<T>(&self, look: impl FnOnce(&LiveRun) -> T) -> T {
        self.durable.read(|run| look(&run.live))
    }

    /// The processes of the nodes, which no event records.
    pub(crate) fn connection_views(&self) -> ConnectionViews {
        self.connections.views()
    }

    /// The process of a node, if it has had one.
    pub(crate) fn connection_view(&self, node: NodeId) -> Option<wire::ConnectionView> {
        self.connections.view(node)
    }

    /// The number of the last event, and a notification at every commit.
    pub(crate) fn subscribe_seq(&self) -> watch::Receiver<u64> {
        self.last_seq.subscribe()
    }

    /// The transcript of a node, if it has one yet.
    pub(crate) async fn transcript(&self, node: NodeId) -> Option<ContextId> {
        let guard = self.durable.lock_for_writing().await;
        guard.0.as_ref().and_then(|log| log.transcript(node))
    }

    /// Reads the log of the run. Nothing is appended meanwhile.
    pub(super) async fn read_log<T>(&self, look: impl FnOnce(&RunLog) -> T) -> Option<T> {
        let guard = self.durable.lock_for_writing().await;
        guard.0.as_ref().map(look)
    }

    /// Makes a decision that cannot be repeated by its caller.
    pub(crate) async fn decide<T: Send + 'static>(
        self: &Arc<Self>,
        decide: impl Fn(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection> + Send + 'static,
    ) -> Result<T, RunError> {
        let decided = self.decide_once(None, decide).await?;
        decided
            .into_answer()
            .ok_or_else(|| RunError::Abandoned("a request without a key was repeated".to_owned()))
    }

    /// Makes a decision, unless a request with the same key was made before. It is carried out even
    /// if the caller disconnects.
    pub(crate) async fn decide_once<T: Send + 'static>(
        self: &Arc<Self>,
        key: Option<RequestKey>,
        decide: impl Fn(&Run, Surroundings<'_>) -> Result<Decision<T>, Rejection> + Send + 'static,
    ) -> Result<Decided<T>, RunError> {
        let decide =
            move |run: &Run, around: Surroundings<'_>| decide(run, around).map_err(RunError::from);
        self.decide_request(key, decide).await
    }

    /// Like [`Self::decide_once`], for a request that is read against the state that it changes, so
    /// that it may be rejected for its body too.
    pub(crate) async fn decide_request<T: Send + 'static>(
        self: &Arc<Self>,
        key: Option<RequestKey>,
        decide: impl Fn(&Run, Surroundings<'_>) -> Result<Decision<T>, RunError> + Send + 'static,
    ) -> Result<Decided<T>, RunError> {
        let handle = Arc::clone(self);
        let work = async move {
            // Looked up under the lock: of two requests with one key, only one may find it unused.
            let mut guard = handle.durable.lock_for_writing().await;
            if let Some(earlier) = handle.find_earlier(key.as_ref())? {
                let KeyedRequest { seq, made, .. } = earlier;
                return Ok(Decided::Before { seq, made });
            }
            let answer = handle.decide_until_done(&mut guard, key, decide).await?;
            Ok(Decided::Now(answer))
        };
        self.services.run_to_end(work).await?
    }

    async fn decide_until_done<T>(
        self: &Arc<Self>,
        guard: &mut WriteGuard<'_, RunLog>,
        key: Option<RequestKey>,
        decide: impl Fn(&Run, Surroundings<'_>) -> Result<Decision<T>, RunError> + Send,
    ) -> Result<T, RunError> {
        let mut tries = 0;
        loop {
            let offer = if tries < RESERVE_TRIES_MAX {
                Offer::WhatIsFree
            } else {
                Offer::Nothing
            };
            let decision = self.make_decision(key.clone(), offer, &decide)?;
            match self.carry_out(guard, decision, offer).await? {
                CarriedOut::Done(answer) => return Ok(answer),
                CarriedOut::NothingFree => tries += 1,
                CarriedOut::HeadMoved => {}
            }
        }
    }

    /// The same request, if it was carried out before.
    pub(super) fn find_earlier(
        &self,
        key: Option<&RequestKey>,
    ) -> Result<Option<KeyedRequest>, RunError> {
        let Some(key) = key else {
            return Ok(None);
        };
        match self.read(|run| run.archive.find_request(key)) {
            KeyUse::New => Ok(None),
            KeyUse::Repeated(earlier) => Ok(Some(earlier)),
            KeyUse::Reused => Err(RunError::KeyReused),
        }
    }

    fn make_decision<T>(
        &self,
        request: Option<RequestKey>,
        offer: Offer,
        decide: &impl Fn(&Run, Surroundings<'_>) -> Result<Decision<T>, RunError>,
    ) -> Result<Decision<T>, RunError> {
        let now = self.services.clock.now();
        let free = match offer {
            Offer::WhatIsFree => self.services.capacity.find_free(now),
            Offer::Nothing => FreeCapacity::default(),
        };
        let mut ids: IdSource = self.services.new_ids();
        let heard = self.connections.last_heard();
        let secrets = self.services.secrets();
        self.read(|run| {
            if run.live.is_deleted {
                return Err(RunError::UnknownRun(self.id));
            }
            let cwd = run.live.settings.cwd.as_deref();
            let around = Surroundings {
                now,
                ids: &mut ids,
                capacity: free.borrow(),
                has_repository: cwd.is_some_and(|cwd| self.services.workspaces.has_repository(cwd)),
                heard: &heard,
                secrets: &secrets,
                request,
            };
            decide(run, around)
        })
    }

    /// Makes a decision durable and visible, if there is room for its turns.
    async fn carry_out<T>(
        self: &Arc<Self>,
        guard: &mut WriteGuard<'_, RunLog>,
        decision: Decision<T>,
        offer: Offer,
    ) -> Result<CarriedOut<T>, RunError> {
        let Decision {
            events,
            blobs,
            effects,
            answer,
        } = decision;
        let capacity = &self.services.capacity;
        let load = self.load_after(&events);
        match offer {
            Offer::WhatIsFree => {
                if !capacity.reserve(self.id, load) {
                    return Ok(CarriedOut::NothingFree);
                }
            }
            Offer::Nothing => capacity.set_load(self.id, load),
        }
        let was_written = self.commit(guard, events, blobs).await;
        if !matches!(was_written, Ok(true)) {
            // The events were not written, so the reserved load is wrong. The run has its old state,
            // or a newer one that another writer made.
            capacity.set_load(self.id, self.read_live(RunLoad::of));
        }
        if !was_written? {
            return Ok(CarriedOut::HeadMoved);
        }
        for effect in effects {
            // The performer lives as long as the server; after that nothing needs to happen. It never
            // waits for a decision, so it always takes the next effect.
            self.effects.send(effect).await.ok();
        }
        Ok(CarriedOut::Done(answer))
    }

    /// What the run will use once these events are applied.
    fn load_after(&self, events: &[Event]) -> RunLoad {
        let mut after = self.read_live(LiveRun::clone);
        for event in events {
            after.apply(event);
        }
        RunLoad::of(&after)
    }

    /// Appends and applies events. Returns whether they were written: if another writer was faster,
    /// its events are applied instead.
    async fn commit(
        self: &Arc<Self>,
        guard: &mut WriteGuard<'_, RunLog>,
        events: Vec<Event>,
        blobs: Vec<Bytes>,
    ) -> Result<bool, RunError> {
        if events.is_empty() {
            return Ok(true);
        }
        let Some(log) = guard.0.as_mut() else {
            return Err(RunError::UnknownRun(self.id));
        };
        // Before the events, which name them. What a failed append leaves behind is never read.
        self.create_transcripts(log, &events).await?;
        self.put_blobs(&events, blobs).await?;
        let store = &self.services.store;
        let (facts, was_written) = match DurableState::append(store, log, &events).await? {
            AppendResult::Appended => (events, true),
            AppendResult::HeadMoved { foreign, .. } => (foreign, false),
        };
        self.backlog.add(&facts);
        let last_seq = self.durable.apply(facts, |run| run.live.last_seq).await;
        // After `apply`: whoever this wakes finds the events in the state.
        self.last_seq.send_replace(last_seq);
        self.services.notify_events(RunNotice {
            handle: Arc::clone(self),
            last_seq,
        });
        Ok(was_written)
    }

    async fn create_transcripts(&self, log: &mut RunLog, events: &[Event]) -> Result<(), RunError> {
        for node in log.missing_transcripts(events) {
            let command = run_log::create_transcript(self.id, node);
            let context = self.services.create_context(command).await?;
            self.services.claim_context(context, self.id);
            log.add_transcript(node, context);
        }
        Ok(())
    }

    /// Stores the contents of artifacts and the long texts of events. They must be in the log before
    /// the events that name them, so the store keeps the order of submission.
    async fn put_blobs(&self, events: &[Event], blobs: Vec<Bytes>) -> Result<(), RunError> {
        let texts = events.iter().flat_map(|event| record::encode(event).blobs);
        // All are submitted before the first answer is awaited, so that they share a sync.
        let mut answers = Vec::new();
        for content in blobs.into_iter().chain(texts) {
            let bytes = content.len();
            let blob = NewBlob::from_raw(content, ARTIFACT_BYTES_MAX)
                .map_err(|_| RunError::TooLarge { bytes })?;
            let answer = self.services.store.submit(Command::PutBlob(blob)).await?;
            answers.push(answer);
        }
        for answer in answers {
            match answer.await? {
                Outcome::BlobPut { .. } => {}
                other => {
                    let message = format!("a blob ended as {other:?}");
                    return Err(RunError::Abandoned(message));
                }
            }
        }
        Ok(())
    }

    /// What waits for a reader whose next event has this number.
    pub(crate) fn backlog_from(&self, next: u64) -> Backlog {
        self.backlog.measure(next, *self.last_seq.borrow())
    }

    /// The directory of the run's artifacts.
    pub(crate) fn artifacts_dir(&self) -> std::path::PathBuf {
        self.services.artifacts_dir(self.id)
    }

    /// The programs that cannot run a tool with arguments that a person has changed.
    pub(crate) fn programs_with_fixed_args(&self) -> Vec<String> {
        self.services.settings.programs_with_fixed_args()
    }

    /// Explains why the run does not go on.
    pub(crate) fn explain(&self) -> turnkeep_wire::runs::WhyGraph {
        let now = self.services.clock.now();
        let free = self.services.capacity.find_free(now);
        let explanation = self.read_live(|run| explain(run, now, free.borrow()));
        super::json::why_graph(&explanation, now)
    }

    /// Reads a blob of the run.
    pub(crate) async fn read_blob(&self, hash: BlobHash) -> Result<Bytes, RunError> {
        let store = self.services.store.store().clone();
        let read = move || store.blob(hash)?.into_raw_bytes();
        Ok(self.services.run_blocking(read).await??)
    }

    /// The context of the events.
    pub(crate) fn events_context(&self) -> ContextId {
        self.events
    }

    /// Reads events by their numbers, from `first` on: at most `limit`, and fewer if they are long.
    pub(crate) async fn read_events(
        self: &Arc<Self>,
        first: u64,
        limit: usize,
    ) -> Result<Vec<Event>, RunError> {
        let handle = Arc::clone(self);
        let read = move || {
            let store = handle.services.store.store();
            run_log::read_some_events(store, handle.events, first, limit)
        };
        self.services.run_blocking(read).await?
    }

    /// Reads exactly these events, on a thread that may block.
    pub(crate) fn read_events_blocking(
        &self,
        first: u64,
        count: usize,
    ) -> Result<Vec<Event>, RunError> {
        run_log::read_events(self.services.store.store(), self.events, first, count)
    }
}
