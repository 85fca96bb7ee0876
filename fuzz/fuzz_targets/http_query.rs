//! Arbitrary bytes as the query of every route.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnkeep_server::http::query::parse_any(bytes));
