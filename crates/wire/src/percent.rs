//! Percent-encoding for URLs.

/// Encodes a text as a path segment or a query value.
pub fn percent_encode(text: &str) -> String {
    // The unreserved characters of RFC 3986. Any other character may be a separator somewhere.
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn everything_but_unreserved_letters_is_encoded() {
        for (text, expect) in [
            ("", ""),
            ("aZ09-._~", "aZ09-._~"),
            ("1 2", "1%202"),
            ("#/é", "%23%2F%C3%A9"),
        ] {
            assert_eq!(percent_encode(text), expect, "{text}");
        }
    }
}
