//! Rows of numbers, stored column by column.
//!
//! A column of ids or times stores each number as the difference from the number above it; a column
//! of hashes stores the numbers themselves. Example: the times 1000, 1003, 1003 become 1000, 3, 0,
//! which zstd packs well. Decoding fails with `None` if the bytes end early.

use turnkeep_types::varint::{Reader, put};

/// Rows per block. Bounds the memory of one encode or decode.
pub(crate) const BLOCK_ROWS: u64 = 16_384;

/// Appends rows as columns. `is_hash` names the columns that are stored without differences.
pub(crate) fn encode<const N: usize>(rows: &[[u64; N]], is_hash: [bool; N], out: &mut Vec<u8>) {
    for (column, is_hash) in is_hash.into_iter().enumerate() {
        let mut above = 0_u64;
        for row in rows {
            let number = row[column];
            if is_hash {
                out.extend_from_slice(&number.to_le_bytes());
            } else {
                put(out, zigzag(number.wrapping_sub(above)));
                above = number;
            }
        }
    }
}

/// Reads `count` rows back.
pub(crate) fn decode<const N: usize>(
    reader: &mut Reader<'_>,
    count: u64,
    is_hash: [bool; N],
) -> Option<Vec<[u64; N]>> {
    // The file declares the count, so it must not decide how much memory is taken.
    let count = usize::try_from(count.min(BLOCK_ROWS)).ok()?;
    let mut rows = vec![[0; N]; count];
    for (column, is_hash) in is_hash.into_iter().enumerate() {
        let mut above = 0_u64;
        for row in &mut rows {
            above = if is_hash {
                u64::from_le_bytes(reader.read_bytes(8)?.try_into().ok()?)
            } else {
                above.wrapping_add(unzigzag(reader.u64()?))
            };
            row[column] = above;
        }
    }
    Some(rows)
}

/// Maps small differences of either sign to small numbers, which LEB128 stores in few bytes.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let rows = [
            [1, u64::MAX, 9],
            [2, 0, u64::MAX],
            [1, 5, 7],
            [u64::MAX, 1 << 63, 0],
        ];
        let is_hash = [false, false, true];
        let mut out = Vec::new();
        encode(&rows, is_hash, &mut out);
        let mut reader = Reader(&out);
        assert_eq!(decode(&mut reader, 4, is_hash), Some(rows.to_vec()));
        assert_eq!(reader.end(), Some(()));
        assert_eq!(decode(&mut Reader(&out[..out.len() - 1]), 4, is_hash), None);
    }
}
