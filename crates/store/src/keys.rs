//! Idempotency keys: the store keeps two digests of each key for ever.
//!
//! Clients choose the keys, and keys may be long. The tables therefore hold 128 bits of BLAKE3 over
//! the key and its scope, and 64 bits over the request. An equal request with the same key is a
//! repeat; a different request with the same key is rejected.

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::command::{Key, Labels};
use crate::record::{PartRecord, put_labels};
use turnkeep_types::varint::{put, put_bytes};

/// Identifies a key in its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyDigest(pub(crate) [u64; 2]);

/// Digests an append's key. Its scope is the context.
pub(crate) fn digest_append_key(context: ContextId, key: &Key) -> KeyDigest {
    digest_scoped_key(b"turnkeep append key", context.get(), key)
}

/// Digests the key of a new context. Its scope is the store.
pub(crate) fn digest_create_key(key: &Key) -> KeyDigest {
    digest_scoped_key(b"turnkeep create key", 0, key)
}

/// Digests the parts of an append that a repeat must have in common with it: hashes, types,
/// encodings, parents as sent and filesystem roots. Compression and expected heads may differ.
pub(crate) fn digest_append_request(parts: &[PartRecord]) -> u64 {
    let mut request = Vec::with_capacity(128);
    put(&mut request, parts.len() as u64);
    for part in parts {
        put(&mut request, part.context.get());
        put(&mut request, TurnId::to_wire(part.sent_parent));
        put(&mut request, part.turns.len() as u64);
        for turn in &part.turns {
            // Counts and lengths are digested too, so that two requests never give the same bytes.
            request.extend_from_slice(turn.payload.hash.as_bytes());
            put_bytes(&mut request, turn.declared.id.as_bytes());
            put(&mut request, turn.declared.version.into());
            put(&mut request, turn.encoding.into());
            put_bytes(
                &mut request,
                turn.fs_root
                    .as_ref()
                    .map_or(&[], |root: &BlobHash| root.as_bytes()),
            );
        }
    }
    hash_to_words(&request)[0]
}

/// Digests the parts of a context's creation that a repeat must have in common with it.
pub(crate) fn digest_create_request(base: Option<TurnId>, labels: &Labels) -> u64 {
    let mut request = Vec::new();
    put(&mut request, TurnId::to_wire(base));
    put_labels(&mut request, labels);
    hash_to_words(&request)[0]
}

fn digest_scoped_key(domain: &[u8], scope: u64, key: &Key) -> KeyDigest {
    // The domain separates keys of appends from keys of creations, which have different scopes.
    let mut scoped = Vec::with_capacity(96);
    put_bytes(&mut scoped, domain);
    put(&mut scoped, scope);
    put_bytes(&mut scoped, key.as_bytes());
    KeyDigest(hash_to_words(&scoped))
}

fn hash_to_words(bytes: &[u8]) -> [u64; 2] {
    let hash = BlobHash::of(bytes);
    std::array::from_fn(|i| {
        u64::from_le_bytes(hash.0[i * 8..][..8].try_into().expect("eight bytes"))
    })
}
