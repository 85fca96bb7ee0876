//! The next segment, filled with zeros before it is needed: a sync of a file whose blocks are there
//! writes data only.
//!
//! The filling happens on a thread of its own, in a file beside the segments, and nobody waits for
//! it: a segment that is needed before its blocks are there is created without them. While a bulk
//! load fills segments as fast as zeros could be written, none are: they would cost half of the
//! disk.
//!
//! A disk that has no room for a whole segment gets a smaller one, down to what the next frame
//! needs: otherwise a nearly full disk would refuse every write although there is room for it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::segment::{self, LOG_DIR};
use crate::storage::{Storage, StorageFile, is_out_of_space};

/// By how much each smaller segment is smaller than the one that did not fit.
const SMALLER_BY: u64 = 4;
/// The smallest segment that is tried before one that holds just the next frame.
const SMALL_SEGMENT_BYTES: u64 = 1 << 20;
/// A quarter of a segment that is filled faster than this is a bulk load's.
const QUARTER_AT_LEAST: Duration = Duration::from_millis(100);

type Created = io::Result<Arc<dyn StorageFile>>;

/// Keeps a spare segment ready.
pub(crate) struct Preallocator {
    storage: Arc<dyn Storage>,
    segment_bytes: u64,
    wanted: Option<SyncSender<()>>,
    created: Receiver<Created>,
    stage: Stage,
    /// When the current segment was put in use; none before the first.
    taken: Option<Instant>,
    thread: Option<JoinHandle<()>>,
}

/// How far the spare is.
enum Stage {
    /// None was asked for since the last segment was taken.
    Undecided,
    /// The current segment fills too fast for a spare.
    Skipped,
    Asked,
    Ready(Arc<dyn StorageFile>),
}

impl Preallocator {
    pub(crate) fn start(storage: Arc<dyn Storage>, segment_bytes: u64) -> io::Result<Self> {
        let (wanted, queue) = sync_channel::<()>(1);
        let (done, created) = sync_channel::<Created>(1);
        let disk = storage.clone();
        let create_all = move || {
            for () in queue {
                if done.send(disk.create(&spare(), segment_bytes)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("turnkeep-preallocate".into())
            .spawn(create_all)?;
        let (wanted, thread) = (Some(wanted), Some(thread));
        Ok(Self {
            storage,
            segment_bytes,
            wanted,
            created,
            stage: Stage::Undecided,
            taken: None,
            thread,
        })
    }

    /// Says that the current segment is a quarter full: asks for a spare, unless that was too fast.
    pub(crate) fn prepare(&mut self) {
        if !matches!(self.stage, Stage::Undecided) {
            return;
        }
        let bulk = self
            .taken
            .is_some_and(|taken| taken.elapsed() < QUARTER_AT_LEAST);
        let asked = !bulk
            && self
                .wanted
                .as_ref()
                .is_some_and(|wanted| wanted.try_send(()).is_ok());
        self.stage = if asked { Stage::Asked } else { Stage::Skipped };
    }

    /// The segment with this number and at least this length: the spare if it is ready, or one made
    /// now.
    pub(crate) fn take(&mut self, number: u64, len: u64) -> Created {
        if let Stage::Asked = self.stage
            && let Ok(created) = self.created.try_recv()
        {
            self.stage = created.map_or(Stage::Undecided, Stage::Ready);
        }
        let name = segment::file_name(number);
        let file = match std::mem::replace(&mut self.stage, Stage::Undecided) {
            Stage::Ready(file) if file.len() >= len => self
                .storage
                .rename(&spare(), &name)
                .and_then(|()| self.storage.open(&name)),
            Stage::Undecided => self.create_as_large_as_fits(&name, len),
            unusable => {
                self.stage = unusable.kept();
                self.storage
                    .create_unfilled(&name, self.segment_bytes.max(len))
            }
        }?;
        self.taken = Some(Instant::now());
        Ok(file)
    }

    /// Creates a segment of the usual length, or of the largest of a few lengths for which there is
    /// room.
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

impl Stage {
    /// What stays of a spare that was not used.
    fn kept(self) -> Self {
        if let Self::Skipped = self {
            Self::Undecided
        } else {
            self
        }
    }
}

impl Drop for Preallocator {
    fn drop(&mut self) {
        self.wanted = None;
        if let Stage::Asked = self.stage {
            drop(self.created.recv());
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        // A spare that stays is overwritten by the next one.
        if !matches!(self.stage, Stage::Undecided | Stage::Skipped) {
            drop(self.storage.remove(&spare()));
        }
    }
}

fn spare() -> String {
    format!("{LOG_DIR}/spare")
}
