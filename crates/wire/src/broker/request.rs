//! Requests to the broker: one decoder and one encoder per type.

use bytes::Bytes;
use turnkeep_types::broker::{
    AgentState, BadRequest, CompletedTurn, Deliver, GetTurn, Hello, ListSessions, ListTurns, Paint,
    Paste, Reason, Refusal, Register, Request, Role, Shown, StateChange, TurnForm,
};
use turnkeep_types::msgpack::MsgpackWriter;

use super::fields::{BadField, Fields, Malformed, required};
use super::frame::{HEADER_BYTES, MessageTooLong, seal};
use super::pack::MapWriter;

/// A received message: its id and the request, or the reason why it is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The id of its response.
    pub id: u32,
    /// The request.
    pub request: Result<Request, BadRequest>,
}

/// Reads a request from a frame's body.
pub fn decode_request(body: &[u8]) -> Result<Incoming, Malformed> {
    let fields = Fields::read(body)?;
    let kind = fields.text("type").ok().flatten().ok_or(Malformed)?;
    let id = fields.small("id").ok().flatten().ok_or(Malformed)?;
    let request = decode_by_type(&kind, &fields);
    let request = request.map_err(|refusal| BadRequest {
        hello: kind == "hello",
        refusal,
    });
    Ok(Incoming { id, request })
}

fn decode_by_type(kind: &str, fields: &Fields<'_>) -> Result<Request, Refusal> {
    let request = match kind {
        "hello" => decode_hello(fields).map(Request::Hello),
        "register" => decode_register(fields).map(Request::Register),
        "turn_completed" => {
            decode_turn_completed(fields).map(|turn| Request::TurnCompleted(Box::new(turn)))
        }
        "state" => decode_state(fields).map(Request::State),
        "screen" => decode_shown(fields).map(Request::Screen),
        "deregister" => required_session(fields).map(|session| Request::Deregister { session }),
        "list_sessions" => decode_list_sessions(fields).map(Request::ListSessions),
        "watch" => required_session(fields).map(|session| Request::Watch { session }),
        "capture" => required_session(fields).map(|session| Request::Capture { session }),
        "capture_by_id" => required_turn_id(fields).map(|turn_id| Request::CaptureById { turn_id }),
        "paste" => decode_paste(fields).map(Request::Paste),
        "get_turn" => decode_get_turn(fields).map(Request::GetTurn),
        "list_turns" => decode_list_turns(fields).map(Request::ListTurns),
        "deliver" => decode_deliver(fields).map(Request::Deliver),
        kind => {
            return Err(Refusal::new(
                Reason::UnknownType,
                format!("there is no message `{kind}`"),
            ));
        }
    };
    Ok(request?)
}

fn required_session(fields: &Fields<'_>) -> Result<String, BadField> {
    required("session", fields.text("session"))
}

fn required_turn_id(fields: &Fields<'_>) -> Result<String, BadField> {
    required("turn_id", fields.text("turn_id"))
}

fn decode_hello(fields: &Fields<'_>) -> Result<Hello, BadField> {
    let version = required("version", fields.number("version"))?;
    let role = match required("role", fields.text("role"))?.as_str() {
        "wrapper" => Role::Wrapper,
        "client" => Role::Client,
        _ => return Err(BadField::Wrong("role")),
    };
    Ok(Hello { version, role })
}

fn decode_register(fields: &Fields<'_>) -> Result<Register, BadField> {
    Ok(Register {
        session: required_session(fields)?,
        pid: required("pid", fields.small("pid"))?,
        pattern: required("pattern", fields.text("pattern"))?,
        name: fields.text("name")?,
        preset: fields.text("preset")?,
        child_pid: fields.small("child_pid")?,
        shared: fields.flag("shared")?,
        bracketed: fields.flag("bracketed")?,
        dialogs: fields.flag("dialogs")?,
    })
}

fn decode_turn_completed(fields: &Fields<'_>) -> Result<CompletedTurn, BadField> {
    Ok(CompletedTurn {
        session: required_session(fields)?,
        content: required("content", fields.binary("content"))?,
        interrupted: required("interrupted", fields.flag_or_none("interrupted"))?,
        text: fields.long_text("text")?.map(str::to_owned),
        raw: fields.binary("raw")?,
        truncated: fields.flag("truncated")?,
        raw_truncated: fields.flag("raw_truncated")?,
        seq: fields.number("seq")?,
        timestamp: fields.time("timestamp")?,
        incomplete: fields.flag("incomplete")?,
        text_source: fields.text("text_source")?,
        unprompted: fields.flag("unprompted")?,
    })
}

fn decode_state(fields: &Fields<'_>) -> Result<StateChange, BadField> {
    let word = required("state", fields.text("state"))?;
    Ok(StateChange {
        session: required_session(fields)?,
        state: AgentState::from_word(&word).ok_or(BadField::Wrong("state"))?,
        since: required("since", fields.time("since"))?,
        signal: fields.text("signal")?,
        unanswered: fields.small("unanswered")?.unwrap_or_default(),
    })
}

/// Decodes a part of a terminal's screen. Wrappers send it and watchers receive it in the same
/// form.
pub(super) fn decode_shown(fields: &Fields<'_>) -> Result<Shown, BadField> {
    let side = |name| {
        let cells = required(name, fields.small(name))?;
        u16::try_from(cells).map_err(|_| BadField::Wrong(name))
    };
    let word = required("paint", fields.text("paint"))?;
    Ok(Shown {
        session: required_session(fields)?,
        content: required("content", fields.binary("content"))?,
        cols: side("cols")?,
        rows: side("rows")?,
        paint: Paint::from_word(&word).ok_or(BadField::Wrong("paint"))?,
    })
}

pub(super) fn put_shown(shown: &Shown, map: &mut MapWriter<'_>) {
    map.text("session", &shown.session)
        .binary("content", &shown.content)
        .number("cols", shown.cols.into())
        .number("rows", shown.rows.into())
        .text("paint", shown.paint.word());
}

fn decode_paste(fields: &Fields<'_>) -> Result<Paste, BadField> {
    Ok(Paste {
        session: required_session(fields)?,
        form: decode_form(fields)?,
        bracketed: fields.flag("bracketed")?,
        unless_blocked: fields.flag("unless_blocked")?,
    })
}

/// Decodes which bytes of a turn are delivered. A request for raw bytes and text gets the raw
/// bytes, as it would from an older broker that does not know `text`.
fn decode_form(fields: &Fields<'_>) -> Result<TurnForm, BadField> {
    Ok(match (fields.flag("raw")?, fields.flag("text")?) {
        (true, _) => TurnForm::Raw,
        (false, true) => TurnForm::Text,
        (false, false) => TurnForm::Content,
    })
}

fn put_form(form: TurnForm, map: &mut MapWriter<'_>) {
    map.flag_if("raw", form == TurnForm::Raw)
        .flag_if("text", form == TurnForm::Text);
}

fn decode_list_sessions(fields: &Fields<'_>) -> Result<ListSessions, BadField> {
    Ok(ListSessions {
        gone: fields.flag("gone")?,
        preview: fields.flag("preview")?,
        settled: fields.flag("settled")?,
    })
}

fn decode_get_turn(fields: &Fields<'_>) -> Result<GetTurn, BadField> {
    Ok(GetTurn {
        turn_id: required_turn_id(fields)?,
        raw: fields.flag("raw")?,
    })
}

fn decode_list_turns(fields: &Fields<'_>) -> Result<ListTurns, BadField> {
    Ok(ListTurns {
        session: required_session(fields)?,
        limit: fields.small("limit")?,
        preview: fields.flag("preview")?,
        all: fields.flag("all")?,
    })
}

/// Decodes a delivery. Only the sink's name is required here: the broker rejects an unknown sink
/// before it checks the fields that a sink needs.
fn decode_deliver(fields: &Fields<'_>) -> Result<Deliver, BadField> {
    Ok(Deliver {
        sink: required("sink", fields.text("sink"))?,
        session: fields.text("session")?,
        path: fields.text("path")?,
        run: fields.text("run")?,
        node: fields.text("node")?,
        form: decode_form(fields)?,
        bracketed: fields.flag("bracketed")?,
        unless_blocked: fields.flag("unless_blocked")?,
    })
}

/// Writes a request as a frame.
pub fn encode_request(id: u32, request: &Request) -> Result<Bytes, MessageTooLong> {
    let mut frame = MsgpackWriter::append_to(vec![0; HEADER_BYTES]);
    let mut map = MapWriter::begin(&mut frame);
    map.text("type", type_name(request)).number("id", id.into());
    match request {
        Request::Hello(hello) => put_hello(*hello, &mut map),
        Request::Register(register) => put_register(register, &mut map),
        Request::TurnCompleted(turn) => put_turn(turn, &mut map),
        Request::State(change) => put_state(change, &mut map),
        Request::Screen(shown) => put_shown(shown, &mut map),
        Request::Deregister { session }
        | Request::Watch { session }
        | Request::Capture { session } => {
            map.text("session", session);
        }
        Request::ListSessions(list) => {
            map.flag_if("gone", list.gone)
                .flag_if("preview", list.preview);
            map.flag_if("settled", list.settled);
        }
        Request::CaptureById { turn_id } => {
            map.text("turn_id", turn_id);
        }
        Request::Paste(paste) => {
            map.text("session", &paste.session);
            put_form(paste.form, &mut map);
            map.flag_if("bracketed", paste.bracketed)
                .flag_if("unless_blocked", paste.unless_blocked);
        }
        Request::GetTurn(get) => {
            map.text("turn_id", &get.turn_id).flag_if("raw", get.raw);
        }
        Request::ListTurns(list) => {
            map.text("session", &list.session)
                .number_if("limit", list.limit.map(u64::from));
            map.flag_if("preview", list.preview)
                .flag_if("all", list.all);
        }
        Request::Deliver(deliver) => put_deliver(deliver, &mut map),
    }
    seal(frame.into_bytes())
}

fn type_name(request: &Request) -> &'static str {
    match request {
        Request::Hello(_) => "hello",
        Request::Register(_) => "register",
        Request::TurnCompleted(_) => "turn_completed",
        Request::State(_) => "state",
        Request::Screen(_) => "screen",
        Request::Deregister { .. } => "deregister",
        Request::ListSessions(_) => "list_sessions",
        Request::Watch { .. } => "watch",
        Request::Capture { .. } => "capture",
        Request::CaptureById { .. } => "capture_by_id",
        Request::Paste(_) => "paste",
        Request::GetTurn(_) => "get_turn",
        Request::ListTurns(_) => "list_turns",
        Request::Deliver(_) => "deliver",
    }
}

fn put_hello(hello: Hello, map: &mut MapWriter<'_>) {
    let role = match hello.role {
        Role::Wrapper => "wrapper",
        Role::Client => "client",
    };
    map.number("version", hello.version).text("role", role);
}

fn put_register(register: &Register, map: &mut MapWriter<'_>) {
    map.text("session", &register.session)
        .number("pid", register.pid.into())
        .text("pattern", &register.pattern)
        .text_if("name", register.name.as_deref())
        .text_if("preset", register.preset.as_deref())
        .number_if("child_pid", register.child_pid.map(u64::from))
        .flag_if("shared", register.shared)
        .flag_if("bracketed", register.bracketed)
        .flag_if("dialogs", register.dialogs);
}

fn put_turn(turn: &CompletedTurn, map: &mut MapWriter<'_>) {
    map.text("session", &turn.session)
        .binary("content", &turn.content)
        .flag("interrupted", turn.interrupted)
        .text_if("text", turn.text.as_deref())
        .binary_if("raw", turn.raw.as_deref())
        .flag_if("truncated", turn.truncated)
        .flag_if("raw_truncated", turn.raw_truncated)
        .number_if("seq", turn.seq)
        .number_if("timestamp", turn.timestamp.map(|time| time.0))
        .flag_if("incomplete", turn.incomplete)
        .text_if("text_source", turn.text_source.as_deref())
        .flag_if("unprompted", turn.unprompted);
}

fn put_state(change: &StateChange, map: &mut MapWriter<'_>) {
    map.text("session", &change.session)
        .text("state", change.state.word())
        .number("since", change.since.0)
        .text_if("signal", change.signal.as_deref())
        .count_if("unanswered", change.unanswered);
}

fn put_deliver(deliver: &Deliver, map: &mut MapWriter<'_>) {
    map.text("sink", &deliver.sink)
        .text_if("session", deliver.session.as_deref())
        .text_if("path", deliver.path.as_deref())
        .text_if("run", deliver.run.as_deref())
        .text_if("node", deliver.node.as_deref());
    put_form(deliver.form, map);
    map.flag_if("bracketed", deliver.bracketed)
        .flag_if("unless_blocked", deliver.unless_blocked);
}
