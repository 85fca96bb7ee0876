//! How deep JSON nests and how much memory its values take, from its bytes, before anything is
//! built.

/// The deepest nesting that is ever taken, whatever the limit says: what the log holds is read back
/// with this bound.
pub(crate) const NESTING_MAX: usize = 128;

/// How deep brackets nest outside of strings, in bytes that may be JSON.
pub(crate) fn nesting(bytes: &[u8]) -> u64 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_u64, 0, false, false);
    // The bytes may be no JSON. Then the depth means nothing, and the parser rejects them anyway.
    for byte in bytes {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'[' | b'{', false) => depth += 1,
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// What one value or key takes in memory besides its text, at most: the value, the key's string,
/// and the growth of the list or map that holds it.
const VALUE_BYTES: usize = 80;

/// About how much memory the values of JSON text take, besides the text of its strings. Short
/// values take far more than their text: `[0,0,0]` takes two bytes of text and dozens of bytes of
/// memory for each.
pub(crate) fn parsed_bytes(bytes: &[u8]) -> usize {
    let (mut values, mut in_string, mut escaped) = (1_usize, false, false);
    for byte in bytes {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'[' | b'{' | b',' | b':', false) => values += 1,
            _ => {}
        }
    }
    values.saturating_mul(VALUE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_and_key_counts_and_text_does_not() {
        fn check(text: &str, values: usize) {
            assert_eq!(
                parsed_bytes(text.as_bytes()),
                values * VALUE_BYTES,
                "{text}"
            );
        }
        check("1", 1);
        check("[1,2,3]", 4);
        check("{\"a\":1,\"b\":[]}", 6);
        check("\"[,,,:\\\",\"", 1);
    }

    #[test]
    fn nesting_counts_brackets_outside_of_strings() {
        fn check(text: &str, expect: u64) {
            assert_eq!(nesting(text.as_bytes()), expect, "{text}");
        }
        check("", 0);
        check("[{}]", 2);
        check("[][][]", 1);
        check("\"[[[\"", 0);
        check("{\"a\\\"[\":[1]}", 2);
        check("]]][", 1);
    }
}
