//! Reads MessagePack values from a slice, never past its end and without recursion.
//!
//! Bytes that are not MessagePack, or end early, give `None`.

use bytes::Buf;

/// One value. A list or map has only the number of elements that follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Nil,
    Flag(bool),
    Number(u64),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    Array(u32),
    Map(u32),
    /// A negative number, a float or an extension. No message has such a field.
    Other,
}

/// The unread bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacker<'a>(pub(crate) &'a [u8]);

impl<'a> Unpacker<'a> {
    fn read_bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_length(&mut self, width: usize) -> Option<usize> {
        usize::try_from(self.read_bytes(width)?.get_uint(width)).ok()
    }

    fn read_sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.read_length(width)?;
        self.read_bytes(length)
    }

    fn read_count(&mut self, width: usize) -> Option<u32> {
        u32::try_from(self.read_length(width)?).ok()
    }

    fn read_signed(&mut self, width: usize) -> Option<Value<'a>> {
        let number = self.read_bytes(width)?.get_int(width);
        Some(u64::try_from(number).map_or(Value::Other, Value::Number))
    }

    fn skip_bytes(&mut self, bytes: usize) -> Option<Value<'a>> {
        self.read_bytes(bytes).map(|_| Value::Other)
    }

    /// Skips an extension: a length of this width, a kind, the bytes.
    fn skip_extension(&mut self, width: usize) -> Option<Value<'a>> {
        let length = self.read_length(width)?;
        self.skip_bytes(length.checked_add(1)?)
    }

    /// Reads the next value.
    pub(crate) fn read_value(&mut self) -> Option<Value<'a>> {
        let marker = *self.read_bytes(1)?.first()?;
        Some(match marker {
            0x00..=0x7f => Value::Number(marker.into()),
            0x80..=0x8f => Value::Map(u32::from(marker & 0x0f)),
            0x90..=0x9f => Value::Array(u32::from(marker & 0x0f)),
            0xa0..=0xbf => Value::Text(self.read_bytes(usize::from(marker & 0x1f))?),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Flag(marker == 0xc3),
            0xc4..=0xc6 => Value::Binary(self.read_sized(1 << (marker - 0xc4))?),
            0xc7..=0xc9 => self.skip_extension(1 << (marker - 0xc7))?,
            0xca | 0xcb => self.skip_bytes(4 << (marker - 0xca))?,
            0xcc..=0xcf => Value::Number(
                self.read_bytes(1 << (marker - 0xcc))?
                    .get_uint(1 << (marker - 0xcc)),
            ),
            0xd0..=0xd3 => self.read_signed(1 << (marker - 0xd0))?,
            0xd4..=0xd8 => self.skip_bytes(1 + (1 << (marker - 0xd4)))?,
            0xd9..=0xdb => Value::Text(self.read_sized(1 << (marker - 0xd9))?),
            0xdc | 0xdd => Value::Array(self.read_count(2 << (marker - 0xdc))?),
            0xde | 0xdf => Value::Map(self.read_count(2 << (marker - 0xde))?),
            0xe0..=0xff => Value::Other,
            0xc1 => return None,
        })
    }

    /// Skips one value with all of its elements and returns its bytes.
    pub(crate) fn skip_whole(&mut self) -> Option<&'a [u8]> {
        let before = self.0;
        // Counts the values that are still to come, in place of recursion: hostile nesting then
        // costs no stack.
        let mut pending = 1_u64;
        while pending > 0 {
            pending -= 1;
            match self.read_value()? {
                Value::Array(count) => pending += u64::from(count),
                Value::Map(count) => pending += 2 * u64::from(count),
                _ => {}
            }
        }
        before.get(..before.len() - self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hex: &str, expect: Option<Value<'_>>) {
        let bytes = hex::decode(hex.replace(' ', "")).unwrap();
        assert_eq!(Unpacker(&bytes).read_value(), expect, "{hex}");
        for cut in 0..bytes.len() {
            if expect.is_some() {
                assert_eq!(
                    Unpacker(&bytes[..cut]).read_value(),
                    None,
                    "{hex} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn every_marker_is_read_and_every_cut_is_noticed() {
        for (hex, expect) in [
            ("7f", Value::Number(127)),
            ("cc ff", Value::Number(255)),
            ("cd 0100", Value::Number(256)),
            ("cf ffffffffffffffff", Value::Number(u64::MAX)),
            ("d0 05", Value::Number(5)),
            ("d0 ff", Value::Other),
            ("d3 8000000000000000", Value::Other),
            ("ff", Value::Other),
            ("c0", Value::Nil),
            ("c3", Value::Flag(true)),
            ("a2 6869", Value::Text(b"hi")),
            ("d9 02 6869", Value::Text(b"hi")),
            ("db 00000002 6869", Value::Text(b"hi")),
            ("c4 01 00", Value::Binary(&[0])),
            ("c6 00000001 00", Value::Binary(&[0])),
            ("ca 00000000", Value::Other),
            ("cb 0000000000000000", Value::Other),
            ("d6 05 00000001", Value::Other),
            ("c7 02 05 0001", Value::Other),
            ("92", Value::Array(2)),
            ("dd 00000003", Value::Array(3)),
            ("82", Value::Map(2)),
            ("df ffffffff", Value::Map(u32::MAX)),
        ] {
            check(hex, Some(expect));
        }
        check("c1", None);
    }

    #[test]
    fn a_value_is_passed_over_whole_however_deep() {
        let deep = [vec![0x91; 100_000], vec![0xc0, 0x07]].concat();
        let mut unpacker = Unpacker(&deep);
        assert_eq!(unpacker.skip_whole().unwrap().len(), 100_001);
        assert_eq!(unpacker.0, [0x07]);
        assert_eq!(
            Unpacker(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0]).skip_whole(),
            None
        );
    }
}
