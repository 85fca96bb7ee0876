//! Checks that the server answers or, without a server, that one could start.

use std::net::SocketAddr;

use hyper::StatusCode;
use tokio::net::TcpListener;

use super::Finding;
use crate::config::Config;
use crate::data_dir::{DataDir, ServerNote};
use crate::http::{Call, HttpRefusal};
use crate::session::{Need, StoreSession, with_store};

/// Checks the server that should answer, if there is one.
pub(super) async fn check_server(
    config: &Config,
    dir: &DataDir,
    running: Option<&ServerNote>,
) -> Finding {
    const CHECK: &str = "server";
    if config.server.value.is_none() && running.is_none() {
        return match dir.server_note() {
            Some(note) => Finding::warn(
                CHECK,
                format!("none runs; process {} ended without tidying up", note.pid),
                "nothing acknowledged is lost: the next start recovers",
            ),
            None => Finding::ok(CHECK, "none runs"),
        };
    }
    match ask_server(config).await {
        Ok(address) => Finding::ok(CHECK, format!("answers at {address}")),
        Err(error) => finding_of_refusal(CHECK, &error).unwrap_or_else(|| {
            Finding::fail(
                CHECK,
                format!("{error:#}"),
                "look at the server's own messages, or start it again",
            )
        }),
    }
}

/// The finding for a server that refuses the token. Such a server works.
fn finding_of_refusal(check: &'static str, error: &anyhow::Error) -> Option<Finding> {
    let refused = error.downcast_ref::<HttpRefusal>()?;
    match refused.status {
        // A person's token opens one world and not the statistics, so this refusal proves that the
        // server works.
        StatusCode::FORBIDDEN if refused.by_person_token => Some(Finding::ok(
            check,
            "answers; the token is a person's, so it tells no more",
        )),
        StatusCode::UNAUTHORIZED => Some(Finding::fail(
            check,
            refused.message.clone(),
            refused.hint()?,
        )),
        _ => None,
    }
}

async fn ask_server(config: &Config) -> anyhow::Result<String> {
    let ask = async |session: &mut StoreSession| {
        session.http.json(Call::get("/v1/stats")).await?;
        Ok(session.http.target().to_string())
    };
    with_store(config, Need::Read, ask).await
}

/// Checks that the configured addresses are free, unless a server runs on them.
pub(super) async fn check_ports(config: &Config, server_runs: bool) -> Vec<Finding> {
    if server_runs || config.server.value.is_some() {
        return Vec::new();
    }
    vec![
        check_port("listen", config.listen.value).await,
        check_port("http", config.http.value).await,
    ]
}

async fn check_port(name: &'static str, addr: SocketAddr) -> Finding {
    match TcpListener::bind(addr).await {
        Ok(_) => Finding::ok(name, format!("{addr} is free")),
        Err(error) => {
            let advice = format!(
                "`turnkeep up --{name} ADDR` takes another address; port 0 takes a free one"
            );
            Finding::fail(name, format!("{addr}: {error}"), advice)
        }
    }
}
