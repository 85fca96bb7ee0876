//! Arbitrary bytes at every door of the ledger: records, documents, cursors, ids.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_ledger::fuzz::read_any(bytes));
