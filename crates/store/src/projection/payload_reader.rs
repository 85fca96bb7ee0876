//! The rules of a payload: one msgpack map, nested no deeper than `NESTING_MAX`.
//!
//! The limit on nesting bounds the stack, and the reader checks each declared length against the
//! bytes that follow. A fault has the offset at which it was found.

use turnkeep_types::msgpack::{MsgpackError, MsgpackReader, Token};

/// The deepest nesting of maps and arrays, the payload's own map included.
pub(crate) const NESTING_MAX: usize = 128;

/// Why bytes cannot be decoded as a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeFault {
    /// The bytes end inside a value.
    #[error("the payload ends inside a value that begins at byte {offset}")]
    Truncated {
        /// Where the value begins.
        offset: usize,
    },
    /// The reserved byte 0xc1, which begins no value.
    #[error("the reserved byte 0xc1 is at byte {offset}")]
    Reserved {
        /// Where.
        offset: usize,
    },
    /// Containers nest too deep.
    #[error("the payload nests deeper than {NESTING_MAX} levels at byte {offset}")]
    TooDeep {
        /// Where the first container beyond the limit begins.
        offset: usize,
    },
    /// Bytes follow the payload's map.
    #[error("{bytes} bytes follow the payload's map, which ends at byte {offset}")]
    Trailing {
        /// Where the map ends.
        offset: usize,
        /// How many bytes follow.
        bytes: usize,
    },
    /// The payload has no bytes.
    #[error("the payload is empty")]
    Empty,
    /// The payload is not a map.
    #[error("the payload is not a map but {found}")]
    NotAMap {
        /// The kind of value that it is.
        found: &'static str,
    },
    /// The writer declared another encoding than msgpack.
    #[error("the payload's encoding is {0}, and only 1 (msgpack) can be decoded")]
    Encoding(u32),
}

impl From<MsgpackError> for DecodeFault {
    fn from(error: MsgpackError) -> Self {
        match error {
            MsgpackError::Truncated { offset } => Self::Truncated { offset },
            MsgpackError::Reserved { offset } => Self::Reserved { offset },
        }
    }
}

/// Reads the tokens of a payload.
#[derive(Debug, Clone)]
pub(crate) struct PayloadReader<'a>(MsgpackReader<'a>);

impl<'a> PayloadReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(MsgpackReader::new(bytes))
    }

    /// Reads the header of the map with which every payload begins, and returns its length.
    pub(crate) fn read_payload_header(&mut self) -> Result<u32, DecodeFault> {
        if self.0.unread().is_empty() {
            return Err(DecodeFault::Empty);
        }
        match self.read_token()? {
            Token::Map(count) => Ok(count),
            other => Err(DecodeFault::NotAMap {
                found: other.kind(),
            }),
        }
    }

    /// Returns an error unless all bytes are read.
    pub(crate) fn finish(&self) -> Result<(), DecodeFault> {
        match self.0.unread().len() {
            0 => Ok(()),
            bytes => Err(DecodeFault::Trailing {
                offset: self.0.offset(),
                bytes,
            }),
        }
    }

    /// Returns an error if the container whose header was just read is nested too deeply.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), DecodeFault> {
        if depth > NESTING_MAX {
            return Err(DecodeFault::TooDeep {
                offset: self.0.offset(),
            });
        }
        Ok(())
    }

    /// Reads the next token.
    pub(crate) fn read_token(&mut self) -> Result<Token<'a>, DecodeFault> {
        Ok(self.0.read_token()?)
    }

    /// Skips a whole value inside a container at `depth`.
    pub(crate) fn skip_value(&mut self, depth: usize) -> Result<(), DecodeFault> {
        let token = self.read_token()?;
        self.skip_contents(token, depth)
    }

    /// Skips the contents of a token that was just read inside a container at `depth`.
    pub(crate) fn skip_contents(
        &mut self,
        token: Token<'_>,
        depth: usize,
    ) -> Result<(), DecodeFault> {
        if !matches!(token, Token::Array(_) | Token::Map(_)) {
            return Ok(());
        }
        self.check_depth(depth + 1)?;
        for _ in 0..token.content_values() {
            self.skip_value(depth + 1)?;
        }
        Ok(())
    }

    /// Reads a map's key inside a container at `depth`. A key that is a container or an extension
    /// is returned as its encoded bytes, because JSON keys are strings.
    pub(crate) fn read_key(&mut self, depth: usize) -> Result<Token<'a>, DecodeFault> {
        let key_start = self.0.offset();
        match self.read_token()? {
            token @ (Token::Array(_) | Token::Map(_) | Token::Ext(..)) => {
                self.skip_contents(token, depth)?;
                Ok(Token::Bin(self.0.bytes_since(key_start)))
            }
            scalar => Ok(scalar),
        }
    }
}

/// Checks that the bytes are one payload, nested inside a container at `depth`.
pub(crate) fn validate(bytes: &[u8], depth: usize) -> Result<(), DecodeFault> {
    let mut reader = PayloadReader::new(bytes);
    let count = reader.read_payload_header()?;
    reader.skip_contents(Token::Map(count), depth)?;
    reader.finish()
}
