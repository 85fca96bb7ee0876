//! Responses with an entity tag: conditional requests and single ranges.
//!
//! A request for several ranges gets all bytes, which HTTP allows. A malformed range is ignored, as
//! HTTP requires.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;

/// For bytes that never change under their name.
pub(crate) const IMMUTABLE: &str = "private, max-age=31536000, immutable";
/// For bytes that may change: the client asks each time whether they did.
pub(crate) const REVALIDATE: &str = "private, no-cache";

/// The bytes to send, before conditions and ranges.
#[derive(Debug)]
pub(crate) struct Content {
    /// The entity tag, quoted.
    pub(crate) etag: String,
    /// The media type.
    pub(crate) media_type: &'static str,
    /// The value of Cache-Control.
    pub(crate) cache: &'static str,
    /// All bytes.
    pub(crate) bytes: Bytes,
}

impl Content {
    /// The response to a GET with these headers: all bytes, a range, or 304.
    pub(crate) fn respond(self, request: &HeaderMap) -> Response {
        if let Some(response) = not_modified(request, &self.etag, self.cache) {
            return response;
        }
        let len = self.bytes.len() as u64;
        // With If-Range, a client that holds an older part must get the whole content, or it would
        // join two versions.
        let wanted = header_text(request, &RANGE)
            .filter(|_| header_text(request, &IF_RANGE).is_none_or(|tag| tag == self.etag));
        let mut response = match parse_range(wanted, len) {
            Range::Whole => Body::from(self.bytes).into_response(),
            Range::Part { start, end } => partial_response(&self.bytes, start, end),
            Range::Unsatisfiable => return unsatisfiable_response(len),
        };
        add_headers(&mut response, &self.etag, self.media_type, self.cache);
        accept_ranges(&mut response);
        response
    }

    /// The response to a GET that supports no ranges: all bytes, or 304.
    pub(crate) fn respond_whole(self, request: &HeaderMap) -> Response {
        if let Some(response) = not_modified(request, &self.etag, self.cache) {
            return response;
        }
        let mut response = Body::from(self.bytes).into_response();
        add_headers(&mut response, &self.etag, self.media_type, self.cache);
        response
    }
}

/// A response whose body is JSON text already.
pub(crate) fn respond_with_json_text(text: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, "application/json")], text.into()).into_response()
}

/// The response to a HEAD for `len` bytes.
pub(crate) fn respond_to_head(
    request: &HeaderMap,
    etag: &str,
    media_type: &'static str,
    len: u64,
) -> Response {
    if let Some(response) = not_modified(request, etag, IMMUTABLE) {
        return response;
    }
    let mut response = [(CONTENT_LENGTH, len.to_string())].into_response();
    add_headers(&mut response, etag, media_type, IMMUTABLE);
    accept_ranges(&mut response);
    response
}

/// The 304, if the request names this entity tag.
pub(crate) fn not_modified(
    request: &HeaderMap,
    etag: &str,
    cache: &'static str,
) -> Option<Response> {
    let mut held = request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    if !held.any(|tags| lists_tag(tags, etag)) {
        return None;
    }
    let headers = [(ETAG, etag.to_owned()), (CACHE_CONTROL, cache.to_owned())];
    Some((StatusCode::NOT_MODIFIED, headers).into_response())
}

fn add_headers(response: &mut Response, etag: &str, media_type: &str, cache: &str) {
    let fields = [
        (ETAG, etag),
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, cache),
    ];
    for (name, value) in fields {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
}

fn accept_ranges(response: &mut Response) {
    response
        .headers_mut()
        .insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

fn partial_response(bytes: &Bytes, start: u64, end: u64) -> Response {
    let len = bytes.len();
    let fit = |offset: u64| usize::try_from(offset).map_or(len, |offset| offset.min(len));
    let part = bytes.slice(fit(start)..fit(end));
    // The header names the last byte of the range, not the one behind it.
    let headers = [(CONTENT_RANGE, format!("bytes {start}-{}/{len}", end - 1))];
    (StatusCode::PARTIAL_CONTENT, headers, part).into_response()
}

fn unsatisfiable_response(len: u64) -> Response {
    let error = ApiError::new(
        ErrorCode::RangeNotSatisfiable,
        format!("no byte of the range exists: there are {len}"),
    );
    ([(CONTENT_RANGE, format!("bytes */{len}"))], error).into_response()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a list of entity tags names this one. Weak tags count: the bytes are the same.
fn lists_tag(tags: &str, etag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Whole,
    /// From `start` up to, not including, `end`; never empty.
    Part {
        start: u64,
        end: u64,
    },
    Unsatisfiable,
}

fn parse_range(header: Option<&str>, len: u64) -> Range {
    let spec = header
        .and_then(|text| text.trim().strip_prefix("bytes="))
        .map(str::trim);
    let Some((first, last)) = spec.and_then(|spec| spec.split_once('-')) else {
        return Range::Whole;
    };
    let bounds = match (parse_number(first), parse_number(last)) {
        // HTTP calls this range invalid, not unsatisfiable, so it is ignored.
        (Some(start), Some(last)) if last < start => return Range::Whole,
        (Some(start), Some(last)) => (start, last.saturating_add(1).min(len)),
        (Some(start), None) if last.is_empty() => (start, len),
        // `bytes=-500` means the last 500 bytes.
        (None, Some(suffix)) if first.is_empty() => (len.saturating_sub(suffix), len),
        _ => return Range::Whole,
    };
    match bounds {
        (start, end) if start < end => Range::Part { start, end },
        _ => Range::Unsatisfiable,
    }
}

/// A whole number. One beyond `u64` counts as the largest: no blob is that long.
fn parse_number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_cut_to_what_there_is() {
        fn check(header: &str, len: u64, expect: Range) {
            assert_eq!(parse_range(Some(header), len), expect, "{header} of {len}");
        }
        let part = |start, end| Range::Part { start, end };
        check("bytes=0-0", 10, part(0, 1));
        check("bytes=2-4", 10, part(2, 5));
        check("bytes=2-", 10, part(2, 10));
        check("bytes=-3", 10, part(7, 10));
        check("bytes=-99", 10, part(0, 10));
        check("bytes=9-99", 10, part(9, 10));
        check("bytes=0-18446744073709551616", 10, part(0, 10));
        check("bytes=10-", 10, Range::Unsatisfiable);
        check("bytes=99999999999999999999-", 10, Range::Unsatisfiable);
        check("bytes=-0", 10, Range::Unsatisfiable);
        check("bytes=0-", 0, Range::Unsatisfiable);
        check("bytes=-1", 0, Range::Unsatisfiable);
        for whole in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=4-2",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "items=0-1",
            "bytes=1",
        ] {
            check(whole, 10, Range::Whole);
        }
    }

    #[test]
    fn an_entity_tag_is_found_in_a_list() {
        fn check(tags: &str, expect: bool) {
            assert_eq!(lists_tag(tags, "\"aa\""), expect, "{tags}");
        }
        check("\"aa\"", true);
        check("W/\"aa\"", true);
        check("\"bb\", \"aa\"", true);
        check("*", true);
        check("", false);
        check("aa", false);
        check("\"aaa\"", false);
    }
}
