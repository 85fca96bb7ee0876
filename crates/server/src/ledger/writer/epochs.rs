//! Epochs: the lifetime of a writer process, and the anchor that it is sent at the start.
//!
//! A new process gets the scene anchor of its view. A process that has been sent as much as its
//! context holds is ended, and its successor also gets a rehydration of the past. The anchor and
//! the rehydration are recorded before the writer gets them.

use std::sync::Arc;

use tokio::sync::MutexGuard;
use turnkeep_ledger::Viewer;
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::epoch::{
    AnchorReason, AnchorUpdate, NewAnchor, RehydrationCounts, WriterMemory,
};
use turnkeep_ledger::fact::Fact;

use super::failure::WriterFailure;
use super::process::WriterProcess;
use super::{AskResult, WriterAssignment};
use crate::ledger::error::LedgerError;
use crate::ledger::world_handle::WorldHandle;

impl WorldHandle {
    /// Starts the writer if needed, and records the anchor that it must be sent. No time limit
    /// applies here: facts that may already be durable must be applied.
    pub(super) async fn prepare_writer(
        self: &Arc<Self>,
        slot: &mut MutexGuard<'_, Option<WriterProcess>>,
        envelope: &Envelope,
        assignment: &WriterAssignment,
    ) -> AskResult<AnchorUpdate> {
        let process = match ready_process(slot, assignment).await {
            Ok(process) => process,
            Err(failure) => return Ok(Err(failure)),
        };
        let memory = process.memory.clone();
        let request = Arc::clone(&envelope.request_id);
        let update = self.next_anchor(memory, assignment.viewer(), request);
        let update = update.await?;
        if let AnchorUpdate::New(new) = &update {
            self.record_epoch(envelope, new).await?;
            if new.reason == AnchorReason::Full {
                // Dropping the old process ends it; no one waits until it has ended.
                *process = match WriterProcess::start(assignment) {
                    Ok(process) => process,
                    Err(failure) => return Ok(Err(failure)),
                };
            }
            process.memory.record_sent(new);
        }
        Ok(Ok(update))
    }

    /// Decides what the writer is sent. Building packs takes a while, so it runs on a blocking
    /// thread.
    async fn next_anchor(
        self: &Arc<Self>,
        memory: WriterMemory,
        viewer: Viewer,
        request: Arc<str>,
    ) -> Result<AnchorUpdate, LedgerError> {
        let handle = Arc::clone(self);
        let build =
            move || handle.read_long(|world| memory.next_anchor(&world.view(viewer), &request));
        self.services.run_blocking(build).await
    }

    /// Records the anchor, the rehydration and the epoch in one append. If it fails, the beat
    /// fails.
    async fn record_epoch(&self, envelope: &Envelope, new: &NewAnchor) -> Result<(), LedgerError> {
        let mut facts = vec![Fact::Epoch(Box::new(new.epoch.clone()))];
        if let Some(carried) = new.carried {
            facts.push(self.writer_audit_line(
                envelope,
                RehydrationCounts::LINE,
                &carried.to_json(new.epoch.number),
            ));
        }
        self.commit(&mut self.lock_for_writing().await, facts)
            .await?;
        // Counted only when it is recorded.
        if let Some(carried) = new.carried {
            self.services.rehydrations.add(carried);
        }
        Ok(())
    }
}

/// Returns the running process if it can serve the assignment, else starts a new one.
async fn ready_process<'a>(
    slot: &'a mut Option<WriterProcess>,
    assignment: &WriterAssignment,
) -> Result<&'a mut WriterProcess, WriterFailure> {
    let is_ready = match slot.as_mut() {
        Some(process) => process.is_ready_for(assignment).await,
        None => false,
    };
    if !is_ready {
        *slot = Some(WriterProcess::start(assignment)?);
    }
    slot.as_mut().ok_or_else(WriterFailure::ended)
}
