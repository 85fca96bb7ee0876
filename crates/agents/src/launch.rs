//! The command line of an agent program, made from its configuration and the options of the
//! conversation.
//!
//! The token of a node is secret. It reaches the program by its environment, by a file that only the
//! user can read, or by its standard input, and never by its arguments: other users of the machine
//! can see those.

use std::fmt;

use serde_json::{Value, json};

use crate::acp::Acp;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::jsonl::Jsonl;
use crate::protocol::AgentProtocol;
use crate::raw::Raw;
use crate::request::{Access, McpServer, Permissions, StartOptions};

/// The environment variables by which Codex and custom programs find the MCP server.
const MCP_URL_VARIABLE: &str = "TURNKEEP_MCP_URL";
const MCP_TOKEN_VARIABLE: &str = "TURNKEEP_MCP_TOKEN";
const SESSION_NAME_BYTES_MAX: usize = 128;

/// An agent program as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProgram {
    pub kind: ProgramKind,
    /// A command that starts the program: its words come before the program's own. Empty for a
    /// program that is started by itself.
    pub launcher: Vec<String>,
    /// A name to find in `PATH`, or a path.
    pub command: String,
    /// They follow the arguments that the kind needs.
    pub args: Vec<String>,
    pub env: Vec<EnvVariable>,
}

/// How a program is started and spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Another program, with exactly the arguments of the configuration.
    Custom(CustomProtocol),
}

/// What a custom program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomProtocol {
    /// Nothing: [`crate::raw`].
    Raw,
    /// [`crate::jsonl`].
    Jsonl,
    /// [`crate::claude`].
    StreamJson,
    /// [`crate::acp`].
    Acp,
    /// A terminal, by way of a bridge that speaks [`crate::jsonl`]. The bridge finds the turns by
    /// the capture profiles.
    Pty,
}

/// A variable of the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvVariable {
    pub name: String,
    /// May be secret.
    pub value: String,
}

/// A file that the program reads. The caller creates it for the user alone (mode 0600) before the
/// start, and removes it after the end.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateFile {
    pub path: String,
    /// May be secret.
    pub contents: String,
}

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub command: String,
    pub args: Vec<String>,
    /// Besides the environment of the server.
    pub env: Vec<EnvVariable>,
    pub files: Vec<PrivateFile>,
    pub cwd: String,
}

impl fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

impl fmt::Debug for PrivateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.contents.len())
    }
}

impl AgentProgram {
    /// The program of a kind with its usual name.
    pub fn new(kind: ProgramKind, command: &str) -> Self {
        Self {
            kind,
            launcher: Vec::new(),
            command: command.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Whether each line of its output is JSON.
    pub fn prints_json(&self) -> bool {
        // The bridge of a terminal prints JSON, too.
        self.kind != ProgramKind::Custom(CustomProtocol::Raw)
    }

    /// The machine for a new process of this program.
    pub fn new_machine(&self) -> Box<dyn AgentProtocol> {
        match self.kind {
            ProgramKind::Claude | ProgramKind::Custom(CustomProtocol::StreamJson) => {
                Box::new(Claude::new())
            }
            ProgramKind::Codex => Box::new(Codex::new()),
            ProgramKind::Gemini | ProgramKind::Custom(CustomProtocol::Acp) => Box::new(Acp::new()),
            ProgramKind::Custom(CustomProtocol::Raw) => Box::new(Raw::new()),
            ProgramKind::Custom(CustomProtocol::Jsonl) => Box::new(Jsonl::new()),
            ProgramKind::Custom(CustomProtocol::Pty) => Box::new(Jsonl::for_terminal()),
        }
    }
}

/// The command line of a program. `private_dir` is a directory of the user for this process alone.
pub fn plan_launch(program: &AgentProgram, options: &StartOptions, private_dir: &str) -> Launch {
    let mut launch = Launch {
        command: program.command.clone(),
        args: Vec::new(),
        env: program.env.clone(),
        files: Vec::new(),
        cwd: options.cwd.clone(),
    };
    match program.kind {
        ProgramKind::Claude => launch.add_claude(options, private_dir),
        ProgramKind::Codex => launch.add_codex(options),
        ProgramKind::Gemini => launch.add_gemini(options),
        ProgramKind::Custom(_) => launch.add_custom(options),
    }
    launch.args.extend(program.args.iter().cloned());
    launch.add_launcher(&program.launcher);
    launch
}

impl Launch {
    fn add_args(&mut self, args: &[&str]) {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    }

    fn add_env(&mut self, name: &str, value: &str) {
        self.env.push(EnvVariable {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }

    fn add_launcher(&mut self, launcher: &[String]) {
        // `nice -n 5` in front of `aider --yes` becomes the command `nice` with the arguments
        // `-n 5 aider --yes`.
        let Some((first, rest)) = launcher.split_first() else {
            return;
        };
        let program = std::mem::replace(&mut self.command, first.clone());
        self.args.insert(0, program);
        self.args.splice(0..0, rest.iter().cloned());
    }

    fn add_claude(&mut self, options: &StartOptions, private_dir: &str) {
        // The program rejects its JSON output without `--verbose`.
        self.add_args(&["-p", "--input-format", "stream-json"]);
        self.add_args(&["--output-format", "stream-json", "--verbose"]);
        self.add_args(&["--include-partial-messages"]);
        self.add_claude_permissions(options);
        let session = options.session.as_deref();
        if let Some(session) = session.filter(|name| is_plain_name(name)) {
            self.add_args(&["--resume", session]);
        }
        if let Some(server) = &options.mcp {
            let path = format!("{private_dir}/mcp.json");
            // The server asks a person itself where its tools need one.
            let allowed = format!("mcp__{}", server.name);
            self.add_args(&["--mcp-config", &path, "--allowedTools", &allowed]);
            let contents = claude_mcp_config(server).to_string();
            self.files.push(PrivateFile { path, contents });
        }
    }

    /// A read-only agent that must not ask is denied whatever plan mode does not allow. The flag
    /// that skips permissions would switch plan mode off.
    fn add_claude_permissions(&mut self, options: &StartOptions) {
        if options.access == Access::ReadOnly {
            self.add_args(&["--permission-mode", "plan"]);
            // Leaving plan mode is a decision about the run, not about one tool.
            self.add_args(&["--disallowedTools", "ExitPlanMode"]);
        }
        match (options.permissions, options.access) {
            (Permissions::Gated, Access::Write) => {
                // The settings of the user may have another default, under which it would not ask.
                self.add_args(&["--permission-mode", "default"]);
                self.add_args(&["--permission-prompt-tool", "stdio"]);
            }
            (Permissions::Gated, Access::ReadOnly) => {
                self.add_args(&["--permission-prompt-tool", "stdio"]);
            }
            (Permissions::Skip, Access::Write) => {
                self.add_args(&["--dangerously-skip-permissions"]);
            }
            (Permissions::Skip, Access::ReadOnly) => {}
        }
    }

    /// The sandbox and the approval policy are parameters of the thread, not of the process.
    fn add_codex(&mut self, options: &StartOptions) {
        self.add_args(&["app-server"]);
        let Some(server) = &options.mcp else {
            return;
        };
        let settings = [
            ("url", server.url.as_str()),
            ("bearer_token_env_var", MCP_TOKEN_VARIABLE),
            // The server asks a person itself where its tools need one.
            ("default_tools_approval_mode", "approve"),
        ];
        for (key, value) in settings {
            // A JSON string is a TOML string.
            let value = json!(value);
            let setting = format!("mcp_servers.{}.{key}={value}", server.name);
            self.add_args(&["-c", &setting]);
        }
        self.add_env(MCP_TOKEN_VARIABLE, &server.token);
    }

    /// The MCP server is a parameter of the session, not of the process.
    fn add_gemini(&mut self, options: &StartOptions) {
        // The program has no terminal to ask whether it may trust the directory. The person who
        // started the run there has decided that.
        self.add_args(&["--acp", "--skip-trust"]);
        match (options.access, options.permissions) {
            (Access::ReadOnly, _) => self.add_args(&["--approval-mode", "plan"]),
            (Access::Write, Permissions::Skip) => self.add_args(&["--approval-mode", "yolo"]),
            (Access::Write, Permissions::Gated) => {}
        }
    }

    fn add_custom(&mut self, options: &StartOptions) {
        if let Some(server) = &options.mcp {
            self.add_env(MCP_URL_VARIABLE, &server.url);
            self.add_env(MCP_TOKEN_VARIABLE, &server.token);
        }
    }
}

fn claude_mcp_config(server: &McpServer) -> Value {
    let headers = json!({"Authorization": server.authorization()});
    let entry = json!({"type": "http", "url": server.url, "headers": headers});
    json!({"mcpServers": {server.name.as_str(): entry}})
}

/// Whether the name of a session can be an argument. A program could name its session like a flag.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty()
        && name.len() <= SESSION_NAME_BYTES_MAX
        && !name.starts_with('-')
        && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
