//! How deep JSON nests, told from its bytes before anything is built from them.

/// The deepest nesting that is ever taken, whatever the limit says: what the log holds is read back
/// with this bound.
pub(crate) const NESTING_MAX: usize = 128;

/// How deep brackets nest outside of strings, in bytes that may be JSON.
pub(crate) fn nesting(bytes: &[u8]) -> u64 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_u64, 0, false, false);
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

#[cfg(test)]
mod tests {
    use super::*;

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
