//! The attached writer: a program of the user's that is asked what happens when the operator has
//! spoken.
//!
//! One long-lived process per world; its life is the epoch. It reads and writes JSON lines.
//! Whatever it does, it ends with a proposal, with silence or as a failure, within its time; a
//! failure ends the process and adds nothing. Ledger text reaches it as data in fields. Whoever
//! holds the lease asks; others wait in order.
//!
//! Beside it, in its process group, a guard waits at a pipe that only this server holds open. When
//! that closes, because the writer's time is over or because the server is gone, however it went,
//! the guard ends the group.

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
use super::room::Room;

/// What the attached writer calls itself in proposals and questions.
pub(super) const ACTOR: &str = "writer";
/// Beats that may wait for the writer.
const WAITING_MAX: usize = 16;
/// One line from the writer: a bundle of the largest texts, escaped.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// How long a writer that has closed a pipe is waited for, to tell how it ended.
const ENDING: Duration = Duration::from_millis(200);
/// A question that is recorded whole; none that a tool takes is longer.
const REQUEST_SHOWN_BYTES_MAX: usize = 64 << 10;

/// Starts a guard that ends its process group when the pipe given as standard error closes, then
/// becomes the writer. The guard keeps none of the writer's own pipes, and is no child of the
/// writer's.
const GUARDED: &str = r#"exec 3<&2 2>/dev/null
( { read -r end <&3; kill -s KILL 0; } </dev/null >/dev/null & )
exec 3<&-
exec sh -c "$0""#;

/// The seat of a world's writer.
pub(super) struct Seat {
    process: Mutex<Option<Process>>,
    /// One that asks and those that wait.
    places: Semaphore,
}

impl Default for Seat {
    fn default() -> Self {
        Self {
            process: Mutex::default(),
            places: Semaphore::new(WAITING_MAX + 1),
        }
    }
}

/// What a writer is started for: a program, and in whose names it may write. What one was told as
/// one person is never another's, so a writer with another charge is another process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Charge {
    line: String,
    persons: Option<Vec<Name>>,
}

impl Charge {
    /// The charge of a world's writer, if it has one that is to be asked now.
    fn of(world: &World) -> Option<Self> {
        match &world.config.writer {
            Writer::Command(line) if !world.clock.paused => Some(Self {
                line: line.clone(),
                persons: world.config.writer_persons.clone(),
            }),
            Writer::Command(_) | Writer::Silence => None,
        }
    }

    /// Whether the world has this writer still; a pause changes nothing.
    fn is_still(&self, world: &World) -> bool {
        matches!(&world.config.writer, Writer::Command(line) if *line == self.line)
            && world.config.writer_persons == self.persons
    }

    /// A writer of one person looks with that person's eyes; one of several with those of the
    /// public.
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

/// A running writer.
struct Process {
    charge: Charge,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    life: WriterMemory,
    /// Closes when the process is dropped or the server ends; then the guard ends all that was
    /// started.
    _lifeline: PipeWriter,
}

/// What came of asking a writer, and the lease: until it is dropped nobody else asks, so that
/// whoever is next finds what this one wrote.
pub(super) struct Asked<'a> {
    /// How its turn ended.
    pub(super) end: End,
    /// Why it failed, in words for the operator.
    pub(super) failed: Option<String>,
    _lease: Option<(SemaphorePermit<'a>, MutexGuard<'a, Option<Process>>)>,
}

impl Asked<'_> {
    /// Nobody was asked.
    pub(super) fn nobody() -> Self {
        Self {
            end: End::Silence,
            failed: None,
            _lease: None,
        }
    }
}

/// How a writer's turn ended.
pub(super) enum End {
    /// It proposes this bundle.
    Proposal(Value),
    /// It adds nothing.
    Silence,
}

/// Why a writer adds nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    #[error("it cannot be written to or read from: {0}")]
    Io(#[from] std::io::Error),
    #[error("{}", ended(*.0))]
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

impl Failure {
    /// A writer that asked too much was told so and has finished; every other failure leaves it in
    /// an unknown state.
    fn ends_the_process(&self) -> bool {
        !matches!(self, Self::LoopLimit)
    }

    /// What the operator is told at once. What the writer said, and may have from somebody's
    /// private entries, is for the audit alone.
    fn told(&self) -> String {
        let told = match self {
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
        told.replace(|c: char| !(' '..='~').contains(&c), "?")
    }
}

/// How a program ended, as far as that is known. A shell has its own numbers for one that it cannot
/// start.
fn ended(status: Option<ExitStatus>) -> String {
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

impl Room {
    /// Asks the world's writer. A writer that fails adds nothing; only storage faults are errors.
    pub(super) async fn ask_writer(
        self: &Arc<Self>,
        envelope: &Envelope,
    ) -> Result<Asked<'_>, LedgerError> {
        if self.read(Charge::of).is_none() {
            return Ok(Asked::nobody());
        }
        let place = self.seat.places.try_acquire().map_err(|_| too_many())?;
        let mut process = self.seat.process.lock().await;
        // It may have changed while others were asked.
        let Some(charge) = self.read(Charge::of) else {
            return Ok(Asked::nobody());
        };
        let mut tools = Tools::new(self, envelope, charge);
        let end = match self.begin(&mut process, envelope, &tools.charge).await? {
            Ok(due) => self.talk(&mut process, &due, envelope, &mut tools).await,
            Err(failure) => Err(failure),
        };
        let (mut lines, mut failed) = (tools.lines, None);
        let end = end.unwrap_or_else(|failure| {
            if failure.ends_the_process() {
                *process = None;
            }
            tracing::warn!(world = %self.name(), why = failure.told(), "the attached writer failed");
            failed = Some(failure.told());
            lines.push(self.line(envelope, "writer-failed", &json!({ "why": failure.to_string() })));
            End::Silence
        });
        if !lines.is_empty() {
            self.commit(&mut self.pen().await, lines).await?;
        }
        Ok(Asked {
            end,
            failed,
            _lease: Some((place, process)),
        })
    }

    /// Ends a writer that is not the world's any more. One that is being asked is ended when its
    /// beat is over.
    pub(super) async fn dismiss_writer(&self) {
        let mut process = self.seat.process.lock().await;
        if process
            .as_ref()
            .is_some_and(|process| !self.read(|world| process.charge.is_still(world)))
        {
            *process = None;
        }
    }

    /// Tells the beat and hears the writer out, within its time and while the server goes on.
    async fn talk(
        &self,
        seat: &mut MutexGuard<'_, Option<Process>>,
        due: &AnchorUpdate,
        envelope: &Envelope,
        tools: &mut Tools<'_>,
    ) -> Result<End, Failure> {
        let process = seat.as_mut().ok_or(Failure::Ended(None))?;
        let now = self.now();
        let message = self.read(|world| {
            let clock =
                beat::clock_at(world, envelope, now).unwrap_or_else(|_| world.clock.clone());
            beat_message(&clock, envelope, &tools.charge, due)
        });
        let seconds = self.read(|world| world.config.limits.writer_seconds);
        let talk = process.converse(message, tools);
        tokio::select! {
            end = tokio::time::timeout(Duration::from_secs(seconds), talk) => {
                end.unwrap_or(Err(Failure::TimeOut(seconds)))
            }
            () = self.keeper.stopping.cancelled() => Err(Failure::Stopping),
        }
    }

    /// Brings the writer to the boundary of a beat: running, and what it must know recorded. No
    /// time-out ends this: what is on its way to the log must be taken over.
    async fn begin(
        self: &Arc<Self>,
        seat: &mut MutexGuard<'_, Option<Process>>,
        envelope: &Envelope,
        charge: &Charge,
    ) -> Result<Result<AnchorUpdate, Failure>, LedgerError> {
        let serves = match seat.as_mut() {
            Some(process) => process.serves(charge).await,
            None => false,
        };
        if !serves {
            **seat = match Process::start(charge) {
                Ok(process) => Some(process),
                Err(failure) => return Ok(Err(failure)),
            };
        }
        let Some(process) = seat.as_mut() else {
            return Ok(Err(Failure::Ended(None)));
        };
        let due = self
            .due(
                process.life.clone(),
                charge.viewer(),
                Arc::clone(&envelope.request_id),
            )
            .await?;
        if let AnchorUpdate::New(beginning) = &due {
            self.record_epoch(envelope, beginning).await?;
            if beginning.reason == AnchorReason::Full {
                // The old one is told to end, and nobody waits until it has.
                *process = match Process::start(charge) {
                    Ok(process) => process,
                    Err(failure) => return Ok(Err(failure)),
                };
            }
            process.life.record_sent(beginning);
        }
        Ok(Ok(due))
    }

    /// What the writer is to be told. Making packs takes a while, so it is done beside everything
    /// else.
    async fn due(
        self: &Arc<Self>,
        life: WriterMemory,
        viewer: Viewer,
        request: Arc<str>,
    ) -> Result<AnchorUpdate, LedgerError> {
        let room = Arc::clone(self);
        let look = move || room.study(|world| life.next_anchor(&world.view(viewer), &request));
        self.keeper.blocking(look).await
    }

    /// Pack, anchor and epoch are one append; if it fails, the beat fails like any storage fault.
    async fn record_epoch(
        &self,
        envelope: &Envelope,
        beginning: &NewAnchor,
    ) -> Result<(), LedgerError> {
        let mut facts = vec![Fact::Epoch(Box::new(beginning.epoch.clone()))];
        if let Some(carried) = beginning.carried {
            facts.push(self.line(
                envelope,
                RehydrationCounts::LINE,
                &carried.to_json(beginning.epoch.number),
            ));
        }
        self.commit(&mut self.pen().await, facts).await?;
        if let Some(carried) = beginning.carried {
            self.keeper.rehydrations.count(carried);
        }
        Ok(())
    }

    fn line(&self, envelope: &Envelope, what: &str, details: &Value) -> Fact {
        Fact::AuditLine(AuditLine {
            at: self.now(),
            principal: ACTOR.to_owned(),
            what: what.to_owned(),
            request: Some(Arc::clone(&envelope.request_id)),
            details: details.to_string(),
        })
    }
}

fn too_many() -> Fault {
    Fault::new(
        Code::TooManyRequests,
        "",
        "sixteen beats wait for the world's writer already: try again later",
    )
}

/// A question as its line of audit shows it; of one that no tool takes, only its size.
fn shown(request: &Value) -> Value {
    match request.to_string().len() {
        ..=REQUEST_SHOWN_BYTES_MAX => request.clone(),
        bytes => json!({ "bytes": bytes }),
    }
}

fn beat_message(
    clock: &ClockState,
    envelope: &Envelope,
    charge: &Charge,
    due: &AnchorUpdate,
) -> Value {
    let persons = charge.persons.as_ref();
    let persons = persons.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut message = json!({
        "type": "beat",
        "request_id": &*envelope.request_id,
        "world_time": clock.time.as_str(),
        "timezone": clock.timezone.as_str(),
        "operator_text": envelope.input_text,
        "actor": ACTOR,
        "may_author": persons,
        "view": charge.viewer().as_str(),
    });
    let mut add = |key: &str, value: Value| {
        message
            .as_object_mut()
            .map(|fields| fields.insert(key.to_owned(), value))
    };
    match due {
        AnchorUpdate::Unchanged(anchor) => drop(add("scene_anchor_id", anchor.to_string().into())),
        AnchorUpdate::New(beginning) => {
            let pack = |text: &str| json::parse(text.as_bytes()).unwrap_or_default();
            add("scene_anchor", pack(&beginning.epoch.anchor));
            if let Some(rehydration) = &beginning.epoch.rehydration {
                add("rehydration", pack(rehydration));
            }
        }
    }
    message
}

/// The questions of one beat.
struct Tools<'a> {
    room: &'a Arc<Room>,
    envelope: &'a Envelope,
    charge: Charge,
    position: u32,
    asked: Arc<std::sync::Mutex<ToolLoop>>,
    /// It was told to finish: what it says now adds nothing.
    exhausted: bool,
    lines: Vec<Fact>,
}

impl<'a> Tools<'a> {
    fn new(room: &'a Arc<Room>, envelope: &'a Envelope, charge: Charge) -> Self {
        let asked = Arc::new(std::sync::Mutex::new(ToolLoop::new(Arc::clone(
            &envelope.request_id,
        ))));
        let position = room.read(World::position);
        Self {
            room,
            envelope,
            charge,
            position,
            asked,
            exhausted: false,
            lines: Vec::new(),
        }
    }

    /// Takes a proposal. One for another request is an answer to an earlier beat.
    fn proposed(&self, bundle: Value) -> Result<End, Failure> {
        let request = bundle.get("request_id").and_then(Value::as_str);
        match request {
            _ if self.exhausted => Err(Failure::LoopLimit),
            Some(request) if *request != *self.envelope.request_id => Err(Failure::OutOfStep),
            _ => Ok(End::Proposal(bundle)),
        }
    }

    /// Answers a question; the ledger is as it was when the beat began.
    async fn answer(&mut self, request: Value) -> Result<String, Failure> {
        let (room, position, asked) = (
            Arc::clone(self.room),
            self.position,
            Arc::clone(&self.asked),
        );
        let (viewer, grant) = (self.charge.viewer(), self.charge.grant());
        let answer = move || {
            let caller = Caller {
                identity: ACTOR.to_owned(),
                views: AllowedViews::OfGrant(grant),
            };
            let answered = room.study(|world| {
                let epoch = world.epoch().map(|epoch| EpochAnchor {
                    viewer: &viewer,
                    pack: &epoch.anchor,
                });
                let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                asked.call(&request, |request| {
                    tools::answer(world, position, &caller, request, epoch)
                })
            });
            (answered, request)
        };
        let answered = self.room.keeper.blocking(answer).await;
        let (answered, request) = answered.map_err(|error| Failure::Tool(error.to_string()))?;
        let fault = answered.as_ref().err().map(|fault| fault.code.word());
        self.lines.push(self.room.line(
            self.envelope,
            "tool",
            &json!({ "request": shown(&request), "fault": fault }),
        ));
        Ok(match answered {
            Ok(pack) => format!("{{\"type\":\"result\",\"pack\":{pack}}}"),
            Err(fault) => {
                self.exhausted |= fault.code == Code::LoopLimit;
                let error = json!({ "code": fault.code.word(), "path": fault.path, "message": fault.message });
                json!({ "type": "result", "error": error }).to_string()
            }
        })
    }
}

impl Process {
    fn start(charge: &Charge) -> Result<Self, Failure> {
        let (held, lifeline) = std::io::pipe().map_err(Failure::Start)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARDED, &charge.line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(held);
        let mut child = command
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::Start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::Ended(None));
        };
        Ok(Self {
            charge: charge.clone(),
            child,
            input,
            output: BufReader::new(output),
            life: WriterMemory::default(),
            _lifeline: lifeline,
        })
    }

    /// Whether this process runs, was started for this, and has nothing left to say: words that
    /// nobody asked for would be taken for the answer to the next beat.
    async fn serves(&mut self, charge: &Charge) -> bool {
        let runs = self.charge == *charge && matches!(self.child.try_wait(), Ok(None));
        runs && tokio::time::timeout(Duration::ZERO, self.output.fill_buf())
            .await
            .is_err()
    }

    /// How it ended: it has closed a pipe, which it mostly does by ending.
    async fn status(&mut self) -> Option<ExitStatus> {
        tokio::time::timeout(ENDING, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok)
    }

    /// Tells the beat and answers questions until the writer is done.
    async fn converse(&mut self, message: Value, tools: &mut Tools<'_>) -> Result<End, Failure> {
        self.send(message.to_string()).await?;
        loop {
            let said = self.receive().await?;
            let garbage = || Failure::Garbage(said.chars().take(200).collect());
            let mut value = json::parse(said.as_bytes()).map_err(|_| garbage())?;
            match value.get("type").and_then(Value::as_str) {
                Some("tool") => {
                    let request = value
                        .get_mut("request")
                        .map(Value::take)
                        .ok_or_else(garbage)?;
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
                    return tools.proposed(bundle);
                }
                Some("no_write") if tools.exhausted => return Err(Failure::LoopLimit),
                Some("no_write") => return Ok(End::Silence),
                _ => return Err(garbage()),
            }
        }
    }

    /// Sends a line. A writer that has ended reads no more, even if another process holds its pipe.
    async fn send(&mut self, mut line: String) -> Result<(), Failure> {
        line.push('\n');
        self.life.add_bytes(line.len());
        let Self { input, child, .. } = self;
        let send = async {
            input.write_all(line.as_bytes()).await?;
            input.flush().await
        };
        let sent = tokio::select! {
            biased;
            sent = send => sent,
            status = child.wait() => return Err(Failure::Ended(status.ok())),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                Err(Failure::Ended(self.status().await))
            }
            sent => Ok(sent?),
        }
    }

    async fn receive(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        let Self { output, child, .. } = self;
        let mut bounded = output.take(LINE_BYTES_MAX);
        tokio::select! {
            biased;
            read = bounded.read_until(b'\n', &mut line) => drop(read?),
            _ = child.wait() => last_words(self.output.get_ref(), &mut line)?,
        }
        self.life.add_bytes(line.len());
        if line.len() as u64 >= LINE_BYTES_MAX {
            return Err(Failure::Flood);
        }
        match line.pop() {
            Some(b'\n') => {
                String::from_utf8(line).map_err(|_| Failure::Garbage("no UTF-8".to_owned()))
            }
            Some(_) | None => Err(Failure::Ended(self.status().await)),
        }
    }
}

/// What a writer that has ended said before: it is in the pipe already. Another process that holds
/// the pipe is not waited for.
fn last_words(output: &ChildStdout, line: &mut Vec<u8>) -> std::io::Result<()> {
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
