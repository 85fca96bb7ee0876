//! Runs of agents: keeps them in memory and makes their events durable, starts their programs and
//! carries out what the runtime decides.
//!
//! The crate `runtime` decides; this module acts. The way of a message through it:
//!
//! 1. A route reads the request (`json`) and calls [`RunHandle::decide_once`].
//! 2. `run_handle` lets the runtime decide, reserves turns (`capacity`), appends the events
//!    (`run_log`, with the transcripts of `transcript_records`) and applies them.
//! 3. `performer` carries out the effects: it prepares the workspace (`workspaces`) and the prompt
//!    (`prompt_sources`, `roles`), and passes the prompt to the node's program (`programs`).
//! 4. The program's task reports what the program prints, again as decisions. Calls of the server's
//!    tools go through `node_tools`; some wait for a person (`waiting_calls`).
//! 5. `file_views` writes the files of the run, sockets send its events, and `world_link` reports them
//!    to the run's world, all from the log.
//!
//! `archive` copies runs: forks, files to export and import, and scripts that replay them.
//!
//! `registry` has all runs, `clock_task` wakes a run when time alone changes something, and
//! `services` is what all of them share.
//!
//! No effect is carried out before its events are durable. An append that fails leaves the run as it
//! was, and the caller gets the error. A run that cannot be read or written stops no other run.

pub(crate) mod archive;
mod backlog;
mod capacity;
pub(crate) mod changes;
mod clock_task;
pub(crate) mod config_files;
pub(crate) mod directory_listing;
mod error;
mod file_remover;
mod file_views;
pub(crate) mod json;
mod kept_answers;
mod launch_settings;
mod named_files;
mod node_tokens;
pub(crate) mod node_tools;
mod notifier;
mod performer;
mod process_records;
mod program_logins;
mod programs;
mod prompt_sources;
mod provider_health;
mod registry;
mod restart;
mod roles;
mod run_creation;
mod run_directory;
mod run_handle;
mod run_log;
mod services;
mod settings;
mod shell_commands;
mod teams;
mod transcript_records;
mod verification;
pub(crate) mod verification_reports;
mod waiting_calls;
mod webhook;
mod workspaces;
pub(crate) mod world_link;

pub use capacity::CapacityLimits;
pub use settings::{NotifyConfig, RunsConfig};
pub use webhook::{WebhookError, WebhookTarget};

pub(crate) use backlog::Backlog;
pub(crate) use error::RunError;
pub(crate) use node_tokens::PresentedToken;
pub(crate) use registry::Runs;
pub(crate) use run_handle::{Decided, RunHandle};
pub(crate) use services::{Heartbeat, RunNotice, RunServiceParts, RunServices};
