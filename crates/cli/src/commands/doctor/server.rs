//! Checks of the server: does it answer, or could one start?

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::Finding;
use crate::config::Config;
use crate::data_dir::{DataDir, ServerNote};
use crate::http::Call;
use crate::session::{Need, Session};

/// A server that should answer does.
pub(super) async fn reachable(config: &Config, dir: &DataDir, running: Option<&ServerNote>) -> Finding {
    const CHECK: &str = "server";
    if config.server.value.is_none() && running.is_none() {
        return match dir.note() {
            Some(note) => Finding::warn(
                CHECK,
                format!("none runs; process {} ended without tidying up", note.pid),
                "nothing acknowledged is lost: the next start recovers",
            ),
            None => Finding::ok(CHECK, "none runs"),
        };
    }
    match ask(config).await {
        Ok(address) => Finding::ok(CHECK, format!("answers at {address}")),
        Err(error) => {
            Finding::fail(CHECK, format!("{error:#}"), "look at the server's own messages, or start it again")
        }
    }
}

async fn ask(config: &Config) -> anyhow::Result<String> {
    let mut session = Session::open(config, Need::Read).await?;
    let address = session.http.target().to_string();
    let answered = session.http.json(Call::get("/v1/stats")).await;
    session.close().await;
    answered.map(|_| address)
}

/// The configured addresses are free, if no server has them.
pub(super) async fn ports(config: &Config, server_runs: bool) -> Vec<Finding> {
    if server_runs || config.server.value.is_some() {
        return Vec::new();
    }
    vec![port("listen", config.listen.value).await, port("http", config.http.value).await]
}

async fn port(name: &'static str, addr: SocketAddr) -> Finding {
    match TcpListener::bind(addr).await {
        Ok(_) => Finding::ok(name, format!("{addr} is free")),
        Err(error) => {
            let advice =
                format!("`turnkeep up --{name} ADDR` takes another address; port 0 takes a free one");
            Finding::fail(name, format!("{addr}: {error}"), advice)
        }
    }
}
