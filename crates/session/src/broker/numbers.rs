//! The sequence numbers of a session: each is given once, and they only rise.
//!
//! A wrapper may number its turns itself and leave numbers out. Which ones it left out is
//! remembered (the newest [`SKIPPED_MAX`] runs of them), so that a number that was given is told
//! from one that never was.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use turnkeep_types::broker::{Reason, Refusal};

/// How many runs of numbers that were left out are remembered.
const SKIPPED_MAX: usize = 1024;

/// The numbers that were given.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    last: u64,
    skipped: VecDeque<RangeInclusive<u64>>,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// It is given now.
    New(u64),
    /// It was given before.
    Known(u64),
}

impl Numbers {
    /// Gives a number: the one that is asked for, else the next.
    pub(super) fn give(&mut self, asked: Option<u64>) -> Result<Number, Refusal> {
        let refuse = |detail: String| Err(Refusal::new(Reason::BadField, detail));
        let last = self.last;
        match asked {
            Some(0) => refuse("`seq` counts from 1".to_owned()),
            Some(seq) if self.skipped.iter().any(|run| run.contains(&seq)) => refuse(format!(
                "`seq` {seq} was left out and the last is {last}: numbers only rise"
            )),
            Some(seq) if seq <= last => Ok(Number::Known(seq)),
            Some(seq) => Ok(self.rise(seq)),
            None => match last.checked_add(1) {
                Some(next) => Ok(self.rise(next)),
                None => refuse(format!("the session has used its last `seq`, {last}")),
            },
        }
    }

    fn rise(&mut self, seq: u64) -> Number {
        if seq - self.last > 1 {
            self.skipped.push_back(self.last + 1..=seq - 1);
            if self.skipped.len() > SKIPPED_MAX {
                self.skipped.pop_front();
            }
        }
        self.last = seq;
        Number::New(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_only_those_that_were_given_are_known() {
        let mut numbers = Numbers::default();
        let told = |given: Result<Number, Refusal>| given.map_err(|refusal| refusal.to_string());
        for (asked, expect) in [
            (None, Ok(Number::New(1))),
            (Some(10), Ok(Number::New(10))),
            (None, Ok(Number::New(11))),
            (Some(10), Ok(Number::Known(10))),
            (Some(1), Ok(Number::Known(1))),
            (
                Some(7),
                Err("`seq` 7 was left out and the last is 11: numbers only rise"),
            ),
            (Some(0), Err("`seq` counts from 1")),
            (Some(u64::MAX), Ok(Number::New(u64::MAX))),
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
            (Some(u64::MAX), Ok(Number::Known(u64::MAX))),
        ] {
            match (told(numbers.give(asked)), expect) {
                (Err(found), Err(part)) => assert!(found.contains(part), "{asked:?}: {found}"),
                (found, expect) => assert_eq!(found, expect.map_err(str::to_owned), "{asked:?}"),
            }
        }
    }

    #[test]
    fn what_is_remembered_of_left_out_numbers_is_bounded() {
        let mut numbers = Numbers::default();
        for seq in 1..4 * SKIPPED_MAX as u64 {
            numbers.give(Some(seq * 2)).unwrap();
        }
        assert_eq!(numbers.skipped.len(), SKIPPED_MAX);
    }
}
