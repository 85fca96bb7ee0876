//! The store as the place of the files of plain directories.

use std::io;

use bytes::Bytes;
use turnkeep_store::{Command, NewBlob, Payload, Store};
use turnkeep_types::BlobHash;
use turnkeep_workspace::BlobStore;

/// The largest file of a snapshot.
const FILE_BYTES_MAX: usize = 32 << 20;

/// Puts the files of plain directories into the store.
pub(super) struct StoreBlobs(pub(super) Store);

impl BlobStore for StoreBlobs {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobHash> {
        let blob = NewBlob::from_raw(Bytes::copy_from_slice(bytes), FILE_BYTES_MAX);
        let blob = blob.map_err(io::Error::other)?;
        let hash = blob.hash();
        self.0
            .run(Command::PutBlob(blob))
            .map_err(io::Error::other)?;
        Ok(hash)
    }

    fn get(&self, hash: &BlobHash) -> io::Result<Option<Vec<u8>>> {
        if !self.contains(hash)? {
            return Ok(None);
        }
        let blob = self.0.blob(*hash).and_then(Payload::into_raw_bytes);
        Ok(Some(blob.map_err(io::Error::other)?.to_vec()))
    }

    fn contains(&self, hash: &BlobHash) -> io::Result<bool> {
        Ok(self.0.has_blob(*hash).is_some())
    }
}
