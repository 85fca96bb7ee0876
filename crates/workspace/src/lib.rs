//! The directories in which the nodes of a run work.
//!
//! A *workspace* is one such directory. The crate records its content as a tree before and after
//! each turn, tells two trees apart as a patch, gives a node a worktree of its own, merges the work
//! of several nodes, and writes a tree back into the user's directory.
//!
//! ```text
//!  cwd ──snapshot──► tree ─┬─diff──► patch
//!                          ├─create_worktree──► a directory and a branch for one node
//!                          └─integrate(nodes)──► merged tree ─┬─apply──► cwd
//!                                                             └─check_out_integration──► a directory
//! ```
//!
//! Inside a git repository a tree is a git tree; elsewhere it is a filesystem tree of the store.
//!
//! Rules that no function breaks:
//!
//! - Nothing of the user's is destroyed. A file is replaced only after its content was compared with
//!   the content that the caller expects, and the replaced file is kept until the whole change is
//!   complete.
//! - The user's HEAD, index, stash, configuration and reflogs stay as they are. Git runs no hook, no
//!   filter and no other program from a configuration file: an agent could have written it.
//! - A path from a tree is data. It never leaves the workspace, not through `..`, `.git` or a symbolic
//!   link.
//!
//! A write that a crash interrupted is undone by [`recover_interrupted`], which the caller runs at its
//! start. All functions block. Errors name the command or the file.

#![expect(
    missing_docs,
    reason = "fields whose name says all have no comment; every type and function has one"
)]

mod apply;
mod binary_patch;
mod diff;
mod error;
mod git;
mod git_index;
mod git_snapshot;
mod git_trees;
mod integrate;
mod landing;
mod line_diff;
mod patch;
mod plain_cache;
mod plain_format;
mod plain_snapshot;
mod plain_trees;
mod repository;
mod root_dir;
mod settings;
mod tree;
mod tree_path;
mod window;
mod workspace;
mod worktree;
mod worktree_dir;

pub use apply::{ApplyOutcome, ApplyTree};
pub use diff::{ChangeKind, Diff, FileChange};
pub use error::WorkspaceError;
pub use integrate::{FileConflict, Integrated, IntegrationOutcome, NodeChanges};
pub use landing::{LandOutcome, Recovery, recover_interrupted};
pub use plain_snapshot::BlobStore;
pub use repository::Detection;
pub use settings::{Settings, SnapshotLimits};
pub use tree::{SkipReason, SkippedFile, Snapshot, SnapshotName, TreeName};
pub use tree_path::{PathError, TreePath};
pub use window::{ConflictingWrite, OverlapReport, TurnWindow, report_overlaps};
pub use workspace::{GitWorkspace, PlainWorkspace, Workspace};
pub use worktree::{AppliedWorktree, CreateWorktree, RemoveWorktree, Worktree};
