//! In which entries of one class a term occurs, and how often: a list that only grows at its end.
//!
//! A posting is a varint of `delta << 1 | often`, where delta is the distance from the posting before (of
//! the first, the entry's number), followed by one byte with the count, at least 2, when `often` is set.
//! Short lists live in place; a long one has a mark every [`BLOCK`] postings, so that the number of
//! postings before a position is a binary search.

/// Postings between two marks.
const BLOCK: u32 = 128;

/// Bytes of a list that needs no allocation.
const INLINE_BYTES_MAX: usize = 14;

/// A term in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// The entry's number.
    pub(super) entry: u32,
    /// How often the term occurs in it; 255 stands for more, too.
    pub(super) count: u8,
}

/// Where a block of a long list begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// The entry of the posting before the block.
    before: u32,
    /// The block's first byte.
    offset: usize,
}

#[derive(Debug, Clone)]
enum Bytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Long(Box<Long>),
}

#[derive(Debug, Clone)]
struct Long {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
}

/// The postings of one term in one class.
#[derive(Debug, Clone)]
pub(super) struct List {
    len: u32,
    last: u32,
    bytes: Bytes,
}

impl List {
    /// Without postings.
    pub(super) fn new() -> Self {
        Self { len: 0, last: 0, bytes: Bytes::Inline { len: 0, bytes: [0; INLINE_BYTES_MAX] } }
    }

    /// Adds a posting, which must lie behind all others.
    pub(super) fn push(&mut self, posting: Posting) {
        debug_assert!(self.len == 0 || posting.entry > self.last, "postings come in order");
        let mut code = [0; 7];
        let used = encode(posting.entry.wrapping_sub(self.last), posting.count, &mut code);
        self.append(&code[..used]);
        self.len += 1;
        self.last = posting.entry;
    }

    fn append(&mut self, code: &[u8]) {
        if let Bytes::Inline { len, bytes } = &mut self.bytes {
            let start = usize::from(*len);
            if let Some(free) = bytes.get_mut(start..start + code.len()) {
                free.copy_from_slice(code);
                *len += u8::try_from(code.len()).unwrap_or(u8::MAX);
                return;
            }
            let bytes = bytes[..start].to_vec();
            self.bytes = Bytes::Long(Box::new(Long { bytes, marks: Vec::new() }));
        }
        if let Bytes::Long(long) = &mut self.bytes {
            if self.len.is_multiple_of(BLOCK) {
                long.marks.push(Mark { before: self.last, offset: long.bytes.len() });
            }
            if long.bytes.capacity() - long.bytes.len() < code.len() {
                long.bytes.reserve_exact((long.bytes.len() / 4).max(16));
            }
            long.bytes.extend_from_slice(code);
        }
    }

    /// How many postings there are.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// How many entries before `at` have the term.
    pub(super) fn len_before(&self, at: u32) -> u32 {
        if self.len == 0 || self.last < at {
            return self.len;
        }
        let (skipped, mut rest) = self.block_of(at);
        let mut len = skipped;
        while rest.next().is_some_and(|posting| posting.entry < at) {
            len += 1;
        }
        len
    }

    /// How many postings lie before the block that `at` may be in, and the postings from there on.
    fn block_of(&self, at: u32) -> (u32, Postings<'_>) {
        let whole = Postings { bytes: self.bytes(), last: 0 };
        let Bytes::Long(long) = &self.bytes else { return (0, whole) };
        // A mark's posting before it is smaller than `at`: the block before it is passed as a whole.
        let passed = long.marks.partition_point(|mark| mark.before < at);
        let Some(mark) = passed.checked_sub(1).and_then(|index| long.marks.get(index)) else {
            return (0, whole);
        };
        let skipped = u32::try_from(passed).unwrap_or(u32::MAX).saturating_mul(BLOCK);
        (skipped, Postings { bytes: &long.bytes[mark.offset..], last: mark.before })
    }

    /// The last entries before `at` that have the term, at most so many, in order.
    pub(super) fn last_before(&self, at: u32, count: u32) -> impl Iterator<Item = u32> {
        let end = self.len_before(at);
        let start = end.saturating_sub(count);
        let marks = if let Bytes::Long(long) = &self.bytes { &long.marks[..] } else { &[] };
        let block = (start / BLOCK).min(u32::try_from(marks.len()).unwrap_or(u32::MAX));
        let mark = block.checked_sub(1).and_then(|index| marks.get(index as usize));
        let (offset, last) = mark.map_or((0, 0), |mark| (mark.offset, mark.before));
        let postings = Postings { bytes: &self.bytes()[offset..], last };
        let (skipped, taken) = (start - block * BLOCK, end - start);
        postings.skip(skipped as usize).take(taken as usize).map(|posting| posting.entry)
    }

    /// All postings, in order.
    pub(super) fn iter(&self) -> Postings<'_> {
        Postings { bytes: self.bytes(), last: 0 }
    }

    /// Gives the postings of those of these entries, which ascend, that have one.
    pub(super) fn meet(&self, entries: impl Iterator<Item = u32>, mut each: impl FnMut(Posting)) {
        let marks = match &self.bytes {
            Bytes::Inline { .. } => &[][..],
            Bytes::Long(long) => &long.marks,
        };
        let (mut rest, mut block) = (self.iter(), 0);
        let mut next = rest.next();
        for entry in entries {
            let passed = block + marks[block..].partition_point(|mark| mark.before < entry);
            if passed > block {
                let mark = marks[passed - 1];
                rest = Postings { bytes: &self.bytes()[mark.offset..], last: mark.before };
                (next, block) = (rest.next(), passed);
            }
            while next.is_some_and(|posting| posting.entry < entry) {
                next = rest.next();
            }
            match next {
                Some(posting) if posting.entry == entry => each(posting),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// The encoded postings.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Bytes::Long(long) => &long.bytes,
        }
    }

    /// Reads `len` encoded postings of entries that may be there; `None` when they are damaged.
    pub(super) fn decode(bytes: &[u8], len: u32, may_be: impl Fn(u32) -> bool) -> Option<Self> {
        let mut postings = Postings { bytes, last: 0 };
        let mut marks = Vec::new();
        let mut last = 0;
        for index in 0..len {
            let mark = Mark { before: last, offset: bytes.len() - postings.bytes.len() };
            let entry = postings.next()?.entry;
            if !may_be(entry) || (index > 0 && entry <= last) {
                return None;
            }
            if index > 0 && index.is_multiple_of(BLOCK) {
                marks.push(mark);
            }
            last = entry;
        }
        if !postings.bytes.is_empty() {
            return None;
        }
        let bytes = if bytes.len() <= INLINE_BYTES_MAX {
            let mut inline = [0; INLINE_BYTES_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            Bytes::Inline { len: u8::try_from(bytes.len()).ok()?, bytes: inline }
        } else {
            Bytes::Long(Box::new(Long { bytes: bytes.to_vec(), marks }))
        };
        Some(Self { len, last, bytes })
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Bytes::Inline { .. } => 0,
            Bytes::Long(long) => {
                size_of::<Long>() + long.bytes.capacity() + long.marks.capacity() * size_of::<Mark>()
            }
        }
    }
}

/// Writes a posting and returns its length.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn encode(delta: u32, count: u8, out: &mut [u8; 7]) -> usize {
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

/// Decodes postings one after the other. Ends early at bytes that are none.
#[derive(Debug, Clone)]
pub(super) struct Postings<'a> {
    bytes: &'a [u8],
    last: u32,
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    #[inline]
    fn next(&mut self) -> Option<Posting> {
        let (first, mut rest) = self.bytes.split_first()?;
        let mut code = u64::from(*first & 0x7f);
        let mut more = *first >= 0x80;
        let mut shift = 7;
        while more {
            let (byte, after) = rest.split_first()?;
            code |= u64::from(*byte & 0x7f) << shift;
            more = *byte >= 0x80;
            shift += 7;
            if shift > 35 {
                return None;
            }
            rest = after;
        }
        let mut count = 1;
        if code & 1 == 1 {
            let (byte, after) = rest.split_first()?;
            (count, rest) = (*byte, after);
        }
        self.last = self.last.checked_add(u32::try_from(code >> 1).ok()?)?;
        self.bytes = rest;
        Some(Posting { entry: self.last, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: impl Iterator<Item = u32>) -> List {
        let mut list = List::new();
        for entry in entries {
            list.push(Posting { entry, count: if entry % 3 == 0 { 7 } else { 1 } });
        }
        list
    }

    #[test]
    fn the_last_before_a_position_are_the_end_of_what_is_before_it() {
        for step in [1, 3, 1000] {
            for len in [0, 1, 5, 127, 128, 129, 256, 1000] {
                let numbers: Vec<u32> = (0..len).map(|index| 5 + index * step).collect();
                let list = list(numbers.iter().copied());
                for at in [0, 5, 6, 5 + 64 * step, 5 + 128 * step, 5 + 300 * step, u32::MAX] {
                    let before = numbers.partition_point(|number| *number < at);
                    for count in [0, 1, 2, 127, 128, 500, u32::MAX] {
                        let start = before.saturating_sub(count as usize);
                        let found: Vec<u32> = list.last_before(at, count).collect();
                        assert_eq!(found, numbers[start..before], "{step} {len} {at} {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn postings_come_back_and_are_counted_before_every_position() {
        for (count, step) in
            [(1, 1), (3, 1), (14, 1), (15, 9), (127, 3), (128, 1), (129, 5), (700, 70), (600, 20_000)]
        {
            let entries: Vec<u32> = (0..count).map(|index| index * step + index % step).collect();
            let list = list(entries.iter().copied());
            let read: Vec<u32> = list.iter().map(|posting| posting.entry).collect();
            assert_eq!(read, entries);
            assert!(list.iter().all(|posting| (posting.count == 7) == (posting.entry % 3 == 0)));
            for at in entries.iter().flat_map(|entry| [*entry, entry + 1]).chain([0, u32::MAX]) {
                let expect = entries.iter().filter(|entry| **entry < at).count();
                assert_eq!(list.len_before(at) as usize, expect, "{count} postings, before {at}");
            }
        }
    }

    #[test]
    fn lists_meet_the_entries_that_they_have() {
        for (count, step) in [(1, 1), (9, 4), (200, 3), (2000, 7)] {
            let list = list((0..count).map(|index| index * step));
            for every in [1, 2, 5, 100, 1000] {
                let wanted = (0..count * step + 9).filter(|entry| entry % every == 0);
                let mut met = Vec::new();
                list.meet(wanted.clone(), |posting| met.push(posting.entry));
                let expect = wanted.filter(|entry| entry % step == 0 && *entry < count * step);
                assert_eq!(met, expect.collect::<Vec<_>>(), "{count} postings, every {every}");
            }
        }
    }

    #[test]
    fn encoded_postings_come_back_and_go_on() {
        for count in [0, 1, 5, 14, 129, 1000] {
            let whole = list((0..count).map(|entry| entry * 3));
            let end = count * 3 + 1;
            let mut read = List::decode(whole.bytes(), whole.len(), |entry| entry < end).expect("good bytes");
            let mut expect = whole.clone();
            for list in [&mut read, &mut expect] {
                (0..300).for_each(|index| list.push(Posting { entry: end + index, count: 1 }));
            }
            assert!(read.iter().eq(expect.iter()));
            for at in 0..end + 300 {
                assert_eq!(read.len_before(at), expect.len_before(at));
            }
        }
    }

    #[test]
    fn damaged_postings_are_refused() {
        let good = list([1, 5, 900].into_iter());
        assert!(List::decode(good.bytes(), 3, |entry| entry < 901).is_some());
        for (what, bytes, len, end) in [
            ("an entry too far", good.bytes().to_vec(), 3, 900),
            ("too few", good.bytes().to_vec(), 4, 901),
            ("too many", good.bytes().to_vec(), 2, 901),
            ("cut", good.bytes()[..3].to_vec(), 3, 901),
            ("twice the same", vec![2, 0], 2, 9),
            ("a varint without end", vec![0xff; 9], 1, 9),
            ("a number that is too large", vec![0xff, 0xff, 0xff, 0xff, 0x7f], 1, u32::MAX),
        ] {
            assert!(List::decode(&bytes, len, |entry| entry < end).is_none(), "{what}");
        }
    }
}
