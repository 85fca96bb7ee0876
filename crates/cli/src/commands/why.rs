//! `turnkeep why`: what caused something, up to a person.

use anyhow::Result;
use serde_json::Value;
use turnkeep_wire::json::{Why, WhyLink};
use turnkeep_wire::percent_encode;

use super::App;
use super::run::names::{KnownRuns, RunName};
use crate::http::{Call, Http};
use crate::output::Style;
use crate::render::printable;
use crate::session::{Need, StoreSession};

/// Puts refs under the summaries.
const INDENT: &str = "         ";

/// Show why something is there: its cause, the cause of that, up to a person
///
/// A line was added by a diff, the diff was made in a turn of an agent, the turn was started by a
/// prompt, the prompt was for a handoff of another agent, and so on until a message of a person.
/// REF is `artifact://ID#PATH:LINE` (a line that a diff added), `artifact://ID`, `turn:ID`,
/// `envelope:ID`, `message:ID`, `run:ID`, `entry:ID`, `turn:N` or `ctx:N`; only a run may be named by
/// a head of its id. Why a run waits is another question: `turnkeep run why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep why artifact://6f0a2d0e-8a3b-4c5d-9e1f-001122334455
  turnkeep why artifact://6f0a2d0e-8a3b-4c5d-9e1f-001122334455#src/lib.rs:12
  turnkeep why entry:e_13p0m06cwpf109bwv05yzd9f6c")]
pub(crate) struct WhyArgs {
    /// The thing
    #[arg(value_name = "REF")]
    reference: String,
}

pub(crate) async fn run_why(args: &WhyArgs, app: &mut App) -> Result<()> {
    let mut session = StoreSession::open(&app.config()?, Need::Read).await?;
    let answered = fetch_chain(&mut session.http, &args.reference).await;
    session.close().await;
    let json = answered?;
    if app.out.is_json() {
        return app.out.json(&json);
    }
    let why: Why = serde_json::from_value(json)?;
    print_chain(&why, app)
}

async fn fetch_chain(http: &mut Http, reference: &str) -> Result<Value> {
    let reference = complete_run_id(http, reference).await?;
    let path = format!("/v1/refs/{}/why", percent_encode(&reference));
    http.json(Call::get(path)).await
}

/// A run may be named by a head of its id, as everywhere; the server takes whole ids only.
async fn complete_run_id(http: &mut Http, reference: &str) -> Result<String> {
    let name = reference.strip_prefix("run:").map(str::parse::<RunName>);
    let Some(Ok(name)) = name else {
        return Ok(reference.to_owned());
    };
    let list = http
        .json(Call::get("/api/runs").query("summary", 1))
        .await?;
    let known = KnownRuns::new(serde_json::from_value(list)?);
    Ok(format!("run:{}", known.choose(Some(&name))?.id.0))
}

fn print_chain(why: &Why, app: &mut App) -> Result<()> {
    for link in &why.chain {
        for line in describe_link(link, app) {
            app.out.line(line)?;
        }
    }
    if !why.complete {
        let line = "and so on: the chain is longer; ask for its last link";
        app.out.line(line)?;
    }
    Ok(())
}

/// The lines of a link: what it says, who did it and when; then the refs by which to ask further.
fn describe_link(link: &WhyLink, app: &App) -> Vec<String> {
    let by = link.by.as_ref().map(|by| {
        let by = app.out.paint(Style::Name, &printable(by));
        format!("by {by}")
    });
    let at = link.at.as_ref().map(|at| printable(at));
    let said = std::iter::once(printable(&link.summary));
    let parts: Vec<String> = said.chain(by).chain(at).collect();
    let mut lines = vec![format!("{:<8} {}", link.kind.word(), parts.join(", "))];
    let reference = app.out.paint(Style::Id, &printable(&link.reference));
    lines.push(format!("{INDENT}{reference}"));
    for other in &link.also {
        let other = app.out.paint(Style::Id, &printable(other));
        lines.push(format!("{INDENT}also because of {other}"));
    }
    lines
}
