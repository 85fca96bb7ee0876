//! Pages of turns, and blobs, encoded directly into the bytes that are sent.
//!
//! A page that would be too large keeps the turns nearest to its start, and always one. The limit
//! counts all bytes of the page, so every client accepts the frame.

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_store::{Payload, ReadError, Turn};
use turnkeep_types::{BlobHash, Compression, ContextId, Limits};
use turnkeep_wire::MsgType;
use turnkeep_wire::message::{
    GetBefore, GetLast, GetRange, ItemExtra, ItemRef, PageWriter, ReadOptions, encode_blob,
};

use super::large_frame::{LargeFrame, LargeFrameWriter};
use crate::guarded_store::{ContentReader, GuardedStore};

/// Which end of a page is kept when it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Newest,
    Oldest,
}

/// The turns of a page, and how to send them.
pub(super) struct FramePage {
    msg_type: MsgType,
    turns: Vec<Turn>,
    options: ReadOptions,
    keep: Keep,
}

impl FramePage {
    pub(super) fn read_last(
        store: &GuardedStore,
        limits: &Limits,
        get: &GetLast,
    ) -> Result<Self, ReadError> {
        let turns = store.last_turns(get.context, clamp_turns(get.limit, limits))?;
        Ok(Self {
            msg_type: MsgType::GetLast,
            turns,
            options: get.options,
            keep: Keep::Newest,
        })
    }

    pub(super) fn read_before(
        store: &GuardedStore,
        limits: &Limits,
        get: &GetBefore,
    ) -> Result<Self, ReadError> {
        let limit = clamp_turns(get.limit, limits);
        let turns = match get.before {
            None => store.last_turns(get.context, limit)?,
            Some(turn) => {
                // The turn alone decides the page, but an unknown context is still an error.
                store.context(get.context)?;
                store.turns_before(turn, limit)?
            }
        };
        Ok(Self {
            msg_type: MsgType::GetBefore,
            turns,
            options: get.options,
            keep: Keep::Newest,
        })
    }

    pub(super) fn read_range(
        store: &GuardedStore,
        limits: &Limits,
        get: &GetRange,
    ) -> Result<Self, ReadError> {
        let turns =
            store.turns_from_depth(get.context, get.start_depth, clamp_turns(get.limit, limits))?;
        Ok(Self {
            msg_type: MsgType::GetRangeByDepth,
            turns,
            options: get.options,
            keep: Keep::Oldest,
        })
    }

    /// The contexts whose content the page shows: those in which its turns were written. A page
    /// without payloads shows structure only (ids, parents, depths, types, hashes), and the content
    /// of no context.
    pub(super) fn contexts_shown(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.turns
            .iter()
            .filter(|_| self.options.include_payload)
            .map(|turn| turn.context)
    }

    /// About how many bytes the page will have before it is cut.
    pub(super) fn estimate_bytes(&self) -> usize {
        self.turns
            .iter()
            .map(|turn| item_bytes(turn, self.options))
            .sum()
    }

    fn cut_to(&mut self, bytes_max: usize) {
        let options = self.options;
        cut_page(&mut self.turns, self.keep, bytes_max, |turn| {
            item_bytes(turn, options)
        });
    }

    /// Cuts the page to the limit, reads the payloads and writes the frame.
    pub(super) fn encode(
        mut self,
        content: &ContentReader,
        limits: &Limits,
        req_id: u64,
    ) -> Result<BytesMut, ReadError> {
        self.cut_to(limits.page_bytes_max);
        let mut out = BytesMut::with_capacity(self.estimate_bytes() + 32);
        let mut page = PageWriter::begin(&mut out, self.msg_type, req_id);
        for turn in &self.turns {
            with_item(content, turn, self.options, |item| page.push(item))?;
        }
        page.finish();
        Ok(out)
    }

    /// Like [`Self::encode`], for a large page: as a frame in pieces.
    pub(super) fn encode_large(
        mut self,
        content: &ContentReader,
        limits: &Limits,
        req_id: u64,
    ) -> Result<LargeFrame, ReadError> {
        self.cut_to(limits.page_bytes_max);
        let mut frame = LargeFrameWriter::begin(self.msg_type, 0, req_id);
        frame
            .gather()
            .put_u32_le(u32::try_from(self.turns.len()).expect("a page is bounded"));
        for turn in &self.turns {
            push_item(&mut frame, content, turn, self.options)?;
        }
        frame.finish()
    }
}

fn clamp_turns(limit: u32, limits: &Limits) -> usize {
    (limit as usize).min(limits.page_turns_max)
}

/// An upper bound of an item's length: a payload is never sent in a form that is longer than its
/// uncompressed bytes.
fn item_bytes(turn: &Turn, options: ReadOptions) -> usize {
    ItemRef::OVERHEAD_BYTES_MAX + turn.declared.id.len() + payload_bytes(turn, options)
}

/// The length of a turn's payload, if it is sent.
pub(super) fn payload_bytes(turn: &Turn, options: ReadOptions) -> usize {
    if options.include_payload {
        turn.raw_len as usize
    } else {
        0
    }
}

fn cut_page<T>(items: &mut Vec<T>, keep: Keep, bytes_max: usize, bytes_of: impl Fn(&T) -> usize) {
    let mut bytes = 0;
    let mut fits = |item: &T| {
        bytes += bytes_of(item);
        bytes <= bytes_max
    };
    let kept = match keep {
        Keep::Oldest => items.iter().take_while(|item| fits(item)).count(),
        Keep::Newest => items.iter().rev().take_while(|item| fits(item)).count(),
    };
    // A page without turns would look like the end of the history.
    let kept = kept.max(1).min(items.len());
    match keep {
        Keep::Oldest => items.truncate(kept),
        Keep::Newest => drop(items.drain(..items.len() - kept)),
    }
}

/// A turn as an item without its payload.
fn bare_item(turn: &Turn, options: ReadOptions) -> ItemRef<'_> {
    let extra = options.extended.then_some(ItemExtra {
        created_at: turn.created_at,
        fs_root: turn.fs_root,
    });
    ItemRef {
        turn: turn.id,
        parent: turn.parent,
        depth: turn.depth,
        type_id: &turn.declared.id,
        type_version: turn.declared.version,
        encoding: turn.encoding,
        compression: Compression::None,
        raw_len: turn.raw_len,
        hash: turn.hash,
        payload: &[],
        extra,
    }
}

/// Hands out a turn as an item, with its payload if it was asked for.
pub(super) fn with_item<T>(
    content: &ContentReader,
    turn: &Turn,
    options: ReadOptions,
    write: impl FnOnce(&ItemRef<'_>) -> T,
) -> Result<T, ReadError> {
    let item = bare_item(turn, options);
    if !options.include_payload {
        return Ok(write(&item));
    }
    let payload = content.payload(turn)?;
    if options.stored_form && stays_stored(&payload) {
        return Ok(write(&ItemRef {
            compression: payload.form,
            payload: payload.stored(),
            ..item
        }));
    }
    Ok(write(&ItemRef {
        payload: &payload.raw()?,
        ..item
    }))
}

/// Adds a turn to a large frame, with its payload if it was asked for.
pub(super) fn push_item(
    frame: &mut LargeFrameWriter,
    content: &ContentReader,
    turn: &Turn,
    options: ReadOptions,
) -> Result<(), ReadError> {
    let mut item = bare_item(turn, options);
    let mut bytes = Bytes::new();
    if options.include_payload {
        let payload = content.payload(turn)?;
        if options.stored_form && stays_stored(&payload) {
            item.compression = payload.form;
            bytes = payload.into_stored_bytes();
        } else {
            bytes = payload.into_raw_bytes()?;
        }
    }
    item.encode_before_payload(bytes.len(), frame.gather());
    frame.push_payload(bytes)?;
    item.encode_after_payload(frame.gather());
    Ok(())
}

/// Whether a payload is sent as it is stored. A writer may have sent a compressed form that is longer
/// than the payload; then the uncompressed bytes are sent.
fn stays_stored(payload: &Payload) -> bool {
    payload.stored().len() <= payload.raw_len as usize
}

/// Reads a blob and writes the frame.
pub(super) fn encode_whole_blob(
    content: &ContentReader,
    hash: BlobHash,
    req_id: u64,
) -> Result<BytesMut, ReadError> {
    let payload = content.blob(hash)?;
    let mut out = BytesMut::with_capacity(payload.raw_len as usize + 32);
    encode_blob(&mut out, req_id, &payload.raw()?);
    Ok(out)
}

/// Reads a large blob and writes the frame in pieces.
pub(super) fn encode_large_blob(
    content: &ContentReader,
    hash: BlobHash,
    req_id: u64,
) -> Result<LargeFrame, ReadError> {
    let bytes = content.blob(hash)?.into_raw_bytes()?;
    let mut frame = LargeFrameWriter::begin(MsgType::GetBlob, 0, req_id);
    frame
        .gather()
        .put_u32_le(u32::try_from(bytes.len()).expect("a blob is bounded"));
    frame.push_payload(bytes)?;
    frame.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_page_keeps_what_is_nearest_to_its_start_and_always_one() {
        let check = |sizes: &[usize], keep, expect: &[usize]| {
            let mut items = sizes.to_vec();
            cut_page(&mut items, keep, 10, |size| *size);
            assert_eq!(items, expect, "{sizes:?} {keep:?}");
        };
        check(&[1, 2, 3], Keep::Newest, &[1, 2, 3]);
        check(&[6, 5, 4], Keep::Newest, &[5, 4]);
        check(&[6, 4, 1], Keep::Oldest, &[6, 4]);
        check(&[99, 99], Keep::Newest, &[99]);
        check(&[98, 99], Keep::Oldest, &[98]);
        check(&[], Keep::Oldest, &[]);
    }
}
