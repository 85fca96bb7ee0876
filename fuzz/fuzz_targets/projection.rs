//! Arbitrary bytes as a payload: projection gives JSON or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_store::projection::fuzz::project_any(bytes));
