//! The JSON shapes of the ledger: which ones it accepts, and with which code and path it rejects
//! the others.

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
