//! What the configuration says about runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::run::RunLimits;
use turnkeep_runtime::tool_guide::ToolCalling;
use turnkeep_runtime::words::{CliPermissions, Provider};

use super::capacity::CapacityLimits;
use super::webhook::WebhookTarget;

/// A node whose program should ask, but cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program `{program}` cannot ask before it uses a tool: choose a program that can, or set \
     `permissions.cliPermissionsMode` to `skip`"
)]
pub(crate) struct CannotAsk {
    /// The name of the provider, or of the configured program.
    pub(crate) program: String,
}

/// A node with a program that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no program `{name}` is configured: choose one of {}, or add [providers.{name}] to the \
     configuration",
    .known.join(", ")
)]
pub(crate) struct UnknownProgram {
    pub(crate) name: String,
    /// The programs that nodes can have.
    pub(crate) known: Vec<String>,
}

/// What the configuration says about runs.
#[derive(Debug, Clone)]
pub struct RunsConfig {
    /// Whether runs are served. A server that lives for one command leaves them alone: it must not
    /// pause what another server left running.
    pub is_served: bool,
    /// The limits of new runs.
    pub limits: RunLimits,
    /// The limits of all runs together.
    pub capacity: CapacityLimits,
    /// Whether runs go on by themselves when the server starts.
    pub resume_on_start: bool,
    /// Whether programs that can ask do so, unless a node's settings say otherwise.
    pub permissions: CliPermissions,
    /// The program behind the provider `claude`.
    pub claude: AgentProgram,
    /// The program behind the provider `codex`.
    pub codex: AgentProgram,
    /// The program behind the provider `gemini`.
    pub gemini: AgentProgram,
    /// The programs of the provider `custom`, by name.
    pub custom: BTreeMap<String, AgentProgram>,
    /// The user's own role templates.
    pub roles_dir: Option<PathBuf>,
    /// The user's own teams.
    pub teams_dir: Option<PathBuf>,
    /// The directories that clients may list, with everything below them.
    pub fs_roots: Vec<PathBuf>,
    /// The verification commands of a run that has none.
    pub verify: Vec<String>,
    /// The setup commands of a run that has none.
    pub setup: Vec<String>,
    /// Where a person hears that something waits.
    pub notify: NotifyConfig,
    /// How long one verification command may take.
    pub verify_time_limit: Duration,
    /// How long one setup command of a new worktree may take.
    pub setup_time_limit: Duration,
    /// How long a program may take to stop before its process group is killed.
    pub program_stop_within: Duration,
    /// How long a process without a turn is kept.
    pub program_idle_max: Duration,
    /// How often clients hear that a program is alive.
    pub heartbeat_every: Duration,
}

/// Where a person hears that something waits. By default nowhere.
#[derive(Debug, Clone, Default)]
pub struct NotifyConfig {
    /// A program that shows a title and a text, such as `notify-send`.
    pub desktop: Option<String>,
    /// Gets what waits as JSON.
    pub webhook: Option<WebhookTarget>,
}

impl Default for RunsConfig {
    fn default() -> Self {
        Self {
            is_served: true,
            limits: RunLimits::default(),
            capacity: CapacityLimits::default(),
            resume_on_start: false,
            permissions: CliPermissions::Gated,
            claude: AgentProgram::new(ProgramKind::Claude, "claude"),
            codex: AgentProgram::new(ProgramKind::Codex, "codex"),
            gemini: AgentProgram::new(ProgramKind::Gemini, "gemini"),
            custom: BTreeMap::new(),
            roles_dir: None,
            teams_dir: None,
            fs_roots: Vec::new(),
            verify: Vec::new(),
            setup: Vec::new(),
            notify: NotifyConfig::default(),
            verify_time_limit: Duration::from_mins(15),
            setup_time_limit: Duration::from_mins(15),
            program_stop_within: Duration::from_secs(20),
            program_idle_max: Duration::from_mins(10),
            heartbeat_every: Duration::from_secs(15),
        }
    }
}

impl RunsConfig {
    /// The program behind a node.
    pub(super) fn program_of(&self, node: &NodeSettings) -> Result<&AgentProgram, UnknownProgram> {
        self.find_program(node.provider, node.provider_name.as_deref())
    }

    /// The program that a request names.
    pub(super) fn find_program(
        &self,
        provider: Provider,
        name: Option<&str>,
    ) -> Result<&AgentProgram, UnknownProgram> {
        match provider {
            Provider::Claude => Ok(&self.claude),
            Provider::Codex => Ok(&self.codex),
            Provider::Gemini => Ok(&self.gemini),
            Provider::Custom => {
                let name = name.unwrap_or_default();
                self.custom.get(name).ok_or_else(|| UnknownProgram {
                    name: name.to_owned(),
                    known: self.program_names(),
                })
            }
        }
    }

    fn program_names(&self) -> Vec<String> {
        let kinds = Provider::ALL.iter().map(|provider| provider.word());
        let own = kinds.filter(|word| *word != Provider::Custom.word());
        let custom = self.custom.keys().map(String::as_str);
        own.chain(custom).map(str::to_owned).collect()
    }

    /// Rejects a node whose program should ask before it uses a tool, but cannot. A program that is not
    /// configured any more is another error, which its start reports.
    pub(super) fn check_permissions(&self, node: &NodeSettings) -> Result<(), CannotAsk> {
        let can_ask = self.program_of(node).map_or(true, asks);
        if can_ask || node.permissions.cli == CliPermissions::Skip {
            return Ok(());
        }
        let name = node.provider_name.as_deref();
        Err(CannotAsk {
            program: name.unwrap_or_else(|| node.provider.word()).to_owned(),
        })
    }

    /// The values of the variables that are configured for programs.
    pub(super) fn program_variables(&self) -> Vec<String> {
        let own = [&self.claude, &self.codex, &self.gemini].into_iter();
        let programs = own.chain(self.custom.values());
        let variables = programs.flat_map(|program| &program.env);
        variables.map(|variable| variable.value.clone()).collect()
    }

    /// The names of programs whose sessions a later process can go on with.
    pub(super) fn resumable_programs(&self) -> Vec<String> {
        let own = [Provider::Claude, Provider::Codex, Provider::Gemini];
        let custom = self.custom.iter().filter(|(_, program)| resumes(program));
        let own = own.iter().map(|provider| provider.word().to_owned());
        own.chain(custom.map(|(name, _)| name.clone())).collect()
    }

    /// The names of programs that cannot run a tool with arguments that a person has changed.
    pub(super) fn programs_with_fixed_args(&self) -> Vec<String> {
        let own = [&self.claude, &self.codex, &self.gemini];
        let own = ["claude", "codex", "gemini"].into_iter().zip(own);
        let custom = self.custom.iter();
        own.chain(custom.map(|(name, program)| (name.as_str(), program)))
            .filter(|(_, program)| !program.new_machine().features().edit_args)
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Whether a program asks for permission, if nothing else was chosen.
    pub(super) fn default_permissions(&self, node: Provider, name: Option<&str>) -> CliPermissions {
        let program = name.and_then(|name| self.custom.get(name));
        let can_ask = match node {
            Provider::Custom => program.is_some_and(asks),
            Provider::Claude | Provider::Codex | Provider::Gemini => true,
        };
        if can_ask {
            self.permissions
        } else {
            CliPermissions::Skip
        }
    }
}

/// Whether the sessions of a program can be continued by another process.
pub(super) fn resumes(program: &AgentProgram) -> bool {
    program.new_machine().features().resume
}

/// Whether a program can ask before it uses a tool.
pub(super) fn asks(program: &AgentProgram) -> bool {
    program.new_machine().features().approvals
}

/// How a program calls the tools of its run. It depends on the protocol alone: a prompt is written
/// before the program starts.
pub(super) fn tool_calling(program: &AgentProgram) -> ToolCalling {
    match program.kind {
        ProgramKind::Claude
        | ProgramKind::Codex
        | ProgramKind::Gemini
        | ProgramKind::Custom(CustomProtocol::StreamJson) => ToolCalling::Mcp,
        // An agent says only when it starts whether it takes MCP servers over HTTP.
        ProgramKind::Custom(CustomProtocol::Acp) => ToolCalling::McpOrLines,
        ProgramKind::Custom(CustomProtocol::Raw | CustomProtocol::Jsonl | CustomProtocol::Pty) => {
            ToolCalling::Lines
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_mcp_reads_how_to_call_tools() {
        for (kind, expect) in [
            (ProgramKind::Claude, ToolCalling::Mcp),
            (ProgramKind::Codex, ToolCalling::Mcp),
            (ProgramKind::Gemini, ToolCalling::Mcp),
            (
                ProgramKind::Custom(CustomProtocol::StreamJson),
                ToolCalling::Mcp,
            ),
            (
                ProgramKind::Custom(CustomProtocol::Acp),
                ToolCalling::McpOrLines,
            ),
            (ProgramKind::Custom(CustomProtocol::Raw), ToolCalling::Lines),
            (
                ProgramKind::Custom(CustomProtocol::Jsonl),
                ToolCalling::Lines,
            ),
            (ProgramKind::Custom(CustomProtocol::Pty), ToolCalling::Lines),
        ] {
            let program = AgentProgram::new(kind, "agent");
            assert_eq!(tool_calling(&program), expect, "{kind:?}");
            let has_mcp = program.new_machine().features().mcp;
            assert_eq!(has_mcp, expect != ToolCalling::Lines, "{kind:?}");
        }
    }
}
