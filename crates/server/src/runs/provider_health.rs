//! Which agent programs this machine has.
//!
//! A program is found as a shell would find it. Its version is what it prints for `--version`; a program
//! that does not answer in time has none. `program_logins` finds out whether it is logged in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use turnkeep_agents::launch::AgentProgram;
use turnkeep_runtime::words::Provider;
use turnkeep_wire::runs as wire;

use super::json::SameWord as _;
use super::program_logins;
use super::settings::RunsConfig;

/// How long a program may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);
/// How much of its answer is kept, in characters.
const VERSION_CHARACTERS_MAX: usize = 80;

/// A program and the provider that it stands for.
struct NamedProgram<'a> {
    name: &'a str,
    provider: Provider,
    program: &'a AgentProgram,
}

fn all_programs(config: &RunsConfig) -> Vec<NamedProgram<'_>> {
    let known = [
        (Provider::Claude, &config.claude),
        (Provider::Codex, &config.codex),
        (Provider::Gemini, &config.gemini),
    ];
    let known = known.into_iter().map(|(provider, program)| NamedProgram {
        name: provider.word(),
        provider,
        program,
    });
    let custom = config.custom.iter().map(|(name, program)| NamedProgram {
        name,
        provider: Provider::Custom,
        program,
    });
    known.chain(custom).collect()
}

/// A program that is installed, as requests name it.
pub(super) struct InstalledProgram {
    pub(super) provider: Provider,
    /// The name of a configured program.
    pub(super) provider_name: Option<String>,
}

/// The first program that is installed: a known one, or else a configured one.
pub(super) fn first_installed(config: &RunsConfig) -> Option<InstalledProgram> {
    let mut programs = all_programs(config).into_iter();
    let installed = programs.find(|named| find_program(&named.program.command).is_some())?;
    let is_custom = installed.provider == Provider::Custom;
    Some(InstalledProgram {
        provider: installed.provider,
        provider_name: is_custom.then(|| installed.name.to_owned()),
    })
}

/// What is known about every program.
pub(super) async fn check_all(config: &RunsConfig) -> Vec<wire::ProviderHealth> {
    let mut found = Vec::new();
    for named in all_programs(config) {
        found.push(check(&named).await);
    }
    found
}

async fn check(named: &NamedProgram<'_>) -> wire::ProviderHealth {
    let path = find_program(&named.program.command);
    let version = match &path {
        Some(path) => ask_version(path).await,
        None => None,
    };
    let logged_in = match &path {
        Some(path) => program_logins::is_logged_in(named.program, path).await,
        None => None,
    };
    let hint = path.is_none().then(|| {
        format!(
            "`{}` is not in PATH: install it, or set [providers.{}] in the configuration",
            named.program.command, named.name
        )
    });
    wire::ProviderHealth {
        name: named.name.to_owned(),
        provider: named.provider.to_wire(),
        found: path.is_some(),
        features: features_of(named.program),
        path: path.map(|path| path.to_string_lossy().into_owned()),
        version,
        logged_in,
        hint,
    }
}

fn features_of(program: &AgentProgram) -> wire::ProviderFeatures {
    let features = program.new_machine().features();
    wire::ProviderFeatures {
        resume: features.resume,
        steer: features.steer,
        approvals: features.approvals,
        edit_args: features.edit_args,
        usage: features.usage,
        cost: features.cost,
        mcp: features.mcp,
        plan_mode: features.plan_mode,
    }
}

/// Where a shell would find a program.
fn find_program(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&path).map(|dir| dir.join(command));
    candidates.into_iter().find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

async fn ask_version(path: &Path) -> Option<String> {
    let asked = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        // A program that waits for a person here would stay for ever.
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(VERSION_WITHIN, asked)
        .await
        .ok()?
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next()?.trim();
    let version: String = line.chars().take(VERSION_CHARACTERS_MAX).collect();
    (!version.is_empty()).then_some(version)
}
