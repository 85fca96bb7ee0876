//! Checks payloads against their hashes, and decompresses them within a limit.

use std::io::Read;

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression};
use turnkeep_wire::message::Item;

use crate::error::Error;

/// The longest payload that is decompressed, far above the default limit of a server.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;

/// Returns the uncompressed payload of an item.
pub fn payload(item: &Item) -> Result<Bytes, Error> {
    match item.compression {
        Compression::None => Ok(item.payload.clone()),
        Compression::Zstd => decompress_payload(item),
    }
}

/// Checks an item's payload against its hash. Only for reads that include payloads: an item without
/// its payload counts as damaged.
pub fn check_item(item: &Item) -> Result<(), Error> {
    check_bytes(item.hash, &payload(item)?)
}

/// Checks bytes against their hash.
pub(crate) fn check_bytes(expected: BlobHash, bytes: &[u8]) -> Result<(), Error> {
    let actual = BlobHash::of(bytes);
    if actual == expected {
        Ok(())
    } else {
        Err(Error::HashMismatch { expected, actual })
    }
}

fn decompress_payload(item: &Item) -> Result<Bytes, Error> {
    let bad = |what: String| Error::BadPayload {
        hash: item.hash,
        what,
    };
    let limit = u64::from(item.raw_len);
    if limit > UNPACKED_BYTES_MAX {
        return Err(bad(format!(
            "it claims {limit} bytes, over the limit of {UNPACKED_BYTES_MAX}"
        )));
    }
    // Grows with the bytes that come out: a hostile server may declare any length.
    let mut raw = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(&item.payload[..]);
    // One byte more than declared is enough to notice a longer payload.
    let read = decoder.and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut raw));
    read.map_err(|error| bad(error.to_string()))?;
    if raw.len() as u64 == limit {
        Ok(raw.into())
    } else {
        Err(bad(format!(
            "expected {limit} bytes, found {} or more",
            raw.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::TurnId;
    use turnkeep_wire::Text;

    use super::*;

    fn zstd_item(raw: &[u8], raw_len: u32, payload: Vec<u8>) -> Item {
        Item {
            turn: TurnId::new(1).unwrap(),
            parent: None,
            depth: 0,
            type_id: Text::default(),
            type_version: 0,
            encoding: 1,
            compression: Compression::Zstd,
            raw_len,
            hash: BlobHash::of(raw),
            payload: payload.into(),
            extra: None,
        }
    }

    #[test]
    fn a_payload_must_have_its_length_and_its_hash() {
        let raw = vec![7; 1000];
        let packed = zstd::bulk::compress(&raw, 1).unwrap();
        assert!(check_item(&zstd_item(&raw, 1000, packed.clone())).is_ok());
        assert!(matches!(
            check_item(&zstd_item(&raw, 999, packed.clone())),
            Err(Error::BadPayload { .. })
        ));
        assert!(matches!(
            check_item(&zstd_item(b"x", 1000, packed)),
            Err(Error::HashMismatch { .. })
        ));
        assert!(matches!(
            check_item(&zstd_item(&raw, 1000, vec![1, 2, 3])),
            Err(Error::BadPayload { .. })
        ));
        let bomb = zstd_item(&raw, u32::MAX, zstd::bulk::compress(&raw, 1).unwrap());
        assert!(
            matches!(check_item(&bomb), Err(Error::BadPayload { what, .. }) if what.contains("over the limit"))
        );
        let missing = zstd_item(&raw, 1000, Vec::new());
        assert!(matches!(
            check_item(&missing),
            Err(Error::BadPayload { .. })
        ));
        let missing = Item {
            compression: Compression::None,
            ..missing
        };
        assert!(matches!(
            check_item(&missing),
            Err(Error::HashMismatch { .. })
        ));
    }
}
