//! Writes scalars as JSON text.
//!
//! Numbers keep their exact value: one that JavaScript would round becomes a string where the
//! caller asks for it, and non-finite floats become the strings `NaN`, `Infinity` and `-Infinity`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::options::BytesRender;
use crate::registry::push_string;

/// The greatest integer that JavaScript represents exactly: 2^53 - 1.
const SAFE_MAX: i128 = (1 << 53) - 1;

/// Appends a whole number.
pub(crate) fn push_int(out: &mut String, number: i128) {
    if number < 0 {
        out.push('-');
    }
    match u64::try_from(number.unsigned_abs()) {
        Ok(magnitude) => push_u64(out, magnitude),
        Err(_) => out.push_str(&number.unsigned_abs().to_string()),
    }
}

fn push_u64(out: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        first = at;
        if number == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[first..]).unwrap_or_default());
}

/// Appends a whole number as a JSON string.
pub(crate) fn push_int_string(out: &mut String, number: i128) {
    out.push('"');
    push_int(out, number);
    out.push('"');
}

/// Appends an integer, as a string if JavaScript would round it (beyond 2^53 - 1).
pub(crate) fn push_safe_int(out: &mut String, number: i128) {
    if (-SAFE_MAX..=SAFE_MAX).contains(&number) {
        push_int(out, number);
    } else {
        push_int_string(out, number);
    }
}

/// Appends a float, in the fewest digits that read back as the same double.
pub(crate) fn push_f64(out: &mut String, number: f64) {
    let text = format!("{number:?}");
    match non_finite(number) {
        Some(word) => push_string(out, word),
        None => out.push_str(&text),
    }
}

/// Appends a float, in the fewest digits that read back as the same single.
pub(crate) fn push_f32(out: &mut String, number: f32) {
    let text = format!("{number:?}");
    match non_finite(number.into()) {
        Some(word) => push_string(out, word),
        None => out.push_str(&text),
    }
}

/// The string for a float that JSON has no number for.
pub(crate) fn non_finite(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Appends bytes as a JSON value.
pub(crate) fn push_bytes(out: &mut String, bytes: &[u8], render: BytesRender) {
    if render == BytesRender::LenOnly {
        return push_int(out, bytes.len() as i128);
    }
    out.push('"');
    push_bytes_text(out, bytes, render);
    out.push('"');
}

/// Appends bytes as text that no other bytes have: keys must stay distinct even with `LenOnly`.
pub(crate) fn push_bytes_text(out: &mut String, bytes: &[u8], render: BytesRender) {
    match render {
        BytesRender::Hex => out.push_str(&hex::encode(bytes)),
        BytesRender::Base64 | BytesRender::LenOnly => STANDARD.encode_string(bytes, out),
    }
}
