//! The tool requests of one beat. Every answer is from the ledger as it was when the beat began,
//! and every request leaves an audit line.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::tools::{self, AllowedViews, Caller, EpochAnchor, ToolLoop};
use turnkeep_ledger::{Code, Fault, World};

use super::failure::WriterFailure;
use super::protocol::{garbage, result_line};
use super::{ACTOR, WriterAssignment, WriterResult};
use crate::ledger::world_handle::WorldHandle;

/// Longer tool requests are audited by their size only; no tool accepts one.
const AUDITED_REQUEST_BYTES_MAX: usize = 64 << 10;

/// The tool requests of one beat.
pub(super) struct ToolSession<'a> {
    handle: &'a Arc<WorldHandle>,
    envelope: &'a Envelope,
    pub(super) assignment: WriterAssignment,
    /// The number of entries when the beat began. All answers are from this position.
    position: u32,
    /// Shared with the blocking thread that answers, which a cancelled beat leaves behind.
    tool_loop: Arc<Mutex<ToolLoop>>,
    /// Whether the loop limit was reached. Then the writer must finish, and its result adds
    /// nothing.
    exhausted: bool,
    /// The audit lines of the requests.
    pub(super) audit_lines: Vec<Fact>,
}

impl<'a> ToolSession<'a> {
    pub(super) fn new(
        handle: &'a Arc<WorldHandle>,
        envelope: &'a Envelope,
        assignment: WriterAssignment,
    ) -> Self {
        let tool_loop = ToolLoop::new(Arc::clone(&envelope.request_id));
        Self {
            handle,
            envelope,
            assignment,
            position: handle.read(World::position),
            tool_loop: Arc::new(Mutex::new(tool_loop)),
            exhausted: false,
            audit_lines: Vec::new(),
        }
    }

    /// Accepts a proposal. One for another request belongs to an earlier beat.
    pub(super) fn accept_proposal(&self, bundle: Value) -> Result<WriterResult, WriterFailure> {
        let request = bundle.get("request_id").and_then(Value::as_str);
        match request {
            _ if self.exhausted => Err(WriterFailure::LoopLimit),
            Some(request) if *request != *self.envelope.request_id => Err(WriterFailure::OutOfStep),
            _ => Ok(WriterResult::Proposal(bundle)),
        }
    }

    /// Accepts that the writer adds nothing.
    pub(super) fn accept_silence(&self) -> Result<WriterResult, WriterFailure> {
        if self.exhausted {
            return Err(WriterFailure::LoopLimit);
        }
        Ok(WriterResult::Silence)
    }

    /// Answers a tool request with a line. `line` is the line that it came in.
    pub(super) async fn answer(
        &mut self,
        request: Value,
        line: &[u8],
    ) -> Result<String, WriterFailure> {
        // The writer got `LOOP_LIMIT` and must finish. A further request breaks the protocol.
        if self.exhausted {
            return Err(garbage(line));
        }
        let request = Arc::new(request);
        let answered = self.run_tool(Arc::clone(&request)).await?;
        let fault = answered.as_ref().err().map(|fault| fault.code);
        self.audit_lines.push(self.handle.writer_audit_line(
            self.envelope,
            "tool",
            &json!({ "request": audited_request(&request), "fault": fault.map(Code::word) }),
        ));
        self.exhausted |= fault == Some(Code::LoopLimit);
        Ok(result_line(&answered))
    }

    /// Runs a tool on a blocking thread, because a search may take long.
    async fn run_tool(
        &self,
        request: Arc<Value>,
    ) -> Result<Result<Arc<str>, Fault>, WriterFailure> {
        let (handle, position) = (Arc::clone(self.handle), self.position);
        let tool_loop = Arc::clone(&self.tool_loop);
        let viewer = self.assignment.viewer();
        let caller = Caller {
            identity: ACTOR.to_owned(),
            views: AllowedViews::OfGrant(self.assignment.grant()),
        };
        let work = move || {
            handle.read_long(|world| {
                let epoch = world.epoch().map(|epoch| EpochAnchor {
                    viewer: &viewer,
                    pack: &epoch.anchor,
                });
                let mut tool_loop = tool_loop.lock().unwrap_or_else(PoisonError::into_inner);
                tool_loop.call(&request, |request| {
                    tools::answer(world, position, &caller, request, epoch)
                })
            })
        };
        let answered = self.handle.services.run_blocking(work).await;
        answered.map_err(|error| WriterFailure::Tool(error.to_string()))
    }
}

/// The form of a tool request in its audit line. Of a request that is too long for any tool, only
/// the size.
fn audited_request(request: &Value) -> Value {
    match request.to_string().len() {
        ..=AUDITED_REQUEST_BYTES_MAX => request.clone(),
        bytes => json!({ "bytes": bytes }),
    }
}
