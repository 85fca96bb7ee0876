//! Arbitrary bytes as a terminal session: bounded, never a panic, the same turns however it is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_session::detector::fuzz::play_any(bytes));
