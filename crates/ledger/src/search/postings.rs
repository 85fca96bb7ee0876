//! The posting list of one term: which entries have the term, and how often. It only grows at its
//! end and holds entries of all audience classes.
//!
//! A posting is a varint of `delta << 1 | often`. The delta is the distance from the entry of the
//! previous posting (for the first posting, the entry number itself). When `often` is set, one byte
//! with the count follows, at least 2.
//!
//! Worked example: the term occurs once in entry 5 and three times in entry 9. The bytes are `0a`
//! (delta 5, once) and `09 03` (delta 4, often, count 3).
//!
//! Short lists are stored inline, without an allocation. A long list has a mark every
//! [`BLOCK_POSTINGS`] postings, so that a search can skip blocks.

/// Postings between two marks. A search decodes half a block on average to find one entry, and a
/// mark adds 8 bytes to the 64 or more of its block.
const BLOCK_POSTINGS: u32 = 64;

/// Most terms are rare: a list of this many bytes needs no allocation.
const INLINE_BYTES_MAX: usize = 14;

/// One term in one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// The entry's number.
    pub(super) entry: u32,
    /// How often the term occurs in the entry, at most 255.
    pub(super) count: u8,
}

/// The start of a block in a long list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// The entry of the last posting before the block; the block's first delta is relative to it.
    before: u32,
    /// The offset of the block's first byte.
    offset: u32,
}

impl Mark {
    fn new(before: u32, offset: usize) -> Self {
        Self {
            before,
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
        }
    }
}

/// The encoded postings, inline or on the heap.
#[derive(Debug, Clone)]
enum ListBytes {
    Inline {
        len: u8,
        bytes: [u8; INLINE_BYTES_MAX],
    },
    Long(Box<LongBytes>),
}

#[derive(Debug, Clone)]
struct LongBytes {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
}

/// The postings of one term.
#[derive(Debug, Clone)]
pub(super) struct PostingList {
    len: u32,
    last: u32,
    bytes: ListBytes,
}

impl PostingList {
    /// Makes an empty list.
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            last: 0,
            bytes: ListBytes::Inline {
                len: 0,
                bytes: [0; INLINE_BYTES_MAX],
            },
        }
    }

    /// Appends a posting. Its entry must be greater than all others.
    pub(super) fn push(&mut self, posting: Posting) {
        debug_assert!(
            self.len == 0 || posting.entry > self.last,
            "postings come in order"
        );
        // At most five bytes for the 33 bits of the varint, and one for the count.
        let mut code = [0; 7];
        // For the first posting `last` is 0, so the delta is the entry number itself.
        let used = encode_posting(
            posting.entry.wrapping_sub(self.last),
            posting.count,
            &mut code,
        );
        self.append_bytes(&code[..used]);
        self.len += 1;
        self.last = posting.entry;
    }

    fn append_bytes(&mut self, code: &[u8]) {
        if let ListBytes::Inline { len, bytes } = &mut self.bytes {
            let start = usize::from(*len);
            if let Some(free) = bytes.get_mut(start..start + code.len()) {
                free.copy_from_slice(code);
                *len += u8::try_from(code.len()).unwrap_or(u8::MAX);
                return;
            }
            // The inline space is full: the list moves to the heap for good.
            let bytes = bytes[..start].to_vec();
            self.bytes = ListBytes::Long(Box::new(LongBytes {
                bytes,
                marks: Vec::new(),
            }));
        }
        // The list was inline until the block above moved it, so it is long from here on.
        if let ListBytes::Long(long) = &mut self.bytes {
            if self.len.is_multiple_of(BLOCK_POSTINGS) {
                long.marks.push(Mark::new(self.last, long.bytes.len()));
            }
            // Grows by a quarter instead of doubling: most of the index's memory is in these lists.
            if long.bytes.capacity() - long.bytes.len() < code.len() {
                long.bytes.reserve_exact((long.bytes.len() / 4).max(16));
            }
            long.bytes.extend_from_slice(code);
        }
    }

    /// The number of postings.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    fn marks(&self) -> &[Mark] {
        if let ListBytes::Long(long) = &self.bytes {
            &long.marks
        } else {
            &[]
        }
    }

    /// Decodes the postings from a block on. Block 0 is the start of the list and has no mark.
    fn decode_from_block(&self, block: usize) -> PostingDecoder<'_> {
        let mark = block
            .checked_sub(1)
            .and_then(|index| self.marks().get(index));
        let (offset, last) = mark.map_or((0, 0), |mark| (mark.offset as usize, mark.before));
        PostingDecoder {
            bytes: self.bytes().get(offset..).unwrap_or_default(),
            last,
        }
    }

    /// The block that an entry would be in: the last one whose preceding posting is smaller.
    fn block_holding(&self, at: u32) -> usize {
        self.marks().partition_point(|mark| mark.before < at)
    }

    /// The postings from this entry on.
    pub(super) fn postings_from(&self, entry: u32) -> impl Iterator<Item = Posting> {
        self.decode_from_block(self.block_holding(entry))
            .skip_while(move |posting| posting.entry < entry)
    }

    /// How often the term occurs in an entry, or `None`.
    pub(super) fn count_in(&self, entry: u32) -> Option<u8> {
        let first = self.postings_from(entry).next();
        first
            .filter(|posting| posting.entry == entry)
            .map(|posting| posting.count)
    }

    /// The entries before `at` that have the term, the last first.
    pub(super) fn entries_before(&self, at: u32) -> impl Iterator<Item = u32> {
        let mut block = Some(self.block_holding(at));
        // Deltas can only be decoded forwards, so each block is decoded and then reversed.
        let blocks = std::iter::from_fn(move || {
            let number = block?;
            block = number.checked_sub(1);
            let entries = self
                .decode_from_block(number)
                .take(BLOCK_POSTINGS as usize)
                .map(|posting| posting.entry);
            Some(
                entries
                    .take_while(|entry| *entry < at)
                    .collect::<Vec<u32>>(),
            )
        });
        blocks.flat_map(|entries| entries.into_iter().rev())
    }

    /// Makes a cursor at the first posting.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        let mut cursor = Cursor {
            marks: self.marks(),
            list: self,
            rest: self.iter(),
            block: 0,
            next: END,
        };
        cursor.advance();
        cursor
    }

    /// All postings, in order.
    pub(super) fn iter(&self) -> PostingDecoder<'_> {
        PostingDecoder {
            bytes: self.bytes(),
            last: 0,
        }
    }

    /// Calls `each` for every entry of `entries` that has the term, with the entry's index in
    /// `entries`. The entries must ascend.
    pub(super) fn visit_matches(&self, entries: &[u32], mut each: impl FnMut(usize, Posting)) {
        let mut cursor = self.cursor();
        for (place, entry) in entries.iter().enumerate() {
            cursor.seek(*entry);
            match cursor.next.entry {
                found if found == *entry => each(place, cursor.next),
                u32::MAX => return,
                _ => {}
            }
        }
    }

    /// The encoded postings.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            ListBytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            ListBytes::Long(long) => &long.bytes,
        }
    }

    /// Decodes `len` postings. Returns `None` if the bytes are damaged or an entry is not
    /// `allowed`.
    pub(super) fn decode(bytes: &[u8], len: u32, is_allowed: impl Fn(u32) -> bool) -> Option<Self> {
        let mut postings = PostingDecoder { bytes, last: 0 };
        let mut marks = Vec::new();
        let mut last = 0;
        for index in 0..len {
            let mark = Mark::new(last, bytes.len() - postings.bytes.len());
            let entry = postings.next()?.entry;
            if !is_allowed(entry) || (index > 0 && entry <= last) {
                return None;
            }
            if index > 0 && index.is_multiple_of(BLOCK_POSTINGS) {
                marks.push(mark);
            }
            last = entry;
        }
        if !postings.bytes.is_empty() {
            return None;
        }
        // No marks for an inline list: a block of 64 postings takes more bytes than fit inline.
        let bytes = if bytes.len() <= INLINE_BYTES_MAX {
            let mut inline = [0; INLINE_BYTES_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            ListBytes::Inline {
                len: u8::try_from(bytes.len()).ok()?,
                bytes: inline,
            }
        } else {
            ListBytes::Long(Box::new(LongBytes {
                bytes: bytes.to_vec(),
                marks,
            }))
        };
        Some(Self { len, last, bytes })
    }

    /// Estimates the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            ListBytes::Inline { .. } => 0,
            ListBytes::Long(long) => {
                size_of::<LongBytes>()
                    + long.bytes.capacity()
                    + long.marks.capacity() * size_of::<Mark>()
            }
        }
    }
}

/// Encodes a posting and returns the number of bytes.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn encode_posting(delta: u32, count: u8, out: &mut [u8; 7]) -> usize {
    let mut rest = u64::from(delta) << 1 | u64::from(count > 1);
    let mut used = 0;
    while rest >= 0x80 {
        out[used] = rest as u8 | 0x80;
        rest >>= 7;
        used += 1;
    }
    out[used] = rest as u8;
    used += 1;
    if count > 1 {
        out[used] = count;
        used += 1;
    }
    used
}

/// Decodes postings one after the other. It ends early at damaged bytes.
#[derive(Debug, Clone)]
pub(super) struct PostingDecoder<'a> {
    bytes: &'a [u8],
    last: u32,
}

impl Iterator for PostingDecoder<'_> {
    type Item = Posting;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    fn next(&mut self) -> Option<Posting> {
        // Fast path for one occurrence and a delta of one or two bytes. It computes the length of
        // the varint instead of branching on it, because the lengths are unpredictable.
        if let Some([first, second]) = self.bytes.first_chunk::<2>() {
            let has_two = first >> 7;
            if first & 1 == 0 && has_two & second >> 7 == 0 {
                let low = u32::from(first & 0x7f);
                let high = u32::from(second & has_two.wrapping_neg()) << 7;
                self.last = self.last.checked_add((low | high) >> 1)?;
                self.bytes = self.bytes.get(1 + usize::from(has_two)..)?;
                return Some(Posting {
                    entry: self.last,
                    count: 1,
                });
            }
        }
        self.next_of_any_length()
    }
}

impl PostingDecoder<'_> {
    #[cold]
    fn next_of_any_length(&mut self) -> Option<Posting> {
        let (mut code, mut shift, mut rest) = (0, 0, self.bytes);
        loop {
            let (byte, after) = rest.split_first()?;
            code |= u64::from(*byte & 0x7f) << shift;
            rest = after;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
            // No valid posting has a longer varint.
            // Damaged bytes: five bytes hold the 33 bits of any delta.
            if shift > 35 {
                return None;
            }
        }
        let mut count = 1;
        if code & 1 == 1 {
            let (byte, after) = rest.split_first()?;
            (count, rest) = (*byte, after);
        }
        self.last = self.last.checked_add(u32::try_from(code >> 1).ok()?)?;
        self.bytes = rest;
        Some(Posting {
            entry: self.last,
            count,
        })
    }
}

/// Stands for the end of a list: no entry has this number.
const END: Posting = Posting {
    entry: u32::MAX,
    count: 0,
};

/// A position in a list that only moves forward.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    list: &'a PostingList,
    marks: &'a [Mark],
    rest: PostingDecoder<'a>,
    /// The block that was entered last.
    block: usize,
    /// The posting at the cursor; at the end of the list its entry is `u32::MAX`.
    pub(super) next: Posting,
}

impl Cursor<'_> {
    /// Moves to the next posting.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.next = self.rest.next().unwrap_or(END);
    }

    /// Calls `each` for the postings before entry `end` and moves past them.
    #[inline]
    pub(super) fn visit_until(&mut self, end: u32, mut each: impl FnMut(Posting)) {
        // Local copies stay in registers; the compiler does not keep the fields there.
        let (mut next, mut rest) = (self.next, self.rest.clone());
        while next.entry < end {
            each(next);
            next = rest.next().unwrap_or(END);
        }
        (self.next, self.rest) = (next, rest);
    }

    /// Moves to the first posting of this entry or a later one.
    #[inline]
    pub(super) fn seek(&mut self, entry: u32) {
        if self.next.entry >= entry {
            return;
        }
        // Skips whole blocks if the next mark is still before the entry.
        if self
            .marks
            .get(self.block)
            .is_some_and(|mark| mark.before < entry)
        {
            self.block += self.marks[self.block..].partition_point(|mark| mark.before < entry);
            self.rest = self.list.decode_from_block(self.block);
            self.advance();
        }
        while self.next.entry < entry {
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: impl Iterator<Item = u32>) -> PostingList {
        let mut list = PostingList::new();
        for entry in entries {
            list.push(Posting {
                entry,
                count: if entry % 3 == 0 { 7 } else { 1 },
            });
        }
        list
    }

    #[test]
    fn backward_is_the_end_of_what_is_before_a_position() {
        for step in [1, 3, 1000] {
            for len in [0, 1, 5, 63, 64, 65, 127, 128, 129, 256, 1000] {
                let numbers: Vec<u32> = (0..len).map(|index| 5 + index * step).collect();
                let list = list(numbers.iter().copied());
                for at in [
                    0,
                    5,
                    6,
                    5 + 64 * step,
                    6 + 64 * step,
                    5 + 128 * step,
                    5 + 300 * step,
                    u32::MAX,
                ] {
                    let before = numbers.partition_point(|number| *number < at);
                    let mut found: Vec<u32> = list.entries_before(at).collect();
                    found.reverse();
                    assert_eq!(found, numbers[..before], "{step} {len} {at}");
                }
            }
        }
    }

    #[test]
    fn postings_come_back_and_are_found_from_every_position() {
        for (count, step) in [
            (1, 1),
            (3, 1),
            (14, 1),
            (15, 9),
            (127, 3),
            (128, 1),
            (129, 5),
            (700, 70),
            (600, 20_000),
        ] {
            let entries: Vec<u32> = (0..count)
                .map(|index| index * step + index % step)
                .collect();
            let list = list(entries.iter().copied());
            let read: Vec<u32> = list.iter().map(|posting| posting.entry).collect();
            assert_eq!(read, entries);
            assert!(
                list.iter()
                    .all(|posting| (posting.count == 7) == (posting.entry % 3 == 0))
            );
            for at in entries
                .iter()
                .flat_map(|entry| [*entry, entry + 1])
                .chain([0, u32::MAX])
            {
                let expect = entries.iter().copied().filter(|entry| *entry >= at);
                assert!(
                    list.postings_from(at)
                        .map(|posting| posting.entry)
                        .eq(expect),
                    "{count} postings, from {at}"
                );
                assert_eq!(
                    list.count_in(at).is_some(),
                    entries.contains(&at),
                    "{count} postings, at {at}"
                );
            }
        }
    }

    #[test]
    fn lists_meet_the_entries_that_they_have() {
        for (count, step) in [(1, 1), (9, 4), (200, 3), (2000, 7)] {
            let list = list((0..count).map(|index| index * step));
            for every in [1, 2, 5, 100, 1000] {
                let wanted: Vec<u32> = (0..count * step + 9)
                    .filter(|entry| entry % every == 0)
                    .collect();
                let mut met = Vec::new();
                list.visit_matches(&wanted, |place, posting| {
                    assert_eq!(wanted[place], posting.entry);
                    met.push(posting.entry);
                });
                let expect = wanted
                    .into_iter()
                    .filter(|entry| entry % step == 0 && *entry < count * step);
                assert_eq!(
                    met,
                    expect.collect::<Vec<_>>(),
                    "{count} postings, every {every}"
                );
            }
        }
    }

    #[test]
    fn encoded_postings_come_back_and_go_on() {
        for count in [0, 1, 5, 14, 129, 1000] {
            let whole = list((0..count).map(|entry| entry * 3));
            let end = count * 3 + 1;
            let mut read = PostingList::decode(whole.bytes(), whole.len(), |entry| entry < end)
                .expect("good bytes");
            let mut expect = whole.clone();
            for list in [&mut read, &mut expect] {
                (0..300).for_each(|index| {
                    list.push(Posting {
                        entry: end + index,
                        count: 1,
                    });
                });
            }
            assert!(read.iter().eq(expect.iter()));
            for at in 0..end + 300 {
                assert!(read.postings_from(at).eq(expect.postings_from(at)));
            }
        }
    }

    #[test]
    fn damaged_postings_are_refused() {
        let good = list([1, 5, 900].into_iter());
        assert!(PostingList::decode(good.bytes(), 3, |entry| entry < 901).is_some());
        for (what, bytes, len, end) in [
            ("an entry too far", good.bytes().to_vec(), 3, 900),
            ("too few", good.bytes().to_vec(), 4, 901),
            ("too many", good.bytes().to_vec(), 2, 901),
            ("cut", good.bytes()[..3].to_vec(), 3, 901),
            ("twice the same", vec![2, 0], 2, 9),
            ("a varint without end", vec![0xff; 9], 1, 9),
            (
                "a number that is too large",
                vec![0xff, 0xff, 0xff, 0xff, 0x7f],
                1,
                u32::MAX,
            ),
        ] {
            assert!(
                PostingList::decode(&bytes, len, |entry| entry < end).is_none(),
                "{what}"
            );
        }
    }
}
