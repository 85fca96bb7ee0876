//! A server whose nodes run the scripted agent, and requests to it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::event_socket::EventSocket;
use crate::child::ServerProcess;
use crate::http_client::HttpClient;
use crate::scratch::ScratchDir;

/// More open turns than any measurement has.
const OPEN_TURNS_MAX: usize = 64;
const NODES_MAX: usize = 128;
/// The name of the scripted agent in the configuration.
const PROGRAM: &str = "bench";

/// A data directory with the configuration for one script.
pub(super) struct Bench {
    data: PathBuf,
    /// Where the nodes work.
    work: PathBuf,
}

impl Bench {
    /// Makes the directories of a measurement.
    pub(super) fn create(scratch: &ScratchDir, name: &str, script: &str) -> Result<Self> {
        let home = scratch.create_folder(name)?;
        let (data, work) = (home.join("data"), home.join("work"));
        let config = data.join("turnkeep");
        for folder in [&data, &work, &config] {
            fs::create_dir(folder)?;
        }
        // The program plays the scripted agent when it is called by that name.
        let agent = home.join("turnkeep-agent-script");
        std::os::unix::fs::symlink(std::env::current_exe()?, &agent)?;
        let script_file = home.join("script.toml");
        fs::write(&script_file, script)?;
        fs::write(config.join("config.toml"), settings(&agent, &script_file))?;
        Ok(Self { data, work })
    }

    /// Starts the server on it.
    pub(super) fn start(&self) -> Result<RunsServer> {
        let process = ServerProcess::start(&self.data)?;
        let client = HttpClient::connect(&process)?;
        Ok(RunsServer { process, client })
    }

    pub(super) fn work(&self) -> &Path {
        &self.work
    }
}

fn settings(agent: &Path, script: &Path) -> String {
    let args = json!(["--script", script, "--protocol", "jsonl"]);
    format!(
        "[runs]\nopen_turns_max = {OPEN_TURNS_MAX}\nturns_per_run_max = {OPEN_TURNS_MAX}\n\
         nodes_max = {NODES_MAX}\nstall_after = 0\n\n\
         [providers.{PROGRAM}]\ncommand = {}\nargs = {args}\nprotocol = \"jsonl\"\n",
        json!(agent),
    )
}

/// A running server with a connection to it.
pub(super) struct RunsServer {
    pub(super) process: ServerProcess,
    client: HttpClient,
}

impl RunsServer {
    /// Creates a run and returns its id.
    pub(super) fn create_run(&mut self, work: &Path) -> Result<String> {
        let body = json!({"cwd": work, "goal": "Show what it costs"});
        let answer = self.post("/api/runs", &body)?;
        read_id(&answer["run"])
    }

    /// Adds a node and returns its id.
    pub(super) fn add_node(&mut self, run: &str, number: usize) -> Result<String> {
        let body = json!({
            "label": format!("Node {number}"), "alias": format!("n{number}"),
            "roleTemplate": "implementer", "provider": "custom", "providerName": PROGRAM,
            "permissions": {"cliPermissionsMode": "skip"},
        });
        let answer = self.post(&format!("/api/runs/{run}/nodes"), &body)?;
        read_id(&answer["node"])
    }

    pub(super) fn connect(&mut self, run: &str, from: &str, to: &str) -> Result<()> {
        let body = json!({"from": from, "to": to, "type": "handoff"});
        self.post(&format!("/api/runs/{run}/edges"), &body)?;
        Ok(())
    }

    pub(super) fn chat(&mut self, run: &str, node: &str) -> Result<()> {
        let body = json!({"content": "Go on", "nodeId": node});
        self.post(&format!("/api/runs/{run}/chat"), &body)?;
        Ok(())
    }

    pub(super) fn pause(&mut self, run: &str) -> Result<()> {
        let path = format!("/api/runs/{run}");
        self.client.patch(&path, &json!({"status": "paused"}))?;
        Ok(())
    }

    /// Follows the events of a run from the next one on.
    pub(super) fn watch(&mut self, run: &str) -> Result<EventSocket> {
        let since = self.last_seq(run)?;
        EventSocket::open(&self.process, run, since)
    }

    pub(super) fn last_seq(&mut self, run: &str) -> Result<u64> {
        let answer = self.get(&format!("/api/runs/{run}"))?;
        let last = answer["run"]["lastSeq"].as_u64();
        last.context("the run has no `lastSeq`")
    }

    /// Bytes of an answer that is not read further.
    pub(super) fn fetch(&mut self, path: &str) -> Result<usize> {
        self.client.get(path)
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Value> {
        self.client.get(path)?;
        self.client.last_answer()
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.client.post(path, body)?;
        self.client.last_answer()
    }
}

fn read_id(made: &Value) -> Result<String> {
    let id = made["id"].as_str();
    Ok(id.context("the answer has no id")?.to_owned())
}
