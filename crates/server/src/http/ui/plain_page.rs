//! Pages that the server writes itself, for browsers that get no page of the UI. They have no script
//! and load nothing.

use std::fmt::{self, Display, Write as _};

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

use super::REFERRERS;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

const STYLE: &str = include_str!("plain_page.css");

/// A page with this body, which is HTML.
pub(super) fn respond(status: StatusCode, body: &str) -> Response {
    let text = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Turnkeep</title>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\"><style>{STYLE}</style></head>\
         <body>{body}</body></html>"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, REFERRERS),
    ];
    (status, headers, text).into_response()
}

/// Text in which every character with a meaning in HTML is escaped.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_escaped() {
        let hostile = "<script>alert('x')</script>&\"";
        let expect = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;";
        assert_eq!(Escaped(hostile).to_string(), expect);
    }
}
