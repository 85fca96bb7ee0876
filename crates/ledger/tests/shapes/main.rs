//! The shapes of the ledger from outside: what is read, what is refused, with which word and where.

#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

mod any_json;
mod bundle;
mod entry;
mod envelope;
mod examples;
mod forms;
mod json_schema;
mod order;
mod outputs;
mod pocket;
mod prose;
mod rig;
