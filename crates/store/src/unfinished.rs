//! A mark in a directory that an import or a repair is filling. It goes when the filling is
//! complete and durable, so that a part of a store is never opened as the whole.

use std::io;

use turnkeep_journal::Storage;

const NAME: &str = "log/UNFINISHED";

/// Marks a directory before anything is written to it.
pub(crate) fn mark(storage: &dyn Storage) -> io::Result<()> {
    storage.create(NAME, 0).map(drop)
}

/// Takes the mark away.
pub(crate) fn clear(storage: &dyn Storage) -> io::Result<()> {
    storage.remove(NAME)
}

/// Whether a directory is marked.
pub(crate) fn is_marked(storage: &dyn Storage) -> bool {
    storage.open(NAME).is_ok()
}
