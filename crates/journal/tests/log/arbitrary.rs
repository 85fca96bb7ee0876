//! Arbitrary bytes as a log. Longer runs are the fuzz target's.

use turnkeep_journal::{LogOptions, recover_any};

use crate::support::{log_of, options};

/// A small generator of the same numbers everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

#[test]
fn no_bytes_make_recovery_panic() {
    let small = LogOptions {
        segment_bytes: 700,
        ..options()
    };
    let log: Vec<u8> = log_of(5, small).into_values().flatten().collect();
    recover_any(&[]);
    recover_any(&log);
    for cut in (0..log.len()).step_by(7) {
        recover_any(&log[..cut]);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..3000 {
        let mut bytes = log.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len());
            // Bytes that make numbers small, large, or alike are the interesting ones.
            let byte =
                [0, 1, 0x7f, 0x80, 0xff, bytes[numbers.below(bytes.len())]][numbers.below(6)];
            let run = 1 + numbers.below(8);
            let end = bytes.len().min(at + run);
            bytes[at..end].fill(byte);
        }
        recover_any(&bytes);
    }
}
