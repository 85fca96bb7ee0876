//! The demo's temporary directory. Everything of a demo lies in it, and it is removed at the end.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use turnkeep_client::broker::socket_path;

use super::agents::AgentFiles;
use crate::commands::App;
use crate::config::{Config, ReachFlags, ServeFlags, process_environment};
use crate::failure::Failure;

/// The variables that count for a demo as they do for every server.
const ADDRESS_VARIABLES: [&str; 2] = ["TURNKEEP_LISTEN", "TURNKEEP_HTTP"];
/// How often the removal is tried, and the pause between: a program that was just killed may still
/// have written a file.
const REMOVE_TRIES: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

/// The directory of a demo.
pub(crate) struct DemoDirectory {
    /// Removes the directory also if the program panics.
    _removed_on_drop: TempDir,
    path: PathBuf,
    agents: AgentFiles,
}

impl DemoDirectory {
    /// Makes the directory, with the files that the server needs to start.
    pub(crate) fn create() -> Result<Self> {
        let made = tempfile::Builder::new()
            .prefix("turnkeep-demo-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("cannot make a temporary directory")?;
        // git prints the real path of a worktree, and a link in TMPDIR would make it another one.
        let path = std::fs::canonicalize(made.path()).context("cannot use the directory")?;
        std::fs::create_dir(path.join("run")).context("cannot make the broker's directory")?;
        let agents = AgentFiles::write(path.join("agents"))?;
        Ok(Self {
            _removed_on_drop: made,
            path,
            agents,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration of the server. Of the user's settings, only the addresses count.
    pub(crate) fn config(&self, serve: &ServeFlags) -> Result<Config> {
        let reach = ReachFlags {
            data: Some(self.path.join("data")),
            config: Some(self.agents.config()),
            ..ReachFlags::default()
        };
        Config::resolve(&reach, serve, &demo_environment)
    }

    pub(super) fn agents(&self) -> &AgentFiles {
        &self.agents
    }

    /// The git repository in which the agents work.
    pub(super) fn repository(&self) -> PathBuf {
        self.path.join("shop")
    }

    /// Stands for `XDG_RUNTIME_DIR`, so that the demo's broker and the user's do not meet.
    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn broker_socket(&self) -> PathBuf {
        socket_path(&self.runtime_dir())
    }

    /// Removes the directory. Nothing of the demo may run any more.
    pub(crate) async fn remove(self) -> Result<()> {
        let mut tries = 0;
        while let Err(error) = std::fs::remove_dir_all(&self.path) {
            tries += 1;
            if tries == REMOVE_TRIES {
                let path = self.path.display();
                return Failure::new(format!(
                    "cannot remove the demo's directory {path}: {error}"
                ))
                .hint("delete it yourself: nothing uses it any more")
                .fail();
            }
            tokio::time::sleep(REMOVE_PAUSE).await;
        }
        Ok(())
    }
}

/// The environment without the user's settings: a demo behaves the same on every machine.
fn demo_environment(name: &str) -> Option<String> {
    let is_setting = name.starts_with("TURNKEEP_") && !ADDRESS_VARIABLES.contains(&name);
    (!is_setting).then(|| process_environment(name)).flatten()
}

/// Refuses options that name the user's own files, or what a demo does not do.
pub(crate) fn refuse_options(app: &App, serve: &ServeFlags) -> Result<()> {
    let reach = &app.reach;
    let options = [
        ("--data", reach.data.is_some()),
        ("--config", reach.config.is_some()),
        ("--server", reach.server.is_some()),
        ("--token", reach.token.is_some()),
        ("--tls-cert", serve.tls_cert.is_some()),
        ("--tls-key", serve.tls_key.is_some()),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Failure::usage(format!("--demo does not go with {option}"))
            .hint("a demo has its own data directory and configuration, only on this machine")
            .fail(),
        None => Ok(()),
    }
}
