//! The broker's state machine: `apply(now, conn, message)` gives a reply and effects.
