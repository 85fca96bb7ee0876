//! The ledger: one shared history per world. People can cite it but never rewrite it, and each
//! reader sees only what is addressed to them.
//!
//! A [`World`] is a deterministic state: [`World::apply`] takes facts, live and in replay. Every
//! answer to a reader comes from a [`View`], which is a world as one reader may see it at one
//! position.
//!
//! The crate writes nothing, reads no clock and draws no random number: the edge passes in the time
//! and the random bytes of the ids. Deciding, applying and answering do no I/O. Only loading does: [`log`],
//! [`checkpoint`], [`fork`] and [`verify`] read facts from the store, and a long read starts threads
//! of its own. The crate returns the commands that append facts; the server runs them.

pub mod acceptance;
pub mod anchor;
pub mod as_of;
pub mod audience;
pub mod audience_text;
pub mod beat;
pub mod capsule;
pub mod checkpoint;
pub mod clock;
pub mod config;
pub mod cursor;
mod draft;
pub mod entry;
pub mod envelope;
pub mod epoch;
pub mod fact;
pub mod fault;
pub mod fork;
#[cfg(any(test, feature = "dev"))]
pub mod fuzz;
pub mod ids;
pub mod json;
pub mod known_persons;
pub mod lint;
pub mod log;
mod numbers;
pub mod outcome;
pub mod pocket;
pub mod principal;
pub mod projection;
pub mod proposal;
pub mod quotation;
mod reading;
pub mod record;
pub mod rehydration;
pub mod retrieval;
pub mod schema;
pub mod search;
pub mod staged;
pub mod time;
pub mod tools;
pub mod verify;
pub mod view;
pub mod world;

pub use audience::{Viewer, can_see};
pub use config::Config;
pub use fault::{Code, Fault};
pub use principal::{CitableEntries, Grant, Principal};
pub use view::View;
pub use world::World;
