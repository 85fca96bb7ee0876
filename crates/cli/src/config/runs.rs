//! The tables `runs` and `providers` of the configuration: what runs may do, and with which programs.
//!
//! ```toml
//! [runs]
//! open_turns_max = 8
//! resume_on_start = true
//! silence_end_ms = 900000       # a turn that prints nothing for so long is ended
//! verify = ["make test"]        # of runs that name no commands
//! fs_roots = ["/srv/projects"]  # may be listed besides the home directory
//!
//! [runs.notify]                 # nothing is sent unless one of these is set
//! desktop = "notify-send"
//! webhook = "https://example.org/hook"
//!
//! [providers.claude]            # another command or more arguments for a known program
//! args = ["--model", "opus"]
//! turns_max = 2                 # open turns of all runs with this program; any number without it
//!
//! [providers.mine]              # a program of your own; nodes name it as providerName
//! command = "/opt/mine/agent"
//! protocol = "jsonl"            # or raw, stream-json, acp, pty; `profile` says how pty finds turns
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use turnkeep_runtime::run::RunLimits;
use turnkeep_server::agent_launch::{AgentProgram, CustomProtocol, EnvVariable, ProgramKind};
use turnkeep_server::{CliPermissions, RunsConfig, WebhookTarget};

use super::setting::{Setting, SettingRow, Source, Sources};
use crate::commands::agent_terminal;
use crate::failure::Failure;

/// The keys of the table `runs`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRuns {
    open_turns_max: Option<u32>,
    turns_per_run_max: Option<u32>,
    nodes_max: Option<u32>,
    spawn_depth_max: Option<u32>,
    stall_after: Option<u32>,
    fan_in_ms: Option<u64>,
    silence_warn_ms: Option<u64>,
    silence_end_ms: Option<u64>,
    turn_end_ms: Option<u64>,
    approval_ms: Option<u64>,
    resume_on_start: Option<bool>,
    permissions: Option<String>,
    verify: Option<Vec<String>>,
    setup: Option<Vec<String>>,
    verify_ms_max: Option<u64>,
    setup_ms_max: Option<u64>,
    program_stop_ms: Option<u64>,
    program_idle_ms: Option<u64>,
    heartbeat_ms: Option<u64>,
    fs_roots: Option<Vec<String>>,
    notify: Option<RawNotify>,
}

/// The keys of the table `runs.notify`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNotify {
    desktop: Option<String>,
    webhook: Option<String>,
    webhook_ca: Option<String>,
}

/// The keys of a program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProvider {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    protocol: Option<String>,
    profile: Option<String>,
    turns_max: Option<u32>,
}

/// Every setting of runs, resolved.
#[derive(Debug, Clone)]
pub(crate) struct RunSettings {
    config: RunsConfig,
    rows: Vec<SettingRow>,
}

impl RawRuns {
    /// Resolves the settings: the environment wins over the file, the file over the defaults.
    pub(super) fn resolve(
        self,
        providers: BTreeMap<String, RawProvider>,
        from: Sources<'_>,
    ) -> Result<RunSettings> {
        let mut config = RunsConfig::default();
        let mut table = SettingTable {
            from,
            rows: Vec::new(),
        };
        self.resolve_limits(&mut config, &mut table)?;
        self.resolve_times(&mut config, &mut table)?;
        self.resolve_commands(&mut config, &mut table)?;
        self.notify
            .unwrap_or_default()
            .resolve(&mut config, &mut table)?;
        resolve_programs(providers, &mut config, &mut table)?;
        // Beside the configuration file. Absolute, because the server may change its directory.
        let dir = std::path::absolute(from.file).ok();
        let dir = dir.as_deref().and_then(Path::parent);
        config.roles_dir = dir.map(|dir| dir.join("roles"));
        config.teams_dir = dir.map(|dir| dir.join("teams"));
        Ok(RunSettings {
            config,
            rows: table.rows,
        })
    }

    fn resolve_limits(&self, config: &mut RunsConfig, table: &mut SettingTable<'_>) -> Result<()> {
        let open_turns = &mut config.capacity.open_turns_max;
        table.number("runs.open_turns_max", self.open_turns_max, open_turns)?;
        let limits = &mut config.limits;
        let open_turns = &mut limits.open_turns_max;
        table.number("runs.turns_per_run_max", self.turns_per_run_max, open_turns)?;
        table.number("runs.nodes_max", self.nodes_max, &mut limits.nodes_max)?;
        let depth = &mut limits.spawn_depth_max;
        table.number("runs.spawn_depth_max", self.spawn_depth_max, depth)?;
        table.number(
            "runs.stall_after",
            self.stall_after,
            &mut limits.stall_after,
        )?;
        table.number("runs.fan_in_ms", self.fan_in_ms, &mut limits.fan_in_ms)?;
        check_fan_in(limits.fan_in_ms)?;
        let warn = &mut limits.silence_warn_ms;
        table.number("runs.silence_warn_ms", self.silence_warn_ms, warn)?;
        let end = &mut limits.silence_end_ms;
        table.number("runs.silence_end_ms", self.silence_end_ms, end)?;
        table.number(
            "runs.turn_end_ms",
            self.turn_end_ms,
            &mut limits.turn_end_ms,
        )?;
        table.number(
            "runs.approval_ms",
            self.approval_ms,
            &mut limits.approval_ms,
        )
    }

    fn resolve_times(&self, config: &mut RunsConfig, table: &mut SettingTable<'_>) -> Result<()> {
        let verify = &mut config.verify_time_limit;
        table.time("runs.verify_ms_max", self.verify_ms_max, verify)?;
        let setup = &mut config.setup_time_limit;
        table.time("runs.setup_ms_max", self.setup_ms_max, setup)?;
        let stop = &mut config.program_stop_within;
        table.time("runs.program_stop_ms", self.program_stop_ms, stop)?;
        let idle = &mut config.program_idle_max;
        table.time("runs.program_idle_ms", self.program_idle_ms, idle)?;
        let heartbeat = &mut config.heartbeat_every;
        table.time("runs.heartbeat_ms", self.heartbeat_ms, heartbeat)
    }

    fn resolve_commands(
        &self,
        config: &mut RunsConfig,
        table: &mut SettingTable<'_>,
    ) -> Result<()> {
        let from = table.from;
        let resume = from.find_switch("runs.resume_on_start", false, self.resume_on_start)?;
        config.resume_on_start = resume.value;
        table.rows.push(resume.to_row("runs.resume_on_start"));
        let named = self.permissions.clone();
        let permissions = from.find_with("runs.permissions", None, named, parse_permissions)?;
        let permissions = permissions.or(config.permissions);
        config.permissions = permissions.value;
        let word = permissions.map(CliPermissions::word);
        table.rows.push(word.to_row("runs.permissions"));
        config.verify = table.list("runs.verify", self.verify.clone(), &[]);
        config.setup = table.list("runs.setup", self.setup.clone(), &[]);
        // The home directory may be listed in any case.
        let home: Vec<String> = (from.env)("HOME").into_iter().collect();
        let roots = table.list("runs.fs_roots", self.fs_roots.clone(), &home);
        config.fs_roots = roots.into_iter().map(PathBuf::from).collect();
        Ok(())
    }
}

impl RawNotify {
    fn resolve(self, config: &mut RunsConfig, table: &mut SettingTable<'_>) -> Result<()> {
        let from = table.from;
        let desktop = from.find_text("runs.notify.desktop", None, self.desktop);
        let desktop = desktop.optional();
        table.rows.push(desktop.to_row("runs.notify.desktop"));
        config.notify.desktop = desktop.value;
        let authority = from.find_optional_path("runs.notify.webhook_ca", None, self.webhook_ca)?;
        table.rows.push(authority.to_row("runs.notify.webhook_ca"));
        let parse = |text: &str| WebhookTarget::parse(text, authority.value.clone());
        let webhook = from.find_with("runs.notify.webhook", None, self.webhook, parse)?;
        let webhook = webhook.optional();
        // The path may hold a secret, and the row is printed.
        let shown = webhook
            .clone()
            .map(|target| target.map(|target| target.to_string()));
        table.rows.push(shown.to_row("runs.notify.webhook"));
        config.notify.webhook = webhook.value;
        Ok(())
    }
}

/// The rows of `config show`, as the settings are resolved.
struct SettingTable<'a> {
    from: Sources<'a>,
    rows: Vec<SettingRow>,
}

impl SettingTable<'_> {
    /// Resolves a number in its place, which has the default.
    fn number<T>(&mut self, name: &'static str, file: Option<T>, place: &mut T) -> Result<()>
    where
        T: Copy + serde::Serialize + std::str::FromStr + std::fmt::Display,
        T::Err: std::fmt::Display,
    {
        let file = file.map(|value| value.to_string());
        let found = self.from.find_parsed(name, None, file)?.or(*place);
        *place = found.value;
        self.rows.push(found.to_row(name));
        Ok(())
    }

    /// Resolves a time in milliseconds.
    fn time(&mut self, name: &'static str, file: Option<u64>, place: &mut Duration) -> Result<()> {
        let mut milliseconds = u64::try_from(place.as_millis())?;
        self.number(name, file, &mut milliseconds)?;
        *place = Duration::from_millis(milliseconds);
        Ok(())
    }

    /// Resolves a list that always has some items.
    fn list(
        &mut self,
        name: &'static str,
        file: Option<Vec<String>>,
        always: &[String],
    ) -> Vec<String> {
        let found = self.from.find_list(name, &[], file);
        let found = found.map(|items| [always, &items].concat());
        self.rows.push(found.to_row(name));
        found.value
    }
}

/// The limit that a run's own setting has, too.
fn check_fan_in(fan_in_ms: u64) -> Result<()> {
    if fan_in_ms <= RunLimits::FAN_IN_MS_MAX {
        return Ok(());
    }
    Failure::usage(format!("runs.fan_in_ms is {fan_in_ms}"))
        .hint(format!("set 0 to {}", RunLimits::FAN_IN_MS_MAX))
        .fail()
}

fn parse_permissions(text: &str) -> Result<CliPermissions, &'static str> {
    let words = [CliPermissions::Gated, CliPermissions::Skip];
    let named = words
        .into_iter()
        .find(|permissions| permissions.word() == text);
    named.ok_or("expected gated or skip")
}

impl RunSettings {
    /// The settings as the server takes them.
    pub(crate) fn to_config(&self) -> RunsConfig {
        self.config.clone()
    }

    /// Every setting, for `config show` and `doctor`.
    pub(crate) fn rows(&self) -> Vec<SettingRow> {
        self.rows.clone()
    }
}

/// Resolves the programs, and shows the command of each.
fn resolve_programs(
    providers: BTreeMap<String, RawProvider>,
    config: &mut RunsConfig,
    table: &mut SettingTable<'_>,
) -> Result<()> {
    let file = Source::File(table.from.file.to_owned());
    let source_of = |is_named: bool| {
        if is_named {
            file.clone()
        } else {
            Source::Default
        }
    };
    let is_named = |name: &str| providers.contains_key(name);
    let named = ["claude", "codex", "gemini"].map(is_named);
    let turns_max = turn_limits(&providers)?;
    for (name, raw) in providers {
        set_program(config, &name, raw)?;
    }
    let shown = turns_max.iter().map(|(name, max)| format!("{name}: {max}"));
    let source = source_of(!turns_max.is_empty());
    let row = Setting::new(shown.collect::<Vec<String>>(), source).to_row("providers.turns_max");
    config.capacity.program_turns_max = turns_max;
    let known = [
        ("providers.claude", &config.claude),
        ("providers.codex", &config.codex),
        ("providers.gemini", &config.gemini),
    ];
    for ((name, program), is_named) in known.into_iter().zip(named) {
        let command = Setting::new(&program.command, source_of(is_named));
        table.rows.push(command.to_row(name));
    }
    let shown = |(name, program): (&String, &AgentProgram)| format!("{name}: {}", program.command);
    let custom: Vec<String> = config.custom.iter().map(shown).collect();
    let source = source_of(!custom.is_empty());
    table
        .rows
        .push(Setting::new(custom, source).to_row("providers"));
    table.rows.push(row);
    Ok(())
}

/// How many turns each program may have open, for those that name a limit.
fn turn_limits(providers: &BTreeMap<String, RawProvider>) -> Result<BTreeMap<String, u32>> {
    let mut limits = BTreeMap::new();
    for (name, raw) in providers {
        let Some(max) = raw.turns_max else {
            continue;
        };
        if max == 0 {
            return Failure::usage(format!("[providers.{name}] has turns_max = 0"))
                .hint("set 1 or more, or leave it out for no limit")
                .fail();
        }
        limits.insert(name.clone(), max);
    }
    Ok(limits)
}

/// Changes a known program, or adds one of the user's.
fn set_program(config: &mut RunsConfig, name: &str, raw: RawProvider) -> Result<()> {
    let known = match name {
        "claude" => &mut config.claude,
        "codex" => &mut config.codex,
        "gemini" => &mut config.gemini,
        _ => {
            let program = custom_program(name, &raw)?;
            config.custom.insert(name.to_owned(), program);
            return Ok(());
        }
    };
    if raw.protocol.is_some() || raw.profile.is_some() {
        let message = format!("[providers.{name}] has a protocol of its own");
        return Failure::usage(message)
            .hint("leave `protocol` and `profile` out, or give the program another name")
            .fail();
    }
    if let Some(command) = raw.command {
        known.command = command;
    }
    known.args = raw.args.unwrap_or_default();
    known.env = variables(raw.env);
    Ok(())
}

fn custom_program(name: &str, raw: &RawProvider) -> Result<AgentProgram> {
    let Some(command) = &raw.command else {
        return Failure::usage(format!("[providers.{name}] has no `command`"))
            .hint("say which program it is")
            .fail();
    };
    let word = raw.protocol.as_deref().unwrap_or("raw");
    let Some(protocol) = find_protocol(word) else {
        return Failure::usage(format!("[providers.{name}]: `{word}` is no protocol"))
            .hint("use one of: raw, jsonl, stream-json, acp, pty")
            .fail();
    };
    if raw.profile.is_some() && protocol != CustomProtocol::Pty {
        return Failure::usage(format!("[providers.{name}]: only `pty` has a profile"))
            .hint("leave `profile` out, or set protocol = \"pty\"")
            .fail();
    }
    let launcher = match protocol {
        CustomProtocol::Pty => agent_terminal::launcher(raw.profile.as_deref())?,
        _ => Vec::new(),
    };
    Ok(AgentProgram {
        kind: ProgramKind::Custom(protocol),
        launcher,
        command: command.clone(),
        args: raw.args.clone().unwrap_or_default(),
        env: variables(raw.env.clone()),
    })
}

fn find_protocol(word: &str) -> Option<CustomProtocol> {
    Some(match word {
        "raw" => CustomProtocol::Raw,
        "jsonl" => CustomProtocol::Jsonl,
        "stream-json" => CustomProtocol::StreamJson,
        "acp" => CustomProtocol::Acp,
        "pty" => CustomProtocol::Pty,
        _ => return None,
    })
}

fn variables(env: Option<BTreeMap<String, String>>) -> Vec<EnvVariable> {
    let pairs = env.unwrap_or_default().into_iter();
    pairs
        .map(|(name, value)| EnvVariable { name, value })
        .collect()
}
