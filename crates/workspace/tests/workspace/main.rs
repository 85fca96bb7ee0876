//! Workspaces in real directories and repositories.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod applying;
mod detection;
mod diffs;
mod integration;
mod snapshots;
mod support;
mod worktrees;
