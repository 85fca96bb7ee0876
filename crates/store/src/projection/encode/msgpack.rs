//! Writes msgpack into memory, each value in its shortest form. Writing cannot fail.

use rmp::encode::buffer::ByteBuf;

/// Msgpack under construction.
#[derive(Debug, Default)]
pub(super) struct MsgpackWriter(ByteBuf);

impl MsgpackWriter {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_vec()
    }

    pub(super) fn write_nil(&mut self) {
        let Ok(()) = rmp::encode::write_nil(&mut self.0);
    }

    pub(super) fn write_bool(&mut self, flag: bool) {
        let Ok(()) = rmp::encode::write_bool(&mut self.0, flag);
    }

    /// Writes a number between the least i64 and the greatest u64.
    pub(super) fn write_int(&mut self, number: i128) {
        if let Ok(number) = u64::try_from(number) {
            let Ok(_) = rmp::encode::write_uint(&mut self.0, number);
        } else {
            let number = i64::try_from(number).unwrap_or(i64::MIN);
            let Ok(_) = rmp::encode::write_sint(&mut self.0, number);
        }
    }

    pub(super) fn write_f32(&mut self, number: f32) {
        let Ok(()) = rmp::encode::write_f32(&mut self.0, number);
    }

    pub(super) fn write_f64(&mut self, number: f64) {
        let Ok(()) = rmp::encode::write_f64(&mut self.0, number);
    }

    pub(super) fn write_str(&mut self, text: &str) {
        let Ok(()) = rmp::encode::write_str(&mut self.0, text);
    }

    pub(super) fn write_bin(&mut self, bytes: &[u8]) {
        let Ok(()) = rmp::encode::write_bin(&mut self.0, bytes);
    }

    pub(super) fn write_array_header(&mut self, count: usize) {
        let Ok(_) = rmp::encode::write_array_len(&mut self.0, count_u32(count));
    }

    pub(super) fn write_map_header(&mut self, count: usize) {
        let Ok(_) = rmp::encode::write_map_len(&mut self.0, count_u32(count));
    }
}

/// A count as msgpack stores it. A request's body is far below 2^32 bytes, and so is every count.
fn count_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
