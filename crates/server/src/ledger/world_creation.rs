//! Creates worlds: new ones, and forks of others.
//!
//! A world exists once its configuration is recorded. A creation that fails earlier leaves contexts
//! that belong to no world. The server creates one world at a time and completes a creation even
//! if its caller disconnects. It loads a fork from the store, as it would at a start, so that a
//! restart cannot change the fork.

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

/// The facts at the beginning of a world's audit.
pub(super) fn initial_facts(world: &World) -> Vec<Fact> {
    let mut facts = vec![Fact::Config(Box::new(world.config.clone()))];
    facts.extend(world.people.iter().cloned().map(Fact::Person));
    facts
}

impl Worlds {
    /// Creates a world.
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
        let create = async move {
            let _one_at_a_time = worlds.creating.lock().await;
            let name = world.config.world.clone();
            worlds.check_free(&name)?;
            let log = worlds
                .services
                .create_log(&name, ForkBase::default(), initial_facts(&world))
                .await?;
            Ok(worlds.publish(world, log))
        };
        self.services.run_to_end(create).await?
    }

    /// Creates a world that shares the past of another, up to the last beat that a point covers.
    pub(crate) async fn fork(
        self: &Arc<Self>,
        origin: &WorldHandle,
        name: Name,
        point: impl FnOnce(&World) -> Result<Option<Point>, Fault>,
    ) -> Result<Arc<WorldHandle>, LedgerError> {
        // The log and the point belong to the same moment of the origin.
        let (origin_log, point) = origin.between_commits(point).await;
        let origin_log = origin_log
            .ok_or_else(|| Fault::new(Code::NotFound, "at", "nothing was written yet"))?;
        let point = point?;
        let (worlds, from) = (Arc::clone(self), origin.name().clone());
        let create = async move {
            let _one_at_a_time = worlds.creating.lock().await;
            worlds.check_free(&name)?;
            let services = &worlds.services;
            let (store, fork) = (services.store.store().clone(), name.clone());
            let collect_past = move || {
                let origin = Origin {
                    name: &from,
                    log: &origin_log,
                };
                SharedPast::collect(&store, origin, &fork, point.as_ref())
            };
            let SharedPast { base, beginning } = services.run_blocking(collect_past).await??;
            let log = services.create_log(&name, base, beginning).await?;
            let LoadedWorld { world, log, .. } = services.load_world(name, &log).await?;
            Ok(worlds.publish(world, log))
        };
        self.services.run_to_end(create).await?
    }

    /// Rejects a name that a world has, in this or another spelling: people would confuse the two.
    fn check_free(&self, name: &Name) -> Result<(), Fault> {
        match self.find(name.as_str()) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Err(name_taken_fault()),
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

    /// Makes a created world available to callers, and notifies subscribers of it.
    fn publish(&self, world: World, log: WorldLog) -> Arc<WorldHandle> {
        let handle = self.add(world, Some(log));
        self.services.changes.notify(handle.name());
        handle
    }
}

fn name_taken_fault() -> Fault {
    Fault::new(
        Code::NameTaken,
        "world_id",
        "is the name of a world that there is already",
    )
}

impl LedgerServices {
    /// Creates a world's contexts and records its first facts. It can be repeated after a crash: the
    /// audit context has an idempotency key, and contexts without records belong to no world.
    pub(super) async fn create_log(
        &self,
        name: &Name,
        base: ForkBase,
        initial_facts: Vec<Fact>,
    ) -> Result<WorldLog, LedgerError> {
        self.publish_record_types().await?;
        let [reality, audit, derived] = log::create_contexts(name, base);
        // First the audit: its key finds the context of an earlier attempt with this name.
        let audit = self.create_context(audit).await?;
        if log::is_configured(self.store.store(), audit)? {
            return Err(name_taken_fault().into());
        }
        let derived = self.create_context(derived).await?;
        let mut log = WorldLog::new(WorldContexts {
            reality: self.create_context(reality).await?,
            audit,
            derived,
        });
        // The contexts of a fork already contain the past of its origin.
        log.skip_to_end(self.store.store())?;
        // A fork may have many first facts, so they are encoded on a blocking thread.
        let encoder = log.clone();
        let append = self
            .run_blocking(move || encoder.append_command(&initial_facts))
            .await??;
        let Some(command) = append else {
            return Ok(log);
        };
        match self.store.run(command).await? {
            Outcome::Appended(appended) => log.record_appended(&appended),
            other => {
                return Err(LedgerError::Abandoned(format!(
                    "an append ended as {other:?}"
                )));
            }
        }
        Ok(log)
    }

    /// Loads a world that was just created.
    async fn load_world(&self, name: Name, log: &WorldLog) -> Result<LoadedWorld, LedgerError> {
        let (store, contexts) = (self.store.store().clone(), log.contexts());
        let loaded = self
            .run_blocking(move || log::load(&store, contexts))
            .await??;
        Ok(loaded.ok_or(log::LoadError::NoConfiguration(name))?)
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
