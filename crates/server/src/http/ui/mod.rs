//! The web UI: the files of its build, and the one page that all its screens share.
//!
//! A screen is a path that belongs to no part of the API. The server sends `index.html` for each of
//! them, and the script of that page reads the path. Files under `/assets/` have a hash of their
//! content in their name and never change. The build also writes its files compressed; the server
//! sends those to browsers that accept them, and compresses nothing itself.
//!
//! Only the owner gets a file. Without a built UI a plain page says how to build it.

mod plain_page;
pub(crate) mod sign_in;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use turnkeep_types::BlobHash;

use super::blobs;
use super::content::{Content, IMMUTABLE, REVALIDATE};
use crate::error::ApiError;
use crate::principal::Caller;
use crate::shared::Shared;
use crate::ui_files::UiFiles;

/// The page runs the scripts of its build only and loads nothing from elsewhere. No other page may
/// show it in a frame. The UI computes sizes and colours, hence the styles in elements.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// Other sites learn no address of ours. `no-referrer` would also take the Origin away from the form
/// of the sign-in page.
const REFERRERS: &str = "same-origin";

/// The page of all screens.
const INDEX: &str = "index.html";

/// The first names of the API's paths and of the build's files. A wrong path behind one of them is
/// an error and not a screen.
const API_NAMES: &[&str] = &[
    "api",
    "assets",
    "health",
    "healthz",
    "invocations",
    "mcp",
    "metrics",
    "openapi.json",
    "v1",
    "ws",
];

/// The forms in which the build writes a file, the smallest first: the name of the coding and the
/// end of the file's name.
const CODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The web UI; with `token`, the link that opens it.
#[utoipa::path(get, path = "/", tag = "server",
    params(
        ("token" = Option<String>, Query, description = "The token; a right one sets the cookie"),
        ("next" = Option<String>, Query, description = "With `token`: the path to open then; `/` unless given"),
    ),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 401, description = "Where to get the token", body = String, content_type = "text/html"),
        (status = 303, description = "The token was right: the cookie is set"),
    ))]
pub(crate) async fn home(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if sign_in::is_link(&uri) {
        return sign_in::follow_link(&shared, &uri);
    }
    Ok(page(&shared.config.ui, &headers).await)
}

/// Answers a path that no route has: with a file of the UI, with the page of its screens, or with
/// an error.
pub(crate) async fn unrouted(
    State(shared): State<Arc<Shared>>,
    request: Parts,
) -> Result<Response, ApiError> {
    let (path, headers) = (request.uri.path(), &request.headers);
    let is_owner = matches!(request.extensions.get(), Some(Caller::Owner));
    if is_owner && is_read(&request.method) {
        let name = path.strip_prefix('/').unwrap_or(path);
        if let Some(response) = file(&shared.config.ui, name, headers).await {
            return Ok(response);
        }
        if asks_for_page(&request.method, &request.uri, headers) {
            return Ok(page(&shared.config.ui, headers).await);
        }
    }
    Err(ApiError::not_found(format!("there is no route {path}")))
}

/// Whether a browser asks for a page of the UI.
pub(crate) fn asks_for_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    // The address that people type is a page for every client.
    let is_page = |path: &str| path == "/" || (is_screen(path) && accepts_pages(headers));
    is_read(method) && is_page(uri.path())
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn is_screen(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    !API_NAMES.contains(&first)
}

fn accepts_pages(headers: &HeaderMap) -> bool {
    list_items(headers, &ACCEPT).any(|item| item.name.eq_ignore_ascii_case("text/html"))
}

async fn page(files: &UiFiles, headers: &HeaderMap) -> Response {
    file(files, INDEX, headers)
        .await
        .unwrap_or_else(unbuilt_page)
}

/// A file in the smallest form that the client accepts; none if there is no such file.
async fn file(files: &UiFiles, path: &str, headers: &HeaderMap) -> Option<Response> {
    for (coding, end) in CODINGS {
        if accepts_coding(headers, coding)
            && let Some(bytes) = files.read(&format!("{path}{end}")).await
        {
            let mut response = respond(path, bytes, headers);
            // An answer that the file has not changed has no content, and so no coding.
            if response.status() == StatusCode::OK {
                let coding = HeaderValue::from_static(coding);
                response.headers_mut().insert(CONTENT_ENCODING, coding);
            }
            return Some(response);
        }
    }
    let bytes = files.read(path).await?;
    Some(respond(path, bytes, headers))
}

fn respond(path: &str, bytes: bytes::Bytes, headers: &HeaderMap) -> Response {
    let content = Content {
        etag: blobs::etag(BlobHash::of(&bytes)),
        media_type: media_type(path),
        cache: if path.starts_with("assets/") {
            IMMUTABLE
        } else {
            REVALIDATE
        },
        bytes,
    };
    let mut response = content.respond_whole(headers);
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, REFERRERS),
        (VARY, "Accept-Encoding"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn media_type(path: &str) -> &'static str {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    match end {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// Whether the client accepts a content coding by its name. A file without coding is always
/// acceptable, so `*` does not count.
fn accepts_coding(headers: &HeaderMap, coding: &str) -> bool {
    list_items(headers, &ACCEPT_ENCODING)
        .any(|item| item.name.eq_ignore_ascii_case(coding) && item.is_wanted)
}

/// One item of a header that lists what the client accepts.
struct ListItem<'a> {
    name: &'a str,
    /// Whether its weight is not 0, which means "not acceptable".
    is_wanted: bool,
}

fn list_items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = ListItem<'a>> {
    let values = headers.get_all(name).into_iter();
    let items = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    items.map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse().ok());
        let weight: f32 = weight.unwrap_or(1.0);
        ListItem {
            name,
            is_wanted: weight > 0.0,
        }
    })
}

fn unbuilt_page() -> Response {
    let body = "<main><h1>Turnkeep</h1><p>This build of Turnkeep has no web UI. In the source tree, \
        <code>./x up</code> builds it and starts the server.</p><p>The rest of the server works: \
        see <a href=\"/healthz\">/healthz</a> and <a href=\"/openapi.json\">/openapi.json</a>.</p></main>";
    plain_page::respond(StatusCode::OK, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn no_path_of_the_api_is_a_screen() {
        let document: serde_json::Value =
            serde_json::from_str(super::super::openapi_json()).unwrap();
        let paths = document["paths"].as_object().unwrap().keys();
        let mut count = 0;
        for path in paths.map(String::as_str).chain(["/ws", "/assets/app.js"]) {
            assert!(path == "/" || !is_screen(path), "{path}");
            count += 1;
        }
        assert!(count > 50);
        for screen in ["/", "/runs", "/runs/new", "/v1x", "/go/run:1", "/signin"] {
            assert!(is_screen(screen), "{screen}");
        }
    }

    #[test]
    fn a_browser_says_that_it_accepts_pages() {
        fn check(accept: &'static str, expect: bool) {
            assert_eq!(accepts_pages(&headers(ACCEPT, accept)), expect, "{accept}");
        }
        check(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            true,
        );
        check("application/json, Text/HTML;q=0.1", true);
        check("*/*", false);
        check("application/json", false);
        check("", false);
    }

    #[test]
    fn a_coding_is_accepted_by_its_name() {
        fn check(accept: &'static str, br: bool, gzip: bool) {
            let headers = headers(ACCEPT_ENCODING, accept);
            assert_eq!(
                (
                    accepts_coding(&headers, "br"),
                    accepts_coding(&headers, "gzip")
                ),
                (br, gzip),
                "{accept}"
            );
        }
        check("gzip, deflate, br, zstd", true, true);
        check("gzip;q=0.5,BR;q=1.0", true, true);
        check("gzip, br;q=0", false, true);
        check("br; q=0.000, gzip; q=0.001", false, true);
        check("*", false, false);
        check("identity", false, false);
        check("", false, false);
        check("brotli, gzipped", false, false);
    }
}
