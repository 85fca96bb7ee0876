//! Encodes the index as bytes, so that a start need not read every entry again.
//!
//! Little-endian; `n` is a varint (seven bits a byte, the lowest first).
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TKSEARCH` |
//! | 4 | version, 4 |
//! | n, then n and its bytes each | authors, by number |
//! | n, then n and its bytes each | labels, by number |
//! | n, then 8 each | bylines: author number 4, label number 4 |
//! | n, then n and its bytes each | terms, by number |
//! | n, then 4 each | class ids, by number |
//! | n, then 20 each | entries: time 8, class number 4, byline number 4, length 4 |
//! | per term: n, n and its bytes | postings, their bytes |
//! | 2 | its peak: the highest count, the least length |
//! | with 256 postings or more: n, then n each | how many each class has, by number |
//! | n, then n and 8 each | stop words: their blocks, 64 per number |
//! | 32 | BLAKE3 of all before |
//!
//! Decoding rejects a checkpoint with any damage. It also validates the content behind a correct
//! hash, so that an index from forged bytes never panics.

use super::ClassId;
use super::bylines::{Byline, Bylines};
use super::columns::EntryFigures;
use super::index::{Index, TALLIED_POSTINGS_MIN, TermPeak};
use super::lexicon::Lexicon;
use super::postings::PostingList;
use super::stops::StopBlocks;

const MAGIC: &[u8; 8] = b"TKSEARCH";
const VERSION: u32 = 4;
const BYLINE_BYTES: usize = 8;
const HASH_BYTES: usize = 32;
const ENTRY_BYTES: usize = 20;

/// Why bytes are not a checkpoint of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The magic bytes are missing.
    #[error("these bytes are no checkpoint of a search index")]
    Foreign,
    /// Another version wrote them.
    #[error("a checkpoint of version {0}, not {VERSION}")]
    Version(u32),
    /// The checksum does not match.
    #[error("the checkpoint's checksum does not match")]
    Checksum,
    /// The content contradicts itself.
    #[error("the checkpoint is damaged at byte {offset}: {what}")]
    Corrupt {
        /// The position of the fault in the bytes.
        offset: usize,
        /// A description of the fault.
        what: &'static str,
    },
}

impl Index {
    /// Encodes the index.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() as usize * 64 + 1024);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        put_strings(&mut out, &self.bylines.authors);
        put_strings(&mut out, &self.bylines.labels);
        put_varint(&mut out, self.bylines.pairs().len());
        for byline in self.bylines.pairs() {
            put_byline(&mut out, *byline);
        }
        put_strings(&mut out, &self.terms);
        put_varint(&mut out, self.classes.len());
        for class in &self.classes {
            out.extend_from_slice(&class.0.to_le_bytes());
        }
        put_varint(&mut out, self.len() as usize);
        for entry in self.entries.iter() {
            put_entry(&mut out, &entry);
        }
        for (term, list) in (0..).zip(&self.lists) {
            put_posting_list(&mut out, list);
            put_term_figures(&mut out, self, term);
        }
        put_varint(&mut out, self.stops.rows().len());
        for row in self.stops.rows() {
            put_row(&mut out, row);
        }
        let hash = blake3::hash(&out);
        out.extend_from_slice(hash.as_bytes());
        out
    }

    /// Decodes an index and checks its hash.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        Self::decode_body(check_envelope(bytes)?)
    }

    fn decode_body(body: &[u8]) -> Result<Self, CheckpointError> {
        let mut reader = ByteReader {
            bytes: body,
            offset: MAGIC.len() + 4,
        };
        let bylines = read_bylines(&mut reader)?;
        let terms = reader.read_strings()?;
        let mut index = Self {
            bylines,
            terms,
            ..Self::new()
        };
        read_classes(&mut reader, &mut index)?;
        read_entries(&mut reader, &mut index)?;
        for term in 0..index.terms.len() {
            let list = read_posting_list(&mut reader, index.len())?;
            read_term_figures(&mut reader, &mut index, to_u32(term), &list)?;
            index.lists.push(list);
        }
        index.stops = read_stops(&mut reader)?;
        // Trailing bytes mean that something was read wrongly.
        if reader.offset != reader.bytes.len() {
            return Err(reader.corrupt("bytes after the end"));
        }
        Ok(index)
    }
}

fn put_varint(out: &mut Vec<u8>, number: usize) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap_or(0));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_strings(out: &mut Vec<u8>, strings: &Lexicon) {
    put_varint(out, strings.len());
    for number in 0..strings.len() {
        put_bytes(out, strings.get(to_u32(number)).as_bytes());
    }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn put_entry(out: &mut Vec<u8>, entry: &EntryFigures) {
    out.extend_from_slice(&entry.time.to_le_bytes());
    for field in [entry.class, entry.byline, entry.length] {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

fn put_byline(out: &mut Vec<u8>, pair: Byline) {
    out.extend_from_slice(&pair.author.to_le_bytes());
    out.extend_from_slice(&pair.label.to_le_bytes());
}

fn put_posting_list(out: &mut Vec<u8>, list: &PostingList) {
    put_varint(out, list.len() as usize);
    put_bytes(out, list.bytes());
}

fn put_term_figures(out: &mut Vec<u8>, index: &Index, term: u32) {
    let peak = index
        .peaks
        .get(term as usize)
        .copied()
        .unwrap_or(TermPeak::NONE);
    out.extend_from_slice(&[peak.count, peak.length]);
    if let Some(tally) = index.class_tallies.get(&term) {
        put_varint(out, tally.len());
        for count in tally {
            put_varint(out, *count as usize);
        }
    }
}

fn put_row(out: &mut Vec<u8>, row: &[u64]) {
    put_varint(out, row.len());
    for bits in row {
        out.extend_from_slice(&bits.to_le_bytes());
    }
}

/// Checks magic bytes, version and hash, and returns the bytes before the hash.
fn check_envelope(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let body = bytes
        .len()
        .checked_sub(HASH_BYTES)
        .and_then(|end| bytes.split_at_checked(end));
    let (body, hash) = body.ok_or(CheckpointError::Foreign)?;
    let version = body
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.first_chunk::<4>());
    let version = u32::from_le_bytes(*version.ok_or(CheckpointError::Foreign)?);
    // Before the hash: an index of another version is old, not damaged.
    if version != VERSION {
        return Err(CheckpointError::Version(version));
    }
    if blake3::hash(body)
        != *<&[u8; HASH_BYTES]>::try_from(hash).map_err(|_| CheckpointError::Foreign)?
    {
        return Err(CheckpointError::Checksum);
    }
    Ok(body)
}

fn read_bylines(reader: &mut ByteReader<'_>) -> Result<Bylines, CheckpointError> {
    let authors = reader.read_strings()?;
    let mut bylines = Bylines::with_names(authors, reader.read_strings()?);
    for _ in 0..reader.read_count(BYLINE_BYTES)? {
        let author = u32::from_le_bytes(reader.read_array()?);
        let label = u32::from_le_bytes(reader.read_array()?);
        // A duplicate would shift the numbers of all later bylines.
        if !bylines.add(Byline { author, label }) {
            return Err(reader.corrupt("a byline twice, or of nobody"));
        }
    }
    Ok(bylines)
}

fn read_classes(reader: &mut ByteReader<'_>, index: &mut Index) -> Result<(), CheckpointError> {
    for number in 0..reader.read_count(4)? {
        let id = ClassId(u32::from_le_bytes(reader.read_array()?));
        if index.class_numbers.insert(id, to_u32(number)).is_some() {
            return Err(reader.corrupt("a class twice"));
        }
        index.classes.push(id);
    }
    Ok(())
}

fn read_entries(reader: &mut ByteReader<'_>, index: &mut Index) -> Result<(), CheckpointError> {
    let count = reader.read_count(ENTRY_BYTES)?;
    for _ in 0..count {
        let time = i64::from_le_bytes(reader.read_array()?);
        let mut field = || Ok(u32::from_le_bytes(reader.read_array()?));
        let entry = EntryFigures {
            time,
            class: field()?,
            byline: field()?,
            length: field()?,
        };
        // These numbers are used as indexes without further checks.
        if entry.class as usize >= index.classes.len() {
            return Err(reader.corrupt("an entry of no class"));
        }
        // Time windows are found by binary search, which needs ascending times.
        if index.entries.times.last().is_some_and(|last| *last > time) {
            return Err(reader.corrupt("an entry before the one before it"));
        }
        if entry.byline as usize >= index.bylines.pairs().len() {
            return Err(reader.corrupt("an entry of nobody"));
        }
        index.entries.push(entry);
    }
    Ok(())
}

fn read_posting_list(
    reader: &mut ByteReader<'_>,
    entries: u32,
) -> Result<PostingList, CheckpointError> {
    let len = to_u32(reader.read_varint()?);
    let size = reader.read_count(1)?;
    let list = PostingList::decode(reader.read_bytes(size)?, len, |entry| entry < entries);
    let list = list.ok_or_else(|| reader.corrupt("no postings"))?;
    if len == 0 {
        Err(reader.corrupt("a term that does not occur"))
    } else {
        Ok(list)
    }
}

fn read_term_figures(
    reader: &mut ByteReader<'_>,
    index: &mut Index,
    term: u32,
    list: &PostingList,
) -> Result<(), CheckpointError> {
    // Wrong bounds could hide hits; the hash protects them like everything else.
    let [count, length] = reader.read_array()?;
    index.peaks.push(TermPeak { count, length });
    if list.len() >= TALLIED_POSTINGS_MIN {
        let classes = reader.read_count(1)?;
        let tally = (0..classes).map(|_| Ok(to_u32(reader.read_varint()?)));
        let tally = tally.collect::<Result<Vec<_>, _>>()?;
        let sum: u64 = tally.iter().map(|count| u64::from(*count)).sum();
        // Frequencies are computed from the tally alone, so it must agree with the list.
        if sum != u64::from(list.len()) {
            return Err(reader.corrupt("classes that do not add up to the postings"));
        }
        index.class_tallies.insert(term, tally);
    }
    Ok(())
}

fn read_stops(reader: &mut ByteReader<'_>) -> Result<StopBlocks, CheckpointError> {
    let mut rows = Vec::new();
    for _ in 0..reader.read_count(1)? {
        let count = reader.read_count(8)?;
        let row = (0..count).map(|_| Ok(u64::from_le_bytes(reader.read_array()?)));
        rows.push(row.collect::<Result<Vec<_>, _>>()?);
    }
    StopBlocks::from_rows(rows).ok_or_else(|| reader.corrupt("other words that say nothing"))
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> ByteReader<'a> {
    fn corrupt(&self, what: &'static str) -> CheckpointError {
        CheckpointError::Corrupt {
            offset: self.offset,
            what,
        }
    }

    fn read_bytes(&mut self, count: usize) -> Result<&'a [u8], CheckpointError> {
        let taken = self
            .offset
            .checked_add(count)
            .and_then(|end| self.bytes.get(self.offset..end));
        let taken = taken.ok_or_else(|| self.corrupt("it ends too early"))?;
        self.offset += count;
        Ok(taken)
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        let taken = self.read_bytes(N)?;
        taken
            .try_into()
            .map_err(|_| self.corrupt("it ends too early"))
    }

    fn read_varint(&mut self) -> Result<usize, CheckpointError> {
        let mut number = 0_u64;
        // Nine bytes carry 63 bits, more than any count needs.
        for shift in (0..63).step_by(7) {
            let [byte] = self.read_array::<1>()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(number).map_err(|_| self.corrupt("a number too large"));
            }
        }
        Err(self.corrupt("a number without end"))
    }

    /// Reads a count of items of at least `size` bytes each. Rejects a count that the remaining
    /// bytes cannot hold, so that no allocation depends on a forged count.
    fn read_count(&mut self, size: usize) -> Result<usize, CheckpointError> {
        let count = self.read_varint()?;
        if count > (self.bytes.len() - self.offset) / size {
            return Err(self.corrupt("more than there is room for"));
        }
        Ok(count)
    }

    fn read_strings(&mut self) -> Result<Lexicon, CheckpointError> {
        let mut strings = Lexicon::new();
        for number in 0..self.read_count(1)? {
            let size = self.read_count(1)?;
            let string = std::str::from_utf8(self.read_bytes(size)?)
                .map_err(|_| self.corrupt("no UTF-8"))?;
            if strings.intern(string) != to_u32(number) {
                return Err(self.corrupt("a string twice"));
            }
        }
        Ok(strings)
    }
}
