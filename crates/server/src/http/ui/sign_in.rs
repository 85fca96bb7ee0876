//! Signing in with the owner's token: by the link `/?token=…` that `turnkeep up` prints, or by the
//! form of the page that a browser without the cookie gets.
//!
//! Both set the cookie and then redirect, so that the token does not stay in the address bar. They
//! never redirect to another server: see [`LocalPath`].

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use turnkeep_wire::ErrorCode;

use super::super::extract::body_within;
use super::super::query::{FromQuery, Pairs, SignInQuery};
use super::plain_page::{self, Escaped};
use crate::error::ApiError;
use crate::shared::Shared;

/// The path of the page and of its form.
pub(crate) const PATH: &str = "/signin";

/// The longest form.
const FORM_BYTES_MAX: usize = 16 << 10;

/// The longest path that a browser is sent to. Longer ones become `/`.
const PATH_BYTES_MAX: usize = 4 << 10;

/// Whether this is the address of a link with a token. It needs no cookie: the token is checked
/// instead.
pub(crate) fn is_link(uri: &Uri) -> bool {
    let has_token = |query: &str| query.starts_with("token=");
    uri.path() == "/" && uri.query().is_some_and(has_token)
}

/// Signs in by a link.
pub(super) fn follow_link(shared: &Shared, uri: &Uri) -> Result<Response, ApiError> {
    let query = Pairs::parse(uri.query().unwrap_or_default())?;
    Ok(sign_in(shared, &SignInQuery::from_query(query)?))
}

/// Signs in by the form.
pub(crate) async fn submit(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, ApiError> {
    // The gate has refused a foreign origin, but it lets requests without one pass.
    if !request.headers().contains_key(ORIGIN) {
        let message = "a form is accepted from a page of this server only: send an Origin header";
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    let form = body_within(request, &shared, FORM_BYTES_MAX).await?;
    let form =
        std::str::from_utf8(&form).map_err(|_| ApiError::bad_request("the form is not UTF-8"))?;
    let form = SignInQuery::from_query(Pairs::parse(form)?)?;
    Ok(sign_in(&shared, &form))
}

/// Sends a browser that is signed in where it wanted to go.
pub(crate) async fn skip(uri: Uri) -> Response {
    redirect(&wanted_path(&uri), None)
}

/// The page for a browser that asks for `uri` without the cookie.
pub(crate) fn page_instead_of(uri: &Uri) -> Response {
    sign_in_page(&wanted_path(uri), "")
}

fn sign_in(shared: &Shared, query: &SignInQuery) -> Response {
    let next = LocalPath::or_home(query.next.as_deref());
    if shared.gate.is_off() {
        return redirect(&next, None);
    }
    match shared.gate.cookie_for(query.token.trim()) {
        Some(cookie) => redirect(&next, Some(&cookie)),
        None => sign_in_page(
            &next,
            "<p class=bad role=alert>This is not the token of this server.</p>",
        ),
    }
}

/// Where a browser wants to go: to `next` of the link and of the sign-in page, else to the address
/// itself.
fn wanted_path(uri: &Uri) -> LocalPath {
    let next = || {
        let pairs = Pairs::parse(uri.query().unwrap_or_default()).ok()?;
        pairs.first_value("next").map(str::to_owned)
    };
    if uri.path() == PATH || is_link(uri) {
        LocalPath::or_home(next().as_deref())
    } else {
        LocalPath::or_home(uri.path_and_query().map(PathAndQuery::as_str))
    }
}

/// A path of this server with its query, to which a browser may be sent.
///
/// Browsers read `//host`, `/\host` and, because they drop tabs and line ends, `/<tab>/host` as
/// addresses of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalPath(String);

impl LocalPath {
    /// The path if it is local, else `/`.
    fn or_home(text: Option<&str>) -> Self {
        let is_local = |text: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
            text.starts_with('/')
                && !text.starts_with("//")
                && text.len() <= PATH_BYTES_MAX
                && text.bytes().all(is_plain)
        };
        Self(text.filter(is_local).unwrap_or("/").to_owned())
    }
}

fn redirect(to: &LocalPath, cookie: Option<&str>) -> Response {
    let fixed = [
        (CACHE_CONTROL, "no-store"),
        // The address that is left has the token in it.
        (REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = (StatusCode::SEE_OTHER, fixed).into_response();
    let fields = [(LOCATION, Some(to.0.as_str())), (SET_COOKIE, cookie)];
    for (name, value) in fields {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn sign_in_page(next: &LocalPath, problem: &str) -> Response {
    let next = Escaped(&next.0);
    let body = format!(
        "<main><h1>Sign in to Turnkeep</h1>{problem}<p>Open the link that <code>turnkeep up</code> \
         printed when it started, or enter the token. It is in the file <code>token</code> of the \
         data directory.</p><form method=post action=\"{PATH}\"><label>Token<input name=token \
         type=password autocomplete=current-password required autofocus></label>\
         <input type=hidden name=next value=\"{next}\"><button>Sign in</button></form>\
         <p class=soft>If this browser is signed in and you followed a link of another site, \
         <a href=\"{next}\">open the page again</a>.</p></main>"
    );
    (
        [(WWW_AUTHENTICATE, "Bearer")],
        plain_page::respond(StatusCode::UNAUTHORIZED, &body),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_sent_to_this_server_only() {
        for local in [
            "/",
            "/runs/1?tab=a&b=%20#c",
            "/a//b",
            "/:80",
            "/@evil",
            "/?token=x",
        ] {
            assert_eq!(LocalPath::or_home(Some(local)).0, local);
        }
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        for foreign in [
            "",
            "evil.example",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "/a\\b",
            "/\t/evil.example",
            "/\r\nset-cookie: a=b",
            "/ /evil.example",
            "\u{a0}/x",
            "/é",
            "http://evil.example/",
            "javascript:alert(1)",
            " /runs",
            &long,
        ] {
            assert_eq!(LocalPath::or_home(Some(foreign)).0, "/", "{foreign:?}");
        }
        assert_eq!(LocalPath::or_home(None).0, "/");
    }

    #[test]
    fn the_deep_link_survives_the_sign_in() {
        fn check(uri: &str, expect: &str) {
            assert_eq!(wanted_path(&uri.parse().unwrap()).0, expect, "{uri}");
        }
        check("/", "/");
        check("/?kind=approval&run=1", "/?kind=approval&run=1");
        check("/runs/1?tab=log", "/runs/1?tab=log");
        check("/signin", "/");
        check("/signin?next=%2Fruns%2F1%3Ftab%3Dlog", "/runs/1?tab=log");
        check("/signin?next=//evil.example", "/");
        check("/signin?next=%", "/");
        // The token of a link never comes back in the page.
        check("/?token=wrong", "/");
        check("/?token=wrong&next=/runs", "/runs");
        check("/?token=wrong&next=//evil.example", "/");
        check("//evil.example", "/");
    }
}
