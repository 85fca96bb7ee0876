//! What the configuration says about runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use turnkeep_agents::launch::{AgentProgram, ProgramKind};
use turnkeep_runtime::node::NodeSettings;
use turnkeep_runtime::run::RunLimits;
use turnkeep_runtime::words::{CliPermissions, Provider};

use super::capacity::CapacityLimits;
use super::webhook::WebhookTarget;

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
    /// The program behind a node; an error that says what to configure.
    pub(super) fn program_of(&self, node: &NodeSettings) -> Result<&AgentProgram, String> {
        match node.provider {
            Provider::Claude => Ok(&self.claude),
            Provider::Codex => Ok(&self.codex),
            Provider::Gemini => Ok(&self.gemini),
            Provider::Custom => {
                let name = node.provider_name.as_deref().unwrap_or_default();
                self.custom.get(name).ok_or_else(|| {
                    let known: Vec<&str> = self.custom.keys().map(String::as_str).collect();
                    format!(
                        "no program `{name}` is configured: add [providers.{name}] to the \
                         configuration, or use one of: {}",
                        known.join(", ")
                    )
                })
            }
        }
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
