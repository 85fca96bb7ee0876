//! `turnkeep stats`: how much there is.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::http::Call;
use crate::output::bytes_text;
use crate::session::{Need, Session};

/// Show how much the store holds
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep stats
  turnkeep stats --json | jq .turns")]
pub(crate) struct Args {}

pub(crate) async fn run(_: &Args, app: &mut App) -> Result<()> {
    let mut session = Session::open(&app.config()?, Need::Read).await?;
    let stats = session.http.json(Call::get("/v1/stats")).await;
    session.close().await;
    let stats = stats?;
    if app.out.is_json() {
        return app.out.json(&stats);
    }
    let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or_default();
    let blobs = format!(
        "{} ({}, {} as kept)",
        number("blobs"),
        bytes_text(number("blob_raw_bytes")),
        bytes_text(number("blob_stored_bytes"))
    );
    let of_worlds = number("world_contexts");
    let contexts = match number("contexts").saturating_sub(of_worlds) {
        contexts if of_worlds == 0 => contexts.to_string(),
        contexts => format!("{contexts}, and {of_worlds} of worlds"),
    };
    let poisoned = stats
        .get("poisoned")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let writer = if poisoned {
        "stopped after a failed sync: restart the server"
    } else {
        "ok"
    };
    let mut pairs = vec![
        ("Turns", number("turns").to_string()),
        ("Contexts", contexts),
        ("Blobs", blobs),
        (
            "Types",
            format!("{} in {} bundles", number("types"), number("bundles")),
        ),
        ("Events", number("events").to_string()),
        (
            "Log",
            format!(
                "{} in {} frames",
                bytes_text(number("log_bytes")),
                number("log_position")
            ),
        ),
        ("Index", bytes_text(number("index_bytes"))),
        ("Writer", writer.to_owned()),
    ];
    if number("lost_turns") + number("lost_contexts") > 0 {
        let lost = format!(
            "{} turns and {} contexts",
            number("lost_turns"),
            number("lost_contexts")
        );
        pairs.push((
            "Lost",
            format!("{lost}, to damage: `turnkeep verify` names them"),
        ));
    }
    app.out.pairs(&pairs)
}
