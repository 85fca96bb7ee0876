//! Lists and adds the people of a world; for the owner only.

use axum::Json;
use axum::http::StatusCode;
use turnkeep_ledger::config::{PERSONS_MAX, Person};
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::json::Node;
use turnkeep_ledger::{Code, Fault, World};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::acting_caller::ActingCaller;
use super::body;
use super::shapes::{person_list, person_shape};
use crate::error::ApiError;

/// Lists the people of a world.
#[utoipa::path(get, path = "/v1/worlds/{world}/persons", tag = "persons", params(("world" = String, Path)),
    responses((status = 200, description = "Those who were added, by id", body = wire::ledger::PersonList)))]
pub(crate) async fn list(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
) -> Json<wire::ledger::PersonList> {
    let persons = acting.handle.read(person_list);
    Json(wire::ledger::PersonList { persons })
}

/// Adds a person, or changes one. Fields that the request leaves out keep their values.
#[utoipa::path(post, path = "/v1/worlds/{world}/persons", tag = "persons", params(("world" = String, Path)),
    request_body = wire::ledger::Person,
    responses((status = 201, description = "The person", body = wire::ledger::Person)))]
pub(crate) async fn add(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    body: body::Json,
) -> Result<(StatusCode, Json<wire::ledger::Person>), ApiError> {
    let id = Person::read_id(&body.root(Code::ConfigInvalid))?;
    // Decided under the world's write lock: otherwise two requests could add one name in two
    // spellings.
    acting
        .handle
        .record_decided(move |world| person_facts(world, &body.root(Code::ConfigInvalid)))
        .await?;
    let added = acting
        .handle
        .read(|world| world.people.get(id.as_str()).map(person_shape));
    let added = added.ok_or_else(|| ApiError::internal("the added person is missing"))?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// The facts that add a person or change a known one.
fn person_facts(world: &World, root: &Node<'_>) -> Result<Vec<Fact>, Fault> {
    let id = Person::read_id(root)?;
    let known = world.people.get(id.as_str()).cloned();
    let person = known
        .unwrap_or_else(|| Person::with_id(id))
        .with_changes(root)?;
    check_may_be_added(world, &person)?;
    Ok(vec![Fact::Person(person)])
}

/// Rejects a person whose id is taken in another spelling, and one too many.
pub(crate) fn check_may_be_added(world: &World, person: &Person) -> Result<(), Fault> {
    if world
        .people
        .spelling(person.id.as_str())
        .is_some_and(|known| *known != person.id)
    {
        return Err(Fault::new(
            Code::NameTaken,
            "person_id",
            "exists in another spelling",
        ));
    }
    let is_new = world.people.get(person.id.as_str()).is_none();
    if let Some(used) = world.find_other_spelling(&person.id).filter(|_| is_new) {
        let message = format!(
            "is in use as `{used}`, who could write no more: add that one, or take another name"
        );
        return Err(Fault::new(Code::NameTaken, "person_id", message));
    }
    if is_new && world.people.iter().count() >= PERSONS_MAX {
        return Err(Fault::new(
            Code::ConfigInvalid,
            "person_id",
            "is one too many: a world has at most 10000",
        ));
    }
    Ok(())
}
