//! Which routes a person's token opens: those listed here, in its own world, and no others.
//!
//! The list is closed, so a route that is added is the owner's until somebody writes it down here.
//! Another world is answered as one that there is not, whether it exists or not.

use axum::http::Method;
use turnkeep_wire::{ErrorCode, ErrorReason};

use super::super::query::percent_decode;
use crate::error::ApiError;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;

const OF_A_WORLD: &str = "/v1/worlds/{world}";

/// What a person's token opens in its world.
const IN_ITS_WORLD: &[(Method, &str)] = &[
    (Method::GET, "/seat"),
    (Method::POST, "/invocations"),
    (Method::POST, "/beats"),
    (Method::POST, "/proposals/check"),
    (Method::GET, "/stream"),
    (Method::GET, "/subscribe"),
    (Method::POST, "/tools"),
    (Method::GET, "/persons/{person}/capsule"),
    (Method::GET, "/views/{person}"),
    (Method::GET, "/entries/{entry}"),
    (Method::GET, "/schemas/{name}"),
];

/// Refuses a caller for whom the route is not open. `route` is as the table of routes has it,
/// `path` as it was asked for.
pub(crate) fn check(
    caller: &Caller,
    method: &Method,
    route: Option<&str>,
    path: &str,
) -> Result<(), ApiError> {
    let (Some(person), Some(route)) = (caller.person(), route) else {
        return Ok(());
    };
    let own = person.handle.name().as_str();
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    if let Some(rest) = route.strip_prefix(OF_A_WORLD) {
        let asked = world_of(path).unwrap_or_default();
        let open = IN_ITS_WORLD
            .iter()
            .any(|(known, tail)| known == method && *tail == rest);
        return match () {
            () if asked != own => Err(no_world(&asked)),
            () if open => Ok(()),
            () => Err(owners_only()),
        };
    }
    match route {
        "/invocations" if own != DEFAULT_WORLD => Err(no_world(DEFAULT_WORLD)),
        "/invocations" | "/mcp" | "/healthz" | "/health" => Ok(()),
        _ => Err(owners_only()),
    }
}

/// The world that a path names.
fn world_of(path: &str) -> Option<String> {
    let segment = path.strip_prefix("/v1/worlds/")?.split('/').next()?;
    String::from_utf8(percent_decode(segment, false)?).ok()
}

/// The answer about a world that there is not, or not for this caller.
pub(crate) fn no_world(name: &str) -> ApiError {
    let message = format!("there is no world `{name}`");
    ApiError::new(ErrorCode::NotFound, message).with_reason(ErrorReason::WorldUnknown)
}

fn owners_only() -> ApiError {
    let message = "this needs the owner's token: a person's opens its own world only";
    ApiError::new(ErrorCode::Forbidden, message)
}
