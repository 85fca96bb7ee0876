//! Copies of runs: forks, archives as zip files, and scripts that replay a run.
//!
//! A copy begins with the records of its origin, byte for byte: the ids of events, nodes and
//! artifacts are the same in both. That is safe, because everything that lives outside the log is
//! named by the run and the node together. `docs/decisions/0015-copies-of-runs.md` says why.
//!
//! - `fork` starts a run from an event of another one. Its contexts are forks in the store.
//! - `export` writes a run into one file (`layout`, `zip`), with a page for people (`page`).
//! - `import` reads such a file. It is hostile until all of it is checked (`checked_archive`).
//! - `script` writes what the programs of a run did as a script for the scripted agent.
//! - `new_copy` makes the contexts of a copy. A copy is invisible until it is complete: its context
//!   of events gets the label of a run last, in one command.

mod checked_archive;
mod error;
mod export;
mod fork;
mod import;
mod layout;
mod new_copy;
mod page;
mod run_cut;
mod scratch_file;
mod script;
#[cfg(test)]
mod tests;
mod transcript_lines;
mod zip;

pub(crate) use error::ArchiveError;
pub(crate) use export::export_run;
pub(crate) use fork::{ForkRequest, fork_run};
pub(crate) use import::{ImportRequest, import_run};
pub(crate) use scratch_file::create_scratch_file;
pub(crate) use script::record_script;
