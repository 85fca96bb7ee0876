//! Creates runs: the run itself, then the nodes and edges of its team.
//!
//! A creation goes on to its end even if the caller disconnects, and one at a time: a repeat with the
//! same idempotency key finds the run of the first request. Each part of the team has a key of its
//! own, made from the request's. If the server ends in between, a repeat adds the parts that are
//! missing and no part twice.

use std::sync::Arc;

use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, NodeRequest, Surroundings};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{IdSource, RunId};
use turnkeep_runtime::run::RunSettings;
use turnkeep_wire::runs as wire;
use turnkeep_wire::runs::GraphFile;

use super::error::RunError;
use super::json::NewRun;
use super::registry::Runs;
use super::run_handle::{Decided, RunHandle};
use super::run_log::{self, RunLog};
use super::world_link::NodeOrigin;
use super::{json, provider_health, run_directory, teams, world_link};
use crate::error::ApiError;

/// Separates a request's key from the name of a part. No header can contain it.
const PART_SEPARATOR: char = '\n';

/// A program as requests name it.
#[derive(Debug, Clone)]
struct NodeProgram {
    provider: wire::Provider,
    provider_name: Option<String>,
}

/// The team of a new run, and the program of the nodes that name none.
struct ChosenTeam {
    graph: GraphFile,
    default_program: Option<NodeProgram>,
}

impl Runs {
    /// Creates a run, with the nodes of its team if it names one. A repeated request returns the run
    /// of the first one.
    pub(crate) async fn create(
        self: &Arc<Self>,
        body: wire::CreateRun,
        key: Option<RequestKey>,
    ) -> Result<Arc<RunHandle>, ApiError> {
        let runs = Arc::clone(self);
        let work = async move { runs.create_to_end(body, key).await };
        self.services.run_to_end(work).await?
    }

    async fn create_to_end(
        self: &Arc<Self>,
        body: wire::CreateRun,
        key: Option<RequestKey>,
    ) -> Result<Arc<RunHandle>, ApiError> {
        let _creating = self.creating.lock().await;
        let earlier = self.find_created(key.as_ref())?;
        if let Some(earlier) = earlier.as_ref().filter(|run| is_whole(run, key.as_ref())) {
            return Ok(Arc::clone(earlier));
        }
        let team = self.choose_team(body.team.as_deref()).await?;
        let body = self.complete_body(body, team.as_ref());
        let NewRun {
            settings,
            docs_node,
        } = json::new_run(body, self.services.settings.limits)?;
        check_docs_node(docs_node.as_deref(), team.as_ref())?;
        if let Some(team) = &team {
            self.check_programs(team)?;
        }
        let handle = match earlier {
            Some(earlier) => earlier,
            None => self.create_empty(settings, key.clone()).await?,
        };
        let parts = TeamParts {
            runs: self,
            handle: &handle,
            key: key.as_ref(),
        };
        if let Err(error) = parts.add(team.as_ref(), docs_node).await {
            // The caller gets an error, so the half-made run must not stay. A repeated request with
            // the same key must create a new one.
            self.forget_key(key.as_ref());
            self.delete(&handle).await?;
            return Err(error);
        }
        Ok(handle)
    }

    /// Adds what the team and the configuration say to what the request says.
    fn complete_body(&self, body: wire::CreateRun, team: Option<&ChosenTeam>) -> wire::CreateRun {
        let body = match team {
            Some(team) => team.graph.complete(body),
            None => body,
        };
        let defaults = GraphFile {
            verify: self.services.settings.verify.clone(),
            setup: self.services.settings.setup.clone(),
            ..GraphFile::default()
        };
        defaults.complete(body)
    }

    /// Creates a run without nodes.
    async fn create_empty(
        &self,
        settings: RunSettings,
        key: Option<RequestKey>,
    ) -> Result<Arc<RunHandle>, ApiError> {
        if !self.services.settings.is_served {
            let message = "this server lives for one command: start `turnkeep up`";
            return Err(RunError::Abandoned(message.to_owned()).into());
        }
        let checked = world_link::check_world(&self.services.worlds, settings.world.as_deref());
        checked.map_err(RunError::from)?;
        if let Some(cwd) = settings.cwd.clone() {
            let checked = self
                .services
                .run_blocking(move || run_directory::check(&cwd));
            let refuse =
                |reason| ApiError::bad_request(format!("cwd {reason}")).with("path", "cwd");
            checked.await?.map_err(refuse)?;
        }
        self.detect_repository(settings.cwd.clone()).await?;
        self.services.publish_record_types().await?;
        let id: RunId = IdSource::draw(&mut self.services.new_ids());
        let create = run_log::create_events(id);
        let context = self.services.create_context(create).await?;
        self.services.claim_context(context, id);
        let (run, log) = (Run::new(id), RunLog::new(context));
        let new = RunHandle::make(run, log, Arc::clone(&self.services));
        let handle = Arc::clone(&new.handle);
        let decide = move |run: &Run, around: Surroundings<'_>| {
            Ok(decide::create_run(run, around, settings.clone()))
        };
        if let Decided::Before { .. } = handle.decide_once(key.clone(), decide).await? {
            return Err(RunError::Abandoned("a new run has events".to_owned()).into());
        }
        // Only now, so that a creation that failed leaves its key free.
        self.remember_key(key.as_ref(), id);
        self.insert(&handle);
        self.start_tasks(new);
        Ok(handle)
    }

    /// Rejects a team with a program that is not configured, before anything is created.
    fn check_programs(&self, team: &ChosenTeam) -> Result<(), ApiError> {
        let settings = &self.services.settings;
        for node in &team.graph.nodes {
            let program = program_of(node, team.default_program.as_ref());
            let provider = json::SameWord::from_wire(program.provider);
            let found = settings.find_program(provider, program.provider_name.as_deref());
            let refuse = |unknown| ApiError::from(RunError::from(unknown)).with("path", "team");
            found.map_err(refuse)?;
        }
        Ok(())
    }

    /// The team of this name, and the program that its nodes run.
    async fn choose_team(&self, name: Option<&str>) -> Result<Option<ChosenTeam>, ApiError> {
        let Some(name) = name.map(str::to_owned) else {
            return Ok(None);
        };
        let refuse = |message: String| ApiError::bad_request(message).with("path", "team");
        let user_dir = self.services.settings.teams_dir.clone();
        let find = {
            let name = name.clone();
            move || teams::find(&name, user_dir.as_deref())
        };
        let found = self.services.run_blocking(find).await?.map_err(refuse)?;
        let Some(graph) = found else {
            let known: Vec<&str> = teams::built_in_names().collect();
            let known = known.join(", ");
            let message = format!("there is no team `{name}`: use one of {known}, or make it");
            return Err(refuse(message));
        };
        let default_program = first_program(self);
        if graph.needs_program() && default_program.is_none() {
            let message = "no agent program was found: install claude, codex or gemini, or set \
                [providers] in the configuration";
            return Err(refuse(message.to_owned()));
        }
        Ok(Some(ChosenTeam {
            graph,
            default_program,
        }))
    }
}

/// Rejects a docs node that no node of the team is.
fn check_docs_node(alias: Option<&str>, team: Option<&ChosenTeam>) -> Result<(), ApiError> {
    let Some(alias) = alias else {
        return Ok(());
    };
    let mut nodes = team.iter().flat_map(|team| &team.graph.nodes);
    let is_there = nodes.any(|node| {
        let known = node.alias.as_deref();
        known.is_some_and(|known| known.eq_ignore_ascii_case(alias))
    });
    if is_there {
        return Ok(());
    }
    let message = format!("docsNode is `{alias}`, which is no node of the team");
    Err(ApiError::bad_request(message).with("path", "docsNode"))
}

fn first_program(runs: &Runs) -> Option<NodeProgram> {
    let installed = provider_health::first_installed(&runs.services.settings)?;
    Some(NodeProgram {
        provider: json::SameWord::to_wire(installed.provider),
        provider_name: installed.provider_name,
    })
}

/// Whether the earlier request with this key added all parts.
fn is_whole(handle: &RunHandle, key: Option<&RequestKey>) -> bool {
    let whole = key.map(|key| part_key(key, "whole"));
    whole.is_some_and(|whole| handle.read(|run| run.archive.request(&whole.key).is_some()))
}

/// The key of a part of a request.
fn part_key(request: &RequestKey, part: &str) -> RequestKey {
    RequestKey {
        key: format!("{}{PART_SEPARATOR}{part}", request.key),
        fingerprint: request.fingerprint,
    }
}

/// Adds the parts of a team to a run.
struct TeamParts<'a> {
    runs: &'a Runs,
    handle: &'a Arc<RunHandle>,
    key: Option<&'a RequestKey>,
}

impl TeamParts<'_> {
    async fn add(
        &self,
        team: Option<&ChosenTeam>,
        docs_node: Option<String>,
    ) -> Result<(), ApiError> {
        if let Some(team) = team {
            for (place, node) in team.graph.nodes.iter().enumerate() {
                let program = program_of(node, team.default_program.as_ref());
                let request = node.request(program.provider, program.provider_name);
                self.add_node(place, request).await?;
            }
            for (place, edge) in team.graph.edge_requests().into_iter().enumerate() {
                self.add_edge(place, edge).await?;
            }
        }
        if let Some(alias) = docs_node {
            self.set_docs_node(alias).await?;
        }
        // Marks the end, so that a repeat has nothing to look for.
        if let Some(key) = self.part_key("whole") {
            let note = |run: &Run, around: Surroundings<'_>| Ok(decide::note_request(run, around));
            self.handle.decide_once(Some(key), note).await?;
        }
        Ok(())
    }

    fn part_key(&self, part: &str) -> Option<RequestKey> {
        self.key.map(|key| part_key(key, part))
    }

    async fn add_node(&self, place: usize, request: wire::CreateNode) -> Result<(), ApiError> {
        let defaults = self.runs.node_defaults(self.handle, &request).await?;
        let mut settings = json::node_settings(request, defaults)?;
        self.runs.check_node(&settings)?;
        let person = world_link::choose_person(self.handle, &settings, NodeOrigin::Owner);
        settings.person = person.map_err(RunError::from)?;
        let new = NodeRequest {
            settings,
            parent: None,
        };
        let add =
            move |run: &Run, around: Surroundings<'_>| decide::add_node(run, around, new.clone());
        let key = self.part_key(&format!("node {place}"));
        self.handle.decide_once(key, add).await?;
        Ok(())
    }

    async fn add_edge(&self, place: usize, request: wire::CreateEdge) -> Result<(), ApiError> {
        let connect = move |run: &Run, around: Surroundings<'_>| {
            decide::connect(run, around, json::edge_request(&request))
        };
        let key = self.part_key(&format!("edge {place}"));
        self.handle.decide_once(key, connect).await?;
        Ok(())
    }

    async fn set_docs_node(&self, alias: String) -> Result<(), ApiError> {
        let body = wire::ChangeRun {
            docs_node: Some(Some(alias)),
            ..wire::ChangeRun::default()
        };
        let change = move |run: &Run, around: Surroundings<'_>| {
            let change = json::change_of_run(&body, &run.live)?;
            Ok(decide::change_run(run, around, change)?)
        };
        let key = self.part_key("docs node");
        self.handle.decide_request(key, change).await?;
        Ok(())
    }
}

/// The program of a team's node: its own, or the default one.
fn program_of(node: &wire::GraphNode, default: Option<&NodeProgram>) -> NodeProgram {
    let Some(name) = &node.provider else {
        // A team whose nodes need a default program was refused without one.
        let none = NodeProgram {
            provider: wire::Provider::Custom,
            provider_name: None,
        };
        return default.cloned().unwrap_or(none);
    };
    let mut kinds = wire::Provider::ALL.iter().copied();
    let known = kinds.find(|kind| kind.word() == name && *kind != wire::Provider::Custom);
    NodeProgram {
        provider: known.unwrap_or(wire::Provider::Custom),
        provider_name: known.is_none().then(|| name.clone()),
    }
}
