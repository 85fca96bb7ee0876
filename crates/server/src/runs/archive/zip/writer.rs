//! Writes a zip file entry by entry, with bounded memory.
//!
//! The length and the checksum of an entry stand before its bytes. The writer leaves a gap for them
//! and fills it when the entry ends, so it needs a file and not a socket.

use std::io::{self, Seek, SeekFrom, Write};

use turnkeep_types::Timestamp;

use super::crc32::Crc32;
use super::{
    END_SIGNATURE, ENTRIES_MAX, ENTRY_HEAD_BYTES, ENTRY_SIGNATURE, FILE_BYTES_MAX, ROW_SIGNATURE,
    UTF8_FLAG, VERSION, is_safe_name,
};

/// Unix, as the maker of the file: the upper half of `made by`.
const MADE_BY: u16 = (3 << 8) | VERSION;
/// A plain file that its owner may read and write.
const OUTER_ATTRIBUTES: u32 = 0o100_600 << 16;

/// A zip file in the making.
pub(in crate::runs::archive) struct ZipWriter<W> {
    out: W,
    /// How long the file is.
    bytes: u64,
    rows: Vec<Row>,
    stamp: DosTime,
    open: Option<OpenEntry>,
}

/// What the directory says about an entry.
struct Row {
    name: String,
    offset: u32,
    bytes: u32,
    crc: u32,
}

/// The entry whose bytes are being written.
struct OpenEntry {
    name: String,
    offset: u64,
    bytes: u64,
    crc: Crc32,
}

/// A time as zip files have it, in steps of two seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DosTime {
    time: u16,
    date: u16,
}

impl DosTime {
    /// A time before 1980 or after 2107 has no form, and becomes the first one.
    fn of(at: Timestamp) -> Self {
        // The first of January 1980. Years count from 1980, and seconds in steps of two.
        const FIRST: DosTime = DosTime {
            time: 0,
            date: (1 << 5) | 1,
        };
        let millis = i64::try_from(at.0).ok();
        let moment = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        let Some(moment) = moment.map(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC)) else {
            return FIRST;
        };
        let year = u16::try_from(moment.year()).ok();
        let Some(years) = year
            .and_then(|year| year.checked_sub(1980))
            .filter(|y| *y < 128)
        else {
            return FIRST;
        };
        let part = |value: i8| u16::try_from(value).unwrap_or_default();
        Self {
            time: (part(moment.hour()) << 11)
                | (part(moment.minute()) << 5)
                | (part(moment.second()) / 2),
            date: (years << 9) | (part(moment.month()) << 5) | part(moment.day()),
        }
    }
}

fn too_large() -> io::Error {
    let message = "the archive would have more than 4 GiB or 65534 files";
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

impl<W: Write + Seek> ZipWriter<W> {
    /// Begins a file. All entries have the same time, so that equal contents make equal files.
    pub(in crate::runs::archive) fn new(out: W, at: Timestamp) -> Self {
        Self {
            out,
            bytes: 0,
            rows: Vec::new(),
            stamp: DosTime::of(at),
            open: None,
        }
    }

    /// Writes a whole entry.
    pub(in crate::runs::archive) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.begin(name)?;
        self.write_all(content)?;
        self.end()
    }

    /// Begins an entry. Its bytes are written to the writer itself, up to [`Self::end`].
    pub(in crate::runs::archive) fn begin(&mut self, name: &str) -> io::Result<()> {
        if !is_safe_name(name) {
            let message = format!("`{name}` cannot be the name of a file in an archive");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if self.rows.len() >= ENTRIES_MAX {
            return Err(too_large());
        }
        let offset = self.bytes;
        // The length and the checksum follow when they are known.
        let head = entry_head(self.stamp, name, 0, 0);
        self.put(&head)?;
        self.open = Some(OpenEntry {
            name: name.to_owned(),
            offset,
            bytes: 0,
            crc: Crc32::default(),
        });
        Ok(())
    }

    /// Ends the entry.
    pub(in crate::runs::archive) fn end(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let row = Row {
            offset: u32::try_from(open.offset).map_err(|_| too_large())?,
            bytes: u32::try_from(open.bytes).map_err(|_| too_large())?,
            crc: open.crc.value(),
            name: open.name,
        };
        let head = entry_head(self.stamp, &row.name, row.crc, row.bytes);
        self.out.seek(SeekFrom::Start(open.offset))?;
        self.out.write_all(&head)?;
        self.out.seek(SeekFrom::Start(self.bytes))?;
        self.rows.push(row);
        Ok(())
    }

    /// Writes the directory. Without it the file is no zip file.
    pub(in crate::runs::archive) fn finish(mut self) -> io::Result<W> {
        self.end()?;
        let offset = self.bytes;
        for row in std::mem::take(&mut self.rows) {
            let bytes = directory_row(self.stamp, &row);
            self.put(&bytes)?;
            self.rows.push(row);
        }
        let directory_bytes = self.bytes - offset;
        let small = |value: u64| u32::try_from(value).map_err(|_| too_large());
        let count = u16::try_from(self.rows.len()).map_err(|_| too_large())?;
        let mut end = Vec::new();
        put_u32(&mut end, END_SIGNATURE);
        // This disk, the disk of the directory, the rows on this disk, all rows.
        for field in [0, 0, count, count] {
            put_u16(&mut end, field);
        }
        put_u32(&mut end, small(directory_bytes)?);
        put_u32(&mut end, small(offset)?);
        put_u16(&mut end, 0);
        self.put(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let after = self.bytes + bytes.len() as u64;
        if after > FILE_BYTES_MAX {
            return Err(too_large());
        }
        self.out.write_all(bytes)?;
        self.bytes = after;
        Ok(())
    }
}

/// The bytes of the open entry.
impl<W: Write + Seek> Write for ZipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)?;
        if let Some(open) = &mut self.open {
            open.bytes += bytes.len() as u64;
            open.crc.add(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn entry_head(stamp: DosTime, name: &str, crc: u32, bytes: u32) -> Vec<u8> {
    let length = usize::try_from(ENTRY_HEAD_BYTES).unwrap_or_default() + name.len();
    let mut head = Vec::with_capacity(length);
    put_u32(&mut head, ENTRY_SIGNATURE);
    put_common_fields(&mut head, stamp, name, crc, bytes);
    head.extend_from_slice(name.as_bytes());
    head
}

fn directory_row(stamp: DosTime, row: &Row) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_u32(&mut bytes, ROW_SIGNATURE);
    put_u16(&mut bytes, MADE_BY);
    put_common_fields(&mut bytes, stamp, &row.name, row.crc, row.bytes);
    for no_comment_part_or_inner in [0, 0, 0] {
        put_u16(&mut bytes, no_comment_part_or_inner);
    }
    put_u32(&mut bytes, OUTER_ATTRIBUTES);
    put_u32(&mut bytes, row.offset);
    bytes.extend_from_slice(row.name.as_bytes());
    bytes
}

/// The fields that an entry and its row in the directory share.
fn put_common_fields(out: &mut Vec<u8>, stamp: DosTime, name: &str, crc: u32, bytes: u32) {
    const STORED: u16 = 0;
    for field in [VERSION, UTF8_FLAG, STORED, stamp.time, stamp.date] {
        put_u16(out, field);
    }
    for field in [crc, bytes, bytes] {
        put_u32(out, field);
    }
    // A safe name is short.
    put_u16(out, u16::try_from(name.len()).unwrap_or(u16::MAX));
    put_u16(out, 0);
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_zip_programs() {
        let check = |millis: u64, expect: (u16, u16)| {
            let DosTime { time, date } = DosTime::of(Timestamp(millis));
            assert_eq!((date, time), expect, "{millis}");
        };
        check(0, (0x0021, 0));
        // 2026-01-01 00:00:00
        check(1_767_225_600_000, (0x5c21, 0));
        // 2026-11-18 14:30:05
        check(1_795_012_205_000, (0x5d72, 0x73c2));
        check(u64::MAX, (0x0021, 0));
    }
}
