//! Writes MessagePack: numbers, texts and bytes in their shortest form, maps with a two-byte count.

use bytes::BufMut;

/// A map whose fields are counted as they are written.
pub(super) struct MapWriter<'a> {
    out: &'a mut Vec<u8>,
    count_at: usize,
    count: u16,
}

impl<'a> MapWriter<'a> {
    /// Begins a map at the end of `out`.
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.put_u8(0xde);
        let count_at = out.len();
        out.put_u16(0);
        Self {
            out,
            count_at,
            count: 0,
        }
    }

    fn key(&mut self, name: &str) {
        self.count += 1;
        put_text(self.out, name);
        // The count is always up to date, so a map needs no closing call.
        if let Some(mut room) = self.out.get_mut(self.count_at..self.count_at + 2) {
            room.put_u16(self.count);
        }
    }

    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name);
        put_text(self.out, value);
        self
    }

    pub(super) fn text_if(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    pub(super) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.key(name);
        put_number(self.out, value);
        self
    }

    /// Writes a count unless it is zero.
    pub(super) fn count_if(&mut self, name: &str, count: u32) -> &mut Self {
        self.number_if(name, (count > 0).then(|| count.into()))
    }

    pub(super) fn number_if(&mut self, name: &str, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            self.number(name, value);
        }
        self
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.key(name);
        self.out.put_u8(if value { 0xc3 } else { 0xc2 });
        self
    }

    /// Writes a flag only if it is set. Absent means not set.
    pub(super) fn flag_if(&mut self, name: &str, value: bool) -> &mut Self {
        if value {
            self.flag(name, true);
        }
        self
    }

    pub(super) fn binary(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.key(name);
        put_binary(self.out, value);
        self
    }

    pub(super) fn binary_if(&mut self, name: &str, value: Option<&[u8]>) -> &mut Self {
        if let Some(value) = value {
            self.binary(name, value);
        }
        self
    }

    /// Writes a list of maps.
    pub(super) fn maps<T>(&mut self, name: &str, items: &[T], each: fn(&T, &mut MapWriter<'_>)) {
        self.key(name);
        put_length(self.out, items.len(), [None, Some(0xdc), Some(0xdd)]);
        for item in items {
            each(item, &mut MapWriter::begin(self.out));
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    match u8::try_from(text.len()) {
        Ok(length) if length < 32 => out.put_u8(0xa0 | length),
        _ => put_length(out, text.len(), [Some(0xd9), Some(0xda), Some(0xdb)]),
    }
    out.put_slice(text.as_bytes());
}

fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len(), [Some(0xc4), Some(0xc5), Some(0xc6)]);
    out.put_slice(bytes);
}

/// Writes a marker and a length in the fewest of 1, 2 and 4 bytes for which there is a marker. A
/// longer value exceeds the frame limit anyway.
fn put_length(out: &mut Vec<u8>, length: usize, [one, two, four]: [Option<u8>; 3]) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    match (u8::try_from(length), u16::try_from(length), one, two, four) {
        (Ok(length), _, Some(marker), _, _) => out.put_slice(&[marker, length]),
        (_, Ok(length), _, Some(marker), _) => {
            out.put_u8(marker);
            out.put_u16(length);
        }
        (_, _, _, _, marker) => {
            out.put_u8(marker.unwrap_or(0xc1));
            out.put_u32(length);
        }
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    if let Ok(byte) = u8::try_from(number) {
        if byte >= 0x80 {
            out.put_u8(0xcc);
        }
        out.put_u8(byte);
    } else if let Ok(number) = u16::try_from(number) {
        out.put_u8(0xcd);
        out.put_u16(number);
    } else if let Ok(number) = u32::try_from(number) {
        out.put_u8(0xce);
        out.put_u32(number);
    } else {
        out.put_u8(0xcf);
        out.put_u64(number);
    }
}
