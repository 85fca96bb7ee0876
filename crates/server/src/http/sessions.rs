//! Sessions of wrapped terminals and their captured turns: the requests of the broker as JSON.
//!
//! For the owner, on a loopback listener, and only if the broker runs in this process. Anywhere else
//! each route answers 404, with a `reason` that a page can explain. Captured turns are in memory;
//! nothing here makes one durable unless the request asks for that.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use turnkeep_session::broker::{HeldTurn, latest_session, sessions_called};
use turnkeep_types::broker::{
    Deliver, GetTurn, ListTurns, Paste, Reason, Refusal, Reply, Request, SessionInfo, TurnForm,
    TurnInfo,
};
use turnkeep_wire::{ErrorCode, ErrorReason, json};

use super::content::respond_with_json_text;
use super::extract::{At, Query, bad_path, check_escapes, parse_json};
use super::once::OnceRequest;
use super::query::{CapturedTurnQuery, CapturedTurnsQuery, NoQuery};
use crate::broker::InProcessBroker;
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// About how many bytes of memory it takes to write one byte of a turn: its JSON, as it grows.
const MEMORY_PER_TURN_BYTE: usize = 3;

/// The broker of this process, if it may be used over this listener.
pub(crate) fn local_broker(shared: &Shared) -> Result<InProcessBroker, ApiError> {
    within_the_machine(shared.addrs.http)?;
    let message = "no broker runs in this server: `turnkeep up` starts one if XDG_RUNTIME_DIR is \
        set and no other broker runs";
    let broker = shared.broker.get().cloned();
    broker.ok_or_else(|| ApiError::not_found(message).with(ErrorReason::KEY, "no_broker"))
}

/// Refuses a listener that other machines can reach, whatever token they have: a terminal shows
/// more than the owner means to share.
pub(crate) fn within_the_machine(listener: SocketAddr) -> Result<(), ApiError> {
    if listener.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message = "sessions and terminals are shown only on a loopback listener";
    Err(ApiError::not_found(message).with(ErrorReason::KEY, "not_loopback"))
}

/// The sessions with a wrapper, and those that have ended and whose turns are still kept.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions",
    responses((status = 200, description = "The sessions", body = json::SessionList)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Json<json::SessionList>, ApiError> {
    let sessions = local_broker(&shared)?.list_sessions(true).await?;
    Ok(Json(json::SessionList {
        sessions: sessions.into_iter().map(session_json).collect(),
    }))
}

/// The turns of a session that are still kept, newest first.
#[utoipa::path(get, path = "/v1/sessions/{session}/turns", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("limit" = Option<u32>, Query, description = "At most so many; all unless given"),
        ("all" = Option<bool>, Query, description = "`1` also lists what was printed without a submitted prompt"),
    ),
    responses((status = 200, description = "The turns", body = json::CapturedTurnList)))]
pub(crate) async fn turns(
    State(shared): State<Arc<Shared>>,
    At(session): At<String>,
    Query(query): Query<CapturedTurnsQuery>,
) -> Result<Json<json::CapturedTurnList>, ApiError> {
    let broker = local_broker(&shared)?;
    let session = KnownSessions::read(&broker).await?.find_id(&session)?;
    let list = ListTurns {
        session: session.clone(),
        limit: query.limit,
        preview: true,
        all: query.all,
    };
    match broker.request(vec![Request::ListTurns(list)]).await? {
        Reply::Turns(turns) => Ok(Json(json::CapturedTurnList {
            session,
            turns: turns.into_iter().map(info_json).collect(),
        })),
        _ => Err(unexpected_reply()),
    }
}

/// A captured turn with its text.
#[utoipa::path(get, path = "/v1/sessions/{session}/turns/{seq}", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("seq" = json::Id, Path),
        ("raw" = Option<bool>, Query, description = "`1` adds the content and, if they were kept, the terminal's own bytes, both as base64"),
    ),
    responses((status = 200, description = "The turn", body = json::CapturedTurn)))]
pub(crate) async fn turn(
    State(shared): State<Arc<Shared>>,
    at: AtTurn,
    Query(query): Query<CapturedTurnQuery>,
) -> Result<Response, ApiError> {
    let broker = local_broker(&shared)?;
    let session = KnownSessions::read(&broker).await?.find_id(&at.session)?;
    let turn = find_turn(&broker, &format!("{session}:{}", at.seq))?;
    let sizes = [TurnForm::Text, TurnForm::Content, TurnForm::Raw]
        .map(|form| turn.bytes(form).map_or(0, |bytes| bytes.len()));
    let [text_bytes, content_bytes, raw_bytes] = sizes;
    let bytes = if query.raw {
        text_bytes + content_bytes + raw_bytes
    } else {
        text_bytes
    };
    if bytes < LARGE_FROM_BYTES {
        return Ok(respond_with_json_text(turn_text(&turn, query.raw)?));
    }
    let permit = shared.memory.acquire(bytes * MEMORY_PER_TURN_BYTE).await?;
    let write = move || turn_text(&turn, query.raw);
    let text = shared.work_on_large(write).await?;
    Ok(respond_with_json_text(permit.hold(text)))
}

/// Puts a turn of the session into the relay buffer.
#[utoipa::path(post, path = "/v1/sessions/{session}/capture", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key gets the first answer"),
    ),
    request_body = json::ChooseCapturedTurn,
    responses((status = 200, description = "It is in the relay buffer", body = json::Captured,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn capture(
    State(shared): State<Arc<Shared>>,
    At(session): At<String>,
    Query(NoQuery): Query<NoQuery>,
    request: OnceRequest,
) -> Result<Response, ApiError> {
    let broker = local_broker(&shared)?;
    let body = read_body(&shared, request.body())?;
    let act = capture_turn(broker, session, body);
    request.answer(&shared, act).await
}

async fn capture_turn(
    broker: InProcessBroker,
    session: String,
    body: json::ChooseCapturedTurn,
) -> Result<json::Captured, ApiError> {
    let session = KnownSessions::read(&broker).await?.find_id(&session)?;
    match broker
        .request(vec![capture_request(session, body.seq)])
        .await?
    {
        Reply::Captured { turn_id, size } => Ok(json::Captured { turn_id, size }),
        _ => Err(unexpected_reply()),
    }
}

/// Types the relay buffer into the session's program.
#[utoipa::path(post, path = "/v1/sessions/{session}/paste", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key gets the first answer"),
    ),
    request_body = json::PasteCaptured,
    responses((status = 200, description = "The bytes were sent to the program", body = json::Delivered,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn paste(
    State(shared): State<Arc<Shared>>,
    At(session): At<String>,
    Query(NoQuery): Query<NoQuery>,
    request: OnceRequest,
) -> Result<Response, ApiError> {
    let broker = local_broker(&shared)?;
    let body = read_body(&shared, request.body())?;
    let act = paste_buffer(broker, session, body);
    request.answer(&shared, act).await
}

async fn paste_buffer(
    broker: InProcessBroker,
    session: String,
    body: json::PasteCaptured,
) -> Result<json::Delivered, ApiError> {
    let sessions = KnownSessions::read(&broker).await?;
    let session = sessions.find_id(&session)?;
    let turn = body.turn.as_deref().map(|name| sessions.find_turn(name));
    let capture = turn.transpose()?;
    let paste = |form| {
        Request::Paste(Paste {
            session: session.clone(),
            form,
            bracketed: body.bracketed,
            unless_blocked: !body.force,
        })
    };
    // The broker gets both at once, so no other capture comes in between.
    let requests = |form| capture.clone().into_iter().chain([paste(form)]).collect();
    request_in_form(&broker, body.raw, requests).await?;
    Ok(json::Delivered {
        sink: "inject".to_owned(),
        session: Some(session),
        context_id: None,
        turn_id: None,
    })
}

/// Captures a turn of the session and delivers it to a sink.
#[utoipa::path(post, path = "/v1/sessions/{session}/deliver", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key gets the first answer"),
    ),
    request_body = json::DeliverCaptured,
    responses((status = 200, description = "The sink has it", body = json::Delivered,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn deliver(
    State(shared): State<Arc<Shared>>,
    At(session): At<String>,
    Query(NoQuery): Query<NoQuery>,
    request: OnceRequest,
) -> Result<Response, ApiError> {
    let broker = local_broker(&shared)?;
    let body = parse_json(request.body(), &shared.config.limits)?;
    let act = deliver_turn(broker, session, body);
    request.answer(&shared, act).await
}

async fn deliver_turn(
    broker: InProcessBroker,
    session: String,
    body: json::DeliverCaptured,
) -> Result<json::Delivered, ApiError> {
    let sessions = KnownSessions::read(&broker).await?;
    let from = sessions.find_id(&session)?;
    let to = body.session.as_deref().map(|name| sessions.find_id(name));
    let to = to.transpose()?;
    let deliver = |form| {
        Request::Deliver(Deliver {
            sink: body.sink.clone(),
            session: to.clone(),
            path: body.path.clone(),
            run: body.run.clone(),
            node: body.node.clone(),
            form,
            bracketed: body.bracketed,
            unless_blocked: !body.force,
        })
    };
    let capture = capture_request(from, body.seq);
    let requests = |form| vec![capture.clone(), deliver(form)];
    let reply = request_in_form(&broker, body.raw, requests).await?;
    let stored = match reply {
        Reply::Stored(stored) => Some(stored),
        _ => None,
    };
    Ok(json::Delivered {
        sink: body.sink,
        session: to,
        context_id: stored.map(|stored| stored.context.into()),
        turn_id: stored.map(|stored| stored.turn.into()),
    })
}

/// Appends a turn of the session to the store, once. The relay buffer stays as it is.
#[utoipa::path(post, path = "/v1/sessions/{session}/keep", tag = "sessions",
    params(
        ("session" = String, Path, description = "Its id, a unique head of it, its name, or `@last`"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key gets the first answer"),
    ),
    request_body = json::ChooseCapturedTurn,
    responses((status = 200, description = "It is durable", body = json::Kept,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn keep(
    State(shared): State<Arc<Shared>>,
    At(session): At<String>,
    Query(NoQuery): Query<NoQuery>,
    request: OnceRequest,
) -> Result<Response, ApiError> {
    let broker = local_broker(&shared)?;
    let body = read_body(&shared, request.body())?;
    let act = keep_turn(broker, session, body);
    request.answer(&shared, act).await
}

async fn keep_turn(
    broker: InProcessBroker,
    session: String,
    body: json::ChooseCapturedTurn,
) -> Result<json::Kept, ApiError> {
    let session = KnownSessions::read(&broker).await?.find_id(&session)?;
    let captured = match body.seq {
        Some(seq) => format!("{session}:{seq}"),
        None => latest_turn(&broker, session).await?,
    };
    let turn = find_turn(&broker, &captured)?;
    let stored = broker.keep(turn).await?;
    Ok(json::Kept {
        captured,
        context_id: stored.context.into(),
        turn_id: stored.turn.into(),
    })
}

/// A session and the number of a turn in a path.
pub(crate) struct AtTurn {
    session: String,
    seq: u64,
}

impl FromRequestParts<Arc<Shared>> for AtTurn {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Shared>) -> Result<Self, ApiError> {
        check_escapes(parts)?;
        let Path((session, seq)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(bad_path)?;
        // Rust's parser also accepts `+7`, which would be a second path to the same turn.
        let is_number = !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit());
        match seq.parse() {
            Ok(number) if is_number => Ok(Self {
                session,
                seq: number,
            }),
            _ => Err(ApiError::bad_request(format!(
                "`{seq}` is not the number of a turn"
            ))),
        }
    }
}

/// The sessions by the names that people give them.
struct KnownSessions(Vec<SessionInfo>);

impl KnownSessions {
    async fn read(broker: &InProcessBroker) -> Result<Self, ApiError> {
        Ok(Self(broker.list_sessions(false).await?))
    }

    /// The id of the session with this name, by the rules of the command line.
    fn find_id(&self, name: &str) -> Result<String, ApiError> {
        let found = match name {
            "@last" => latest_session(&self.0).into_iter().collect(),
            _ => sessions_called(&self.0, name),
        };
        match found[..] {
            [one] => Ok(one.session.clone()),
            [] => Err(Refusal::new(
                Reason::SessionNotFound,
                format!("no session is called `{name}`, or it has ended and is not kept any more"),
            )
            .into()),
            ref many => {
                let ids: Vec<&str> = many.iter().map(|one| one.session.as_str()).collect();
                let message = format!("`{name}` may be any of {} sessions", ids.len());
                Err(ApiError::new(ErrorCode::Conflict, message).with("sessions", ids))
            }
        }
    }

    /// The request that captures the turn with this name: `SESSION:NUMBER`, or a session, which means
    /// its latest turn.
    fn find_turn(&self, name: &str) -> Result<Request, ApiError> {
        let numbered = name.rsplit_once(':');
        let numbered = numbered.and_then(|(session, seq)| Some((session, seq.parse().ok()?)));
        match numbered {
            Some((session, seq)) => {
                let session = self.find_id(session)?;
                Ok(capture_request(session, Some(json::Id(seq))))
            }
            None => Ok(capture_request(self.find_id(name)?, None)),
        }
    }
}

fn capture_request(session: String, seq: Option<json::Id>) -> Request {
    match seq {
        Some(seq) => Request::CaptureById {
            turn_id: format!("{session}:{seq}"),
        },
        None => Request::Capture { session },
    }
}

async fn latest_turn(broker: &InProcessBroker, session: String) -> Result<String, ApiError> {
    let list = ListTurns {
        session,
        limit: Some(1),
        ..ListTurns::default()
    };
    match broker.request(vec![Request::ListTurns(list)]).await? {
        Reply::Turns(turns) => match turns.into_iter().next() {
            Some(turn) => Ok(turn.turn_id),
            None => Err(Refusal::from(Reason::NoTurn).into()),
        },
        _ => Err(unexpected_reply()),
    }
}

fn find_turn(broker: &InProcessBroker, turn_id: &str) -> Result<HeldTurn, ApiError> {
    Ok(broker.find_turn(GetTurn {
        turn_id: turn_id.to_owned(),
        raw: false,
    })?)
}

/// Makes requests that deliver the text, or with `raw` the bytes: the terminal's own where they were
/// kept, else the content.
async fn request_in_form(
    broker: &InProcessBroker,
    raw: bool,
    requests: impl Fn(TurnForm) -> Vec<Request>,
) -> Result<Reply, Refusal> {
    if !raw {
        return broker.request(requests(TurnForm::Text)).await;
    }
    match broker.request(requests(TurnForm::Raw)).await {
        Err(refusal) if refusal.reason == Reason::NoRaw => {
            broker.request(requests(TurnForm::Content)).await
        }
        done => done,
    }
}

/// Reads a body whose fields are all optional, so that it may be left out.
fn read_body<T: DeserializeOwned + Default>(shared: &Shared, body: &Bytes) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    parse_json(body, &shared.config.limits)
}

fn unexpected_reply() -> ApiError {
    ApiError::internal("the broker gave the reply of another request")
}

fn session_json(session: SessionInfo) -> json::Session {
    json::Session {
        session: session.session,
        name: session.name,
        preset: session.preset,
        pid: session.pid,
        child_pid: session.child_pid,
        state: session.state.map(|state| state.word().to_owned()),
        since: session.since.map(json::Time),
        signal: session.signal,
        unanswered: session.unanswered,
        has_turn: session.has_turn,
        turns: session.turns,
        last_turn_at: session.last_turn_at.map(json::Time),
        connected: session.connected,
        shared: session.shared,
        preview: session.preview,
    }
}

fn info_json(info: TurnInfo) -> json::CapturedTurnInfo {
    let seq = info.turn_id.rsplit_once(':').map(|(_, seq)| seq.parse());
    json::CapturedTurnInfo {
        seq: json::Id(seq.and_then(Result::ok).unwrap_or(0)),
        turn_id: info.turn_id,
        timestamp: json::Time(info.timestamp),
        byte_length: info.byte_length,
        interrupted: info.interrupted,
        truncated: info.truncated,
        incomplete: info.incomplete,
        unprompted: info.unprompted,
        preview: info.preview,
    }
}

/// The JSON of a turn.
fn turn_text(turn: &HeldTurn, raw: bool) -> Result<Vec<u8>, ApiError> {
    let text = turn.bytes(TurnForm::Text).unwrap_or_default();
    let encoded = |form| {
        let bytes = turn.bytes(form).filter(|_| raw);
        bytes.map(|bytes| STANDARD.encode(bytes))
    };
    let facts = turn.facts();
    let turn = json::CapturedTurn {
        info: info_json(facts.info),
        session: facts.session,
        name: facts.name,
        preset: facts.preset,
        text: String::from_utf8_lossy(&text).into_owned(),
        text_source: facts.text_source,
        content_b64: encoded(TurnForm::Content),
        raw_b64: encoded(TurnForm::Raw),
        raw_truncated: raw && facts.raw_truncated,
    };
    serde_json::to_vec(&turn).map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_shown_only_where_nobody_else_can_listen() {
        for (listener, expect) in [
            ("127.0.0.1:80", true),
            ("127.8.8.8:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("192.0.2.1:80", false),
            ("[::ffff:192.0.2.1]:80", false),
        ] {
            let shown = within_the_machine(listener.parse().unwrap());
            assert_eq!(shown.is_ok(), expect, "{listener}");
        }
    }
}
