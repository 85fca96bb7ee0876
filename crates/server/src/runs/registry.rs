//! All runs of the server: those found in the store at the start, and those created since.
//!
//! A run that cannot be read keeps its id and the error: its routes return the error, and the other
//! runs work. A deleted run is marked by a label, and only its first record is read: a repeated
//! request must not create the run again.
//!
//! `run_creation` makes new runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use turnkeep_runtime::decide;
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{EventId, IdSource, RunId};
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::words::Provider;
use turnkeep_runtime::{Event, Run};
use turnkeep_types::{BlobHash, ContextId};
use turnkeep_wire::json::Time;
use turnkeep_wire::runs as wire;

use super::config_files::{ConfigFileError, ConfigFileKind, ConfigFiles};
use super::error::RunError;
use super::json::{NodeDefaults, SameWord as _};
use super::node_tokens::TokenNode;
use super::roles::RoleTemplate;
use super::run_handle::{NewRunHandle, RunHandle};
use super::run_log::{self, FoundRun, RunLog};
use super::services::{Heartbeat, RunNotice, RunServices};
use super::{
    clock_task, directory_listing, file_views, notifier, performer, provider_health, restart,
    roles, run_directory, world_link,
};
use crate::durable_state::RecordLog as _;
use crate::error::ApiError;
use crate::principal::{NodeCaller, PersonCaller, PersonToken};

/// All runs of the server.
pub(crate) struct Runs {
    handles: RwLock<BTreeMap<RunId, Arc<RunHandle>>>,
    unreadable: BTreeMap<RunId, String>,
    /// The runs that were created by a request with an idempotency key, deleted ones too.
    created_by_key: Mutex<HashMap<String, CreatedRun>>,
    /// Held while a run is created, so that two requests with one key make one run.
    pub(super) creating: tokio::sync::Mutex<()>,
    /// The loaded runs whose tasks were not started yet.
    waiting: Mutex<Vec<NewRunHandle>>,
    /// The deleted runs that the start tidies up after.
    deleted: Mutex<Vec<DeletedRun>>,
    pub(super) services: Arc<RunServices>,
}

/// A run that a request with a key created.
#[derive(Debug, Clone, Copy)]
struct CreatedRun {
    id: RunId,
    fingerprint: BlobHash,
}

/// A run that was deleted before the server started.
#[derive(Debug, Clone, Copy)]
struct DeletedRun {
    id: RunId,
    events: ContextId,
    is_labelled: bool,
}

impl Runs {
    /// Loads all runs from the store. Nothing happens in them before [`Self::start`].
    pub(crate) fn open(services: Arc<RunServices>) -> Arc<Self> {
        let mut runs = Self {
            handles: RwLock::default(),
            unreadable: BTreeMap::new(),
            created_by_key: Mutex::default(),
            creating: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
            deleted: Mutex::default(),
            services,
        };
        for found in run_log::find_runs(runs.services.store.store()) {
            // Also by a server that serves no runs: its other routes must not write there.
            for context in found.log.contexts() {
                runs.services.claim_context(context, found.id);
            }
            if !runs.services.settings.is_served {
                continue;
            }
            let id = found.id;
            if let Err(error) = runs.load(found) {
                tracing::error!(run = %id, %error, "the run cannot be read; the others are served");
                runs.unreadable.insert(id, error.to_string());
            }
        }
        Arc::new(runs)
    }

    fn load(&self, found: FoundRun) -> Result<(), RunError> {
        if found.is_deleted {
            return self.load_deleted(&found);
        }
        let first_own = found.copied_events;
        let FoundRun { id, mut log, .. } = found;
        let events = log.read_new_facts(self.services.store.store())?;
        // A server that ended between creating the context and appending the first event leaves an
        // empty one. No client was ever given that run's id.
        let Some(first_own) = events.get(first_own) else {
            return Ok(());
        };
        self.remember_key(first_own.request.as_ref(), id);
        let mut run = Run::new(id);
        for event in &events {
            run.apply(event);
        }
        if run.live.is_deleted {
            self.remember_deleted(id, log.events(), false);
        } else {
            let new = self.add(run, log);
            lock(&self.waiting).push(new);
        }
        Ok(())
    }

    fn load_deleted(&self, found: &FoundRun) -> Result<(), RunError> {
        let store = self.services.store.store();
        let first_own = found.copied_events as u64 + 1;
        let first: Vec<Event> = run_log::read_events(store, found.log.events(), first_own, 1)?;
        let request = first.first().and_then(|event| event.request.as_ref());
        self.remember_key(request, found.id);
        self.remember_deleted(found.id, found.log.events(), true);
        Ok(())
    }

    fn remember_deleted(&self, id: RunId, events: ContextId, is_labelled: bool) {
        lock(&self.deleted).push(DeletedRun {
            id,
            events,
            is_labelled,
        });
    }

    pub(super) fn remember_key(&self, request: Option<&RequestKey>, id: RunId) {
        if let Some(RequestKey { key, fingerprint }) = request {
            let created = CreatedRun {
                id,
                fingerprint: *fingerprint,
            };
            lock(&self.created_by_key).insert(key.clone(), created);
        }
    }

    /// Forgets a request whose run was not made after all.
    pub(super) fn forget_key(&self, request: Option<&RequestKey>) {
        if let Some(request) = request {
            lock(&self.created_by_key).remove(&request.key);
        }
    }

    fn add(&self, run: Run, log: RunLog) -> NewRunHandle {
        let new = RunHandle::make(run, log, Arc::clone(&self.services));
        self.insert(&new.handle);
        new
    }

    /// Makes a run visible to requests.
    pub(super) fn insert(&self, handle: &Arc<RunHandle>) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        handles.insert(handle.id(), Arc::clone(handle));
    }

    /// Ends the turns that were open when the server stopped, and starts the tasks of all runs.
    pub(crate) async fn start(&self, mcp_url: String) {
        self.services.set_mcp_url(mcp_url);
        self.reap_leftovers().await;
        self.tidy_up_deleted().await;
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for new in waiting {
            self.start_loaded(new).await;
        }
        notifier::start(&self.services, &self.list());
    }

    /// Kills processes that outlived an earlier server. A server that lives for one command starts
    /// none, and leaves them to the next one that does.
    async fn reap_leftovers(&self) {
        if !self.services.settings.is_served {
            return;
        }
        let records = self.services.process_records.clone();
        let reap = move || records.reap_leftovers();
        match self.services.run_blocking(reap).await {
            Ok(Ok(reaped)) if reaped.killed == 0 => {}
            Ok(Ok(reaped)) => {
                tracing::warn!(
                    groups = reaped.killed,
                    "processes of an earlier server were killed"
                );
            }
            Ok(Err(error)) => tracing::error!(%error, "leftovers of an earlier server stay"),
            Err(error) => tracing::error!(%error, "leftovers of an earlier server stay"),
        }
    }

    /// Undoes what an earlier server left halfway in the directories of a run.
    async fn recover_directories(&self, handle: &Arc<RunHandle>, cwd: Option<&str>) {
        let Some(cwd) = cwd.map(std::path::PathBuf::from) else {
            return;
        };
        let (services, run) = (Arc::clone(&self.services), handle.id());
        let recover = move || services.workspaces.recover(run, &cwd);
        if let Err(error) = self.services.run_file_work(recover).await {
            tracing::error!(%run, %error, "the run's directories were not looked at");
        }
    }

    async fn start_loaded(&self, new: NewRunHandle) {
        let handle = Arc::clone(&new.handle);
        let cwd = handle.read_live(|run| run.settings.cwd.clone());
        // First: an apply that a crash cut off must be undone before anything looks at the files.
        self.recover_directories(&handle, cwd.as_deref()).await;
        if let Err(error) = self.detect_repository(cwd).await {
            tracing::warn!(run = %handle.id(), %error, "the run's directory is not known");
        }
        self.start_followers(new);
        match restart::restart_run(&handle).await {
            Ok(()) => self.start_clock(&handle),
            Err(error) => {
                tracing::error!(run = %handle.id(), %error, "the run is not restarted yet");
                let later = restart::restart_later(Arc::clone(&handle));
                self.services.spawn_background(later);
            }
        }
        run_directory::fail_if_missing(&handle).await;
    }

    /// Completes deletions that the end of the server cut short.
    async fn tidy_up_deleted(&self) {
        let deleted = std::mem::take(&mut *lock(&self.deleted));
        for run in deleted {
            if !run.is_labelled {
                self.services.label_deleted(run.id, run.events).await;
            }
            self.services.remove_files(run.id).await;
        }
    }

    /// Starts everything that a new run needs.
    pub(super) fn start_tasks(&self, new: NewRunHandle) {
        let handle = Arc::clone(&new.handle);
        self.start_followers(new);
        self.start_clock(&handle);
    }

    fn start_clock(&self, handle: &Arc<RunHandle>) {
        let clock = clock_task::pass_time(Arc::clone(handle));
        self.services.spawn_background(clock);
    }

    /// Starts the tasks that act only after a decision.
    fn start_followers(&self, new: NewRunHandle) {
        let NewRunHandle { handle, effects } = new;
        let services = &self.services;
        services.spawn_background(performer::perform_effects(Arc::clone(&handle), effects));
        services.spawn_background(world_link::report_to_world(Arc::clone(&handle)));
        services.spawn_until_done(file_views::write_files(handle));
    }

    /// Looks whether nodes can have worktrees, before the first decision asks.
    pub(super) async fn detect_repository(&self, cwd: Option<String>) -> Result<(), RunError> {
        let Some(cwd) = cwd else {
            return Ok(());
        };
        let services = Arc::clone(&self.services);
        let detect = move || services.workspaces.detect_repository(&cwd);
        self.services.run_blocking(detect).await
    }

    /// The run that an earlier request with this key created.
    pub(super) fn find_created(
        &self,
        key: Option<&RequestKey>,
    ) -> Result<Option<Arc<RunHandle>>, RunError> {
        let Some(key) = key else {
            return Ok(None);
        };
        let created = lock(&self.created_by_key).get(&key.key).copied();
        match created {
            None => Ok(None),
            Some(created) if created.fingerprint == key.fingerprint => {
                self.get(created.id).map(Some)
            }
            Some(_) => Err(RunError::KeyReused),
        }
    }

    /// The run of this id.
    pub(crate) fn get(&self, id: RunId) -> Result<Arc<RunHandle>, RunError> {
        if let Some(error) = self.unreadable.get(&id) {
            return Err(RunError::Unreadable(error.clone()));
        }
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&id).cloned().ok_or(RunError::UnknownRun(id))
    }

    /// All runs that can be read, the newest first.
    pub(crate) fn list(&self) -> Vec<Arc<RunHandle>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<RunHandle>> = handles.values().cloned().collect();
        drop(handles);
        // By their contexts: a fork has the time of its origin, but is newer.
        all.sort_by_key(|handle| std::cmp::Reverse(handle.events_context()));
        all
    }

    /// Deletes a run, even if the caller disconnects. Its id is unknown from then on.
    pub(crate) async fn delete(self: &Arc<Self>, handle: &Arc<RunHandle>) -> Result<(), RunError> {
        let (runs, handle) = (Arc::clone(self), Arc::clone(handle));
        let work = async move {
            handle
                .decide(|run, around| Ok(decide::delete_run(run, around)))
                .await?;
            runs.remove(handle.id());
            let events = handle.events_context();
            runs.services.label_deleted(handle.id(), events).await;
            Ok(())
        };
        self.services.run_to_end(work).await?
    }

    fn remove(&self, id: RunId) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        handles.remove(&id);
    }

    /// The node that holds this token.
    pub(crate) fn find_node(&self, secret: &str) -> Option<NodeCaller> {
        let (TokenNode { run, node }, token) = self.services.node_tokens.find(secret)?;
        let handle = self.get(run).ok()?;
        let person = world_link::find_person(&handle, node).map(|found| PersonCaller {
            handle: found.world,
            who: found.principal,
            token: PersonToken::OfNode { node, token },
        });
        Some(NodeCaller {
            handle,
            node,
            person,
        })
    }

    /// What a node gets whose request leaves it out. An unknown role is an error.
    pub(crate) async fn node_defaults(
        &self,
        handle: &RunHandle,
        body: &wire::CreateNode,
    ) -> Result<NodeDefaults, ApiError> {
        let provider = Provider::from_wire(body.provider);
        let settings = &self.services.settings;
        let cli = settings.default_permissions(provider, body.provider_name.as_deref());
        let template = self.read_role(handle, &body.role_template).await?;
        let defaults = NodeDefaults::of_role(&body.role_template, cli);
        Ok(template.adjust(defaults))
    }

    /// Rejects a node whose program is not configured, or cannot do what the node's settings want.
    pub(crate) fn check_node(&self, settings: &NodeSettings) -> Result<(), RunError> {
        self.services.settings.program_of(settings)?;
        Ok(self.services.settings.check_permissions(settings)?)
    }

    /// Rejects a change of a node. A node whose program is not configured any more may keep it.
    pub(crate) fn check_change(
        &self,
        before: &NodeSettings,
        after: &NodeSettings,
    ) -> Result<(), RunError> {
        let program = |node: &NodeSettings| (node.provider, node.provider_name.clone());
        if program(before) != program(after) {
            self.services.settings.program_of(after)?;
        }
        Ok(self.services.settings.check_permissions(after)?)
    }

    /// The template of a role that a request names.
    pub(crate) async fn read_role(
        &self,
        handle: &RunHandle,
        role: &str,
    ) -> Result<RoleTemplate, ApiError> {
        let role = role.to_owned();
        let cwd = handle.read_live(|run| run.settings.cwd.clone());
        let roles_dir = self.services.settings.roles_dir.clone();
        let read = move || roles::read(&role, cwd.as_deref(), roles_dir.as_deref());
        let template = self.services.run_blocking(read).await?;
        template.map_err(|message| ApiError::bad_request(message).with("path", "roleTemplate"))
    }

    /// What is known about the programs of this machine.
    pub(crate) async fn check_providers(&self) -> Vec<wire::ProviderHealth> {
        provider_health::check_all(&self.services.settings).await
    }

    /// Reads or changes the roles or teams of this machine, on a thread that may block.
    pub(crate) async fn use_config_files<T: Send + 'static>(
        &self,
        kind: ConfigFileKind,
        work: impl FnOnce(ConfigFiles<'_>) -> Result<T, ConfigFileError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let services = Arc::clone(&self.services);
        let work = move || {
            let config = &services.settings;
            work(ConfigFiles { kind, config })
        };
        Ok(self.services.run_blocking(work).await??)
    }

    /// Lists a directory of this machine.
    pub(crate) async fn list_directory(
        &self,
        path: Option<String>,
    ) -> Result<wire::DirectoryListing, ApiError> {
        let services = Arc::clone(&self.services);
        let list = move || directory_listing::list(path.as_deref(), &services.settings.fs_roots);
        Ok(self.services.run_blocking(list).await??)
    }

    /// The run that owns a context.
    pub(crate) fn context_owner(&self, context: ContextId) -> Option<RunId> {
        self.services.context_owner(context)
    }

    /// Subscribes to the heartbeats of all runs.
    pub(crate) fn subscribe_heartbeats(&self) -> tokio::sync::broadcast::Receiver<Heartbeat> {
        self.services.subscribe_heartbeats()
    }

    /// A heartbeat as an event. It has no number, because it is not recorded.
    pub(crate) fn heartbeat_event(&self, beat: Heartbeat) -> wire::EventView {
        let id: EventId = IdSource::draw(&mut self.services.new_ids());
        wire::EventView {
            id: wire::UuidText::of(id),
            run_id: wire::UuidText::of(beat.run),
            ts: Time(beat.at),
            seq: None,
            node_id: Some(wire::UuidText::of(beat.node)),
            turn_id: None,
            body: wire::EventBody::NodeHeartbeat {
                connection: beat.connection,
            },
        }
    }

    /// Subscribes to the events of all runs.
    pub(crate) fn subscribe_notices(&self) -> tokio::sync::broadcast::Receiver<RunNotice> {
        self.services.subscribe_notices()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
