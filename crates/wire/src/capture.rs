//! How a captured turn is stored: its type, its payload and its idempotency keys.
//!
//! Each session has one context, and each captured turn is one turn in it. Both have idempotency
//! keys, so keeping a turn twice, or after a lost response, stores it once. The payload has
//! `content` only if it differs from the text, so that nothing is stored twice.

use std::collections::BTreeMap;

use bytes::Bytes;
use turnkeep_types::TypeRef;
use turnkeep_types::broker::FoundTurn;
use turnkeep_types::msgpack::MsgpackWriter;

/// The bundle that describes captured turns.
pub const BUNDLE: &str = include_str!("capture.json");
/// The bundle's id.
pub const BUNDLE_ID: &str = "turnkeep.capture#1";
/// The type of a captured turn.
pub const TURN_TYPE: &str = "turnkeep.capture.Turn";
const TURN_VERSION: u32 = 1;

/// The declared type of a captured turn.
pub fn turn_type() -> TypeRef {
    TypeRef::new(TURN_TYPE, TURN_VERSION)
}

/// The idempotency key of a session's context.
pub fn context_key(session: &str) -> Bytes {
    Bytes::from(format!("turnkeep.capture:{session}"))
}

/// The idempotency key of a captured turn.
pub fn turn_key(turn: &FoundTurn) -> Bytes {
    Bytes::copy_from_slice(turn.info.turn_id.as_bytes())
}

/// The first labels of a session's context.
pub fn context_labels(turn: &FoundTurn) -> BTreeMap<String, String> {
    let labels = [
        ("session", Some(&turn.session)),
        ("name", turn.name.as_ref()),
        ("preset", turn.preset.as_ref()),
    ];
    labels
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.clone())))
        .collect()
}

/// The value of a field.
enum Field<'a> {
    Text(&'a str),
    Number(u64),
    Set,
    Binary(&'a [u8]),
}

/// Encodes the turn as a payload of [`TURN_TYPE`]. The numbers are the tags in `capture.json`.
pub fn encode_turn_payload(turn: &FoundTurn) -> Bytes {
    let text = turn.readable();
    // Most turns are plain text, whose content is the same bytes as the text.
    let is_plain_text = text.map(str::as_bytes) == Some(&turn.content[..]);
    let content = (!is_plain_text).then_some(Field::Binary(&turn.content));
    // An absent flag means false, so most turns have none of the three.
    let flag = |set: bool| set.then_some(Field::Set);
    let fields = [
        (1, Some(Field::Text(&turn.info.turn_id))),
        (2, Some(Field::Text(&turn.session))),
        (3, turn.name.as_deref().map(Field::Text)),
        (4, turn.preset.as_deref().map(Field::Text)),
        (5, Some(Field::Number(turn.info.timestamp.0))),
        (6, flag(turn.info.interrupted)),
        (7, flag(turn.info.truncated)),
        (8, flag(turn.info.incomplete)),
        (9, turn.text_source.as_deref().map(Field::Text)),
        (10, text.map(Field::Text)),
        (11, content),
    ];
    // The short fields together take about 256 bytes; the writer grows if they take more.
    let mut out = MsgpackWriter::with_capacity(turn.content.len() + 256);
    out.write_map_header(fields.iter().filter(|(_, field)| field.is_some()).count());
    for (tag, field) in fields {
        if let Some(field) = field {
            out.write_uint(tag);
            write_field(&mut out, &field);
        }
    }
    out.into_bytes().into()
}

fn write_field(out: &mut MsgpackWriter, field: &Field<'_>) {
    match field {
        Field::Text(text) => out.write_str(text),
        Field::Number(number) => out.write_uint(*number),
        Field::Set => out.write_bool(true),
        Field::Binary(bytes) => out.write_bin(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_only_where_it_is_not_the_text() {
        fn check(content: &'static [u8], text: Option<&str>, expect_fields: u8, expect: &[u8]) {
            let turn = FoundTurn {
                content: Bytes::from_static(content),
                text: text.map(str::to_owned),
                ..FoundTurn::default()
            };
            let payload = encode_turn_payload(&turn);
            assert_eq!(payload[0], 0x80 | expect_fields, "{content:?} {text:?}");
            assert!(
                payload.windows(expect.len()).any(|window| window == expect),
                "{payload:?}"
            );
        }
        check(b"plain", None, 4, b"\x0a\xa5plain");
        check(b"plain", Some("plain"), 4, b"\x0a\xa5plain");
        check(b"\x1b[1mbold", Some("bold"), 5, b"\x0b\xc4\x08\x1b[1mbold");
        check(b"\xff", None, 4, b"\x0b\xc4\x01\xff");
    }
}
