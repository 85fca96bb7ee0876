//! The transfers in pieces (INCR): how much each requestor has taken.
//!
//! A piece follows when the requestor has deleted the one before; an empty piece ends the transfer.
//! A requestor that takes nothing for [`IDLE_MAX`] is dropped, and there are at most
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
pub(super) struct TransferPiece {
    /// The property's type.
    pub(super) kind: Atom,
    /// The range of bytes.
    pub(super) range: Range<usize>,
    /// Whether it is the empty piece that ends the transfer.
    pub(super) is_last: bool,
}

impl Transfers {
    /// Begins a transfer, in place of another to the same property; returns `false` when there are
    /// too many.
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

    /// The piece that follows after the requestor has deleted the property; `None` when no transfer
    /// uses that property.
    pub(super) fn next_piece(
        &mut self,
        to: Window,
        property: Atom,
        length: usize,
        now: Instant,
    ) -> Option<TransferPiece> {
        let is_it = |transfer: &Transfer| (transfer.to, transfer.property) == (to, property);
        let at = self.0.iter().position(is_it)?;
        let transfer = self.0.get_mut(at)?;
        let range = transfer.sent..length.min(transfer.sent + PIECE_BYTES);
        let piece = TransferPiece {
            kind: transfer.kind,
            is_last: range.is_empty(),
            range,
        };
        transfer.sent = piece.range.end;
        transfer.active = now;
        if piece.is_last {
            self.0.swap_remove(at);
        }
        Some(piece)
    }

    /// Whether a window still has a transfer.
    pub(super) fn has_window(&self, to: Window) -> bool {
        self.0.iter().any(|transfer| transfer.to == to)
    }

    /// Drops the transfers of a closed window.
    pub(super) fn drop_window(&mut self, window: Window) {
        self.0.retain(|transfer| transfer.to != window);
    }

    /// Drops the transfers of requestors that stopped taking.
    pub(super) fn drop_stale(&mut self, now: Instant) {
        self.0
            .retain(|transfer| now.saturating_duration_since(transfer.active) < IDLE_MAX);
    }

    /// When the next transfer becomes stale.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0
            .iter()
            .map(|transfer| transfer.active + IDLE_MAX)
            .min()
    }

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
                let piece = transfers.next_piece(1, 2, length, now).unwrap();
                assert_eq!((piece.range.start, piece.kind), (covered, 3));
                covered = piece.range.end;
                if piece.is_last {
                    break;
                }
            }
            assert_eq!(covered, length);
            assert!(transfers.is_empty());
            assert_eq!(transfers.next_piece(1, 2, length, now), None);
        }
    }

    #[test]
    fn an_idle_requestor_is_given_up_and_others_go_on() {
        let (mut transfers, start) = (Transfers::default(), Instant::now());
        assert!(transfers.begin(1, 2, 3, start));
        assert!(transfers.begin(4, 2, 3, start));
        assert!(
            transfers
                .next_piece(4, 2, 1 << 20, start + IDLE_MAX / 2)
                .is_some()
        );
        transfers.drop_stale(start + IDLE_MAX);
        assert!(!transfers.has_window(1) && transfers.has_window(4));
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
        assert_eq!(transfers.next_piece(5, 2, 10, now).unwrap().range, 0..10);
        assert!(transfers.begin(5, 2, 3, now));
        assert_eq!(transfers.next_piece(5, 2, 10, now).unwrap().range, 0..10);
    }
}
