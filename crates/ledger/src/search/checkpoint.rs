//! The index as bytes, so that a start need not read every entry again.
//!
//! Little-endian; `n` is a varint (seven bits a byte, the lowest first).
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TKSEARCH` |
//! | 4 | version, 1 |
//! | n, then n and its bytes each | authors, by number |
//! | n, then n and its bytes each | terms, by number |
//! | n, then 4 each | class ids, by number |
//! | n, then 20 each | entries: time 8, class number 4, author number 4, length 4 |
//! | per term: n, then per class: n, n, n and its bytes | class number, postings, their bytes; classes ascend |
//! | 32 | BLAKE3 of all before |
//!
//! A checkpoint that is damaged anywhere is refused; bytes that were made up with a right hash are checked
//! too, so that an index that was read never panics and never shows a class another's postings.

use super::ClassId;
use super::columns::{Class, Entry};
use super::index::{ClassLists, Index};
use super::lexicon::Lexicon;
use super::postings::List;

const MAGIC: &[u8; 8] = b"TKSEARCH";
const VERSION: u32 = 1;
const HASH_BYTES: usize = 32;
const ENTRY_BYTES: usize = 20;

/// Why bytes are no checkpoint of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// They do not begin like one.
    #[error("these bytes are no checkpoint of a search index")]
    Foreign,
    /// They were written by another version.
    #[error("a checkpoint of version {0}, not {VERSION}")]
    Version(u32),
    /// Their checksum is wrong.
    #[error("the checkpoint's checksum does not match")]
    Checksum,
    /// They contradict themselves.
    #[error("the checkpoint is damaged at byte {offset}: {what}")]
    Corrupt {
        /// Where.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },
}

impl Index {
    /// The index as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() as usize * 64 + 1024);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        put_strings(&mut out, &self.authors);
        put_strings(&mut out, &self.terms);
        put(&mut out, self.classes.len());
        self.classes.iter().for_each(|class| out.extend_from_slice(&class.id.0.to_le_bytes()));
        put(&mut out, self.len() as usize);
        self.entries.iter().for_each(|entry| put_entry(&mut out, &entry));
        self.lists.iter().for_each(|lists| put_lists(&mut out, lists));
        let hash = blake3::hash(&out);
        out.extend_from_slice(hash.as_bytes());
        out
    }

    /// The index that these bytes were made from.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let mut reader = Reader { bytes: checked(bytes)?, offset: MAGIC.len() + 4 };
        let authors = reader.strings()?;
        let terms = reader.strings()?;
        let mut index = Self { authors, terms, ..Self::new() };
        read_classes(&mut reader, &mut index)?;
        read_entries(&mut reader, &mut index)?;
        for _ in 0..index.terms.len() {
            let lists = read_lists(&mut reader, &index)?;
            let counts = lists.as_pairs().flat_map(|(_, list)| list.iter()).map(|posting| posting.count);
            index.peaks.push(counts.max().unwrap_or(0));
            index.lists.push(lists);
        }
        if reader.offset != reader.bytes.len() {
            return Err(reader.corrupt("bytes after the end"));
        }
        Ok(index)
    }
}

fn put(out: &mut Vec<u8>, number: usize) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap_or(0));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_strings(out: &mut Vec<u8>, strings: &Lexicon) {
    put(out, strings.len());
    (0..strings.len()).for_each(|number| put_bytes(out, strings.get(index_number(number)).as_bytes()));
}

fn index_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(&entry.time.to_le_bytes());
    for field in [entry.class, entry.author, entry.length] {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

fn put_lists(out: &mut Vec<u8>, lists: &ClassLists) {
    put(out, lists.as_pairs().count());
    for (class, list) in lists.as_pairs() {
        put(out, class as usize);
        put(out, list.len() as usize);
        put_bytes(out, list.bytes());
    }
}

/// What lies before the hash, if the hash is right and the rest is ours.
fn checked(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let body = bytes.len().checked_sub(HASH_BYTES).and_then(|end| bytes.split_at_checked(end));
    let (body, hash) = body.ok_or(CheckpointError::Foreign)?;
    let version = body.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk::<4>());
    let version = u32::from_le_bytes(*version.ok_or(CheckpointError::Foreign)?);
    if version != VERSION {
        return Err(CheckpointError::Version(version));
    }
    if blake3::hash(body) != *<&[u8; HASH_BYTES]>::try_from(hash).map_err(|_| CheckpointError::Foreign)? {
        return Err(CheckpointError::Checksum);
    }
    Ok(body)
}

fn read_classes(reader: &mut Reader<'_>, index: &mut Index) -> Result<(), CheckpointError> {
    for number in 0..reader.count(4)? {
        let id = ClassId(u32::from_le_bytes(reader.array()?));
        if index.class_numbers.insert(id, index_number(number)).is_some() {
            return Err(reader.corrupt("a class twice"));
        }
        index.classes.push(Class::new(id));
    }
    Ok(())
}

fn read_entries(reader: &mut Reader<'_>, index: &mut Index) -> Result<(), CheckpointError> {
    let count = reader.count(ENTRY_BYTES)?;
    for number in 0..count {
        let time = i64::from_le_bytes(reader.array()?);
        let mut field = || Ok(u32::from_le_bytes(reader.array()?));
        let entry = Entry { time, class: field()?, author: field()?, length: field()? };
        let class = index.classes.get_mut(entry.class as usize);
        let class = class.ok_or_else(|| reader.corrupt("an entry of no class"))?;
        if entry.author as usize >= index.authors.len() {
            return Err(reader.corrupt("an entry of nobody"));
        }
        class.push(index_number(number), entry.length);
        index.entries.push(entry);
    }
    Ok(())
}

fn read_lists(reader: &mut Reader<'_>, index: &Index) -> Result<ClassLists, CheckpointError> {
    let count = reader.count(3)?;
    let mut lists = Vec::with_capacity(count);
    let mut next = 0;
    for _ in 0..count {
        let class = index_number(reader.number()?);
        let len = index_number(reader.number()?);
        let size = reader.count(1)?;
        let is_of_class = |entry: u32| index.entries.classes.get(entry as usize) == Some(&class);
        let list = List::decode(reader.take(size)?, len, is_of_class);
        let list = list.ok_or_else(|| reader.corrupt("no postings of this class"))?;
        if class < next || len == 0 {
            return Err(reader.corrupt("classes out of order"));
        }
        next = class.saturating_add(1);
        lists.push((class, list));
    }
    match lists.len() {
        0 => Err(reader.corrupt("a term that does not occur")),
        1 => Ok(lists
            .pop()
            .map(|(class, list)| ClassLists::One(class, list))
            .unwrap_or(ClassLists::Many(lists))),
        _ => Ok(ClassLists::Many(lists)),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    fn corrupt(&self, what: &'static str) -> CheckpointError {
        CheckpointError::Corrupt { offset: self.offset, what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CheckpointError> {
        let taken = self.offset.checked_add(count).and_then(|end| self.bytes.get(self.offset..end));
        let taken = taken.ok_or_else(|| self.corrupt("it ends too early"))?;
        self.offset += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.corrupt("it ends too early"))
    }

    fn number(&mut self) -> Result<usize, CheckpointError> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.array::<1>()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(number).map_err(|_| self.corrupt("a number too large"));
            }
        }
        Err(self.corrupt("a number without end"))
    }

    /// A number of things of at least `size` bytes each, so many as can follow.
    fn count(&mut self, size: usize) -> Result<usize, CheckpointError> {
        let count = self.number()?;
        if count > (self.bytes.len() - self.offset) / size {
            return Err(self.corrupt("more than there is room for"));
        }
        Ok(count)
    }

    fn strings(&mut self) -> Result<Lexicon, CheckpointError> {
        let mut strings = Lexicon::new();
        for number in 0..self.count(1)? {
            let size = self.count(1)?;
            let string = std::str::from_utf8(self.take(size)?).map_err(|_| self.corrupt("no UTF-8"))?;
            if strings.intern(string) != index_number(number) {
                return Err(self.corrupt("a string twice"));
            }
        }
        Ok(strings)
    }
}
