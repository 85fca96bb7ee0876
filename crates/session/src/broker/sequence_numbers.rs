//! The sequence numbers of a session: each is assigned once, and they only rise.
//!
//! A wrapper may number its turns itself and skip numbers. The newest [`SKIPPED_MAX`] skipped runs
//! are remembered, to distinguish a number that was assigned from one that never was. A number that
//! was skipped is rejected.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use turnkeep_types::broker::{Reason, Refusal};

/// How many runs of skipped numbers are remembered.
const SKIPPED_MAX: usize = 1024;

/// The numbers that were assigned.
#[derive(Debug, Default)]
pub(super) struct SequenceNumbers {
    last: u64,
    skipped: VecDeque<RangeInclusive<u64>>,
}

/// A number and whether it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignedNumber {
    /// The number is assigned now.
    New(u64),
    /// The number was assigned before.
    Known(u64),
}

impl SequenceNumbers {
    /// Assigns the requested number, or the next one.
    pub(super) fn assign(&mut self, asked: Option<u64>) -> Result<AssignedNumber, Refusal> {
        let refuse = |detail: String| Err(Refusal::new(Reason::BadField, detail));
        let last = self.last;
        match asked {
            Some(0) => refuse("`seq` counts from 1".to_owned()),
            Some(seq) if self.skipped.iter().any(|run| run.contains(&seq)) => refuse(format!(
                "`seq` {seq} was left out and the last is {last}: numbers only rise"
            )),
            Some(seq) if seq <= last => Ok(AssignedNumber::Known(seq)),
            Some(seq) => Ok(self.advance_to(seq)),
            None => match last.checked_add(1) {
                Some(next) => Ok(self.advance_to(next)),
                None => refuse(format!("the session has used its last `seq`, {last}")),
            },
        }
    }

    fn advance_to(&mut self, seq: u64) -> AssignedNumber {
        if seq - self.last > 1 {
            self.skipped.push_back(self.last + 1..=seq - 1);
            if self.skipped.len() > SKIPPED_MAX {
                self.skipped.pop_front();
            }
        }
        self.last = seq;
        AssignedNumber::New(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_only_those_that_were_given_are_known() {
        let mut numbers = SequenceNumbers::default();
        let told =
            |given: Result<AssignedNumber, Refusal>| given.map_err(|refusal| refusal.to_string());
        for (asked, expect) in [
            (None, Ok(AssignedNumber::New(1))),
            (Some(10), Ok(AssignedNumber::New(10))),
            (None, Ok(AssignedNumber::New(11))),
            (Some(10), Ok(AssignedNumber::Known(10))),
            (Some(1), Ok(AssignedNumber::Known(1))),
            (
                Some(7),
                Err("`seq` 7 was left out and the last is 11: numbers only rise"),
            ),
            (Some(0), Err("`seq` counts from 1")),
            (Some(u64::MAX), Ok(AssignedNumber::New(u64::MAX))),
            (
                Some(12),
                Err(
                    "`seq` 12 was left out and the last is 18446744073709551615: numbers only rise",
                ),
            ),
            (
                None,
                Err("the session has used its last `seq`, 18446744073709551615"),
            ),
            (Some(u64::MAX), Ok(AssignedNumber::Known(u64::MAX))),
        ] {
            match (told(numbers.assign(asked)), expect) {
                (Err(found), Err(part)) => assert!(found.contains(part), "{asked:?}: {found}"),
                (found, expect) => assert_eq!(found, expect.map_err(str::to_owned), "{asked:?}"),
            }
        }
    }

    #[test]
    fn what_is_remembered_of_left_out_numbers_is_bounded() {
        let mut numbers = SequenceNumbers::default();
        for seq in 1..4 * SKIPPED_MAX as u64 {
            numbers.assign(Some(seq * 2)).unwrap();
        }
        assert_eq!(numbers.skipped.len(), SKIPPED_MAX);
    }
}
