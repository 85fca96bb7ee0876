//! Reads MessagePack from a slice, one token at a time.
//!
//! | first byte | token |
//! |---|---|
//! | `00`–`7f`, `e0`–`ff` | a small integer, positive or negative |
//! | `80`–`8f`, `de`, `df` | a map: its number of entries, which follow |
//! | `90`–`9f`, `dc`, `dd` | an array: its number of elements, which follow |
//! | `a0`–`bf`, `d9`–`db` | a string |
//! | `c0`, `c2`, `c3` | nil, false, true |
//! | `c4`–`c6` | binary |
//! | `c7`–`c9`, `d4`–`d8` | an extension |
//! | `ca`, `cb` | a float |
//! | `cc`–`cf`, `d0`–`d3` | an unsigned or signed integer |
//!
//! `c1` is reserved and begins no value.

/// Why bytes are not MessagePack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MsgpackError {
    /// The bytes end inside a value.
    #[error("the bytes end inside a value that begins at byte {offset}")]
    Truncated {
        /// Where the value begins.
        offset: usize,
    },
    /// The reserved byte 0xc1.
    #[error("the reserved byte 0xc1 is at byte {offset}")]
    Reserved {
        /// Where.
        offset: usize,
    },
}

/// One unit of MessagePack: a scalar, or the header of a container whose contents follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// Nil.
    Nil,
    /// A bool.
    Bool(bool),
    /// An integer between the least i64 and the greatest u64.
    Int(i128),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// A string, not necessarily UTF-8.
    Str(&'a [u8]),
    /// Bytes.
    Bin(&'a [u8]),
    /// An extension: its kind and its bytes.
    Ext(i8, &'a [u8]),
    /// An array with this many elements.
    Array(u32),
    /// A map with this many entries.
    Map(u32),
}

impl Token<'_> {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
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

    /// How many values follow the token as its contents.
    pub fn content_values(&self) -> u64 {
        match *self {
            Self::Array(count) => u64::from(count),
            // A map has a key and a value per entry.
            Self::Map(count) => 2 * u64::from(count),
            _ => 0,
        }
    }
}

/// Reads tokens from a slice.
#[derive(Debug, Clone)]
pub struct MsgpackReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MsgpackReader<'a> {
    /// Reads from the first of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes are read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The bytes that are not read yet.
    pub fn unread(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The bytes that were read since the reader was at `offset`.
    pub fn bytes_since(&self, offset: usize) -> &'a [u8] {
        self.bytes.get(offset..self.at).unwrap_or_default()
    }

    /// Reads the next token.
    pub fn read_token(&mut self) -> Result<Token<'a>, MsgpackError> {
        let start = self.at;
        self.read_token_from(start)
            .ok_or(MsgpackError::Truncated { offset: start })
            .and_then(|token| token.ok_or(MsgpackError::Reserved { offset: start }))
    }

    /// Skips one value with all of its contents and returns its bytes.
    pub fn skip_value(&mut self) -> Result<&'a [u8], MsgpackError> {
        let start = self.at;
        // Counts the values that are still to come, in place of recursion: hostile nesting then
        // costs no stack.
        let mut pending = 1_u64;
        while pending > 0 {
            pending = (pending - 1).saturating_add(self.read_token()?.content_values());
        }
        Ok(self.bytes_since(start))
    }

    /// Reads a token. The outer `None` means that the bytes end early, the inner one that the byte
    /// is reserved.
    fn read_token_from(&mut self, start: usize) -> Option<Option<Token<'a>>> {
        let marker = *self.bytes.get(start)?;
        self.at = start + 1;
        let low_bits = |mask: u8| u32::from(marker & mask);
        let token = match marker {
            0x00..=0x7f => Token::Int(marker.into()),
            0x80..=0x8f => Token::Map(low_bits(0x0f)),
            0x90..=0x9f => Token::Array(low_bits(0x0f)),
            0xa0..=0xbf => Token::Str(self.read_bytes(low_bits(0x1f))?),
            0xc0 => Token::Nil,
            0xc1 => return Some(None),
            0xc2 | 0xc3 => Token::Bool(marker == 0xc3),
            0xc4 => Token::Bin(self.read_sized::<1>()?),
            0xc5 => Token::Bin(self.read_sized::<2>()?),
            0xc6 => Token::Bin(self.read_sized::<4>()?),
            0xc7 => self.read_ext::<1>()?,
            0xc8 => self.read_ext::<2>()?,
            0xc9 => self.read_ext::<4>()?,
            0xca => Token::F32(f32::from_bits(self.read_length::<4>()?)),
            0xcb => Token::F64(f64::from_bits(self.read_unsigned::<8>()?)),
            0xcc => Token::Int(self.read_unsigned::<1>()?.into()),
            0xcd => Token::Int(self.read_unsigned::<2>()?.into()),
            0xce => Token::Int(self.read_unsigned::<4>()?.into()),
            0xcf => Token::Int(self.read_unsigned::<8>()?.into()),
            0xd0 => Token::Int(self.read_signed::<1>()?),
            0xd1 => Token::Int(self.read_signed::<2>()?),
            0xd2 => Token::Int(self.read_signed::<4>()?),
            0xd3 => Token::Int(self.read_signed::<8>()?),
            0xd4..=0xd8 => self.read_fixed_ext(1 << (marker - 0xd4))?,
            0xd9 => Token::Str(self.read_sized::<1>()?),
            0xda => Token::Str(self.read_sized::<2>()?),
            0xdb => Token::Str(self.read_sized::<4>()?),
            0xdc => Token::Array(self.read_length::<2>()?),
            0xdd => Token::Array(self.read_length::<4>()?),
            0xde => Token::Map(self.read_length::<2>()?),
            0xdf => Token::Map(self.read_length::<4>()?),
            0xe0..=0xff => Token::Int(marker.cast_signed().into()),
        };
        Some(Some(token))
    }

    fn read_bytes(&mut self, count: u32) -> Option<&'a [u8]> {
        // The slice is checked before `at` moves, because the bytes declare `count`.
        let taken = self.unread().get(..count as usize)?;
        self.at += taken.len();
        Some(taken)
    }

    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.unread().first_chunk()?;
        self.at += N;
        Some(taken)
    }

    /// Reads an unsigned number of `N` bytes.
    #[expect(clippy::big_endian_bytes, reason = "MessagePack is big-endian")]
    fn read_unsigned<const N: usize>(&mut self) -> Option<u64> {
        let mut wide = [0; 8];
        wide[8 - N..].copy_from_slice(&self.read_array::<N>()?);
        Some(u64::from_be_bytes(wide))
    }

    /// Reads a signed number of `N` bytes.
    fn read_signed<const N: usize>(&mut self) -> Option<i128> {
        let unused_bits = 8 * (8 - N);
        let number = self.read_unsigned::<N>()?.cast_signed();
        // Shifting there and back repeats the sign bit.
        Some(((number << unused_bits) >> unused_bits).into())
    }

    /// Reads a length of at most four bytes.
    fn read_length<const N: usize>(&mut self) -> Option<u32> {
        u32::try_from(self.read_unsigned::<N>()?).ok()
    }

    fn read_sized<const N: usize>(&mut self) -> Option<&'a [u8]> {
        let count = self.read_length::<N>()?;
        self.read_bytes(count)
    }

    fn read_ext<const N: usize>(&mut self) -> Option<Token<'a>> {
        let count = self.read_length::<N>()?;
        self.read_fixed_ext(count)
    }

    fn read_fixed_ext(&mut self, count: u32) -> Option<Token<'a>> {
        let [kind] = self.read_array::<1>()?;
        Some(Token::Ext(kind.cast_signed(), self.read_bytes(count)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_is_read_and_every_cut_is_noticed() {
        fn check(hex: &str, expect: Token<'_>) {
            let bytes = hex::decode(hex.replace(' ', "")).unwrap();
            let mut reader = MsgpackReader::new(&bytes);
            assert_eq!(reader.read_token(), Ok(expect), "{hex}");
            assert_eq!(reader.unread(), [0_u8; 0], "{hex}");
            for cut in 0..bytes.len() {
                let cut_token = MsgpackReader::new(&bytes[..cut]).read_token();
                assert_eq!(
                    cut_token,
                    Err(MsgpackError::Truncated { offset: 0 }),
                    "{hex} cut at {cut}"
                );
            }
        }
        for (hex, expect) in [
            ("7f", Token::Int(127)),
            ("cc ff", Token::Int(255)),
            ("cd 0100", Token::Int(256)),
            ("ce 00010000", Token::Int(65536)),
            ("cf ffffffffffffffff", Token::Int(u64::MAX.into())),
            ("d0 05", Token::Int(5)),
            ("d0 ff", Token::Int(-1)),
            ("d1 8000", Token::Int(-32768)),
            ("d2 80000000", Token::Int(i32::MIN.into())),
            ("d3 8000000000000000", Token::Int(i64::MIN.into())),
            ("ff", Token::Int(-1)),
            ("e0", Token::Int(-32)),
            ("c0", Token::Nil),
            ("c2", Token::Bool(false)),
            ("c3", Token::Bool(true)),
            ("a2 6869", Token::Str(b"hi")),
            ("d9 02 6869", Token::Str(b"hi")),
            ("da 0002 6869", Token::Str(b"hi")),
            ("db 00000002 6869", Token::Str(b"hi")),
            ("c4 01 00", Token::Bin(&[0])),
            ("c5 0001 00", Token::Bin(&[0])),
            ("c6 00000001 00", Token::Bin(&[0])),
            ("ca 3f800000", Token::F32(1.0)),
            ("cb 3ff0000000000000", Token::F64(1.0)),
            ("d4 05 01", Token::Ext(5, &[1])),
            ("d6 ff 00000001", Token::Ext(-1, &[0, 0, 0, 1])),
            (
                "d8 05 00000000000000000000000000000000",
                Token::Ext(5, &[0; 16]),
            ),
            ("c7 02 05 0001", Token::Ext(5, &[0, 1])),
            ("c8 0001 05 01", Token::Ext(5, &[1])),
            ("c9 00000001 05 01", Token::Ext(5, &[1])),
            ("92", Token::Array(2)),
            ("dc 0003", Token::Array(3)),
            ("dd 00000003", Token::Array(3)),
            ("82", Token::Map(2)),
            ("de 0003", Token::Map(3)),
            ("df ffffffff", Token::Map(u32::MAX)),
        ] {
            check(hex, expect);
        }
        let reserved = MsgpackReader::new(&[0xc1]).read_token();
        assert_eq!(reserved, Err(MsgpackError::Reserved { offset: 0 }));
    }

    #[test]
    fn a_value_is_skipped_whole_however_deep() {
        let deep = [vec![0x91; 100_000], vec![0xc0, 0x07]].concat();
        let mut reader = MsgpackReader::new(&deep);
        assert_eq!(reader.skip_value().unwrap().len(), 100_001);
        assert_eq!(reader.unread(), [0x07]);
        let declared = [0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0];
        assert!(MsgpackReader::new(&declared).skip_value().is_err());
    }
}
