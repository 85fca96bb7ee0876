//! The file `log/UNFINISHED`: an import or a repair is filling this directory.
//!
//! The import removes the mark after the last frame is durable. A store with the mark cannot be
//! opened, so a partial copy is never taken for the whole.

use std::io;

use turnkeep_journal::Storage;

const NAME: &str = "log/UNFINISHED";

/// Marks a directory. The caller does this before it writes anything else.
pub(crate) fn mark(storage: &dyn Storage) -> io::Result<()> {
    storage.create(NAME, 0).map(drop)
}

/// Removes the mark.
pub(crate) fn clear(storage: &dyn Storage) -> io::Result<()> {
    storage.remove(NAME)
}

/// Whether an import or repair into the directory was interrupted or still runs.
pub(crate) fn is_marked(storage: &dyn Storage) -> bool {
    storage.open(NAME).is_ok()
}
