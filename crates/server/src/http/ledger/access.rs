//! The routes that a person's token may use: those listed here, in its own world, and no others.
//!
//! A new route is for the owner only until it is added to the list. For another world the answer is
//! the same whether that world exists or not.

use axum::http::Method;
use turnkeep_wire::ErrorCode;

use super::super::query::percent_decode;
use crate::error::ApiError;
use crate::ledger::DEFAULT_WORLD;
use crate::principal::Caller;
use crate::world_caller::no_world;

const WORLD_PREFIX: &str = "/v1/worlds/{world}";

/// The routes that a person's token may use in its world.
const PERSON_ROUTES: &[(Method, &str)] = &[
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

/// Rejects a person that has no right to use a route. `route` is the pattern in the table of routes,
/// and `path` the path of the request. An unknown path has no route; it gets its 404 later.
pub(crate) fn check_route(
    caller: &Caller,
    method: &Method,
    route: Option<&str>,
    path: &str,
) -> Result<(), ApiError> {
    if let Caller::Node(_) = caller {
        return check_node_route(route);
    }
    let (Some(person), Some(route)) = (caller.person(), route) else {
        return Ok(());
    };
    let own = person.handle.name().as_str();
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    if let Some(rest) = route.strip_prefix(WORLD_PREFIX) {
        let asked = world_in_path(path).unwrap_or_default();
        // The world is compared first: the answer about another world must not depend on the route.
        if asked != own {
            return Err(no_world(&asked));
        }
        let is_open = PERSON_ROUTES
            .iter()
            .any(|(known, tail)| known == method && *tail == rest);
        return if is_open {
            Ok(())
        } else {
            Err(owner_only_error())
        };
    }
    match route {
        "/invocations" if own != DEFAULT_WORLD => Err(no_world(DEFAULT_WORLD)),
        "/invocations" | "/mcp" | "/healthz" | "/health" => Ok(()),
        _ => Err(owner_only_error()),
    }
}

/// A node's token opens the tools of its run and nothing else.
fn check_node_route(route: Option<&str>) -> Result<(), ApiError> {
    if let Some("/mcp" | "/healthz" | "/health") = route {
        return Ok(());
    }
    let message = "a node's token opens /mcp only";
    Err(ApiError::new(ErrorCode::Forbidden, message))
}

/// The world that a path names.
fn world_in_path(path: &str) -> Option<String> {
    let segment = path.strip_prefix("/v1/worlds/")?.split('/').next()?;
    String::from_utf8(percent_decode(segment, false)?).ok()
}

fn owner_only_error() -> ApiError {
    let message = "this needs the owner's token: a person's opens its own world only";
    ApiError::new(ErrorCode::Forbidden, message)
}
