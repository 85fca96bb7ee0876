//! Idempotency keys: what is kept of them, for ever, is two digests.
//!
//! Keys may be long and come from outside, so tables hold 128 bits of BLAKE3 over the key in its
//! scope, and 64 bits over what was asked with it: equal requests replay, others conflict.

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::command::{Key, Labels};
use crate::record::{Part, put_labels};
use turnkeep_types::varint::{put, put_bytes};

/// Identifies a key in its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyDigest(pub(crate) [u64; 2]);

/// The digest of an append's key; its scope is a context.
pub(crate) fn of_append(context: ContextId, key: &Key) -> KeyDigest {
    digest(b"turnkeep append key", context.get(), key)
}

/// The digest of a creation's key; its scope is the store.
pub(crate) fn of_create(key: &Key) -> KeyDigest {
    digest(b"turnkeep create key", 0, key)
}

/// What an append asked for, as far as a repeat must ask for the same: hashes, types, encodings,
/// parents as sent and filesystem roots; neither compression nor expected heads.
pub(crate) fn append_request(parts: &[Part]) -> u64 {
    let mut asked = Vec::with_capacity(128);
    put(&mut asked, parts.len() as u64);
    for part in parts {
        put(&mut asked, part.context.get());
        put(&mut asked, TurnId::to_wire(part.sent_parent));
        put(&mut asked, part.turns.len() as u64);
        for turn in &part.turns {
            asked.extend_from_slice(turn.payload.hash.as_bytes());
            put_bytes(&mut asked, turn.declared.id.as_bytes());
            put(&mut asked, turn.declared.version.into());
            put(&mut asked, turn.encoding.into());
            put_bytes(
                &mut asked,
                turn.fs_root
                    .as_ref()
                    .map_or(&[], |root: &BlobHash| root.as_bytes()),
            );
        }
    }
    words(&asked)[0]
}

/// What a creation asked for.
pub(crate) fn create_request(base: Option<TurnId>, labels: &Labels) -> u64 {
    let mut asked = Vec::new();
    put(&mut asked, TurnId::to_wire(base));
    put_labels(&mut asked, labels);
    words(&asked)[0]
}

fn digest(domain: &[u8], scope: u64, key: &Key) -> KeyDigest {
    let mut scoped = Vec::with_capacity(96);
    put_bytes(&mut scoped, domain);
    put(&mut scoped, scope);
    put_bytes(&mut scoped, key.as_bytes());
    KeyDigest(words(&scoped))
}

fn words(bytes: &[u8]) -> [u64; 2] {
    let hash = BlobHash::of(bytes);
    std::array::from_fn(|i| {
        u64::from_le_bytes(hash.0[i * 8..][..8].try_into().expect("eight bytes"))
    })
}
