//! A strict JSON reader for bundles and other input that must be unambiguous.
//!
//! It rejects an object with the same key twice. Its result is part of the log's meaning: the same
//! bytes must be accepted or rejected for ever, so no library's next version may decide it. The
//! caller bounds the nesting, the input bounds the memory. It fails with the byte offset of the
//! first fault.

use serde_json::{Map, Number, Value};

/// Why bytes are rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// Not JSON.
    #[error("not JSON at byte {offset}: {what}")]
    Syntax {
        /// Where.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Containers nest deeper than allowed.
    #[error("nested too deeply at byte {offset}")]
    TooDeep {
        /// Where.
        offset: usize,
    },
    /// An object has the same key twice.
    #[error("the key `{key}` is there twice, again at byte {offset}")]
    DuplicateKey {
        /// Where.
        offset: usize,
        /// The key.
        key: String,
    },
}

/// Parses one JSON document with only white space around it.
pub fn parse(bytes: &[u8], nesting_max: usize) -> Result<Value, JsonFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonFault::Syntax {
        offset: error.valid_up_to(),
        what: "not UTF-8",
    })?;
    let mut reader = JsonReader {
        text,
        at: 0,
        nesting_max,
    };
    let value = reader.read_value(0)?;
    reader.skip_whitespace();
    if reader.at < text.len() {
        return Err(reader.syntax_error("bytes after the document"));
    }
    Ok(value)
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    nesting_max: usize,
}

impl<'a> JsonReader<'a> {
    fn syntax_error(&self, what: &'static str) -> JsonFault {
        JsonFault::Syntax {
            offset: self.at,
            what,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect_byte(&mut self, byte: u8, what: &'static str) -> Result<(), JsonFault> {
        self.skip_whitespace();
        if self.peek() != Some(byte) {
            return Err(self.syntax_error(what));
        }
        self.at += 1;
        Ok(())
    }

    fn read_value(&mut self, depth: usize) -> Result<Value, JsonFault> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'{') => self.read_object(depth + 1),
            Some(b'[') => self.read_array(depth + 1),
            Some(b'"') => self.read_string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.read_number(),
            Some(b't') => self.read_literal("true", Value::Bool(true)),
            Some(b'f') => self.read_literal("false", Value::Bool(false)),
            Some(b'n') => self.read_literal("null", Value::Null),
            _ => Err(self.syntax_error("expected a value")),
        }
    }

    fn read_literal(&mut self, word: &str, value: Value) -> Result<Value, JsonFault> {
        if !self.rest().starts_with(word) {
            return Err(self.syntax_error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn enter_container(&mut self, depth: usize) -> Result<(), JsonFault> {
        // Each level is a call of this parser, so the limit also bounds the stack.
        if depth > self.nesting_max {
            return Err(JsonFault::TooDeep { offset: self.at });
        }
        self.at += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn read_array(&mut self, depth: usize) -> Result<Value, JsonFault> {
        self.enter_container(depth)?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.read_value(depth)?);
            self.skip_whitespace();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect_byte(b']', "expected `,` or `]`")?;
            return Ok(Value::Array(items));
        }
    }

    fn read_object(&mut self, depth: usize) -> Result<Value, JsonFault> {
        self.enter_container(depth)?;
        let mut members = Map::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.read_member(&mut members, depth)?;
            self.skip_whitespace();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect_byte(b'}', "expected `,` or `}`")?;
            return Ok(Value::Object(members));
        }
    }

    fn read_member(
        &mut self,
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), JsonFault> {
        self.skip_whitespace();
        let offset = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.syntax_error("expected a key"));
        }
        let key = self.read_string()?;
        // Most readers keep the last value. Two programs could then read one bundle differently.
        if members.contains_key(&key) {
            return Err(JsonFault::DuplicateKey { offset, key });
        }
        self.expect_byte(b':', "expected `:`")?;
        let value = self.read_value(depth)?;
        members.insert(key, value);
        Ok(())
    }

    fn read_string(&mut self) -> Result<String, JsonFault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            // Copies whole stretches between escapes instead of single characters.
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => text.push(self.read_escape()?),
                Some(_) => return Err(self.syntax_error("control character in a string")),
                None => return Err(self.syntax_error("unterminated string")),
            }
        }
        self.at += 1;
        Ok(text)
    }

    fn read_escape(&mut self) -> Result<char, JsonFault> {
        self.at += 1;
        let escaped = match self.peek() {
            Some(b'u') => return self.read_unicode_escape(),
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.syntax_error("unknown escape")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn read_unicode_escape(&mut self) -> Result<char, JsonFault> {
        // Characters beyond U+FFFF are two escapes: a high and a low surrogate.
        let high = self.read_code_unit()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or_else(|| self.syntax_error("lone surrogate"));
        }
        if !self.rest().starts_with("\\u") {
            return Err(self.syntax_error("lone surrogate"));
        }
        self.at += 1;
        let low = self.read_code_unit()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(self.syntax_error("lone surrogate"));
        }
        let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        char::from_u32(scalar).ok_or_else(|| self.syntax_error("lone surrogate"))
    }

    /// Reads `uXXXX`; `at` points to the `u`.
    fn read_code_unit(&mut self) -> Result<u32, JsonFault> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let unit = digits
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.syntax_error("expected four hex digits"))?;
        self.at += 5;
        Ok(unit)
    }

    fn read_number(&mut self) -> Result<Value, JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.read_digits()?;
        // JSON forbids it: some readers take `010` for an octal number.
        if leading_zero && whole > 1 {
            return Err(self.syntax_error("leading zero"));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.read_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.read_digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        number_value(text, integer).ok_or_else(|| self.syntax_error("number out of range"))
    }

    fn read_digits(&mut self) -> Result<usize, JsonFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax_error("expected a digit"));
        }
        Ok(self.at - start)
    }
}

fn number_value(text: &str, integer: bool) -> Option<Value> {
    if integer {
        if let Ok(number) = text.parse::<u64>() {
            return Some(number.into());
        }
        if let Ok(number) = text.parse::<i64>() {
            return Some(number.into());
        }
    }
    text.parse()
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lenient_reader_accepts_is_accepted_unless_it_is_not_json() {
        for good in [
            "null",
            " [1, -2.5e3 ,true,false] ",
            r#"{"a":{"b":[]},"c":"\u00e9\ud83d\ude00\n\/"}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "0",
            "1e-400",
        ] {
            let expect: Value = serde_json::from_str(good).unwrap();
            assert_eq!(parse(good.as_bytes(), 128), Ok(expect), "{good}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_offset() {
        let check = |text: &[u8], offset: usize| match parse(text, 128) {
            Err(JsonFault::Syntax { offset: at, .. }) => assert_eq!(at, offset, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        };
        check(b"", 0);
        check(b"{", 1);
        check(b"[1,]", 3);
        check(b"{\"a\":1,}", 7);
        check(b"{\"a\" 1}", 5);
        check(b"01", 2);
        check(b"1.", 2);
        check(b"-", 1);
        check(b"1e999", 5);
        check(b"nul", 0);
        check(b"\"\x01\"", 1);
        check(b"\"\\x\"", 2);
        check(b"\"\\u12", 2);
        check(b"\"\\ud800\"", 7);
        check(b"\"\\udc00\"", 7);
        check(b"\"abc", 4);
        check(b"1 2", 2);
        check(b"\xff", 0);
        check(b"\xef\xbb\xbf{}", 0);
    }

    #[test]
    fn a_key_twice_is_noticed_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert!(
                matches!(parse(text.as_bytes(), 128), Err(JsonFault::DuplicateKey { key, .. }) if key == "a")
            );
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(128).as_bytes(), 128).is_ok());
        assert_eq!(
            parse(nested(129).as_bytes(), 128),
            Err(JsonFault::TooDeep { offset: 128 })
        );
        assert!(matches!(
            parse("[".repeat(1 << 20).as_bytes(), 128),
            Err(JsonFault::TooDeep { .. })
        ));
    }
}
