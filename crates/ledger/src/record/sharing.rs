//! Shares texts that many records repeat.
//!
//! The records of a world repeat the same people, labels, requests and times. Allocating each of
//! them again takes much of the time and memory of a start. So each decoding thread remembers the
//! texts that it met last and returns the one it has.
//!
//! Memory is bounded: the table has [`SLOTS`] slots, and a text replaces another one with the same
//! hash. The returned text always equals the given one.

use std::cell::RefCell;
use std::sync::Arc;

use crate::time::{WorldTime, Zone};

/// Slots in the table of a thread; a power of two.
const SLOTS: usize = 1024;

/// Longer texts are rarely repeated.
const SHARED_BYTES_MAX: usize = 128;

thread_local! {
    static TEXTS: RefCell<Vec<Option<Arc<str>>>> = const { RefCell::new(Vec::new()) };
    static TIME: RefCell<Option<WorldTime>> = const { RefCell::new(None) };
    static ZONE: RefCell<Option<Zone>> = const { RefCell::new(None) };
}

/// Returns the text, shared with earlier records of this thread if possible.
pub(super) fn share_text(text: &str) -> Arc<str> {
    if text.len() > SHARED_BYTES_MAX {
        return text.into();
    }
    TEXTS.with_borrow_mut(|texts| {
        if texts.is_empty() {
            texts.resize(SLOTS, None);
        }
        let Some(slot) = texts.get_mut(slot_of(text)) else {
            return text.into();
        };
        match slot {
            Some(known) if **known == *text => Arc::clone(known),
            _ => Arc::clone(slot.insert(text.into())),
        }
    })
}

/// Parses a time. The records of one beat have the same time, so the last one is remembered.
pub(super) fn share_time(text: &str) -> Option<WorldTime> {
    TIME.with_borrow_mut(|last| match last {
        Some(known) if known.as_str() == text => Some(known.clone()),
        _ => {
            *last = Some(WorldTime::parse(text)?);
            last.clone()
        }
    })
}

/// Parses a zone. A world seldom changes it, so the last one is remembered.
pub(super) fn share_zone(name: &str) -> Zone {
    ZONE.with_borrow_mut(|last| match last {
        Some(known) if known.as_str() == name => known.clone(),
        _ => last.insert(Zone::recorded(name)).clone(),
    })
}

/// The slot of a text, by FNV-1a. An attacker who makes texts collide only costs an allocation
/// each, as without a table.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the mask keeps the lowest bits only"
)]
fn slot_of(text: &str) -> usize {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = text.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    (hash ^ hash >> 32) as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_different_ones_never() {
        let texts: Vec<String> = (0..5000)
            .map(|number| format!("request-{number}"))
            .collect();
        for round in 0..2 {
            for text in &texts {
                let one = share_text(text);
                assert_eq!(*one, **text, "round {round}");
                assert!(Arc::ptr_eq(&one, &share_text(text)));
            }
        }
        let long = "x".repeat(SHARED_BYTES_MAX + 1);
        assert_eq!(*share_text(&long), *long);
    }
}
