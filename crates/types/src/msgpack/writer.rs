//! Writes MessagePack into memory.

use bytes::BufMut;

/// MessagePack under construction.
#[derive(Debug, Default)]
pub struct MsgpackWriter {
    out: Vec<u8>,
}

/// The markers of a length of 1, 2 and 4 bytes. Arrays and maps have none for one byte.
struct LengthMarkers {
    one: Option<u8>,
    two: u8,
    four: u8,
}

impl MsgpackWriter {
    /// A writer with memory for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
        }
    }

    /// Appends to these bytes.
    pub fn append_to(out: Vec<u8>) -> Self {
        Self { out }
    }

    /// The written bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes nil.
    pub fn write_nil(&mut self) {
        self.out.put_u8(0xc0);
    }

    /// Writes a bool.
    pub fn write_bool(&mut self, flag: bool) {
        self.out.put_u8(if flag { 0xc3 } else { 0xc2 });
    }

    /// Writes a number between the least i64 and the greatest u64. Any other number becomes the least
    /// i64; the reader never returns one.
    pub fn write_int(&mut self, number: i128) {
        match u64::try_from(number) {
            Ok(number) => self.write_uint(number),
            Err(_) => self.write_negative(i64::try_from(number).unwrap_or(i64::MIN)),
        }
    }

    /// Writes an unsigned number.
    pub fn write_uint(&mut self, number: u64) {
        if let Ok(byte) = u8::try_from(number) {
            // A number below 0x80 is its own marker.
            if byte >= 0x80 {
                self.out.put_u8(0xcc);
            }
            self.out.put_u8(byte);
        } else if let Ok(number) = u16::try_from(number) {
            self.out.put_u8(0xcd);
            self.out.put_u16(number);
        } else if let Ok(number) = u32::try_from(number) {
            self.out.put_u8(0xce);
            self.out.put_u32(number);
        } else {
            self.out.put_u8(0xcf);
            self.out.put_u64(number);
        }
    }

    fn write_negative(&mut self, number: i64) {
        if let Ok(byte) = i8::try_from(number) {
            // The markers 0xe0 to 0xff are the numbers -32 to -1.
            if byte < -32 {
                self.out.put_u8(0xd0);
            }
            self.out.put_i8(byte);
        } else if let Ok(number) = i16::try_from(number) {
            self.out.put_u8(0xd1);
            self.out.put_i16(number);
        } else if let Ok(number) = i32::try_from(number) {
            self.out.put_u8(0xd2);
            self.out.put_i32(number);
        } else {
            self.out.put_u8(0xd3);
            self.out.put_i64(number);
        }
    }

    /// Writes a float of 32 bits.
    pub fn write_f32(&mut self, number: f32) {
        self.out.put_u8(0xca);
        self.out.put_f32(number);
    }

    /// Writes a float of 64 bits.
    pub fn write_f64(&mut self, number: f64) {
        self.out.put_u8(0xcb);
        self.out.put_f64(number);
    }

    /// Writes a string.
    pub fn write_str(&mut self, text: &str) {
        let markers = LengthMarkers {
            one: Some(0xd9),
            two: 0xda,
            four: 0xdb,
        };
        match u8::try_from(text.len()) {
            Ok(length) if length < 32 => self.out.put_u8(0xa0 | length),
            _ => self.write_length(text.len(), &markers),
        }
        self.out.put_slice(text.as_bytes());
    }

    /// Writes bytes.
    pub fn write_bin(&mut self, bytes: &[u8]) {
        let markers = LengthMarkers {
            one: Some(0xc4),
            two: 0xc5,
            four: 0xc6,
        };
        self.write_length(bytes.len(), &markers);
        self.out.put_slice(bytes);
    }

    /// Writes the header of an array. Its elements follow.
    pub fn write_array_header(&mut self, count: usize) {
        match u8::try_from(count) {
            Ok(count) if count < 16 => self.out.put_u8(0x90 | count),
            _ => self.write_wide_array_header(count),
        }
    }

    /// Writes the header of an array with a count of at least two bytes.
    pub fn write_wide_array_header(&mut self, count: usize) {
        let markers = LengthMarkers {
            one: None,
            two: 0xdc,
            four: 0xdd,
        };
        self.write_length(count, &markers);
    }

    /// Writes the header of a map. Its keys and values follow in turn.
    pub fn write_map_header(&mut self, count: usize) {
        let markers = LengthMarkers {
            one: None,
            two: 0xde,
            four: 0xdf,
        };
        match u8::try_from(count) {
            Ok(count) if count < 16 => self.out.put_u8(0x80 | count),
            _ => self.write_length(count, &markers),
        }
    }

    /// Writes the header of a map whose entries are not counted yet. [`Self::set_map_count`] sets
    /// the count later, so it always has two bytes. Returns the header's position.
    pub fn write_uncounted_map_header(&mut self) -> usize {
        let header_at = self.out.len();
        self.out.put_u8(0xde);
        self.out.put_u16(0);
        header_at
    }

    /// Sets the count of the map whose header is at this position.
    pub fn set_map_count(&mut self, header_at: usize, count: u16) {
        if let Some(mut counted) = self.out.get_mut(header_at + 1..header_at + 3) {
            counted.put_u16(count);
        }
    }

    /// Writes a marker and a length in the fewest bytes for which there is a marker. Every caller
    /// limits what it writes far below 2^32 bytes.
    fn write_length(&mut self, length: usize, markers: &LengthMarkers) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if let (Ok(length), Some(marker)) = (u8::try_from(length), markers.one) {
            self.out.put_slice(&[marker, length]);
        } else if let Ok(length) = u16::try_from(length) {
            self.out.put_u8(markers.two);
            self.out.put_u16(length);
        } else {
            self.out.put_u8(markers.four);
            self.out.put_u32(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut MsgpackWriter)) -> String {
        let mut writer = MsgpackWriter::default();
        write(&mut writer);
        hex::encode(writer.into_bytes())
    }

    #[test]
    fn numbers_have_their_shortest_form() {
        for (number, expect) in [
            (0, "00"),
            (127, "7f"),
            (128, "cc80"),
            (255, "ccff"),
            (256, "cd0100"),
            (65536, "ce00010000"),
            (1 << 32, "cf0000000100000000"),
            (u64::MAX.into(), "cfffffffffffffffff"),
            (-1, "ff"),
            (-32, "e0"),
            (-33, "d0df"),
            (-128, "d080"),
            (-129, "d1ff7f"),
            (-32769, "d2ffff7fff"),
            (-2_147_483_649, "d3ffffffff7fffffff"),
            (i64::MIN.into(), "d38000000000000000"),
        ] {
            assert_eq!(written(|out| out.write_int(number)), expect, "{number}");
        }
    }

    #[test]
    fn lengths_have_their_shortest_form() {
        let text = |len: usize| {
            let hex = written(|out| out.write_str(&"x".repeat(len)));
            hex[..hex.len() - 2 * len].to_owned()
        };
        assert_eq!([text(0), text(31), text(32)], ["a0", "bf", "d920"]);
        assert_eq!([text(256), text(65536)], ["da0100", "db00010000"]);
        assert_eq!(written(|out| out.write_bin(b"hi")), "c4026869");
        let array = |count| written(|out| out.write_array_header(count));
        assert_eq!(
            [array(15), array(16), array(65536)],
            ["9f", "dc0010", "dd00010000"]
        );
        let map = |count| written(|out| out.write_map_header(count));
        assert_eq!(
            [map(15), map(16), map(65536)],
            ["8f", "de0010", "df00010000"]
        );
        assert_eq!(written(|out| out.write_wide_array_header(1)), "dc0001");
    }

    #[test]
    fn a_map_can_be_counted_after_its_entries() {
        let hex = written(|out| {
            out.write_nil();
            let header_at = out.write_uncounted_map_header();
            out.write_uint(1);
            out.write_bool(true);
            out.set_map_count(header_at, 1);
        });
        assert_eq!(hex, "c0de000101c3");
    }
}
