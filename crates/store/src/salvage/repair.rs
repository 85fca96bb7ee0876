//! Repair: what is sound of a damaged log, in a new directory.

use std::collections::HashMap;
use std::sync::Arc;

use turnkeep_journal::{
    AppendError, Batch, BlobRecord, FileLog, Log, LogOptions, Stamp, Storage, SyncPolicy,
};
use turnkeep_types::{BlobHash, Timestamp};

use super::{Report, Salvaged, Walk, Writers};
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

/// Copies what is sound into a new, empty directory, which must be locked by the caller. Nobody may
/// write to the old one, which is only read. Turns keep their ids; those that were lost are told
/// apart when they are read.
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
    let mut copy = Copy {
        log,
        batch: Batch::new(),
        stamp: Stamp::default(),
        in_frame: HashMap::new(),
    };
    let mut walk = Walk::new();
    walk.run(from, Writers::None, progress, |walk, salvaged| {
        copy.append(walk, salvaged)
    })?;
    copy.log.sync()?;
    unfinished::clear(&**to)?;
    Ok(walk.finish())
}

struct Copy {
    log: FileLog,
    batch: Batch,
    /// The stamp of the next frame: its marks are what was there before it.
    stamp: Stamp,
    in_frame: HashMap<BlobHash, u32>,
}

impl Copy {
    fn append(&mut self, walk: &Walk, salvaged: Salvaged<'_>) -> Result<(), RepairError> {
        let created_at = salvaged
            .frame
            .map_or(self.stamp.created_at, |frame| frame.stamp.created_at);
        self.batch.restart(Stamp {
            created_at,
            ..self.stamp
        });
        self.bring_blobs(&salvaged);
        let mut body = Vec::new();
        for mut record in salvaged.records {
            self.rename_blobs(&mut record);
            body.clear();
            let tag = record.encode(&mut body);
            self.batch.push_command(tag.kind, tag.version, &body);
        }
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

    /// Takes over the frame's blobs that are sound.
    fn bring_blobs(&mut self, salvaged: &Salvaged<'_>) {
        self.in_frame.clear();
        let Some(frame) = salvaged.frame else { return };
        for (at, blob) in frame.blobs.iter().enumerate() {
            let Some(bytes) = frame.blob_bytes(at).filter(|_| salvaged.sound[at]) else {
                continue;
            };
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

    fn rename_blobs(&self, record: &mut Record) {
        let rename = |name: &mut BlobName| name.in_frame = self.in_frame.get(&name.hash).copied();
        match record {
            Record::Append { parts, .. } => {
                parts
                    .iter_mut()
                    .flat_map(|part| &mut part.turns)
                    .for_each(|turn| rename(&mut turn.payload));
            }
            Record::PutBlob { blob } => rename(blob),
            _ => {}
        }
    }
}
