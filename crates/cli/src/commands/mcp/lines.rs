//! Messages from standard input, one a line.
//!
//! A line over the limit is not stored. It is still read to its end, because the next message starts
//! there, and its request id is extracted, so the caller learns which request failed.

use std::io::{BufRead, Read};

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::sync::mpsc;

/// The longest message.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Bytes of a request id that is picked out of a line over the limit.
const ID_BYTES_MAX: usize = 1024;
/// Lines that may wait while a message is answered.
const LINES_MAX: usize = 1;

/// A line of standard input.
#[derive(Debug, PartialEq)]
pub(super) enum InputLine {
    /// A message, perhaps.
    Message(Vec<u8>),
    /// One that is longer than [`MESSAGE_BYTES_MAX`].
    TooLong {
        /// The id of the request, if it has one.
        id: Option<Value>,
    },
}

/// Reads standard input on a thread of its own; the channel closes at its end.
///
/// The thread is not joined: nothing can end a read of standard input that has begun.
pub(super) fn read_standard_input() -> Result<mpsc::Receiver<Result<InputLine>>> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    let thread = std::thread::Builder::new().name("mcp-input".to_owned());
    thread.spawn(move || send_lines(&sender))?;
    Ok(lines)
}

/// Sends every line. Ends with the input, with an error, or when the receiver is gone.
fn send_lines(lines: &mpsc::Sender<Result<InputLine>>) {
    let mut input = std::io::stdin().lock();
    loop {
        let line = match read_line(&mut input) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error).context("cannot read standard input"),
        };
        let failed = line.is_err();
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

/// The next line; none at the end.
fn read_line(input: &mut impl BufRead) -> std::io::Result<Option<InputLine>> {
    let mut piece = read_piece(input)?;
    if piece.is_empty() {
        return Ok(None);
    }
    if piece.len() <= MESSAGE_BYTES_MAX {
        return Ok(Some(InputLine::Message(piece)));
    }
    let mut ids = IdFinder::default();
    ids.feed(&piece);
    // An empty piece is the end of the input, without an end of the line.
    while !piece.is_empty() && !piece.ends_with(b"\n") {
        piece = read_piece(input)?;
        ids.feed(&piece);
    }
    Ok(Some(InputLine::TooLong { id: ids.found_id() }))
}

/// Reads to the end of the line, but at most one byte more than the longest message.
fn read_piece(input: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    // That byte shows that the line is too long: one of exactly the limit is still a message.
    let bytes_max = MESSAGE_BYTES_MAX as u64 + 1;
    let mut piece = Vec::new();
    let mut bounded = input.by_ref().take(bytes_max);
    bounded.read_until(b'\n', &mut piece)?;
    Ok(piece)
}

/// Finds the value of the top-level key `id` in a JSON object that arrives in pieces.
///
/// Example: `{"params":{"id":1},"id":7}`. Inside `params` the depth is 2, so the first `id` does not
/// count. The second is a key at depth 1, and the bytes up to the next `,` or `}` are its value.
#[derive(Debug, Default)]
struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the next text at the top level is a value, not a key.
    at_value: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl IdFinder {
    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.keep_byte(byte);
            if self.in_string {
                self.read_in_string(byte);
            } else {
                self.read_outside(byte);
            }
        }
    }

    fn read_in_string(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
    }

    fn read_outside(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => self.at_value = true,
            b',' if self.depth == 1 => {
                self.at_value = false;
                self.key.clear();
            }
            _ => {}
        }
    }

    /// Stores a byte of a top-level key, or of the value of `id`.
    fn keep_byte(&mut self, byte: u8) {
        let is_mark = !self.in_string && matches!(byte, b'{' | b'}' | b':' | b',' | b'\r' | b'\n');
        if self.depth != 1 || is_mark {
            return;
        }
        let is_of_id = self.key.trim_ascii() == b"\"id\"";
        let kept = if self.at_value {
            &mut self.value
        } else {
            &mut self.key
        };
        if self.at_value && !is_of_id {
            return;
        }
        if kept.len() < ID_BYTES_MAX {
            kept.push(byte);
        }
    }

    fn found_id(&self) -> Option<Value> {
        let value: Value = serde_json::from_slice(&self.value).ok()?;
        (value.is_string() || value.is_number()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn long(before: &str, after: &str) -> String {
        format!("{before}{}{after}\n", "x".repeat(MESSAGE_BYTES_MAX))
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_its_id_is_found_wherever_it_stands() {
        for (before, after, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":1,"text":""#,
                r#""}}"#,
                Some(json!(7)),
            ),
            (
                r#"{"method":"m","params":{"id":1,"text":""#,
                r#""},"jsonrpc":"2.0","id":"a,}b"}"#,
                Some(json!("a,}b")),
            ),
            (
                r#"{"params":["\"id\":3,\\",""#,
                r#""], "id" : 9 }"#,
                Some(json!(9)),
            ),
            (
                r#"{"id":"say \"hi\"","params":""#,
                r#""}"#,
                Some(json!("say \"hi\"")),
            ),
            (r#"{"params":{"id":4,"text":""#, r#""}}"#, None),
            (r#"{"id":null,"text":""#, r#""}"#, None),
            ("", "", None),
        ] {
            let text = long(before, after) + "{}\n";
            let mut input = text.as_bytes();
            assert_eq!(
                read_line(&mut input).unwrap(),
                Some(InputLine::TooLong { id }),
                "{before}…{after}"
            );
            assert_eq!(
                read_line(&mut input).unwrap(),
                Some(InputLine::Message(b"{}\n".to_vec()))
            );
            assert_eq!(read_line(&mut input).unwrap(), None);
        }
    }

    #[test]
    fn the_longest_message_is_a_message() {
        let text = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(
            read_line(&mut text.as_bytes()).unwrap(),
            Some(InputLine::Message(text.into_bytes()))
        );
    }
}
