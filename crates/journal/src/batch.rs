//! A batch: the blobs and commands of one frame, collected before it is written.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression, Timestamp};

use crate::frame;

/// The longest blob header in a frame: hash 32, checksum 4, form 1, two varints of up to 5 bytes.
const BLOB_HEADER_BYTES: usize = 47;

/// The state machine's fields of a frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The time at which the batch was begun.
    pub created_at: Timestamp,
    /// Two numbers of the state machine. The store records how many turns and contexts it has
    /// before the frame.
    pub marks: [u64; 2],
}

/// A blob in its stored form.
#[derive(Debug, Clone)]
pub struct BlobRecord {
    /// The hash of the uncompressed bytes.
    pub hash: BlobHash,
    /// Their length.
    pub raw_len: u32,
    /// The form of `bytes`.
    pub form: Compression,
    /// The CRC32C of `bytes`.
    pub crc: u32,
    /// The stored bytes.
    pub bytes: Bytes,
}

impl BlobRecord {
    /// The length of the stored bytes.
    pub fn stored_len(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("blobs are shorter than 4 GiB")
    }
}

/// Blobs and commands that will be one frame. Reused from group to group.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) stamp: Stamp,
    pub(crate) blobs: Vec<BlobRecord>,
    pub(crate) commands: Vec<u8>,
    pub(crate) command_count: u32,
    blob_bytes: usize,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the batch and stamps it.
    pub fn restart(&mut self, stamp: Stamp) {
        self.clear();
        self.stamp = stamp;
    }

    /// Empties the batch, which frees the bytes of its blobs.
    pub(crate) fn clear(&mut self) {
        self.blobs.clear();
        self.commands.clear();
        self.command_count = 0;
        self.blob_bytes = 0;
    }

    /// Adds a blob. The caller makes sure that it is neither in the log nor in the batch.
    pub fn push_blob(&mut self, blob: BlobRecord) {
        self.blob_bytes += blob.bytes.len();
        self.blobs.push(blob);
    }

    /// Adds a command.
    pub fn push_command(&mut self, kind: u8, version: u8, body: &[u8]) {
        frame::put_command(&mut self.commands, kind, version, body);
        self.command_count += 1;
    }

    /// The blobs, in the order in which they were added.
    pub fn blobs(&self) -> &[BlobRecord] {
        &self.blobs
    }

    /// The number of commands.
    pub fn command_count(&self) -> usize {
        self.command_count as usize
    }

    /// The sum of the blobs' stored bytes.
    pub(crate) fn blob_bytes(&self) -> usize {
        self.blob_bytes
    }

    /// An upper bound of the frame's length, without its header and padding.
    pub fn frame_bytes(&self) -> usize {
        self.blob_bytes + self.commands.len() + self.blobs.len() * BLOB_HEADER_BYTES
    }

    /// Whether the batch has neither commands nor blobs.
    pub fn is_empty(&self) -> bool {
        self.command_count == 0 && self.blobs.is_empty()
    }
}
