//! Large buffers whose memory returns to the system as soon as they are dropped.
//!
//! An allocator keeps the pages of a freed buffer for a while. If another thread freed it, the
//! pages may stay until the allocating thread allocates again, which an idle thread never does. A
//! buffer of [`MAPPED_FROM_BYTES`] or more is therefore a mapping of its own, which any thread may
//! drop. Smaller buffers come from the allocator.
//!
//! Invariant: the length is fixed at creation and can only shrink. A page takes memory from the
//! first write to it. If the system rejects a mapping, the caller gets an error.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use memmap2::{Advice, MmapMut, MmapOptions};

/// Buffers of this size and above are mappings of their own. A mapping costs two system calls and a
/// page fault per 4 KiB, which is little beside filling 256 KiB.
pub const MAPPED_FROM_BYTES: usize = 256 << 10;

/// Bytes of a fixed length, zero at first.
pub struct LargeBuffer {
    memory: Memory,
    len: usize,
}

enum Memory {
    Allocated(Vec<u8>),
    Mapped(MmapMut),
}

impl LargeBuffer {
    /// Makes a buffer of `len` zero bytes that the caller will fill.
    pub fn zeroed(len: usize) -> io::Result<Self> {
        let memory = if len < MAPPED_FROM_BYTES {
            Memory::Allocated(vec![0; len])
        } else {
            Memory::Mapped(MmapOptions::new().len(len).no_reserve_swap().map_anon()?)
        };
        Ok(Self { memory, len })
    }

    /// Makes a buffer that may never be filled: only the pages that are written take memory.
    pub fn sparse(len: usize) -> io::Result<Self> {
        let buffer = Self::zeroed(len)?;
        if let Memory::Mapped(map) = &buffer.memory {
            // A huge page would take 2 MiB for the first byte. A kernel without huge pages rejects
            // the advice, which is fine.
            match map.advise(Advice::NoHugePage) {
                Ok(()) | Err(_) => {}
            }
        }
        Ok(buffer)
    }

    /// Copies `bytes`.
    pub fn copy_of(bytes: &[u8]) -> io::Result<Self> {
        let mut buffer = Self::zeroed(bytes.len())?;
        buffer.copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Shortens the buffer. Its memory stays allocated.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for LargeBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.memory {
            Memory::Allocated(bytes) => bytes,
            Memory::Mapped(map) => map,
        };
        bytes.get(..self.len).unwrap_or(bytes)
    }
}

impl DerefMut for LargeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = match &mut self.memory {
            Memory::Allocated(bytes) => bytes,
            Memory::Mapped(map) => map,
        };
        let len = self.len.min(bytes.len());
        &mut bytes[..len]
    }
}

impl AsRef<[u8]> for LargeBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for LargeBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LargeBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_zero_then_filled_then_cut() {
        for len in [
            0,
            1,
            MAPPED_FROM_BYTES - 1,
            MAPPED_FROM_BYTES,
            3 * MAPPED_FROM_BYTES + 7,
        ] {
            let mut buffer = LargeBuffer::zeroed(len).unwrap();
            assert!(
                buffer.len() == len && buffer.iter().all(|byte| *byte == 0),
                "{len}"
            );
            buffer.fill(7);
            buffer.truncate(len / 2);
            let bytes = buffer.into_bytes();
            assert!(
                bytes.len() == len / 2 && bytes.iter().all(|byte| *byte == 7),
                "{len}"
            );
        }
    }

    #[test]
    fn a_buffer_that_the_system_refuses_is_an_error() {
        assert!(LargeBuffer::zeroed(usize::MAX / 4).is_err());
    }

    #[test]
    fn a_buffer_longer_than_memory_takes_only_what_is_written() {
        let mut buffer = LargeBuffer::sparse(1 << 36).unwrap();
        buffer[5] = 1;
        assert_eq!(buffer[..6], [0, 0, 0, 0, 0, 1]);
        assert_eq!(
            LargeBuffer::copy_of(&vec![3; 300 << 10]).unwrap()[..2],
            [3, 3]
        );
    }
}
