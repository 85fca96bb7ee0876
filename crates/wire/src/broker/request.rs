//! Requests. The dispatcher has one line per type; what a field may be is decided beside it.

use bytes::Bytes;
use turnkeep_types::broker::{
    AgentState, BadRequest, CompletedTurn, Deliver, GetTurn, Hello, ListSessions, ListTurns, Paint,
    Paste, Reason, Refusal, Register, Request, Role, Shown, StateChange, TurnForm,
};

use super::fields::{BadField, Fields, Malformed, need};
use super::frame::{FrameTooLong, HEADER_BYTES, seal};
use super::pack::MapWriter;

/// A message that arrived: its id and the request, or why it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The id that its answer carries.
    pub id: u32,
    /// The request.
    pub request: Result<Request, BadRequest>,
}

/// Reads a request from a frame's body.
pub fn decode_request(body: &[u8]) -> Result<Incoming, Malformed> {
    let fields = Fields::read(body)?;
    let kind = fields.text("type").ok().flatten().ok_or(Malformed)?;
    let id = fields.small("id").ok().flatten().ok_or(Malformed)?;
    let request = by_type(&kind, &fields);
    let request = request.map_err(|refusal| BadRequest {
        hello: kind == "hello",
        refusal,
    });
    Ok(Incoming { id, request })
}

fn by_type(kind: &str, fields: &Fields<'_>) -> Result<Request, Refusal> {
    let request = match kind {
        "hello" => hello(fields).map(Request::Hello),
        "register" => register(fields).map(Request::Register),
        "turn_completed" => {
            turn_completed(fields).map(|turn| Request::TurnCompleted(Box::new(turn)))
        }
        "state" => state(fields).map(Request::State),
        "screen" => shown(fields).map(Request::Screen),
        "deregister" => session(fields).map(|session| Request::Deregister { session }),
        "list_sessions" => list_sessions(fields).map(Request::ListSessions),
        "watch" => session(fields).map(|session| Request::Watch { session }),
        "capture" => session(fields).map(|session| Request::Capture { session }),
        "capture_by_id" => turn_id(fields).map(|turn_id| Request::CaptureById { turn_id }),
        "paste" => paste(fields).map(Request::Paste),
        "get_turn" => get_turn(fields).map(Request::GetTurn),
        "list_turns" => list_turns(fields).map(Request::ListTurns),
        "deliver" => deliver(fields).map(Request::Deliver),
        kind => {
            return Err(Refusal::new(
                Reason::UnknownType,
                format!("there is no message `{kind}`"),
            ));
        }
    };
    Ok(request?)
}

fn session(fields: &Fields<'_>) -> Result<String, BadField> {
    need("session", fields.text("session"))
}

fn turn_id(fields: &Fields<'_>) -> Result<String, BadField> {
    need("turn_id", fields.text("turn_id"))
}

fn hello(fields: &Fields<'_>) -> Result<Hello, BadField> {
    let version = need("version", fields.number("version"))?;
    let role = match need("role", fields.text("role"))?.as_str() {
        "wrapper" => Role::Wrapper,
        "client" => Role::Client,
        _ => return Err(BadField::Wrong("role")),
    };
    Ok(Hello { version, role })
}

fn register(fields: &Fields<'_>) -> Result<Register, BadField> {
    Ok(Register {
        session: session(fields)?,
        pid: need("pid", fields.small("pid"))?,
        pattern: need("pattern", fields.text("pattern"))?,
        name: fields.text("name")?,
        preset: fields.text("preset")?,
        child_pid: fields.small("child_pid")?,
        shared: fields.flag("shared")?,
        bracketed: fields.flag("bracketed")?,
        dialogs: fields.flag("dialogs")?,
    })
}

fn turn_completed(fields: &Fields<'_>) -> Result<CompletedTurn, BadField> {
    Ok(CompletedTurn {
        session: session(fields)?,
        content: need("content", fields.binary("content"))?,
        interrupted: need("interrupted", fields.flag_or_none("interrupted"))?,
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

fn state(fields: &Fields<'_>) -> Result<StateChange, BadField> {
    let word = need("state", fields.text("state"))?;
    Ok(StateChange {
        session: session(fields)?,
        state: AgentState::from_word(&word).ok_or(BadField::Wrong("state"))?,
        since: need("since", fields.time("since"))?,
        signal: fields.text("signal")?,
        unanswered: fields.small("unanswered")?.unwrap_or_default(),
    })
}

/// A piece of a terminal, which wrappers and watchers see in the same form.
pub(super) fn shown(fields: &Fields<'_>) -> Result<Shown, BadField> {
    let side = |name| {
        let cells = need(name, fields.small(name))?;
        u16::try_from(cells).map_err(|_| BadField::Wrong(name))
    };
    let word = need("paint", fields.text("paint"))?;
    Ok(Shown {
        session: session(fields)?,
        content: need("content", fields.binary("content"))?,
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

fn paste(fields: &Fields<'_>) -> Result<Paste, BadField> {
    Ok(Paste {
        session: session(fields)?,
        form: form(fields)?,
        bracketed: fields.flag("bracketed")?,
        unless_blocked: fields.flag("unless_blocked")?,
    })
}

/// Which bytes of a turn are delivered. One who asks for raw bytes and for text gets the raw bytes,
/// as from a broker that does not know `text`.
fn form(fields: &Fields<'_>) -> Result<TurnForm, BadField> {
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

fn list_sessions(fields: &Fields<'_>) -> Result<ListSessions, BadField> {
    Ok(ListSessions {
        gone: fields.flag("gone")?,
        preview: fields.flag("preview")?,
        settled: fields.flag("settled")?,
    })
}

fn get_turn(fields: &Fields<'_>) -> Result<GetTurn, BadField> {
    Ok(GetTurn {
        turn_id: turn_id(fields)?,
        raw: fields.flag("raw")?,
    })
}

fn list_turns(fields: &Fields<'_>) -> Result<ListTurns, BadField> {
    Ok(ListTurns {
        session: session(fields)?,
        limit: fields.small("limit")?,
        preview: fields.flag("preview")?,
        all: fields.flag("all")?,
    })
}

/// A sink that does not exist is refused before a field that it would need, hence no `need` but for
/// its name.
fn deliver(fields: &Fields<'_>) -> Result<Deliver, BadField> {
    Ok(Deliver {
        sink: need("sink", fields.text("sink"))?,
        session: fields.text("session")?,
        path: fields.text("path")?,
        run: fields.text("run")?,
        node: fields.text("node")?,
        form: form(fields)?,
        bracketed: fields.flag("bracketed")?,
        unless_blocked: fields.flag("unless_blocked")?,
    })
}

/// Writes a request as a frame.
pub fn encode_request(id: u32, request: &Request) -> Result<Bytes, FrameTooLong> {
    let mut frame = vec![0; HEADER_BYTES];
    let mut map = MapWriter::begin(&mut frame);
    map.text("type", type_of(request)).number("id", id.into());
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
    seal(frame)
}

fn type_of(request: &Request) -> &'static str {
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
