//! Writes a message's map. Maps and lists have a count of at least two bytes, all other values their
//! shortest form.
//!
//! A map's count comes before its fields, and optional fields make it unknown until the last one.
//! So the writer reserves two bytes for the count and updates them with each field.

use turnkeep_types::msgpack::MsgpackWriter;

/// A map whose fields are counted as they are written.
pub(super) struct MapWriter<'a> {
    out: &'a mut MsgpackWriter,
    header_at: usize,
    count: u16,
}

impl<'a> MapWriter<'a> {
    /// Begins a map at the end of `out`.
    pub(super) fn begin(out: &'a mut MsgpackWriter) -> Self {
        let header_at = out.write_uncounted_map_header();
        Self {
            out,
            header_at,
            count: 0,
        }
    }

    fn put_key(&mut self, name: &str) {
        self.count += 1;
        self.out.write_str(name);
        // The count is always up to date, so a map needs no closing call.
        self.out.set_map_count(self.header_at, self.count);
    }

    /// Writes the two fields that begin every message. Notifications answer no request: their id is
    /// 0.
    pub(super) fn put_head(&mut self, kind: &str, id: u32) -> &mut Self {
        self.put_text("type", kind).put_number("id", id.into())
    }

    pub(super) fn put_text(&mut self, name: &str, value: &str) -> &mut Self {
        self.put_key(name);
        self.out.write_str(value);
        self
    }

    pub(super) fn put_text_if(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.put_text(name, value);
        }
        self
    }

    pub(super) fn put_number(&mut self, name: &str, value: u64) -> &mut Self {
        self.put_key(name);
        self.out.write_uint(value);
        self
    }

    /// Writes a count unless it is zero.
    pub(super) fn put_count_if(&mut self, name: &str, count: u32) -> &mut Self {
        self.put_number_if(name, (count > 0).then(|| count.into()))
    }

    pub(super) fn put_number_if(&mut self, name: &str, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            self.put_number(name, value);
        }
        self
    }

    pub(super) fn put_flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.put_key(name);
        self.out.write_bool(value);
        self
    }

    /// Writes a flag only if it is set. Absent means not set.
    pub(super) fn put_flag_if(&mut self, name: &str, value: bool) -> &mut Self {
        if value {
            self.put_flag(name, true);
        }
        self
    }

    pub(super) fn put_binary(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.put_key(name);
        self.out.write_bin(value);
        self
    }

    pub(super) fn put_binary_if(&mut self, name: &str, value: Option<&[u8]>) -> &mut Self {
        if let Some(value) = value {
            self.put_binary(name, value);
        }
        self
    }

    /// Writes a list of maps.
    pub(super) fn put_maps<T>(
        &mut self,
        name: &str,
        items: &[T],
        each: fn(&T, &mut MapWriter<'_>),
    ) {
        self.put_key(name);
        self.out.write_wide_array_header(items.len());
        for item in items {
            each(item, &mut MapWriter::begin(self.out));
        }
    }
}
