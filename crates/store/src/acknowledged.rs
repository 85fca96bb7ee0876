//! The file `index/acknowledged`: how far writes were acknowledged.
//!
//! A log whose last segment was deleted looks like a shorter log, so the log alone cannot reveal
//! that its end is missing. Checkpoints can, but they are rare. The writer updates this file in
//! place after every group and before it sends the group's replies. The next start compares it with
//! the log. The file is not synced: after a power failure it may be some seconds old, but it never
//! names more than the log held.
//!
//! ```text
//! two slots of 512 bytes, written in turn; each begins with
//! offset  size  what
//!      0     8  magic "TKACKED1"
//!      8     4  CRC32C of bytes 16..72
//!     12     4  zero
//!     16    16  store id
//!     32     8  serial number of the write: the greater one counts
//!     40     8  the last position known to be durable
//!     48     8  the last position that was acknowledged
//!     56     8  how many turns there were then
//!     64     8  how many contexts there were then
//! ```
//! A slot counts if its checksum holds. A crash in the middle of a write spoils one slot; the other
//! slot still holds the write before it.

use std::io;
use std::sync::Arc;

use turnkeep_journal::{Position, Storage, StorageFile, blob_crc};

use crate::state::State;

/// The file's path, relative to the data directory.
pub(crate) const NAME: &str = "index/acknowledged";

const MAGIC: &[u8; 8] = b"TKACKED1";
/// A disk's sector, so that a torn write of one slot cannot reach the other.
const SLOT_BYTES: u64 = 512;
const SLOTS: u64 = 2;
const RECORD_BYTES: usize = 72;
/// Where the part of a record begins that its checksum covers.
const COVERED_FROM: usize = 16;

/// The last position and the numbers of ids that were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Acknowledged {
    pub(crate) store_id: [u8; 16],
    /// The last position known to be durable. Only `--durability os` lets it lag behind `position`.
    pub(crate) durable: Position,
    pub(crate) position: Position,
    pub(crate) turns: u64,
    pub(crate) contexts: u64,
}

impl Acknowledged {
    /// Describes a state that was built from the log up to `position`.
    pub(crate) fn from_state(
        store_id: [u8; 16],
        state: &State,
        position: Position,
        durable: Position,
    ) -> Self {
        Self {
            store_id,
            durable,
            position,
            turns: state.turns.len(),
            contexts: state.contexts.len(),
        }
    }

    fn encode(&self, serial: u64) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[16..32].copy_from_slice(&self.store_id);
        let numbers = [
            serial,
            self.durable.0,
            self.position.0,
            self.turns,
            self.contexts,
        ];
        for (at, number) in numbers.into_iter().enumerate() {
            out[32 + at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = blob_crc(&out[COVERED_FROM..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a slot; `None` if it is not sound.
    fn decode(slot: &[u8]) -> Option<Slot> {
        let record = slot.first_chunk::<RECORD_BYTES>()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| record[at + i]));
        let read = Self {
            store_id: std::array::from_fn(|i| record[16 + i]),
            durable: Position(number(40)),
            position: Position(number(48)),
            turns: number(56),
            contexts: number(64),
        };
        let serial = number(32);
        // Encoding it again checks the magic, the checksum and the zero bytes at once.
        (read.encode(serial) == *record).then_some(Slot {
            serial,
            acknowledged: read,
        })
    }
}

/// One of the two slots of the file.
struct Slot {
    serial: u64,
    acknowledged: Acknowledged,
}

/// Reads the file; `None` if it is missing or no slot is sound.
pub(crate) fn read(storage: &dyn Storage) -> Option<Acknowledged> {
    Some(read_newest_slot(&*storage.open(NAME).ok()?)?.acknowledged)
}

fn read_newest_slot(file: &dyn StorageFile) -> Option<Slot> {
    let slot = |number| {
        file.read(number * SLOT_BYTES..(number + 1) * SLOT_BYTES)
            .ok()
    };
    let slots = (0..SLOTS).filter_map(|number| Acknowledged::decode(&slot(number)?));
    slots.max_by_key(|slot| slot.serial)
}

/// The open file.
///
/// A store does not open without the file, unless the disk has no room for it or cannot be written:
/// then nothing is acknowledged either. Later, a write that fails only leaves an older file.
pub(crate) struct AcknowledgedFile {
    file: Option<Arc<dyn StorageFile>>,
    serial: u64,
}

impl AcknowledgedFile {
    /// Opens or creates the file and writes `now` to it.
    pub(crate) fn open(storage: &dyn Storage, now: &Acknowledged) -> io::Result<Self> {
        let file = open_or_create(storage).map_err(|error| {
            io::Error::new(error.kind(), format!("{NAME} cannot be used: {error}"))
        })?;
        let serial = file
            .as_deref()
            .and_then(read_newest_slot)
            .map_or(0, |slot| slot.serial);
        let mut opened = Self { file, serial };
        opened.write(now);
        Ok(opened)
    }

    /// Writes the slot that is not the newest, so the newest stays readable during the write.
    pub(crate) fn write(&mut self, now: &Acknowledged) {
        let Some(file) = &self.file else { return };
        self.serial += 1;
        let offset = self.serial % SLOTS * SLOT_BYTES;
        // After a failed write the other slot still counts. It is older, so it claims less than
        // the log holds, which is safe.
        match file.write_at(offset, &now.encode(self.serial)) {
            Ok(()) | Err(_) => {}
        }
    }
}

fn open_or_create(storage: &dyn Storage) -> io::Result<Option<Arc<dyn StorageFile>>> {
    match storage.open(NAME) {
        Ok(file) if file.len() == SLOTS * SLOT_BYTES => return Ok(Some(file)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match storage.create(NAME, SLOTS * SLOT_BYTES) {
        Ok(file) => Ok(Some(file)),
        // The file only helps to notice a loss. A disk that cannot be written, or has no space, must
        // not keep the store from opening.
        Err(error) if is_unwritable(error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether nothing at all can be written to the disk.
fn is_unwritable(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_journal::MemoryStorage;

    fn at(position: u64) -> Acknowledged {
        let position = Position(position);
        Acknowledged {
            store_id: [7; 16],
            durable: position,
            position,
            turns: 5,
            contexts: 2,
        }
    }

    #[test]
    fn the_newest_sound_slot_counts() {
        let disk = MemoryStorage::new();
        assert_eq!(read(&disk), None);
        let mut file = AcknowledgedFile::open(&disk, &at(1)).unwrap();
        file.write(&at(2));
        assert_eq!(read(&disk), Some(at(2)));
        let mut file = AcknowledgedFile::open(&disk, &at(3)).unwrap();
        file.write(&at(4));
        for bit in 0..RECORD_BYTES * 8 {
            let mut files = disk.files();
            let slot = usize::try_from(file.serial % SLOTS * SLOT_BYTES).unwrap();
            files.get_mut(NAME).unwrap()[slot + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                read(&MemoryStorage::with_files(files)),
                Some(at(3)),
                "bit {bit}"
            );
        }
    }
}
