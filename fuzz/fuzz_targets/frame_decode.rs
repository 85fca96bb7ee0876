//! Arbitrary bytes as a frame: whatever decodes encodes to the same bytes again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_wire::roundtrip::check(bytes));
