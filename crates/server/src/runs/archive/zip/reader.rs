//! Reads a zip file that may be hostile.
//!
//! [`ZipReader::open`] checks the whole file before it returns: the directory, each entry's head
//! against its row, that entries do not overlap, and every checksum. After that, lookups by name
//! can only fail if the file itself cannot be read.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use super::crc32::Crc32;
use super::{
    END_BYTES, END_SIGNATURE, ENTRIES_MAX, ENTRY_FIELDS_BYTES, ENTRY_HEAD_BYTES, ENTRY_SIGNATURE,
    FILE_BYTES_MAX, NAME_BYTES_MAX, ROW_HEAD_BYTES, ROW_SIGNATURE, UTF8_FLAG, is_safe_name,
};

/// How much is read at once to check a sum.
const CHUNK_BYTES: usize = 64 << 10;

/// Why a file is not an archive.
#[derive(Debug, thiserror::Error)]
pub(in crate::runs::archive) enum ZipError {
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the file is not a whole zip file: {0}")]
    Malformed(&'static str),
    #[error("the entry `{name}` {problem}")]
    Entry { name: String, problem: &'static str },
    #[error("the entry `{0}` is missing")]
    Missing(String),
    #[error("the entry `{name}` has {bytes} bytes, more than {max}")]
    TooLong { name: String, bytes: u64, max: u64 },
}

/// A zip file that was checked.
pub(in crate::runs::archive) struct ZipReader<R> {
    file: R,
    entries: BTreeMap<String, Place>,
}

/// Where the bytes of an entry are.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u64,
    bytes: u64,
}

/// A row of the directory.
struct Row {
    name: String,
    fields: [u8; ENTRY_FIELDS_BYTES],
    crc: u32,
    bytes: u64,
    offset: u64,
}

/// Where the directory is.
struct Directory {
    offset: u64,
    bytes: u64,
    rows: usize,
}

impl<R: Read + Seek> ZipReader<R> {
    /// Opens a file and checks all of it.
    pub(in crate::runs::archive) fn open(mut file: R) -> Result<Self, ZipError> {
        let directory = find_directory(&mut file)?;
        let mut rows = read_rows(&mut file, &directory)?;
        rows.sort_by_key(|row| row.offset);
        let mut reader = Self {
            file,
            entries: BTreeMap::new(),
        };
        // Entries follow one another from the beginning to the directory, so no byte is in two.
        let mut free_from = 0;
        for row in rows {
            if row.offset != free_from {
                return Err(problem(&row.name, "does not follow the one before it"));
            }
            free_from = reader.add_entry(&row, directory.offset)?;
        }
        if free_from != directory.offset {
            return Err(ZipError::Malformed("there are bytes before the directory"));
        }
        Ok(reader)
    }

    /// Checks an entry. Returns where the next one begins.
    fn add_entry(&mut self, row: &Row, limit: u64) -> Result<u64, ZipError> {
        let start = row.offset + ENTRY_HEAD_BYTES + row.name.len() as u64;
        let end = start + row.bytes;
        if end > limit {
            return Err(problem(&row.name, "is longer than the file"));
        }
        self.check_head(row)?;
        let place = Place {
            start,
            bytes: row.bytes,
        };
        if self.sum(place)? != row.crc {
            return Err(problem(&row.name, "is damaged: its checksum is wrong"));
        }
        if self.entries.insert(row.name.clone(), place).is_some() {
            return Err(problem(&row.name, "is there twice"));
        }
        Ok(end)
    }

    /// The entry itself must say what the directory says: programs differ in which one they trust.
    fn check_head(&mut self, row: &Row) -> Result<(), ZipError> {
        self.file.seek(SeekFrom::Start(row.offset))?;
        let signature = read_u32(&mut self.file)?;
        let mut fields = [0; ENTRY_FIELDS_BYTES];
        read_exact(&mut self.file, &mut fields)?;
        let mut name = vec![0; row.name.len()];
        read_exact(&mut self.file, &mut name)?;
        let fits =
            signature == ENTRY_SIGNATURE && fields == row.fields && name == row.name.as_bytes();
        if fits {
            Ok(())
        } else {
            Err(problem(&row.name, "differs from its row in the directory"))
        }
    }

    fn sum(&mut self, place: Place) -> Result<u32, ZipError> {
        self.file.seek(SeekFrom::Start(place.start))?;
        let mut content = (&mut self.file).take(place.bytes);
        let mut crc = Crc32::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = content.read(&mut chunk)?;
            if read == 0 {
                return Ok(crc.value());
            }
            crc.add(chunk.get(..read).unwrap_or_default());
        }
    }

    /// The names of all entries, in order.
    #[cfg(test)]
    pub(in crate::runs::archive) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Reads an entry of at most `max` bytes.
    pub(in crate::runs::archive) fn read(
        &mut self,
        name: &str,
        max: u64,
    ) -> Result<Vec<u8>, ZipError> {
        let mut content = self.stream(name)?;
        let bytes = content.limit();
        if bytes > max {
            let name = name.to_owned();
            return Err(ZipError::TooLong { name, bytes, max });
        }
        let mut read = Vec::new();
        content.read_to_end(&mut read)?;
        Ok(read)
    }

    /// The bytes of an entry, to be read in pieces.
    pub(in crate::runs::archive) fn stream(
        &mut self,
        name: &str,
    ) -> Result<io::Take<io::BufReader<&mut R>>, ZipError> {
        self.stream_from(name, 0)
    }

    /// The bytes of an entry from one of them on.
    pub(in crate::runs::archive) fn stream_from(
        &mut self,
        name: &str,
        skipped: u64,
    ) -> Result<io::Take<io::BufReader<&mut R>>, ZipError> {
        let place = self.entries.get(name).copied();
        let place = place.ok_or_else(|| ZipError::Missing(name.to_owned()))?;
        let skipped = skipped.min(place.bytes);
        self.file.seek(SeekFrom::Start(place.start + skipped))?;
        let content = io::BufReader::new(&mut self.file);
        Ok(content.take(place.bytes - skipped))
    }
}

fn problem(name: &str, problem: &'static str) -> ZipError {
    ZipError::Entry {
        name: name.to_owned(),
        problem,
    }
}

fn find_directory<R: Read + Seek>(file: &mut R) -> Result<Directory, ZipError> {
    let length = file.seek(SeekFrom::End(0))?;
    if length > FILE_BYTES_MAX {
        return Err(ZipError::Malformed("it has more than 4 GiB"));
    }
    let Some(end) = length.checked_sub(END_BYTES) else {
        return Err(ZipError::Malformed("its end is missing"));
    };
    // An export has no comment behind its end. So the end is at one place, and need not be searched
    // for, which could find a forged one.
    file.seek(SeekFrom::Start(end))?;
    if read_u32(file)? != END_SIGNATURE {
        return Err(ZipError::Malformed("its end is missing"));
    }
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = read_u16(file)?;
    }
    let [part, first_part, rows_here, rows] = counts;
    let bytes = u64::from(read_u32(file)?);
    let offset = u64::from(read_u32(file)?);
    let comment = read_u16(file)?;
    if part != 0 || first_part != 0 || rows_here != rows || comment != 0 {
        return Err(ZipError::Malformed("it has parts or a comment"));
    }
    let rows = usize::from(rows);
    if rows > ENTRIES_MAX || offset + bytes != end {
        return Err(ZipError::Malformed("its directory is not at its end"));
    }
    Ok(Directory {
        offset,
        bytes,
        rows,
    })
}

fn read_rows<R: Read + Seek>(file: &mut R, directory: &Directory) -> Result<Vec<Row>, ZipError> {
    // A row has at least its fixed part, so the count cannot ask for more memory than there are
    // bytes.
    if directory.bytes < (directory.rows * ROW_HEAD_BYTES) as u64 {
        return Err(ZipError::Malformed("its directory is too short"));
    }
    file.seek(SeekFrom::Start(directory.offset))?;
    let mut content = io::BufReader::new(file.take(directory.bytes));
    let mut rows = Vec::with_capacity(directory.rows);
    let mut used = 0;
    for _ in 0..directory.rows {
        let row = read_row(&mut content)?;
        used += (ROW_HEAD_BYTES + row.name.len()) as u64;
        rows.push(row);
    }
    if used != directory.bytes {
        return Err(ZipError::Malformed("its directory has more than its rows"));
    }
    Ok(rows)
}

fn read_row(content: &mut impl Read) -> Result<Row, ZipError> {
    if read_u32(content)? != ROW_SIGNATURE {
        return Err(ZipError::Malformed("its directory is damaged"));
    }
    // The version that made the file says nothing. Then come the fields that the entry's own head
    // repeats: version, flags, method, time, checksum, lengths.
    read_u16(content)?;
    let mut fields = [0; ENTRY_FIELDS_BYTES];
    read_exact(content, &mut fields)?;
    let mut rest = fields.as_slice();
    read_u16(&mut rest)?;
    let flags = read_u16(&mut rest)?;
    let method = read_u16(&mut rest)?;
    read_u32(&mut rest)?;
    let crc = read_u32(&mut rest)?;
    let stored = read_u32(&mut rest)?;
    let bytes = read_u32(&mut rest)?;
    let name_bytes = usize::from(read_u16(&mut rest)?);
    let extra = read_u16(&mut rest)?;
    let comment = read_u16(content)?;
    // The number of the part, and attributes that an import does not use.
    read_u16(content)?;
    read_u16(content)?;
    read_u32(content)?;
    let offset = u64::from(read_u32(content)?);
    let name = read_name(content, name_bytes)?;
    if method != 0 || stored != bytes {
        return Err(problem(
            &name,
            "is compressed: import the file as it was exported",
        ));
    }
    if flags & !UTF8_FLAG != 0 || extra != 0 || comment != 0 {
        return Err(problem(&name, "has parts that an export does not have"));
    }
    Ok(Row {
        name,
        fields,
        crc,
        bytes: u64::from(bytes),
        offset,
    })
}

fn read_name(content: &mut impl Read, bytes: usize) -> Result<String, ZipError> {
    if bytes > NAME_BYTES_MAX {
        return Err(ZipError::Malformed("an entry has a long name"));
    }
    let mut name = vec![0; bytes];
    read_exact(content, &mut name)?;
    let name = String::from_utf8(name)
        .map_err(|_| ZipError::Malformed("an entry has a name that is not UTF-8"))?;
    if is_safe_name(&name) {
        Ok(name)
    } else {
        Err(problem(
            &name.escape_debug().to_string(),
            "has a name that is not allowed",
        ))
    }
}

fn read_exact(content: &mut impl Read, bytes: &mut [u8]) -> Result<(), ZipError> {
    content.read_exact(bytes).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            ZipError::Malformed("it is cut off")
        } else {
            ZipError::Io(error)
        }
    })
}

fn read_u16(content: &mut impl Read) -> Result<u16, ZipError> {
    let mut bytes = [0; 2];
    read_exact(content, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

fn read_u32(content: &mut impl Read) -> Result<u32, ZipError> {
    let mut bytes = [0; 4];
    read_exact(content, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
