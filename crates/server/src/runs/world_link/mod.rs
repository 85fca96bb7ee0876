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
//! A world that refuses an entry, or that is gone, stops no run: the node's log says why.

mod entries;
mod persons;

use std::collections::HashSet;
use std::sync::Arc;

use turnkeep_ledger::Principal;
use turnkeep_runtime::decide;
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::run::Milestone;

pub(crate) use persons::{
    NodeOrigin, PersonRefused, check_world, choose_person, ensure_person, find_person,
};

use self::entries::WorldReport;
use super::run_handle::RunHandle;
use crate::ledger::WorldHandle;

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
        reporter.add_persons().await;
        reporter.report_milestones().await;
        reporter.is_catching_up = false;
        if handle.read_live(|run| run.is_deleted) || last_seq.changed().await.is_err() {
            return;
        }
    }
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
    async fn add_persons(&mut self) {
        let is_new = |id: &NodeId| !self.known_nodes.contains(id);
        let new: Vec<NodeId> = self.handle.read_live(|run| {
            let ids = run.nodes().map(|node| node.id);
            ids.filter(is_new).collect()
        });
        for node in new {
            if let Err(error) = ensure_person(&self.handle, node).await {
                let text = format!(
                    "the world {} did not take it as a person: {error}",
                    self.world.name()
                );
                self.note(Some(node), text).await;
            }
            self.known_nodes.insert(node);
        }
    }

    async fn report_milestones(&mut self) {
        let new: Vec<Milestone> = self
            .handle
            .read(|run| run.archive.milestones_after(self.reported).to_vec());
        for milestone in new {
            self.report(milestone).await;
            self.reported = milestone.seq;
        }
    }

    async fn report(&self, milestone: Milestone) {
        let events = self.handle.read_events(milestone.seq, 1).await;
        let event = match &events {
            Ok(events) => events.first(),
            Err(error) => {
                tracing::warn!(run = %self.handle.id(), %error, "an event was not reported to the world");
                None
            }
        };
        let report = event.and_then(|event| self.handle.read(|run| entries::report_of(run, event)));
        let Some(report) = report else {
            return;
        };
        let has_entry = |request: &str| self.world.read(|world| world.outcome(request).is_some());
        if has_entry(&report.request_id) {
            return;
        }
        if let Err(reason) = self.write(&report).await {
            let what = report.what;
            let text = format!(
                "the world {} did not take {what}: {reason}",
                self.world.name()
            );
            self.note(report.node, text).await;
        }
    }

    /// Writes an entry, or says why the world refuses it.
    async fn write(&self, report: &WorldReport) -> Result<(), String> {
        if let Principal::Person { id, .. } = &report.author
            && persons::is_human(&self.world, id)
        {
            return Err(format!("{id} is a human there"));
        }
        // Both ends of a handoff may be nodes that were deleted before their persons were added.
        for node in &report.nodes {
            let added = ensure_person(&self.handle, *node).await;
            added.map_err(|error| error.to_string())?;
        }
        let (envelope, bundle) = (report.envelope(), report.bundle());
        let beat = self
            .world
            .beat(&report.author, envelope, bundle, None, None);
        let answer = beat.await.map_err(|error| error.to_string())?;
        let rejection = answer.outcome.and_then(|outcome| outcome.rejection.clone());
        rejection.map_or(Ok(()), Err)
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
