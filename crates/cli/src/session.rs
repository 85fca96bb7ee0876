//! How a command reaches a store: the server that it was told, the one that runs on the data
//! directory, or one of its own.
//!
//! In every case the command then speaks HTTP to a server, so that each command has one
//! implementation. A server of its own takes the directory's lock, listens on loopback with the
//! directory's own token, and ends with the command.

use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use turnkeep_client::{Client, Options, Tls};

use crate::config::Config;
use crate::data_dir::{DataDir, ServerNote};
use crate::failure::Failure;
use crate::http::{Call, Http, Target};
use crate::local::Local;

/// The largest file or standard input that a command reads into memory.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// Whether a command may start a store where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It only reads: without a store there is nothing to read.
    Read,
    /// It writes to something that is there: without a store there is nothing to change.
    Change,
    /// It writes: a store is started.
    Write,
}

/// A store within reach.
pub(crate) struct Session {
    /// The gateway.
    pub(crate) http: Http,
    /// Where the binary protocol is, if that is known without asking.
    binary: Option<String>,
    local: Option<Local>,
    /// Whether the server is there for longer than this command or an agent.
    stays: bool,
}

impl Session {
    /// Finds the store, or opens it.
    pub(crate) async fn open(config: &Config, need: Need) -> Result<Self> {
        let dir = DataDir::new(&config.data.value);
        let given = given_token(config)?;
        if let Some(address) = &config.server.value {
            return Self::named(config, &dir, address);
        }
        if let Some(session) = Self::running(config, &dir).await? {
            return Ok(session);
        }
        if need != Need::Write && !dir.is_store() {
            return Err(dir.missing());
        }
        let local = match Local::start(config, &dir, need).await {
            Ok(local) => local,
            // A server may have started meanwhile.
            Err(error) => return Self::running(config, &dir).await?.ok_or(error),
        };
        // A token that was given counts here as it does with a server that runs.
        let token = given.unwrap_or_else(|| local.token().to_owned());
        let target = Target::parse(&local.http_addr().to_string(), Some(token), None)?;
        Ok(Self {
            http: Http::new(target),
            binary: Some(local.tcp_addr().to_string()),
            local: Some(local),
            stays: false,
        })
    }

    /// Finds the store's server, for a command that would keep the directory from everybody else.
    pub(crate) async fn served(config: &Config) -> Result<Self> {
        let dir = DataDir::new(&config.data.value);
        if let Some(address) = &config.server.value {
            return Self::named(config, &dir, address);
        }
        if !dir.is_store() {
            return Err(dir.missing());
        }
        let running = Self::running(config, &dir).await?;
        running.ok_or_else(|| {
            let failure = Failure::new(format!("no server runs on {}", dir.path().display()));
            failure
                .hint("start one with `turnkeep up`: what is appended comes through it")
                .into()
        })
    }

    /// The server that the person named.
    fn named(config: &Config, dir: &DataDir, address: &str) -> Result<Self> {
        let token = token(config, dir)?;
        let target = Target::parse(address, token, config.tls_ca.value.clone())?;
        Ok(Self {
            http: Http::new(target),
            binary: None,
            local: None,
            stays: true,
        })
    }

    /// The server that runs on the data directory, if one does.
    async fn running(config: &Config, dir: &DataDir) -> Result<Option<Self>> {
        let Some(note) = server_on(dir).await else {
            return Ok(None);
        };
        let token = token(config, dir)?;
        let target = note_target(&note, token, config.tls_ca.value.clone())?;
        Ok(Some(Self {
            http: Http::new(target),
            binary: Some(note.tcp),
            local: None,
            stays: !note.passing,
        }))
    }

    /// Whether the server is the command's own and ends with it.
    pub(crate) fn is_own(&self) -> bool {
        self.local.is_some()
    }

    /// Whether others will find the server where it is now.
    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    /// Where the command's own server listens: HTTP, then the binary protocol.
    pub(crate) fn own_addresses(&self) -> Option<(String, String)> {
        self.local
            .as_ref()
            .map(|local| (local.http_addr().to_string(), local.tcp_addr().to_string()))
    }

    /// A client of the binary protocol of the same server.
    pub(crate) async fn client(&mut self) -> Result<Client> {
        let binary = match &self.binary {
            Some(binary) => binary.clone(),
            None => self.ask_binary().await?,
        };
        let target = self.http.target();
        let tls = target.ca().map(|ca| Tls {
            ca_file: ca.to_owned(),
            server_name: None,
        });
        let token = target.token().map(str::to_owned);
        let options = Options {
            token,
            tls,
            tag: "turnkeep-cli".to_owned(),
            ..Options::default()
        };
        Client::connect(&binary, options).await.map_err(|error| {
            Failure::new(error.to_string())
                .hint("the server says that its binary port is there: check that it can be reached from here")
                .into()
        })
    }

    /// Where the named server says that its binary port is, on the host at which it was named.
    async fn ask_binary(&mut self) -> Result<String> {
        let stats = self.http.json(Call::get("/v1/stats")).await?;
        let port = binary_port(&stats).ok_or_else(|| {
            Failure::new("the server does not say where its binary port is")
                .hint("run the command on the server's machine, with --data instead of --server")
        })?;
        Ok(self.http.target().at_port(port))
    }

    /// Ends the command's own server, if it has one.
    pub(crate) async fn close(self) {
        drop(self.http);
        if let Some(local) = self.local {
            local.stop().await;
        }
    }
}

/// The token that was given, else the owner's, which is in the directory.
fn token(config: &Config, dir: &DataDir) -> Result<Option<String>> {
    given_token(config)?.map_or_else(|| dir.token(), |given| Ok(Some(given)))
}

/// The token that was given. An empty one is a secret that was lost: the owner's does not take its
/// place.
fn given_token(config: &Config) -> Result<Option<String>> {
    let given = config.token.value.clone();
    if given.as_ref().is_none_or(|token| !token.trim().is_empty()) {
        return Ok(given);
    }
    let failure = Failure::usage(format!("the token is empty ({})", config.token.source));
    Err(failure
        .hint("give the token's text; whoever gave you the token can mint another")
        .into())
}

/// Where the noted server is, with the certificate that it shows as the one to trust.
fn note_target(note: &ServerNote, token: Option<String>, ca: Option<PathBuf>) -> Result<Target> {
    let ca = note.tls_cert.clone().map(|shown| ca.unwrap_or(shown));
    Target::parse(&note.http, token, ca)
}

/// The port of the binary protocol among a server's counters.
fn binary_port(stats: &Value) -> Option<u16> {
    let addr = stats.get("tcp_addr")?.as_str()?.parse::<SocketAddr>();
    addr.ok().map(|addr| addr.port())
}

/// The server that holds the directory and listens where its note says, if there is one.
pub(crate) async fn server_on(dir: &DataDir) -> Option<ServerNote> {
    let note = dir.holders_note()?;
    let dialled = tokio::net::TcpStream::connect(&note.http).await;
    dialled.is_ok().then_some(note)
}

/// What a person calls a file, or standard input for `-`.
pub(crate) fn input_name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read {}", input_name(path)))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Failure::new(format!(
            "{} is larger than {INPUT_BYTES_MAX} bytes",
            input_name(path)
        ))
        .into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_binary_port_is_the_one_that_the_server_tells() {
        fn check(stats: &Value, expect: Option<u16>) {
            assert_eq!(binary_port(stats), expect, "{stats}");
        }
        check(&json!({ "tcp_addr": "127.0.0.1:7001" }), Some(7001));
        check(&json!({ "tcp_addr": "[::]:7002" }), Some(7002));
        check(&json!({ "tcp_addr": "somewhere" }), None);
        check(&json!({ "turns": 1 }), None);
    }
}
