//! `turnkeep stats`: shows how much the store holds.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::answer::{is_true, number_of};
use crate::http::Call;
use crate::output::bytes_text;
use crate::session::{Need, StoreSession, with_store};

/// Show how much the store holds
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep stats
  turnkeep stats --json | jq .turns")]
pub(crate) struct StatsArgs {}

pub(crate) async fn run_stats(_: &StatsArgs, app: &mut App) -> Result<()> {
    let fetch = async |session: &mut StoreSession| session.http.json(Call::get("/v1/stats")).await;
    let stats = with_store(&app.config()?, Need::Read, fetch).await?;
    if app.out.is_json() {
        return app.out.json(&stats);
    }
    app.out.pairs(&Counters(&stats).to_pairs())
}

/// The server's counters.
struct Counters<'a>(&'a Value);

impl Counters<'_> {
    fn number(&self, name: &str) -> u64 {
        number_of(self.0, name)
    }

    fn bytes_of(&self, name: &str) -> String {
        bytes_text(self.number(name))
    }

    /// What people see: a name and a value each.
    fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let number = |name| self.number(name);
        let types = format!("{} in {} bundles", number("types"), number("bundles"));
        let log_frames = number("log_position");
        let mut pairs = vec![
            ("Turns", number("turns").to_string()),
            ("Contexts", self.contexts_text()),
            ("Blobs", self.blobs_text()),
            ("Types", types),
            ("Events", number("events").to_string()),
            (
                "Log",
                format!("{} in {log_frames} frames", self.bytes_of("log_bytes")),
            ),
            ("Index", self.bytes_of("index_bytes")),
            ("Writer", self.writer_text().to_owned()),
        ];
        pairs.extend(self.lost_text().map(|text| ("Lost", text)));
        pairs
    }

    fn blobs_text(&self) -> String {
        let blobs = self.number("blobs");
        let (raw, stored) = (
            self.bytes_of("blob_raw_bytes"),
            self.bytes_of("blob_stored_bytes"),
        );
        format!("{blobs} ({raw}, {stored} as kept)")
    }

    /// Each world has contexts of its own, which `ctx list` hides; they are counted apart, so that
    /// the numbers agree with that list.
    fn contexts_text(&self) -> String {
        let of_worlds = self.number("world_contexts");
        let others = self.number("contexts").saturating_sub(of_worlds);
        if of_worlds == 0 {
            others.to_string()
        } else {
            format!("{others}, and {of_worlds} of worlds")
        }
    }

    fn writer_text(&self) -> &'static str {
        if is_true(self.0, "poisoned") {
            "stopped after a failed sync: restart the server"
        } else {
            "ok"
        }
    }

    fn lost_text(&self) -> Option<String> {
        let (turns, contexts) = (self.number("lost_turns"), self.number("lost_contexts"));
        (turns + contexts > 0).then(|| {
            format!(
                "{turns} turns and {contexts} contexts, to damage: `turnkeep verify` names them"
            )
        })
    }
}
