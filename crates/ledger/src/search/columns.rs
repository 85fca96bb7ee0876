//! Per-entry figures, one column per figure.
//!
//! A search reads few columns of many entries, so each column is contiguous. A length takes one
//! byte; the rare lengths that do not fit are in a side table.

/// In the length column: the length is in the side table.
pub(super) const LONG: u8 = u8::MAX;

/// The figures of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryFigures {
    pub(super) time: i64,
    /// Class number.
    pub(super) class: u32,
    /// Byline number.
    pub(super) byline: u32,
    /// The number of words.
    pub(super) length: u32,
}

/// The length of an entry whose length does not fit into a byte.
#[derive(Debug, Clone, Copy)]
struct LongEntry {
    entry: u32,
    length: u32,
}

/// The figures of all entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) times: Vec<i64>,
    pub(super) classes: Vec<u32>,
    pub(super) bylines: Vec<u32>,
    lengths: Vec<u8>,
    /// The entries whose length does not fit into the column, ascending.
    long: Vec<LongEntry>,
}

impl Columns {
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// Appends the figures of the next entry.
    pub(super) fn push(&mut self, entry: EntryFigures) {
        let short = u8::try_from(entry.length).unwrap_or(LONG);
        if short == LONG {
            self.long.push(LongEntry {
                entry: self.len(),
                length: entry.length,
            });
        }
        self.times.push(entry.time);
        self.classes.push(entry.class);
        self.bylines.push(entry.byline);
        self.lengths.push(short);
    }

    /// The number of words of an entry.
    #[inline]
    pub(super) fn length(&self, number: u32) -> u32 {
        match self.lengths[number as usize] {
            LONG => self.long_length(number),
            short => u32::from(short),
        }
    }

    /// The length column: the number of words, or [`LONG`].
    pub(super) fn short_lengths(&self) -> &[u8] {
        &self.lengths
    }

    #[cold]
    fn long_length(&self, number: u32) -> u32 {
        let found = self.long.binary_search_by_key(&number, |long| long.entry);
        found.map_or(u32::from(LONG), |place| self.long[place].length)
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = EntryFigures> {
        (0..self.len()).map(|number| EntryFigures {
            time: self.times[number as usize],
            class: self.classes[number as usize],
            byline: self.bylines[number as usize],
            length: self.length(number),
        })
    }

    /// Estimates the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>()
            + (self.classes.capacity() + self.bylines.capacity()) * size_of::<u32>()
            + self.lengths.capacity()
            + self.long.capacity() * size_of::<LongEntry>()
    }
}
