//! Decodes a frame of arbitrary bytes and encodes it again. Fuzz targets and tests compare the two.

use bytes::{Bytes, BytesMut};
use turnkeep_types::Limits;

use crate::frame::{Frame, HEADER_BYTES, Header};
use crate::message::{ItemForm, Request, Response};
use crate::reader::DecodeError;

/// Reads `bytes` as exactly one frame; `None` if they are not.
pub fn whole_frame(bytes: &[u8]) -> Option<Frame> {
    let header = Header::peek(bytes)?;
    let payload = bytes.get(HEADER_BYTES..)?;
    (payload.len() == header.len as usize).then(|| Frame {
        header,
        payload: Bytes::copy_from_slice(payload),
    })
}

/// Decodes a frame as a request and encodes it again. The bytes must be equal.
pub fn reencode_request(frame: Frame) -> Result<BytesMut, DecodeError> {
    let req_id = frame.header.req_id;
    let mut out = BytesMut::new();
    Request::decode(frame, &Limits::default())?.encode(req_id, &mut out);
    Ok(out)
}

/// Decodes a frame as a response and encodes it again. The bytes must be equal.
pub fn reencode_response(frame: Frame, form: ItemForm) -> Result<BytesMut, DecodeError> {
    let req_id = frame.header.req_id;
    let mut out = BytesMut::new();
    Response::decode(frame, form)?.encode(req_id, &mut out);
    Ok(out)
}

/// Runs every decoder on arbitrary bytes. Panics if a decoded frame encodes to other bytes.
pub fn check_frame(bytes: &[u8]) {
    let Some(frame) = whole_frame(bytes) else {
        return;
    };
    // Arbitrary bytes have no direction and no request, so every decoder must cope with them.
    let answers = [
        reencode_request(frame.clone()),
        reencode_response(frame.clone(), ItemForm::Plain),
        reencode_response(frame, ItemForm::Extended),
    ];
    for encoded in answers.into_iter().flatten() {
        assert_eq!(
            &encoded[..],
            bytes,
            "a frame that decodes must encode to the same bytes"
        );
    }
}
