//! Requests that write to a world, from the envelope to the answer.
//!
//! The steps are: check the caller's rights, check the request id, decide, append to the log. A
//! request that is rejected before the append leaves no trace, and its id stays free.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use turnkeep_ledger::acceptance::Actor;
use turnkeep_ledger::beat::{self, Beat, Offer};
use turnkeep_ledger::envelope::{self, Envelope, EnvelopeKind};
use turnkeep_ledger::fact::{Fact, RequestKind};
use turnkeep_ledger::ids::{self, Ids, Name};
use turnkeep_ledger::outcome::{self, RequestLookup};
use turnkeep_ledger::projection;
use turnkeep_ledger::{CitableEntries, Code, Fault, Grant, Principal, World};
use turnkeep_store::Refusal;
use turnkeep_types::Timestamp;

use super::error::LedgerError;
use super::in_flight::{RequestPermit, RequestSlot};
use super::world_handle::WorldHandle;
use super::writer::{self, WriterAnswer, WriterResult};
use super::{BundleCheck, LedgerAnswer};
use crate::memory::LARGE_FROM_BYTES;
use crate::write_rate::{AdmittedWrite, OverRate, WriteAllowance};

/// How long a repeated request waits for the first one.
const REPEAT_WAIT: Duration = Duration::from_secs(30);
/// Estimated cost of a JSON value besides its text, in bytes.
const VALUE_BYTES: usize = 8;
/// How often a beat is decided again when another writer appended first.
const DECISIONS_MAX: usize = 8;

/// A parsed request.
struct Request {
    principal: Principal,
    kind: RequestKind,
    envelope: Envelope,
    bundle: Option<Value>,
    expected_cursor: Option<String>,
    fingerprint: [u8; 32],
    workload: Workload,
    /// The limits under which the caller writes; none for the owner.
    allowance: Option<WriteAllowance>,
}

impl Request {
    /// Counts the request against the caller's limits, or rejects it.
    fn admit(&self, world: &Name) -> Result<Option<AdmittedWrite>, OverRate> {
        let Some(allowance) = &self.allowance else {
            return Ok(None);
        };
        let bytes = self.bundle.as_ref().map_or(0, text_bytes);
        allowance.admit(world, bytes).map(Some)
    }
}

/// How much processor time a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    /// Little: it may run on a thread of the runtime.
    Light,
    /// Much: it runs on a blocking thread, so that other requests do not wait.
    Heavy,
}

impl Workload {
    /// Estimates the workload of a request with these parts. It stops counting at the limit.
    fn estimate<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Self {
        // An explicit stack instead of recursion: it can stop as soon as the limit is reached.
        let mut open: Vec<&Value> = parts.into_iter().collect();
        let mut bytes = 0;
        while let Some(value) = open.pop() {
            bytes += VALUE_BYTES + value.as_str().map_or(0, str::len);
            if bytes > LARGE_FROM_BYTES {
                return Self::Heavy;
            }
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => open.extend(fields.values()),
                _ => {}
            }
        }
        Self::Light
    }

    /// Reads the world from an async task.
    async fn read_world<T>(self, handle: &WorldHandle, look: impl FnOnce(&World) -> T) -> T {
        match self {
            Self::Light => handle.read(look),
            Self::Heavy => handle.read_long_async(look).await,
        }
    }

    /// Runs work on this thread or on a blocking one.
    async fn run<T: Send + 'static>(
        self,
        handle: &WorldHandle,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        match self {
            Self::Light => Ok(work()),
            Self::Heavy => handle.services.run_blocking(work).await,
        }
    }
}

impl WorldHandle {
    /// Answers an invocation. A BEAT asks the world's attached writer, if there is one.
    pub(crate) async fn invoke(
        self: &Arc<Self>,
        who: &Principal,
        body: Value,
    ) -> Result<LedgerAnswer, LedgerError> {
        let (handle, who) = (Arc::clone(self), who.clone());
        let kind = body.pointer("/mode/kind");
        if kind.is_some_and(|kind| kind == "NO_OP") {
            // On a blocking thread however short the request is: its answer may be a whole page.
            let read = move || handle.answer_no_op(&who, &body);
            return self.services.run_blocking(read).await?;
        }
        let workload = Workload::estimate([&body]);
        let parse = move || handle.parse_invocation(who, &body, workload);
        let request = workload.run(self, parse).await??;
        self.answer(request).await
    }

    /// Answers a beat with its own bundle, within the caller's limits if it has any.
    pub(crate) async fn beat(
        self: &Arc<Self>,
        who: &Principal,
        envelope: Value,
        bundle: Value,
        expected_cursor: Option<String>,
        allowance: Option<WriteAllowance>,
    ) -> Result<LedgerAnswer, LedgerError> {
        let (handle, who) = (Arc::clone(self), who.clone());
        let workload = Workload::estimate([&envelope, &bundle]);
        let parse = move || handle.parse_beat(&who, &envelope, bundle, expected_cursor, workload);
        let mut request = workload.run(self, parse).await??;
        request.allowance = allowance;
        self.answer(request).await
    }

    /// Checks what would become of a beat, without doing it. A dry run costs the caller as much of
    /// its limits as a write, because it takes the server as much time.
    pub(crate) async fn check_beat(
        self: &Arc<Self>,
        who: &Principal,
        envelope: Value,
        bundle: Value,
        expected_cursor: Option<String>,
        allowance: Option<WriteAllowance>,
    ) -> Result<BundleCheck, LedgerError> {
        let (handle, who) = (Arc::clone(self), who.clone());
        let workload = Workload::estimate([&envelope, &bundle]);
        let work = move || {
            let mut request =
                handle.parse_beat(&who, &envelope, bundle, expected_cursor, workload)?;
            request.allowance = allowance;
            // Never committed, so the world's writers keep what they share.
            let _counted = request.admit(handle.name())?;
            let dry_run =
                |world: &World| find_rejection(world, &request, handle.now(), &mut handle.ids());
            let rejection = match workload {
                Workload::Light => handle.read(dry_run),
                Workload::Heavy => handle.read_long(dry_run),
            };
            Ok(BundleCheck {
                rejection: rejection?,
                bundle: request.bundle.unwrap_or_default(),
            })
        };
        workload.run(self, work).await?
    }

    /// Parses an envelope as a request of the operator.
    fn parse_invocation(
        &self,
        who: Principal,
        body: &Value,
        workload: Workload,
    ) -> Result<Request, Fault> {
        check_speaker(&who, body)?;
        let envelope = Envelope::parse(body)?;
        // Only the operator's words make the attached writer answer.
        if who != Principal::Owner {
            let message =
                "a BEAT by invocation is the operator's: bring your own bundle to …/beats";
            return Err(Fault::new(Code::Forbidden, "mode.kind", message));
        }
        self.check_cursors(&who, &envelope, None)?;
        Ok(Request {
            principal: who,
            kind: RequestKind::Invocation,
            envelope,
            bundle: None,
            expected_cursor: None,
            fingerprint: envelope::fingerprint(body, None),
            workload,
            allowance: None,
        })
    }

    /// Parses a beat with a bundle, and checks that the caller may write.
    fn parse_beat(
        &self,
        who: &Principal,
        envelope: &Value,
        bundle: Value,
        expected_cursor: Option<String>,
        workload: Workload,
    ) -> Result<Request, Fault> {
        check_speaker(who, envelope)?;
        if matches!(who, Principal::Person { write: false, .. }) {
            return Err(Fault::new(
                Code::Forbidden,
                "",
                "this token may read, not write",
            ));
        }
        // The answer repeats the bundle, so the fingerprint covers all of it.
        let fingerprint = envelope::fingerprint(envelope, Some(&bundle));
        let envelope = Envelope::parse(envelope)?;
        if envelope.kind == EnvelopeKind::NoOp {
            return Err(Fault::new(
                Code::EnvelopeInvalid,
                "envelope.mode.kind",
                "must be BEAT here",
            ));
        }
        self.check_cursors(who, &envelope, expected_cursor.as_deref())?;
        Ok(Request {
            principal: who.clone(),
            kind: RequestKind::Beat,
            envelope,
            bundle: Some(bundle),
            expected_cursor,
            fingerprint,
            workload,
            allowance: None,
        })
    }

    /// Rejects invalid cursors before the request id is looked up.
    fn check_cursors(
        &self,
        who: &Principal,
        envelope: &Envelope,
        expected: Option<&str>,
    ) -> Result<(), Fault> {
        self.read(|world| beat::check_cursors(&world.view(who.viewer()), envelope, expected))
    }

    /// Answers an envelope that only reads.
    fn answer_no_op(&self, who: &Principal, body: &Value) -> Result<LedgerAnswer, LedgerError> {
        check_speaker(who, body)?;
        let envelope = Envelope::parse(body)?;
        let cursor = envelope.cursor.as_deref();
        let limit = projection::PAGE_ENTRIES_MAX;
        let page = self.read_long(|world| {
            envelope.check_invoker(&world.config, &world.people)?;
            projection::read_page(
                &world.view(who.viewer()),
                &envelope.request_id,
                cursor,
                limit,
            )
        })?;
        let body = page.value.to_string().into();
        Ok(LedgerAnswer {
            input_ignored: envelope.speaks_as_operator(),
            ..LedgerAnswer::new(body)
        })
    }

    async fn answer(self: &Arc<Self>, request: Request) -> Result<LedgerAnswer, LedgerError> {
        match request.workload {
            Workload::Light => self.answer_on_this_thread(request).await,
            Workload::Heavy => {
                let (handle, runtime) = (Arc::clone(self), Handle::current());
                self.services
                    .run_blocking(move || runtime.block_on(handle.answer_on_this_thread(request)))
                    .await?
            }
        }
    }

    /// Answers a request, or waits for the same request if it is already running.
    async fn answer_on_this_thread(
        self: &Arc<Self>,
        request: Request,
    ) -> Result<LedgerAnswer, LedgerError> {
        let deadline = tokio::time::Instant::now() + REPEAT_WAIT;
        loop {
            let repeat = |world: &World| repeat_answer(world, &request);
            if let Some(answer) = request.workload.read_world(self, repeat).await? {
                return Ok(answer);
            }
            match self.in_flight.admit(
                &request.principal,
                &request.envelope.request_id,
                &request.fingerprint,
            )? {
                RequestSlot::Run(permit) => return self.execute_to_end(request, permit).await,
                RequestSlot::Wait(mut done) => {
                    // The channel never sends a value: it closes when the other request ends.
                    let ended = tokio::time::timeout_at(deadline, async {
                        while done.changed().await.is_ok() {}
                    });
                    ended.await.map_err(|_| in_progress_fault())?;
                }
            }
        }
    }

    /// Executes a request even if its caller disconnects: a commit that has begun must be applied.
    async fn execute_to_end(
        self: &Arc<Self>,
        request: Request,
        permit: RequestPermit,
    ) -> Result<LedgerAnswer, LedgerError> {
        let (handle, workload) = (Arc::clone(self), request.workload);
        let work = async move { handle.execute(request, permit).await };
        match workload {
            Workload::Light => self.services.run_to_end(work).await?,
            // A blocking thread runs to its end even if the caller is cancelled.
            Workload::Heavy => work.await,
        }
    }

    /// Asks the attached writer if needed, decides, and commits.
    async fn execute(
        self: &Arc<Self>,
        request: Request,
        _permit: RequestPermit,
    ) -> Result<LedgerAnswer, LedgerError> {
        // A repeated request never comes here, so it is answered however much was written.
        let admitted = request.admit(self.name())?;
        // Rejects what no proposal could change, so that the writer is not asked for nothing.
        let check = |world: &World| beat::check_request(world, &as_beat(&request, self.now()));
        request.workload.read_world(self, check).await?;
        // `asked` holds the writer until the beat is committed, so that the next beat sees this
        // one.
        let asked = match request.kind {
            RequestKind::Invocation => self.ask_writer(&request.envelope).await?,
            RequestKind::Beat => WriterAnswer::not_asked(),
        };
        for _ in 0..DECISIONS_MAX {
            let Some(answer) = self.decide_and_commit(&request, &asked).await? else {
                continue;
            };
            if !answer.rejected
                && !answer.replayed
                && let Some(admitted) = admitted
            {
                admitted.commit();
            }
            return Ok(answer);
        }
        Err(LedgerError::Abandoned(
            "the world's context is written to by somebody else".to_owned(),
        ))
    }

    /// Decides a request with the world as it is now, and commits it. Returns `None` if something
    /// else was appended first. The world then has those facts, so the caller can decide again.
    async fn decide_and_commit(
        &self,
        request: &Request,
        asked: &WriterAnswer<'_>,
    ) -> Result<Option<LedgerAnswer>, LedgerError> {
        let mut guard = self.lock_for_writing().await;
        let repeat = |world: &World| repeat_answer(world, request);
        // The write that we waited for may have been this same request.
        if let Some(answer) = request.workload.read_world(self, repeat).await? {
            return Ok(Some(answer));
        }
        let decide = |world: &World| {
            let beat = Beat {
                offer: make_offer(world, request, &asked.result),
                ..as_beat(request, self.now())
            };
            beat::decide(world, &beat, &mut self.ids())
        };
        let decision = request.workload.read_world(self, decide).await?;
        match self.commit(&mut guard, decision.facts).await {
            Ok(()) => {}
            Err(LedgerError::Refusal(Refusal::HeadMoved { .. })) => return Ok(None),
            Err(error) => return Err(error),
        }
        let request_id = &request.envelope.request_id;
        Ok(Some(LedgerAnswer {
            rejected: decision.rejected,
            outcome: self.read(|world| world.outcome(request_id).cloned()),
            writer_failed: asked.failed.clone(),
            ..LedgerAnswer::new(decision.response)
        }))
    }
}

/// The bytes of the texts that a bundle would write, whatever else is in it.
fn text_bytes(bundle: &Value) -> usize {
    let entries = bundle.get("entries").and_then(Value::as_array);
    let texts = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get("text")?.as_str());
    texts.map(str::len).sum()
}

/// Makes the answer of a repeated request again; `None` for a new request.
fn repeat_answer(world: &World, request: &Request) -> Result<Option<LedgerAnswer>, Fault> {
    let Request {
        principal,
        envelope,
        bundle,
        fingerprint,
        ..
    } = request;
    let RequestLookup::Repeated(earlier) =
        outcome::look_up_request(world, principal, &envelope.request_id, fingerprint)?
    else {
        return Ok(None);
    };
    let body = outcome::replay(world, &earlier, bundle.as_ref())?;
    let rejected = earlier.rejection.is_some() && earlier.kind == RequestKind::Beat;
    Ok(Some(LedgerAnswer {
        rejected,
        outcome: Some(earlier),
        replayed: true,
        ..LedgerAnswer::new(body)
    }))
}

/// Decides a beat without committing it, and returns why its bundle would be rejected. It does not
/// look up the request id, because the answer would reveal the ids of other callers.
fn find_rejection(
    world: &World,
    request: &Request,
    now: Timestamp,
    ids: &mut Ids,
) -> Result<Option<String>, Fault> {
    let offer = make_offer(world, request, &WriterResult::Silence);
    let decision = beat::decide(
        world,
        &Beat {
            offer,
            ..as_beat(request, now)
        },
        ids,
    )?;
    Ok(recorded_rejection(&decision.facts))
}

fn as_beat(request: &Request, now: Timestamp) -> Beat<'_> {
    Beat {
        principal: &request.principal,
        kind: request.kind,
        envelope: &request.envelope,
        fingerprint: request.fingerprint,
        offer: None,
        expected_cursor: request.expected_cursor.as_deref(),
        now,
    }
}

/// The bundle that the attached writer or the caller proposes, with its permissions.
fn make_offer<'a>(
    world: &World,
    request: &'a Request,
    attached: &'a WriterResult,
) -> Option<Offer<'a>> {
    if let WriterResult::Proposal(bundle) = attached {
        let grant = Grant::of_attached_writer(&world.config);
        return Some(Offer {
            bundle,
            actor: Actor::Exactly(writer::ACTOR),
            citable: CitableEntries::VisibleToAnyOf(grant.clone()),
            grant,
            may_set_scene: true,
        });
    }
    let bundle = request.bundle.as_ref()?;
    let actor = match &request.principal {
        // The owner may submit the work of any engine; a person only its own.
        Principal::Owner => Actor::AnyName,
        Principal::Person { id, .. } => Actor::Exactly(id.as_str()),
        Principal::System => Actor::Exactly(ids::SYSTEM),
    };
    Some(Offer {
        bundle,
        actor,
        grant: Grant::of_caller(&request.principal),
        citable: CitableEntries::VisibleTo(request.principal.viewer()),
        may_set_scene: request.principal == Principal::Owner,
    })
}

/// Rejects an envelope in which a person speaks as the operator. It runs before parsing: the
/// caller's rights come first, even for an invalid envelope.
fn check_speaker(who: &Principal, envelope: &Value) -> Result<(), Fault> {
    match envelope::operator_path(envelope).filter(|_| *who != Principal::Owner) {
        Some(path) => Err(Fault::new(
            Code::OperatorForbidden,
            path,
            "is the operator's: leave it out",
        )),
        None => Ok(()),
    }
}

/// The reason of the rejection in a decision's facts, if there is one.
fn recorded_rejection(facts: &[Fact]) -> Option<String> {
    facts.iter().find_map(|fact| match fact {
        Fact::Outcome(outcome) => outcome.rejection.clone(),
        _ => None,
    })
}

fn in_progress_fault() -> Fault {
    Fault::new(
        Code::InProgress,
        "request_id",
        "is of a request that still runs: ask again",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_or_many_values_make_a_heavy_workload() {
        for (document, workload) in [
            (json!({ "a": "x".repeat(1000) }), Workload::Light),
            (
                json!({ "a": [{ "b": "x".repeat(LARGE_FROM_BYTES) }] }),
                Workload::Heavy,
            ),
            (json!(vec![0; 100]), Workload::Light),
            (json!(vec![0; LARGE_FROM_BYTES / 2]), Workload::Heavy),
        ] {
            assert_eq!(Workload::estimate([&Value::Null, &document]), workload);
        }
    }
}
