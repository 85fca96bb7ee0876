//! Reads MessagePack values from a slice, never past its end and never recursively.

use bytes::Buf;

/// One value; lists and maps give only how many elements follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Nil,
    Flag(bool),
    Number(u64),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    Array(u32),
    Map(u32),
    /// A negative number, a float or an extension: nothing here has such a field.
    Other,
}

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacker<'a>(pub(crate) &'a [u8]);

impl<'a> Unpacker<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self, width: usize) -> Option<usize> {
        usize::try_from(self.take(width)?.get_uint(width)).ok()
    }

    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.length(width)?;
        self.take(length)
    }

    fn count(&mut self, width: usize) -> Option<u32> {
        u32::try_from(self.length(width)?).ok()
    }

    fn signed(&mut self, width: usize) -> Option<Value<'a>> {
        let number = self.take(width)?.get_int(width);
        Some(u64::try_from(number).map_or(Value::Other, Value::Number))
    }

    fn skipped(&mut self, bytes: usize) -> Option<Value<'a>> {
        self.take(bytes).map(|_| Value::Other)
    }

    /// An extension whose length has this width: the length, a kind, the bytes.
    fn extension(&mut self, width: usize) -> Option<Value<'a>> {
        let length = self.length(width)?;
        self.skipped(length.checked_add(1)?)
    }

    /// The next value; none where the bytes are no MessagePack or end too soon.
    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        let marker = *self.take(1)?.first()?;
        Some(match marker {
            0x00..=0x7f => Value::Number(marker.into()),
            0x80..=0x8f => Value::Map(u32::from(marker & 0x0f)),
            0x90..=0x9f => Value::Array(u32::from(marker & 0x0f)),
            0xa0..=0xbf => Value::Text(self.take(usize::from(marker & 0x1f))?),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Flag(marker == 0xc3),
            0xc4..=0xc6 => Value::Binary(self.sized(1 << (marker - 0xc4))?),
            0xc7..=0xc9 => self.extension(1 << (marker - 0xc7))?,
            0xca | 0xcb => self.skipped(4 << (marker - 0xca))?,
            0xcc..=0xcf => Value::Number(
                self.take(1 << (marker - 0xcc))?
                    .get_uint(1 << (marker - 0xcc)),
            ),
            0xd0..=0xd3 => self.signed(1 << (marker - 0xd0))?,
            0xd4..=0xd8 => self.skipped(1 + (1 << (marker - 0xd4)))?,
            0xd9..=0xdb => Value::Text(self.sized(1 << (marker - 0xd9))?),
            0xdc | 0xdd => Value::Array(self.count(2 << (marker - 0xdc))?),
            0xde | 0xdf => Value::Map(self.count(2 << (marker - 0xde))?),
            0xe0..=0xff => Value::Other,
            0xc1 => return None,
        })
    }

    /// Passes over one value with everything in it, and gives its bytes.
    pub(crate) fn whole(&mut self) -> Option<&'a [u8]> {
        let before = self.0;
        let mut pending = 1_u64;
        while pending > 0 {
            pending -= 1;
            match self.value()? {
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
        assert_eq!(Unpacker(&bytes).value(), expect, "{hex}");
        for cut in 0..bytes.len() {
            if expect.is_some() {
                assert_eq!(Unpacker(&bytes[..cut]).value(), None, "{hex} cut at {cut}");
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
        assert_eq!(unpacker.whole().unwrap().len(), 100_001);
        assert_eq!(unpacker.0, [0x07]);
        assert_eq!(
            Unpacker(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0]).whole(),
            None
        );
    }
}
