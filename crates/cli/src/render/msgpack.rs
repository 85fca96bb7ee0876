//! A compact text of msgpack without a type: like JSON, with the tags as numbers.
//!
//! Depth and length of the text are bounded, whatever lengths the bytes declare. A text that is cut
//! ends in `…`. Bytes that are not msgpack are shown as hex.

use rmp::Marker;
use rmp::decode;

use super::{printable, shorten_to_chars};

const NESTING_MAX: usize = 16;
const TEXT_CHARS_MAX: usize = 2000;
const BYTES_SHOWN_MAX: usize = 32;

/// The text of a payload: its msgpack, or its bytes if it is not msgpack.
pub(crate) fn show_payload(payload: &[u8]) -> String {
    if payload.is_empty() {
        return "(empty)".to_owned();
    }
    let mut rest = payload;
    let mut shown = String::new();
    match write_value(&mut rest, &mut shown, NESTING_MAX) {
        Ok(()) if rest.is_empty() => shown,
        Err(Stop::Full) => shorten_to_chars(&shown, TEXT_CHARS_MAX) + "…",
        _ => format!("{} (not msgpack)", hex_text(payload)),
    }
}

/// Why the text ended early.
enum Stop {
    /// Not msgpack.
    Bad,
    /// Enough has been shown.
    Full,
}

type Shown = Result<(), Stop>;

impl<E> From<decode::ValueReadError<E>> for Stop
where
    E: decode::RmpReadErr,
{
    fn from(_: decode::ValueReadError<E>) -> Self {
        Self::Bad
    }
}

fn write_value(rest: &mut &[u8], out: &mut String, nesting: usize) -> Shown {
    if out.len() > TEXT_CHARS_MAX || nesting == 0 {
        return Err(Stop::Full);
    }
    let marker = rest
        .first()
        .map(|byte| Marker::from_u8(*byte))
        .ok_or(Stop::Bad)?;
    match marker {
        Marker::Null => decode::read_nil(rest)
            .map_err(Into::into)
            .map(|()| out.push_str("null")),
        Marker::True | Marker::False => decode::read_bool(rest)
            .map_err(Into::into)
            .map(|on| push_display(out, on)),
        Marker::F32 => decode::read_f32(rest)
            .map_err(Into::into)
            .map(|number| push_display(out, number)),
        Marker::F64 => decode::read_f64(rest)
            .map_err(Into::into)
            .map(|number| push_display(out, number)),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            let len = decode::read_str_len(rest)?;
            take_bytes(rest, len).map(|text| out.push_str(&quote_text(text)))
        }
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
            let len = decode::read_bin_len(rest)?;
            take_bytes(rest, len).map(|blob| out.push_str(&hex_text(blob)))
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => write_array(rest, out, nesting),
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => write_map(rest, out, nesting),
        Marker::Reserved => Err(Stop::Bad),
        Marker::FixExt1
        | Marker::FixExt2
        | Marker::FixExt4
        | Marker::FixExt8
        | Marker::FixExt16
        | Marker::Ext8
        | Marker::Ext16
        | Marker::Ext32 => write_extension(rest, out),
        _ => write_integer(rest, out),
    }
}

fn push_display(out: &mut String, value: impl std::fmt::Display) {
    out.push_str(&value.to_string());
}

fn write_integer(rest: &mut &[u8], out: &mut String) -> Shown {
    // Most integers fit in i64. Only u64 holds the largest, and only i64 the negative ones.
    let before = *rest;
    if let Ok(number) = decode::read_int::<i64, _>(rest) {
        push_display(out, number);
        return Ok(());
    }
    *rest = before;
    let number = decode::read_int::<u64, _>(rest).map_err(|_| Stop::Bad)?;
    push_display(out, number);
    Ok(())
}

fn write_array(rest: &mut &[u8], out: &mut String, nesting: usize) -> Shown {
    let count = decode::read_array_len(rest)?;
    out.push('[');
    for index in 0..count {
        out.push_str(if index == 0 { "" } else { ", " });
        write_value(rest, out, nesting - 1)?;
    }
    out.push(']');
    Ok(())
}

fn write_map(rest: &mut &[u8], out: &mut String, nesting: usize) -> Shown {
    let count = decode::read_map_len(rest)?;
    out.push('{');
    for index in 0..count {
        out.push_str(if index == 0 { "" } else { ", " });
        write_value(rest, out, nesting - 1)?;
        out.push_str(": ");
        write_value(rest, out, nesting - 1)?;
    }
    out.push('}');
    Ok(())
}

fn write_extension(rest: &mut &[u8], out: &mut String) -> Shown {
    let meta = decode::read_ext_meta(rest)?;
    let data = take_bytes(rest, meta.size)?;
    push_display(
        out,
        format_args!("ext({}, {})", meta.typeid, hex_text(data)),
    );
    Ok(())
}

fn take_bytes<'a>(rest: &mut &'a [u8], len: u32) -> Result<&'a [u8], Stop> {
    let (taken, left) = rest.split_at_checked(len as usize).ok_or(Stop::Bad)?;
    *rest = left;
    Ok(taken)
}

fn quote_text(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => format!(
            "\"{}\"",
            printable(&shorten_to_chars(text, TEXT_CHARS_MAX)).replace('"', "\\\"")
        ),
        Err(_) => hex_text(text),
    }
}

/// Bytes as hex, cut when they are many.
fn hex_text(bytes: &[u8]) -> String {
    let shown = bytes
        .get(..BYTES_SHOWN_MAX.min(bytes.len()))
        .unwrap_or_default();
    let more = if bytes.len() > BYTES_SHOWN_MAX {
        format!("… ({} bytes)", bytes.len())
    } else {
        String::new()
    };
    format!("h'{}{more}'", hex::encode(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &[u8], expect: &str) {
        assert_eq!(show_payload(payload), expect);
    }

    #[test]
    fn msgpack_is_shown_like_json_and_anything_else_as_hex() {
        check(b"", "(empty)");
        check(&[0xc0], "null");
        check(
            &[0x82, 1, 0xa2, b'h', b'i', 2, 0x93, 0xff, 0xc3, 0xc4, 1, 9],
            r#"{1: "hi", 2: [-1, true, h'09']}"#,
        );
        check(
            &[0xcf, 255, 255, 255, 255, 255, 255, 255, 255],
            "18446744073709551615",
        );
        check(&[0xd4, 5, 1], "ext(5, h'01')");
        check(&[0xa3, b'a', 0x1b, b'"'], r#""a\u{1b}\"""#);
        check(&[0xa2, 0xff, 0xfe], "h'fffe'");
        check(&[0xc1], "h'c1' (not msgpack)");
        check(&[1, 2], "h'0102' (not msgpack)");
        check(&[0x92, 1], "h'9201' (not msgpack)");
    }

    #[test]
    fn what_the_bytes_declare_is_not_believed() {
        check(&[0xdd, 255, 255, 255, 255], "h'ddffffffff' (not msgpack)");
        check(
            &[0xdb, 255, 255, 255, 255, 1],
            "h'dbffffffff01' (not msgpack)",
        );
        let deep = [vec![0x91; 100_000], vec![0xc0]].concat();
        assert!(show_payload(&deep).len() < 100);
        let long = [vec![0xdc, 0x40, 0], vec![0xc0; 0x4000]].concat();
        assert!(show_payload(&long).chars().count() <= TEXT_CHARS_MAX + 10);
    }
}
