//! Warnings: where a payload contradicts its descriptor and can be shown all the same.
//!
//! There are at most `WARNINGS_MAX` warnings with paths of bounded length, however bad the payload.

use turnkeep_types::msgpack::Token;

use super::options::BytesRender;
use super::text::{push_bytes_text, push_f64, push_int, push_safe_int};
use crate::registry::{Field, push_string};

/// Warnings kept for one payload.
const WARNINGS_MAX: usize = 64;
/// The longest path of a warning, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// One place where a payload contradicts its descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The innermost tag on the path; `None` if the path has no tag.
    pub tag: Option<u64>,
    /// The path by names: `author.links[3]["home"]`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Warning {
    /// Appends `{tag, path, message}`.
    pub(super) fn push_json(&self, out: &mut String) {
        out.push_str("{\"tag\":");
        match self.tag {
            Some(tag) => push_safe_int(out, tag.into()),
            None => out.push_str("null"),
        }
        out.push_str(",\"path\":");
        push_string(out, &self.path);
        out.push_str(",\"message\":");
        push_string(out, &self.message);
        out.push('}');
    }
}

/// One step of a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// Into a field.
    Field(&'a Field),
    /// Into an entry whose tag the descriptor does not know.
    Unknown(u64),
    /// Into the payload of a typed blob.
    Data,
    /// Into an array.
    Index(u32),
    /// Into a map.
    Key(Token<'a>),
}

/// The path from the payload to the current value.
#[derive(Debug, Default)]
pub(super) struct Path<'a>(pub(super) Vec<Step<'a>>);

impl Path<'_> {
    /// Builds the path as text, truncated to a bounded length.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            if text.len() > PATH_BYTES_MAX {
                break;
            }
            step.push_text(&mut text);
        }
        truncate_path(&mut text);
        text
    }

    fn innermost_tag(&self) -> Option<u64> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Field(field) => Some(field.tag),
            Step::Unknown(tag) => Some(*tag),
            Step::Data | Step::Index(_) | Step::Key(_) => None,
        })
    }
}

impl Step<'_> {
    fn push_text(&self, text: &mut String) {
        match self {
            Self::Field(field) => push_name(text, &field.name),
            Self::Unknown(tag) => push_name(text, &tag.to_string()),
            Self::Data => push_name(text, "data"),
            Self::Index(index) => {
                text.push('[');
                push_int(text, (*index).into());
                text.push(']');
            }
            Self::Key(key) => {
                text.push('[');
                push_key(text, shorten_key(*key), BytesRender::Base64);
                text.push(']');
            }
        }
    }
}

fn push_name(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('.');
    }
    text.push_str(name);
}

/// The beginning of a key that a path can show. Paths are built often, so the rest of a long key is
/// not read.
fn shorten_key(key: Token<'_>) -> Token<'_> {
    // Four bytes more than a path: after a character that the cut splits is dropped, the rest is
    // still longer than a path.
    const HEAD_BYTES_MAX: usize = PATH_BYTES_MAX + 4;
    let cut = |raw| <[u8]>::get(raw, ..HEAD_BYTES_MAX).unwrap_or(raw);
    match key {
        Token::Str(raw) => Token::Str(match std::str::from_utf8(cut(raw)) {
            Err(fault) if fault.error_len().is_none() && raw.len() > HEAD_BYTES_MAX => {
                raw.get(..fault.valid_up_to()).unwrap_or(raw)
            }
            _ => cut(raw),
        }),
        Token::Bin(raw) => Token::Bin(cut(raw)),
        Token::Ext(kind, raw) => Token::Ext(kind, cut(raw)),
        scalar => scalar,
    }
}

/// Truncates a text to the longest path.
pub(super) fn truncate_path(text: &mut String) {
    if text.len() > PATH_BYTES_MAX {
        text.truncate(text.floor_char_boundary(PATH_BYTES_MAX));
        text.push('…');
    }
}

/// Appends a map's key as a JSON string.
pub(super) fn push_key(out: &mut String, key: Token<'_>, bytes: BytesRender) {
    if let Token::Str(text) = key
        && let Ok(text) = std::str::from_utf8(text)
    {
        return push_string(out, text);
    }
    out.push('"');
    match key {
        Token::Int(number) => push_int(out, number),
        Token::Bool(flag) => out.push_str(if flag { "true" } else { "false" }),
        Token::F32(number) => push_float_key(out, number.into()),
        Token::F64(number) => push_float_key(out, number),
        Token::Str(raw) | Token::Bin(raw) | Token::Ext(_, raw) => push_bytes_text(out, raw, bytes),
        Token::Nil | Token::Array(_) | Token::Map(_) => out.push_str("null"),
    }
    out.push('"');
}

fn push_float_key(out: &mut String, number: f64) {
    match super::text::non_finite(number) {
        Some(word) => out.push_str(word),
        None => push_f64(out, number),
    }
}

/// The warnings of one projection.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    list: Vec<Warning>,
    left_out: usize,
}

impl Warnings {
    /// Adds a warning about the value at `path`. Builds the message only if the limit allows it.
    pub(super) fn add(&mut self, path: &Path<'_>, message: impl FnOnce() -> String) {
        if self.list.len() >= WARNINGS_MAX {
            self.left_out += 1;
            return;
        }
        let mut message = message();
        truncate_path(&mut message);
        self.list.push(Warning {
            tag: path.innermost_tag(),
            path: path.to_text(),
            message,
        });
    }

    /// Returns all warnings. The last one tells how many were left out.
    pub(super) fn finish(mut self) -> Vec<Warning> {
        if self.left_out > 0 {
            let message = format!("{} more warnings are left out", self.left_out);
            self.list.push(Warning {
                tag: None,
                path: String::new(),
                message,
            });
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(key: Token<'_>) -> String {
        let mut text = String::new();
        Step::Key(key).push_text(&mut text);
        text
    }

    #[test]
    fn a_path_takes_only_the_beginning_of_a_long_key() {
        for unit in ["k", "é", "€", "😀", "a😀"] {
            for shift in ["", "x", "xx", "xxx"] {
                let long = shift.to_owned() + &unit.repeat(1 << 16);
                let path = Path(vec![Step::Key(Token::Str(long.as_bytes()))]);
                let mut expect = format!("[\"{long}\"]");
                truncate_path(&mut expect);
                assert_eq!(path.to_text(), expect);
                assert!(pushed(Token::Str(long.as_bytes())).len() < PATH_BYTES_MAX + 16);
            }
        }
        assert!(pushed(Token::Bin(&vec![0; 1 << 20])).len() < 2 * PATH_BYTES_MAX);
        assert!(pushed(Token::Str(&vec![0xff; 1 << 20])).len() < 2 * PATH_BYTES_MAX);
        assert!(pushed(Token::Str(&vec![1; 1 << 20])).len() < 7 * PATH_BYTES_MAX);
    }

    #[test]
    fn the_rest_of_a_long_key_is_not_read() {
        let mut long = vec![b'k'; 1 << 20];
        long.push(0xff);
        assert!(pushed(Token::Str(&long)).starts_with("[\"kkkk"));
    }

    #[test]
    fn a_key_that_is_cut_off_by_itself_is_bytes() {
        assert_eq!(pushed(Token::Str(&[b'a', 0xf0, 0x9f])), "[\"YfCf\"]");
        let mut exact = vec![b'a'; PATH_BYTES_MAX + 3];
        exact.push(0xf0);
        assert!(pushed(Token::Str(&exact)).starts_with("[\"YWFh"));
    }
}
