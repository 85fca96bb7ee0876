//! Maps entry ids to entry numbers: an open-addressing table with four bytes per slot.
//!
//! The table stores numbers only. The caller passes a function that returns the id of a number. Ids
//! are random and made by the server alone, so their own bits serve as the hash. Of two entries
//! with the same id the later one counts.

use crate::ids::EntryId;

/// A number plus one; 0 is an empty slot.
type Slot = u32;

/// The table.
#[derive(Debug, Default)]
pub(crate) struct EntryNumbers {
    /// A power of two, at most half of them used; empty at first.
    slots: Vec<Slot>,
    used: usize,
}

impl EntryNumbers {
    /// Appends the table: the number of slots in 8 bytes, then 4 bytes per slot, little-endian.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.slots.len() as u64).to_le_bytes());
        for slot in &self.slots {
            out.extend_from_slice(&slot.to_le_bytes());
        }
    }

    /// Reads a table from the beginning of the bytes; returns it and the rest.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (count, bytes) = bytes.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (slots, rest) = bytes.split_at_checked(count.checked_mul(size_of::<Slot>())?)?;
        let (slots, _) = slots.as_chunks();
        let slots: Vec<Slot> = slots
            .iter()
            .map(|slot| Slot::from_le_bytes(*slot))
            .collect();
        let used = slots.iter().filter(|slot| **slot != 0).count();
        // Probing relies on both, or it might never end.
        let is_valid = (slots.is_empty() || slots.len().is_power_of_two()) && used * 2 <= count;
        is_valid.then_some((Self { slots, used }, rest))
    }

    /// Makes space for so many more.
    pub(crate) fn reserve(&mut self, more: usize, id_of: impl Fn(u32) -> Option<EntryId>) {
        let wanted = (self.used + more)
            .saturating_mul(2)
            .next_power_of_two()
            .max(16);
        // At most half full, so that a search for a missing id soon meets a free slot. A slot holds
        // the number plus one, and 0 is free.
        if wanted > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![0; wanted]);
            for slot in old.into_iter().filter(|slot| *slot != 0) {
                if let Some(id) = id_of(slot - 1) {
                    let slot_index = self.find_slot(id, &id_of);
                    self.slots[slot_index] = slot;
                }
            }
        }
    }

    /// Stores the number of an entry, which must not be 2^32 - 1.
    pub(crate) fn insert(
        &mut self,
        id: EntryId,
        number: u32,
        id_of: impl Fn(u32) -> Option<EntryId>,
    ) {
        // At most half full, so that a probe always meets an empty slot soon.
        if (self.used + 1) * 2 > self.slots.len() {
            self.reserve(1, &id_of);
        }
        let slot_index = self.find_slot(id, &id_of);
        self.used += usize::from(self.slots[slot_index] == 0);
        self.slots[slot_index] = number.saturating_add(1);
    }

    /// The number of an entry, if it is known.
    pub(crate) fn find(&self, id: EntryId, id_of: impl Fn(u32) -> Option<EntryId>) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.find_slot(id, &id_of)].checked_sub(1)
    }

    /// The slot of an id, or the empty slot where it belongs. At most half of the slots are used,
    /// so the loop ends.
    fn find_slot(&self, id: EntryId, id_of: &impl Fn(u32) -> Option<EntryId>) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot_index = id.0 as usize & mask;
        while let Some(number) = self.slots[slot_index].checked_sub(1) {
            if id_of(number) == Some(id) {
                break;
            }
            slot_index = (slot_index + 1) & mask;
        }
        slot_index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;

    #[test]
    fn entries_are_found_by_their_ids_and_the_later_of_two_counts() {
        let mut draw = Ids::from_seed(&[3; 32]);
        // Some ids share their lowest bits, and so their first slot.
        let ids: Vec<EntryId> = (0..3000)
            .map(|index| EntryId(draw.draw() >> 40 << if index % 3 == 0 { 40 } else { 0 }))
            .collect();
        let mut numbers = EntryNumbers::default();
        let id_of = |number: u32| ids.get(number as usize).copied();
        assert_eq!(numbers.find(ids[0], id_of), None);
        for (number, id) in (0..).zip(&ids) {
            assert_eq!(numbers.find(*id, id_of), None, "{number}");
            numbers.insert(*id, number, id_of);
        }
        for (number, id) in (0..).zip(&ids) {
            assert_eq!(numbers.find(*id, id_of), Some(number));
        }
        assert_eq!(numbers.find(EntryId(1), id_of), None);
        let mut bytes = Vec::new();
        numbers.encode(&mut bytes);
        bytes.extend_from_slice(b"rest");
        let (decoded, rest) = EntryNumbers::decode(&bytes).unwrap();
        assert_eq!((&decoded.slots, rest), (&numbers.slots, &b"rest"[..]));
        assert!(EntryNumbers::decode(&bytes[..1000]).is_none());
        let full = [&4_u64.to_le_bytes()[..], &[1; 16]].concat();
        assert!(EntryNumbers::decode(&full).is_none(), "no empty slot");
        let twice = |_: u32| Some(ids[0]);
        let mut numbers = EntryNumbers::default();
        numbers.insert(ids[0], 4, twice);
        numbers.insert(ids[0], 7, twice);
        assert_eq!((numbers.find(ids[0], twice), numbers.used), (Some(7), 1));
    }
}
