//! Decodes one frame of arbitrary bytes and encodes it again: what fuzzing and tests compare.

use bytes::{Bytes, BytesMut};
use turnkeep_types::Limits;

use crate::frame::{Frame, HEADER_BYTES, Header};
use crate::message::{ItemForm, Request, Response};
use crate::reader::DecodeError;

/// The frame that `bytes` are as a whole; `None` if they are not exactly one frame.
pub fn whole_frame(bytes: &[u8]) -> Option<Frame> {
    let header = Header::peek(bytes)?;
    let payload = bytes.get(HEADER_BYTES..)?;
    (payload.len() == header.len as usize).then(|| Frame {
        header,
        payload: Bytes::copy_from_slice(payload),
    })
}

/// Decodes a frame as a request and encodes what came of it. Equal to the frame, or a bug.
pub fn request(frame: Frame) -> Result<BytesMut, DecodeError> {
    let req_id = frame.header.req_id;
    let mut out = BytesMut::new();
    Request::decode(frame, &Limits::default())?.encode(req_id, &mut out);
    Ok(out)
}

/// Decodes a frame as a response and encodes what came of it. Equal to the frame, or a bug.
pub fn response(frame: Frame, form: ItemForm) -> Result<BytesMut, DecodeError> {
    let req_id = frame.header.req_id;
    let mut out = BytesMut::new();
    Response::decode(frame, form)?.encode(req_id, &mut out);
    Ok(out)
}

/// Holds arbitrary bytes against every decoder; panics if one of them loses something.
pub fn check(bytes: &[u8]) {
    let Some(frame) = whole_frame(bytes) else {
        return;
    };
    let answers = [
        request(frame.clone()),
        response(frame.clone(), ItemForm::Plain),
        response(frame, ItemForm::Extended),
    ];
    for encoded in answers.into_iter().flatten() {
        assert_eq!(
            &encoded[..],
            bytes,
            "a frame that decodes must encode to the same bytes"
        );
    }
}
