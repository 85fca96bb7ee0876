//! A bounded msgpack reader over a slice.
//!
//! It borrows from the slice and allocates nothing. It checks each declared length against the
//! bytes that follow, and each container against `NESTING_MAX`, so the input bounds time and stack.
//! It fails with the offset of the first fault.

use rmp::Marker;

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

/// One unit of msgpack: a scalar, or the header of a container whose contents follow.
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
    /// The kind of value, for messages.
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
pub(crate) struct MsgpackReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MsgpackReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads the header of the map with which every payload begins, and returns its length.
    pub(crate) fn read_payload_header(&mut self) -> Result<u32, DecodeFault> {
        if self.bytes.is_empty() {
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
        match self.bytes.len() - self.at {
            0 => Ok(()),
            bytes => Err(DecodeFault::Trailing {
                offset: self.at,
                bytes,
            }),
        }
    }

    /// Returns an error if the container whose header was just read is nested too deeply.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), DecodeFault> {
        if depth > NESTING_MAX {
            return Err(DecodeFault::TooDeep { offset: self.at });
        }
        Ok(())
    }

    fn read_bytes(&mut self, count: usize, value_start: usize) -> Result<&'a [u8], DecodeFault> {
        // The slice check comes before any use of `count`, which the payload declares.
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..count).ok_or(DecodeFault::Truncated {
            offset: value_start,
        })?;
        self.at += count;
        Ok(taken)
    }

    fn read_array<const N: usize>(&mut self, value_start: usize) -> Result<[u8; N], DecodeFault> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.read_bytes(N, value_start)?);
        Ok(bytes)
    }

    /// Reads an unsigned number of `N` bytes.
    #[expect(clippy::big_endian_bytes, reason = "msgpack is big-endian")]
    fn read_uint<const N: usize>(&mut self, value_start: usize) -> Result<u64, DecodeFault> {
        let mut wide = [0; 8];
        wide[8 - N..].copy_from_slice(&self.read_array::<N>(value_start)?);
        Ok(u64::from_be_bytes(wide))
    }

    /// Reads a length of `N` bytes.
    fn read_count<const N: usize>(&mut self, value_start: usize) -> Result<u32, DecodeFault> {
        self.read_uint::<N>(value_start)
            // Lengths have at most four bytes, so the conversion never saturates.
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn read_sized<const N: usize>(&mut self, value_start: usize) -> Result<&'a [u8], DecodeFault> {
        let count = self.read_count::<N>(value_start)?;
        self.read_bytes(count as usize, value_start)
    }

    fn read_ext<const N: usize>(&mut self, value_start: usize) -> Result<Token<'a>, DecodeFault> {
        let count = self.read_count::<N>(value_start)?;
        self.read_fixed_ext(count as usize, value_start)
    }

    fn read_fixed_ext(
        &mut self,
        count: usize,
        value_start: usize,
    ) -> Result<Token<'a>, DecodeFault> {
        let [kind] = self.read_array::<1>(value_start)?;
        Ok(Token::Ext(
            kind.cast_signed(),
            self.read_bytes(count, value_start)?,
        ))
    }

    /// Reads the next token.
    #[expect(clippy::big_endian_bytes, reason = "msgpack is big-endian")]
    pub(crate) fn read_token(&mut self) -> Result<Token<'a>, DecodeFault> {
        let value_start = self.at;
        let [marker] = self.read_array::<1>(value_start)?;
        Ok(match Marker::from_u8(marker) {
            Marker::FixPos(number) => Token::Int(number.into()),
            Marker::FixNeg(number) => Token::Int(number.into()),
            Marker::Null => Token::Nil,
            Marker::True => Token::Bool(true),
            Marker::False => Token::Bool(false),
            Marker::U8 => Token::Int(self.read_uint::<1>(value_start)?.into()),
            Marker::U16 => Token::Int(self.read_uint::<2>(value_start)?.into()),
            Marker::U32 => Token::Int(self.read_uint::<4>(value_start)?.into()),
            Marker::U64 => Token::Int(self.read_uint::<8>(value_start)?.into()),
            Marker::I8 => Token::Int(i8::from_be_bytes(self.read_array(value_start)?).into()),
            Marker::I16 => Token::Int(i16::from_be_bytes(self.read_array(value_start)?).into()),
            Marker::I32 => Token::Int(i32::from_be_bytes(self.read_array(value_start)?).into()),
            Marker::I64 => Token::Int(i64::from_be_bytes(self.read_array(value_start)?).into()),
            Marker::F32 => Token::F32(f32::from_be_bytes(self.read_array(value_start)?)),
            Marker::F64 => Token::F64(f64::from_be_bytes(self.read_array(value_start)?)),
            Marker::FixStr(count) => Token::Str(self.read_bytes(count.into(), value_start)?),
            Marker::Str8 => Token::Str(self.read_sized::<1>(value_start)?),
            Marker::Str16 => Token::Str(self.read_sized::<2>(value_start)?),
            Marker::Str32 => Token::Str(self.read_sized::<4>(value_start)?),
            Marker::Bin8 => Token::Bin(self.read_sized::<1>(value_start)?),
            Marker::Bin16 => Token::Bin(self.read_sized::<2>(value_start)?),
            Marker::Bin32 => Token::Bin(self.read_sized::<4>(value_start)?),
            Marker::FixExt1 => self.read_fixed_ext(1, value_start)?,
            Marker::FixExt2 => self.read_fixed_ext(2, value_start)?,
            Marker::FixExt4 => self.read_fixed_ext(4, value_start)?,
            Marker::FixExt8 => self.read_fixed_ext(8, value_start)?,
            Marker::FixExt16 => self.read_fixed_ext(16, value_start)?,
            Marker::Ext8 => self.read_ext::<1>(value_start)?,
            Marker::Ext16 => self.read_ext::<2>(value_start)?,
            Marker::Ext32 => self.read_ext::<4>(value_start)?,
            Marker::FixArray(count) => Token::Array(count.into()),
            Marker::Array16 => Token::Array(self.read_count::<2>(value_start)?),
            Marker::Array32 => Token::Array(self.read_count::<4>(value_start)?),
            Marker::FixMap(count) => Token::Map(count.into()),
            Marker::Map16 => Token::Map(self.read_count::<2>(value_start)?),
            Marker::Map32 => Token::Map(self.read_count::<4>(value_start)?),
            Marker::Reserved => {
                return Err(DecodeFault::Reserved {
                    offset: value_start,
                });
            }
        })
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
        let parts = match token {
            Token::Array(count) => u64::from(count),
            // A map has a key and a value per entry.
            Token::Map(count) => 2 * u64::from(count),
            _ => return Ok(()),
        };
        self.check_depth(depth + 1)?;
        for _ in 0..parts {
            self.skip_value(depth + 1)?;
        }
        Ok(())
    }

    /// Reads a map's key inside a container at `depth`. A key that is a container or an extension
    /// is returned as its encoded bytes, because JSON keys are strings.
    pub(crate) fn read_key(&mut self, depth: usize) -> Result<Token<'a>, DecodeFault> {
        let value_start = self.at;
        match self.read_token()? {
            token @ (Token::Array(_) | Token::Map(_) | Token::Ext(..)) => {
                self.skip_contents(token, depth)?;
                Ok(Token::Bin(
                    self.bytes.get(value_start..self.at).unwrap_or_default(),
                ))
            }
            scalar => Ok(scalar),
        }
    }
}

/// Checks that the bytes are one payload, nested inside a container at `depth`.
pub(crate) fn validate(bytes: &[u8], depth: usize) -> Result<(), DecodeFault> {
    let mut reader = MsgpackReader::new(bytes);
    let count = reader.read_payload_header()?;
    reader.skip_contents(Token::Map(count), depth)?;
    reader.finish()
}
