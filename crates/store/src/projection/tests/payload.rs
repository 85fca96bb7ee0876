//! Msgpack by hand, so that tests can write what no encoder would.

use rmp::encode as mp;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

pub(super) fn nil() -> Vec<u8> {
    vec![0xc0]
}

pub(super) fn boolean(flag: bool) -> Vec<u8> {
    vec![if flag { 0xc3 } else { 0xc2 }]
}

pub(super) fn int(number: i128) -> Vec<u8> {
    written(|out| match u64::try_from(number) {
        Ok(number) => drop(mp::write_uint(out, number).unwrap()),
        Err(_) => drop(mp::write_sint(out, i64::try_from(number).unwrap()).unwrap()),
    })
}

pub(super) fn float(number: f64) -> Vec<u8> {
    written(|out| mp::write_f64(out, number).unwrap())
}

pub(super) fn single(number: f32) -> Vec<u8> {
    written(|out| mp::write_f32(out, number).unwrap())
}

pub(super) fn text(text: &str) -> Vec<u8> {
    raw_str(text.as_bytes())
}

pub(super) fn raw_str(bytes: &[u8]) -> Vec<u8> {
    written(|out| {
        mp::write_str_len(out, u32::try_from(bytes.len()).unwrap()).unwrap();
        out.extend_from_slice(bytes);
    })
}

pub(super) fn bin(bytes: &[u8]) -> Vec<u8> {
    written(|out| mp::write_bin(out, bytes).unwrap())
}

pub(super) fn array(items: &[Vec<u8>]) -> Vec<u8> {
    written(|out| {
        mp::write_array_len(out, u32::try_from(items.len()).unwrap()).unwrap();
        for item in items {
            out.extend_from_slice(item);
        }
    })
}

pub(super) fn map(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    written(|out| {
        mp::write_map_len(out, u32::try_from(entries.len()).unwrap()).unwrap();
        for (key, value) in entries {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
    })
}

/// A map with tags.
pub(super) fn tagged(fields: &[(u64, &[u8])]) -> Vec<u8> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(tag, value)| (int((*tag).into()), value.to_vec()))
        .collect();
    map(&fields)
}
