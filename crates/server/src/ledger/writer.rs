//! The attached writer: a user's program that is asked what happens after the operator has spoken.
//!
//! Each world has at most one long-lived process; its lifetime is an epoch. It reads and writes
//! JSON lines. A request to it ends with a proposal, with silence, or with a failure, and always
//! within its time limit. A failure ends the process and adds nothing to the world. Texts of the
//! ledger reach it only as data in JSON fields. One beat asks at a time; others wait in order.
//!
//! In the writer's process group, a guard process waits at a pipe that only this server holds open.
//! The pipe closes when the server drops the process or ends, however it ends. Then the guard kills
//! the group.

use std::io::{ErrorKind, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use turnkeep_ledger::beat;
use turnkeep_ledger::config::Writer;
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::epoch::{
    AnchorReason, AnchorUpdate, NewAnchor, RehydrationCounts, WriterMemory,
};
use turnkeep_ledger::fact::{AuditLine, ClockState, Fact};
use turnkeep_ledger::ids::Name;
use turnkeep_ledger::json;
use turnkeep_ledger::tools::{self, AllowedViews, Caller, EpochAnchor, ToolLoop};
use turnkeep_ledger::{Code, Fault, Grant, Viewer, World};

use super::error::LedgerError;
use super::world_handle::WorldHandle;

/// The writer's actor name in proposals and tool requests.
pub(super) const ACTOR: &str = "writer";
/// How many beats may wait for the writer.
const WAITING_MAX: usize = 16;
/// The longest line from the writer: a bundle of the largest texts, escaped.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// How long to wait for the exit status of a writer that has closed a pipe.
const EXIT_WAIT: Duration = Duration::from_millis(200);
/// Longer tool requests are audited by their size only; no tool accepts one.
const AUDITED_REQUEST_BYTES_MAX: usize = 64 << 10;

/// A shell script that starts the guard and then becomes the writer. The guard kills its process
/// group when the pipe that it got as standard error closes. It holds none of the writer's own
/// pipes and is not a child of the writer.
const GUARD_SCRIPT: &str = r#"exec 3<&2 2>/dev/null
( { read -r end <&3; kill -s KILL 0; } </dev/null >/dev/null & )
exec 3<&-
exec sh -c "$0""#;

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
    /// The command line.
    line: String,
    persons: Option<Vec<Name>>,
}

impl WriterAssignment {
    /// The assignment of a world's writer, if the writer is to be asked now.
    fn current(world: &World) -> Option<Self> {
        match &world.config.writer {
            Writer::Command(line) if !world.clock.paused => Some(Self {
                line: line.clone(),
                persons: world.config.writer_persons.clone(),
            }),
            Writer::Command(_) | Writer::Silence => None,
        }
    }

    /// Whether the world still has this writer. A paused clock makes no difference.
    fn is_current(&self, world: &World) -> bool {
        matches!(&world.config.writer, Writer::Command(line) if *line == self.line)
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

/// A running writer process.
struct WriterProcess {
    assignment: WriterAssignment,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    memory: WriterMemory,
    /// Closes when this struct is dropped or the server ends. Then the guard kills the group.
    _lifeline: PipeWriter,
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

/// Why a writer failed.
#[derive(Debug, thiserror::Error)]
enum WriterFailure {
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    #[error("it cannot be written to or read from: {0}")]
    Io(#[from] std::io::Error),
    #[error("{}", describe_exit(*.0))]
    Ended(Option<ExitStatus>),
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    Flood,
    #[error("it did not finish within {0} s")]
    TimeOut(u64),
    #[error("it printed a line that is no tool request, proposal or no_write: {0}")]
    Garbage(String),
    #[error("it asked more than a beat may ask")]
    LoopLimit,
    #[error("it proposed a bundle for another request: it is out of step")]
    OutOfStep,
    #[error("its question could not be answered: {0}")]
    Tool(String),
    #[error("the server stops")]
    Stopping,
}

impl WriterFailure {
    /// Whether the process must end. At the loop limit the writer got an error and finished;
    /// every other failure leaves it in an unknown state.
    fn ends_process(&self) -> bool {
        !matches!(self, Self::LoopLimit)
    }

    /// The message for the operator. The writer's own words may come from private entries, so only
    /// the audit gets them.
    fn public_message(&self) -> String {
        let message = match self {
            Self::Garbage(_) => {
                "it printed a line that is no tool request, proposal or no_write".to_owned()
            }
            Self::Tool(_) => "its question could not be answered".to_owned(),
            Self::Start(_)
            | Self::Io(_)
            | Self::Ended(_)
            | Self::Flood
            | Self::TimeOut(_)
            | Self::LoopLimit
            | Self::OutOfStep
            | Self::Stopping => self.to_string(),
        };
        // The message goes into an HTTP header, which allows printable ASCII only.
        message.replace(|c: char| !(' '..='~').contains(&c), "?")
    }
}

/// Describes how a program ended. A shell exits with 127 or 126 if it cannot start a program.
fn describe_exit(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "it closed its pipes".to_owned();
    };
    match (status.code(), status.signal()) {
        (Some(127), _) => "it ended with exit status 127: there is no such program".to_owned(),
        (Some(126), _) => {
            "it ended with exit status 126: it is no program that may be run".to_owned()
        }
        (Some(code), _) => format!("it ended with exit status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
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
        let prepared = self
            .prepare_writer(&mut process, envelope, &tools.assignment)
            .await?;
        let result = match prepared {
            Ok(update) => {
                self.converse_in_time(&mut process, &update, envelope, &mut tools)
                    .await
            }
            Err(failure) => Err(failure),
        };
        let (mut lines, mut failed) = (tools.lines, None);
        let result = result.unwrap_or_else(|failure| {
            if failure.ends_process() {
                *process = None;
            }
            let message = failure.public_message();
            tracing::warn!(world = %self.name(), why = message, "the attached writer failed");
            failed = Some(message);
            let details = json!({ "why": failure.to_string() });
            lines.push(self.writer_audit_line(envelope, "writer-failed", &details));
            WriterResult::Silence
        });
        // Audit lines are recorded even if the writer failed and even if the beat is rejected
        // later.
        if !lines.is_empty() {
            self.commit(&mut self.lock_for_writing().await, lines)
                .await?;
        }
        Ok(WriterAnswer {
            result,
            failed,
            _lease: Some(WriterLease {
                _queued: queued,
                _process: process,
            }),
        })
    }

    /// Ends a writer that is no longer the world's. It waits until the current beat is over.
    pub(super) async fn end_outdated_writer(&self) {
        let mut process = self.writer.process.lock().await;
        if process
            .as_ref()
            .is_some_and(|process| !self.read(|world| process.assignment.is_current(world)))
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
        let process = slot.as_mut().ok_or(WriterFailure::Ended(None))?;
        let now = self.now();
        let message = self.read(|world| {
            let clock =
                beat::clock_at(world, envelope, now).unwrap_or_else(|_| world.clock.clone());
            beat_message(&clock, envelope, &tools.assignment, update)
        });
        let seconds = self.read(|world| world.config.limits.writer_seconds);
        let conversation = process.converse(message, tools);
        tokio::select! {
            result = tokio::time::timeout(Duration::from_secs(seconds), conversation) => {
                result.unwrap_or(Err(WriterFailure::TimeOut(seconds)))
            }
            () = self.services.stopping.cancelled() => Err(WriterFailure::Stopping),
        }
    }

    /// Starts the writer if needed, and records the anchor that it must be sent. No time limit
    /// applies here: facts that may already be durable must be applied.
    async fn prepare_writer(
        self: &Arc<Self>,
        slot: &mut MutexGuard<'_, Option<WriterProcess>>,
        envelope: &Envelope,
        assignment: &WriterAssignment,
    ) -> Result<Result<AnchorUpdate, WriterFailure>, LedgerError> {
        let is_ready = match slot.as_mut() {
            Some(process) => process.is_ready_for(assignment).await,
            None => false,
        };
        if !is_ready {
            **slot = match WriterProcess::start(assignment) {
                Ok(process) => Some(process),
                Err(failure) => return Ok(Err(failure)),
            };
        }
        let Some(process) = slot.as_mut() else {
            return Ok(Err(WriterFailure::Ended(None)));
        };
        let update = self
            .next_anchor(
                process.memory.clone(),
                assignment.viewer(),
                Arc::clone(&envelope.request_id),
            )
            .await?;
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
        if let Some(carried) = new.carried {
            self.services.rehydrations.add(carried);
        }
        Ok(())
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

/// The form of a tool request in its audit line. Of a request that is too long for any tool, only
/// the size.
fn audited_request(request: &Value) -> Value {
    match request.to_string().len() {
        ..=AUDITED_REQUEST_BYTES_MAX => request.clone(),
        bytes => json!({ "bytes": bytes }),
    }
}

/// The first line that the writer gets for a beat.
fn beat_message(
    clock: &ClockState,
    envelope: &Envelope,
    assignment: &WriterAssignment,
    update: &AnchorUpdate,
) -> Value {
    let persons = assignment.persons.as_ref();
    let persons = persons.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut message = json!({
        "type": "beat",
        "request_id": &*envelope.request_id,
        "world_time": clock.time.as_str(),
        "timezone": clock.timezone.as_str(),
        "operator_text": envelope.input_text,
        "actor": ACTOR,
        "may_author": persons,
        "view": assignment.viewer().as_str(),
    });
    let mut add = |key: &str, value: Value| {
        message
            .as_object_mut()
            .map(|fields| fields.insert(key.to_owned(), value))
    };
    match update {
        AnchorUpdate::Unchanged(anchor) => drop(add("scene_anchor_id", anchor.to_string().into())),
        AnchorUpdate::New(new) => {
            let pack = |text: &str| json::parse(text.as_bytes()).unwrap_or_default();
            add("scene_anchor", pack(&new.epoch.anchor));
            if let Some(rehydration) = &new.epoch.rehydration {
                add("rehydration", pack(rehydration));
            }
        }
    }
    message
}

/// The tool requests of one beat.
struct ToolSession<'a> {
    handle: &'a Arc<WorldHandle>,
    envelope: &'a Envelope,
    assignment: WriterAssignment,
    /// The number of entries when the beat began. All answers are from this position.
    position: u32,
    tool_loop: Arc<std::sync::Mutex<ToolLoop>>,
    /// Whether the loop limit was reached. Then the writer must finish, and its result adds
    /// nothing.
    exhausted: bool,
    lines: Vec<Fact>,
}

impl<'a> ToolSession<'a> {
    fn new(
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
            tool_loop: Arc::new(std::sync::Mutex::new(tool_loop)),
            exhausted: false,
            lines: Vec::new(),
        }
    }

    /// Accepts a proposal. One for another request belongs to an earlier beat.
    fn accept_proposal(&self, bundle: Value) -> Result<WriterResult, WriterFailure> {
        let request = bundle.get("request_id").and_then(Value::as_str);
        match request {
            _ if self.exhausted => Err(WriterFailure::LoopLimit),
            Some(request) if *request != *self.envelope.request_id => Err(WriterFailure::OutOfStep),
            _ => Ok(WriterResult::Proposal(bundle)),
        }
    }

    /// Answers a tool request from the ledger as it was when the beat began.
    async fn answer(&mut self, request: Value) -> Result<String, WriterFailure> {
        let request = Arc::new(request);
        let answered = self.run_tool(Arc::clone(&request)).await?;
        let fault = answered.as_ref().err().map(|fault| fault.code.word());
        self.lines.push(self.handle.writer_audit_line(
            self.envelope,
            "tool",
            &json!({ "request": audited_request(&request), "fault": fault }),
        ));
        Ok(match answered {
            // The pack is JSON already; parsing it again would only cost time.
            Ok(pack) => format!("{{\"type\":\"result\",\"pack\":{pack}}}"),
            Err(fault) => {
                self.exhausted |= fault.code == Code::LoopLimit;
                let error = json!({ "code": fault.code.word(), "path": fault.path, "message": fault.message });
                json!({ "type": "result", "error": error }).to_string()
            }
        })
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

impl WriterProcess {
    fn start(assignment: &WriterAssignment) -> Result<Self, WriterFailure> {
        // The guard holds the read end. It reads end-of-file when this process drops or loses the
        // write end.
        let (held, lifeline) = std::io::pipe().map_err(WriterFailure::Start)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD_SCRIPT, &assignment.line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(held);
        let mut child = command
            // A group of its own, so that the guard kills the writer and its children, but not the
            // server.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(WriterFailure::Start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(WriterFailure::Ended(None));
        };
        Ok(Self {
            assignment: assignment.clone(),
            child,
            input,
            output: BufReader::new(output),
            memory: WriterMemory::default(),
            _lifeline: lifeline,
        })
    }

    /// Whether this process runs, has this assignment, and has no unread output. Output that was
    /// not asked for would be taken for the answer to the next beat.
    async fn is_ready_for(&mut self, assignment: &WriterAssignment) -> bool {
        let runs = self.assignment == *assignment && matches!(self.child.try_wait(), Ok(None));
        // A zero timeout only polls: any data or end-of-file makes the process unusable.
        runs && tokio::time::timeout(Duration::ZERO, self.output.fill_buf())
            .await
            .is_err()
    }

    /// The exit status of a process that has closed a pipe, usually by ending.
    async fn exit_status(&mut self) -> Option<ExitStatus> {
        tokio::time::timeout(EXIT_WAIT, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok)
    }

    /// Sends the beat and answers tool requests until the writer is done.
    async fn converse(
        &mut self,
        message: Value,
        tools: &mut ToolSession<'_>,
    ) -> Result<WriterResult, WriterFailure> {
        self.send(message.to_string()).await?;
        loop {
            let line = self.receive().await?;
            let garbage = || WriterFailure::Garbage(line.chars().take(200).collect());
            let mut value = json::parse(line.as_bytes()).map_err(|_| garbage())?;
            match value.get("type").and_then(Value::as_str) {
                Some("tool") => {
                    let request = value
                        .get_mut("request")
                        .map(Value::take)
                        .ok_or_else(garbage)?;
                    // Behind the loop limit, a further tool request breaks the protocol.
                    if tools.exhausted {
                        return Err(garbage());
                    }
                    let answer = tools.answer(request).await?;
                    self.send(answer).await?;
                }
                Some("proposal") => {
                    let bundle = value
                        .get_mut("bundle")
                        .map(Value::take)
                        .ok_or_else(garbage)?;
                    return tools.accept_proposal(bundle);
                }
                Some("no_write") if tools.exhausted => return Err(WriterFailure::LoopLimit),
                Some("no_write") => return Ok(WriterResult::Silence),
                _ => return Err(garbage()),
            }
        }
    }

    /// Sends a line. It also waits for the process to end, because another process may hold the
    /// pipe open after that, and a full pipe would block for ever.
    async fn send(&mut self, mut line: String) -> Result<(), WriterFailure> {
        line.push('\n');
        self.memory.add_bytes(line.len());
        let Self { input, child, .. } = self;
        let send = async {
            input.write_all(line.as_bytes()).await?;
            input.flush().await
        };
        let sent = tokio::select! {
            biased;
            sent = send => sent,
            status = child.wait() => return Err(WriterFailure::Ended(status.ok())),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                Err(WriterFailure::Ended(self.exit_status().await))
            }
            sent => Ok(sent?),
        }
    }

    async fn receive(&mut self) -> Result<String, WriterFailure> {
        let mut line = Vec::new();
        let Self { output, child, .. } = self;
        // The limit keeps a writer without line ends from filling the memory.
        let mut bounded = output.take(LINE_BYTES_MAX);
        tokio::select! {
            biased;
            read = bounded.read_until(b'\n', &mut line) => drop(read?),
            _ = child.wait() => read_remaining(self.output.get_ref(), &mut line)?,
        }
        self.memory.add_bytes(line.len());
        if line.len() as u64 >= LINE_BYTES_MAX {
            return Err(WriterFailure::Flood);
        }
        match line.pop() {
            Some(b'\n') => {
                String::from_utf8(line).map_err(|_| WriterFailure::Garbage("no UTF-8".to_owned()))
            }
            Some(_) | None => Err(WriterFailure::Ended(self.exit_status().await)),
        }
    }
}

/// Reads the rest of a line that an ended writer left in the pipe. It does not wait for another
/// process that may hold the pipe open.
fn read_remaining(output: &ChildStdout, line: &mut Vec<u8>) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    while line.last() != Some(&b'\n') && (line.len() as u64) < LINE_BYTES_MAX {
        match rustix::io::read(output, &mut piece) {
            Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
            Ok(read) => {
                let piece = piece.get(..read).unwrap_or_default();
                let end = piece
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(read, |end| end + 1);
                line.extend_from_slice(piece.get(..end).unwrap_or_default());
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
