//! The values that the golden messages are made of.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression, ContextId, Timestamp, TurnId};
use turnkeep_wire::Text;
use turnkeep_wire::message::{Item, ItemExtra, SentTurn};

/// msgpack `{1: 2, 2: "hi"}`.
pub(crate) const PAYLOAD: &[u8] = &[0x82, 0x01, 0x02, 0x02, 0xa2, 0x68, 0x69];

/// The same as one zstd frame, its only block stored raw.
pub(crate) const PAYLOAD_ZSTD: &[u8] = &[
    0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x07, 0x39, 0x00, 0x00, 0x82, 0x01, 0x02, 0x02, 0xa2, 0x68, 0x69,
];

pub(crate) fn context() -> ContextId {
    ContextId::new(0x0102_0304_0506_0708).unwrap()
}

pub(crate) fn turn(number: u64) -> TurnId {
    TurnId::new(number).unwrap()
}

pub(crate) fn root() -> BlobHash {
    BlobHash::of(b"a tree")
}

pub(crate) fn sent_turn() -> SentTurn {
    SentTurn {
        type_id: Text::from("com.example.Message"),
        type_version: 3,
        encoding: 1,
        compression: Compression::None,
        raw_len: 7,
        hash: BlobHash::of(PAYLOAD),
        payload: Bytes::from_static(PAYLOAD),
    }
}

pub(crate) fn sent_turn_zstd() -> SentTurn {
    SentTurn {
        compression: Compression::Zstd,
        payload: Bytes::from_static(PAYLOAD_ZSTD),
        ..sent_turn()
    }
}

pub(crate) fn sent_turn_empty() -> SentTurn {
    SentTurn {
        type_id: Text::default(),
        type_version: 0,
        encoding: 0,
        raw_len: 0,
        hash: BlobHash::of(b""),
        payload: Bytes::new(),
        ..sent_turn()
    }
}

/// The first turn of a context, without its payload.
pub(crate) fn item() -> Item {
    Item {
        turn: turn(41),
        parent: None,
        depth: 0,
        type_id: Text::from("com.example.Message"),
        type_version: 3,
        encoding: 1,
        compression: Compression::None,
        raw_len: 7,
        hash: BlobHash::of(PAYLOAD),
        payload: Bytes::new(),
        extra: None,
    }
}

/// Its child, with the payload uncompressed.
pub(crate) fn item_with_payload() -> Item {
    let payload = Bytes::from_static(PAYLOAD);
    Item {
        turn: turn(42),
        parent: Some(turn(41)),
        depth: 1,
        payload,
        ..item()
    }
}

/// The same in the stored form.
pub(crate) fn item_stored() -> Item {
    let payload = Bytes::from_static(PAYLOAD_ZSTD);
    Item {
        compression: Compression::Zstd,
        payload,
        ..item_with_payload()
    }
}

/// The same with stamp and root.
pub(crate) fn extended(item: Item, fs_root: Option<BlobHash>) -> Item {
    Item {
        extra: Some(ItemExtra {
            created_at: Timestamp(1_766_174_400_123),
            fs_root,
        }),
        ..item
    }
}
