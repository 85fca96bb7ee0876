//! The canonical form of JSON (RFC 8785): keys in UTF-16 order, no white space, numbers as
//! ECMAScript prints them.
//!
//! Two bundles have the same content exactly if their canonical forms are equal. As in the RFC, all
//! numbers are doubles: integers beyond 2^53 that round to the same double are equal.

use serde_json::Value;

/// The canonical form of a value whose nesting is already bounded.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    push_value(&mut out, value);
    out
}

fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => push_number(out, number.as_f64().unwrap_or_default()),
        Value::String(text) => push_string(out, text),
        Value::Array(items) => push_array(out, items),
        Value::Object(members) => push_object(out, members),
    }
}

fn push_array(out: &mut String, items: &[Value]) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_value(out, item);
    }
    out.push(']');
}

fn push_object(out: &mut String, members: &serde_json::Map<String, Value>) {
    let mut sorted: Vec<_> = members.iter().collect();
    // RFC 8785 orders by UTF-16, which differs from code points beyond U+FFFF.
    sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_string(out, key);
        out.push(':');
        push_value(out, value);
    }
    out.push('}');
}

/// Appends a JSON string with the fewest escapes that JSON allows.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = find_escaped(rest.as_bytes()) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        push_escape(out, tail.as_bytes().first().copied().unwrap_or_default());
        rest = tail.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

/// Finds the first byte that a JSON string must escape.
fn find_escaped(bytes: &[u8]) -> Option<usize> {
    const STRIDE: usize = 32;
    let escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // No branch per byte, so the compiler checks a whole stride with vector instructions.
    let clean = |stride: &[u8]| {
        !stride
            .iter()
            .fold(false, |dirty, byte| dirty | escaped(*byte))
    };
    let passed = bytes
        .chunks_exact(STRIDE)
        .take_while(|stride| clean(stride))
        .count()
        * STRIDE;
    bytes
        .iter()
        .skip(passed)
        .position(|byte| escaped(*byte))
        .map(|at| passed + at)
}

fn push_escape(out: &mut String, byte: u8) {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        b'\t' => out.push_str("\\t"),
        b'\n' => out.push_str("\\n"),
        0x0c => out.push_str("\\f"),
        b'\r' => out.push_str("\\r"),
        _ => {
            out.push_str("\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Appends a finite double as ECMAScript's `Number::toString` prints it.
fn push_number(out: &mut String, number: f64) {
    if number == 0.0 {
        out.push('0');
        return;
    }
    if number < 0.0 {
        out.push('-');
    }
    // Rust's shortest scientific form has the digits that ECMAScript asks for; only the layout
    // differs.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    push_digits(out, &digits, point);
}

/// Lays out `0.digits × 10^point`.
fn push_digits(out: &mut String, digits: &str, point: i32) {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |out: &mut String, n: i32| out.extend((0..n).map(|_| '0'));
    // As JavaScript prints them: without an exponent from 0.000001 up to 21 digits before the point.
    // The digits 125 become 12500 with point 5, 12.5 with 2, 0.0125 with -1 and 1.25e-8 with -7.
    let (whole, fraction) = digits.split_at(digits.len().min(usize::try_from(point).unwrap_or(0)));
    if (count..=21).contains(&point) {
        out.push_str(digits);
        zeros(out, point - count);
    } else if (1..=21).contains(&point) {
        out.push_str(whole);
        out.push('.');
        out.push_str(fraction);
    } else if (-5..=0).contains(&point) {
        out.push_str("0.");
        zeros(out, -point);
        out.push_str(digits);
    } else {
        push_exponent(out, digits, point - 1);
    }
}

fn push_exponent(out: &mut String, digits: &str, exponent: i32) {
    let (first, rest) = digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out.push_str(if exponent < 0 { "e-" } else { "e+" });
    out.push_str(&exponent.abs().to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_ecmascript_prints_them() {
        let check = |number: f64, expect: &str| {
            let mut out = String::new();
            push_number(&mut out, number);
            assert_eq!(out, expect);
        };
        // The samples of RFC 8785's appendix B, and the edges between the four layouts.
        check(0.0, "0");
        check(-0.0, "0");
        check(f64::from_bits(1), "5e-324");
        check(f64::from_bits(0x8000_0000_0000_0001), "-5e-324");
        check(f64::MAX, "1.7976931348623157e+308");
        check(9_007_199_254_740_992.0, "9007199254740992");
        check(295_147_905_179_352_830_000.0, "295147905179352830000");
        check(1e21, "1e+21");
        check(9.999_999_999_999_997e22, "9.999999999999997e+22");
        check(999_999_999_999_999_700_000.0, "999999999999999700000");
        check(333_333_333.333_333_3, "333333333.3333333");
        check(1e-6, "0.000001");
        check(1e-7, "1e-7");
        check(0.001_25, "0.00125");
        check(-1.5, "-1.5");
        check(4.5, "4.5");
        check(100.0, "100");
    }

    #[test]
    fn an_escape_is_found_at_every_place() {
        for length in 0..100 {
            for at in 0..length {
                for byte in ["\"", "\\", "\u{1f}"] {
                    let text = "é".repeat(at) + byte + &"x".repeat(length - at);
                    let mut out = String::new();
                    push_string(&mut out, &text);
                    assert_eq!(out, serde_json::to_string(&text).unwrap());
                }
            }
        }
    }

    #[test]
    fn keys_sort_by_utf16_and_strings_escape_as_little_as_possible() {
        let check = |text: &str, expect: &str| {
            assert_eq!(canonical(&serde_json::from_str(text).unwrap()), expect);
        };
        // U+FB33 sorts after U+1F600 in UTF-16, before it by code point.
        check(
            "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"b\":3,\"a\":4,\"\":5}",
            "{\"\":5,\"a\":4,\"b\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
        check(
            r#"[ "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\b\f\r\t\u007f" , null, true, false ]"#,
            "[\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\b\\f\\r\\t\u{7f}\",null,true,false]",
        );
        check(
            "[1.0, 1e0, 10E-1, 9007199254740993]",
            "[1,1,1,9007199254740992]",
        );
    }
}
