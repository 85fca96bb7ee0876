//! How worlds begin: made, or forked from another.
//!
//! A world is there once its configuration is recorded; what broke off before leaves contexts that
//! nobody finds. One is made at a time, to its end, even if whoever asked for it goes away. A fork
//! is read from the store like any world at a start, so that it is the same after the next one.

use std::sync::Arc;

use turnkeep_ledger::as_of::Point;
use turnkeep_ledger::config::Person;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::fork::{Origin, SharedPast};
use turnkeep_ledger::ids::Name;
use turnkeep_ledger::log::{self, ForkBase, LoadedWorld, WorldContexts, WorldLog};
use turnkeep_ledger::{Code, Config, Fault, World};
use turnkeep_store::{Command, Outcome};
use turnkeep_types::ContextId;

use super::error::LedgerError;
use super::world_handle::WorldHandle;
use super::worlds::{LedgerServices, Worlds};

/// What a world's audit begins with.
pub(super) fn beginning(world: &World) -> Vec<Fact> {
    let people = world.people.iter().cloned().map(Fact::Person);
    [Fact::Config(Box::new(world.config.clone()))]
        .into_iter()
        .chain(people)
        .collect()
}

impl Worlds {
    /// Makes a world.
    pub(crate) async fn create(
        self: &Arc<Self>,
        config: Config,
        persons: Vec<Person>,
    ) -> Result<Arc<WorldHandle>, LedgerError> {
        let mut world = World::new(config);
        for person in persons {
            world.apply(Fact::Person(person));
        }
        let worlds = Arc::clone(self);
        let make = async move {
            let _one = worlds.making.lock().await;
            let name = world.config.world.clone();
            worlds.check_free(&name)?;
            let place = worlds
                .services
                .found(&name, ForkBase::default(), beginning(&world))
                .await?;
            Ok(worlds.open_to_all(world, place))
        };
        self.services.run_to_end(make).await?
    }

    /// Makes a world that shares the past of another, up to the last beat that a point covers.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        origin: &WorldHandle,
        name: Name,
        point: impl FnOnce(&World) -> Result<Option<Point>, Fault>,
    ) -> Result<Arc<WorldHandle>, LedgerError> {
        let (place, point) = origin.between_commits(point).await;
        let place =
            place.ok_or_else(|| Fault::new(Code::NotFound, "at", "nothing was written yet"))?;
        let point = point?;
        let (worlds, from) = (Arc::clone(self), origin.name().clone());
        let make = async move {
            let _one = worlds.making.lock().await;
            worlds.check_free(&name)?;
            let (store, fork) = (worlds.services.store.store().clone(), name.clone());
            let past = move || {
                let origin = Origin {
                    name: &from,
                    log: &place,
                };
                SharedPast::collect(&store, origin, &fork, point.as_ref())
            };
            let past = worlds.services.run_blocking(past).await??;
            let place = worlds
                .services
                .found(&name, past.base, past.beginning)
                .await?;
            let (store, contexts) = (worlds.services.store.store().clone(), place.contexts());
            let world = worlds
                .services
                .run_blocking(move || log::load(&store, contexts))
                .await??;
            let LoadedWorld { world, log: place } =
                world.ok_or(log::LoadError::NoConfiguration(name))?;
            Ok(worlds.open_to_all(world, place))
        };
        self.services.run_to_end(make).await?
    }

    /// Refuses a name that a world has, in this or another spelling: people would take one for the
    /// other.
    fn check_free(&self, name: &Name) -> Result<(), Fault> {
        match self.find(name.as_str()) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Err(taken()),
        }
        match self.find_other_spelling(name) {
            None => Ok(()),
            Some(other) => {
                let message = format!(
                    "differs from the name of the world `{other}` by upper and lower case only"
                );
                Err(Fault::new(Code::NameTaken, "world_id", message))
            }
        }
    }

    fn open_to_all(&self, world: World, place: WorldLog) -> Arc<WorldHandle> {
        let room = self.add(world, Some(place));
        self.services.changes.notify(room.name());
        room
    }
}

fn taken() -> Fault {
    Fault::new(
        Code::NameTaken,
        "world_id",
        "is the name of a world that there is already",
    )
}

impl LedgerServices {
    /// Makes a world's contexts and records its beginning. Repeatable after a crash in between.
    pub(super) async fn found(
        &self,
        name: &Name,
        base: ForkBase,
        beginning: Vec<Fact>,
    ) -> Result<WorldLog, LedgerError> {
        self.publish_record_types().await?;
        let [reality, audit, derived] = log::create_contexts(name, base);
        let audit = self.create_context(audit).await?;
        if log::is_configured(self.store.store(), audit)? {
            return Err(taken().into());
        }
        let derived = self.create_context(derived).await?;
        let mut place = WorldLog::new(WorldContexts {
            reality: self.create_context(reality).await?,
            audit,
            derived,
        });
        // A fork's contexts have its origin's past in them already.
        place.skip_to_end(self.store.store())?;
        let here = place.clone();
        let append = self
            .run_blocking(move || here.append_command(&beginning))
            .await??;
        let Some(command) = append else {
            return Ok(place);
        };
        match self.store.run(command).await? {
            Outcome::Appended(appended) => place.record_appended(&appended),
            other => {
                return Err(LedgerError::Abandoned(format!(
                    "an append ended as {other:?}"
                )));
            }
        }
        Ok(place)
    }

    async fn create_context(&self, command: Command) -> Result<ContextId, LedgerError> {
        match self.store.run(command).await? {
            Outcome::Created(created) => Ok(created.context),
            other => Err(LedgerError::Abandoned(format!(
                "a creation ended as {other:?}"
            ))),
        }
    }
}
