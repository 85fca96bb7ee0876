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

use super::fields::{BadField, Fields, Malformed, MessageHead};
use super::frame::{HEADER_BYTES, MessageTooLong, seal_frame};
use super::pack::MapWriter;
use super::request::{decode_shown, put_shown};

/// Writes a message as a frame.
pub fn encode_message(message: &ServerMessage) -> Result<Bytes, MessageTooLong> {
    // The length comes first but is known last: `seal_frame` writes it over the zeros.
    let mut frame = MsgpackWriter::append_to(vec![0; HEADER_BYTES]);
    let mut map = MapWriter::begin(&mut frame);
    match message {
        ServerMessage::HelloAck(outcome) => {
            map.put_head("hello_ack", 0);
            put_status(outcome.as_ref().err(), &mut map);
        }
        ServerMessage::Response { id, outcome } => {
            map.put_head("response", *id);
            put_status(outcome.as_ref().err(), &mut map);
            if let Ok(reply) = outcome {
                put_reply(reply, &mut map);
            }
        }
        ServerMessage::Inject(inject) => {
            map.put_head("inject", 0)
                .put_binary("content", &inject.content)
                .put_flag_if("bracketed", inject.bracketed);
        }
        ServerMessage::Show { on } => {
            map.put_head("show", 0).put_flag("on", *on);
        }
        ServerMessage::Screen(shown) => {
            map.put_head("screen", 0);
            put_shown(shown, &mut map);
        }
        ServerMessage::WatchEnded { session, reason } => {
            map.put_head("watch_ended", 0)
                .put_text("session", session)
                .put_text("reason", reason.word());
        }
    }
    seal_frame(frame.into_bytes())
}

fn put_status(refusal: Option<&Refusal>, map: &mut MapWriter<'_>) {
    let Some(refusal) = refusal else {
        map.put_text("status", "ok");
        return;
    };
    map.put_text("status", "error")
        .put_text("error", refusal.reason.word());
    map.put_text_if("message", refusal.detail.as_deref());
}

fn put_reply(reply: &Reply, map: &mut MapWriter<'_>) {
    match reply {
        Reply::Done => {}
        Reply::Kept { turn_id } => {
            map.put_text("turn_id", turn_id);
        }
        Reply::Captured { turn_id, size } => {
            map.put_text("turn_id", turn_id).put_number("size", *size);
        }
        Reply::Stored(Stored { context, turn }) => {
            map.put_number("context_id", context.get())
                .put_number("store_turn_id", turn.get());
        }
        Reply::Sessions(sessions) => map.put_maps("sessions", sessions, put_session),
        Reply::Turns(turns) => map.put_maps("turns", turns, put_turn_info),
        Reply::Turn(turn) => put_found_turn(turn, map),
    }
}

fn put_session(session: &SessionInfo, map: &mut MapWriter<'_>) {
    map.put_text("session", &session.session)
        .put_number("pid", session.pid.into())
        .put_flag("has_turn", session.has_turn)
        .put_text_if("name", session.name.as_deref())
        .put_text_if("preset", session.preset.as_deref())
        .put_number_if("child_pid", session.child_pid.map(u64::from))
        .put_text_if("state", session.state.map(AgentState::word))
        .put_number_if("since", session.since.map(|time| time.0))
        .put_text_if("signal", session.signal.as_deref())
        .put_count_if("unanswered", session.unanswered)
        .put_number("turns", session.turns.into())
        .put_number_if("last_turn_at", session.last_turn_at.map(|time| time.0))
        .put_flag("connected", session.connected)
        .put_flag_if("shared", session.shared)
        .put_text_if("preview", session.preview.as_deref());
}

fn put_turn_info(info: &TurnInfo, map: &mut MapWriter<'_>) {
    map.put_text("turn_id", &info.turn_id)
        .put_number("timestamp", info.timestamp.0)
        .put_number("byte_length", info.byte_length.into())
        .put_flag("interrupted", info.interrupted)
        .put_flag("truncated", info.truncated)
        .put_flag("incomplete", info.incomplete)
        .put_flag_if("unprompted", info.unprompted)
        .put_text_if("preview", info.preview.as_deref());
}

fn put_found_turn(turn: &FoundTurn, map: &mut MapWriter<'_>) {
    put_turn_info(&turn.info, map);
    map.put_text("session", &turn.session)
        .put_text_if("name", turn.name.as_deref())
        .put_text_if("preset", turn.preset.as_deref())
        .put_binary("content", &turn.content)
        .put_text_if("text", turn.text.as_deref())
        .put_text_if("text_source", turn.text_source.as_deref())
        .put_binary_if("raw", turn.raw.as_deref())
        .put_flag_if("raw_truncated", turn.raw_truncated);
}

/// Reads a message of the broker from a frame's body.
pub fn decode_message(body: &[u8]) -> Result<ServerMessage, Malformed> {
    let fields = Fields::parse_map(body)?;
    let MessageHead { kind, id } = fields.read_head()?;
    let message = match kind.as_str() {
        "hello_ack" => decode_outcome(&fields, |_| Ok(())).map(ServerMessage::HelloAck),
        "response" => decode_outcome(&fields, decode_reply)
            .map(|outcome| ServerMessage::Response { id, outcome }),
        "inject" => decode_inject(&fields).map(ServerMessage::Inject),
        "show" => fields.read_flag("on").map(|on| ServerMessage::Show { on }),
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
    match fields.require("status", Fields::read_text)?.as_str() {
        "ok" => read(fields).map(Ok),
        "error" => decode_refusal(fields).map(Err),
        _ => Err(BadField::Wrong("status")),
    }
}

/// A word that this version does not know is kept as the text.
fn decode_refusal(fields: &Fields<'_>) -> Result<Refusal, BadField> {
    let word = fields.require("error", Fields::read_text)?;
    let detail = fields.read_long_text("message")?.map(str::to_owned);
    Ok(match Reason::from_word(&word) {
        Some(reason) => Refusal { reason, detail },
        None => Refusal {
            reason: Reason::Internal,
            detail: Some(detail.unwrap_or(word)),
        },
    })
}

fn decode_inject(fields: &Fields<'_>) -> Result<Inject, BadField> {
    let content = fields.require("content", Fields::read_binary)?;
    Ok(Inject {
        content,
        bracketed: fields.read_flag("bracketed")?,
    })
}

fn decode_watch_ended(fields: &Fields<'_>) -> Result<ServerMessage, BadField> {
    let word = fields.require("reason", Fields::read_text)?;
    // A newer broker may have further reasons. The watch has ended all the same.
    let reason = Reason::from_word(&word).unwrap_or(Reason::Internal);
    Ok(ServerMessage::WatchEnded {
        session: fields.require("session", Fields::read_text)?,
        reason,
    })
}

/// Tells the kind of a reply by its fields. The order matters: a turn with content also has a
/// `turn_id`, by which `Kept` and `Captured` are recognized.
fn decode_reply(fields: &Fields<'_>) -> Result<Reply, BadField> {
    if let Some(sessions) = fields.read_maps("sessions", decode_session)? {
        return Ok(Reply::Sessions(sessions));
    }
    if let Some(turns) = fields.read_maps("turns", decode_info)? {
        return Ok(Reply::Turns(turns));
    }
    if let Some(content) = fields.read_binary("content")? {
        return decode_turn(fields, content).map(|turn| Reply::Turn(Box::new(turn)));
    }
    if let Some(stored) = decode_stored(fields)? {
        return Ok(Reply::Stored(stored));
    }
    Ok(
        match (fields.read_text("turn_id")?, fields.read_u64("size")?) {
            (Some(turn_id), Some(size)) => Reply::Captured { turn_id, size },
            (Some(turn_id), None) => Reply::Kept { turn_id },
            (None, _) => Reply::Done,
        },
    )
}

fn decode_stored(fields: &Fields<'_>) -> Result<Option<Stored>, BadField> {
    let Some(context) = fields.read_u64("context_id")? else {
        return Ok(None);
    };
    let context = ContextId::new(context).ok_or(BadField::Wrong("context_id"))?;
    let turn = fields.require("store_turn_id", Fields::read_u64)?;
    let turn = TurnId::new(turn).ok_or(BadField::Wrong("store_turn_id"))?;
    Ok(Some(Stored { context, turn }))
}

fn decode_session(fields: &Fields<'_>) -> Result<SessionInfo, BadField> {
    let state = fields.read_text("state")?;
    Ok(SessionInfo {
        session: fields.require("session", Fields::read_text)?,
        pid: fields.require("pid", Fields::read_u32)?,
        has_turn: fields.read_flag("has_turn")?,
        name: fields.read_text("name")?,
        preset: fields.read_text("preset")?,
        child_pid: fields.read_u32("child_pid")?,
        // A newer broker may send a state that this version does not know. The session is still
        // worth listing, so the state is left out.
        state: state.as_deref().and_then(AgentState::from_word),
        since: fields.read_time("since")?,
        signal: fields.read_text("signal")?,
        unanswered: fields.read_u32("unanswered")?.unwrap_or_default(),
        turns: fields.read_u32("turns")?.unwrap_or_default(),
        last_turn_at: fields.read_time("last_turn_at")?,
        connected: fields.read_flag("connected")?,
        shared: fields.read_flag("shared")?,
        preview: fields.read_text("preview")?,
    })
}

/// Reads a turn's metadata. A reply with one turn may omit the id, which the request names.
fn decode_info(fields: &Fields<'_>) -> Result<TurnInfo, BadField> {
    Ok(TurnInfo {
        turn_id: fields.read_text("turn_id")?.unwrap_or_default(),
        timestamp: fields.require("timestamp", Fields::read_time)?,
        byte_length: fields.require("byte_length", Fields::read_u32)?,
        interrupted: fields.read_flag("interrupted")?,
        truncated: fields.read_flag("truncated")?,
        incomplete: fields.read_flag("incomplete")?,
        unprompted: fields.read_flag("unprompted")?,
        preview: fields.read_text("preview")?,
    })
}

fn decode_turn(fields: &Fields<'_>, content: Bytes) -> Result<FoundTurn, BadField> {
    Ok(FoundTurn {
        info: decode_info(fields)?,
        session: fields.read_text("session")?.unwrap_or_default(),
        name: fields.read_text("name")?,
        preset: fields.read_text("preset")?,
        content,
        text: fields.read_long_text("text")?.map(str::to_owned),
        text_source: fields.read_text("text_source")?,
        raw: fields.read_binary("raw")?,
        raw_truncated: fields.read_flag("raw_truncated")?,
    })
}
