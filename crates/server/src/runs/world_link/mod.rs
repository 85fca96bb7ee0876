//! A run and its world: the server reports the run to the world, and nothing flows back.
//!
//! Each node is a person of the world (`persons`). Every handoff becomes one entry of its sender, for
//! the receiver and the operator; the beginning and the ends of the run become entries of the server
//! (`entries`). The runtime never reads the world: agents do, through their tools.
//!
//! The task writes an entry only after its event is durable, and in the order of the events. The
//! entry's request id is the id of the envelope or of the event, so an entry that an earlier server
//! wrote is found by one lookup and never written twice. That makes a restart simple: the task asks
//! for every milestone of the run whether the world has it, and writes the ones that are missing.
//!
//! A world that refuses an entry, or that is gone, stops no run: the node's log says why. A world
//! that cannot be written for now, such as on a full disk, is tried again until it can.

mod entries;
mod persons;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use turnkeep_ledger::Principal;
use turnkeep_runtime::decide;
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::run::Milestone;

pub(crate) use persons::{
    NodeOrigin, PersonRefused, check_world, choose_person, ensure_person, find_person,
};

use self::entries::WorldReport;
use super::run_handle::RunHandle;
use crate::error::ApiError;
use crate::ledger::{LedgerError, WorldHandle};

/// The pause before a world that could not be written is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Reports what happens to the run's world, for as long as the run lives.
pub(super) async fn report_to_world(handle: Arc<RunHandle>) {
    let Some(name) = handle.read_live(|run| run.settings.world.clone()) else {
        return;
    };
    let Ok(Some(world)) = handle.services.worlds.find(&name) else {
        // It was there when the run was created, so its records are damaged, or the run was copied
        // from another server.
        tracing::warn!(run = %handle.id(), world = name, "the run's world cannot be used");
        return;
    };
    let mut last_seq = handle.subscribe_seq();
    let mut reporter = WorldReporter {
        handle: Arc::clone(&handle),
        world,
        reported: 0,
        known_nodes: HashSet::new(),
        is_catching_up: true,
    };
    loop {
        // Before the reads, so that an event in between wakes the task again.
        last_seq.borrow_and_update();
        let progress = [
            reporter.add_persons().await,
            reporter.report_milestones().await,
        ];
        let is_behind = progress.contains(&Progress::Behind);
        reporter.is_catching_up &= is_behind;
        if handle.read_live(|run| run.is_deleted) {
            return;
        }
        tokio::select! {
            changed = last_seq.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep(RETRY_PAUSE), if is_behind => {}
        }
    }
}

/// How much of a run its world has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It took or refused everything.
    UpToDate,
    /// The rest must be tried again.
    Behind,
}

/// Why the world does not have an entry.
enum Unwritten {
    /// The world refuses it, and would refuse it again.
    Refused(String),
    /// The same attempt may succeed later.
    NotNow(String),
}

impl From<LedgerError> for Unwritten {
    fn from(error: LedgerError) -> Self {
        let reason = error.to_string();
        if may_pass(error) {
            Self::NotNow(reason)
        } else {
            Self::Refused(reason)
        }
    }
}

/// Whether the same attempt may succeed later.
fn may_pass(error: impl Into<ApiError>) -> bool {
    error.into().code.is_retryable()
}

/// How much of a run its world knows.
struct WorldReporter {
    handle: Arc<RunHandle>,
    world: Arc<WorldHandle>,
    /// The number of the last milestone that the world took or refused.
    reported: u64,
    /// The nodes whose persons were added or refused.
    known_nodes: HashSet<NodeId>,
    /// Whether the task looks at what happened before the server started.
    is_catching_up: bool,
}

impl WorldReporter {
    /// Adds the persons of new nodes.
    async fn add_persons(&mut self) -> Progress {
        let is_new = |id: &NodeId| !self.known_nodes.contains(id);
        let new: Vec<NodeId> = self.handle.read_live(|run| {
            let ids = run.nodes().map(|node| node.id);
            ids.filter(is_new).collect()
        });
        for node in new {
            match ensure_person(&self.handle, node)
                .await
                .map_err(Unwritten::from)
            {
                Ok(()) => {}
                Err(Unwritten::NotNow(reason)) => {
                    self.log_delay(&reason);
                    return Progress::Behind;
                }
                Err(Unwritten::Refused(reason)) => {
                    let text = format!(
                        "the world {} did not take it as a person: {reason}",
                        self.world.name()
                    );
                    self.note(Some(node), text).await;
                }
            }
            // Also a refused one: the world would refuse it again, with another note each time.
            self.known_nodes.insert(node);
        }
        Progress::UpToDate
    }

    /// Reports in the order of the events, up to one that must be tried again.
    async fn report_milestones(&mut self) -> Progress {
        let new: Vec<Milestone> = self
            .handle
            .read(|run| run.archive.milestones_after(self.reported).to_vec());
        for milestone in new {
            if let Err(reason) = self.report(milestone).await {
                self.log_delay(&reason);
                return Progress::Behind;
            }
            self.reported = milestone.seq;
        }
        Progress::UpToDate
    }

    /// Reports one event. Fails if the same attempt may succeed later.
    async fn report(&self, milestone: Milestone) -> Result<(), String> {
        let event = match self.handle.read_events(milestone.seq, 1).await {
            Ok(events) => events.into_iter().next(),
            Err(error) => {
                let reason = error.to_string();
                if may_pass(error) {
                    return Err(reason);
                }
                tracing::warn!(run = %self.handle.id(), reason, "an event was not reported to the world");
                None
            }
        };
        let report =
            event.and_then(|event| self.handle.read(|run| entries::report_of(run, &event)));
        let Some(report) = report else {
            return Ok(());
        };
        let has_entry = |request: &str| self.world.read(|world| world.outcome(request).is_some());
        if has_entry(&report.request_id) {
            return Ok(());
        }
        match self.write(&report).await {
            Ok(()) => Ok(()),
            Err(Unwritten::NotNow(reason)) => Err(reason),
            Err(Unwritten::Refused(reason)) => {
                let what = report.what;
                let text = format!(
                    "the world {} did not take {what}: {reason}",
                    self.world.name()
                );
                self.note(report.node, text).await;
                Ok(())
            }
        }
    }

    /// Writes an entry, or says why the world does not have it.
    async fn write(&self, report: &WorldReport) -> Result<(), Unwritten> {
        if let Principal::Person { id, .. } = &report.author
            && persons::is_human(&self.world, id)
        {
            return Err(Unwritten::Refused(format!("{id} is a human there")));
        }
        // Both ends of a handoff may be nodes that were deleted before their persons were added.
        for node in &report.nodes {
            ensure_person(&self.handle, *node).await?;
        }
        let (envelope, bundle) = (report.envelope(), report.bundle());
        let beat = self
            .world
            .beat(&report.author, envelope, bundle, None, None);
        let answer = beat.await?;
        let rejection = answer.outcome.and_then(|outcome| outcome.rejection.clone());
        rejection.map_or(Ok(()), |reason| Err(Unwritten::Refused(reason)))
    }

    fn log_delay(&self, reason: &str) {
        let world = self.world.name().to_string();
        tracing::debug!(run = %self.handle.id(), world, reason, "the world is tried again later");
    }

    /// Says in the log of a node what the world refused.
    async fn note(&self, node: Option<NodeId>, text: String) {
        tracing::warn!(run = %self.handle.id(), "{text}");
        // The world refuses the same entries at every start. One note about each is enough.
        let Some(node) = node.filter(|_| !self.is_catching_up) else {
            return;
        };
        let noted = self
            .handle
            .decide(move |run, around| decide::note_node(run, around, node, &text));
        if let Err(error) = noted.await {
            tracing::debug!(%error, "the node is gone, so its log has no note");
        }
    }
}
