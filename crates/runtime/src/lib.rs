//! The runtime: graphs of agents that hand work to each other under a person's approval.
//!
//! The crate is the deterministic core. It takes commands and reports, and returns events and
//! effects: [`decide`] reads a run and changes nothing, and [`Run::apply`] adds an
//! event and cannot fail, live and in replay. The server makes the events durable, applies them and
//! only then carries out the effects.
//!
//! Nothing here does I/O, reads a clock or draws a random number: the server passes in the time and
//! the seed of the ids. A command that is not allowed is a [`rejection::Rejection`] and leaves no
//! event.

#![expect(
    missing_docs,
    reason = "a field whose name says everything has no comment"
)]

pub mod approval;
pub mod artifact;
pub mod attention;
mod branch_name;
pub mod decide;
pub mod edge;
pub mod effect;
pub mod fact;
pub mod glob;
pub mod hold;
pub mod ids;
pub mod input;
pub mod live;
pub mod node;
pub mod orchestration;
pub mod prompt;
pub mod record;
pub mod rejection;
pub mod replay;
pub mod request;
pub mod run;
pub mod secrets;
pub mod stall;
pub mod tool;
pub mod tool_guide;
pub mod turn;
pub mod usage;
pub mod verification;
pub mod waits;
pub mod words;
pub mod write_scope;

pub use fact::{Event, Fact};
pub use live::LiveRun;
pub use run::Run;
