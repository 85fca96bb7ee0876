//! Bounds how many log lines of a program become events. Each is durable, so a program that floods
//! its error output would fill the disk.
//!
//! Lines beyond the limit are counted, and the next line that passes says how many were left out. The
//! last lines before an exit are quoted with the failure, whether they passed or not.

use turnkeep_types::Timestamp;

/// How many lines of a program may pass in one period.
const LINES_MAX: u32 = 50;
const PERIOD_MS: u64 = 1000;

/// Counts the lines of one program.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    period_began_at: Timestamp,
    passed: u32,
    left_out: u64,
}

impl LogLimiter {
    /// The line as it is reported; `None` if it is left out.
    pub(super) fn pass(&mut self, now: Timestamp, line: String) -> Option<String> {
        if now.0.saturating_sub(self.period_began_at.0) >= PERIOD_MS {
            self.period_began_at = now;
            self.passed = 0;
        }
        if self.passed >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.passed += 1;
        match self.take_note() {
            Some(note) => Some(format!("{note}\n{line}")),
            None => Some(line),
        }
    }

    /// What must be said about the lines that were left out.
    pub(super) fn take_note(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| format!("({left_out} lines of the log were left out)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_and_says_so() {
        let mut limiter = LogLimiter::default();
        let now = Timestamp(5_000);
        let passed = (0..1000).filter_map(|_| limiter.pass(now, "x".to_owned()));
        assert_eq!(passed.count(), 50);
        let later = Timestamp(now.0 + PERIOD_MS);
        let next = limiter.pass(later, "y".to_owned());
        assert_eq!(
            next.as_deref(),
            Some("(950 lines of the log were left out)\ny")
        );
        assert_eq!(limiter.pass(later, "z".to_owned()).as_deref(), Some("z"));
        assert_eq!(limiter.take_note(), None);
    }
}
