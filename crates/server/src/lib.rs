//! The network shell: TCP and HTTP in front of the store.

pub mod convert;
pub mod error;
pub mod handle;
