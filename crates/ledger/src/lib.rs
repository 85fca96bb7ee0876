//! The ledger: one shared history of a world that its people can cite, never rewrite, and never see
//! more of than they may.
//!
//! A world is a deterministic state: facts go in through [`World::apply`], and every answer is read
//! from a [`View`], which is a world as one reader may see it at one position. Nothing here does
//! I/O, reads a clock or draws a random number: the edge brings the time and the ids.

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
pub mod teamworld;
pub mod time;
pub mod tools;
pub mod verify;
pub mod view;
pub mod world;

pub use audience::{Viewer, can_see};
pub use config::Config;
pub use fault::{Code, Fault};
pub use principal::{Grant, Principal, Sight};
pub use view::View;
pub use world::World;
