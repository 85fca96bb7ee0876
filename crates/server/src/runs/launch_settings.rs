//! How the program of a node is started: which program, where, with which rights and which token.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use turnkeep_agents::launch::{AgentProgram, PrivateFile};
use turnkeep_agents::request::{Access, McpServer, Permissions, StartOptions};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::words::{CliPermissions, GlobalMode};
use turnkeep_runtime::write_scope::WriteScope;

use super::file_remover::FileRemover;
use super::node_tokens::NodeToken;
use super::programs::MCP_NAME;
use super::run_handle::RunHandle;
use super::settings;
use super::workspaces::WorkDirectory;

/// How the program of a node is started. The token is valid as long as this value lives, which is
/// as long as the process.
pub(super) struct NodeLaunch {
    pub(super) program: AgentProgram,
    private_dir: PrivateDir,
    directory: WorkDirectory,
    permissions: Permissions,
    access: Access,
    mode: GlobalMode,
    token: NodeToken,
}

/// A directory for files that only one process may read. Dropping it removes them.
struct PrivateDir {
    path: String,
    /// A launch that is only compared has no files.
    has_files: bool,
    remover: FileRemover,
}

/// Collects how the program of a node is started now.
pub(super) async fn of_node(handle: &Arc<RunHandle>, id: NodeId) -> Result<NodeLaunch, String> {
    let services = &handle.services;
    let (node, mode) = handle
        .read_live(|run| {
            let node = run.node(id)?;
            // A change of the mode holds from the next turn on.
            let open = node.turn.as_ref();
            let mode = open.map_or(run.global_mode, |turn| turn.global_mode);
            Some((node.settings.clone(), mode))
        })
        .ok_or("the node is gone")?;
    let program = services.settings.program_of(&node);
    let program = program.map_err(|unknown| unknown.to_string())?.clone();
    // The configuration may be another one than when the node was created, and its run may come from
    // another machine.
    let checked = services.settings.check_permissions(&node);
    checked.map_err(|refused| refused.to_string())?;
    let permissions = permissions_in(mode, &node, &program);
    let directory = services.workspaces.find_directory(handle, id).await?;
    let scope = WriteScope::of(node.capabilities, mode);
    Ok(NodeLaunch {
        program,
        private_dir: PrivateDir {
            path: services.private_dir(handle.id(), id)?,
            has_files: false,
            remover: services.file_remover.clone(),
        },
        directory,
        permissions,
        // A node that may write documents needs a program that can write; its diff is checked.
        access: if scope == WriteScope::Nothing {
            Access::ReadOnly
        } else {
            Access::Write
        },
        mode,
        token: services.mint_token(handle.id(), id),
    })
}

/// Whether the program asks before it uses a tool. While the run is planning, every program asks that
/// can: nothing is written and no command is run then without a person, whatever the node may do
/// otherwise.
fn permissions_in(mode: GlobalMode, node: &NodeSettings, program: &AgentProgram) -> Permissions {
    // The commands of a node that may run none are denied when its program asks.
    let is_limited = mode == GlobalMode::Planning || !node.capabilities.run_commands;
    let must_ask = is_limited && settings::asks(program);
    match node.permissions.cli {
        CliPermissions::Skip if !must_ask => Permissions::Skip,
        CliPermissions::Skip | CliPermissions::Gated => Permissions::Gated,
    }
}

impl NodeLaunch {
    /// Whether the turn that it is for changes nothing but documents.
    pub(super) fn is_planning(&self) -> bool {
        self.mode == GlobalMode::Planning
    }

    /// A directory for files that only this process may read. It need not exist.
    pub(super) fn private_path(&self) -> &str {
        &self.private_dir.path
    }

    /// Whether a process that was started so can serve a turn that wants this.
    pub(super) fn fits(&self, wanted: &Self) -> bool {
        self.program == wanted.program
            && self.directory == wanted.directory
            && self.permissions == wanted.permissions
            && self.access == wanted.access
    }

    /// What the protocol needs to know.
    pub(super) fn start_options(
        &self,
        handle: &RunHandle,
        session: Option<String>,
    ) -> StartOptions {
        let mcp = handle.services.mcp_url().map(|url| McpServer {
            name: MCP_NAME.to_owned(),
            url,
            token: self.token.reveal().to_owned(),
        });
        StartOptions {
            session,
            cwd: self.directory.path.to_string_lossy().into_owned(),
            mcp,
            permissions: self.permissions,
            access: self.access,
        }
    }

    /// Writes the files that only the program may read. It blocks.
    pub(super) fn write_files(&mut self, files: &[PrivateFile]) -> Result<(), String> {
        if files.is_empty() {
            return Ok(());
        }
        let PrivateDir {
            path, has_files, ..
        } = &mut self.private_dir;
        // Set before anything is written, so that a directory that is only half made is removed too.
        *has_files = true;
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(|error| format!("cannot create {path}: {error}"))?;
        for file in files {
            let written = write_private(Path::new(&file.path), &file.contents);
            written.map_err(|error| format!("cannot write {}: {error}", file.path))?;
        }
        Ok(())
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // They have the token, which is invalid by now.
        if self.has_files {
            self.remover.remove(std::mem::take(&mut self.path).into());
        }
    }
}

/// Writes a file that no other process has open. An old file is removed, not truncated: another
/// process may hold it open and would read the token.
fn write_private(path: &Path, contents: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(contents.as_bytes())
}
