//! A seat in a world: which world, as whom, and with whose eyes.
//!
//! The owner may take a person's seat (`?as=PERSON`): then the request has exactly that person's
//! rights and view. Where a route lets it, the owner may also read with nobody's eyes (`?audit=1`).
//! Either leaves a line in the world's audit before the answer. A person has its own seat and no
//! other.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde_json::{Value, json};
use turnkeep_ledger::config::Person;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_ledger::known_persons::{is_in_use, known_persons};
use turnkeep_ledger::{Code, Fault, Principal, Viewer};
use turnkeep_wire::{ErrorCode, ErrorReason, json as wire};

use super::super::extract::{Query, bad_path, check_escapes};
use super::super::query::{ActingQuery, FromQuery, Pairs, SeatQuery};
use super::access;
use crate::error::ApiError;
use crate::ledger::{DEFAULT_WORLD, WorldHandle};
use crate::principal::Caller;
use crate::shared::Shared;

/// A seat in a world.
pub(crate) struct Seat {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// As whom.
    pub(crate) who: Principal,
    /// A person's token, if that is how the request came.
    pub(crate) token: Option<TokenId>,
    /// Whether the owner reads with nobody's eyes.
    pub(crate) audit: bool,
}

impl Seat {
    /// Whose eyes it has.
    pub(crate) fn viewer(&self) -> Viewer {
        self.who.viewer()
    }
}

impl FromRequestParts<Arc<Shared>> for Seat {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| ApiError::internal("a request without a caller"))?;
        let Named(named) = Named::from_request_parts(parts, shared).await?;
        let name = named.get("world").map_or(DEFAULT_WORLD, String::as_str);
        let handle = shared
            .worlds
            .find(name)?
            .ok_or_else(|| access::no_world(name))?;
        let query = SeatQuery::from_query(Pairs::parse(parts.uri.query().unwrap_or_default())?)?;
        let names = if is_read(parts) {
            AllowedNames::Known
        } else {
            AllowedNames::New
        };
        let seat = take(caller, handle, &query, names)?;
        let taken = query.as_person.as_deref().filter(|_| seat.token.is_none());
        let taken = taken.map(|person| ("acting-as", person));
        if let Some((what, person)) = taken.or(seat.audit.then_some(("audit-read", ""))) {
            let details = json!({ "person": person, "method": parts.method.as_str(), "path": parts.uri.path() });
            leave_line(&seat.handle, what, &details).await?;
        }
        Ok(seat)
    }
}

/// Whose seat the owner may take.
#[derive(Debug, Clone, Copy)]
enum AllowedNames {
    /// Only of somebody whom the world knows. A new name in a read is probably misspelt.
    Known,
    /// In an open world, also of a new person, whom a write introduces.
    New,
}

/// Whether a request only reads. Tools read too, although they are asked with POST.
fn is_read(parts: &Parts) -> bool {
    parts.method.is_safe() || parts.uri.path().ends_with("/tools")
}

/// As whom the caller is in a world: what a token is good for.
#[utoipa::path(get, path = "/v1/worlds/{world}/seat", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    responses((status = 200, description = "With whose eyes it reads, and whether it writes", body = wire::ledger::Seat)))]
pub(crate) async fn show(Query(ActingQuery): Query<ActingQuery>, seat: Seat) -> Json<Value> {
    let write = !matches!(seat.who, Principal::Person { write: false, .. });
    let view = seat.viewer();
    Json(seat.handle.read(|world| {
        let person =
            |person: &Person| json!({ "person_id": person.id.as_str(), "display_label": person.label });
        json!({
            "world_id": world.config.world.as_str(),
            "view": view.as_str(),
            "write": write,
            "operator_label": world.config.operator_label,
            "registry": world.config.registry.word(),
            "persons": world.people.iter().map(person).collect::<Vec<_>>(),
        })
    }))
}

/// The path's segments by their names in the table of routes.
pub(crate) struct Named(pub(crate) BTreeMap<String, String>);

impl FromRequestParts<Arc<Shared>> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        check_escapes(parts)?;
        let named = Path::<BTreeMap<String, String>>::from_request_parts(parts, shared).await;
        named.map(|Path(named)| Self(named)).map_err(bad_path)
    }
}

fn take(
    caller: Caller,
    handle: Arc<WorldHandle>,
    query: &SeatQuery,
    names: AllowedNames,
) -> Result<Seat, ApiError> {
    let forbidden = |message| ApiError::from(Fault::new(Code::Forbidden, "", message));
    match (caller, &query.as_person, query.audit) {
        (Caller::Person(_), _, true) => Err(forbidden("only the owner may read as audit")),
        (Caller::Person(person), Some(named), _) if person.who.viewer().as_str() != named => {
            Err(forbidden("only the owner may act as somebody else"))
        }
        (Caller::Person(person), _, false) => Ok(Seat {
            handle,
            who: person.who,
            token: Some(person.token),
            audit: false,
        }),
        (Caller::Owner, Some(_), true) => {
            Err(ApiError::bad_request("`as` and `audit` exclude each other"))
        }
        (Caller::Owner, Some(person), false) => {
            let id = match names {
                AllowedNames::Known => known_person(&handle, person)?,
                AllowedNames::New => person_named(&handle, person)?,
            };
            Ok(Seat {
                handle,
                who: Principal::Person { id, write: true },
                token: None,
                audit: false,
            })
        }
        (Caller::Owner, None, audit) => Ok(Seat {
            handle,
            who: Principal::Owner,
            token: None,
            audit,
        }),
    }
}

/// A person of the world, or, in an open one, whoever may be one.
pub(crate) fn person_named(handle: &WorldHandle, id: &str) -> Result<Name, ApiError> {
    let found = handle.read(|world| world.people.resolve(id, world.config.registry));
    found.map_err(|_| no_person(handle, id))
}

/// A person whom the world knows, with whose eyes something is read. A new name is rejected in an
/// open world too.
pub(crate) fn known_person(handle: &WorldHandle, id: &str) -> Result<Name, ApiError> {
    let name = person_named(handle, id)?;
    if handle.read(|world| is_in_use(world, &name)) {
        Ok(name)
    } else {
        Err(no_person(handle, id))
    }
}

fn no_person(handle: &WorldHandle, id: &str) -> ApiError {
    let message = format!(
        "there is no person `{id}` in {}; there are: {}",
        handle.name(),
        people_in_words(handle)
    );
    ApiError::new(ErrorCode::NotFound, message).with_reason(ErrorReason::PersonUnknown)
}

/// Lists the persons whom the operator knows, and the operator by label: the first of many.
fn people_in_words(handle: &WorldHandle) -> String {
    handle.read(|world| {
        let known = known_persons(&world.view(Viewer::operator()));
        let persons = known.iter().filter(|person| person.id != Name::operator());
        let mut names: Vec<String> = persons.map(|person| person.id.to_string()).collect();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.push(format!("{} (the operator)", world.config.operator_label));
        names.join(", ")
    })
}

/// So many people are named to whoever named nobody.
const NAMED_MAX: usize = 20;

/// Leaves a line in a world's audit; the owner did something that is worth one.
pub(crate) async fn leave_line(
    handle: &Arc<WorldHandle>,
    what: &str,
    details: &Value,
) -> Result<(), ApiError> {
    let line = AuditLine {
        at: handle.now(),
        principal: Principal::Owner.key(),
        what: what.to_owned(),
        request: None,
        details: details.to_string(),
    };
    Ok(handle.record(vec![Fact::AuditLine(line)]).await?)
}
