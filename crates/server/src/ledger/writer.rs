//! The attached writer: a user's program that is asked what happens after the operator has spoken.
//!
//! Each world has at most one long-lived process. A request to it ends with a proposal, with
//! silence, or with a failure, and always within its time limit. A failure ends the process and
//! adds nothing to the world. One beat asks at a time; others wait in order.
//!
//! `process` runs the program, `protocol` has its lines, `tool_session` answers its tool requests,
//! and `epochs` decides when a new process starts and what the server sends it first.

mod epochs;
mod failure;
mod process;
mod protocol;
mod tool_session;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use turnkeep_ledger::beat;
use turnkeep_ledger::config::Writer;
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::epoch::AnchorUpdate;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::ids::Name;
use turnkeep_ledger::{Code, Fault, Grant, Viewer, World};

use super::error::LedgerError;
use super::world_handle::WorldHandle;
use failure::WriterFailure;
use process::WriterProcess;
use tool_session::ToolSession;

/// The writer's actor name in proposals and tool requests.
pub(super) const ACTOR: &str = "writer";
/// How many beats may wait for the writer.
const WAITING_MAX: usize = 16;

/// The outer error is a fault of the storage and fails the beat. The inner one is the writer's own:
/// the beat goes on without it.
type AskResult<T> = Result<Result<T, WriterFailure>, LedgerError>;

/// The writer of a world: its process, if one runs, and the queue for it.
pub(super) struct WriterSlot {
    process: Mutex<Option<WriterProcess>>,
    /// Permits for the beat that asks and for those that wait.
    queue: Semaphore,
}

impl Default for WriterSlot {
    fn default() -> Self {
        Self {
            process: Mutex::default(),
            queue: Semaphore::new(WAITING_MAX + 1),
        }
    }
}

/// The program of a writer, and the persons in whose names it may write. A process that was started
/// for one assignment is never used for another: it knows what those persons may see.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WriterAssignment {
    command_line: String,
    persons: Option<Vec<Name>>,
}

impl WriterAssignment {
    /// The assignment of a world's writer, if the writer is to be asked now.
    fn current(world: &World) -> Option<Self> {
        match &world.config.writer {
            Writer::Command(line) if !world.clock.paused => Some(Self {
                command_line: line.clone(),
                persons: world.config.writer_persons.clone(),
            }),
            Writer::Command(_) | Writer::Silence => None,
        }
    }

    /// Whether the world still has this writer. A paused clock makes no difference.
    fn is_current(&self, world: &World) -> bool {
        matches!(&world.config.writer, Writer::Command(line) if *line == self.command_line)
            && world.config.writer_persons == self.persons
    }

    /// The reader as whom the writer reads: its person if there is exactly one, else the public.
    fn viewer(&self) -> Viewer {
        match self.persons.as_deref() {
            Some([one]) if one.may_be_a_person() => Viewer::Reader(one.clone()),
            Some(_) | None => Viewer::Public,
        }
    }

    fn grant(&self) -> Grant {
        self.persons.clone().map_or(Grant::Everyone, Grant::These)
    }
}

/// What a writer answered. Until it is dropped, no other beat can ask the writer, so that the next
/// beat sees what this one wrote.
pub(super) struct WriterAnswer<'a> {
    /// What the writer adds.
    pub(super) result: WriterResult,
    /// Why it failed, for the operator.
    pub(super) failed: Option<String>,
    _lease: Option<WriterLease<'a>>,
}

/// Keeps other beats from asking the writer.
struct WriterLease<'a> {
    _queued: SemaphorePermit<'a>,
    _process: MutexGuard<'a, Option<WriterProcess>>,
}

impl WriterAnswer<'_> {
    /// The answer if no writer is asked.
    pub(super) fn not_asked() -> Self {
        Self {
            result: WriterResult::Silence,
            failed: None,
            _lease: None,
        }
    }
}

/// What a writer adds to a beat.
pub(super) enum WriterResult {
    /// This bundle.
    Proposal(Value),
    /// Nothing.
    Silence,
}

impl WorldHandle {
    /// Asks the world's writer, if it has one. A failing writer adds nothing; only storage faults
    /// are errors.
    pub(super) async fn ask_writer(
        self: &Arc<Self>,
        envelope: &Envelope,
    ) -> Result<WriterAnswer<'_>, LedgerError> {
        if self.read(WriterAssignment::current).is_none() {
            return Ok(WriterAnswer::not_asked());
        }
        // Fails at once when the queue is full: an unbounded queue would outlive its callers.
        let queued = self
            .writer
            .queue
            .try_acquire()
            .map_err(|_| queue_full_fault())?;
        let mut process = self.writer.process.lock().await;
        // The configuration may have changed while this beat waited.
        let Some(assignment) = self.read(WriterAssignment::current) else {
            return Ok(WriterAnswer::not_asked());
        };
        let mut tools = ToolSession::new(self, envelope, assignment);
        let asked = self.run_writer(&mut process, envelope, &mut tools).await?;
        let mut audit_lines = tools.audit_lines;
        if let Err(failure) = &asked {
            let why = failure.public_message();
            tracing::warn!(world = %self.name(), why, "the attached writer failed");
            let details = json!({ "why": failure.to_string() });
            audit_lines.push(self.writer_audit_line(envelope, "writer-failed", &details));
            if failure.ends_process() {
                *process = None;
            }
        }
        // Audit lines are recorded even if the writer failed and even if the beat is rejected
        // later.
        if !audit_lines.is_empty() {
            let mut guard = self.lock_for_writing().await;
            self.commit(&mut guard, audit_lines).await?;
        }
        Ok(WriterAnswer {
            failed: asked.as_ref().err().map(WriterFailure::public_message),
            result: asked.unwrap_or(WriterResult::Silence),
            _lease: Some(WriterLease {
                _queued: queued,
                _process: process,
            }),
        })
    }

    /// Starts the writer if needed, sends it the beat, and waits for its result.
    async fn run_writer(
        self: &Arc<Self>,
        process: &mut MutexGuard<'_, Option<WriterProcess>>,
        envelope: &Envelope,
        tools: &mut ToolSession<'_>,
    ) -> AskResult<WriterResult> {
        let prepared = self.prepare_writer(process, envelope, &tools.assignment);
        match prepared.await? {
            Ok(update) => {
                let result = self.converse_in_time(process, &update, envelope, tools);
                Ok(result.await)
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Ends a writer that is no longer the world's. It waits until the current beat is over.
    pub(super) async fn end_outdated_writer(&self) {
        let mut process = self.writer.process.lock().await;
        if let Some(running) = process.as_ref()
            && !self.read(|world| running.assignment.is_current(world))
        {
            *process = None;
        }
    }

    /// Sends the beat to the writer and waits for its result, within its time limit and until the
    /// server stops.
    async fn converse_in_time(
        &self,
        slot: &mut MutexGuard<'_, Option<WriterProcess>>,
        update: &AnchorUpdate,
        envelope: &Envelope,
        tools: &mut ToolSession<'_>,
    ) -> Result<WriterResult, WriterFailure> {
        let process = slot.as_mut().ok_or_else(WriterFailure::ended)?;
        let now = self.now();
        let beat = self.read(|world| {
            let clock =
                beat::clock_at(world, envelope, now).unwrap_or_else(|_| world.clock.clone());
            protocol::beat_line(&clock, envelope, &tools.assignment, update)
        });
        let seconds = self.read(|world| world.config.limits.writer_seconds);
        let conversation = process.converse(beat, tools);
        tokio::select! {
            result = tokio::time::timeout(Duration::from_secs(seconds), conversation) => {
                result.unwrap_or(Err(WriterFailure::TimeOut(seconds)))
            }
            () = self.services.stopping.cancelled() => Err(WriterFailure::Stopping),
        }
    }

    fn writer_audit_line(&self, envelope: &Envelope, what: &str, details: &Value) -> Fact {
        Fact::AuditLine(AuditLine {
            at: self.now(),
            principal: ACTOR.to_owned(),
            what: what.to_owned(),
            request: Some(Arc::clone(&envelope.request_id)),
            details: details.to_string(),
        })
    }
}

fn queue_full_fault() -> Fault {
    Fault::new(
        Code::TooManyRequests,
        "",
        "sixteen beats wait for the world's writer already: try again later",
    )
}
