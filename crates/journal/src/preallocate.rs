//! The next segment, filled with zeros before it is needed: a sync of a file whose blocks are there
//! writes data only.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::segment;
use crate::storage::{Storage, StorageFile};

type Created = (u64, io::Result<Arc<dyn StorageFile>>);

/// Creates segments on a thread of its own, one ahead.
pub(crate) struct Preallocator {
    storage: Arc<dyn Storage>,
    segment_bytes: u64,
    wanted: Option<SyncSender<u64>>,
    created: Receiver<Created>,
    asked_for: Option<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Preallocator {
    pub(crate) fn start(storage: Arc<dyn Storage>, segment_bytes: u64) -> io::Result<Self> {
        let (wanted, queue) = sync_channel::<u64>(1);
        let (done, created) = sync_channel::<Created>(1);
        let disk = storage.clone();
        let create_all = move || {
            for number in queue {
                let file = disk.create(&segment::file_name(number), segment_bytes);
                if done.send((number, file)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("turnkeep-preallocate".into()).spawn(create_all)?;
        Ok(Self {
            storage,
            segment_bytes,
            wanted: Some(wanted),
            created,
            asked_for: None,
            thread: Some(thread),
        })
    }

    /// Asks for a segment to be made ready, once.
    pub(crate) fn prepare(&mut self, number: u64) {
        if self.asked_for.is_none()
            && let Some(wanted) = &self.wanted
            && wanted.try_send(number).is_ok()
        {
            self.asked_for = Some(number);
        }
    }

    /// The segment with this number and at least this length: the prepared one, or one made now.
    pub(crate) fn take(&mut self, number: u64, len: u64) -> io::Result<Arc<dyn StorageFile>> {
        if self.asked_for.take().is_some()
            && let Ok((prepared, Ok(file))) = self.created.recv()
            && prepared == number
            && file.len() >= len
        {
            return Ok(file);
        }
        self.storage.create(&segment::file_name(number), self.segment_bytes.max(len))
    }
}

impl Drop for Preallocator {
    fn drop(&mut self) {
        self.wanted = None;
        if self.asked_for.is_some() {
            drop(self.created.recv());
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
