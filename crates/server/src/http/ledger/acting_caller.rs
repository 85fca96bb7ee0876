//! The world of a request, and as whom the request acts in it. The route `/seat` shows both.
//!
//! The owner may act as a person (`?as=PERSON`). Then the request has exactly that person's rights
//! and view. Where a route allows it, the owner may also read all entries (`?audit=1`). Both add a
//! line to the world's audit before the answer. A person can only act as itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde_json::{Value, json};
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::ids::{Name, TokenId};
use turnkeep_ledger::known_persons::{is_in_use, known_persons};
use turnkeep_ledger::{Code, Fault, Principal, View, Viewer};
use turnkeep_wire::{ErrorReason, json as wire};

use super::super::extract::{Query, bad_path, check_escapes};
use super::super::query::{ActingQuery, CallerQuery, FromQuery, Pairs};
use super::shapes::seat_shape;
use crate::error::ApiError;
use crate::ledger::{DEFAULT_WORLD, WorldHandle};
use crate::principal::{Caller, PersonCaller, PersonToken};
use crate::shared::Shared;
use crate::world_caller::{WorldCaller, no_world};

/// A caller in one world, with the identity in which it acts.
pub(crate) struct ActingCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The caller's identity in the world.
    pub(crate) who: Principal,
    /// The token, if the caller is a person.
    pub(crate) token: Option<TokenId>,
    /// Whether the owner reads all entries, whoever may see them.
    pub(crate) audit: bool,
}

impl ActingCaller {
    /// The caller without the rights of an audit.
    pub(crate) fn into_world_caller(self) -> WorldCaller {
        WorldCaller {
            handle: self.handle,
            who: self.who,
            token: self.token.map(PersonToken::OfWorld),
        }
    }

    /// The reader whose view the request gets.
    pub(crate) fn viewer(&self) -> Viewer {
        self.who.viewer()
    }

    /// Decides as whom a caller acts. A person can only act as itself.
    fn new(
        caller: Caller,
        handle: Arc<WorldHandle>,
        query: &CallerQuery,
        names: AllowedNames,
    ) -> Result<Self, ApiError> {
        match caller {
            Caller::Person(person) => Ok(Self::as_itself(person, handle, query)?),
            Caller::Owner => Self::as_owner(handle, query, names),
            // The gate lets a node reach no route of a world.
            Caller::Node(_) => {
                let message = "a node's token opens /mcp only";
                Err(Fault::new(Code::Forbidden, "", message).into())
            }
        }
    }

    fn as_itself(
        person: PersonCaller,
        handle: Arc<WorldHandle>,
        query: &CallerQuery,
    ) -> Result<Self, Fault> {
        let forbidden = |message| Err(Fault::new(Code::Forbidden, "", message));
        if query.audit {
            return forbidden("only the owner may read as audit");
        }
        // A person may name itself, which changes nothing.
        if let Some(named) = &query.as_person
            && person.who.viewer().as_str() != named
        {
            return forbidden("only the owner may act as somebody else");
        }
        Ok(Self {
            handle,
            who: person.who,
            token: Some(person.token.counted_as()),
            audit: false,
        })
    }

    fn as_owner(
        handle: Arc<WorldHandle>,
        query: &CallerQuery,
        names: AllowedNames,
    ) -> Result<Self, ApiError> {
        let who = match (&query.as_person, names) {
            (Some(_), _) if query.audit => {
                return Err(ApiError::bad_request("`as` and `audit` exclude each other"));
            }
            (Some(person), AllowedNames::Known) => writing_person(known_person(&handle, person)?),
            (Some(person), AllowedNames::New) => writing_person(person_named(&handle, person)?),
            (None, _) => Principal::Owner,
        };
        Ok(Self {
            handle,
            who,
            token: None,
            audit: query.audit,
        })
    }

    /// Adds an audit line if the owner acts as a person or reads all entries.
    async fn record_use(&self, query: &CallerQuery, parts: &Parts) -> Result<(), ApiError> {
        // With a person's token, `as` can only name that person.
        let acting_as = query.as_person.as_deref().filter(|_| self.token.is_none());
        let (what, person) = match acting_as {
            Some(person) => ("acting-as", person),
            None if self.audit => ("audit-read", ""),
            None => return Ok(()),
        };
        let details =
            json!({ "person": person, "method": parts.method.as_str(), "path": parts.uri.path() });
        add_audit_line(&self.handle, what, &details).await
    }
}

impl FromRequestParts<Arc<Shared>> for ActingCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| ApiError::internal("a request without a caller"))?;
        let Named(named) = Named::from_request_parts(parts, shared).await?;
        // `/invocations` names no world.
        let name = named.get("world").map_or(DEFAULT_WORLD, String::as_str);
        let handle = shared.worlds.find(name)?.ok_or_else(|| no_world(name))?;
        let query = CallerQuery::from_query(Pairs::parse(parts.uri.query().unwrap_or_default())?)?;
        let names = if is_read(parts) {
            AllowedNames::Known
        } else {
            AllowedNames::New
        };
        let acting = ActingCaller::new(caller, handle, &query, names)?;
        acting.record_use(&query, parts).await?;
        Ok(acting)
    }
}

/// A person with the right to write, whatever tokens that person has.
fn writing_person(id: Name) -> Principal {
    Principal::Person { id, write: true }
}

/// As whom the owner may act.
#[derive(Debug, Clone, Copy)]
enum AllowedNames {
    /// Only as a person whom the world knows. A new name in a read is probably misspelt.
    Known,
    /// In an open world, also as a new person, whom a write introduces.
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
pub(crate) async fn show(
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
) -> Json<wire::ledger::Seat> {
    Json(acting.handle.read(|world| seat_shape(world, &acting.who)))
}

/// The path's segments by their names in the table of routes.
pub(crate) struct Named(BTreeMap<String, String>);

impl Named {
    /// A segment; empty if the route has none of this name.
    pub(crate) fn segment(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

impl FromRequestParts<Arc<Shared>> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        check_escapes(parts)?;
        let named = Path::<BTreeMap<String, String>>::from_request_parts(parts, shared).await;
        named.map(|Path(named)| Self(named)).map_err(bad_path)
    }
}

/// A person of the world. In an open world, any name that may be a person's.
pub(crate) fn person_named(handle: &WorldHandle, id: &str) -> Result<Name, ApiError> {
    handle.read(|world| {
        let found = world.people.resolve(id, world.config.registry);
        found.map_err(|_| no_person(&world.view(Viewer::operator()), id))
    })
}

/// A person whom the world knows, whose view a request reads. A new name is rejected in an open
/// world too.
pub(crate) fn known_person(handle: &WorldHandle, id: &str) -> Result<Name, ApiError> {
    let name = person_named(handle, id)?;
    handle.read(|world| {
        if is_in_use(world, &name) {
            Ok(name)
        } else {
            Err(no_person(&world.view(Viewer::operator()), id))
        }
    })
}

/// The error about a person that the world does not know. It names those whom the reader of the
/// view knows.
pub(crate) fn no_person(view: &View<'_>, id: &str) -> ApiError {
    let message = format!(
        "there is no person `{id}` in {}; there are: {}",
        view.world.config.world,
        list_people(view)
    );
    ApiError::not_found(message).with_reason(ErrorReason::PersonUnknown)
}

/// Lists the persons whom the reader of a view knows, and the operator by label: the first of many.
fn list_people(view: &View<'_>) -> String {
    let known = known_persons(view);
    let persons = known.iter().filter(|person| person.id != Name::operator());
    let mut names: Vec<String> = persons.map(|person| person.id.to_string()).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let operator = &view.world.config.operator_label;
    names.push(format!("{operator} (the operator)"));
    names.join(", ")
}

/// How many people a message names.
const NAMED_MAX: usize = 20;

/// Adds a line about the owner to a world's audit.
pub(crate) async fn add_audit_line(
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
