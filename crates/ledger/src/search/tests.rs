//! The index as a whole, against a slow and simple reference and against itself without hidden
//! entries.

mod reference;
mod twins;
mod whole;
