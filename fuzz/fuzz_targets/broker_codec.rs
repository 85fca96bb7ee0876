//! Arbitrary bytes as a message of the broker: whatever decodes encodes, and decodes to the same value again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_wire::broker::roundtrip::check_body(bytes));
