//! The configuration, in two stages: raw values from flags, environment and file, then one resolved
//! value for each setting.
//!
//! A flag wins over a `TURNKEEP_*` variable, a variable over the TOML file, the file over the
//! default. Every resolved value remembers its source, for `turnkeep config show`. Code below this
//! module does not read the environment. A value that does not parse is an error that names its
//! source. An unknown key in the file is an error too.

mod broker;
mod desktop;
mod file;
mod memory;
mod runs;
mod setting;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use turnkeep_session::detector::Presets;
use turnkeep_store::Durability;
use turnkeep_types::Limits;

pub(crate) use broker::{BrokerBounds, BrokerFlags};
pub(crate) use desktop::Desktop;
pub(crate) use runs::RunSettings;
pub(crate) use setting::{Setting, SettingRow, Source, durability_text};

use crate::failure::Failure;
use setting::Sources;

/// The ports that a server listens on by default.
const BINARY_PORT: u16 = 9009;
pub(crate) const HTTP_PORT: u16 = 9010;

/// The id of `--data DIR`, which every command takes but `append`, whose `--data` is the turn's.
pub(crate) const DATA_DIR: &str = "data_dir";

/// Where a command finds its store. These flags work on every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReachFlags {
    #[arg(id = DATA_DIR, long = "data", value_name = "DIR", help_heading = "Global options")]
    #[arg(help = "Data directory [default: $XDG_DATA_HOME/turnkeep]")]
    pub(crate) data: Option<PathBuf>,
    #[arg(
        long,
        value_name = "ADDR",
        global = true,
        help_heading = "Global options"
    )]
    #[arg(help = "HTTP address of a running server, such as 127.0.0.1:9010 or https://host:9010")]
    pub(crate) server: Option<String>,
    /// Token for --server [default: the file `token` in the data directory]
    #[arg(
        long,
        value_name = "TOKEN",
        global = true,
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) token: Option<String>,
    /// PEM file of the authority that signed the server's certificate
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) tls_ca: Option<PathBuf>,
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        help_heading = "Global options"
    )]
    #[arg(help = "Configuration file [default: $XDG_CONFIG_HOME/turnkeep/config.toml]")]
    pub(crate) config: Option<PathBuf>,
}

/// How `turnkeep up` serves.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeFlags {
    /// Address of the binary protocol [default: 127.0.0.1:9009]
    #[arg(long, value_name = "ADDR", value_parser = setting::parse_addr)]
    pub(crate) listen: Option<SocketAddr>,
    /// Address of HTTP [default: 127.0.0.1:9010]
    #[arg(long, value_name = "ADDR", value_parser = setting::parse_addr)]
    pub(crate) http: Option<SocketAddr>,
    /// When an append is acknowledged: after fsync, or after it was handed to the OS [default:
    /// fsync]
    #[arg(long, value_name = "fsync|os", value_parser = durability_parser(), hide_possible_values = true)]
    pub(crate) durability: Option<Durability>,
    /// Memory that large requests and answers may hold together, such as 512MiB
    /// [default: a quarter of the machine's or container's memory]
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_budget)]
    pub(crate) memory_budget: Option<usize>,
    /// Refuse turns whose type is not in the registry
    #[arg(long)]
    pub(crate) strict_types: bool,
    /// Serve without a token; only on loopback addresses
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// PEM file with the server's certificate chain; TLS on both ports
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Further Host name that HTTP requests may carry; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Origin of another web page that may call this server; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
}

/// Names the values, so that shells can complete them.
fn durability_parser() -> impl TypedValueParser<Value = Durability> {
    PossibleValuesParser::new(["fsync", "os"])
        .try_map(|text| setting::parse_durability(&text).map_err(Failure::usage))
}

/// Every setting, resolved.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The file that was read, or would have been.
    pub(crate) file: PathBuf,
    pub(crate) data: Setting<PathBuf>,
    pub(crate) server: Setting<Option<String>>,
    pub(crate) token: Setting<Option<String>>,
    pub(crate) tls_ca: Setting<Option<PathBuf>>,
    pub(crate) listen: Setting<SocketAddr>,
    pub(crate) http: Setting<SocketAddr>,
    pub(crate) durability: Setting<Durability>,
    pub(crate) memory_budget: Setting<usize>,
    pub(crate) strict_types: Setting<bool>,
    pub(crate) no_auth: Setting<bool>,
    pub(crate) tls_cert: Setting<Option<PathBuf>>,
    pub(crate) tls_key: Setting<Option<PathBuf>>,
    pub(crate) allow_host: Setting<Vec<String>>,
    pub(crate) allow_origin: Setting<Vec<String>>,
    pub(crate) broker: BrokerBounds,
    pub(crate) desktop: Desktop,
    pub(crate) runs: RunSettings,
    pub(crate) limits: Limits,
    /// The profiles of wrapped programs: the shipped ones and the file's.
    pub(crate) presets: Presets,
    limit_settings: file::LimitSettings,
}

/// The environment as a function, so that tests can give their own.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The variable with the caller's token.
const TOKEN_VARIABLE: &str = "TURNKEEP_TOKEN";

/// Reads the process's environment. A variable that is empty or not UTF-8 counts as absent. `HOME`
/// falls back to the user's home in the system's database.
///
/// The token's variable counts even if it is empty. An absent token means the owner's token, so an
/// empty one, probably a secret that was lost, would otherwise open everything.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    if name == TOKEN_VARIABLE {
        return std::env::var_os(name).map(|token| token.to_string_lossy().into_owned());
    }
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    if value.is_none() && name == "HOME" {
        return user_home();
    }
    value
}

fn user_home() -> Option<String> {
    let home = std::env::home_dir()?.into_os_string().into_string().ok()?;
    Some(home).filter(|home| !home.is_empty())
}

impl Config {
    /// Resolves everything from the flags, the environment and the file.
    pub(crate) fn resolve(
        reach: &ReachFlags,
        serve: &ServeFlags,
        env: Environment<'_>,
    ) -> Result<Self> {
        let path = file_path(reach, env)?;
        // A file that the person named must exist. The default file need not.
        let must_exist = reach.config.is_some() || env("TURNKEEP_CONFIG").is_some();
        let raw = file::read_file(&path, must_exist)?;
        let config = Self::from_sources(reach, serve, raw, Sources { env, file: &path })?;
        config.check_tls_pair()?;
        Ok(config)
    }

    fn from_sources(
        reach: &ReachFlags,
        serve: &ServeFlags,
        mut raw: file::RawFile,
        from: Sources<'_>,
    ) -> Result<Self> {
        let presets = raw.take_presets(from.file)?;
        let providers = raw.providers.take().unwrap_or_default();
        let runs = raw.runs.take().unwrap_or_default();
        let runs = runs.resolve(providers, from)?;
        let limit_settings = raw.limits.unwrap_or_default().resolve(from)?;
        let data = from.find_parsed("data", reach.data.clone(), raw.data)?;
        let server = from.find_text("server", reach.server.clone(), raw.server);
        // The file has no key for the token: its mode is not checked, so others may read it.
        let token = from.find_text("token", reach.token.clone(), None);
        let durability = from.find_with(
            "durability",
            serve.durability,
            raw.durability,
            setting::parse_durability,
        )?;
        let memory_budget = from.find_with(
            "memory-budget",
            serve.memory_budget,
            raw.memory_budget,
            memory::parse_budget,
        )?;
        Ok(Self {
            data: data.or_else(|| default_data_dir(from.env))?,
            server: server.optional(),
            token: token.optional(),
            tls_ca: from.find_optional_path("tls-ca", reach.tls_ca.as_ref(), raw.tls_ca)?,
            listen: from.find_addr("listen", serve.listen, raw.listen, BINARY_PORT)?,
            http: from.find_addr("http", serve.http, raw.http, HTTP_PORT)?,
            durability: durability.or(Durability::Fsync),
            memory_budget: memory_budget.or_else(|| Ok(memory::default_budget_bytes()))?,
            strict_types: from.find_switch("strict-types", serve.strict_types, raw.strict_types)?,
            no_auth: from.find_switch("no-auth", serve.no_auth, raw.no_auth)?,
            tls_cert: from.find_optional_path("tls-cert", serve.tls_cert.as_ref(), raw.tls_cert)?,
            tls_key: from.find_optional_path("tls-key", serve.tls_key.as_ref(), raw.tls_key)?,
            allow_host: from.find_list("allow-host", &serve.allow_host, raw.allow_host),
            allow_origin: from.find_list("allow-origin", &serve.allow_origin, raw.allow_origin),
            broker: raw.broker.unwrap_or_default().resolve(from)?,
            desktop: raw.desktop.unwrap_or_default().resolve(from)?,
            runs,
            limits: limit_settings.limits(),
            limit_settings,
            presets,
            file: from.file.to_owned(),
        })
    }

    fn check_tls_pair(&self) -> Result<()> {
        // One without the other would silently serve without TLS.
        if self.tls_cert.value.is_some() == self.tls_key.value.is_some() {
            return Ok(());
        }
        Failure::usage("TLS needs a certificate and its key")
            .hint("give both --tls-cert and --tls-key, or neither")
            .fail()
    }

    /// Every setting, for `config show`. The token's text is never shown.
    pub(crate) fn rows(&self) -> Vec<SettingRow> {
        let mut rows = self.general_rows();
        rows.extend(self.broker.rows());
        rows.extend(self.desktop.rows());
        rows.extend(self.runs.rows());
        rows.extend(self.limit_settings.rows());
        rows
    }

    fn general_rows(&self) -> Vec<SettingRow> {
        let token = self
            .token
            .as_ref()
            .map(|token| token.as_ref().map(|_| "(set)"));
        let durability = self.durability.as_ref().map(|kind| durability_text(*kind));
        vec![
            self.data.to_row("data"),
            self.server.to_row("server"),
            token.to_row("token"),
            self.tls_ca.to_row("tls_ca"),
            self.listen.to_row("listen"),
            self.http.to_row("http"),
            durability.to_row("durability"),
            self.memory_budget.to_row("memory_budget"),
            self.strict_types.to_row("strict_types"),
            self.no_auth.to_row("no_auth"),
            self.tls_cert.to_row("tls_cert"),
            self.tls_key.to_row("tls_key"),
            self.allow_host.to_row("allow_host"),
            self.allow_origin.to_row("allow_origin"),
        ]
    }
}

fn file_path(reach: &ReachFlags, env: Environment<'_>) -> Result<PathBuf> {
    if let Some(path) = &reach.config {
        return Ok(path.clone());
    }
    if let Some(path) = env("TURNKEEP_CONFIG") {
        return Ok(path.into());
    }
    Ok(xdg_dir(env, "XDG_CONFIG_HOME", ".config")?.join("turnkeep/config.toml"))
}

fn default_data_dir(env: Environment<'_>) -> Result<PathBuf> {
    Ok(xdg_dir(env, "XDG_DATA_HOME", ".local/share")?.join("turnkeep"))
}

fn xdg_dir(env: Environment<'_>, variable: &str, below_home: &str) -> Result<PathBuf> {
    // The XDG specification says that a relative path is to be ignored.
    if let Some(named) = env(variable).map(PathBuf::from)
        && named.is_absolute()
    {
        return Ok(named);
    }
    if let Some(home) = env("HOME") {
        return Ok(PathBuf::from(home).join(below_home));
    }
    Failure::usage(format!("neither {variable} nor HOME is set"))
        .hint("name the data directory with --data DIR and the configuration with --config FILE")
        .fail()
}

#[cfg(test)]
mod tests;
