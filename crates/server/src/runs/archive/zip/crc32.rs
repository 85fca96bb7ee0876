//! The checksum of zip files: CRC-32 with the polynomial of Ethernet.
//!
//! The crates of the workspace have another polynomial (CRC32C), which zip programs reject.

/// The polynomial, with its bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The checksum of each byte.
static TABLE: [u32; 256] = make_table();

const fn make_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 {
                (rest >> 1) ^ POLYNOMIAL
            } else {
                rest >> 1
            };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// A checksum in the making.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Crc32 {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let [low, ..] = self.0.to_le_bytes();
            let known = TABLE.get(usize::from(low ^ byte)).copied();
            self.0 = (self.0 >> 8) ^ known.unwrap_or_default();
        }
    }

    pub(super) fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_other_programs() {
        let check = |bytes: &[u8], expect: u32| {
            let mut crc = Crc32::default();
            crc.add(bytes);
            assert_eq!(crc.value(), expect);
        };
        check(b"", 0);
        check(b"123456789", 0xcbf4_3926);
        check(b"The quick brown fox jumps over the lazy dog", 0x414f_a339);
    }
}
