//! The wrapper: a pseudo-terminal between the user and a program.
