//! Requests to the broker: one decoder and one encoder per type.

use bytes::Bytes;
use turnkeep_types::broker::{
    AgentState, BadRequest, CompletedTurn, Deliver, GetTurn, Hello, ListSessions, ListTurns, Paint,
    Paste, Reason, Refusal, Register, Request, Role, Shown, StateChange, TurnForm,
};
use turnkeep_types::msgpack::MsgpackWriter;

use super::fields::{BadField, Fields, Malformed, MessageHead};
use super::frame::{HEADER_BYTES, MessageTooLong, seal_frame};
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
    let fields = Fields::parse_map(body)?;
    let MessageHead { kind, id } = fields.read_head()?;
    let request = decode_by_type(&kind, &fields);
    // A bad hello is answered with `hello_ack`, not with `response`.
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
        // In a box: a turn is far larger than the other requests.
        "turn_completed" => {
            decode_turn_completed(fields).map(|turn| Request::TurnCompleted(Box::new(turn)))
        }
        "state" => decode_state(fields).map(Request::State),
        "screen" => decode_shown(fields).map(Request::Screen),
        "deregister" => require_session(fields).map(|session| Request::Deregister { session }),
        "list_sessions" => decode_list_sessions(fields).map(Request::ListSessions),
        "watch" => require_session(fields).map(|session| Request::Watch { session }),
        "capture" => require_session(fields).map(|session| Request::Capture { session }),
        "capture_by_id" => require_turn_id(fields).map(|turn_id| Request::CaptureById { turn_id }),
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

fn require_session(fields: &Fields<'_>) -> Result<String, BadField> {
    fields.require("session", Fields::read_text)
}

fn require_turn_id(fields: &Fields<'_>) -> Result<String, BadField> {
    fields.require("turn_id", Fields::read_text)
}

fn decode_hello(fields: &Fields<'_>) -> Result<Hello, BadField> {
    let version = fields.require("version", Fields::read_u64)?;
    let role = match fields.require("role", Fields::read_text)?.as_str() {
        "wrapper" => Role::Wrapper,
        "client" => Role::Client,
        _ => return Err(BadField::Wrong("role")),
    };
    Ok(Hello { version, role })
}

fn decode_register(fields: &Fields<'_>) -> Result<Register, BadField> {
    Ok(Register {
        session: require_session(fields)?,
        pid: fields.require("pid", Fields::read_u32)?,
        pattern: fields.require("pattern", Fields::read_text)?,
        name: fields.read_text("name")?,
        preset: fields.read_text("preset")?,
        child_pid: fields.read_u32("child_pid")?,
        shared: fields.read_flag("shared")?,
        bracketed: fields.read_flag("bracketed")?,
        dialogs: fields.read_flag("dialogs")?,
    })
}

fn decode_turn_completed(fields: &Fields<'_>) -> Result<CompletedTurn, BadField> {
    Ok(CompletedTurn {
        session: require_session(fields)?,
        content: fields.require("content", Fields::read_binary)?,
        interrupted: fields.require("interrupted", Fields::read_optional_flag)?,
        text: fields.read_long_text("text")?.map(str::to_owned),
        raw: fields.read_binary("raw")?,
        truncated: fields.read_flag("truncated")?,
        raw_truncated: fields.read_flag("raw_truncated")?,
        seq: fields.read_u64("seq")?,
        timestamp: fields.read_time("timestamp")?,
        incomplete: fields.read_flag("incomplete")?,
        text_source: fields.read_text("text_source")?,
        unprompted: fields.read_flag("unprompted")?,
    })
}

fn decode_state(fields: &Fields<'_>) -> Result<StateChange, BadField> {
    let word = fields.require("state", Fields::read_text)?;
    Ok(StateChange {
        session: require_session(fields)?,
        state: AgentState::from_word(&word).ok_or(BadField::Wrong("state"))?,
        since: fields.require("since", Fields::read_time)?,
        signal: fields.read_text("signal")?,
        unanswered: fields.read_u32("unanswered")?.unwrap_or_default(),
    })
}

/// Decodes a part of a terminal's screen. Wrappers send it and watchers receive it in the same
/// form.
pub(super) fn decode_shown(fields: &Fields<'_>) -> Result<Shown, BadField> {
    // A terminal's size has 16 bits in the system's own interface, so a larger one is a fault.
    let side = |name| {
        let cells = fields.require(name, Fields::read_u32)?;
        u16::try_from(cells).map_err(|_| BadField::Wrong(name))
    };
    let word = fields.require("paint", Fields::read_text)?;
    Ok(Shown {
        session: require_session(fields)?,
        content: fields.require("content", Fields::read_binary)?,
        cols: side("cols")?,
        rows: side("rows")?,
        paint: Paint::from_word(&word).ok_or(BadField::Wrong("paint"))?,
    })
}

pub(super) fn put_shown(shown: &Shown, map: &mut MapWriter<'_>) {
    map.put_text("session", &shown.session)
        .put_binary("content", &shown.content)
        .put_number("cols", shown.cols.into())
        .put_number("rows", shown.rows.into())
        .put_text("paint", shown.paint.word());
}

fn decode_paste(fields: &Fields<'_>) -> Result<Paste, BadField> {
    Ok(Paste {
        session: require_session(fields)?,
        form: decode_form(fields)?,
        bracketed: fields.read_flag("bracketed")?,
        unless_blocked: fields.read_flag("unless_blocked")?,
    })
}

/// Decodes which bytes of a turn are delivered. A request for raw bytes and text gets the raw
/// bytes, as it would from an older broker that does not know `text`.
fn decode_form(fields: &Fields<'_>) -> Result<TurnForm, BadField> {
    Ok(
        match (fields.read_flag("raw")?, fields.read_flag("text")?) {
            (true, _) => TurnForm::Raw,
            (false, true) => TurnForm::Text,
            (false, false) => TurnForm::Content,
        },
    )
}

fn put_form(form: TurnForm, map: &mut MapWriter<'_>) {
    map.put_flag_if("raw", form == TurnForm::Raw)
        .put_flag_if("text", form == TurnForm::Text);
}

fn decode_list_sessions(fields: &Fields<'_>) -> Result<ListSessions, BadField> {
    Ok(ListSessions {
        gone: fields.read_flag("gone")?,
        preview: fields.read_flag("preview")?,
        settled: fields.read_flag("settled")?,
    })
}

fn decode_get_turn(fields: &Fields<'_>) -> Result<GetTurn, BadField> {
    Ok(GetTurn {
        turn_id: require_turn_id(fields)?,
        raw: fields.read_flag("raw")?,
    })
}

fn decode_list_turns(fields: &Fields<'_>) -> Result<ListTurns, BadField> {
    Ok(ListTurns {
        session: require_session(fields)?,
        limit: fields.read_u32("limit")?,
        preview: fields.read_flag("preview")?,
        all: fields.read_flag("all")?,
    })
}

/// Decodes a delivery. Only the sink's name is required here: the broker rejects an unknown sink
/// before it checks the fields that a sink needs.
fn decode_deliver(fields: &Fields<'_>) -> Result<Deliver, BadField> {
    Ok(Deliver {
        sink: fields.require("sink", Fields::read_text)?,
        session: fields.read_text("session")?,
        path: fields.read_text("path")?,
        run: fields.read_text("run")?,
        node: fields.read_text("node")?,
        form: decode_form(fields)?,
        bracketed: fields.read_flag("bracketed")?,
        unless_blocked: fields.read_flag("unless_blocked")?,
    })
}

/// Writes a request as a frame.
pub fn encode_request(id: u32, request: &Request) -> Result<Bytes, MessageTooLong> {
    // The length comes first but is known last, so its bytes are reserved here.
    let mut frame = MsgpackWriter::append_to(vec![0; HEADER_BYTES]);
    let mut map = MapWriter::begin(&mut frame);
    map.put_head(type_name(request), id);
    match request {
        Request::Hello(hello) => put_hello(*hello, &mut map),
        Request::Register(register) => put_register(register, &mut map),
        Request::TurnCompleted(turn) => put_completed_turn(turn, &mut map),
        Request::State(change) => put_state(change, &mut map),
        Request::Screen(shown) => put_shown(shown, &mut map),
        Request::Deregister { session }
        | Request::Watch { session }
        | Request::Capture { session } => {
            map.put_text("session", session);
        }
        Request::ListSessions(list) => put_list_sessions(*list, &mut map),
        Request::CaptureById { turn_id } => {
            map.put_text("turn_id", turn_id);
        }
        Request::Paste(paste) => put_paste(paste, &mut map),
        Request::GetTurn(get) => {
            map.put_text("turn_id", &get.turn_id)
                .put_flag_if("raw", get.raw);
        }
        Request::ListTurns(list) => put_list_turns(list, &mut map),
        Request::Deliver(deliver) => put_deliver(deliver, &mut map),
    }
    seal_frame(frame.into_bytes())
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
    map.put_number("version", hello.version)
        .put_text("role", role);
}

fn put_register(register: &Register, map: &mut MapWriter<'_>) {
    map.put_text("session", &register.session)
        .put_number("pid", register.pid.into())
        .put_text("pattern", &register.pattern)
        .put_text_if("name", register.name.as_deref())
        .put_text_if("preset", register.preset.as_deref())
        .put_number_if("child_pid", register.child_pid.map(u64::from))
        .put_flag_if("shared", register.shared)
        .put_flag_if("bracketed", register.bracketed)
        .put_flag_if("dialogs", register.dialogs);
}

fn put_completed_turn(turn: &CompletedTurn, map: &mut MapWriter<'_>) {
    map.put_text("session", &turn.session)
        .put_binary("content", &turn.content)
        .put_flag("interrupted", turn.interrupted)
        .put_text_if("text", turn.text.as_deref())
        .put_binary_if("raw", turn.raw.as_deref())
        .put_flag_if("truncated", turn.truncated)
        .put_flag_if("raw_truncated", turn.raw_truncated)
        .put_number_if("seq", turn.seq)
        .put_number_if("timestamp", turn.timestamp.map(|time| time.0))
        .put_flag_if("incomplete", turn.incomplete)
        .put_text_if("text_source", turn.text_source.as_deref())
        .put_flag_if("unprompted", turn.unprompted);
}

fn put_state(change: &StateChange, map: &mut MapWriter<'_>) {
    map.put_text("session", &change.session)
        .put_text("state", change.state.word())
        .put_number("since", change.since.0)
        .put_text_if("signal", change.signal.as_deref())
        .put_count_if("unanswered", change.unanswered);
}

fn put_list_sessions(list: ListSessions, map: &mut MapWriter<'_>) {
    map.put_flag_if("gone", list.gone)
        .put_flag_if("preview", list.preview)
        .put_flag_if("settled", list.settled);
}

fn put_paste(paste: &Paste, map: &mut MapWriter<'_>) {
    map.put_text("session", &paste.session);
    put_form(paste.form, map);
    map.put_flag_if("bracketed", paste.bracketed)
        .put_flag_if("unless_blocked", paste.unless_blocked);
}

fn put_list_turns(list: &ListTurns, map: &mut MapWriter<'_>) {
    map.put_text("session", &list.session)
        .put_number_if("limit", list.limit.map(u64::from))
        .put_flag_if("preview", list.preview)
        .put_flag_if("all", list.all);
}

fn put_deliver(deliver: &Deliver, map: &mut MapWriter<'_>) {
    map.put_text("sink", &deliver.sink)
        .put_text_if("session", deliver.session.as_deref())
        .put_text_if("path", deliver.path.as_deref())
        .put_text_if("run", deliver.run.as_deref())
        .put_text_if("node", deliver.node.as_deref());
    put_form(deliver.form, map);
    map.put_flag_if("bracketed", deliver.bracketed)
        .put_flag_if("unless_blocked", deliver.unless_blocked);
}
