//! A request of a world, from its envelope to its answer.
//!
//! The order is: rights, then the id, then the decision, then the log. What is refused before the
//! log leaves no trace and its id stays free.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use turnkeep_ledger::acceptance::Actor;
use turnkeep_ledger::beat::{self, Beat, Offer};
use turnkeep_ledger::envelope::{self, Envelope, EnvelopeKind};
use turnkeep_ledger::fact::{Fact, RequestKind};
use turnkeep_ledger::ids::Ids;
use turnkeep_ledger::outcome::{self, RequestLookup};
use turnkeep_ledger::{CitableEntries, Code, Fault, Grant, Principal, World};
use turnkeep_ledger::{projection, proposal};
use turnkeep_store::Refusal;
use turnkeep_types::Timestamp;

use super::Answer;
use super::error::LedgerError;
use super::in_flight::{Entry, Pass};
use super::room::Room;
use super::writer::{self, Asked, End};
use crate::memory::LARGE_FROM_BYTES;

/// How long the same request waits for itself.
const WAIT_FOR_ITSELF: Duration = Duration::from_secs(30);
/// What a value takes besides its text, about.
const VALUE_BYTES: usize = 8;
/// How often a beat is decided again when somebody wrote past us.
const DECISIONS_MAX: usize = 8;

/// A request as it came.
struct Request {
    principal: Principal,
    kind: RequestKind,
    envelope: Envelope,
    bundle: Option<Value>,
    expected_cursor: Option<String>,
    fingerprint: [u8; 32],
    load: Load,
}

/// How long it takes to look at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Not worth mentioning.
    Light,
    /// So long that it is done beside everything else.
    Heavy,
}

impl Load {
    /// What a request with these parts takes.
    fn of<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Self {
        let (mut left, mut open): (usize, Vec<&Value>) =
            (LARGE_FROM_BYTES, parts.into_iter().collect());
        while let Some(value) = open.pop() {
            let Some(rest) = left.checked_sub(VALUE_BYTES + value.as_str().map_or(0, str::len))
            else {
                return Self::Heavy;
            };
            left = rest;
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => open.extend(fields.values()),
                _ => {}
            }
        }
        Self::Light
    }

    /// Looks at the world on the thread of a task.
    async fn look<T>(self, room: &Room, look: impl FnOnce(&World) -> T) -> T {
        match self {
            Self::Light => room.read(look),
            Self::Heavy => room.study_here(look).await,
        }
    }

    /// Does the work, here or beside everything else.
    async fn carry<T: Send + 'static>(
        self,
        room: &Room,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        match self {
            Self::Light => Ok(work()),
            Self::Heavy => room.keeper.blocking(work).await,
        }
    }
}

impl Room {
    /// Answers an invocation: the world's own writer is asked, if it has one.
    pub(crate) async fn invoke(
        self: &Arc<Self>,
        who: &Principal,
        body: Value,
    ) -> Result<Answer, LedgerError> {
        let (room, who) = (Arc::clone(self), who.clone());
        if body
            .pointer("/mode/kind")
            .is_some_and(|kind| kind == "NO_OP")
        {
            return self.keeper.blocking(move || room.look(&who, &body)).await?;
        }
        let load = Load::of([&body]);
        let request = load
            .carry(self, move || room.invoked(who, &body, load))
            .await??;
        self.answer(request).await
    }

    /// Answers a beat that brings its own bundle.
    pub(crate) async fn beat(
        self: &Arc<Self>,
        who: &Principal,
        envelope: Value,
        bundle: Value,
        expected_cursor: Option<String>,
    ) -> Result<Answer, LedgerError> {
        let (room, who, load) = (
            Arc::clone(self),
            who.clone(),
            Load::of([&envelope, &bundle]),
        );
        let read = move || room.brought(&who, &envelope, bundle, expected_cursor, load);
        let request = load.carry(self, read).await??;
        self.answer(request).await
    }

    /// What would become of such a beat. Nothing happens, and ids that it would get are not told.
    pub(crate) async fn check(
        self: &Arc<Self>,
        who: &Principal,
        envelope: Value,
        bundle: Value,
        expected_cursor: Option<String>,
    ) -> Result<Answer, LedgerError> {
        let (room, who, load) = (
            Arc::clone(self),
            who.clone(),
            Load::of([&envelope, &bundle]),
        );
        let work = move || {
            let request = room.brought(&who, &envelope, bundle, expected_cursor, load)?;
            let would_be = |world: &World| rejection(world, &request, room.now(), &mut room.ids());
            let reason = match load {
                Load::Light => room.read(would_be),
                Load::Heavy => room.study(would_be),
            };
            let reason = reason?;
            Ok(checked(request, reason.as_deref()))
        };
        load.carry(self, work).await?
    }

    /// An envelope as a request of the operator's.
    fn invoked(&self, who: Principal, body: &Value, load: Load) -> Result<Request, Fault> {
        check_speaker(&who, body)?;
        let envelope = Envelope::parse(body)?;
        if who != Principal::Owner {
            let message =
                "a BEAT by invocation is the operator's: bring your own bundle to …/beats";
            return Err(Fault::new(Code::Forbidden, "mode.kind", message));
        }
        self.check_cursors(&who, &envelope, None)?;
        let (fingerprint, kind) = (envelope::fingerprint(body, None), RequestKind::Invocation);
        Ok(Request {
            principal: who,
            kind,
            envelope,
            bundle: None,
            expected_cursor: None,
            fingerprint,
            load,
        })
    }

    /// A beat's parts as a request, if who asks may bring a bundle.
    fn brought(
        &self,
        who: &Principal,
        envelope: &Value,
        bundle: Value,
        expected_cursor: Option<String>,
        load: Load,
    ) -> Result<Request, Fault> {
        check_speaker(who, envelope)?;
        if matches!(who, Principal::Person { write: false, .. }) {
            return Err(Fault::new(
                Code::Forbidden,
                "",
                "this token may read, not write",
            ));
        }
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
        let (principal, kind, bundle) = (who.clone(), RequestKind::Beat, Some(bundle));
        Ok(Request {
            principal,
            kind,
            envelope,
            bundle,
            expected_cursor,
            fingerprint,
            load,
        })
    }

    /// What is wrong in itself is refused before it is asked whether the id was used.
    fn check_cursors(
        &self,
        who: &Principal,
        envelope: &Envelope,
        expected: Option<&str>,
    ) -> Result<(), Fault> {
        self.read(|world| beat::check_cursors(&world.view(who.viewer()), envelope, expected))
    }

    /// Answers an envelope that only reads.
    fn look(&self, who: &Principal, body: &Value) -> Result<Answer, LedgerError> {
        check_speaker(who, body)?;
        let envelope = Envelope::parse(body)?;
        let cursor = envelope.cursor.as_deref();
        let limit = projection::PAGE_ENTRIES_MAX;
        let page = self.study(|world| {
            envelope.check_invoker(&world.config, &world.people)?;
            projection::read_page(
                &world.view(who.viewer()),
                &envelope.request_id,
                cursor,
                limit,
            )
        })?;
        let body = page.value.to_string().into();
        Ok(Answer {
            input_ignored: envelope.speaks_as_operator(),
            ..Answer::new(body)
        })
    }

    async fn answer(self: &Arc<Self>, request: Request) -> Result<Answer, LedgerError> {
        match request.load {
            Load::Light => self.answer_here(request).await,
            Load::Heavy => {
                let (room, runtime) = (Arc::clone(self), Handle::current());
                self.keeper
                    .blocking(move || runtime.block_on(room.answer_here(request)))
                    .await?
            }
        }
    }

    /// Answers on the thread that it is called on, however long that takes.
    async fn answer_here(self: &Arc<Self>, request: Request) -> Result<Answer, LedgerError> {
        let give_up = tokio::time::Instant::now() + WAIT_FOR_ITSELF;
        loop {
            if let Some(answer) = request
                .load
                .look(self, |world| answered_before(world, &request))
                .await?
            {
                return Ok(answer);
            }
            match self.flights.enter(
                &request.principal,
                &request.envelope.request_id,
                &request.fingerprint,
            )? {
                Entry::Ours(pass) => {
                    let (room, load) = (Arc::clone(self), request.load);
                    let work = async move { room.carry_out(request, pass).await };
                    return match load {
                        Load::Light => self.keeper.finish(work).await?,
                        // On a thread of its own it is carried out whoever goes away.
                        Load::Heavy => work.await,
                    };
                }
                Entry::Wait(mut done) => {
                    // The channel never carries a word: it closes when the other one ends.
                    let ended = tokio::time::timeout_at(give_up, async {
                        while done.changed().await.is_ok() {}
                    });
                    ended.await.map_err(|_| in_progress())?;
                }
            }
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        request: Request,
        _pass: Pass,
    ) -> Result<Answer, LedgerError> {
        let load = request.load;
        load.look(self, |world| {
            beat::check_request(world, &as_beat(&request, self.now()))
        })
        .await?;
        // The lease is held until the beat is committed.
        let asked = match request.kind {
            RequestKind::Invocation => self.ask_writer(&request.envelope).await?,
            RequestKind::Beat => Asked::nobody(),
        };
        for _ in 0..DECISIONS_MAX {
            let mut pen = self.pen().await;
            // The one that we waited for may have been this very request.
            if let Some(answer) = load
                .look(self, |world| answered_before(world, &request))
                .await?
            {
                return Ok(answer);
            }
            let decide = |world: &World| {
                let beat = Beat {
                    offer: offer(world, &request, &asked.end),
                    ..as_beat(&request, self.now())
                };
                beat::decide(world, &beat, &mut self.ids())
            };
            let decision = load.look(self, decide).await?;
            match self.commit(&mut pen, decision.facts).await {
                Ok(()) => {
                    let (rejected, body, writer_failed) =
                        (decision.rejected, decision.response, asked.failed);
                    return Ok(Answer {
                        rejected,
                        writer_failed,
                        ..Answer::new(body)
                    });
                }
                Err(LedgerError::Refusal(Refusal::HeadMoved { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(LedgerError::Abandoned(
            "the world's context is written to by somebody else".to_owned(),
        ))
    }
}

/// The answer that a request got before, if it is one that was made before.
fn answered_before(world: &World, request: &Request) -> Result<Option<Answer>, Fault> {
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
    Ok(Some(Answer {
        rejected,
        replayed: true,
        ..Answer::new(body)
    }))
}

/// Why a bundle would be rejected, if it would be. Whether its id was used before is not looked up:
/// the answer would tell whoever guesses the ids of others.
fn rejection(
    world: &World,
    request: &Request,
    now: Timestamp,
    ids: &mut Ids,
) -> Result<Option<String>, Fault> {
    let offer = offer(world, request, &End::Silence);
    let decision = beat::decide(
        world,
        &Beat {
            offer,
            ..as_beat(request, now)
        },
        ids,
    )?;
    Ok(rejection_in(&decision.facts))
}

/// What is answered to somebody who asks what would become of a bundle.
fn checked(request: Request, reason: Option<&str>) -> Answer {
    let mut form = request.bundle.unwrap_or_default();
    match reason {
        Some(reason) => form = proposal::rejected_form(&form, reason),
        None => form["rejection"] = json!({ "rejected": false, "reason": null }),
    }
    let body = json!({ "bundle": form }).to_string().into();
    Answer {
        rejected: reason.is_some(),
        ..Answer::new(body)
    }
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

/// What is proposed, by whoever brought a bundle or by the world's own writer.
fn offer<'a>(world: &World, request: &'a Request, attached: &'a End) -> Option<Offer<'a>> {
    if let End::Proposal(bundle) = attached {
        let grant = Grant::of_attached_writer(&world.config);
        let (actor, citable) = (
            Actor::Exactly(writer::ACTOR),
            CitableEntries::VisibleToAnyOf(grant.clone()),
        );
        return Some(Offer {
            bundle,
            actor,
            grant,
            citable,
            may_set_scene: true,
        });
    }
    let bundle = request.bundle.as_ref()?;
    let actor = match &request.principal {
        Principal::Owner => Actor::AnyName,
        Principal::Person { id, .. } => Actor::Exactly(id.as_str()),
    };
    Some(Offer {
        bundle,
        actor,
        grant: Grant::of_caller(&request.principal),
        citable: CitableEntries::VisibleTo(request.principal.viewer()),
        may_set_scene: request.principal == Principal::Owner,
    })
}

/// Only the operator speaks as the operator. Who asks comes first, so an envelope need not be valid
/// to be refused.
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

/// Why a proposal is rejected, if it is, by what would be recorded.
fn rejection_in(facts: &[Fact]) -> Option<String> {
    facts.iter().find_map(|fact| match fact {
        Fact::Outcome(outcome) => outcome.rejection.clone(),
        _ => None,
    })
}

fn in_progress() -> Fault {
    Fault::new(
        Code::InProgress,
        "request_id",
        "is of a request that still runs: ask again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_to_look_at_is_known_by_its_words_or_its_parts() {
        for (document, load) in [
            (json!({ "a": "x".repeat(1000) }), Load::Light),
            (
                json!({ "a": [{ "b": "x".repeat(LARGE_FROM_BYTES) }] }),
                Load::Heavy,
            ),
            (json!(vec![0; 100]), Load::Light),
            (json!(vec![0; LARGE_FROM_BYTES / 2]), Load::Heavy),
        ] {
            assert_eq!(Load::of([&Value::Null, &document]), load);
        }
    }
}
