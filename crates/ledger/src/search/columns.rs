//! What is known of each entry, a column each.
//!
//! A search touches few columns of many entries, so they are kept apart. Lengths that do not fit
//! into a byte are rare and lie elsewhere.

/// A length of so much or more is among the long ones.
pub(super) const LONG: u8 = u8::MAX;

/// What is known of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time: i64,
    /// The number of its class.
    pub(super) class: u32,
    /// The number of its byline.
    pub(super) byline: u32,
    /// Its words.
    pub(super) length: u32,
}

/// All entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) times: Vec<i64>,
    pub(super) classes: Vec<u32>,
    pub(super) bylines: Vec<u32>,
    lengths: Vec<u8>,
    /// The entries that are long, ascending, with their lengths.
    long: Vec<(u32, u32)>,
}

impl Columns {
    /// How many entries there are.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, entry: Entry) {
        let short = u8::try_from(entry.length).unwrap_or(LONG);
        if short == LONG {
            self.long.push((self.len(), entry.length));
        }
        self.times.push(entry.time);
        self.classes.push(entry.class);
        self.bylines.push(entry.byline);
        self.lengths.push(short);
    }

    /// The words of an entry.
    #[inline]
    pub(super) fn length(&self, number: u32) -> u32 {
        match self.lengths[number as usize] {
            LONG => self.long_length(number),
            short => u32::from(short),
        }
    }

    /// The words of all entries, [`LONG`] where there are as many or more.
    pub(super) fn short_lengths(&self) -> &[u8] {
        &self.lengths
    }

    #[cold]
    fn long_length(&self, number: u32) -> u32 {
        let place = self.long.binary_search_by_key(&number, |(entry, _)| *entry);
        place.map_or(u32::from(LONG), |place| self.long[place].1)
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        (0..self.len()).map(|number| Entry {
            time: self.times[number as usize],
            class: self.classes[number as usize],
            byline: self.bylines[number as usize],
            length: self.length(number),
        })
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>()
            + (self.classes.capacity() + self.bylines.capacity()) * size_of::<u32>()
            + self.lengths.capacity()
            + self.long.capacity() * size_of::<(u32, u32)>()
    }
}
