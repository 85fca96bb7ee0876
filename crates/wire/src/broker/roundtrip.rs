//! What holds for any bytes: whatever decodes encodes, and decodes to the same value again. The
//! fuzzer's door.

use bytes::Bytes;
use turnkeep_types::broker::{
    AgentState, CompletedTurn, Deliver, FoundTurn, GetTurn, Hello, Inject, ListSessions, ListTurns,
    Paint, Paste, Reason, Refusal, Register, Reply, Request, Role, ServerMessage, SessionInfo,
    Shown, StateChange, Stored, TurnForm, TurnInfo,
};
use turnkeep_types::{ContextId, Timestamp, TurnId};

use super::{HEADER_BYTES, decode_message, decode_request, encode_message, encode_request};

/// Checks arbitrary bytes as the body of a request and of a message. Panics where the codec
/// contradicts itself.
pub fn check_body(body: &[u8]) {
    if let Ok(incoming) = decode_request(body)
        && let Ok(request) = &incoming.request
        && let Ok(frame) = encode_request(incoming.id, request)
    {
        let again = decode_request(frame.get(HEADER_BYTES..).unwrap_or_default());
        assert_eq!(
            again,
            Ok(incoming.clone()),
            "a request does not survive its own encoding"
        );
    }
    if let Ok(message) = decode_message(body)
        && let Ok(frame) = encode_message(&message)
    {
        let again = decode_message(frame.get(HEADER_BYTES..).unwrap_or_default());
        assert_eq!(
            again,
            Ok(message),
            "a message does not survive its own encoding"
        );
    }
}

/// One request of every kind, with every field set.
pub fn sample_requests() -> Vec<(&'static str, Request)> {
    let session = || "00112233445566778899aabbccddeeff".to_owned();
    let turn_id = || "00112233445566778899aabbccddeeff:7".to_owned();
    let some = |text: &str| Some(text.to_owned());
    let register = Register {
        session: session(),
        pid: 42,
        pattern: "> $".to_owned(),
        name: some("review"),
        preset: some("claude"),
        child_pid: Some(70_000),
        shared: true,
        bracketed: true,
        dialogs: true,
    };
    let turn = CompletedTurn {
        session: session(),
        content: Bytes::from_static(b"\x1b[1mhi\xff"),
        interrupted: true,
        text: some("hi"),
        raw: Some(Bytes::from_static(b"raw")),
        truncated: true,
        raw_truncated: true,
        seq: Some(7),
        timestamp: Some(Timestamp(1_700_000_000_000)),
        incomplete: true,
        text_source: some("hook"),
        unprompted: true,
    };
    let state = AgentState::Blocked;
    let change = StateChange {
        session: session(),
        state,
        since: Timestamp(300),
        signal: some("title"),
        unanswered: 2,
    };
    let deliver = Deliver {
        sink: "node".to_owned(),
        session: some("s"),
        path: some("/tmp/x"),
        run: some("r"),
        node: some("n"),
        form: TurnForm::Raw,
        bracketed: true,
        unless_blocked: true,
    };
    let paste = |form| {
        Request::Paste(Paste {
            session: session(),
            form,
            bracketed: true,
            unless_blocked: true,
        })
    };
    vec![
        (
            "hello",
            Request::Hello(Hello {
                version: 1,
                role: Role::Wrapper,
            }),
        ),
        ("register", Request::Register(register)),
        ("turn_completed", Request::TurnCompleted(Box::new(turn))),
        ("state", Request::State(change)),
        ("screen", Request::Screen(sample_shown(Paint::Bytes))),
        ("watch", Request::Watch { session: session() }),
        ("deregister", Request::Deregister { session: session() }),
        (
            "list_sessions",
            Request::ListSessions(ListSessions {
                gone: true,
                preview: true,
                settled: true,
            }),
        ),
        ("capture", Request::Capture { session: session() }),
        ("capture_by_id", Request::CaptureById { turn_id: turn_id() }),
        ("paste", paste(TurnForm::Content)),
        ("paste-text", paste(TurnForm::Text)),
        ("paste-raw", paste(TurnForm::Raw)),
        (
            "get_turn",
            Request::GetTurn(GetTurn {
                turn_id: turn_id(),
                raw: true,
            }),
        ),
        (
            "list_turns",
            Request::ListTurns(ListTurns {
                session: session(),
                limit: Some(300),
                preview: true,
                all: true,
            }),
        ),
        ("deliver", Request::Deliver(deliver)),
    ]
}

fn sample_shown(paint: Paint) -> Shown {
    let content = Bytes::from_static(b"\x1b[2Jhi\xff");
    Shown {
        session: "s".to_owned(),
        content,
        cols: 120,
        rows: 300,
        paint,
    }
}

const STORED: Stored = match (ContextId::new(3), TurnId::new(300)) {
    (Some(context), Some(turn)) => Stored { context, turn },
    _ => unreachable!(),
};

/// One message of every kind, with every field set.
pub fn sample_messages() -> Vec<(&'static str, ServerMessage)> {
    let response = |outcome| ServerMessage::Response { id: 9, outcome };
    let info = TurnInfo {
        turn_id: "s:7".to_owned(),
        timestamp: Timestamp(1_700_000_000_000),
        byte_length: 5,
        interrupted: true,
        truncated: true,
        incomplete: true,
        unprompted: true,
        preview: Some("first words".to_owned()),
    };
    let session = SessionInfo {
        session: "s".to_owned(),
        pid: 42,
        has_turn: true,
        name: Some("review".to_owned()),
        preset: Some("claude".to_owned()),
        child_pid: Some(43),
        state: Some(AgentState::Ready),
        since: Some(Timestamp(1)),
        signal: Some("title".to_owned()),
        unanswered: 4,
        turns: 3,
        last_turn_at: Some(Timestamp(2)),
        connected: true,
        shared: true,
        preview: Some("first words".to_owned()),
    };
    let turn = FoundTurn {
        info: info.clone(),
        session: "s".to_owned(),
        name: Some("review".to_owned()),
        preset: Some("claude".to_owned()),
        content: Bytes::from_static(b"bytes"),
        text: Some("text".to_owned()),
        text_source: Some("screen".to_owned()),
        raw: Some(Bytes::from_static(b"raw")),
        raw_truncated: true,
    };
    let inject = Inject {
        content: Bytes::from_static(b"typed"),
        bracketed: true,
    };
    vec![
        ("hello_ack", ServerMessage::HelloAck(Ok(()))),
        (
            "hello_ack-refused",
            ServerMessage::HelloAck(Err(Reason::VersionMismatch.into())),
        ),
        ("response-done", response(Ok(Reply::Done))),
        (
            "response-refused",
            response(Err(Refusal::new(Reason::BadPath, "not absolute"))),
        ),
        (
            "response-kept",
            response(Ok(Reply::Kept {
                turn_id: "s:7".to_owned(),
            })),
        ),
        (
            "response-captured",
            response(Ok(Reply::Captured {
                turn_id: "s:7".to_owned(),
                size: 70_000,
            })),
        ),
        ("response-stored", response(Ok(Reply::Stored(STORED)))),
        (
            "response-sessions",
            response(Ok(Reply::Sessions(vec![session, SessionInfo::default()]))),
        ),
        ("response-turns", response(Ok(Reply::Turns(vec![info])))),
        ("response-turn", response(Ok(Reply::Turn(Box::new(turn))))),
        ("inject", ServerMessage::Inject(inject)),
        ("show", ServerMessage::Show { on: true }),
        (
            "screen-repaint",
            ServerMessage::Screen(sample_shown(Paint::Repaint)),
        ),
        (
            "screen-lost",
            ServerMessage::Screen(sample_shown(Paint::Lost)),
        ),
        (
            "watch_ended",
            ServerMessage::WatchEnded {
                session: "s".to_owned(),
                reason: Reason::NotShared,
            },
        ),
    ]
}

/// The bodies of all samples, by name: where a fuzzer begins.
pub fn sample_bodies() -> Vec<(String, Vec<u8>)> {
    let requests = sample_requests();
    let requests = requests
        .iter()
        .map(|(name, request)| (*name, encode_request(5, request)));
    let messages = sample_messages();
    let messages = messages
        .iter()
        .map(|(name, message)| (*name, encode_message(message)));
    let frames = requests.chain(messages);
    let body = |frame: Bytes| frame.get(HEADER_BYTES..).map(<[u8]>::to_vec);
    frames
        .filter_map(|(name, frame)| Some((name.to_owned(), body(frame.ok()?)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Incoming;
    use super::*;

    fn body(frame: &Bytes) -> &[u8] {
        &frame[HEADER_BYTES..]
    }

    #[test]
    fn every_message_reads_back_as_it_was_written() {
        for (name, request) in sample_requests() {
            let frame = encode_request(5, &request).unwrap();
            let expect = Incoming {
                id: 5,
                request: Ok(request),
            };
            assert_eq!(decode_request(body(&frame)), Ok(expect), "{name}");
        }
        for (name, message) in sample_messages() {
            let frame = encode_message(&message).unwrap();
            assert_eq!(decode_message(body(&frame)), Ok(message), "{name}");
        }
    }

    #[test]
    fn a_message_that_is_cut_or_goes_on_is_none() {
        for (name, bytes) in sample_bodies() {
            for cut in 0..bytes.len() {
                assert!(
                    decode_request(&bytes[..cut]).is_err(),
                    "{name} cut at {cut}"
                );
                assert!(
                    decode_message(&bytes[..cut]).is_err(),
                    "{name} cut at {cut}"
                );
            }
            let longer = [&bytes[..], &[0xc0]].concat();
            assert!(
                decode_request(&longer).is_err() && decode_message(&longer).is_err(),
                "{name}"
            );
            check_body(&bytes);
        }
    }
}
