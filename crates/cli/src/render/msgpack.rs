//! A compact text of msgpack that no type describes: like JSON, with tags as they are.
//!
//! Bounded in depth, in elements and in length, whatever the bytes declare; what is cut ends in
//! `…`, and bytes that are not msgpack are shown as hex.

use turnkeep_types::msgpack::{MsgpackError, MsgpackReader, Token};

use super::{printable, shorten};

const NESTING_MAX: usize = 16;
const TEXT_CHARS_MAX: usize = 2000;
const BYTES_SHOWN_MAX: usize = 32;

/// Shows a payload: its msgpack, or its bytes if it is none.
pub(crate) fn text(payload: &[u8]) -> String {
    if payload.is_empty() {
        return "(empty)".to_owned();
    }
    let mut reader = MsgpackReader::new(payload);
    let mut shown = String::new();
    match show_value(&mut reader, &mut shown, NESTING_MAX) {
        Ok(()) if reader.unread().is_empty() => shown,
        Err(Stop::Full) => shorten(&shown, TEXT_CHARS_MAX) + "…",
        _ => format!("{} (not msgpack)", bytes(payload)),
    }
}

/// Why showing ended early.
enum Stop {
    /// Not msgpack.
    Bad,
    /// Enough has been shown.
    Full,
}

impl From<MsgpackError> for Stop {
    fn from(_: MsgpackError) -> Self {
        Self::Bad
    }
}

fn show_value(
    reader: &mut MsgpackReader<'_>,
    out: &mut String,
    nesting: usize,
) -> Result<(), Stop> {
    if out.len() > TEXT_CHARS_MAX || nesting == 0 {
        return Err(Stop::Full);
    }
    match reader.read_token()? {
        Token::Nil => out.push_str("null"),
        Token::Bool(on) => push(out, on),
        Token::Int(number) => push(out, number),
        Token::F32(number) => push(out, number),
        Token::F64(number) => push(out, number),
        Token::Str(text) => out.push_str(&quoted(text)),
        Token::Bin(blob) => out.push_str(&bytes(blob)),
        Token::Ext(kind, data) => push(out, format_args!("ext({kind}, {})", bytes(data))),
        Token::Array(count) => show_array(reader, out, count, nesting)?,
        Token::Map(count) => show_map(reader, out, count, nesting)?,
    }
    Ok(())
}

fn push(out: &mut String, value: impl std::fmt::Display) {
    out.push_str(&value.to_string());
}

fn show_array(
    reader: &mut MsgpackReader<'_>,
    out: &mut String,
    count: u32,
    nesting: usize,
) -> Result<(), Stop> {
    out.push('[');
    for index in 0..count {
        out.push_str(if index == 0 { "" } else { ", " });
        show_value(reader, out, nesting - 1)?;
    }
    out.push(']');
    Ok(())
}

fn show_map(
    reader: &mut MsgpackReader<'_>,
    out: &mut String,
    count: u32,
    nesting: usize,
) -> Result<(), Stop> {
    out.push('{');
    for index in 0..count {
        out.push_str(if index == 0 { "" } else { ", " });
        show_value(reader, out, nesting - 1)?;
        out.push_str(": ");
        show_value(reader, out, nesting - 1)?;
    }
    out.push('}');
    Ok(())
}

fn quoted(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => format!(
            "\"{}\"",
            printable(&shorten(text, TEXT_CHARS_MAX)).replace('"', "\\\"")
        ),
        Err(_) => bytes(text),
    }
}

/// Bytes as hex, cut when they are many.
fn bytes(bytes: &[u8]) -> String {
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
        assert_eq!(text(payload), expect);
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
        assert!(text(&deep).len() < 100);
        let long = [vec![0xdc, 0x40, 0], vec![0xc0; 0x4000]].concat();
        assert!(text(&long).chars().count() <= TEXT_CHARS_MAX + 10);
    }
}
