//! What holds for any bytes: whatever decodes encodes, and decodes to the same value again. The fuzzer's door.

use super::{HEADER_BYTES, decode_message, decode_request, encode_message, encode_request};

/// Checks arbitrary bytes as the body of a request and of a message. Panics where the codec contradicts itself.
pub fn check(body: &[u8]) {
    if let Ok(incoming) = decode_request(body)
        && let Ok(request) = &incoming.request
        && let Ok(frame) = encode_request(incoming.id, request)
    {
        let again = decode_request(frame.get(HEADER_BYTES..).unwrap_or_default());
        assert_eq!(again, Ok(incoming.clone()), "a request does not survive its own encoding");
    }
    if let Ok(message) = decode_message(body)
        && let Ok(frame) = encode_message(&message)
    {
        let again = decode_message(frame.get(HEADER_BYTES..).unwrap_or_default());
        assert_eq!(again, Ok(message), "a message does not survive its own encoding");
    }
}
