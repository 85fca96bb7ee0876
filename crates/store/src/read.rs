//! Reading: turns and contexts copied out of the tables, and payloads that borrow the log's pages.
//!
//! Nothing here waits for the writer. A read never skips a lost turn silently: a page that would
//! begin or end at one is an error that names the turn and a way around it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{LargeBuffer, Locator, LogReader};
use turnkeep_types::{BlobHash, Compression, ContextId, Timestamp, TurnId, TypeRef};

use crate::command::Labels;
use crate::state::{BlobRow, CREATION_LOST, State, TurnRow};
use crate::walk;

/// The error text for a blob whose name is known and whose bytes are lost.
const LOST_BYTES: &str = "they were lost to damage of the log";

/// A context as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its id.
    pub id: ContextId,
    /// Its head.
    pub head: Option<TurnId>,
    /// The head's depth, 0 for an empty context.
    pub head_depth: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// Whether the record that created it was lost to damage. Its labels and base turn are then
    /// unknown, and its head is known only if a turn was appended since.
    pub creation_lost: bool,
    /// Whether the turn at its head was lost to damage.
    pub head_lost: bool,
}

impl Context {
    /// Returns an error if the head is unknown or lost.
    pub fn check_head(&self) -> Result<(), ReadError> {
        match self.head {
            None if self.creation_lost => Err(ReadError::LostContext(self.id)),
            Some(head) if self.head_lost => Err(LostTurn::new(head).into()),
            _ => Ok(()),
        }
    }
}

/// A turn without its payload's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its parent.
    pub parent: Option<TurnId>,
    /// 0 without a parent, else the parent's plus 1.
    pub depth: u32,
    /// The context that it was appended to.
    pub context: ContextId,
    /// The declared type.
    pub declared: TypeRef,
    /// The encoding that the writer named.
    pub encoding: u32,
    /// The payload's hash.
    pub hash: BlobHash,
    /// The payload's uncompressed length.
    pub raw_len: u32,
    /// The batch's stamp.
    pub created_at: Timestamp,
    /// The filesystem root that is attached to this turn.
    pub fs_root: Option<BlobHash>,
    pub(crate) blob: u64,
}

/// A blob's bytes as the store keeps them, checked against their checksum.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The form of the bytes.
    pub form: Compression,
    /// The uncompressed length.
    pub raw_len: u32,
    pub(crate) hash: BlobHash,
    pub(crate) bytes: turnkeep_journal::FileBytes,
}

impl Payload {
    /// The bytes in the stored form.
    pub fn stored(&self) -> &[u8] {
        &self.bytes
    }

    /// The uncompressed bytes. Borrows if they are stored uncompressed.
    pub fn raw(&self) -> Result<Cow<'_, [u8]>, ReadError> {
        match self.form {
            Compression::None => Ok(Cow::Borrowed(&self.bytes)),
            Compression::Zstd => {
                let raw = zstd::bulk::decompress(&self.bytes, self.raw_len as usize);
                let raw = raw.map_err(|e| ReadError::Corrupt {
                    hash: self.hash,
                    what: e.to_string(),
                })?;
                Ok(Cow::Owned(raw))
            }
        }
    }

    /// The uncompressed bytes. A large blob is unpacked into memory that returns to the system when
    /// the last clone of the bytes is dropped, on whichever thread.
    pub fn into_raw_bytes(self) -> Result<Bytes, ReadError> {
        match self.form {
            Compression::None => Ok(self.into_stored_bytes()),
            Compression::Zstd => self.unpack().map(LargeBuffer::into_bytes),
        }
    }

    /// The bytes in the stored form, without a copy.
    pub fn into_stored_bytes(self) -> Bytes {
        self.bytes
    }

    fn unpack(&self) -> Result<LargeBuffer, ReadError> {
        let len = self.raw_len as usize;
        let mut raw = LargeBuffer::zeroed(len).map_err(|_| ReadError::NoMemory(len as u64))?;
        let damaged = |what: String| ReadError::Corrupt {
            hash: self.hash,
            what,
        };
        // A bulk call into a buffer of the known length needs no window of its own.
        let unpacked = zstd::bulk::decompress_to_buffer(&self.bytes, &mut raw[..]);
        match unpacked.map_err(|error| damaged(error.to_string()))? {
            unpacked if unpacked == len => Ok(raw),
            unpacked => Err(damaged(format!("{unpacked} bytes where {len} were kept"))),
        }
    }
}

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such context.
    #[error("context {0} does not exist")]
    UnknownContext(ContextId),
    /// No such turn.
    #[error("turn {0} does not exist")]
    UnknownTurn(TurnId),
    /// No such blob.
    #[error("blob {0} does not exist")]
    UnknownBlob(BlobHash),
    /// The turn was in a damaged part of the log.
    #[error("turn {} was lost to damage of the log", .0.turn)]
    LostTurn(LostTurn),
    /// The record that created the context was lost, and no later turn reveals the head.
    #[error("the creation of context {0} was lost to damage of the log, and no turn of it is left")]
    LostContext(ContextId),
    /// The stored bytes do not match their checksum or hash.
    #[error("the stored bytes of blob {hash} are damaged: {what}")]
    Corrupt {
        /// The blob.
        hash: BlobHash,
        /// What is wrong.
        what: String,
    },
    /// The system has no memory to unpack a blob.
    #[error("there is no memory to unpack {0} bytes: try again in a moment")]
    NoMemory(u64),
}

/// A turn that was lost to damage, and where a reader can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostTurn {
    /// The turn.
    pub turn: TurnId,
    /// The newest readable turn that the same context had before it.
    pub earlier: Option<TurnId>,
    /// The least depth from which the path to the head is readable.
    pub next_depth: Option<u32>,
}

impl LostTurn {
    /// A lost turn with no known way around it.
    pub fn new(turn: TurnId) -> Self {
        Self {
            turn,
            earlier: None,
            next_depth: None,
        }
    }
}

impl From<LostTurn> for ReadError {
    fn from(lost: LostTurn) -> Self {
        Self::LostTurn(lost)
    }
}

/// Reads from the tables and the log of an open store.
pub(crate) struct StoreReader<'a> {
    pub(crate) state: &'a State,
    pub(crate) log: &'a LogReader,
}

impl StoreReader<'_> {
    pub(crate) fn context(&self, id: ContextId) -> Result<Context, ReadError> {
        let [head, created_at, base, ..] = self
            .state
            .contexts
            .get(id.get() - 1)
            .ok_or(ReadError::UnknownContext(id))?;
        let head = TurnId::new(head);
        let head_row = head.and_then(|turn| self.state.turn(turn));
        Ok(Context {
            id,
            head,
            head_depth: head_row.map_or(0, |row| row.depth),
            created_at: Timestamp(created_at),
            labels: self.state.read_labels(id),
            creation_lost: base == CREATION_LOST,
            head_lost: head_row.is_some_and(|row| row.lost),
        })
    }

    pub(crate) fn turn(&self, id: TurnId) -> Result<Turn, ReadError> {
        let row = self.state.turn(id).ok_or(ReadError::UnknownTurn(id))?;
        self.build_turn(id, row)
    }

    pub(crate) fn last(&self, context: ContextId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        let context = self.context(context)?;
        context.check_head()?;
        self.read_page(context.head, limit)
    }

    pub(crate) fn up_to(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        self.state.turn(turn).ok_or(ReadError::UnknownTurn(turn))?;
        self.read_page(Some(turn), limit)
    }

    pub(crate) fn before(&self, turn: TurnId, limit: usize) -> Result<Vec<Turn>, ReadError> {
        let row = self.state.turn(turn).ok_or(ReadError::UnknownTurn(turn))?;
        match row.parent {
            // The parent of a lost turn is unknown, not missing.
            _ if row.lost => Err(LostTurn::new(turn).into()),
            Some(parent) if limit > 0 && self.is_lost(parent) => {
                Err(self.describe_gap(turn, parent).into())
            }
            parent => self.read_page(parent, limit),
        }
    }

    pub(crate) fn range(
        &self,
        context: ContextId,
        start: u32,
        limit: usize,
    ) -> Result<Vec<Turn>, ReadError> {
        // A lost head has no known path, so an empty page would hide the loss.
        let context = self.context(context)?;
        context.check_head()?;
        let head_depth = context.head_depth;
        let (Some(head), true) = (context.head, start <= head_depth && limit > 0) else {
            return Ok(Vec::new());
        };
        // Jump to the newest wanted turn and read the page from there: the cost depends on the
        // page, not on the distance to the head.
        let wanted = u32::try_from(limit - 1).unwrap_or(u32::MAX);
        let end = start.saturating_add(wanted).min(head_depth);
        let newest = walk::find_at_depth(self.state, head, end);
        if let Some(lost) = newest.filter(|&newest| self.is_lost(newest)) {
            return Err(self.describe_gap_on_path(head, lost).into());
        }
        let turns = self.read_page(newest, (end - start) as usize + 1)?;
        match turns.first() {
            // A lost turn cut the page short. Returning the rest would hide the gap.
            Some(Turn {
                depth,
                id,
                parent: Some(lost),
                ..
            }) if *depth > start => Err(self.describe_gap(*id, *lost).into()),
            _ => Ok(turns),
        }
    }

    fn is_lost(&self, turn: TurnId) -> bool {
        self.state.turn(turn).is_some_and(|row| row.lost)
    }

    /// Describes the gap between `child` and its lost parent.
    fn describe_gap(&self, child: TurnId, lost: TurnId) -> LostTurn {
        let next_depth = self.state.turn(child).map(|row| row.depth);
        LostTurn {
            turn: lost,
            earlier: walk::find_newest_before_lost(self.state, child, lost),
            next_depth,
        }
    }

    /// Describes the gap at a lost turn that lies on the path to a head or is the head.
    fn describe_gap_on_path(&self, head: TurnId, lost: TurnId) -> LostTurn {
        let child =
            walk::towards_root(self.state, Some(head)).find(|(_, row)| row.parent == Some(lost));
        child.map_or(LostTurn::new(lost), |(child, _)| {
            self.describe_gap(child, lost)
        })
    }

    /// Reads `limit` turns from `newest` towards the root and returns them oldest first. Stops at a
    /// lost turn.
    fn read_page(&self, newest: Option<TurnId>, limit: usize) -> Result<Vec<Turn>, ReadError> {
        let nearest = walk::towards_root(self.state, newest)
            .take(limit)
            .take_while(|(_, row)| !row.lost);
        let mut turns = nearest
            .map(|(id, row)| self.build_turn(id, row))
            .collect::<Result<Vec<_>, _>>()?;
        turns.reverse();
        match newest {
            // An empty page would look like the beginning of the history.
            Some(newest) if turns.is_empty() && limit > 0 => Err(LostTurn::new(newest).into()),
            _ => Ok(turns),
        }
    }

    fn build_turn(&self, id: TurnId, row: TurnRow) -> Result<Turn, ReadError> {
        let lost = ReadError::from(LostTurn::new(id));
        // Lost rows have no context, type or payload.
        let context = ContextId::new(row.context)
            .filter(|_| !row.lost)
            .ok_or(lost.clone())?;
        let declared = self
            .state
            .declared
            .get(row.declared.into())
            .ok_or(lost.clone())?;
        let blob = self.state.blob(row.blob).ok_or(lost)?;
        Ok(Turn {
            id,
            parent: row.parent,
            depth: row.depth,
            context,
            declared: declared.turn_type.clone(),
            encoding: declared.encoding,
            hash: blob.hash,
            raw_len: blob.raw_len,
            created_at: row.created_at,
            // The flag saves an index lookup for the many turns without a root.
            fs_root: if row.has_fs_root {
                self.state.fs_root(id)
            } else {
                None
            },
            blob: row.blob,
        })
    }

    pub(crate) fn payload(&self, turn: &Turn) -> Result<Payload, ReadError> {
        self.read_stored(self.state.blob(turn.blob).ok_or(LostTurn::new(turn.id))?)
    }

    pub(crate) fn blob(&self, hash: BlobHash) -> Result<Payload, ReadError> {
        self.read_stored(self.find_blob_row(hash)?)
    }

    pub(crate) fn blob_len(&self, hash: BlobHash) -> Result<u32, ReadError> {
        Ok(self.find_blob_row(hash)?.raw_len)
    }

    fn find_blob_row(&self, hash: BlobHash) -> Result<BlobRow, ReadError> {
        let row = self
            .state
            .find_blob(&hash)
            .and_then(|row| self.state.blob(row));
        let is_lost = || self.state.is_lost_blob(&hash);
        match row {
            Some(row) => Ok(row),
            None if is_lost() => Err(ReadError::Corrupt {
                hash,
                what: LOST_BYTES.to_owned(),
            }),
            None => Err(ReadError::UnknownBlob(hash)),
        }
    }

    fn read_stored(&self, blob: BlobRow) -> Result<Payload, ReadError> {
        let corrupt = |what| ReadError::Corrupt {
            hash: blob.hash,
            what,
        };
        if blob.locator == Locator::NOWHERE {
            return Err(corrupt(LOST_BYTES.to_owned()));
        }
        let bytes = self.log.read_blob(blob.locator, blob.stored_len, blob.crc);
        let bytes = bytes.map_err(|e| corrupt(e.to_string()))?;
        Ok(Payload {
            form: blob.form,
            raw_len: blob.raw_len,
            hash: blob.hash,
            bytes,
        })
    }
}
