//! Rows of numbers as columns: each number as its difference from the one above it, or as it is
//! where differences make no sense (hashes). Neighbouring rows are alike, so zstd leaves little of
//! them.

use turnkeep_types::varint::{Reader, put};

/// Rows per block: bounds what a writer or reader must hold at a time.
pub(crate) const BLOCK_ROWS: u64 = 16_384;

/// Appends rows as columns; `random` tells the columns that are kept as they are.
pub(crate) fn encode<const N: usize>(rows: &[[u64; N]], random: [bool; N], out: &mut Vec<u8>) {
    for (column, random) in random.into_iter().enumerate() {
        let mut above = 0_u64;
        for row in rows {
            let number = row[column];
            if random {
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
    random: [bool; N],
) -> Option<Vec<[u64; N]>> {
    let count = usize::try_from(count.min(BLOCK_ROWS)).ok()?;
    let mut rows = vec![[0; N]; count];
    for (column, random) in random.into_iter().enumerate() {
        let mut above = 0_u64;
        for row in &mut rows {
            above = if random {
                u64::from_le_bytes(reader.take(8)?.try_into().ok()?)
            } else {
                above.wrapping_add(unzigzag(reader.u64()?))
            };
            row[column] = above;
        }
    }
    Some(rows)
}

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
        let random = [false, false, true];
        let mut out = Vec::new();
        encode(&rows, random, &mut out);
        let mut reader = Reader(&out);
        assert_eq!(decode(&mut reader, 4, random), Some(rows.to_vec()));
        assert_eq!(reader.end(), Some(()));
        assert_eq!(decode(&mut Reader(&out[..out.len() - 1]), 4, random), None);
    }
}
