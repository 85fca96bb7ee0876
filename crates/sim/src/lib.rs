//! Simulation of the store from one seed: a reference model, a generator of commands, a pilot that
//! submits them alone or together, and named checkers of what must hold whatever happens.
//!
//! The model is written from the contract and not from the store's code. Where commands were in
//! flight together, or their answers were lost in a crash, [`linearize`] looks for an order of the
//! model's steps that explains everything that was answered and everything that can be read.

pub mod check;
mod generate;
mod linearize;
mod model;
mod pilot;
mod random;
mod snapshot;
mod trial;

pub use check::Violation;
pub use generate::Generator;
pub use linearize::{Known, Sent, linearize};
pub use model::{Answer, Model};
pub use pilot::{run_alone, run_together};
pub use random::Random;
pub use snapshot::{ContextFacts, Snapshot, TurnFacts};
pub use trial::Trial;
