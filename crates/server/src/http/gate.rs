//! The gate before every route. It reads a request's head, lets the rules in [`crate::auth`] decide,
//! and counts the answer. A request that the gate refuses reaches no handler.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    AUTHORIZATION, COOKIE, HOST, ORIGIN, UPGRADE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use turnkeep_wire::ErrorCode;

use super::ledger::access;
use super::ui::{self, sign_in};
use crate::auth::{Admission, CallerKind, Denied, RequestHead, RequestKind};
use crate::error::ApiError;
use crate::principal::{Caller, PersonCaller, PersonToken};
use crate::shared::Shared;
use crate::unauthenticated::Newcomer;

/// The local address that a request's connection arrived at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivedAt(pub(crate) IpAddr);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Decides about a request, and counts and completes its answer.
pub(crate) async fn guard_request(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = tokio::time::Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let origin = request.headers().get(ORIGIN).cloned();
    let (mut response, may_read) = match admit_request(&shared, &mut request) {
        Ok(Admission::Serve(_)) => (next.run(request).await, true),
        Ok(Admission::Preflight) => (answer_preflight(), true),
        Err(refusal) => (refusal.response, refusal.may_read),
    };
    // A browser must not guess that a blob is a script or a page.
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.filter(|_| may_read) {
        allow_origin(response.headers_mut(), origin);
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let status = response.status().as_u16();
    shared
        .metrics
        .http(route, method_label(&method), status, began.elapsed());
    response
}

/// The answer to a request that is not served.
struct Refusal {
    response: Response,
    /// Whether the page that sent the request may read the answer.
    may_read: bool,
}

impl Refusal {
    fn new(response: impl IntoResponse, may_read: bool) -> Box<Self> {
        Box::new(Self {
            response: response.into_response(),
            may_read,
        })
    }
}

/// Lets the rules decide about a request. The request of an admitted caller gets the [`Caller`].
fn admit_request(shared: &Shared, request: &mut Request) -> Result<Admission, Box<Refusal>> {
    let (admission, holder) = check_head(shared, request)?;
    let caller = match (admission, holder) {
        (Admission::Serve(CallerKind::Owner), _) => Caller::Owner,
        (Admission::Serve(CallerKind::Person), Some(holder)) => holder,
        _ => return Ok(admission),
    };
    // Before the route is checked: a caller with a valid token is not an unauthenticated one, even
    // if this route is closed to it.
    if let Some(newcomer) = request.extensions().get::<Newcomer>() {
        newcomer.authenticated();
    }
    let route = request.extensions().get::<MatchedPath>();
    access::check_route(
        &caller,
        request.method(),
        route.map(MatchedPath::as_str),
        request.uri().path(),
    )
    .map_err(|error| Refusal::new(error, true))?;
    request.extensions_mut().insert(caller);
    Ok(admission)
}

/// Decides by the head of a request, before any of its body is read. Also returns the person or node
/// whose token the request has.
fn check_head(
    shared: &Shared,
    request: &Request,
) -> Result<(Admission, Option<Caller>), Box<Refusal>> {
    let mut head = read_head(request, shared.gate.cookie_name())
        .map_err(|error| Refusal::new(error, false))?;
    // An unreadable world is no refusal yet: the request may be admitted without the token.
    let found = match head.bearer {
        Some(secret) => find_holder(shared, secret),
        None => Ok(None),
    };
    head.person = matches!(found, Ok(Some(_)));
    let arrived = request.extensions().get::<ArrivedAt>();
    let local = arrived.map_or(shared.addrs.http.ip(), |arrived| arrived.0);
    match shared.gate.decide(&head, local) {
        Ok(admission) => Ok((admission, found.ok().flatten())),
        Err(denied) => Err(refuse(denied, found.err(), request)),
    }
}

/// Refuses a request. `unreadable` is the error of the world that the request's token belongs to.
fn refuse(denied: Denied, unreadable: Option<ApiError>, request: &Request) -> Box<Refusal> {
    let may_read = denied.is_for_known_origin();
    match (denied, unreadable) {
        // The token may be valid, but its world cannot be read. "Wrong token" would mislead.
        (Denied::WrongCredentials, Some(error)) => Refusal::new(error, may_read),
        (denied, _) => Refusal::new(refusal_response(denied, request), may_read),
    }
}

/// The person or the node with this token. An error means that the token's world cannot be read.
fn find_holder(shared: &Shared, secret: &str) -> Result<Option<Caller>, ApiError> {
    if let Some(node) = shared.runs.find_node(secret) {
        return Ok(Some(Caller::Node(node)));
    }
    let found = shared
        .worlds
        .find_token_holder(secret, shared.worlds.now())?;
    Ok(found.map(|holder| {
        Caller::Person(PersonCaller {
            handle: holder.world,
            who: holder.principal,
            token: PersonToken::OfWorld(holder.token),
        })
    }))
}

/// The parts of a request's head that the rules use.
fn read_head<'a>(request: &'a Request, cookie_name: &str) -> Result<RequestHead<'a>, ApiError> {
    let (headers, uri) = (request.headers(), request.uri());
    // The link and the form have the token in the query and in the body. Their handlers check it.
    let is_form = request.method() == Method::POST && uri.path() == sign_in::PATH;
    let is_sign_in = is_form || sign_in::is_link(uri);
    let bearer = single_header(headers, &AUTHORIZATION)?;
    let host = single_header(headers, &HOST)?;
    // HTTP lets the request line name the host. Then the Host header does not count.
    let named_host = uri.authority().map(axum::http::uri::Authority::as_str);
    Ok(RequestHead {
        open: matches!(uri.path(), "/healthz" | "/health") || is_sign_in,
        kind: request_kind(request),
        host: named_host.or(host),
        origin: single_header(headers, &ORIGIN)?,
        fetch_site: single_header(headers, &SEC_FETCH_SITE)?,
        // Another scheme counts as a wrong token, not as none: a cookie must not help it out.
        bearer: bearer.map(|value| bearer_token(value).unwrap_or_default()),
        person: false,
        cookie: find_cookie(headers, cookie_name),
    })
}

/// The token of `Bearer TOKEN`; the scheme may be written in any case.
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn request_kind(request: &Request) -> RequestKind {
    let has = |name: HeaderName| request.headers().contains_key(name);
    match *request.method() {
        Method::OPTIONS if has(ORIGIN) && has(ACCESS_CONTROL_REQUEST_METHOD) => {
            RequestKind::Preflight
        }
        Method::GET | Method::HEAD if has(UPGRADE) => RequestKind::Upgrade,
        Method::GET | Method::HEAD => RequestKind::Read,
        _ => RequestKind::Change,
    }
}

/// A header that may come once, as text.
fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(ApiError::bad_request(format!(
            "the header `{name}` is not one plain value"
        ))),
    }
}

fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A browser may send several headers, each with several cookies.
    for cookies in headers.get_all(COOKIE) {
        for cookie in cookies.to_str().unwrap_or_default().split(';') {
            if let Some((known, value)) = cookie.trim().split_once('=')
                && known == name
            {
                return Some(value);
            }
        }
    }
    None
}

fn refusal_response(denied: Denied, request: &Request) -> Response {
    let error = ApiError::from(denied);
    // A person who opens a page without the token gets a page that says where the token is.
    if error.code == ErrorCode::Unauthorized
        && ui::asks_for_page(request.method(), request.uri(), request.headers())
    {
        return sign_in::page_instead_of(request.uri());
    }
    error.into_response()
}

fn answer_preflight() -> Response {
    let headers = [
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            "GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-protocol-version, range",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    let exposed = "content-range, etag, idempotency-replayed, inherited-from, input-ignored, retry-after, writer-failed";
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(exposed),
    );
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// The method as a label: callers may invent methods, counters may not.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
