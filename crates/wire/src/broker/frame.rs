//! Frames of the broker: a length and that many bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use turnkeep_types::broker::FRAME_BYTES_MAX;

/// The size of the length field.
pub const HEADER_BYTES: usize = 4;

/// A frame declares more than the limit of a message. The connection cannot be used after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {bytes} bytes is over the limit of {FRAME_BYTES_MAX}")]
pub struct MessageTooLong {
    /// The declared length.
    pub bytes: usize,
}

/// Reads the length of the first frame; `None` while the header is incomplete.
fn declared_length(buffer: &[u8]) -> Result<Option<usize>, MessageTooLong> {
    let Some(mut header) = buffer.get(..HEADER_BYTES) else {
        return Ok(None);
    };
    // Big-endian, unlike the numbers of the store's protocol.
    let bytes = header.get_u32() as usize;
    // Checked before the body arrives: the reader of a connection would otherwise buffer up to
    // 4 GiB for one peer.
    if bytes > FRAME_BYTES_MAX {
        Err(MessageTooLong { bytes })
    } else {
        Ok(Some(bytes))
    }
}

/// Splits the body of the first frame off a receive buffer; `None` while it is incomplete.
pub fn next_frame(buffer: &mut BytesMut) -> Result<Option<BytesMut>, MessageTooLong> {
    let Some(bytes) = declared_length(buffer)? else {
        return Ok(None);
    };
    if buffer.len() < HEADER_BYTES + bytes {
        return Ok(None);
    }
    buffer.advance(HEADER_BYTES);
    Ok(Some(buffer.split_to(bytes)))
}

/// Fills in the length of a frame whose body starts after four placeholder bytes.
pub(super) fn seal_frame(mut frame: Vec<u8>) -> Result<Bytes, MessageTooLong> {
    let bytes = frame.len().saturating_sub(HEADER_BYTES);
    let length = u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= FRAME_BYTES_MAX);
    let (Some(length), Some(mut header)) = (length, frame.get_mut(..HEADER_BYTES)) else {
        return Err(MessageTooLong { bytes });
    };
    header.put_u32(length);
    Ok(frame.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let one = seal_frame(b"\0\0\0\0one".to_vec()).unwrap();
        let none = seal_frame(b"\0\0\0\0".to_vec()).unwrap();
        let stream = [&one[..], &none, &one].concat();
        for step in 1..=stream.len() {
            let mut buffer = BytesMut::new();
            let mut found = Vec::new();
            for chunk in stream.chunks(step) {
                buffer.extend_from_slice(chunk);
                while let Some(body) = next_frame(&mut buffer).unwrap() {
                    found.push(body);
                }
            }
            assert_eq!(found, [&b"one"[..], b"", b"one"], "{step}");
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_come() {
        let mut buffer = BytesMut::from(&[1, 0, 0, 1][..]);
        assert_eq!(
            next_frame(&mut buffer),
            Err(MessageTooLong {
                bytes: FRAME_BYTES_MAX + 1
            })
        );
        let mut buffer = BytesMut::from(&[1, 0, 0, 0][..]);
        assert_eq!(next_frame(&mut buffer), Ok(None));
        assert!(seal_frame(vec![0; HEADER_BYTES + FRAME_BYTES_MAX]).is_ok());
        assert!(seal_frame(vec![0; HEADER_BYTES + FRAME_BYTES_MAX + 1]).is_err());
    }
}
