//! The client of the server's routes for runs.
//!
//! A run belongs to a server that keeps running: its agents end with the server's process. So these
//! commands never start a server inside the command, as the commands of the store do. Without a
//! running server they fail and say how to start one.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{RunAnswer, RunView};

use super::names::{KnownRuns, RunName};
use crate::commands::App;
use crate::config::{Setting, Source};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::session::{StoreSession, server_on};

/// A client of the server that runs the agents.
pub(crate) struct RunsClient {
    http: Http,
    is_lasting: bool,
}

/// An answer, as the server wrote it and as this program reads it.
pub(crate) struct ServerAnswer<T> {
    /// For `--json`: it also has the fields that this version does not know.
    pub(crate) json: Value,
    pub(crate) view: T,
}

impl RunsClient {
    /// Finds the running server.
    pub(crate) async fn connect(app: &App) -> Result<Self> {
        let config = app.config()?;
        let dir = DataDir::new(&config.data.value);
        if config.server.value.is_none() && server_on(&dir).await.is_none() {
            return Err(no_server_error(&config.data));
        }
        let session = StoreSession::open_served(&config).await?;
        Ok(Self {
            is_lasting: session.outlives_command(),
            http: session.http,
        })
    }

    /// Whether the server keeps running on its own, and does not belong to an agent.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// The HTTP client, for what is not plain JSON.
    pub(crate) fn http(&mut self) -> &mut Http {
        &mut self.http
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &mut self,
        call: Call,
    ) -> Result<ServerAnswer<T>> {
        let json = self.http.json(call).await?;
        let view = T::deserialize(&json)
            .context("the server's answer is not as expected: is it of the same version?")?;
        Ok(ServerAnswer { json, view })
    }

    /// Sends a request whose answer is only for `--json`.
    pub(crate) async fn send(&mut self, call: Call) -> Result<Value> {
        self.http.json(call).await
    }

    /// The runs, newest first.
    pub(crate) async fn known_runs(&mut self) -> Result<KnownRuns> {
        let call = Call::get("/api/runs").query("summary", 1);
        Ok(KnownRuns::new(self.fetch(call).await?.view))
    }

    /// The id of the run that a person names, or means by naming none.
    pub(crate) async fn find_run(&mut self, name: Option<&RunName>) -> Result<String> {
        let runs = self.known_runs().await?;
        Ok(runs.choose(name)?.id.0.clone())
    }

    /// The state of the run that a person names, or means by naming none.
    pub(crate) async fn fetch_run(
        &mut self,
        name: Option<&RunName>,
    ) -> Result<ServerAnswer<RunAnswer>> {
        let id = self.find_run(name).await?;
        self.fetch(Call::get(run_path(&id, ""))).await
    }

    /// The state of a run by its id.
    pub(crate) async fn run_view(&mut self, id: &str) -> Result<RunView> {
        let answer: ServerAnswer<RunAnswer> = self.fetch(Call::get(run_path(id, ""))).await?;
        Ok(answer.view.run)
    }
}

/// The runs of a list of things, each fetched once.
#[derive(Default)]
pub(crate) struct RunCache(Vec<RunView>);

impl RunCache {
    /// The state of a run.
    pub(crate) async fn load(
        &mut self,
        client: &mut RunsClient,
        id: &str,
    ) -> Result<Option<&RunView>> {
        if !self.0.iter().any(|run| run.id.0 == id) {
            self.0.push(client.run_view(id).await?);
        }
        Ok(self.0.iter().find(|run| run.id.0 == id))
    }
}

/// The path of a resource of a run.
pub(crate) fn run_path(run: &str, tail: &str) -> String {
    format!("/api/runs/{}{tail}", percent_encode(run))
}

/// The path of a resource of a node.
pub(crate) fn node_path(run: &str, node: &str, tail: &str) -> String {
    run_path(run, &format!("/nodes/{}{tail}", percent_encode(node)))
}

fn no_server_error(data: &Setting<PathBuf>) -> anyhow::Error {
    let path = data.value.display();
    // The server must find the directory, too. The environment and the file say the same to it.
    let up = match data.source {
        Source::Flag(_) => format!("turnkeep up --data {path}"),
        _ => "turnkeep up".to_owned(),
    };
    Failure::new(format!(
        "no server runs on {path}, and agents work inside the server"
    ))
    .hint(format!(
        "start it with `{up}` in another terminal, or with `{up} &`; runs go on as long as it runs"
    ))
    .into()
}
