//! The number format of frames, log records and checkpoints: LEB128, at most ten bytes.
//!
//! Each byte holds seven bits, the lowest first; the top bit says that another byte follows.
//! Example: 300 is `ac 02`.

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Appends the length of the bytes, then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads numbers and bytes. Each method returns `None` if the input is malformed or too short.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number.
    pub fn u64(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only. Higher bits would be lost silently.
            number |= bits.checked_shl(shift).filter(|n| n >> shift == bits)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number that fits 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.u64()?.try_into().ok()
    }

    /// The next `len` bytes.
    pub fn read_bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// A length and that many bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u64()?;
        self.read_bytes(usize::try_from(len).ok()?)
    }

    /// A length and that many bytes of UTF-8.
    pub fn str(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Returns `None` unless all bytes were read.
    pub fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            let mut reader = Reader(&out);
            assert_eq!((reader.u64(), reader.end()), (Some(number), Some(())));
        }
    }

    #[test]
    fn malformed_numbers_are_rejected() {
        for bad in [&[0x80][..], &[0xff; 9], &[0xff; 11], &[]] {
            assert_eq!(Reader(bad).u64(), None, "{bad:?}");
        }
    }
}
