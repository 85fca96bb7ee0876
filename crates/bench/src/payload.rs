//! Payloads to write: all different, so that no blob is dropped as a duplicate, and not
//! compressible.

/// A stream of pseudo-random bytes from a seed (xorshift64*), cheap and the same on every machine.
#[derive(Debug, Clone)]
pub(super) struct Payloads {
    state: u64,
    bytes: usize,
}

impl Payloads {
    /// Payloads of `bytes` each; two streams differ if their seeds do.
    pub(super) fn new(seed: u64, bytes: usize) -> Self {
        Self {
            // Never zero: xorshift would stay there.
            state: seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            bytes,
        }
    }

    fn next_word(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Appends the next payload: a msgpack map of one binary field.
    pub(super) fn write_next(&mut self, out: &mut Vec<u8>) {
        let end = out.len() + self.bytes;
        let body = u32::try_from(self.bytes.saturating_sub(7)).unwrap_or(u32::MAX);
        out.extend_from_slice(&[0x81, 0x01, 0xC6]);
        // msgpack is big-endian.
        out.extend(body.to_le_bytes().iter().rev());
        while out.len() < end {
            out.extend_from_slice(&self.next_word().to_le_bytes());
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_length_asked_for_and_differ() {
        let mut payloads = Payloads::new(1, 100);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        payloads.write_next(&mut first);
        payloads.write_next(&mut second);
        assert_eq!((first.len(), second.len()), (100, 100));
        assert_ne!(first, second);
        assert_eq!(first[..7], [0x81, 0x01, 0xC6, 0, 0, 0, 93]);
        let mut other = Vec::new();
        Payloads::new(2, 100).write_next(&mut other);
        assert_ne!(first, other);
    }
}
