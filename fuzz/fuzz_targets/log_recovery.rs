//! Arbitrary bytes as the log's segments: recovery and inspection end with an answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_journal::recover_any(bytes));
