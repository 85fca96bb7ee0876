//! Creates, lists, shows, changes and forks worlds; for the owner only.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use turnkeep_ledger::as_of::Point;
use turnkeep_ledger::config::{NAME_RULE, PERSONS_MAX, People, Person};
use turnkeep_ledger::fact::{ClockState, Fact, TimeDeclaration};
use turnkeep_ledger::ids::{Name, WORLD};
use turnkeep_ledger::json::Node;
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{Code, Config, Fault, Viewer, World};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::NoQuery;
use super::acting_caller::ActingCaller;
use super::body;
use super::shapes::world_shape;
use crate::error::ApiError;
use crate::shared::Shared;

/// Lists the worlds.
#[utoipa::path(get, path = "/v1/worlds", tag = "worlds",
    responses((status = 200, description = "Every world, by name", body = wire::ledger::WorldList)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Json<wire::ledger::WorldList> {
    let worlds = shared.worlds.list();
    Json(wire::ledger::WorldList {
        worlds: worlds
            .iter()
            .map(|handle| handle.read(world_shape))
            .collect(),
    })
}

/// Makes a world.
#[utoipa::path(post, path = "/v1/worlds", tag = "worlds", request_body = wire::ledger::CreateWorld,
    responses((status = 201, description = "The world's configuration", body = wire::ledger::World)))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    body: body::Json,
) -> Result<(StatusCode, Json<wire::ledger::World>), ApiError> {
    let now = WorldTime::from_timestamp(shared.worlds.now());
    let root = body.root(Code::ConfigInvalid);
    // Before the lists are read into persons, of which each takes memory.
    check_people_count(&root)?;
    let (config, persons) = Config::from_json(&root, now)?;
    check_distinct(&persons)?;
    let mut people = People::default();
    for person in &persons {
        people.add(person.clone());
    }
    check_writer_persons(&config, &people)?;
    let handle = shared.worlds.create(config, persons).await?;
    Ok((StatusCode::CREATED, Json(handle.read(world_shape))))
}

/// Rejects a list of more people than a world may have.
fn check_people_count(root: &Node<'_>) -> Result<(), Fault> {
    for key in ["persons", "writer_persons"] {
        if let Some(node) = root.optional(key)?
            && node.items()?.len() > PERSONS_MAX
        {
            return Err(node.fault(format!(
                "names more than the {PERSONS_MAX} persons that a world may have"
            )));
        }
    }
    Ok(())
}

/// Rejects two persons whose ids differ at most in upper and lower case.
fn check_distinct(persons: &[Person]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    let again = persons
        .iter()
        .position(|person| !seen.insert(person.id.as_str().to_ascii_lowercase()));
    again.map_or(Ok(()), |index| {
        let path = format!("persons[{index}].person_id");
        Err(Fault::new(
            Code::NameTaken,
            path,
            "is there already, perhaps in another spelling",
        ))
    })
}

/// Rejects an attached writer whose persons are unknown or named twice.
fn check_writer_persons(config: &Config, people: &People) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for (index, name) in config.writer_persons.iter().flatten().enumerate() {
        let refuse = |message| {
            let path = format!("writer_persons[{index}]");
            Err(Fault::new(Code::ConfigInvalid, path, message))
        };
        if !seen.insert(name.as_str().to_ascii_lowercase()) {
            return refuse("is in the list already, perhaps in another spelling");
        }
        // The world's own voice is no person, and a writer may have it.
        if name.as_str() != WORLD && people.resolve(name.as_str(), config.registry).is_err() {
            return refuse(
                "is not a person of this world: a writer could not write under this name",
            );
        }
    }
    Ok(())
}

/// Shows a world.
#[utoipa::path(get, path = "/v1/worlds/{world}", tag = "worlds", params(("world" = String, Path)),
    responses((status = 200, description = "Its configuration, people and clock", body = wire::ledger::World)))]
pub(crate) async fn show(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
) -> Json<wire::ledger::World> {
    Json(acting.handle.read(world_shape))
}

/// Changes a world's configuration; `profile` and `clock` are fixed.
#[utoipa::path(patch, path = "/v1/worlds/{world}", tag = "worlds", params(("world" = String, Path)),
    request_body = wire::ledger::ChangeWorld,
    responses((status = 200, description = "The configuration as it is now", body = wire::ledger::World)))]
pub(crate) async fn change(
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    body: body::Json,
) -> Result<Json<wire::ledger::World>, ApiError> {
    acting
        .handle
        .record_decided(move |world| change_facts(world, &body))
        .await?;
    Ok(Json(acting.handle.read(world_shape)))
}

/// The facts that change a configuration. A new zone is also a declaration about time, as in a beat.
fn change_facts(world: &World, body: &body::Json) -> Result<Vec<Fact>, Fault> {
    let root = body.root(Code::ConfigInvalid);
    check_people_count(&root)?;
    let config = world.config.with_changes(&root)?;
    // A change of the registry may make a writer's persons unknown. Any other change leaves them
    // alone, so it is not refused for them.
    if root.optional("writer_persons")?.is_some() || root.optional("registry")?.is_some() {
        check_writer_persons(&config, &world.people)?;
    }
    let timezone = config.timezone.clone();
    let mut facts = vec![Fact::Config(Box::new(config))];
    if root.optional("timezone")?.is_some() {
        let from = world.clock.time.clone();
        let to = ClockState {
            timezone,
            ..world.clock.clone()
        };
        facts.push(Fact::Time(TimeDeclaration { from, to }));
    }
    Ok(facts)
}

/// Makes a world that shares this one's past, up to a time or the operator's cursor, or up to now.
#[utoipa::path(post, path = "/v1/worlds/{world}/fork", tag = "worlds", params(("world" = String, Path)),
    request_body = wire::ledger::ForkWorld,
    responses((status = 201, description = "The new world's configuration", body = wire::ledger::World)))]
pub(crate) async fn fork(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    acting: ActingCaller,
    body: body::Json,
) -> Result<(StatusCode, Json<wire::ledger::World>), ApiError> {
    let root = body.root(Code::ConfigInvalid);
    root.reject_unknown_fields(&["world_id", "at"])?;
    let given = root.field("world_id")?;
    let name = Name::new(given.text()?).ok_or_else(|| given.fault(NAME_RULE))?;
    let at = root.optional_text("at")?;
    let point = |world: &World| match at {
        Some(at) => Point::read(world, &Viewer::operator(), at, "at").map(Some),
        None => Ok(None),
    };
    let handle = shared.worlds.fork(&acting.handle, name, point).await?;
    Ok((StatusCode::CREATED, Json(handle.read(world_shape))))
}
