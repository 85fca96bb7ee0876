//! The golden frames of `testdata/frames`: every message, as bytes and as readable fields.
//!
//! The values are here, the bytes and fields in the files. Each value must encode to its bytes, the
//! bytes must decode to the value, and the fields must tell the same. `UPDATE=1` rewrites the
//! files.

#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

mod fields;
mod malformed;
mod requests;
mod responses;
mod sample;

use std::path::PathBuf;

use bytes::BytesMut;
use serde_json::{Value, json};
use turnkeep_types::Limits;
use turnkeep_wire::message::ItemForm;
use turnkeep_wire::{DecodeError, Frame, Request, Response, roundtrip};

/// The id of every golden request; above 2^53, so that a client which loses bits shows.
const REQ_ID: u64 = 0x8123_4567_89ab_cdef;

#[test]
fn every_request_matches_its_golden_frame() {
    let cases = requests::all();
    compare(
        "requests.json",
        &cases
            .iter()
            .map(|(name, value)| request_entry(name, value))
            .collect(),
    );
    for (name, value) in cases {
        let frame = encoded(|out| value.encode(REQ_ID, out));
        assert_eq!(
            Request::decode(frame.clone(), &Limits::default()),
            Ok(value),
            "{name}"
        );
        assert_eq!(
            roundtrip::reencode_request(frame.clone()),
            Ok(bytes_of(&frame)),
            "{name}"
        );
    }
}

#[test]
fn every_response_matches_its_golden_frame() {
    let cases = responses::all();
    compare(
        "responses.json",
        &cases
            .iter()
            .map(|(name, form, value)| response_entry(name, *form, value))
            .collect(),
    );
    for (name, form, value) in cases {
        let frame = encoded(|out| value.encode(REQ_ID, out));
        assert_eq!(Response::decode(frame.clone(), form), Ok(value), "{name}");
        assert_eq!(
            roundtrip::reencode_response(frame.clone(), form),
            Ok(bytes_of(&frame)),
            "{name}"
        );
    }
}

#[test]
fn every_message_type_has_a_golden_request_and_response() {
    let mut requests: Vec<_> = requests::all()
        .iter()
        .map(|(_, r)| r.msg_type().to_wire())
        .collect();
    let mut responses: Vec<_> = responses::all()
        .iter()
        .map(|(_, _, r)| r.msg_type().to_wire())
        .collect();
    requests.dedup();
    responses.dedup();
    assert_eq!(requests, (1..=16).collect::<Vec<_>>());
    assert_eq!(responses, (1..=16).chain([255]).collect::<Vec<_>>());
}

#[test]
fn malformed_frames_are_refused_with_their_class() {
    let cases = malformed::all();
    compare(
        "malformed.json",
        &cases.iter().map(malformed::Case::entry).collect(),
    );
    for case in cases {
        assert_eq!(case.decode(), case.error, "{}: {}", case.name, case.why);
    }
}

#[test]
fn a_golden_request_cut_anywhere_is_refused_as_truncated() {
    for (name, value) in requests::all() {
        let frame = encoded(|out| value.encode(REQ_ID, out));
        for cut in 0..frame.payload.len() {
            let mut part = frame.clone();
            part.payload.truncate(cut);
            part.header.len = u32::try_from(cut).unwrap();
            let is_empty_hello = cut == 0 && part.header.msg_type == 1;
            let truncated = matches!(
                roundtrip::reencode_request(part),
                Err(DecodeError::Truncated { .. })
            );
            assert!(truncated || is_empty_hello, "{name} cut at {cut}");
        }
    }
}

fn request_entry(name: &str, value: &Request) -> Value {
    let frame = encoded(|out| value.encode(REQ_ID, out));
    entry(name, "request", &frame, &fields::of_request(value))
}

fn response_entry(name: &str, form: ItemForm, value: &Response) -> Value {
    let frame = encoded(|out| value.encode(REQ_ID, out));
    let mut entry = entry(name, "response", &frame, &fields::of_response(value));
    if form == ItemForm::Extended {
        entry["request_flags"] = json!(4);
    }
    entry
}

fn entry(name: &str, direction: &str, frame: &Frame, fields: &Value) -> Value {
    json!({
        "name": name,
        "direction": direction,
        "msg_type": frame.header.msg_type,
        "flags": frame.header.flags,
        "req_id": frame.header.req_id.to_string(),
        "fields": fields,
        "hex": hex::encode(bytes_of(frame)),
    })
}

fn encoded(encode: impl FnOnce(&mut BytesMut)) -> Frame {
    let mut out = BytesMut::new();
    encode(&mut out);
    roundtrip::whole_frame(&out).expect("one whole frame")
}

fn bytes_of(frame: &Frame) -> BytesMut {
    let mut out = BytesMut::new();
    frame.header.encode(&mut out);
    out.extend_from_slice(&frame.payload);
    out
}

fn compare(file: &str, entries: &Vec<Value>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/frames")
        .join(file);
    if std::env::var_os("UPDATE").is_some() {
        let text = serde_json::to_string_pretty(entries).unwrap() + "\n";
        std::fs::write(&path, text).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let golden: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(golden.len(), entries.len(), "{file}: UPDATE=1 rewrites it");
    for (golden, entry) in golden.iter().zip(entries) {
        assert_eq!(golden, entry, "{file}: UPDATE=1 rewrites it");
    }
}
