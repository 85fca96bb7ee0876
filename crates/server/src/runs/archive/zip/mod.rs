//! Zip files whose entries are stored as they are.
//!
//! The writer makes files that every program opens. The reader accepts only what the writer makes:
//! a file from outside is hostile until it is checked, and everything that the format allows beyond
//! this (compression, encryption, comments, several parts) is rejected by name. Without compression
//! an entry is as long as its bytes in the file, so a small file cannot unpack to a large one.
//!
//! ```text
//! for each entry, from offset 0
//!   u32  50 4b 03 04        u16 version   u16 flags   u16 method = 0
//!   u16  time   u16 date    u32 crc   u32 bytes   u32 bytes   u16 name   u16 extra = 0
//!   name, bytes
//! the directory, one row for each entry
//!   u32  50 4b 01 02        u16 made by   then as above from version on, and
//!   u16  comment = 0   u16 part = 0   u16 inner   u32 outer   u32 offset of the entry
//!   name
//! the end
//!   u32  50 4b 05 06        u16 part = 0   u16 part = 0   u16 rows   u16 rows
//!   u32  bytes of the directory   u32 its offset   u16 comment = 0
//! ```
//!
//! The format has 32 bits for offsets and 16 for the number of entries. The writer stops before
//! either overflows.

mod crc32;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use reader::{ZipError, ZipReader};
pub(super) use writer::ZipWriter;

const ENTRY_SIGNATURE: u32 = 0x0403_4b50;
const ROW_SIGNATURE: u32 = 0x0201_4b50;
const END_SIGNATURE: u32 = 0x0605_4b50;
/// The part of an entry's head after the signature and before the name.
const ENTRY_FIELDS_BYTES: usize = 26;
const ENTRY_HEAD_BYTES: u64 = 4 + ENTRY_FIELDS_BYTES as u64;
const ROW_HEAD_BYTES: usize = 46;
const END_BYTES: u64 = 22;
/// The version that readers must know: 2.0.
const VERSION: u16 = 20;
/// Says that names are UTF-8.
const UTF8_FLAG: u16 = 1 << 11;
/// The longest file. Offsets have 32 bits.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;
/// The most entries.
const ENTRIES_MAX: usize = u16::MAX as usize - 1;
/// The longest name of an entry.
const NAME_BYTES_MAX: usize = 512;

/// Whether a name can be written anywhere without leaving its folder.
fn is_safe_name(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let has_odd = name
        .chars()
        .any(|letter| letter.is_control() || matches!(letter, '\\' | ':'));
    name.len() <= NAME_BYTES_MAX && !has_odd && name.split('/').all(is_plain)
}
