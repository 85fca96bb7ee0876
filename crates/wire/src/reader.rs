//! Reads a message's fields in order from its payload, never past the end.
//!
//! The reader compares each declared length with the remaining bytes before it slices, so a
//! declared length never causes an allocation. It fails with the name of the field.

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

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.check_left(field, 1)?;
        Ok(self.rest.get_u8())
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.check_left(field, 2)?;
        Ok(self.rest.get_u16_le())
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.check_left(field, 4)?;
        Ok(self.rest.get_u32_le())
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.check_left(field, 8)?;
        Ok(self.rest.get_u64_le())
    }

    /// A `u32` or `u8` that is 0 or 1.
    pub(crate) fn bool(field: &'static str, value: u64) -> Result<bool, DecodeError> {
        match value {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::BadValue { field, value }),
        }
    }

    pub(crate) fn hash(&mut self, field: &'static str) -> Result<BlobHash, DecodeError> {
        self.check_left(field, 32)?;
        let mut hash = [0; 32];
        self.rest.copy_to_slice(&mut hash);
        Ok(BlobHash(hash))
    }

    pub(crate) fn context(&mut self, field: &'static str) -> Result<ContextId, DecodeError> {
        ContextId::new(self.u64(field)?).ok_or(DecodeError::ZeroId { field })
    }

    pub(crate) fn turn(&mut self, field: &'static str) -> Result<TurnId, DecodeError> {
        TurnId::new(self.u64(field)?).ok_or(DecodeError::ZeroId { field })
    }

    pub(crate) fn turn_or_none(
        &mut self,
        field: &'static str,
    ) -> Result<Option<TurnId>, DecodeError> {
        self.u64(field).map(TurnId::new)
    }

    pub(crate) fn bytes_of_len(
        &mut self,
        field: &'static str,
        len: u32,
    ) -> Result<Bytes, DecodeError> {
        let len = len as usize;
        self.check_left(field, len)?;
        Ok(self.rest.split_to(len))
    }

    /// A `u32` length and that many bytes.
    pub(crate) fn bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let len = self.u32(field)?;
        self.bytes_of_len(field, len)
    }

    /// A `u32` length and that many bytes of UTF-8.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<Text, DecodeError> {
        Text::new(self.bytes(field)?).map_err(|_| DecodeError::NotUtf8 { field })
    }

    /// A `u32` count of elements that take at least `element_bytes_min` each.
    pub(crate) fn count(
        &mut self,
        field: &'static str,
        element_bytes_min: usize,
        limit: usize,
    ) -> Result<usize, DecodeError> {
        let count = self.u32(field)? as usize;
        if count > limit {
            return Err(DecodeError::TooMany {
                field,
                limit: limit as u64,
                actual: count as u64,
            });
        }
        // A count that the remaining bytes cannot hold is rejected before the caller allocates for
        // it.
        self.check_left(field, count.saturating_mul(element_bytes_min))?;
        Ok(count)
    }

    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(DecodeError::LeftOver {
            bytes: self.rest.len() as u64,
        })
    }
}
