//! Simulation of the store: a reference model, a generator of random commands, functions that
//! submit them, and named checkers of the store's guarantees.
//!
//! One random seed determines a run. The model follows the documented rules, not the store's code.
//! If commands ran concurrently, or a crash lost their replies, [`linearize`] searches for an order
//! of the commands that explains every reply and the visible state.

pub mod check;
mod generate;
mod linearize;
mod model;
mod random;
mod snapshot;
mod submit;
mod trial;

pub use check::Violation;
pub use generate::Generator;
pub use linearize::{KnownResult, Sent, linearize};
pub use model::{Answer, Model};
pub use random::Random;
pub use snapshot::{Snapshot, VisibleContext, VisibleTurn};
pub use submit::{submit_and_wait, submit_in_one_group};
pub use trial::Trial;
