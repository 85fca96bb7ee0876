//! Repair: copies the sound part of a damaged log into a new directory.
//!
//! The old directory is only read. Ids stay the same: lost ids are marked as lost in the new log.
//! An interrupted repair leaves a directory that cannot be opened.

use std::collections::HashMap;
use std::sync::Arc;

use turnkeep_journal::{
    AppendError, Batch, BlobRecord, FileLog, Log, LogOptions, Stamp, Storage, SyncPolicy,
};
use turnkeep_types::{BlobHash, Timestamp};

use super::{LogWalk, Report, Salvaged, Writers};
use crate::record::{BlobName, Record};
use crate::store::OpenError;
use crate::unfinished;

/// Why a repair failed.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The new directory holds a store.
    #[error("the new directory is not empty: a repair needs an empty one")]
    NotEmpty,
    /// One of the logs cannot be read or opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new directory cannot be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The new directory cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Copies the sound part of `from` into the empty directory `to`. The caller must hold the lock of
/// `to` and must make sure that no server writes to `from`. Turns keep their ids; reading a lost
/// turn returns an error that names the loss.
pub fn repair(
    from: &Arc<dyn Storage>,
    to: &Arc<dyn Storage>,
    segment_bytes: u64,
    progress: impl FnMut(u64, u64),
) -> Result<Report, RepairError> {
    if !to.list("log")?.is_empty() {
        return Err(RepairError::NotEmpty);
    }
    if unfinished::is_marked(&**from) {
        return Err(OpenError::Unfinished.into());
    }
    // Before the first frame: a crash must not leave a partial copy that opens.
    unfinished::mark(&**to)?;
    let store_id = turnkeep_journal::inspect(from.clone())?
        .store_id()
        .unwrap_or_default();
    let options = LogOptions {
        segment_bytes,
        sync: SyncPolicy::Os,
        writer: 0,
        store_id_if_new: store_id,
        known_durable: None,
    };
    let (log, _) = FileLog::open(to.clone(), options).map_err(OpenError::from)?;
    let mut copy = RepairedLog {
        log,
        batch: Batch::new(),
        stamp: Stamp::default(),
        in_frame: HashMap::new(),
    };
    let mut walk = LogWalk::new();
    walk.run(from, Writers::None, progress, |walk, salvaged| {
        copy.append_frame(walk, salvaged)
    })?;
    // The mark goes only after every frame is durable.
    copy.log.sync()?;
    unfinished::clear(&**to)?;
    Ok(walk.finish())
}

/// The new log.
struct RepairedLog {
    log: FileLog,
    batch: Batch,
    /// The stamp of the next frame. Its marks are the table lengths before that frame.
    stamp: Stamp,
    /// The places of the current frame's blobs.
    in_frame: HashMap<BlobHash, u32>,
}

impl RepairedLog {
    fn append_frame(&mut self, walk: &LogWalk, salvaged: Salvaged<'_>) -> Result<(), RepairError> {
        let created_at = salvaged
            .frame
            .map_or(self.stamp.created_at, |frame| frame.stamp.created_at);
        self.batch.restart(Stamp {
            created_at,
            ..self.stamp
        });
        self.add_sound_blobs(&salvaged);
        let mut body = Vec::new();
        for mut record in salvaged.records {
            self.update_blob_places(&mut record);
            body.clear();
            let tag = record.encode(&mut body);
            self.batch.push_command(tag.kind, tag.version, &body);
        }
        // A frame of which nothing is left is dropped; later frames get lower positions.
        if !self.batch.is_empty() {
            self.log.append(&self.batch)?;
        }
        let state = walk.state();
        let marks = [state.turns.len(), state.contexts.len()];
        self.stamp = Stamp {
            created_at: Timestamp(created_at.0),
            marks,
        };
        Ok(())
    }

    /// Adds the sound blobs of the frame to the batch.
    fn add_sound_blobs(&mut self, salvaged: &Salvaged<'_>) {
        self.in_frame.clear();
        let Some(frame) = salvaged.frame else { return };
        for (at, blob) in frame.blobs.iter().enumerate() {
            let Some(bytes) = frame.blob_bytes(at).filter(|_| salvaged.sound[at]) else {
                continue;
            };
            // Unsound blobs are left out, so the others get new places in the frame.
            let number = u32::try_from(self.in_frame.len()).unwrap_or(u32::MAX);
            self.in_frame.insert(blob.hash, number);
            let (hash, raw_len, form, crc) = (blob.hash, blob.raw_len, blob.form, blob.crc);
            self.batch.push_blob(BlobRecord {
                hash,
                raw_len,
                form,
                crc,
                bytes,
            });
        }
    }

    /// Points a record's blob names to the places in the new frame, where damaged blobs are left
    /// out.
    fn update_blob_places(&self, record: &mut Record) {
        let update = |name: &mut BlobName| name.in_frame = self.in_frame.get(&name.hash).copied();
        match record {
            Record::Append { parts, .. } => {
                parts
                    .iter_mut()
                    .flat_map(|part| &mut part.turns)
                    .for_each(|turn| update(&mut turn.payload));
            }
            Record::PutBlob { blob } => update(blob),
            _ => {}
        }
    }
}
