//! Prepares the next segment before it is needed: a spare file full of zeros.
//!
//! A sync is faster if the file's blocks are allocated, because it then writes data and no
//! metadata. A thread fills the file `log/spare`, and the writer never waits for it: if the spare
//! is not ready, the writer creates a segment without allocated blocks. During a bulk load the
//! writer requests no spare, because writing zeros would take half of the disk's bandwidth.
//!
//! If the disk has no space for a whole segment, the writer creates a smaller one, down to the
//! length of the next frame. A nearly full disk thus accepts writes as long as they fit.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::segment::{self, LOG_DIR};
use crate::storage::{Storage, StorageFile, is_out_of_space};

/// The divisor from one attempted segment length to the next.
const SMALLER_BY: u64 = 4;
/// Below this length the next attempt is a segment for just one frame.
const SMALL_SEGMENT_BYTES: u64 = 1 << 20;
/// If a quarter of a segment fills faster than this, a bulk load is running: 16 MiB of the usual
/// 64 MiB in 100 ms.
const QUARTER_AT_LEAST: Duration = Duration::from_millis(100);

type Created = io::Result<Arc<dyn StorageFile>>;

/// Keeps a spare segment ready.
pub(crate) struct Preallocator {
    storage: Arc<dyn Storage>,
    segment_bytes: u64,
    requests: Option<SyncSender<()>>,
    created: Receiver<Created>,
    spare: SpareState,
    /// When the writer took the current segment; `None` before the first.
    in_use_since: Option<Instant>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the spare segment.
enum SpareState {
    /// Not requested since the writer took the current segment.
    NotRequested,
    /// The current segment fills too fast for a spare.
    Skipped,
    Requested,
    Ready(Arc<dyn StorageFile>),
}

impl Preallocator {
    pub(crate) fn start(storage: Arc<dyn Storage>, segment_bytes: u64) -> io::Result<Self> {
        let (requests, queue) = sync_channel::<()>(1);
        let (done, created) = sync_channel::<Created>(1);
        let disk = storage.clone();
        let create_all = move || {
            for () in queue {
                if done
                    .send(disk.create(&spare_name(), segment_bytes))
                    .is_err()
                {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("turnkeep-preallocate".into())
            .spawn(create_all)?;
        Ok(Self {
            storage,
            segment_bytes,
            requests: Some(requests),
            created,
            spare: SpareState::NotRequested,
            in_use_since: None,
            thread: Some(thread),
        })
    }

    /// Requests a spare. The writer calls this when the current segment is a quarter full; if that
    /// happened too fast, there will be no spare.
    pub(crate) fn request_spare(&mut self) {
        if !matches!(self.spare, SpareState::NotRequested) {
            return;
        }
        // Without a start time the rate is unknown: the segment was in use before the log opened.
        let is_bulk_load = self
            .in_use_since
            .is_some_and(|since| since.elapsed() < QUARTER_AT_LEAST);
        let is_requested = !is_bulk_load
            && self
                .requests
                .as_ref()
                .is_some_and(|requests| requests.try_send(()).is_ok());
        self.spare = if is_requested {
            SpareState::Requested
        } else {
            SpareState::Skipped
        };
    }

    /// Returns the segment with this number and at least this length: the spare if it is ready and
    /// long enough, otherwise a new file.
    pub(crate) fn take_segment(&mut self, number: u64, len: u64) -> Created {
        if let SpareState::Requested = self.spare
            && let Ok(created) = self.created.try_recv()
        {
            // A spare that could not be created, such as on a full disk, is requested again later.
            self.spare = created.map_or(SpareState::NotRequested, SpareState::Ready);
        }
        let name = segment::file_name(number);
        let file = match std::mem::replace(&mut self.spare, SpareState::NotRequested) {
            // Renaming makes the spare a segment in one step: a crash leaves either a spare, which
            // the next one overwrites, or a blank segment, which opening removes.
            SpareState::Ready(file) if file.len() >= len => self
                .storage
                .rename(&spare_name(), &name)
                .and_then(|()| self.storage.open(&name)),
            SpareState::NotRequested => self.create_as_large_as_fits(&name, len),
            // Bulk load, spare not ready, or frame longer than the spare: filling a file with zeros
            // here would stall the writer. A spare that exists stays for the next segment.
            unusable => {
                if !matches!(unusable, SpareState::Skipped) {
                    self.spare = unusable;
                }
                self.storage
                    .create_unfilled(&name, self.segment_bytes.max(len))
            }
        }?;
        self.in_use_since = Some(Instant::now());
        Ok(file)
    }

    /// Creates a segment of the usual length or, if the disk is nearly full, of the largest of a
    /// few smaller lengths that fits.
    fn create_as_large_as_fits(&self, name: &str, len: u64) -> Created {
        let mut wanted = self.segment_bytes.max(len);
        loop {
            match self.storage.create(name, wanted) {
                Err(error) if is_out_of_space(&error) && wanted > len => {
                    let smaller = wanted / SMALLER_BY;
                    wanted = if smaller < SMALL_SEGMENT_BYTES {
                        len
                    } else {
                        smaller.max(len)
                    };
                }
                created => return created,
            }
        }
    }
}

impl Drop for Preallocator {
    fn drop(&mut self) {
        self.requests = None;
        if let SpareState::Requested = self.spare {
            // The thread must finish the spare before it can be removed.
            match self.created.recv() {
                Ok(_) | Err(_) => {}
            }
        }
        if let Some(thread) = self.thread.take() {
            match thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
        // A failure is harmless: the next spare overwrites the file.
        if !matches!(self.spare, SpareState::NotRequested | SpareState::Skipped) {
            match self.storage.remove(&spare_name()) {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

fn spare_name() -> String {
    format!("{LOG_DIR}/spare")
}
