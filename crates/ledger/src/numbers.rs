//! The numbers of entries by their ids: an open table of numbers, four bytes a slot.
//!
//! The ids themselves are where the entries are; whoever asks brings a way to look one up. Ids are
//! random and made by the server alone, so their own bits say where to look. Of two entries with
//! one id the later counts.

use crate::ids::EntryId;

/// A slot: a number plus one; 0 is empty.
type Slot = u32;

/// Numbers by id.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// As many as a power of two, at most half of them taken; none at first.
    slots: Vec<Slot>,
    taken: usize,
}

impl Numbers {
    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize, id_of: impl Fn(u32) -> Option<EntryId>) {
        let wanted = (self.taken + more)
            .saturating_mul(2)
            .next_power_of_two()
            .max(16);
        if wanted > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![0; wanted]);
            for slot in old.into_iter().filter(|slot| *slot != 0) {
                if let Some(id) = id_of(slot - 1) {
                    let place = self.place(id, &id_of);
                    self.slots[place] = slot;
                }
            }
        }
    }

    /// Notes the number of an entry, which is not 2^32 - 1.
    pub(crate) fn insert(
        &mut self,
        id: EntryId,
        number: u32,
        id_of: impl Fn(u32) -> Option<EntryId>,
    ) {
        if (self.taken + 1) * 2 > self.slots.len() {
            self.reserve(1, &id_of);
        }
        let place = self.place(id, &id_of);
        self.taken += usize::from(self.slots[place] == 0);
        self.slots[place] = number.saturating_add(1);
    }

    /// The number of an entry, if it is known.
    pub(crate) fn find(&self, id: EntryId, id_of: impl Fn(u32) -> Option<EntryId>) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.place(id, &id_of)].checked_sub(1)
    }

    /// The slot of an id, or the empty one where it belongs. There is always an empty one.
    fn place(&self, id: EntryId, id_of: &impl Fn(u32) -> Option<EntryId>) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = id.0 as usize & mask;
        while let Some(number) = self.slots[place].checked_sub(1) {
            if id_of(number) == Some(id) {
                break;
            }
            place = (place + 1) & mask;
        }
        place
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
        let mut numbers = Numbers::default();
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
        let twice = |_: u32| Some(ids[0]);
        let mut numbers = Numbers::default();
        numbers.insert(ids[0], 4, twice);
        numbers.insert(ids[0], 7, twice);
        assert_eq!((numbers.find(ids[0], twice), numbers.taken), (Some(7), 1));
    }
}
