//! Binary files in patches, as git writes them, and the object ids that git compares.
//!
//! A binary patch holds the whole content, compressed with zlib and written in base 85:
//!
//! ```text
//! GIT binary patch
//! literal 5                     size of the content
//! M…                            lines of up to 52 bytes; the first letter is the length
//!                               an empty line ends the content
//! literal 0                     the old content, so that the patch can be taken back
//! ```
//!
//! We write zlib's stored form, which compresses nothing and needs no compressor. `git apply` accepts
//! such a patch only with whole object ids, so the ids are computed here too (SHA-1).

/// Bytes in one line of a binary patch.
const LINE_BYTES: usize = 52;

/// The largest block of zlib's stored form.
const STORED_BLOCK_BYTES_MAX: usize = 0xffff;

const BASE85: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Appends a binary patch with both contents.
pub(crate) fn write_binary_patch(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    out.extend(b"GIT binary patch\n");
    write_literal(out, new);
    write_literal(out, old);
}

fn write_literal(out: &mut Vec<u8>, content: &[u8]) {
    out.extend(format!("literal {}\n", content.len()).bytes());
    for line in store_as_zlib(content).chunks(LINE_BYTES) {
        out.push(length_letter(line.len()));
        for group in line.chunks(4) {
            out.extend(encode_group(group));
        }
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// `A` to `Z` stand for 1 to 26, `a` to `z` for 27 to 52.
fn length_letter(length: usize) -> u8 {
    let length = u8::try_from(length).unwrap_or(0);
    match length {
        0..=26 => b'A' + length.saturating_sub(1),
        _ => b'a' + (length - 27).min(25),
    }
}

/// Four bytes as five digits; missing bytes count as zero.
fn encode_group(group: &[u8]) -> [u8; 5] {
    let mut number = (0..4).fold(0_u32, |number, at| {
        number << 8 | u32::from(group.get(at).copied().unwrap_or(0))
    });
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        let value = usize::try_from(number % 85).unwrap_or(0);
        *digit = BASE85.get(value).copied().unwrap_or(b'0');
        number /= 85;
    }
    digits
}

fn store_as_zlib(content: &[u8]) -> Vec<u8> {
    // zlib's header; then blocks of: a flag for the last one, the length, its complement, the bytes.
    // The loop runs once for an empty content, which needs an empty block.
    let mut out = vec![0x78, 0x01];
    let mut rest = content;
    loop {
        let (block, behind) = rest.split_at(rest.len().min(STORED_BLOCK_BYTES_MAX));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(behind.is_empty()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    out.extend(adler32(content));
    out
}

#[expect(clippy::big_endian_bytes, reason = "zlib's checksum is big-endian")]
fn adler32(content: &[u8]) -> [u8; 4] {
    const PRIME: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % PRIME;
        high = (high + low) % PRIME;
    }
    (high << 16 | low).to_be_bytes()
}

/// The id that git gives a content: the SHA-1 of `blob <size>`, NUL and the content.
pub(crate) fn git_blob_id(content: &[u8]) -> String {
    use std::fmt::Write;
    let object = [format!("blob {}\0", content.len()).as_bytes(), content].concat();
    let mut text = String::with_capacity(40);
    for word in sha1(object) {
        // Writing to a string cannot fail.
        write!(text, "{word:08x}").unwrap_or_default();
    }
    text
}

#[expect(
    clippy::big_endian_bytes,
    reason = "SHA-1 is defined on big-endian words"
)]
fn sha1(mut message: Vec<u8>) -> [u32; 5] {
    let bits = u64::try_from(message.len())
        .unwrap_or(u64::MAX)
        .wrapping_mul(8);
    // The padding of the standard: a one bit, zeros, and the length in the last 8 bytes of a block.
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend(bits.to_be_bytes());
    let mut state = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let (blocks, _) = message.as_chunks::<64>();
    for block in blocks {
        add_block(&mut state, block);
    }
    state
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn add_block(state: &mut [u32; 5], block: &[u8; 64]) {
    let (words, _) = block.as_chunks::<4>();
    let mut schedule: Vec<u32> = words.iter().copied().map(u32::from_be_bytes).collect();
    for at in 16..80 {
        let word = [3, 8, 14, 16]
            .into_iter()
            .filter_map(|back| schedule.get(at - back))
            .fold(0, |word, earlier| word ^ earlier);
        schedule.push(word.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in schedule.iter().enumerate() {
        let (mix, constant) = match round {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (total, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *total = total.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_are_those_of_git() {
        for (content, expect) in [
            ("", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            ("hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
            (
                "a longer text that fills more than one block of the hash function, twice over",
                "392824f081716757e59a7e7b4055d4fae5736227",
            ),
        ] {
            assert_eq!(git_blob_id(content.as_bytes()), expect);
        }
    }

    #[test]
    fn groups_are_written_as_git_writes_them() {
        assert_eq!(&encode_group(&[0, 0, 0, 0]), b"00000");
        assert_eq!(&encode_group(&[255, 255, 255, 255]), b"|NsC0");
        assert_eq!(adler32(b"Wikipedia"), [0x11, 0xe6, 0x03, 0x98]);
        assert_eq!([1, 26, 27, 52].map(length_letter), [b'A', b'Z', b'a', b'z']);
    }
}
