//! As much of the binary protocol as the load generator and the bare server need, on bare bytes.
//!
//! Requests are assembled before the clock starts and answers are only measured by their header, so
//! that the client costs as little as possible: it shares the machine with what it measures.

use anyhow::{Result, bail};

/// Bytes of a frame's header.
pub(super) const HEADER_BYTES: usize = 16;
/// Bytes of an append's ack, header included.
pub(super) const ACK_BYTES: usize = HEADER_BYTES + 52;
/// Turns of a page in the reading benchmarks.
pub(super) const PAGE_TURNS: u32 = 64;

pub(super) const HELLO: u16 = 1;
pub(super) const CTX_CREATE: u16 = 2;
pub(super) const GET_HEAD: u16 = 4;
pub(super) const APPEND_TURN: u16 = 5;
pub(super) const GET_LAST: u16 = 6;
pub(super) const REGISTRY_PUT_BUNDLE: u16 = 12;
pub(super) const ERROR: u16 = 255;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) len: usize,
    pub(super) kind: u16,
    pub(super) request: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A little-endian number inside `bytes`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A little-endian number inside `bytes`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a header; none while it is not complete.
pub(super) fn read_header(bytes: &[u8]) -> Option<Header> {
    let len = u32_at(bytes, 0)? as usize;
    Some(Header {
        len,
        kind: u16_at(bytes, 4)?,
        request: u64_at(bytes, 8)?,
    })
}

/// Starts a frame whose length is known.
pub(super) fn put_header(out: &mut Vec<u8>, header: Header) {
    out.extend_from_slice(&u32::try_from(header.len).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&header.kind.to_le_bytes());
    out.extend_from_slice(&0u16.to_le_bytes());
    out.extend_from_slice(&header.request.to_le_bytes());
}

/// A whole frame.
pub(super) fn whole_frame(kind: u16, request: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + payload.len());
    let header = Header {
        len: payload.len(),
        kind,
        request,
    };
    put_header(&mut out, header);
    out.extend_from_slice(payload);
    out
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// HELLO with the token, if there is one.
pub(super) fn hello_frame(token: Option<&str>) -> Vec<u8> {
    let meta = token.map_or_else(String::new, |token| {
        serde_json::json!({ "token": token }).to_string()
    });
    let mut payload = vec![1, 0, 0, 0];
    put_bytes(&mut payload, meta.as_bytes());
    whole_frame(HELLO, 0, &payload)
}

/// `REGISTRY_PUT_BUNDLE`.
pub(super) fn put_bundle(id: &str, json: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    put_bytes(&mut payload, id.as_bytes());
    put_bytes(&mut payload, json.as_bytes());
    whole_frame(REGISTRY_PUT_BUNDLE, 0, &payload)
}

/// `GET_LAST` of one page with payloads.
pub(super) fn get_last(context: u64, request: u64) -> Vec<u8> {
    let mut payload = context.to_le_bytes().to_vec();
    payload.extend_from_slice(&PAGE_TURNS.to_le_bytes());
    payload.extend_from_slice(&1u32.to_le_bytes());
    whole_frame(GET_LAST, request, &payload)
}

/// What an append says besides its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct AppendHead<'a> {
    pub(super) context: u64,
    pub(super) request: u64,
    pub(super) type_id: &'a str,
    pub(super) key: &'a [u8],
}

/// Appends an `APPEND_TURN` frame onto the current head to `out`.
pub(super) fn put_append(out: &mut Vec<u8>, head: AppendHead<'_>, payload: &[u8]) {
    let fixed = 8 + 8 + 4 + 16 + 32 + 4 + 4;
    let header = Header {
        len: fixed + head.type_id.len() + payload.len() + head.key.len(),
        kind: APPEND_TURN,
        request: head.request,
    };
    put_header(out, header);
    out.extend_from_slice(&head.context.to_le_bytes());
    // Parent 0 is the context's current head.
    out.extend_from_slice(&0u64.to_le_bytes());
    put_bytes(out, head.type_id.as_bytes());
    let raw_len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    // Version, encoding (msgpack), compression (none) and length.
    for number in [1, 1, 0, raw_len] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(blake3::hash(payload).as_bytes());
    put_bytes(out, payload);
    put_bytes(out, head.key);
}

/// The payload of an `APPEND_TURN`, checked against its hash.
pub(super) fn checked_payload(append: &[u8]) -> Result<([u8; 32], &[u8])> {
    match payload_parts(append) {
        Some((hash, payload)) if *blake3::hash(payload).as_bytes() == hash => Ok((hash, payload)),
        Some(_) => bail!("the payload does not match its hash"),
        None => bail!("an append is cut short"),
    }
}

/// The hash and the payload of an append; none if it is cut short.
fn payload_parts(append: &[u8]) -> Option<([u8; 32], &[u8])> {
    // Context and parent come first, then the type's id and four numbers.
    let type_len = u32_at(append, 16)? as usize;
    let at = 20_usize.checked_add(type_len)?.checked_add(16)?;
    let hash: [u8; 32] = *append.get(at..)?.first_chunk()?;
    let len = u32_at(append, at + 32)? as usize;
    let payload = append.get(at + 36..(at + 36).checked_add(len)?)?;
    Some((hash, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_is_framed_as_the_protocol_says() {
        let mut out = Vec::new();
        put_append(
            &mut out,
            AppendHead {
                context: 7,
                request: 9,
                type_id: "t",
                key: b"k",
            },
            b"payload",
        );
        let head = read_header(&out).unwrap();
        assert_eq!(
            head,
            Header {
                len: out.len() - HEADER_BYTES,
                kind: APPEND_TURN,
                request: 9
            }
        );
        assert_eq!(checked_payload(&out[HEADER_BYTES..]).unwrap().1, b"payload");
        let at = out.len() - 8;
        out[at] ^= 1;
        assert!(checked_payload(&out[HEADER_BYTES..]).is_err());
        assert!(checked_payload(&out[HEADER_BYTES..40]).is_err());
    }

    #[test]
    fn a_header_needs_all_its_bytes() {
        let bytes = whole_frame(HELLO, 3, b"ab");
        assert_eq!(read_header(&bytes[..15]), None);
        assert_eq!(
            read_header(&bytes),
            Some(Header {
                len: 2,
                kind: HELLO,
                request: 3
            })
        );
    }
}
