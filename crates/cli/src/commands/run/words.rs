//! Words that a shell may suggest where a run, a node or an approval is wanted.

use anyhow::Result;
use turnkeep_wire::runs::ApprovalList;

use super::client::RunsClient;
use super::names::{approval_word, node_word, nodes_in_order};
use crate::commands::App;
use crate::http::Call;

/// Short ids of the runs, and `@last`.
pub(crate) async fn run_words(app: &App) -> Result<Vec<String>> {
    let runs = RunsClient::connect(app).await?.known_runs().await?;
    let mut words: Vec<String> = runs
        .all()
        .iter()
        .map(|run| runs.short_id(&run.id.0))
        .collect();
    if !words.is_empty() {
        words.push("@last".to_owned());
    }
    Ok(words)
}

/// The nodes of the only active run.
pub(crate) async fn node_words(app: &App) -> Result<Vec<String>> {
    let run = RunsClient::connect(app)
        .await?
        .fetch_run(None)
        .await?
        .view
        .run;
    let nodes = nodes_in_order(&run).into_iter();
    Ok(nodes.map(|node| node_word(&run, node)).collect())
}

/// Short ids of the open approvals.
pub(crate) async fn approval_words(app: &App) -> Result<Vec<String>> {
    let mut client = RunsClient::connect(app).await?;
    let open: ApprovalList = client.fetch(Call::get("/api/approvals")).await?.view;
    let open = open.approvals;
    let ids = open.iter().map(|item| item.approval.approval_id.0.as_str());
    Ok(ids.map(|id| approval_word(&open, id)).collect())
}
