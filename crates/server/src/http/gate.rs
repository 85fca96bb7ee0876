//! The gate before every route: reads the request's head, lets the rules decide, counts the answer.

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
use super::status_page;
use crate::auth::{Ask, Badge, Denied, Facts, Pass};
use crate::error::ApiError;
use crate::principal::{Caller, PersonCaller};
use crate::shared::Shared;
use crate::unauthenticated::Newcomer;

/// The local address that a request's connection arrived at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivedAt(pub(crate) IpAddr);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Decides about a request, and counts and completes its answer.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = tokio::time::Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let origin = request.headers().get(ORIGIN).cloned();
    let (mut response, may_read) = match admit(&shared, &mut request) {
        Ok(Pass::Serve(_)) => (next.run(request).await, true),
        Ok(Pass::Preflight) => (preflight(), true),
        Err(refusal) => *refusal,
    };
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.filter(|_| may_read) {
        allow_origin(response.headers_mut(), origin);
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    shared.metrics.http(
        route,
        known(&method),
        response.status().as_u16(),
        began.elapsed(),
    );
    response
}

/// A refusal, and whether the page that asked may read it.
type Refusal = Box<(Response, bool)>;

fn admit(shared: &Shared, request: &mut Request) -> Result<Pass, Refusal> {
    let local = request
        .extensions()
        .get::<ArrivedAt>()
        .map_or(shared.addrs.http.ip(), |arrived| arrived.0);
    let (pass, person) = {
        let facts = facts(request, shared.gate.cookie_name())
            .map_err(|error| Box::new((error.into_response(), false)))?;
        let person = facts
            .bearer
            .map(|secret| person_of(shared, secret))
            .transpose();
        let (person, closed) =
            person.map_or_else(|error| (None, Some(error)), |found| (found.flatten(), None));
        let facts = Facts {
            person: person.is_some(),
            ..facts
        };
        let refused = |denied: Denied| {
            let may_read = denied.is_for_known_origin();
            let response = match (&denied, closed) {
                (Denied::WrongCredentials, Some(closed)) => closed.into_response(),
                _ => refuse(denied, request),
            };
            Box::new((response, may_read))
        };
        (shared.gate.decide(&facts, local).map_err(refused)?, person)
    };
    let caller = match (pass, person) {
        (Pass::Serve(Badge::Owner), _) => Caller::Owner,
        (Pass::Serve(Badge::Person), Some(person)) => Caller::Person(person),
        _ => return Ok(pass),
    };
    if let Some(newcomer) = request.extensions().get::<Newcomer>() {
        newcomer.authenticated();
    }
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    access::check(&caller, request.method(), route, request.uri().path())
        .map_err(|error| Box::new((error.into_response(), true)))?;
    request.extensions_mut().insert(caller);
    Ok(pass)
}

/// The person whose token this is; an error if that cannot be told, because its world cannot be
/// read.
fn person_of(shared: &Shared, secret: &str) -> Result<Option<PersonCaller>, ApiError> {
    let found = shared
        .worlds
        .find_token_holder(secret, shared.worlds.now())?;
    Ok(found.map(|holder| PersonCaller {
        handle: holder.world,
        who: holder.principal,
        token: holder.token,
    }))
}

fn facts<'a>(request: &'a Request, cookie_name: &str) -> Result<Facts<'a>, ApiError> {
    let (headers, uri) = (request.headers(), request.uri());
    let link = uri.path() == "/" && uri.query().is_some_and(|query| query.starts_with("token="));
    let bearer = one(headers, &AUTHORIZATION)?.map(|value| bearer(value).unwrap_or_default());
    // A request line may name the host itself; then that is the host.
    let host = one(headers, &HOST)?;
    Ok(Facts {
        open: matches!(uri.path(), "/healthz" | "/health") || link,
        ask: ask(request),
        host: uri
            .authority()
            .map(axum::http::uri::Authority::as_str)
            .or(host),
        origin: one(headers, &ORIGIN)?,
        fetch_site: one(headers, &SEC_FETCH_SITE)?,
        bearer,
        person: false,
        cookie: cookie(headers, cookie_name),
    })
}

/// The token of `Bearer TOKEN`; the scheme may be written in any case.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn ask(request: &Request) -> Ask {
    let has = |name: HeaderName| request.headers().contains_key(name);
    match *request.method() {
        Method::OPTIONS if has(ORIGIN) && has(ACCESS_CONTROL_REQUEST_METHOD) => Ask::Preflight,
        Method::GET | Method::HEAD if has(UPGRADE) => Ask::Upgrade,
        Method::GET | Method::HEAD => Ask::Read,
        _ => Ask::Change,
    }
}

/// A header that may come once, as text.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(ApiError::bad_request(format!(
            "the header `{name}` is not one plain value"
        ))),
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = all
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

fn refuse(denied: Denied, request: &Request) -> Response {
    let error = ApiError::from(denied);
    // A person who opens the page without the token gets a page that says where the token is.
    if error.code == ErrorCode::Unauthorized && request.uri().path() == "/" {
        return status_page::locked();
    }
    error.into_response()
}

fn preflight() -> Response {
    let headers = [
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            "GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, if-none-match, last-event-id, mcp-protocol-version, range",
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
fn known(method: &Method) -> &'static str {
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
