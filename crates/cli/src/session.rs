//! Finds the store that a command works on. There are three cases: the server that `--server`
//! names, the server that runs on the data directory, or a server that the command starts itself.
//!
//! In every case the command then sends HTTP requests to a server, so each command has one
//! implementation. The command's own server takes the directory's lock, listens on loopback with
//! the directory's token, and ends with the command.

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
use crate::local::LocalServer;

/// The largest file or standard input that a command reads into memory.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// Whether a command may create a store in a directory that has none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It only reads: without a store there is nothing to read.
    Read,
    /// It writes to something that is there: without a store there is nothing to change.
    Change,
    /// It writes: a store is started.
    Write,
}

/// The addresses of a server that a command started.
pub(crate) struct OwnAddresses {
    pub(crate) http: String,
    pub(crate) tcp: String,
}

/// An open way to a store.
pub(crate) struct StoreSession {
    /// The client of the server's HTTP port.
    pub(crate) http: Http,
    /// The address of the binary protocol. `None`: the server has to be asked.
    binary: Option<String>,
    /// The command's own server.
    local: Option<LocalServer>,
    /// Whether the server keeps running after this command, and does not belong to an agent.
    outlives_command: bool,
}

impl StoreSession {
    /// Finds the store's server, or starts one in this process.
    pub(crate) async fn open(config: &Config, need: Need) -> Result<Self> {
        let dir = DataDir::new(&config.data.value);
        // Checked first: an empty token is refused wherever the store is.
        let given = given_token(config)?;
        if let Some(address) = &config.server.value {
            return Self::at_named_server(config, &dir, address);
        }
        if let Some(session) = Self::at_running_server(config, &dir).await? {
            return Ok(session);
        }
        // A command that only reads or changes must not create an empty store because of a typing
        // error.
        if need != Need::Write && !dir.is_store() {
            return Err(dir.missing_store_error());
        }
        match LocalServer::start_for_command(config, &dir, need).await {
            Ok(local) => Self::at_own_server(local, given),
            // Another server may have taken the lock since the first look.
            Err(error) => Self::at_running_server(config, &dir).await?.ok_or(error),
        }
    }

    fn at_own_server(local: LocalServer, given_token: Option<String>) -> Result<Self> {
        // A given token must count here too: a person's token gives no more rights offline.
        let token = given_token.unwrap_or_else(|| local.token().to_owned());
        let target = Target::parse(&local.http_addr().to_string(), Some(token), None)?;
        Ok(Self {
            http: Http::new(target),
            binary: Some(local.tcp_addr().to_string()),
            local: Some(local),
            outlives_command: false,
        })
    }

    /// Finds the store's server, and starts none: a command that waits for news would lock out
    /// those who write them.
    pub(crate) async fn open_served(config: &Config) -> Result<Self> {
        let dir = DataDir::new(&config.data.value);
        if let Some(address) = &config.server.value {
            return Self::at_named_server(config, &dir, address);
        }
        if !dir.is_store() {
            return Err(dir.missing_store_error());
        }
        if let Some(session) = Self::at_running_server(config, &dir).await? {
            return Ok(session);
        }
        Failure::new(format!("no server runs on {}", dir.path().display()))
            .hint("start one with `turnkeep up`: new turns arrive through it")
            .fail()
    }

    /// Uses the server that `--server` names.
    fn at_named_server(config: &Config, dir: &DataDir, address: &str) -> Result<Self> {
        let token = choose_token(config, dir)?;
        let target = Target::parse(address, token, config.tls_ca.value.clone())?;
        Ok(Self {
            http: Http::new(target),
            binary: None,
            local: None,
            outlives_command: true,
        })
    }

    /// Uses the server that runs on the data directory, if one does.
    async fn at_running_server(config: &Config, dir: &DataDir) -> Result<Option<Self>> {
        let Some(note) = server_on(dir).await else {
            return Ok(None);
        };
        let token = choose_token(config, dir)?;
        let target = note_target(&note, token, config.tls_ca.value.clone())?;
        Ok(Some(Self {
            http: Http::new(target),
            binary: Some(note.tcp),
            local: None,
            outlives_command: !note.passing,
        }))
    }

    /// Whether the server is the command's own and ends with it.
    pub(crate) fn is_own(&self) -> bool {
        self.local.is_some()
    }

    /// Whether other programs can rely on the server's address after this command.
    pub(crate) fn outlives_command(&self) -> bool {
        self.outlives_command
    }

    /// Where the command's own server listens.
    pub(crate) fn own_addresses(&self) -> Option<OwnAddresses> {
        let local = self.local.as_ref()?;
        Some(OwnAddresses {
            http: local.http_addr().to_string(),
            tcp: local.tcp_addr().to_string(),
        })
    }

    /// A client of the binary protocol of the same server.
    pub(crate) async fn binary_client(&mut self) -> Result<Client> {
        let binary = match &self.binary {
            Some(binary) => binary.clone(),
            None => self.ask_binary().await?,
        };
        let options = binary_options(self.http.target());
        Client::connect(&binary, options).await.map_err(|error| {
            Failure::new(error.to_string())
                .hint("the server says that its binary port is there: check that it can be reached from here")
                .into()
        })
    }

    /// Asks the server for its binary port. The host is the one that the person named: the server's
    /// own address may not be reachable from here.
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
        // The connection first: the server waits for open connections when it stops.
        drop(self.http);
        if let Some(local) = self.local {
            local.stop().await;
        }
    }
}

/// Opens a session, does the work with it and closes it, whether or not the work succeeds: only
/// closing stops the command's own server and releases the directory's lock in order.
pub(crate) async fn with_store<T>(
    config: &Config,
    need: Need,
    work: impl AsyncFnOnce(&mut StoreSession) -> Result<T>,
) -> Result<T> {
    let mut session = StoreSession::open(config, need).await?;
    let done = work(&mut session).await;
    session.close().await;
    done
}

/// The same token and certificates that HTTP uses.
fn binary_options(target: &Target) -> Options {
    let tls = target.ca_file().map(|ca| Tls {
        ca_file: ca.to_owned(),
        server_name: None,
    });
    Options {
        token: target.token().map(str::to_owned),
        tls,
        tag: "turnkeep-cli".to_owned(),
        ..Options::default()
    }
}

/// The given token, or else the owner's token from the data directory.
fn choose_token(config: &Config, dir: &DataDir) -> Result<Option<String>> {
    given_token(config)?.map_or_else(|| dir.token(), |given| Ok(Some(given)))
}

/// The given token. An empty one is refused: it is probably a lost secret, and falling back to the
/// owner's token would open everything.
fn given_token(config: &Config) -> Result<Option<String>> {
    let given = config.token.value.clone();
    if given.as_ref().is_none_or(|token| !token.trim().is_empty()) {
        return Ok(given);
    }
    Failure::usage(format!("the token is empty ({})", config.token.source))
        .hint("give the token's text; whoever gave you the token can mint another")
        .fail()
}

/// The address in a server's note. Without `--tls-ca` the command trusts the server's own
/// certificate, because the note lies in a directory that only its owner may write.
fn note_target(note: &ServerNote, token: Option<String>, ca: Option<PathBuf>) -> Result<Target> {
    let ca = note.tls_cert.clone().map(|shown| ca.unwrap_or(shown));
    Target::parse(&note.http, token, ca)
}

/// The port of the binary protocol in the answer to `/v1/stats`.
fn binary_port(stats: &Value) -> Option<u16> {
    let addr = stats.get("tcp_addr")?.as_str()?.parse::<SocketAddr>();
    addr.ok().map(|addr| addr.port())
}

/// The note of the server that holds the directory, if that server accepts connections.
pub(crate) async fn server_on(dir: &DataDir) -> Option<ServerNote> {
    let note = dir.holders_note()?;
    // The lock is taken before the server listens, so a note alone does not prove that it answers.
    let dialled = tokio::net::TcpStream::connect(&note.http).await;
    dialled.is_ok().then_some(note)
}

/// The name of an input in messages: the path, or "standard input" for `-`.
pub(crate) fn input_name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>> {
    let name = input_name(path);
    let bytes = if path == Path::new("-") {
        read_bounded(std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(read_bounded)
    };
    let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        let message = format!("{name} is larger than {INPUT_BYTES_MAX} bytes");
        return Failure::new(message).fail();
    }
    Ok(bytes)
}

fn read_bounded(input: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed: it shows that the input is too large.
    input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
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
