//! Warnings: where a payload is not what its descriptor says, though it can be shown.
//!
//! There are at most `WARNINGS_MAX` of them, with paths of bounded length, however bad the payload
//! is.

use super::msgpack::Token;
use super::options::BytesRender;
use super::text::{push_bytes_text, push_f64, push_int, push_safe_int};
use crate::registry::{Field, push_string};

/// Warnings kept for one payload.
const WARNINGS_MAX: usize = 64;
/// The longest path of a warning, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// One place where a payload is not what its descriptor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The innermost tag that it stands under; none for a key that is no tag.
    pub tag: Option<u64>,
    /// The way there by names: `author.links[3]["home"]`.
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

/// One step on the way from the payload to a value.
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

/// The way from the payload to the value that is being shown.
#[derive(Debug, Default)]
pub(super) struct Path<'a>(pub(super) Vec<Step<'a>>);

impl Path<'_> {
    /// The path as text. Only as long as it is asked for is it made.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            if text.len() > PATH_BYTES_MAX {
                break;
            }
            step.push(&mut text);
        }
        truncate_path(&mut text);
        text
    }

    fn tag(&self) -> Option<u64> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Field(field) => Some(field.tag),
            Step::Unknown(tag) => Some(*tag),
            Step::Data | Step::Index(_) | Step::Key(_) => None,
        })
    }
}

impl Step<'_> {
    fn push(&self, text: &mut String) {
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
                push_key(text, head(*key), BytesRender::Base64);
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

/// As much of a key as a path can show: the rest is not even looked at, since paths are made often.
fn head(key: Token<'_>) -> Token<'_> {
    // Without a character that the cut goes through, what is left is still longer than a path.
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

/// Cuts a text to a path's length.
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
    /// Adds a warning about the value at `path`. The message is made only if there is room.
    pub(super) fn add(&mut self, path: &Path<'_>, message: impl FnOnce() -> String) {
        if self.list.len() >= WARNINGS_MAX {
            self.left_out += 1;
            return;
        }
        let mut message = message();
        truncate_path(&mut message);
        self.list.push(Warning {
            tag: path.tag(),
            path: path.text(),
            message,
        });
    }

    /// All warnings, and how many were left out.
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
        Step::Key(key).push(&mut text);
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
                assert_eq!(path.text(), expect);
                assert!(pushed(Token::Str(long.as_bytes())).len() < PATH_BYTES_MAX + 16);
            }
        }
        assert!(pushed(Token::Bin(&vec![0; 1 << 20])).len() < 2 * PATH_BYTES_MAX);
        assert!(pushed(Token::Str(&vec![0xff; 1 << 20])).len() < 2 * PATH_BYTES_MAX);
        assert!(pushed(Token::Str(&vec![1; 1 << 20])).len() < 7 * PATH_BYTES_MAX);
    }

    #[test]
    fn what_is_beyond_the_beginning_of_a_key_is_not_looked_at() {
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
