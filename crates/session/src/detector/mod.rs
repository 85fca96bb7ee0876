//! The detector: `feed(now, event)` gives what happened; `deadline()` says when it wants to be woken.
