//! The server's configuration: plain values that the caller has resolved.
//!
//! Invariant: a configuration that passed [`ServerConfig::check`] never exposes the store on an
//! address that other machines reach without both TLS and a token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use turnkeep_types::Limits;
use turnkeep_wire::json;

use crate::auth::Auth;
use crate::runs::RunsConfig;
use crate::ui_files::UiFiles;
use crate::unauthenticated::UNAUTHENTICATED_MAX;

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where the binary protocol listens; port 0 takes a free one.
    pub tcp_addr: SocketAddr,
    /// Where HTTP listens; port 0 takes a free one.
    pub http_addr: SocketAddr,
    /// Who may talk to the server.
    pub auth: Auth,
    /// Host names that requests may name besides the listen addresses and `localhost`, each with or
    /// without a port.
    pub allow_hosts: Vec<String>,
    /// Origins besides our own whose pages may call the gateway, such as `https://app.example`.
    pub allow_origins: Vec<String>,
    /// Certificate and key, for both ports.
    pub tls: Option<TlsFiles>,
    /// Refuse types that the registry does not know.
    pub strict_types: bool,
    /// The limits of requests.
    pub limits: Limits,
    /// Commands that may wait for the writer; not more than the store was opened with.
    pub queue_commands_max: usize,
    /// How long the server waits for peers.
    pub timeouts: Timeouts,
    /// Connections on both ports together; by default as many as the file limit allows.
    pub connections_max: Option<usize>,
    /// Connections of each port that have not shown a token.
    pub unauthenticated_max: usize,
    /// Bytes of memory that large requests and answers of all connections may hold together.
    pub memory_budget_bytes: usize,
    /// The data directory. Files of runs lie there.
    pub data_dir: String,
    /// What runs may do, and with which programs.
    pub runs: RunsConfig,
    /// The web UI.
    pub ui: UiFiles,
    /// Whether this is a demo, whose things are announced by [`crate::Running::offer_demo`].
    pub is_demo: bool,
    /// The settings as people read them: names, values and sources.
    pub settings: json::ServerSettings,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            tcp_addr: SocketAddr::from(([127, 0, 0, 1], 9009)),
            http_addr: SocketAddr::from(([127, 0, 0, 1], 9010)),
            auth: Auth::Off(None),
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            tls: None,
            strict_types: false,
            limits: Limits::default(),
            queue_commands_max: turnkeep_store::Options::default().queue_commands_max,
            timeouts: Timeouts::default(),
            connections_max: None,
            unauthenticated_max: UNAUTHENTICATED_MAX,
            memory_budget_bytes: 1 << 30,
            data_dir: String::new(),
            runs: RunsConfig::default(),
            ui: UiFiles::built_in(),
            is_demo: false,
            settings: json::ServerSettings::default(),
        }
    }
}

/// PEM files for TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// How long the server waits before it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// Binary: until the first frame is whole.
    pub first_frame: Duration,
    /// Binary: until a frame that has begun is whole.
    pub frame: Duration,
    /// Binary: between frames.
    pub idle: Duration,
    /// TLS: until the handshake is done.
    pub handshake: Duration,
    /// HTTP: until a request's head is whole, and between requests of a kept-alive connection.
    pub http_head: Duration,
    /// HTTP: without a byte of a request's body.
    pub http_body_stall: Duration,
    /// HTTP: until a request's body is whole.
    pub http_body: Duration,
    /// Until there is memory for a large request or answer.
    pub memory: Duration,
    /// Until a peer that reads nothing is disconnected.
    pub write_stall: Duration,
    /// Between the comments that keep an event stream alive.
    pub sse_ping: Duration,
    /// At shutdown, for requests under way.
    pub shutdown_grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_frame: Duration::from_secs(10),
            frame: Duration::from_secs(30),
            idle: Duration::from_hours(1),
            handshake: Duration::from_secs(10),
            http_head: Duration::from_secs(30),
            http_body_stall: Duration::from_secs(30),
            http_body: Duration::from_mins(2),
            memory: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
            sse_ping: Duration::from_secs(15),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An address that other machines reach, without TLS.
    #[error(
        "{0} can be reached from other machines: give --tls-cert and --tls-key, or listen on 127.0.0.1"
    )]
    ExposedWithoutTls(SocketAddr),
    /// An address that other machines reach, without a token.
    #[error("{0} can be reached from other machines: --no-auth is for loopback addresses only")]
    ExposedWithoutToken(SocketAddr),
    /// Not an origin.
    #[error("`{0}` is not an origin: expected scheme://host[:port] without a path")]
    BadOrigin(String),
    /// Not a host.
    #[error("`{0}` is not a host name: expected host or host:port")]
    BadHost(String),
}

impl ServerConfig {
    /// Rejects a configuration that must not be served.
    pub fn check(&self) -> Result<(), ConfigError> {
        for addr in [self.tcp_addr, self.http_addr] {
            if addr.ip().to_canonical().is_loopback() {
                continue;
            }
            if self.auth.is_off() {
                return Err(ConfigError::ExposedWithoutToken(addr));
            }
            if self.tls.is_none() {
                return Err(ConfigError::ExposedWithoutTls(addr));
            }
        }
        if let Some(bad) = self.allow_origins.iter().find(|origin| !is_origin(origin)) {
            return Err(ConfigError::BadOrigin(bad.clone()));
        }
        match self.allow_hosts.iter().find(|host| !is_host(host)) {
            Some(bad) => Err(ConfigError::BadHost(bad.clone())),
            None => Ok(()),
        }
    }
}

fn is_origin(text: &str) -> bool {
    matches!(text.split_once("://"), Some((scheme, host)) if matches!(scheme, "http" | "https") && is_host(host))
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Token;

    fn config(addr: &str, token: bool, tls: bool) -> ServerConfig {
        let files = TlsFiles {
            cert: "c".into(),
            key: "k".into(),
        };
        ServerConfig {
            http_addr: addr.parse().unwrap(),
            auth: if token {
                Auth::Token(Token::new("secret"))
            } else {
                Auth::Off(None)
            },
            tls: tls.then_some(files),
            ..ServerConfig::default()
        }
    }

    #[test]
    fn an_exposed_address_needs_tls_and_token() {
        fn check(addr: &str, token: bool, tls: bool, expect: bool) {
            assert_eq!(
                config(addr, token, tls).check().is_ok(),
                expect,
                "{addr} token={token} tls={tls}"
            );
        }
        for loopback in [
            "127.0.0.1:0",
            "127.9.9.9:1",
            "[::1]:0",
            "[::ffff:127.0.0.1]:0",
        ] {
            check(loopback, false, false, true);
        }
        for exposed in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0", "[2001:db8::1]:0"] {
            check(exposed, false, false, false);
            check(exposed, true, false, false);
            check(exposed, false, true, false);
            check(exposed, true, true, true);
        }
    }

    #[test]
    fn origins_and_hosts_are_checked_at_start() {
        fn check(origin: &str, expect: bool) {
            let config = ServerConfig {
                allow_origins: vec![origin.to_owned()],
                ..config("127.0.0.1:0", false, false)
            };
            assert_eq!(config.check().is_ok(), expect, "{origin}");
        }
        check("https://app.example", true);
        check("http://localhost:3000", true);
        for bad in [
            "*",
            "null",
            "app.example",
            "https://app.example/",
            "ftp://a",
            "https://",
        ] {
            check(bad, false);
        }
    }
}
