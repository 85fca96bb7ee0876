//! Frames that decoders must reject, each with the class of its error and the server's response.

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};
use turnkeep_types::{BlobHash, Limits};
use turnkeep_wire::{DecodeError, Frame, Header, Request, roundtrip};

use crate::sample::PAYLOAD;
use crate::{REQ_ID, bytes_of, encoded, requests};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    pub(crate) error: &'static str,
    status: u16,
    bytes: BytesMut,
}

impl Case {
    pub(crate) fn entry(&self) -> Value {
        json!({
            "name": self.name,
            "direction": "request",
            "why": self.why,
            "error": self.error,
            "status": self.status,
            "connection": if self.error == "frame_too_long" { "closes" } else { "goes_on" },
            "hex": hex::encode(&self.bytes),
        })
    }

    pub(crate) fn decode(&self) -> &'static str {
        let limits = Limits::default();
        if Frame::split_first(&mut self.bytes.clone(), limits.frame_bytes_max).is_err() {
            return "frame_too_long";
        }
        let frame = roundtrip::whole_frame(&self.bytes).expect("whole, though malformed");
        Request::decode(frame, &limits).map_or_else(|error| class(&error), |_| "none")
    }
}

fn class(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::UnknownType(_) => "unknown_type",
        DecodeError::UndefinedFlags { .. } => "undefined_flags",
        DecodeError::Truncated { .. } => "truncated",
        DecodeError::LeftOver { .. } => "left_over",
        DecodeError::BadValue { .. } => "bad_value",
        DecodeError::NotUtf8 { .. } => "not_utf8",
        DecodeError::ZeroId { .. } => "zero_id",
        DecodeError::TooMany { .. } => "too_many",
    }
}

fn frame(msg_type: u16, flags: u16, payload: &[u8]) -> BytesMut {
    let len = u32::try_from(payload.len()).unwrap();
    let mut out = BytesMut::new();
    Header {
        len,
        msg_type,
        flags,
        req_id: REQ_ID,
    }
    .encode(&mut out);
    out.put_slice(payload);
    out
}

fn golden(name: &str) -> Frame {
    let (_, value) = requests::all()
        .into_iter()
        .find(|(n, _)| *n == name)
        .unwrap();
    encoded(|out| value.encode(REQ_ID, out))
}

/// A golden frame whose payload was changed.
fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> BytesMut {
    let golden = golden(name);
    let mut payload = golden.payload.to_vec();
    change(&mut payload);
    frame(golden.header.msg_type, golden.header.flags, &payload)
}

/// A golden frame with other flags.
fn flagged(name: &str, flags: u16) -> BytesMut {
    let mut golden = golden(name);
    golden.header.flags = flags;
    bytes_of(&golden)
}

fn put_u32(payload: &mut [u8], at: usize, value: u32) {
    payload[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[rustfmt::skip]
pub(crate) fn all() -> Vec<Case> {
    let case = |name, error, status, why, bytes| Case { name, why, error, status, bytes };
    let type_len = "com.example.Message".len();
    let compression_at = 16 + 4 + type_len + 8;
    let payload_len_at = compression_at + 8 + 32;
    vec![
        case("type_0", "unknown_type", 400, "no message has the number 0", frame(0, 0, b"")),
        case("type_17", "unknown_type", 400, "no message has the number 17", frame(17, 0, b"")),
        case("type_error", "unknown_type", 400, "ERROR is never a request", frame(255, 0, b"")),
        case("type_65535", "unknown_type", 400, "no message has this number", frame(65535, 0, b"x")),
        case("hello_flags", "undefined_flags", 400, "HELLO has no flags", flagged("hello", 1)),
        case("create_flags", "undefined_flags", 400, "bit 0 means nothing here", flagged("ctx_create_empty", 1)),
        case("append_flags", "undefined_flags", 400, "bit 1 means nothing here", flagged("append_turn", 2)),
        case("batch_flags", "undefined_flags", 400, "a batch has no filesystem roots", flagged("append_batch_of_one", 1)),
        case("read_flags", "undefined_flags", 400, "bit 15 means nothing anywhere", flagged("get_last_metadata", 0x8000)),
        case("hello_cut", "truncated", 400, "a HELLO of one byte", frame(1, 0, &[1])),
        case("hello_tag_cut", "truncated", 400, "the tag's length reaches beyond the end", frame(1, 0, &[1, 0, 255, 255, b'a'])),
        case("hello_tag_not_utf8", "not_utf8", 400, "the tag is not UTF-8", frame(1, 0, &[1, 0, 1, 0, 0xff, 0, 0, 0, 0])),
        case("create_without_key", "truncated", 400, "flags bit 3 promises a key", flagged("ctx_create_empty", 8)),
        case("create_with_unannounced_key", "left_over", 400, "a key without flags bit 3", flagged("ctx_create_with_key", 0)),
        case("get_head_empty", "truncated", 400, "an empty payload where an id belongs", frame(4, 0, b"")),
        case("get_head_left_over", "left_over", 400, "one byte after the last field", frame(4, 0, &[1, 0, 0, 0, 0, 0, 0, 0, 9])),
        case("get_head_of_0", "zero_id", 404, "0 names no context", frame(4, 0, &[0; 8])),
        case("append_cut", "truncated", 400, "the last byte is missing", changed("append_turn", |p| { p.pop(); })),
        case("append_left_over", "left_over", 400, "one byte after the key", changed("append_turn", |p| p.push(0))),
        case("append_without_root", "truncated", 400, "flags bit 0 promises a root", flagged("append_turn", 1)),
        case("append_without_expected_head", "truncated", 400, "flags bit 2 promises a head", flagged("append_turn", 4)),
        case("append_type_len_huge", "truncated", 400, "the type id declares 4 GiB", changed("append_turn", |p| put_u32(p, 16, u32::MAX))),
        case("append_payload_len_huge", "truncated", 400, "the payload declares 4 GiB", changed("append_turn", |p| put_u32(p, payload_len_at, u32::MAX))),
        case("append_type_not_utf8", "not_utf8", 400, "the type id is not UTF-8", changed("append_turn", |p| p[20] = 0xff)),
        case("append_compression_2", "bad_value", 400, "there is no compression 2", changed("append_turn", |p| put_u32(p, compression_at, 2))),
        case("append_to_context_0", "zero_id", 404, "0 names no context", changed("append_turn", |p| p[..8].fill(0))),
        case("get_last_include_payload_2", "bad_value", 400, "include_payload is 0 or 1", changed("get_last_metadata", |p| put_u32(p, 12, 2))),
        case("get_blob_short", "truncated", 400, "a hash of 31 bytes", frame(9, 0, &BlobHash::of(PAYLOAD).0[..31])),
        case("put_blob_too_long", "left_over", 400, "more bytes than raw_len says", changed("put_blob", |p| p.push(0))),
        case("put_blob_too_short", "truncated", 400, "fewer bytes than raw_len says", changed("put_blob", |p| { p.pop(); })),
        case("bundle_id_not_utf8", "not_utf8", 400, "the bundle id is not UTF-8", changed("registry_put_bundle", |p| p[4] = 0xff)),
        case("batch_count_beyond_the_payload", "truncated", 400, "1024 turns are declared, one is there", changed("append_batch_of_one", |p| put_u32(p, 16, 1024))),
        case("batch_count_huge", "too_many", 413, "a batch has at most 1024 turns", changed("append_batch_of_one", |p| put_u32(p, 16, u32::MAX))),
        case("has_blobs_count_huge", "too_many", 413, "4 billion hashes are declared, two are there", changed("has_blobs", |p| put_u32(p, 0, u32::MAX))),
        case("has_blobs_cut", "truncated", 400, "three hashes are declared, two are there", changed("has_blobs", |p| put_u32(p, 0, 3))),
        case("cancel_cut", "truncated", 400, "half a request id", frame(15, 0, &[1, 0, 0, 0])),
        case("frame_over_the_limit", "frame_too_long", 413, "one byte more than 64 MiB is declared", {
            let mut out = frame(5, 0, b"");
            put_u32(&mut out, 0, (64 << 20) + 1);
            out
        }),
        case("not_a_frame", "frame_too_long", 413, "an HTTP request", BytesMut::from(&b"GET / HTTP/1.1\r\n\r\n"[..])),
    ]
}
