//! A bounded msgpack reader over a slice.
//!
//! It borrows everything and allocates nothing. A declared length is believed only as far as the
//! bytes reach, and a container only as deep as `NESTING_MAX`, so time and stack are bounded by the
//! input.

use rmp::Marker;

/// The deepest nesting of maps and arrays, the payload's own map included.
pub(crate) const NESTING_MAX: usize = 128;

/// Why bytes are not a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeFault {
    /// A value is cut off.
    #[error("the payload ends inside a value that begins at byte {offset}")]
    Truncated {
        /// Where the value begins.
        offset: usize,
    },
    /// The one byte that begins no value.
    #[error("the reserved byte 0xc1 is at byte {offset}")]
    Reserved {
        /// Where.
        offset: usize,
    },
    /// Containers nest too deep.
    #[error("the payload nests deeper than {NESTING_MAX} levels at byte {offset}")]
    TooDeep {
        /// Where the level too much begins.
        offset: usize,
    },
    /// Bytes are left over.
    #[error("{bytes} bytes follow the payload's map, which ends at byte {offset}")]
    Trailing {
        /// Where the map ends.
        offset: usize,
        /// How many bytes follow.
        bytes: usize,
    },
    /// There are no bytes.
    #[error("the payload is empty")]
    Empty,
    /// The payload is another value.
    #[error("the payload is not a map but {found}")]
    NotAMap {
        /// What it is.
        found: &'static str,
    },
    /// The payload is not msgpack by its own account.
    #[error("the payload's encoding is {0}, and only 1 (msgpack) can be decoded")]
    Encoding(u32),
}

/// One step of msgpack: a scalar, or the head of a container whose parts follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    Nil,
    Bool(bool),
    /// Between the least i64 and the greatest u64.
    Int(i128),
    F32(f32),
    F64(f64),
    /// Not necessarily UTF-8.
    Str(&'a [u8]),
    Bin(&'a [u8]),
    Ext(i8, &'a [u8]),
    Array(u32),
    Map(u32),
}

impl Token<'_> {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an integer",
            Self::F32(_) | Self::F64(_) => "a float",
            Self::Str(_) => "a string",
            Self::Bin(_) => "binary",
            Self::Ext(..) => "an extension",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
        }
    }
}

/// Reads tokens from a slice.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The count of a payload's map, with which every payload begins.
    pub(crate) fn payload(&mut self) -> Result<u32, DecodeFault> {
        if self.bytes.is_empty() {
            return Err(DecodeFault::Empty);
        }
        match self.token()? {
            Token::Map(count) => Ok(count),
            other => Err(DecodeFault::NotAMap {
                found: other.kind(),
            }),
        }
    }

    /// Fails unless all bytes are read.
    pub(crate) fn finish(&self) -> Result<(), DecodeFault> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            bytes => Err(DecodeFault::Trailing {
                offset: self.at,
                bytes,
            }),
        }
    }

    /// Fails if a container whose head was just read is at a depth that is not allowed.
    pub(crate) fn enter(&self, depth: usize) -> Result<(), DecodeFault> {
        if depth > NESTING_MAX {
            return Err(DecodeFault::TooDeep { offset: self.at });
        }
        Ok(())
    }

    fn take(&mut self, count: usize, begun: usize) -> Result<&'a [u8], DecodeFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest
            .get(..count)
            .ok_or(DecodeFault::Truncated { offset: begun })?;
        self.at += count;
        Ok(taken)
    }

    fn be<const N: usize>(&mut self, begun: usize) -> Result<[u8; N], DecodeFault> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N, begun)?);
        Ok(bytes)
    }

    /// A big-endian unsigned number of `N` bytes.
    #[expect(clippy::big_endian_bytes, reason = "msgpack is big-endian")]
    fn uint<const N: usize>(&mut self, begun: usize) -> Result<u64, DecodeFault> {
        let mut wide = [0; 8];
        wide[8 - N..].copy_from_slice(&self.be::<N>(begun)?);
        Ok(u64::from_be_bytes(wide))
    }

    /// A big-endian number that counts something.
    fn count<const N: usize>(&mut self, begun: usize) -> Result<u32, DecodeFault> {
        self.uint::<N>(begun)
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn sized<const N: usize>(&mut self, begun: usize) -> Result<&'a [u8], DecodeFault> {
        let count = self.count::<N>(begun)?;
        self.take(count as usize, begun)
    }

    fn ext<const N: usize>(&mut self, begun: usize) -> Result<Token<'a>, DecodeFault> {
        let count = self.count::<N>(begun)?;
        self.fixed_ext(count as usize, begun)
    }

    fn fixed_ext(&mut self, count: usize, begun: usize) -> Result<Token<'a>, DecodeFault> {
        let [kind] = self.be::<1>(begun)?;
        Ok(Token::Ext(kind.cast_signed(), self.take(count, begun)?))
    }

    /// Reads the next token.
    #[expect(clippy::big_endian_bytes, reason = "msgpack is big-endian")]
    pub(crate) fn token(&mut self) -> Result<Token<'a>, DecodeFault> {
        let begun = self.at;
        let [marker] = self.be::<1>(begun)?;
        Ok(match Marker::from_u8(marker) {
            Marker::FixPos(number) => Token::Int(number.into()),
            Marker::FixNeg(number) => Token::Int(number.into()),
            Marker::Null => Token::Nil,
            Marker::True => Token::Bool(true),
            Marker::False => Token::Bool(false),
            Marker::U8 => Token::Int(self.uint::<1>(begun)?.into()),
            Marker::U16 => Token::Int(self.uint::<2>(begun)?.into()),
            Marker::U32 => Token::Int(self.uint::<4>(begun)?.into()),
            Marker::U64 => Token::Int(self.uint::<8>(begun)?.into()),
            Marker::I8 => Token::Int(i8::from_be_bytes(self.be(begun)?).into()),
            Marker::I16 => Token::Int(i16::from_be_bytes(self.be(begun)?).into()),
            Marker::I32 => Token::Int(i32::from_be_bytes(self.be(begun)?).into()),
            Marker::I64 => Token::Int(i64::from_be_bytes(self.be(begun)?).into()),
            Marker::F32 => Token::F32(f32::from_be_bytes(self.be(begun)?)),
            Marker::F64 => Token::F64(f64::from_be_bytes(self.be(begun)?)),
            Marker::FixStr(count) => Token::Str(self.take(count.into(), begun)?),
            Marker::Str8 => Token::Str(self.sized::<1>(begun)?),
            Marker::Str16 => Token::Str(self.sized::<2>(begun)?),
            Marker::Str32 => Token::Str(self.sized::<4>(begun)?),
            Marker::Bin8 => Token::Bin(self.sized::<1>(begun)?),
            Marker::Bin16 => Token::Bin(self.sized::<2>(begun)?),
            Marker::Bin32 => Token::Bin(self.sized::<4>(begun)?),
            Marker::FixExt1 => self.fixed_ext(1, begun)?,
            Marker::FixExt2 => self.fixed_ext(2, begun)?,
            Marker::FixExt4 => self.fixed_ext(4, begun)?,
            Marker::FixExt8 => self.fixed_ext(8, begun)?,
            Marker::FixExt16 => self.fixed_ext(16, begun)?,
            Marker::Ext8 => self.ext::<1>(begun)?,
            Marker::Ext16 => self.ext::<2>(begun)?,
            Marker::Ext32 => self.ext::<4>(begun)?,
            Marker::FixArray(count) => Token::Array(count.into()),
            Marker::Array16 => Token::Array(self.count::<2>(begun)?),
            Marker::Array32 => Token::Array(self.count::<4>(begun)?),
            Marker::FixMap(count) => Token::Map(count.into()),
            Marker::Map16 => Token::Map(self.count::<2>(begun)?),
            Marker::Map32 => Token::Map(self.count::<4>(begun)?),
            Marker::Reserved => return Err(DecodeFault::Reserved { offset: begun }),
        })
    }

    /// Reads over a whole value that is inside a container at `depth`.
    pub(crate) fn skip(&mut self, depth: usize) -> Result<(), DecodeFault> {
        let token = self.token()?;
        self.skip_parts(token, depth)
    }

    /// Reads over the parts of a token that was just read inside a container at `depth`.
    pub(crate) fn skip_parts(&mut self, token: Token<'_>, depth: usize) -> Result<(), DecodeFault> {
        let parts = match token {
            Token::Array(count) => u64::from(count),
            Token::Map(count) => 2 * u64::from(count),
            _ => return Ok(()),
        };
        self.enter(depth + 1)?;
        for _ in 0..parts {
            self.skip(depth + 1)?;
        }
        Ok(())
    }

    /// Reads a map's key that is inside a container at `depth`. A key that is no scalar is its own
    /// bytes.
    pub(crate) fn key(&mut self, depth: usize) -> Result<Token<'a>, DecodeFault> {
        let begun = self.at;
        match self.token()? {
            token @ (Token::Array(_) | Token::Map(_) | Token::Ext(..)) => {
                self.skip_parts(token, depth)?;
                Ok(Token::Bin(
                    self.bytes.get(begun..self.at).unwrap_or_default(),
                ))
            }
            scalar => Ok(scalar),
        }
    }
}

/// Checks that bytes are one payload that may stand inside a container at `depth`.
pub(crate) fn validate(bytes: &[u8], depth: usize) -> Result<(), DecodeFault> {
    let mut reader = Reader::new(bytes);
    let count = reader.payload()?;
    reader.skip_parts(Token::Map(count), depth)?;
    reader.finish()
}
