//! Runs every decoder on arbitrary bytes: it rejects or reproduces them, and never panics.

#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

use bytes::BytesMut;
use proptest::prelude::*;
use turnkeep_wire::{Header, roundtrip};

fn framed(msg_type: u16, flags: u16, payload: &[u8]) -> BytesMut {
    let len = u32::try_from(payload.len()).unwrap();
    let mut out = BytesMut::new();
    Header {
        len,
        msg_type,
        flags,
        req_id: 1,
    }
    .encode(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Bytes in which small numbers are common, so that length fields often make sense.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0_u8), 2 => 0..4_u8, 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(
        msg_type in prop_oneof![0..20_u16, Just(255)],
        flags in 0..16_u16,
        payload in payload(),
    ) {
        roundtrip::check_frame(&framed(msg_type, flags, &payload));
    }

    #[test]
    fn bytes_that_are_no_frame_are_left_alone(bytes in payload()) {
        roundtrip::check_frame(&bytes);
    }
}
