//! Arbitrary bytes as a bundle: one answer, and replay gives it again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_store::registry::fuzz::check_any(bytes));
