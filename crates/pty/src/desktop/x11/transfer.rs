//! The state of contents that go piece by piece (INCR): where each requestor is.
//!
//! A piece follows when the requestor has deleted the one before; an empty piece ends the transfer.
//! A requestor that takes nothing for [`IDLE_MAX`] is given up, and there are at most
//! [`TRANSFERS_MAX`].

use std::ops::Range;
use std::time::{Duration, Instant};

use x11rb::protocol::xproto::{Atom, Window};

/// Bytes per piece: small enough for every server, large enough for a few hundred MB/s.
pub(super) const PIECE_BYTES: usize = 128 << 10;
const TRANSFERS_MAX: usize = 64;
const IDLE_MAX: Duration = Duration::from_secs(10);

/// All transfers under way.
#[derive(Debug, Default)]
pub(super) struct Transfers(Vec<Transfer>);

#[derive(Debug)]
struct Transfer {
    to: Window,
    property: Atom,
    kind: Atom,
    sent: usize,
    active: Instant,
}

/// The next piece of a transfer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The property's type.
    pub(super) kind: Atom,
    /// Which bytes.
    pub(super) range: Range<usize>,
    /// Whether it was the empty one that ends the transfer.
    pub(super) is_last: bool,
}

impl Transfers {
    /// Begins one, in place of another to the same property; false when there are too many.
    pub(super) fn begin(&mut self, to: Window, property: Atom, kind: Atom, now: Instant) -> bool {
        self.0
            .retain(|transfer| (transfer.to, transfer.property) != (to, property));
        if self.0.len() >= TRANSFERS_MAX {
            return false;
        }
        self.0.push(Transfer {
            to,
            property,
            kind,
            sent: 0,
            active: now,
        });
        true
    }

    /// What follows now that the requestor has deleted the property; none when that is not ours.
    pub(super) fn step(
        &mut self,
        to: Window,
        property: Atom,
        length: usize,
        now: Instant,
    ) -> Option<Step> {
        let is_it = |transfer: &Transfer| (transfer.to, transfer.property) == (to, property);
        let at = self.0.iter().position(is_it)?;
        let transfer = self.0.get_mut(at)?;
        let range = transfer.sent..length.min(transfer.sent + PIECE_BYTES);
        let step = Step {
            kind: transfer.kind,
            is_last: range.is_empty(),
            range,
        };
        transfer.sent = step.range.end;
        transfer.active = now;
        if step.is_last {
            self.0.swap_remove(at);
        }
        Some(step)
    }

    /// Whether a window still takes something.
    pub(super) fn concerns(&self, to: Window) -> bool {
        self.0.iter().any(|transfer| transfer.to == to)
    }

    /// Forgets what a closed window asked for.
    pub(super) fn drop_window(&mut self, window: Window) {
        self.0.retain(|transfer| transfer.to != window);
    }

    /// Gives up on whoever stopped taking.
    pub(super) fn drop_stale(&mut self, now: Instant) {
        self.0
            .retain(|transfer| now.saturating_duration_since(transfer.active) < IDLE_MAX);
    }

    /// When the next one is to be given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0
            .iter()
            .map(|transfer| transfer.active + IDLE_MAX)
            .min()
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_content_once_and_an_empty_one_ends_it() {
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 << 20] {
            let (mut transfers, now) = (Transfers::default(), Instant::now());
            assert!(transfers.begin(1, 2, 3, now));
            let mut covered = 0;
            loop {
                let step = transfers.step(1, 2, length, now).unwrap();
                assert_eq!((step.range.start, step.kind), (covered, 3));
                covered = step.range.end;
                if step.is_last {
                    break;
                }
            }
            assert_eq!(covered, length);
            assert!(transfers.is_empty());
            assert_eq!(transfers.step(1, 2, length, now), None);
        }
    }

    #[test]
    fn an_idle_requestor_is_given_up_and_others_go_on() {
        let (mut transfers, start) = (Transfers::default(), Instant::now());
        assert!(transfers.begin(1, 2, 3, start));
        assert!(transfers.begin(4, 2, 3, start));
        assert!(
            transfers
                .step(4, 2, 1 << 20, start + IDLE_MAX / 2)
                .is_some()
        );
        transfers.drop_stale(start + IDLE_MAX);
        assert!(!transfers.concerns(1) && transfers.concerns(4));
        assert_eq!(transfers.deadline(), Some(start + IDLE_MAX / 2 + IDLE_MAX));
        transfers.drop_window(4);
        assert!(transfers.is_empty());
    }

    #[test]
    fn there_is_a_limit_and_asking_again_starts_again() {
        let (mut transfers, now) = (Transfers::default(), Instant::now());
        for to in 0..TRANSFERS_MAX {
            assert!(transfers.begin(u32::try_from(to).unwrap(), 2, 3, now));
        }
        assert!(!transfers.begin(1000, 2, 3, now));
        assert_eq!(transfers.step(5, 2, 10, now).unwrap().range, 0..10);
        assert!(transfers.begin(5, 2, 3, now));
        assert_eq!(transfers.step(5, 2, 10, now).unwrap().range, 0..10);
    }
}
