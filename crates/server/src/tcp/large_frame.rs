//! A large answer or delivery as a frame in pieces, so that large payloads are not copied.
//!
//! A large payload that the store keeps uncompressed is a slice of the mapped log. A compressed one is
//! unpacked into memory of its own. Everything else is gathered in pieces of about [`PIECE_BYTES`].
//! Each piece frees its memory when it has been written, although another thread made it.

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_store::{LargeBuffer, ReadError};
use turnkeep_wire::{HEADER_BYTES, Header, MsgType};

use crate::memory::LARGE_FROM_BYTES;

/// Small parts are gathered until they are this long.
const PIECE_BYTES: usize = 1 << 20;
/// The position of the frame's length in its header.
const LEN_AT: std::ops::Range<usize> = 0..4;

/// A whole frame: its head, and what follows.
#[derive(Debug, Default)]
pub(super) struct LargeFrame {
    pub(super) head: BytesMut,
    pub(super) pieces: Vec<Bytes>,
}

impl LargeFrame {
    /// The frame's bytes.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.pieces.iter().map(Bytes::len).sum::<usize>()
    }
}

/// Writes a [`LargeFrame`].
pub(super) struct LargeFrameWriter {
    frame: LargeFrame,
    /// The small parts of the next piece.
    gathered: BytesMut,
}

impl LargeFrameWriter {
    /// Begins a frame. The length in its header is filled in at the end.
    pub(super) fn begin(msg_type: MsgType, flags: u16, req_id: u64) -> Self {
        let mut head = BytesMut::with_capacity(HEADER_BYTES);
        Header {
            len: 0,
            msg_type: msg_type.to_wire(),
            flags,
            req_id,
        }
        .encode(&mut head);
        Self {
            frame: LargeFrame {
                head,
                pieces: Vec::new(),
            },
            gathered: BytesMut::new(),
        }
    }

    /// Where small parts are encoded.
    pub(super) fn gather(&mut self) -> &mut BytesMut {
        &mut self.gathered
    }

    /// Adds a payload: as a piece of its own if it is large.
    pub(super) fn push_payload(&mut self, payload: Bytes) -> Result<(), ReadError> {
        if payload.len() >= LARGE_FROM_BYTES {
            self.close_piece()?;
            self.frame.pieces.push(payload);
            return Ok(());
        }
        self.gathered.put_slice(&payload);
        if self.gathered.len() >= PIECE_BYTES {
            self.close_piece()
        } else {
            Ok(())
        }
    }

    /// The frame, with its length.
    pub(super) fn finish(mut self) -> Result<LargeFrame, ReadError> {
        self.close_piece()?;
        let len = u32::try_from(self.frame.len() - HEADER_BYTES)
            .expect("answers are kept below the limit");
        self.frame.head[LEN_AT].copy_from_slice(&len.to_le_bytes());
        Ok(self.frame)
    }

    /// Ends a piece. It copies the gathered bytes, so that their buffer is reused and freed on this
    /// thread.
    fn close_piece(&mut self) -> Result<(), ReadError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let len = self.gathered.len() as u64;
        let piece = LargeBuffer::copy_of(&self.gathered).map_err(|_| ReadError::NoMemory(len))?;
        self.gathered.clear();
        self.frame.pieces.push(piece.into_bytes());
        Ok(())
    }
}
