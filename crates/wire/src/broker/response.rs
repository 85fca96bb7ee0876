//! Messages of the broker.
//!
//! A response has no type of its own. Its fields determine the reply: each kind of reply has a
//! field that no other kind has.

use bytes::Bytes;
use turnkeep_types::broker::{
    AgentState, FoundTurn, Inject, Reason, Refusal, Reply, ServerMessage, SessionInfo, Stored,
    TurnInfo,
};
use turnkeep_types::msgpack::MsgpackWriter;
use turnkeep_types::{ContextId, TurnId};

use super::fields::{BadField, Fields, Malformed, required};
use super::frame::{HEADER_BYTES, MessageTooLong, seal};
use super::pack::MapWriter;
use super::request::{decode_shown, put_shown};

/// Writes a message as a frame.
pub fn encode_message(message: &ServerMessage) -> Result<Bytes, MessageTooLong> {
    let mut frame = MsgpackWriter::append_to(vec![0; HEADER_BYTES]);
    let mut map = MapWriter::begin(&mut frame);
    match message {
        ServerMessage::HelloAck(outcome) => {
            map.text("type", "hello_ack").number("id", 0);
            put_status(outcome.as_ref().err(), &mut map);
        }
        ServerMessage::Response { id, outcome } => {
            map.text("type", "response").number("id", (*id).into());
            put_status(outcome.as_ref().err(), &mut map);
            if let Ok(reply) = outcome {
                put_reply(reply, &mut map);
            }
        }
        ServerMessage::Inject(inject) => {
            map.text("type", "inject")
                .number("id", 0)
                .binary("content", &inject.content);
            map.flag_if("bracketed", inject.bracketed);
        }
        ServerMessage::Show { on } => {
            map.text("type", "show").number("id", 0).flag("on", *on);
        }
        ServerMessage::Screen(shown) => {
            map.text("type", "screen").number("id", 0);
            put_shown(shown, &mut map);
        }
        ServerMessage::WatchEnded { session, reason } => {
            map.text("type", "watch_ended").number("id", 0);
            map.text("session", session).text("reason", reason.word());
        }
    }
    seal(frame.into_bytes())
}

fn put_status(refusal: Option<&Refusal>, map: &mut MapWriter<'_>) {
    let Some(refusal) = refusal else {
        map.text("status", "ok");
        return;
    };
    map.text("status", "error")
        .text("error", refusal.reason.word());
    map.text_if("message", refusal.detail.as_deref());
}

fn put_reply(reply: &Reply, map: &mut MapWriter<'_>) {
    match reply {
        Reply::Done => {}
        Reply::Kept { turn_id } => {
            map.text("turn_id", turn_id);
        }
        Reply::Captured { turn_id, size } => {
            map.text("turn_id", turn_id).number("size", *size);
        }
        Reply::Stored(Stored { context, turn }) => {
            map.number("context_id", context.get())
                .number("store_turn_id", turn.get());
        }
        Reply::Sessions(sessions) => map.maps("sessions", sessions, put_session),
        Reply::Turns(turns) => map.maps("turns", turns, put_info),
        Reply::Turn(turn) => put_turn(turn, map),
    }
}

fn put_session(session: &SessionInfo, map: &mut MapWriter<'_>) {
    map.text("session", &session.session)
        .number("pid", session.pid.into())
        .flag("has_turn", session.has_turn)
        .text_if("name", session.name.as_deref())
        .text_if("preset", session.preset.as_deref())
        .number_if("child_pid", session.child_pid.map(u64::from))
        .text_if("state", session.state.map(AgentState::word))
        .number_if("since", session.since.map(|time| time.0))
        .text_if("signal", session.signal.as_deref())
        .count_if("unanswered", session.unanswered)
        .number("turns", session.turns.into())
        .number_if("last_turn_at", session.last_turn_at.map(|time| time.0))
        .flag("connected", session.connected)
        .flag_if("shared", session.shared)
        .text_if("preview", session.preview.as_deref());
}

fn put_info(info: &TurnInfo, map: &mut MapWriter<'_>) {
    map.text("turn_id", &info.turn_id)
        .number("timestamp", info.timestamp.0)
        .number("byte_length", info.byte_length.into())
        .flag("interrupted", info.interrupted)
        .flag("truncated", info.truncated)
        .flag("incomplete", info.incomplete)
        .flag_if("unprompted", info.unprompted)
        .text_if("preview", info.preview.as_deref());
}

fn put_turn(turn: &FoundTurn, map: &mut MapWriter<'_>) {
    put_info(&turn.info, map);
    map.text("session", &turn.session)
        .text_if("name", turn.name.as_deref())
        .text_if("preset", turn.preset.as_deref())
        .binary("content", &turn.content)
        .text_if("text", turn.text.as_deref())
        .text_if("text_source", turn.text_source.as_deref())
        .binary_if("raw", turn.raw.as_deref())
        .flag_if("raw_truncated", turn.raw_truncated);
}

/// Reads a message of the broker from a frame's body.
pub fn decode_message(body: &[u8]) -> Result<ServerMessage, Malformed> {
    let fields = Fields::read(body)?;
    let kind = fields.text("type").ok().flatten().ok_or(Malformed)?;
    let id = fields.small("id").ok().flatten().ok_or(Malformed)?;
    let message = match kind.as_str() {
        "hello_ack" => decode_outcome(&fields, |_| Ok(())).map(ServerMessage::HelloAck),
        "response" => decode_outcome(&fields, decode_reply)
            .map(|outcome| ServerMessage::Response { id, outcome }),
        "inject" => decode_inject(&fields).map(ServerMessage::Inject),
        "show" => fields.flag("on").map(|on| ServerMessage::Show { on }),
        "screen" => decode_shown(&fields).map(ServerMessage::Screen),
        "watch_ended" => decode_watch_ended(&fields),
        _ => return Err(Malformed),
    };
    message.map_err(|_| Malformed)
}

fn decode_outcome<T>(
    fields: &Fields<'_>,
    read: fn(&Fields<'_>) -> Result<T, BadField>,
) -> Result<Result<T, Refusal>, BadField> {
    match required("status", fields.text("status"))?.as_str() {
        "ok" => read(fields).map(Ok),
        "error" => decode_refusal(fields).map(Err),
        _ => Err(BadField::Wrong("status")),
    }
}

/// A word that this version does not know is kept as the text.
fn decode_refusal(fields: &Fields<'_>) -> Result<Refusal, BadField> {
    let word = required("error", fields.text("error"))?;
    let detail = fields.long_text("message")?.map(str::to_owned);
    Ok(match Reason::from_word(&word) {
        Some(reason) => Refusal { reason, detail },
        None => Refusal {
            reason: Reason::Internal,
            detail: Some(detail.unwrap_or(word)),
        },
    })
}

fn decode_inject(fields: &Fields<'_>) -> Result<Inject, BadField> {
    let content = required("content", fields.binary("content"))?;
    Ok(Inject {
        content,
        bracketed: fields.flag("bracketed")?,
    })
}

fn decode_watch_ended(fields: &Fields<'_>) -> Result<ServerMessage, BadField> {
    let word = required("reason", fields.text("reason"))?;
    let reason = Reason::from_word(&word).unwrap_or(Reason::Internal);
    Ok(ServerMessage::WatchEnded {
        session: required("session", fields.text("session"))?,
        reason,
    })
}

fn decode_reply(fields: &Fields<'_>) -> Result<Reply, BadField> {
    if let Some(sessions) = fields.maps("sessions", decode_session)? {
        return Ok(Reply::Sessions(sessions));
    }
    if let Some(turns) = fields.maps("turns", decode_info)? {
        return Ok(Reply::Turns(turns));
    }
    if let Some(content) = fields.binary("content")? {
        return decode_turn(fields, content).map(|turn| Reply::Turn(Box::new(turn)));
    }
    if let Some(stored) = decode_stored(fields)? {
        return Ok(Reply::Stored(stored));
    }
    Ok(match (fields.text("turn_id")?, fields.number("size")?) {
        (Some(turn_id), Some(size)) => Reply::Captured { turn_id, size },
        (Some(turn_id), None) => Reply::Kept { turn_id },
        (None, _) => Reply::Done,
    })
}

fn decode_stored(fields: &Fields<'_>) -> Result<Option<Stored>, BadField> {
    let Some(context) = fields.number("context_id")? else {
        return Ok(None);
    };
    let context = ContextId::new(context).ok_or(BadField::Wrong("context_id"))?;
    let turn = required("store_turn_id", fields.number("store_turn_id"))?;
    let turn = TurnId::new(turn).ok_or(BadField::Wrong("store_turn_id"))?;
    Ok(Some(Stored { context, turn }))
}

fn decode_session(fields: &Fields<'_>) -> Result<SessionInfo, BadField> {
    let state = fields.text("state")?;
    Ok(SessionInfo {
        session: required("session", fields.text("session"))?,
        pid: required("pid", fields.small("pid"))?,
        has_turn: fields.flag("has_turn")?,
        name: fields.text("name")?,
        preset: fields.text("preset")?,
        child_pid: fields.small("child_pid")?,
        state: state.as_deref().and_then(AgentState::from_word),
        since: fields.time("since")?,
        signal: fields.text("signal")?,
        unanswered: fields.small("unanswered")?.unwrap_or_default(),
        turns: fields.small("turns")?.unwrap_or_default(),
        last_turn_at: fields.time("last_turn_at")?,
        connected: fields.flag("connected")?,
        shared: fields.flag("shared")?,
        preview: fields.text("preview")?,
    })
}

/// Reads a turn's metadata. A reply with one turn may omit the id, which the request names.
fn decode_info(fields: &Fields<'_>) -> Result<TurnInfo, BadField> {
    Ok(TurnInfo {
        turn_id: fields.text("turn_id")?.unwrap_or_default(),
        timestamp: required("timestamp", fields.time("timestamp"))?,
        byte_length: required("byte_length", fields.small("byte_length"))?,
        interrupted: fields.flag("interrupted")?,
        truncated: fields.flag("truncated")?,
        incomplete: fields.flag("incomplete")?,
        unprompted: fields.flag("unprompted")?,
        preview: fields.text("preview")?,
    })
}

fn decode_turn(fields: &Fields<'_>, content: Bytes) -> Result<FoundTurn, BadField> {
    Ok(FoundTurn {
        info: decode_info(fields)?,
        session: fields.text("session")?.unwrap_or_default(),
        name: fields.text("name")?,
        preset: fields.text("preset")?,
        content,
        text: fields.long_text("text")?.map(str::to_owned),
        text_source: fields.text("text_source")?,
        raw: fields.binary("raw")?,
        raw_truncated: fields.flag("raw_truncated")?,
    })
}
