//! A disk in memory whose syncs wait for the test.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use turnkeep_journal::storage::{FileBytes, StorageFile};
use turnkeep_journal::{MemoryStorage, Storage};

/// Clones are the same disk. Nothing that was written is durable before its sync has passed the gate.
#[derive(Clone, Default)]
pub(super) struct HeldDisk {
    memory: MemoryStorage,
    pub(super) gate: Arc<Gate>,
}

/// What a sync passes. It is open until the test holds it.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_held: bool,
    waiting: u32,
    permits: u32,
}

impl Gate {
    pub(super) fn hold(&self) {
        self.lock().is_held = true;
    }

    /// Whether a sync waits.
    pub(super) fn has_waiting_sync(&self) -> bool {
        let state = self.lock();
        state.waiting > state.permits
    }

    pub(super) fn let_one_pass(&self) {
        self.lock().permits += 1;
        self.changed.notify_all();
    }

    pub(super) fn open(&self) {
        self.lock().is_held = false;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        while state.is_held && state.permits == 0 {
            let changed = self.changed.wait(state);
            state = changed.unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.permits = state.permits.saturating_sub(1);
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldDisk {
    fn hold_file(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let gate = Arc::clone(&self.gate);
        Arc::new(HeldFile { file, gate })
    }
}

impl Storage for HeldDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.memory.list(dir)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.hold_file(self.memory.create(name, len)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.hold_file(self.memory.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.memory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.memory.remove(name)
    }
}

struct HeldFile {
    file: Arc<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl StorageFile for HeldFile {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn read(&self, range: Range<u64>) -> io::Result<FileBytes> {
        self.file.read(range)
    }
}
