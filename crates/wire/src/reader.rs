//! Reads a message's fields in order from its payload, never past the end.
//!
//! The peer writes every length and count, so the reader trusts none of them: it compares each with
//! the remaining bytes before it slices. A hostile length costs an error, never memory. The error
//! names the field.

use bytes::{Buf, Bytes};
use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::text::Text;

/// Why a payload is not a message. The frame was complete, so the connection stays usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No message has this number.
    #[error("there is no message type {0}")]
    UnknownType(u16),
    /// Flag bits that this message does not define.
    #[error("the flags {flags:#06x} have bits that message type {msg_type} does not define")]
    UndefinedFlags {
        /// The message.
        msg_type: u16,
        /// Its flags as sent.
        flags: u16,
    },
    /// The payload ends before a field does.
    #[error("`{field}` needs {needed} bytes, and {left} are left")]
    Truncated {
        /// The field.
        field: &'static str,
        /// The bytes that it needs.
        needed: u64,
        /// The remaining bytes.
        left: u64,
    },
    /// The payload goes on after the last field.
    #[error("{bytes} bytes are left over after the last field")]
    LeftOver {
        /// How many.
        bytes: u64,
    },
    /// A number that this field cannot have.
    #[error("`{field}` cannot be {value}")]
    BadValue {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// A text that is not UTF-8.
    #[error("`{field}` is not UTF-8")]
    NotUtf8 {
        /// The field.
        field: &'static str,
    },
    /// The field must name an object, and no object has the id zero.
    #[error("`{field}` is 0, which names nothing")]
    ZeroId {
        /// The field.
        field: &'static str,
    },
    /// More elements than the limit allows.
    #[error("`{field}` is {actual}, over the limit of {limit}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// The limit.
        limit: u64,
        /// The number sent.
        actual: u64,
    },
}

/// The unread rest of a payload.
pub(crate) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(payload: Bytes) -> Self {
        Self { rest: payload }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns an error unless `needed` bytes are left. Every read calls it first: the `get` methods
    /// of `Bytes` panic at the end of the buffer.
    fn check_left(&self, field: &'static str, needed: usize) -> Result<(), DecodeError> {
        let left = self.rest.len();
        if needed <= left {
            return Ok(());
        }
        Err(DecodeError::Truncated {
            field,
            needed: needed as u64,
            left: left as u64,
        })
    }

    pub(crate) fn read_u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.check_left(field, 1)?;
        Ok(self.rest.get_u8())
    }

    pub(crate) fn read_u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.check_left(field, 2)?;
        Ok(self.rest.get_u16_le())
    }

    pub(crate) fn read_u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.check_left(field, 4)?;
        Ok(self.rest.get_u32_le())
    }

    pub(crate) fn read_u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.check_left(field, 8)?;
        Ok(self.rest.get_u64_le())
    }

    pub(crate) fn read_bool_u8(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        bool_from_number(field, self.read_u8(field)?.into())
    }

    pub(crate) fn read_bool_u32(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        bool_from_number(field, self.read_u32(field)?)
    }

    pub(crate) fn read_hash(&mut self, field: &'static str) -> Result<BlobHash, DecodeError> {
        self.check_left(field, 32)?;
        let mut hash = [0; 32];
        self.rest.copy_to_slice(&mut hash);
        Ok(BlobHash(hash))
    }

    pub(crate) fn read_context_id(
        &mut self,
        field: &'static str,
    ) -> Result<ContextId, DecodeError> {
        ContextId::new(self.read_u64(field)?).ok_or(DecodeError::ZeroId { field })
    }

    pub(crate) fn read_turn_id(&mut self, field: &'static str) -> Result<TurnId, DecodeError> {
        TurnId::new(self.read_u64(field)?).ok_or(DecodeError::ZeroId { field })
    }

    /// Reads the id of a turn; zero means none.
    pub(crate) fn read_optional_turn_id(
        &mut self,
        field: &'static str,
    ) -> Result<Option<TurnId>, DecodeError> {
        self.read_u64(field).map(TurnId::new)
    }

    /// Splits bytes off the payload. They share its buffer, so a payload of 32 MiB is not copied.
    pub(crate) fn read_bytes_of_len(
        &mut self,
        field: &'static str,
        len: u32,
    ) -> Result<Bytes, DecodeError> {
        let len = len as usize;
        self.check_left(field, len)?;
        Ok(self.rest.split_to(len))
    }

    /// Reads a `u32` length and that many bytes.
    pub(crate) fn read_bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let len = self.read_u32(field)?;
        self.read_bytes_of_len(field, len)
    }

    /// Reads a `u32` length and that many bytes of UTF-8.
    pub(crate) fn read_text(&mut self, field: &'static str) -> Result<Text, DecodeError> {
        let len = self.read_u32(field)?;
        self.read_text_of_len(field, len)
    }

    pub(crate) fn read_text_of_len(
        &mut self,
        field: &'static str,
        len: u32,
    ) -> Result<Text, DecodeError> {
        let bytes = self.read_bytes_of_len(field, len)?;
        Text::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8 { field })
    }

    /// Reads a `u32` count of elements that take at least `element_bytes_min` each.
    pub(crate) fn read_count(
        &mut self,
        field: &'static str,
        element_bytes_min: usize,
        limit: usize,
    ) -> Result<usize, DecodeError> {
        let count = self.read_u32(field)? as usize;
        if count > limit {
            return Err(DecodeError::TooMany {
                field,
                limit: limit as u64,
                actual: count as u64,
            });
        }
        // Twenty bytes could declare four billion elements. A count that the remaining bytes cannot
        // hold is rejected here, before the caller allocates or decodes one of them.
        self.check_left(field, count.saturating_mul(element_bytes_min))?;
        Ok(count)
    }

    /// Returns an error if bytes are left. Ignoring them would let two different frames mean the
    /// same message, and would hide that the peer uses a newer form of it.
    pub(crate) fn check_all_read(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(DecodeError::LeftOver {
            bytes: self.rest.len() as u64,
        })
    }
}

/// Accepts 0 and 1 only. Other numbers would not encode to the same bytes again.
fn bool_from_number(field: &'static str, number: u32) -> Result<bool, DecodeError> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::BadValue {
            field,
            value: number.into(),
        }),
    }
}
