//! The vocabulary of the broker: what wrappers and clients say to it, and what it answers.
